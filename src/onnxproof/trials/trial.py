"""The trial: every piece of the graph on values chosen for it, against the calls that it stands for.

Both are computed in float64, so that what differs is meaning and not rounding.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import torch

from onnxproof.cases.domain import Domain
from onnxproof.cases.roles import SIZED
from onnxproof.cases.values import FAIR_LIMIT, PROFILES, choose_hints, fill
from onnxproof.graph.evaluator import Stop
from onnxproof.parity.comparison import classify
from onnxproof.parity.rounding import ORDERING
from onnxproof.parity.slabs import measure_scale, to_float64
from onnxproof.request.specs import Range, Role
from onnxproof.tensors.arrays import Array, Floats
from onnxproof.tensors.conversion import to_numpy
from onnxproof.trials.calls import Doubt, Rounding
from onnxproof.trials.kernels import SMALLEST, Alone, find_wrong
from onnxproof.trials.pieces import Cut, Piece

# A difference over the scale around it from which on two meanings differ: what float32 constants cost is far less.
APART = 1e-4
# What float64 itself may lose where large values cancel.
NOISE = 1e-9
# What is larger does not round to a float32 any more: its largest number and half a step.
LARGEST = 3.4028235677973366e38
# Operators that are as smooth between the values of the cases as on them: a few values show what they do.
SMOOTH = {
    *(
        "Add",
        "Sub",
        "Mul",
        "MatMul",
        "Gemm",
        "Conv",
        "ConvTranspose",
        "Einsum",
        "Neg",
        "ReduceSum",
        "ReduceMean",
        "Identity",
    ),
    *("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Concat", "Slice", "Split", "Expand", "Tile", "Pad"),
}
FEW_PROFILES = ("ones", "normal")
# Without numbers that float32 hardly holds: what becomes of them differs from kernel to kernel.
EDGES = tuple(profile for profile in PROFILES if profile != "denormal")
# Calls that promise no order among equal values: such values are not tried on them.
UNORDERED = ORDERING | {"kthvalue", "mode", "median", "nanmedian", "unique_dim", "_unique2"}
# Legal roundings that a suspicious piece is held against, those of float64 alone, and float32 constants that are moved by up to so many units of theirs.
LEGAL, DOUBTS, MOVED = range(1, 9), range(1, 13), 4 * 2.0**-24
# The width of a range that profiles fill.
NARROW = 20.0
# A table is swept in at most so many inputs, and so are borders among integers.
SWEEPS, BORDERS = 64, 8
# A constant beyond stands for no end at all.
LARGEST_HINT = 2.0**31


@dataclass(frozen=True)
class Difference:
    """Where a piece and its calls part: on which kind of values, how far, and what went in and came out there."""

    piece: Piece
    profile: str
    error: float
    near: bool
    """Whether the values that went in are not far from what the cases bring."""
    given: Mapping[str, float]
    expected: float
    got: float
    kernel: bool = False
    """Whether it is the runtime that differs, and not what the graph says."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Of the model, where they are not those that edges are tried at."""


class Trial:
    """The pieces of one graph, on the values of one recorded input."""

    def __init__(
        self, cut: Cut, ranges: Mapping[str, Range], measure_seen: Callable[[str], float], unit: float = 2.0**-24
    ) -> None:
        """`ranges`: what can arise; `measure_seen`: the largest number that the cases brought; `unit`: of the narrowest float that the module computes in."""
        self._cut, self._ranges, self._measure_seen, self._unit = cut, ranges, measure_seen, unit
        self.tried = 0
        """Values that were tried, whatever their number of elements."""

    def try_piece(self, piece: Piece, most: int | None = None, profiles: Sequence[str] = EDGES) -> Difference | None:
        """The first difference on so many values, one near what the cases bring before another."""
        far: Difference | None = None
        for profile, given in islice(self._propose(piece, profiles), most):
            found = self._compare(piece, profile, given)
            self.tried += 1
            if found is not None and found.near:
                return found
            far = far or found
        return far

    def try_kernels(self, piece: Piece, alone: Alone | None) -> Difference | None:
        """The first difference of a runtime's answers to a piece whose meaning is right."""
        if alone is None:
            return None
        usual = self._cut.values[piece.value]
        for profile, given in self._propose(piece):
            try:
                true, legal = self._replay(piece, given), [self._replay(piece, given, narrow=True)]
            except Exception:
                continue  # PyTorch does not take these values
            for answer in alone.answer(given):
                if find_wrong(answer, true, legal, usual, _measure_size(given)) is None:
                    continue
                # Only a suspicion is worth these.
                legal += [self._replay(piece, given, rounding=Rounding(self._unit, seed)) for seed in LEGAL]
                place = find_wrong(answer, true, legal, usual, _measure_size(given))
                if place is not None:
                    return replace(self._describe(piece, profile, given, true, answer, place), kernel=True)
        return None

    def is_swallowed(self, piece: Piece) -> bool:
        """Whether the outputs answer to the piece, and yet are the same with its results as with PyTorch's wherever these differ."""
        answers = False
        for profile, given in self._propose(piece):
            if self._compare(piece, profile, given) is None:
                continue
            either = self._replay(piece, given), self._evaluate(piece, given), self._cut.values[piece.value]
            try:
                true, got, recorded = (self._follow(piece, given, result) for result in either)
            except Exception:
                return False  # what comes after does not take these values
            if not _is_same(true, got):
                return False
            answers |= not _is_same(true, recorded)
        return answers

    def _follow(self, piece: Piece, given: Mapping[str, Array], result: Array) -> dict[str, Array]:
        """The outputs where these values go into the piece, and into whatever else takes them, and this comes out of it."""
        pinned = {**given, piece.value: result}
        after = self._cut.follow(pinned)
        made = self._cut.evaluator.compute({**self._cut.values, **pinned}, after, _overflow_all) | pinned
        return {name: np.asarray(made[name]) for name in self._cut.evaluator.outputs if name in made}

    def _propose(self, piece: Piece, profiles: Sequence[str] = EDGES) -> Iterator[tuple[str, dict[str, Array]]]:
        names = [name for name, _ in piece.frontier]
        domains = [self._make_domain(piece, name) for name in names]
        smooth, unordered = is_smooth(self._cut, piece), self._is_unordered(piece)
        infinite = [name for name in names if not self._cut.is_finite(name)]
        for profile in FEW_PROFILES if smooth else profiles:
            g = np.random.default_rng(zlib.crc32(f"{piece.value}\0{profile}".encode()))
            made = {d.name: self._clip(d.name, fill(self._open(d, profile), profile, d.shape, g)) for d in domains}
            # A mask of infinities has its own meaning.
            made.update((name, self._cut.values[name]) for name in infinite)
            if unordered and any(array.size > np.unique(array).size for array in made.values()):
                continue
            yield profile, made
            # One of several alone: together they may hide each other.
            for name in names if len(names) > 1 and not smooth else ():
                yield profile, {one: made[one] if one == name else self._cut.values[one] for one in names}
        for domain in domains if profiles is EDGES else ():
            yield from self._sweep(domain, names)

    def _open(self, domain: Domain, profile: str) -> Domain:
        """Integers at the piece's own constants go as far as they can arise, and not only as far as the cases went."""
        if profile != "hints" or domain.role != "integer" or not domain.hints:
            return domain
        return replace(domain, valid=self._ranges.get(domain.name))

    def _is_unordered(self, piece: Piece) -> bool:
        called = {self._cut.program.calls[place].func.overloadpacket.__name__ for place in piece.calls}
        return bool(called & UNORDERED)

    def _clip(self, name: str, array: Array) -> Array:
        """Without what cannot arise, and in numbers that the module's floats have: between two of them lies what only one side calls equal."""
        if array.dtype.kind != "f":
            return array
        within = self._ranges.get(name)
        clipped = array if within is None else np.clip(array, within.low, within.high)
        if within is not None and within.low >= 0:
            clipped = clipped + 0.0  # magnitudes, squares and shares have no zero below zero
        with np.errstate(over="ignore", invalid="ignore"):
            mantissas, exponents = np.frexp(clipped.astype(np.float32).astype(np.float64))
            return np.ldexp(np.round(mantissas / self._unit) * self._unit, exponents).astype(array.dtype)

    def _sweep(self, domain: Domain, names: Sequence[str]) -> Iterator[tuple[str, dict[str, Array]]]:
        """Every integer of a table, and those where a division by the piece's own constants begins anew."""
        recorded = {name: self._cut.values[name] for name in names}
        if domain.role == "id" and domain.valid is not None:
            every, most = np.arange(int(domain.valid.low), int(domain.valid.high) + 1), SWEEPS
        elif domain.role == "integer" and domain.hints:
            every, most = self._list_borders(domain), BORDERS
        else:
            return
        size = max(1, int(np.prod(domain.shape)))
        for start in range(0, min(len(every), most * size), size):
            part = np.resize(every[start : start + size], domain.shape).astype(domain.dtype)
            yield f"every {domain.role}", {**recorded, domain.name: part}

    def _list_borders(self, domain: Domain) -> Array:
        """The constants and their doubles, what lies beside them, as far as it can arise: the largest constants first."""
        within = self._ranges.get(domain.name, Range(-np.inf, np.inf))
        hints = [one for one in sorted(domain.hints, key=abs, reverse=True) if abs(one) > 1]
        found = [times * one + beside for one in hints for times in (1, 2) for beside in (0, -1, 1)]
        return np.array([one for one in found if within.low <= one <= within.high], np.float64)

    def _make_domain(self, piece: Piece, name: str) -> Domain:
        value = self._cut.values[name]
        within = self._ranges.get(name)
        table = self._find_table(piece, name)
        if value.dtype.kind == "b":
            return Domain(name, value.dtype, value.shape, "mask", example=value)
        if value.dtype.kind in "iu":
            valid = Range(0, table - 1) if table else _integers(within, value)
            role: Role = "id" if table else "integer"
            sized = any(self._cut.steps[place].op in SIZED for place in piece.nodes)
            hints = choose_hints(self._hints(piece), value) if not sized else ()
            known = Domain(name, value.dtype, value.shape, role, valid=valid, declared=True, example=value)
            return replace(known, hints=hints, extremes=True)
        # A wide range would spread what profiles draw over all of it.
        narrow = within if within is not None and within.high - within.low <= NARROW else None
        hints = tuple(one for one in self._hints(piece) if abs(one) <= FAIR_LIMIT)
        return Domain(name, value.dtype, value.shape, "float", valid=narrow, hints=hints, example=value)

    def _find_table(self, piece: Piece, name: str) -> int | None:
        """The size of the table that a value is looked up in."""
        for place in piece.nodes:
            step = self._cut.steps[place]
            if step.op == "Gather" and len(step.takes) > 1 and step.takes[1] == name:
                table = self._cut.evaluator.stored.get(step.takes[0])
                axis = next((int(a.i) for a in step.node.attribute if a.name == "axis"), 0)
                return int(np.shape(table)[axis]) if table is not None and np.ndim(table) else None
        return None

    def _hints(self, piece: Piece) -> tuple[float, ...]:
        """Numbers that the piece holds on either side."""
        found = set[float]()
        for place in piece.nodes:
            stored = [self._cut.evaluator.stored.get(name) for name in self._cut.steps[place].takes]
            fixed = [
                self._cut.values[n]
                for n in self._cut.steps[place].takes
                if n in self._cut.values and n not in self._cut.moving
            ]
            for one in (*stored, *fixed):
                if one is not None and np.size(one) == 1 and np.asarray(one).dtype.kind in "fiu":
                    found.add(float(np.asarray(one).reshape(())))
            found.update(a.f for a in self._cut.steps[place].node.attribute if a.type == a.FLOAT)
        for place in piece.calls:
            call = self._cut.program.calls[place]
            found.update(float(a) for a in (*call.args, *call.kwargs.values()) if isinstance(a, (int, float)))
        return tuple(sorted((one for one in found if abs(one) <= LARGEST_HINT), key=abs))[:16]

    def _compare(self, piece: Piece, profile: str, given: Mapping[str, Array]) -> Difference | None:
        try:
            true = self._replay(piece, given)
        except Exception:
            return None  # PyTorch does not take these values
        try:
            result = self._evaluate(piece, given)
        except Exception:
            return None  # the evaluator does not
        least = NOISE * _measure_size(given) + SMALLEST
        if find_apart(result, true, least) is None:
            return None
        place = find_apart(result, true, least + self._measure_constants(piece, given, result))
        if place is None or not self._holds_in_float32(piece, given, true, place):
            return None
        if not self._is_decided(piece, given, true, place):
            return None
        return self._describe(piece, profile, given, true, result, place)

    def _evaluate(self, piece: Piece, given: Mapping[str, Array], moved: Mapping[str, Array] | None = None) -> Array:
        constants = {**self._cut.values, **(moved or {}), **given}
        return np.asarray(self._cut.evaluator.compute(constants, piece.nodes, _overflow_all)[piece.value])

    def _measure_constants(self, piece: Piece, given: Mapping[str, Array], result: Array) -> Floats | float:
        """What it costs at each place that the exporter keeps in float32 what it folded, where terms cancel."""
        stored, taken = self._cut.evaluator.stored, (self._cut.steps[place].takes for place in piece.nodes)
        names = sorted({name for names in taken for name in names if name in stored and name not in given})
        # A number that stands alone was written by somebody: it is what it is.
        tables = {
            name: array for name in names if (array := np.asarray(stored[name])).dtype.kind == "f" and array.size > 1
        }
        if not tables or result.dtype.kind != "f":
            return 0.0
        cost = np.zeros(result.shape)
        for seed in range(3):
            draw = np.random.default_rng(seed).uniform
            moved = {name: array * (1 + draw(-MOVED, MOVED, array.shape)) for name, array in tables.items()}
            cost = np.fmax(cost, np.abs(self._evaluate(piece, given, moved) - result))
        return np.asarray(4 * cost)

    def _describe(
        self, piece: Piece, profile: str, given: Mapping[str, Array], true: Array, result: Array, place: int
    ) -> Difference:
        flat = {name: array for name, array in given.items() if array.shape == true.shape}
        return Difference(
            piece,
            profile,
            abs(float(result.ravel()[place]) - float(true.ravel()[place])),
            all(self._is_near(name, array) for name, array in given.items()),
            {name: float(array.ravel()[place]) for name, array in flat.items()},
            float(true.ravel()[place]),
            float(result.ravel()[place]),
        )

    def _replay(
        self, piece: Piece, given: Mapping[str, Array], *, narrow: bool = False, rounding: Rounding | None = None
    ) -> Array:
        numbers = dict(piece.frontier)
        tensors = {numbers[name]: torch.from_numpy(np.array(array)) for name, array in given.items()}
        again = self._cut.program.replay(piece.calls, tensors, LARGEST, narrow=narrow, rounding=rounding)
        return to_numpy(again[piece.number])

    def _holds_in_float32(self, piece: Piece, given: Mapping[str, Array], true: Array, place: int) -> bool:
        """Whether the module gives the same there in its own dtype: a constant that float32 rounds is met exactly only in one of them."""
        own = self._replay(piece, given, narrow=True)
        if own.shape != true.shape:
            return False
        expected, came = true.ravel()[place], own.ravel()[place]
        if true.dtype.kind not in "fc":
            return bool(expected == came)
        return find_apart(np.asarray([came], np.float64), np.asarray([expected]), SMALLEST) is None

    def _is_decided(self, piece: Piece, given: Mapping[str, Array], true: Array, place: int) -> bool:
        """Whether the module gives this whatever float64 loses: of two that are equal up to its last bits either may be the larger."""
        again = [self._replay(piece, given, rounding=Doubt(seed)).ravel()[place] for seed in DOUBTS]
        expected = np.asarray([true.ravel()[place]])
        return all(find_apart(np.asarray([one]), expected, SMALLEST) is None for one in again)

    def _is_near(self, name: str, array: Array) -> bool:
        """Within four times what the cases brought; of a mask no row hides all unless one did in the cases."""
        recorded = self._cut.values[name]
        if array.dtype.kind == "b":
            return array.ndim == 0 or array.shape[-1] < 2 or bool(array.any(-1).all() or not recorded.any(-1).all())
        if recorded.dtype.kind not in "fiu" or not array.size:
            return True
        return bool(np.abs(array).max() <= 4 * max(self._measure_seen(name), 1e-6))


def is_smooth(cut: Cut, piece: Piece) -> bool:
    """Whether a few values show what a piece does."""
    return all(cut.steps[place].op in SMOOTH for place in piece.nodes)


def _measure_size(given: Mapping[str, Array]) -> float:
    sizes = [float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in given.values() if a.dtype.kind == "f"]
    return max(sizes, default=0.0)


def _integers(within: Range | None, value: Array) -> Range:
    low, high = (within.low, within.high) if within is not None else (-np.inf, np.inf)
    return Range(max(low, float(value.min(initial=0)) - 130), min(high, float(value.max(initial=0)) + 130))


def find_apart(result: Array, true: Array, least: Floats | float) -> int | None:
    """The flat place where two values mean something else by more than `least`, if they do."""
    # Sizes are those of the recorded inputs: what depends on them cannot be told here.
    if result.shape != true.shape or not true.size:
        return None
    if true.dtype.kind not in "fc" or result.dtype.kind not in "fc":
        differing = np.flatnonzero(result != true)
        return int(differing[0]) if differing.size else None
    with np.errstate(all="ignore"):
        r, t = to_float64(result), to_float64(true)
        odd = classify(r) != classify(t)
        apart = np.where(np.isfinite(t) & np.isfinite(r), np.abs(r - t), 0.0) > APART * measure_scale(t) + least
    places = np.flatnonzero(odd | apart)
    return int(places[0]) if places.size else None


def _is_same(true: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    """Whether outputs are the same, and numbers: of what is none nothing can be told."""
    told = any(one.dtype.kind not in "fc" or np.isfinite(one).any() for one in true.values())
    return told and all(
        find_apart(other[name], one, NOISE * _measure_size({"": one})) is None for name, one in true.items()
    )


def _overflow_all(stop: Stop, results: Sequence[Any]) -> Sequence[Any]:
    """What float32 cannot hold is infinite, inside the piece too."""
    return [_overflow(one) if isinstance(one, np.ndarray) and one.dtype == np.float64 else one for one in results]


def _overflow(values: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        far = np.abs(values) > LARGEST
    return np.where(far, np.copysign(np.inf, values), values) if far.any() else values
