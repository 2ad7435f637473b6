"""The module as the calls that it makes: recorded once in float64, and carried out again on other values, a few of them at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from onnxproof.parity.amplitudes import count_operations, find_rule
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.parity.rounding import EQUATING, Injector
from onnxproof.tensors.arrays import Arrays

# The dtype of a unit of rounding.
NARROW = {2.0**-53: torch.float64, 2.0**-24: torch.float32, 2.0**-11: torch.float16, 2.0**-8: torch.bfloat16}
# Elements of all values up to which a module is recorded.
MOST_ELEMENTS = 20_000_000


class TooLarge(MemoryError):
    """The values of the module do not fit."""


@dataclass(frozen=True)
class Ref:
    """A value of the program, by its number."""

    number: int

    def __repr__(self) -> str:
        return f"%{self.number}"  # written for every argument of every call, to find those that are made twice


@dataclass(frozen=True)
class Call:
    """One operation. One that changes its first argument is given a copy of it."""

    func: Any
    args: Any
    kwargs: Any
    takes: tuple[int, ...]
    gives: tuple[int, ...]
    operations: float = 0.0
    """Additions and multiplications behind its result."""


class Rounding:
    """What kernels may lose at each step: some units of the result, and of what stands beside it; every other time what is known of the
    operation."""

    def __init__(self, unit: float, seed: int, narrow: torch.dtype | None = None) -> None:
        self._size, self._seed, self._generator = 4 * unit, seed, torch.Generator().manual_seed(seed)
        narrow = narrow or NARROW.get(unit, torch.float32)
        # Beyond the seeds that mean something else than chance.
        self._injector = Injector(unit, narrow, 100 + seed) if seed % 2 else None

    def call(self, func: Any, args: list[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        """What an operation gives, moved."""
        if self._injector is not None:
            return list(_list_tensors(self._injector.call(func, tuple(args), kwargs)))
        return [self.move(tensor) for tensor in _carry_out(func, args, kwargs)]

    def move(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor with an error of its own in every element."""
        if not tensor.is_floating_point() or not tensor.numel():
            return tensor
        # A sum whose terms cancel loses by its terms: its row stands for them.
        finite = tensor.nan_to_num(0.0, 0.0, 0.0).abs()
        row = finite.mean(-1, keepdim=True) if tensor.ndim else finite
        signs = 2 * torch.rand(tensor.shape, generator=self._generator, dtype=tensor.dtype) - 1
        return tensor + signs * self._size * (finite + row)


class Doubt(Rounding):
    """What float64 itself loses, and no more: a decision that this turns is none. What is exact stays so, ties among it too."""

    def __init__(self, seed: int) -> None:
        super().__init__(2.0**-46, seed, torch.float64)

    def call(self, func: Any, args: list[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        """What an operation gives; of two numbers that only their last bits tell apart, every other time that they are one."""
        results, name = _carry_out(func, args, kwargs), func.overloadpacket.__name__
        if name in EQUATING and self._seed % 2 and isinstance(args[0], torch.Tensor) and args[0].is_floating_point():
            near = torch.isclose(args[0], torch.as_tensor(args[1], dtype=args[0].dtype), rtol=8 * self._size, atol=0.0)
            return [results[0] | near if name == "eq" else results[0] & ~near]
        if find_rule(func) is None:
            return results
        known = self._injector is not None and not func._schema.is_mutable
        moved = super().call(func, args, kwargs) if known else map(self.move, results)
        return [_keep_exact(one, other) for one, other in zip(results, moved, strict=True)]


def _keep_exact(result: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
    """Moved but for what is exact: a number of few bits, unless it is smaller than what may be lost, and a remainder of rounding itself."""
    exact = (result == result.float()) & ((result == 0) | (result.abs() > (moved - result).abs()))
    return torch.where(exact, result, moved)


@dataclass
class Program:
    """Every call of one forward, and every value."""

    calls: list[Call] = field(default_factory=list)
    values: list[torch.Tensor] = field(default_factory=list)
    inputs: dict[str, int] = field(default_factory=dict)
    writer: dict[int, int] = field(default_factory=dict)
    """Value → the call that gives it."""
    shared: set[int] = field(default_factory=set)
    """Values that were changed through another one: what was computed of them cannot be told by numbers."""
    repeated: dict[int, int] = field(default_factory=dict)
    """Values that were computed once more → the first of them."""
    _numbers: dict[int, int] = field(default_factory=dict)
    _elements: int = 0

    def see(self, func: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Carry out an operation and write it down."""
        takes: list[int] = []
        seen_args, seen_kwargs = self._to_refs(args, takes), self._to_refs(kwargs, takes)
        if func._schema.is_mutable:
            self._protect(args[0])
        out = func(*args, **kwargs)
        gives = tuple(self._number(one) for one in _list_tensors(out))
        for number in gives:
            self.writer[number] = len(self.calls)
        operations = count_operations(func, args, out)
        self.calls.append(Call(func, seen_args, seen_kwargs, tuple(takes), gives, operations))
        return out

    def _number(self, tensor: torch.Tensor) -> int:
        """A new number: also for a tensor that was changed in place."""
        self.values.append(tensor)
        self._elements += tensor.numel()
        if self._elements > MOST_ELEMENTS:
            raise TooLarge
        self._numbers[id(tensor)] = len(self.values) - 1
        return len(self.values) - 1

    def _find(self, tensor: torch.Tensor) -> int:
        known = self._numbers.get(id(tensor))
        return known if known is not None else self._number(tensor)

    def _protect(self, changed: Any) -> None:
        """Before a tensor is changed: keep the values that its memory holds, and distrust what else lives there."""
        if not isinstance(changed, torch.Tensor):
            return
        place = changed.untyped_storage().data_ptr()
        for number, value in enumerate(self.values):
            if value.untyped_storage().data_ptr() == place:
                self.values[number] = value.clone()
                if value is not changed:
                    self.shared.add(number)

    def _to_refs(self, value: Any, takes: list[int]) -> Any:
        if isinstance(value, torch.Tensor):
            takes.append(self._find(value))
            return Ref(takes[-1])
        if isinstance(value, dict):
            return {name: self._to_refs(one, takes) for name, one in value.items()}
        return [self._to_refs(one, takes) for one in value] if isinstance(value, (list, tuple)) else value

    def merge_repeated(self) -> None:
        """Keep the first of calls that are made on the same values: exporters write them once.

        A value of the graph would stand for one of them, and what is made of the others would seem to be made of something else.
        """
        if any(call.func._schema.is_mutable for call in self.calls):
            return
        known, kept, first = dict[str, Call](), list[Call](), self.repeated
        for call in self.calls:
            if any(number in first for number in call.takes):
                args, kwargs = _rename(call.args, first), _rename(call.kwargs, first)
                takes = tuple(first.get(number, number) for number in call.takes)
                call = replace(call, args=args, kwargs=kwargs, takes=takes)
            drawn = torch.Tag.nondeterministic_seeded in call.func.tags
            same = call if drawn else known.setdefault(f"{call.func} {call.args} {call.kwargs}", call)
            if same is call:
                kept.append(call)
            else:
                first.update(zip(call.gives, same.gives, strict=True))
        self.calls = kept
        self.writer = {number: place for place, call in enumerate(kept) for number in call.gives}

    def replay(
        self,
        places: Iterable[int],
        given: Mapping[int, torch.Tensor],
        largest: float,
        *,
        narrow: bool = False,
        rounding: Rounding | None = None,
    ) -> dict[int, torch.Tensor]:
        """Carry some calls out again, in float64 or (`narrow`) in float32, as the module does.

        What is neither given nor computed by them is as it was, what is larger than `largest` infinite. With a `rounding` every
        result is moved by what a legal kernel may lose there.
        """
        values = dict(given)
        carry_out = _carry_out if rounding is None else rounding.call

        def fetch(value: Any) -> Any:
            if isinstance(value, Ref):
                value = values.get(value.number, self.values[value.number])
            if isinstance(value, dict):
                return {name: fetch(one) for name, one in value.items()}
            if isinstance(value, list):
                return [fetch(one) for one in value]
            if narrow and value is torch.float64:
                return torch.float32
            return value.float() if narrow and isinstance(value, torch.Tensor) and value.is_floating_point() else value

        with torch.no_grad():
            for place in places:
                call = self.calls[place]
                args = fetch(call.args)
                if call.func._schema.is_mutable and isinstance(args[0], torch.Tensor):
                    args[0] = args[0].clone()
                out = carry_out(call.func, args, fetch(call.kwargs))
                results = zip(call.gives, out, strict=True)
                values.update((number, _overflow(one, largest)) for number, one in results)
        return values


def _rename(value: Any, numbers: Mapping[int, int]) -> Any:
    """Arguments with other values in the place of some."""
    if isinstance(value, Ref):
        return Ref(numbers.get(value.number, value.number))
    if isinstance(value, dict):
        return {name: _rename(one, numbers) for name, one in value.items()}
    return [_rename(one, numbers) for one in value] if isinstance(value, list) else value


def _carry_out(func: Any, args: list[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    return list(_list_tensors(func(*args, **kwargs)))


def _overflow(tensor: torch.Tensor, largest: float) -> torch.Tensor:
    if largest == math.inf or not tensor.is_floating_point() or not bool((tensor.abs() > largest).any()):
        return tensor
    return torch.where(tensor.abs() > largest, torch.copysign(torch.full_like(tensor, torch.inf), tensor), tensor)


def _list_tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _list_tensors(one)


def record(double: DoubleRunner, inputs: Arrays) -> Program:
    """What the module calls on these inputs."""
    program = Program()
    leaves = double.watch(inputs, program.see)
    program.inputs = {name: program._find(leaf) for name, leaf in leaves.items()}
    program.merge_repeated()
    return program


def repeat(program: Program, double: DoubleRunner, inputs: Arrays) -> dict[int, torch.Tensor] | None:
    """The values of the same calls on other inputs, without the module around them; None where they cannot be made there."""
    given = {program.inputs[name]: leaf for name, leaf in double.widen_inputs(inputs).items()}
    try:
        return program.replay(range(len(program.calls)), given, math.inf)
    except Exception:
        return None  # a size, or a number that Python was told, belonged to the recorded inputs
