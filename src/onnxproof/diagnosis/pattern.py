"""A family of failures, known by a fragment of its message."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Pattern:
    """What a message looks like, and what it means."""

    fragment: re.Pattern[str]
    code: str
    message: Callable[[re.Match[str]], str]
    help: str | None = None


def says(text: str) -> Callable[[re.Match[str]], str]:
    """A message that fills `{1}`, `{2}` with what the fragment caught."""

    def fill(match: re.Match[str]) -> str:
        caught = [group for group in match.groups() if group]
        # Where alternatives catch the same thing, the first that did speaks.
        groups = (
            [match.group(1) or (caught[0] if caught else "?"), *(g or "?" for g in match.groups()[1:])]
            if match.groups()
            else []
        )
        return text.format(match.group(0), *groups)

    return fill


def pattern(fragment: str, code: str, text: str, help: str | None = None) -> Pattern:
    """A pattern whose fragment may span lines."""
    return Pattern(re.compile(fragment, re.S | re.I), code, says(text), help)
