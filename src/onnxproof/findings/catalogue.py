"""All codes; a family's file in `catalogue/` is read when one of its codes is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from onnxproof.findings.entry import FAMILIES, Entry, Family, find_family


class Catalogue(Mapping[str, Entry]):
    """Code → its entry, by family."""

    def __getitem__(self, code: str) -> Entry:
        family = find_family(code)
        if family not in FAMILIES:
            raise KeyError(code)
        return load_entries(family)[code]

    def __iter__(self) -> Iterator[str]:
        return (code for family in FAMILIES for code in load_entries(family))

    def __len__(self) -> int:
        return sum(len(load_entries(family)) for family in FAMILIES)


@cache
def load_entries(family: Family) -> dict[str, Entry]:
    """A family's codes, in the order of its file."""
    text = (files(__package__) / "catalogue" / f"{family.name}.toml").read_bytes()
    return {code: read_entry(code, table) for code, table in msgspec.toml.decode(text).items()}


def read_entry(code: str, table: Mapping[str, Any]) -> Entry:
    """The entry that a table of the file says; a name or a value that no field has is an error."""
    try:
        return msgspec.convert({**table, "code": code}, Entry)
    except msgspec.ValidationError as error:
        raise ValueError(f"the catalogue's entry {code}: {error}") from error


CATALOGUE = Catalogue()


def look_up(code: str) -> Entry:
    """The page about a code; that of a release which has others is empty."""
    return CATALOGUE.get(code) or Entry(code, "a finding of another release", "note", "", "", "")
