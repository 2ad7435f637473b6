"""Names of dynamic sizes: `batch`, `past`, and sums of them that follow from the others, `past+seq`, `past+1`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping


def split_sum(name: str) -> list[str]:
    """The terms of a name, in the order in which they lie in the dimension."""
    return [term.strip() for term in name.split("+")]


def is_free(name: str, names: Collection[str]) -> bool:
    """Whether a size is chosen, and does not follow from others that are."""
    terms = split_sum(name)
    return len(terms) == 1 or not all(term.isdecimal() or term in names for term in terms)


def list_free(names: Iterable[str]) -> list[str]:
    """The names that are chosen, each once."""
    known = dict.fromkeys(names)
    return [name for name in known if is_free(name, known)]


def measure_size(name: str, sizes: Mapping[str, int], default: int) -> int:
    """The size that a name means where these are chosen."""
    if name.isdecimal():
        return int(name)
    if is_free(name, sizes):
        return sizes.get(name, default)
    return sum(int(term) if term.isdecimal() else sizes[term] for term in split_sum(name))
