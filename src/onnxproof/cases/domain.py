"""What each input may hold: its dtype, its role and the range of valid values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onnxproof.cases.roles import Use
from onnxproof.request.specs import Range, Role
from onnxproof.subject.sizes import is_free, list_free, measure_size, split_sum
from onnxproof.tensors.arrays import Array, is_narrow_float

# Tried first for integers of unknown meaning; PyTorch says whether it accepts them.
WIDE_INTEGERS = Range(-100, 100)
LENGTH_NAMES = ("len", "lens", "length", "lengths", "seqlen", "seqlens")
# What an additive mask holds where nothing may pass, if the example does not show it.
FULLY_MASKED = -1e9


@dataclass(frozen=True)
class Domain:
    """One input."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    role: Role
    dims: Mapping[int, str] = field(default_factory=dict)
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict, kw_only=True)
    """Declared sizes of dynamic dims: none outside is ever used."""
    valid: Range | None = None
    declared: bool = False
    """Whether the user declared the range: then nothing outside it is ever used."""
    hints: tuple[float, ...] = ()
    """Constants of the graph (limits, thresholds) that values are tried at."""
    extremes: bool = False
    """Whether integers of any size may be tried: nothing is as large as this input says."""
    measures: str | int | None = None
    """The dimension (its name, or its fixed size) that a length counts, or that integers are places in."""
    example: Array = field(compare=False, kw_only=True)
    sample: Array | None = field(default=None, compare=False)
    """Rows of the user's data, where there are any."""

    @property
    def is_float(self) -> bool:
        """Whether it holds numbers of any size (a mask of floats does not)."""
        return self.role in ("float", "image")

    @property
    def is_number(self) -> bool:
        """Whether it is a single integer of unknown meaning: a rate, a mode, a count."""
        return not self.shape and self.role == "integer" and not self.declared

    def sized(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape at these sizes of the dynamic dims."""
        return tuple(measure_size(self.dims.get(i, ""), sizes, size) for i, size in enumerate(self.shape))

    def newest(self, sizes: Mapping[str, int]) -> int:
        """For a mask over what is past and what is new: how many at its end are new."""
        last = self.dims.get(len(self.shape) - 1, "")
        return 0 if is_free(last, sizes) else measure_size(split_sum(last)[-1], sizes, 0)

    def within(self, sizes: Mapping[str, int]) -> Range | None:
        """The valid range at these sizes: a length cannot exceed what it counts, and places end before it."""
        if self.measures is None or self.declared:
            return self.valid
        size = self.measures if isinstance(self.measures, int) else measure_size(self.measures, sizes, -1)
        most = size if self.role == "length" else max(0, size - 1)
        return Range(0.0, float(most)) if size >= 0 else self.valid


def infer_domain(
    name: str,
    example: Array,
    dims: Mapping[int, str],
    declared: Range | None,
    use: Use,
    hints: tuple[float, ...] = (),
    role: Role | None = None,
) -> Domain:
    """Declared beats the graph, the graph beats the example."""
    floats = example.dtype.kind in "fc" or is_narrow_float(example.dtype)
    role = role or (_guess_float if floats else _guess_integer)(name.lower(), example, declared is not None, use)
    valid = declared
    if declared is not None and example.dtype.kind in "iu":
        # A range of 0.5 to 9.5 allows the integers 1 to 9, and one that goes beyond all of them as many as can be drawn.
        low, high = np.clip((np.ceil(declared.low), np.floor(declared.high)), -(2.0**62), 2.0**62)
        valid = Range(float(low), float(high))
    elif declared is None and role == "mask":
        valid = Range(0, 1)
    elif declared is None and role == "id" and use.table is not None:
        valid = Range(0, max(use.table - 1, 0))
    return Domain(
        name,
        example.dtype,
        example.shape,
        role,
        dims,
        valid,
        declared is not None,
        hints,
        not use.sizes,
        example=example,
    )


def _guess_float(name: str, example: Array, declared: bool, use: Use) -> Role:
    if declared or example.dtype.kind != "f" or not example.size:
        return "float"
    low = float(np.min(example))
    dips = bool(((example == 0) | (example == low)).all())
    added, called = use.added_before_softmax, "mask" in name
    if (dips and low <= -1e3 and (added or called)) or (added and called and not example.any()):
        return "additive-mask"
    if called and bool(np.isin(example, (0, 1)).all()):
        return "mask"
    return "image" if use.convolved and example.ndim == 4 and example.shape[1] in (1, 3, 4) else "float"


def _guess_integer(name: str, example: Array, declared: bool, use: Use) -> Role:
    if example.dtype.kind == "b":
        return "mask"
    if declared or use.table is not None:
        return "id"
    binary = bool(np.isin(example, (0, 1)).all()) and example.size > 0
    if binary and ("mask" in name or (use.selects and example.ndim > 1)):
        return "mask"
    named = not {*LENGTH_NAMES}.isdisjoint(name.replace(".", "_").split("_"))
    if example.ndim <= 1 and (named or use.compared) and example.size and int(example.min()) >= 0:
        return "length"
    return "integer"


def bind_lengths(domains: Sequence[Domain]) -> list[Domain]:
    """Lengths know which dimension they count: the smallest one of another input, beside the batch, that they fit into."""
    return [_match_length(d, [o for o in domains if o is not d]) if d.role == "length" else d for d in domains]


def _match_length(domain: Domain, others: Sequence[Domain]) -> Domain:
    most = int(domain.example.max(initial=0))
    counted = [(d.shape[i], d.dims.get(i)) for d in others for i in range(1, len(d.shape)) if d.shape[i] >= most]
    if not counted:
        return domain if domain.declared else replace(domain, role="integer")
    size, dim = min(counted, key=lambda one: one[0])
    return replace(domain, measures=dim if dim is not None else size)


def count_elements(domains: Sequence[Domain], sizes: Mapping[str, int]) -> int:
    """How large inputs of these sizes are."""
    return sum(math.prod(domain.sized(sizes)) for domain in domains)


def read_sizes(domains: Sequence[Domain], inputs: Mapping[str, Array]) -> dict[str, int]:
    """The sizes of the dynamic dims in some inputs."""
    sizes = {name: inputs[d.name].shape[i] for d in domains for i, name in d.dims.items()}
    return {name: sizes[name] for name in list_free(sizes)}


def observe_range(domain: Domain) -> Range:
    """The range of the example's values."""
    example = domain.example
    return Range(float(example.min()), float(example.max())) if example.size else Range(0, 1)
