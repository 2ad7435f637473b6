"""Pieces: the graph and the program of calls, cut at the values that both compute.

Which value of one is which of the other is told by the values themselves, on two inputs: names may be anybody's, and a value that
the exporter computes in another way (a scale folded into a weight) is no common one, so that the piece reaches over it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch

from onnxproof.errors import Rejected
from onnxproof.graph.evaluator import Evaluator, Step
from onnxproof.tensors.arrays import Array, Arrays
from onnxproof.tensors.conversion import to_numpy
from onnxproof.trials.calls import Program

K = TypeVar("K", bound=Hashable)
# Nodes and calls of a piece; a larger one is not tried.
LARGEST = 60
# Two values are one up to this, relative to the largest: float32 constants cost less.
SAME = 1e-6
# Calls and operators that give what they take, where shape and dtype stay.
COPYING = {
    *(
        "view",
        "_unsafe_view",
        "reshape",
        "clone",
        "detach",
        "alias",
        "_to_copy",
        "contiguous",
        "expand",
        "lift_fresh",
        "slice",
    ),
    *("lift_fresh_copy", "copy_", "squeeze", "unsqueeze", "permute", "native_dropout", "_reshape_alias"),
}
# Those that do so beside a number.
NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "div": 1}
COPIES = {"Identity", "Reshape", "Cast", "Expand", "Dropout", "Slice", "Squeeze", "Unsqueeze", "Flatten"}
# Answers of yes and no that two values hardly have in common by chance.
TELLING = 32
# What they give depends on sizes alone.
SIZES = {"Shape", "Size"}


@dataclass(frozen=True)
class Piece:
    """Nodes of the graph and calls of the program that make one common value of the same other ones."""

    value: str
    number: int
    frontier: tuple[tuple[str, int], ...]
    """What both take: names in the graph, numbers in the program."""
    nodes: tuple[int, ...]
    calls: tuple[int, ...]


class Cut:
    """A graph and a program side by side."""

    def __init__(self, evaluator: Evaluator, program: Program, values: Arrays, common: Mapping[str, int]) -> None:
        """`values`: of the graph, on the recorded inputs; `common`: a value of the graph → that of the program."""
        self.evaluator, self.program, self.values, self.common = evaluator, program, values, common
        self.steps: list[Step] = evaluator.steps
        self._writer = {name: place for place, step in enumerate(self.steps) for name in step.gives}
        self._named = {number: name for name, number in common.items()}
        self._finite: dict[str, bool] = {}

    @cached_property
    def moving(self) -> set[str]:
        """Values of the graph that depend on more than the sizes of its inputs."""
        return _find_moving(self.evaluator)

    def is_finite(self, name: str) -> bool:
        """Whether a value is all numbers."""
        if name not in self._finite:
            value = self.values[name]
            self._finite[name] = value.dtype.kind != "f" or bool(np.isfinite(value).all())
        return self._finite[name]

    @cached_property
    def _moving_numbers(self) -> set[int]:
        return _find_moving_numbers(self.program)

    def pieces(self) -> dict[str, Piece | None]:
        """For every common value the piece that ends in it; None where there is no clean cut."""
        return {name: self.cut(name) for name in self.common if name in self._writer and name in self.moving}

    def name_node(self, value: str) -> str:
        """The node that gives a value."""
        step = self.steps[self._writer[value]]
        return str(step.node.name or step.gives[0])

    def cut(self, name: str) -> Piece | None:
        opened = {name}
        while True:
            nodes, before = self._follow_graph(name, opened)
            calls, needed = self._follow_program(self.common[name], opened)
            if len(nodes) > LARGEST or len(calls) > LARGEST:
                return None
            # What only one of them takes is computed inside the piece: from there on back both go on. So is what a node or a
            # call of the piece gives beside what is needed of it.
            inside = {one for one in before & needed if self._is_made(one, nodes, calls)}
            more = ((before ^ needed) | inside) - opened - set(self.evaluator.inputs)
            if not more:
                break
            opened |= more
        shared = any(number in self.program.shared for place in calls for number in self._around(place))
        if not before or before != needed or shared:
            return None
        frontier = tuple((one, self.common[one]) for one in sorted(before))
        return Piece(name, self.common[name], frontier, tuple(sorted(nodes)), tuple(sorted(calls)))

    def leads_only(self, name: str, end: str) -> bool:
        """Whether a value is made of another common one and of nothing else."""
        return self._follow_graph(end, set())[1] == {name}

    def follows_shared(self, name: str) -> bool:
        """Whether the module makes a common value of one that was changed through another, so that nobody knows what it was."""
        place = self.program.writer.get(self.common[name])
        return place is not None and any(number in self.program.shared for number in self.program.calls[place].takes)

    def follow(self, pinned: Collection[str]) -> list[int]:
        """The nodes whose results depend on some values, but for those that give one of them."""
        found, nodes = set(pinned), list[int]()
        for place, step in enumerate(self.steps):
            if any(name in found for name in step.takes) and not any(name in pinned for name in step.gives):
                nodes.append(place)
                found.update(step.gives)
        return nodes

    def _is_made(self, name: str, nodes: set[int], calls: set[int]) -> bool:
        return self._writer.get(name) in nodes or self.program.writer.get(self.common[name]) in calls

    def _around(self, place: int) -> tuple[int, ...]:
        call = self.program.calls[place]
        return (*call.takes, *call.gives)

    def _follow_graph(self, name: str, opened: set[str]) -> tuple[set[int], set[str]]:
        """Nodes back to the nearest common values, and these."""
        nodes, frontier, waiting = set[int](), set[str](), [name]
        while waiting and len(nodes) <= LARGEST:
            one = waiting.pop()
            if one not in self.moving:
                continue
            if one not in self._writer or (one in self.common and one not in opened):
                frontier.add(one)
            elif self._writer[one] not in nodes:
                nodes.add(self._writer[one])
                waiting += self.steps[self._writer[one]].takes
        return nodes, frontier

    def _follow_program(self, number: int, opened: set[str]) -> tuple[set[int], set[str]]:
        calls, frontier, waiting = set[int](), set[str](), [number]
        while waiting and len(calls) <= LARGEST:
            one = waiting.pop()
            if one not in self._moving_numbers:
                continue
            if (name := self._named.get(one)) is not None and name not in opened:
                frontier.add(name)
            elif one in self.program.writer and self.program.writer[one] not in calls:
                calls.add(self.program.writer[one])
                waiting += self.program.calls[self.program.writer[one]].takes
        return calls, frontier


def list_rivals(cut: Cut, piece: Piece) -> Iterator[tuple[Cut, Sequence[Piece]]]:
    """The piece as it is where its result, or a value that it takes, is paired otherwise among those that are the same on the recorded inputs.

    A step inside an operator may agree with the operator's result by chance: then one of the later ones is the result, often the last.
    Beside it stands the piece that ends in a value that is taken instead: what is wrong must not go from one to the other.
    """
    for name in (piece.value, *(taken for taken, _ in piece.frontier)):
        for common, end in _pair_otherwise(cut, name) if name in cut.common else ():
            # What is taken varies: then a step from one to the other would be one that the module does not have, unless it takes
            # more than the one (a part of an operator, of which another part chooses) or what is known of the module ends there.
            added = end != name != piece.value and cut.leads_only(name, end) and not cut.follows_shared(name)
            if added and np.unique(cut.values[name]).size > 1:
                continue
            other = Cut(cut.evaluator, cut.program, cut.values, common)
            rival = other.cut(end if name == piece.value else piece.value)
            before = other.cut(end) if name != piece.value else None
            if rival is not None:
                yield other, [one for one in (rival, before) if one is not None]
    yield from _list_rival_numbers(cut, piece.value)


def _list_rival_numbers(cut: Cut, name: str) -> Iterator[tuple[Cut, Sequence[Piece]]]:
    """Where another value of the program, as yet nobody's, stands beside this one of the graph: the pieces that end in it or take it."""
    value, taken = cut.values[name], set(cut.common.values())
    for number, tensor in enumerate(cut.program.values):
        if number in taken or number in cut.program.repeated or tuple(tensor.shape) != value.shape:
            continue
        if _same(to_numpy(tensor, copy=False), value):
            other = Cut(cut.evaluator, cut.program, cut.values, {**cut.common, name: number})
            pieces = [one for one in other.pieces().values() if one is not None]
            around = [one for one in pieces if name == one.value or name in dict(one.frontier)]
            if any(one.value == name for one in around):
                yield other, around


def _pair_otherwise(cut: Cut, name: str) -> Iterator[tuple[dict[str, int], str]]:
    """What is common where another value of the graph stands in the place of this one, or this one for a sibling."""
    value, number = cut.values[name], cut.common[name]
    for same in (one for step in reversed(cut.steps) for one in step.gives if one not in cut.common):
        if same in cut.values and cut.values[same].dtype == value.dtype and _same(cut.values[same], value):
            yield {one: n for one, n in cut.common.items() if one != name} | {same: number}, same
    holders = {n: one for one, n in cut.common.items()}
    for sibling in _list_siblings(cut.program, number):
        if _same(to_numpy(cut.program.values[sibling], copy=False), value):
            swapped = {holders[sibling]: number} if sibling in holders else {}
            yield {**cut.common, **swapped, name: sibling}, name


def _list_siblings(program: Program, number: int) -> Iterator[int]:
    """Other parts of what a value is a part of: they are in whatever order, where they are alike."""
    if number not in program.writer:
        return
    own = program.calls[program.writer[number]]
    for call in program.calls:
        if call.func is own.func and call.takes == own.takes:
            yield from (one for one in call.gives if one != number)


def show_values(evaluator: Evaluator, given: Arrays) -> dict[str, Array]:
    """Every value of the graph on some inputs."""
    try:
        made = evaluator.compute(given)
    except MemoryError:
        raise
    except Exception as error:
        raise Rejected(f"{type(error).__name__}: {error}") from error
    arrays = {name: one for name, one in made.items() if name and isinstance(one, np.ndarray | np.generic)}
    return {**given, **{name: np.asarray(one) for name, one in arrays.items()}}


def _find_moving(evaluator: Evaluator) -> set[str]:
    found = set(evaluator.inputs)
    for step in evaluator.steps:
        if step.op not in SIZES and not found.isdisjoint(step.takes):
            found.update(step.gives)
    return found


def _find_moving_numbers(program: Program) -> set[int]:
    found = set(program.inputs.values())
    for call in program.calls:
        if not found.isdisjoint(call.takes):
            found.update(call.gives)
    return found


def find_common(evaluator: Evaluator, values: Arrays, program: Program, renamed: Mapping[str, str]) -> dict[str, int]:
    """A value of the graph → the program's that is the same number for number, of those that the inputs move.

    What changes nothing on these inputs (a clamp) has the value of what comes before it: such values are paired in their order where
    both sides have as many, else the first of them alone (see `list_rivals`), and none where they say too little.
    """
    common = {name: program.inputs[renamed.get(name, name)] for name in evaluator.inputs}
    classes, given = _Classes(), set(common.values())
    numbers, names = defaultdict[int, list[int]](list), defaultdict[int, list[str]](list)
    for number in sorted(_find_moving_numbers(program) - given):
        if not _is_copy(program, number):
            numbers[classes.find(to_numpy(program.values[number], copy=False))].append(number)
    copies = {
        name for step in evaluator.steps if step.op in COPIES for name in step.gives if _is_same_shape(step, values)
    }
    moving = _find_moving(evaluator) - copies - common.keys()
    for name, value in values.items():
        if name in moving and value.size:
            names[classes.find(value)].append(name)
    for which, own in names.items():
        alike = numbers[which]
        if max(len(own), len(alike)) > 1 and _is_poor(values[own[0]]):
            continue
        common.update(zip(own, alike, strict=True) if len(own) == len(alike) else zip(own[:1], alike[:1], strict=False))
    return _drop_crossed(evaluator, _drop_unused(evaluator, common, program), program)


def _drop_crossed(evaluator: Evaluator, common: dict[str, int], program: Program) -> dict[str, int]:
    """Without pairs that cross: what comes before another value on one side and is made of it on the other is like one of them by chance."""
    marks = {name: 1 << place for place, name in enumerate(common)}
    numbers = {common[name]: mark for name, mark in marks.items()}
    after = _gather_marks(((step.gives, step.takes) for step in reversed(evaluator.steps)), marks)
    made_of = _gather_marks(((call.takes, call.gives) for call in program.calls), numbers)
    crossed = 0
    for name, number in common.items():
        crossing = after.get(name, 0) & made_of.get(number, 0)
        crossed |= crossing | (marks[name] if crossing else 0)
    return {name: number for name, number in common.items() if not crossed & marks[name]}


def _gather_marks(steps: Iterable[tuple[Iterable[K], Iterable[K]]], marks: Mapping[K, int]) -> dict[K, int]:
    """Value → the marks of all that lead to it, step by step; its own is left out."""
    found: dict[K, int] = {}
    for sources, ends in steps:
        gathered = 0
        for one in sources:
            gathered |= found.get(one, 0) | marks.get(one, 0)
        for one in ends:
            found[one] = found.get(one, 0) | gathered
    return found


def _drop_unused(evaluator: Evaluator, common: dict[str, int], program: Program) -> dict[str, int]:
    """Without what the module computes for nothing: no exporter keeps that, and what is like it is so by chance."""
    if any(name not in common for name in evaluator.outputs):
        return common
    used, waiting = set(program.inputs.values()), [common[name] for name in evaluator.outputs]
    while waiting:
        number = waiting.pop()
        if number not in used and number in program.writer:
            waiting += program.calls[program.writer[number]].takes
        used.add(number)
    return {name: number for name, number in common.items() if number in used}


def _is_poor(value: Array) -> bool:
    """Whether a value says so little that others are the same by chance: one number everywhere, or a few answers of yes and no."""
    if not value.any() or (value.size > 1 and (value == value.flat[0]).all()):
        return True
    if value.dtype.kind not in "biu" or not ((value == 0) | (value == 1)).all():
        return False
    return value.size < TELLING or bool(value.all())


class _Classes:
    """Arrays that are the same have the same number."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], list[tuple[int, Array]]] = defaultdict(list)
        self._count = 0

    def find(self, array: Array) -> int:
        largest = find_largest(array)
        # Its place on a scale so fine that those of the same arrays are neighbours, and of few others.
        size = math.floor(math.log(largest) / (4 * SAME)) if largest else 0
        for near in (size, size - 1, size + 1):
            for which, other in self._known.get((array.shape, array.dtype.kind, near), ()):
                if _same(other, array, largest):
                    return which
        self._count += 1
        self._known[array.shape, array.dtype.kind, size].append((self._count, array))
        return self._count


def find_largest(array: Array) -> float:
    """The size of the largest number."""
    sizes = np.abs(array) if array.dtype.kind in "fc" else np.abs(array.astype(np.float64))
    largest = float(sizes.max(initial=0.0))
    return largest if math.isfinite(largest) else float(sizes[np.isfinite(sizes)].max(initial=0.0))


def _is_copy(program: Program, number: int) -> bool:
    """Whether a value is another one under a new number."""
    if number in program.repeated:
        return True
    call = program.calls[program.writer[number]] if number in program.writer else None
    if call is None or not call.takes:
        return False
    name = call.func.overloadpacket.__name__
    # Python's own sum begins with nothing, to which it adds.
    if name not in COPYING and (name not in NEUTRAL or call.args[1:2] != [NEUTRAL[name]]):
        return False
    before, value = program.values[call.takes[0]], program.values[number]
    return before.shape == value.shape and before.dtype == value.dtype


def _is_same_shape(step: Step, values: Arrays) -> bool:
    before, after = values.get(step.takes[0]) if step.takes else None, values.get(step.gives[0])
    return before is not None and after is not None and before.shape == after.shape and before.dtype == after.dtype


def keep_common(common: Mapping[str, int], values: Arrays, numbers: Mapping[int, torch.Tensor]) -> dict[str, int]:
    """What is the same on other inputs too, by the values of both sides there."""
    return {
        name: number
        for name, number in common.items()
        if name in values and number in numbers and _same(to_numpy(numbers[number], copy=False), values[name])
    }


def _same(a: Array, b: Array, largest: float | None = None) -> bool:
    """Whether two arrays are one; `largest`: of the second, where it is known."""
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    # Asked of every pair of values: numpy's own question takes several times as long, and is for those that are no numbers. Most
    # pairs are decided by their largest difference alone.
    apart, largest = np.abs(a - b), find_largest(b) if largest is None else largest
    most, least = float(apart.max(initial=0.0)), 1e-2 * largest
    if most <= SAME * least:
        return True
    if most > SAME * (largest + least):
        return False
    if bool((apart <= SAME * (np.abs(b) + least)).all()):
        return True
    scale = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
    return not np.isfinite(a).all() and bool(np.allclose(a, b, rtol=SAME, atol=SAME * scale * 1e-2, equal_nan=True))
