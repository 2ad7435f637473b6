"""Texts that a regular expression begins to match: repeated, they are what keeps a careless one busy."""

from __future__ import annotations

import re
from typing import Any

try:
    from re import _parser as parser
except ImportError:  # before Python 3.11
    import sre_parse as parser

POOL = "a1 _'\"`\n(.:-/>"


def beginnings(fragment: re.Pattern[str]) -> list[str]:
    """Texts that fit the fragment's first parts, one part more each; of alternatives the first is taken."""
    return _texts(parser.parse(fragment.pattern, fragment.flags))[1:]


def _texts(parsed: Any) -> list[str]:
    done = [""]
    for kind, argument in ((str(kind), argument) for kind, argument in parsed):
        if kind == "LITERAL":
            done.append(done[-1] + chr(argument))
        elif kind == "ANY":
            done.append(done[-1] + "a")
        elif kind == "IN":
            done.append(done[-1] + _member(argument))
        elif kind in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, inner = argument
            done.append(done[-1] + _texts(inner)[-1] * max(low, min(high, 1)))
        elif kind in ("SUBPATTERN", "BRANCH"):
            inner = argument[3] if kind == "SUBPATTERN" else argument[1][0]
            done += [done[-1] + text for text in _texts(inner)[1:]]
    return done


def begins_without_end(parsed: Any) -> bool:
    """Whether some alternative begins with a part that repeats without end: a search would go to the end of it from each place in it."""
    for kind, argument in ((str(kind), argument) for kind, argument in parsed):
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, inner = argument
            if high == parser.MAXREPEAT or begins_without_end(inner):
                return True
            if low == 0:
                continue
        elif kind == "SUBPATTERN":
            return begins_without_end(argument[3])
        elif kind == "BRANCH":
            return any(map(begins_without_end, argument[1]))
        elif kind in ("AT", "ASSERT", "ASSERT_NOT"):
            continue
        return False
    return False


def _member(members: Any) -> str:
    """A character of a class."""
    literals = "".join(chr(value) for kind, value in members if str(kind) == "LITERAL")
    ranges = "".join(chr(value[0]) for kind, value in members if str(kind) == "RANGE")
    negated = str(members[0][0]) == "NEGATE"
    return next(one for one in POOL + literals + ranges if any(_holds(*part, one) for part in members) != negated)


def _holds(kind: Any, value: Any, one: str) -> bool:
    if str(kind) == "LITERAL":
        return chr(value) == one
    if str(kind) == "RANGE":
        return bool(value[0] <= ord(one) <= value[1])
    if str(kind) != "CATEGORY":
        return False
    name = str(value).rpartition("CATEGORY_")[2]
    inside = {"WORD": one.isalnum() or one == "_", "DIGIT": one.isdigit(), "SPACE": one.isspace()}
    return inside[name.removeprefix("NOT_")] != name.startswith("NOT_")
