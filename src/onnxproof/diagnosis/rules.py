"""What a speaker says when something fails, and what it means: the rules of `messages/<speaker>.toml`.

A rule *says* fragments of messages: regular expressions, in which case does not matter and a dot matches the end of a line, too. It holds where one
of them is found. Its *message* is filled with what their named groups caught; a part in [brackets] is left out where a group of it caught nothing. A
group `operator` is one of PyTorch's, for which a supported form is looked up. `(?&name)` stands for a fragment that the rules of a file share.

Speakers are asked in the order in which they are given, and the rules of each from top to bottom: the first that holds is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import msgspec

SHARED = re.compile(r"\(\?&(\w+)\)")
OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
GROUP = re.compile(r"\{(\w+)\}")


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a message looks like, and what it means; a message that it knows and one that only looks alike."""

    code: str
    message: str
    says: tuple[re.Pattern[str], ...]
    examples: tuple[str, ...]
    near_misses: tuple[str, ...]
    help: str | None = None

    def search(self, text: str) -> re.Match[str] | None:
        """The first place in a text that one of the fragments fits."""
        matches = [match for fragment in self.says if (match := fragment.search(text))]
        return min(matches, key=lambda match: match.start(), default=None)

    def tell(self, match: re.Match[str]) -> str:
        """The message, filled with what the groups caught."""
        caught = {name: value for name, value in match.groupdict().items() if value}

        def keep(part: re.Match[str]) -> str:
            return part[1] if caught.keys() >= set(GROUP.findall(part[1])) else ""

        return GROUP.sub(lambda group: caught.get(group[1], "?"), OPTIONAL.sub(keep, self.message))


@cache
def load_rules(speaker: str) -> tuple[Rule, ...]:
    """The rules of a speaker, in the order in which they are tried."""
    data = msgspec.toml.decode((files(__package__) / "messages" / f"{speaker}.toml").read_bytes())
    shared = data.get("fragments", {})

    def compiled(_: type, fragment: str) -> re.Pattern[str]:
        while SHARED.search(fragment):
            fragment = SHARED.sub(lambda name: f"(?:{shared[name[1]]})", fragment)
        return re.compile(fragment, re.S | re.I)

    return msgspec.convert(data["rule"], tuple[Rule, ...], dec_hook=compiled)


def find_rule(text: str, speakers: Iterable[str]) -> tuple[Rule, re.Match[str]] | None:
    """The first rule that holds for a text, and where."""
    asked = ((rule, rule.search(text)) for speaker in speakers for rule in load_rules(speaker))
    return next(((rule, match) for rule, match in asked if match), None)
