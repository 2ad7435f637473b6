"""The two families of errors.

    OnnxproofError
    ├── UserError            a clear sentence, no traceback, exit 2
    │   ├── TargetError      TARGET could not be turned into a module with inputs
    │   ├── InputError       an input, range, dimension or data file is not what the model takes
    │   ├── ProviderError    an execution provider is not there
    │   ├── NotWritten       a file that was asked for: the disk is full, the folder may not be written
    │   └── NothingToVerify  no case, no output: nothing compared is never a pass
    ├── FindingError         a stage ended with a finding: it belongs in the proof
    └── Rejected             a side refuses an input: not a crash, an answer

Anything else that escapes is a bug of onnxproof and says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxproof.findings import Finding


class OnnxproofError(Exception):
    """Base of everything that onnxproof raises on purpose."""


class UserError(OnnxproofError):
    """What the user asked for cannot be done as asked."""


class TargetError(UserError):
    """TARGET cannot be turned into a module with inputs."""


class InputError(UserError):
    """An input, range, dimension or data file does not fit the model."""


class ProviderError(UserError):
    """An execution provider is not available."""


class NotWritten(UserError):
    """A file cannot be written; what was there before is there still."""


class NothingToVerify(UserError):
    """There is no case or no output to compare."""


class FindingError(OnnxproofError):
    """A stage cannot go on; the finding says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Rejected(OnnxproofError):
    """A side refuses an input: not a crash, an answer."""


def list_names(names: object) -> str:
    """'a', 'b', 'c' for a message."""
    texts = [repr(str(name)) for name in names]  # type: ignore[attr-defined]  # any iterable of names
    return ", ".join(texts) if texts else "none"


def first_line(said: object, limit: int = 300) -> str:
    """The first line of what an exception or a text says; the exception's name where it says nothing."""
    lines = str(said).strip().splitlines() or [type(said).__name__ if isinstance(said, BaseException) else ""]
    return lines[0][:limit]


def condense(error: BaseException, limit: int = 300) -> str:
    """What an exception says, in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else f"{text[:limit]}…"


def show_line(text: str) -> str:
    """One line for a terminal or a log of CI: what a name from a file has beside visible characters is escaped as by `repr`."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    # GitHub obeys `::command::` at the beginning of a line and `##[command]` anywhere.
    return re.sub(r"^\s*(?=::)|#(?=#\[)", r"\g<0>\\", shown)


def show_text(text: str) -> str:
    """A text whose line breaks are our own."""
    return "\n".join(map(show_line, text.split("\n")))
