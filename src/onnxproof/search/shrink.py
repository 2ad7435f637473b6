"""Shrinking: a failing input becomes one that a person can read: smaller, then emptier, then rounder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.cases.domain import Domain, read_sizes
from onnxproof.cases.plan import Inputs
from onnxproof.subject.sizes import is_free, split_sum
from onnxproof.tensors.arrays import Array, Arrays

Change = Callable[[Array], Array]
Fails = Callable[[Inputs], bool]
ONE_LINE = 100
LOWERED = (0.0625, 0.125, 0.25, 0.5)


class Shrinker:
    """Takes a step where the input still fails in the same way."""

    def __init__(self, domains: Sequence[Domain], fails: Fails, most: int = 600) -> None:
        """`most`: how many inputs may be tried. Counted, so that a busy machine finds the same one."""
        self._domains, self._fails, self._most = list(domains), fails, most
        self.tried = 0

    def shrink(self, inputs: Inputs) -> Inputs:
        """The smallest failing input found: shape, then values that are not trivial, then magnitude and digits."""
        for name in self._read_sizes(inputs):
            inputs = self._shorten(inputs, name)
        for domain in self._domains:
            inputs = self._replace_values(inputs, domain, partial(np.full_like, fill_value=_find_trivial(domain)))
        for domain in self._domains:
            for change in ROUNDINGS[domain.dtype.kind == "f"] if "mask" not in domain.role else ():
                inputs = self._replace_values(inputs, domain, partial(_apply_change, change=change, domain=domain))
        return inputs

    def _still_fails(self, inputs: Inputs) -> bool:
        if self.tried >= self._most:
            return False
        self.tried += 1
        return self._fails(inputs)

    def _shorten(self, inputs: Inputs, dim: str) -> Inputs:
        """Leave out runs of rows along a dimension, long runs first."""
        size = self._read_sizes(inputs)[dim]
        least = max(1, *(domain.limits.get(dim, (1, 0))[0] for domain in self._domains))
        run = size // 2
        while run >= 1 and size > least:
            start = 0
            while start < size and size - run >= least:
                kept = np.r_[0:start, min(start + run, size) : size]
                smaller = self._take_rows(inputs, dim, kept)
                if self._still_fails(smaller):
                    inputs, size = smaller, len(kept)
                else:
                    start += run
            run //= 2
        return inputs

    def _read_sizes(self, inputs: Inputs) -> dict[str, int]:
        return read_sizes(self._domains, inputs)

    def _take_rows(self, inputs: Inputs, dim: str, kept: NDArray[np.intp]) -> Inputs:
        taken, before = dict(inputs), self._read_sizes(inputs)
        for domain in self._domains:
            for axis, name in domain.dims.items():
                places = _list_kept(name, dim, kept, before)
                if places is not None:
                    taken[domain.name] = np.ascontiguousarray(np.take(taken[domain.name], places, axis=axis))
        sizes = self._read_sizes(taken)
        for domain in self._domains:
            if domain.role == "length" and (valid := domain.within(sizes)) is not None:
                lengths = taken[domain.name]
                # A length must not exceed what was just shortened: the module would reject it for that.
                taken[domain.name] = np.minimum(lengths, np.asarray(valid.high, lengths.dtype))
        return taken

    def _replace_values(self, inputs: Inputs, domain: Domain, change: Change) -> Inputs:
        """Change values that are not trivial, all at once if that still fails, else half by half."""
        name = domain.name
        values, trivial = inputs[name].reshape(-1), _find_trivial(domain)
        differs = values != trivial
        if values.dtype.kind == "f":
            differs |= np.signbit(values) != np.signbit(trivial)  # a zero of the other sign may be what matters
        places = np.flatnonzero(differs)
        waiting = [places] if places.size else []
        while waiting and self.tried < self._most:
            group = waiting.pop()
            flat = inputs[name].reshape(-1)
            new = change(flat[group])
            # As bytes: NaN differs from itself, and −0.0 equals 0.0.
            if new.tobytes() == flat[group].tobytes():
                continue
            changed = flat.copy()
            changed[group] = new
            trial = {**inputs, name: changed.reshape(inputs[name].shape)}
            if self._still_fails(trial):
                inputs = trial
            elif len(group) > 1:
                waiting += reversed(np.array_split(group, [len(group) // 2]))
        return inputs


def _list_kept(name: str, dim: str, kept: NDArray[np.intp], sizes: Mapping[str, int]) -> NDArray[np.intp] | None:
    """The places that stay in a dimension of this name; None where it is left alone."""
    if name == dim:
        return kept
    terms = [] if is_free(name, sizes) else split_sum(name)
    if dim not in terms:
        return None
    lengths = [int(term) if term.isdecimal() else sizes[term] for term in terms]
    starts = np.cumsum([0, *lengths])
    places = [s + (kept if t == dim else np.arange(n)) for t, n, s in zip(terms, lengths, starts, strict=False)]
    return np.concatenate(places).astype(np.intp)


def _find_trivial(domain: Domain) -> Any:
    """The value that says nothing: zero, or what is nearest to it in the valid range; on for a mask."""
    value = 1.0 if domain.role == "mask" else 0.0
    if domain.valid is not None:
        value = min(max(value, domain.valid.low), domain.valid.high)
    return np.asarray(value).astype(domain.dtype)


def _apply_change(values: Array, change: Change, domain: Domain) -> Array:
    """Finite values changed, inside the valid range."""
    low, high = (domain.valid.low, domain.valid.high) if domain.valid is not None else (-np.inf, np.inf)
    wide = values.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        kept = np.where(np.isfinite(wide), np.clip(change(wide), low, high), wide)
        return np.asarray(kept.astype(values.dtype))


def _round_digits(values: Array, digits: int) -> Array:
    """Rounded to some significant digits."""
    magnitude = np.floor(np.log10(np.maximum(np.abs(values), 1e-300)))
    step = 10.0 ** (magnitude - digits + 1)
    return np.asarray(np.round(values / step) * step)


# Ever gentler ways to make numbers shorter: integers, and floats.
ROUNDINGS: dict[bool, tuple[Change, ...]] = {
    False: (
        np.sign,
        *(lambda values, base=base: np.trunc(values / base) * base for base in (100.0, 10.0, 2.0)),
        lambda values: np.sign(values) * 2.0 ** np.floor(np.log2(np.maximum(np.abs(values), 1.0))),
    ),
    True: (
        np.sign,
        *(lambda values, share=share: np.where(np.abs(values) > 1, values * share, values) for share in LOWERED),
        *(partial(_round_digits, digits=digits) for digits in (1, 2, 3, 4, 6)),
    ),
}


def show_in_full(inputs: Arrays, limit: int = ONE_LINE) -> str | None:
    """The inputs as one line of text; None where they do not fit."""
    text = ", ".join(f"{name} = {_show_array(array, limit)}" for name, array in inputs.items())
    return text if len(text) <= limit else None


def _show_array(array: Array, limit: int) -> str:
    """Every number, or what most of them are and where the others stand."""
    if array.size <= limit // 2 and len(dense := _show_nested(array)) <= limit // 2:
        return dense
    values, counts = np.unique(array, return_counts=True)
    common = values[counts.argmax()]
    others = np.argwhere(array != common)
    places = ", ".join(f"{_show_number(array[tuple(place)])} at {place.tolist()}" for place in others[:limit])
    return f"{_show_number(common)} in {list(array.shape)}" + (f" but {places}" if places else "")


def _show_number(value: Any) -> str:
    # By its text: a float32 of 0.1 would be shown as 0.100000001.
    return f"{float(str(value)):.9g}" if np.asarray(value).dtype.kind == "f" else str(value.item())


def _show_nested(array: Array) -> str:
    return "[" + ", ".join(map(_show_nested, array)) + "]" if array.ndim else _show_number(array[()])
