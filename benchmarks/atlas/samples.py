"""Torch's own samples of its operations, a few of each as one module, and the values that they are tried on."""

from __future__ import annotations

import sys
import types
import unittest
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from onnxproof.tensors.arrays import Array
from onnxproof.tensors.conversion import to_numpy, to_torch

# Samples of an operation that go into one file, and the elements that a tensor of one may have.
MOST_SAMPLES, MOST_ELEMENTS = 6, 2000
# What depends on a generator or on memory that nobody wrote to.
RANDOM = (
    "empty", "rand", "normal", "bernoulli", "multinomial", "dropout", "uniform", "cauchy", "exponential", "geometric", "log_normal", "random", "rrelu", "gumbel",
)  # fmt: skip


def load_database() -> list[Any]:
    """Every operation that torch has samples of."""
    if "expecttest" not in sys.modules:
        # Torch's own test helpers import it for a base class that samples do not need.
        stub = types.ModuleType("expecttest")
        stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stub
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def name_operation(op: Any) -> str:
    """`name`, or `name.variant` where torch has several kinds of samples for one operation."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


@cache
def load_operations() -> dict[str, Any]:
    """The same by name."""
    return {name_operation(op): op for op in load_database()}


def is_random(op: Any) -> bool:
    """Whether the answer is another one each time by its name."""
    return any(word in op.name for word in RANDOM)


@dataclass(frozen=True)
class Sample:
    """One call: leaves in order, and how they are put together; a leaf that is a tensor is an input."""

    leaves: tuple[Any, ...]
    spec: Any

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

    def fill(self, tensors: Sequence[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments with other tensors."""
        given = iter(tensors)
        leaves = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return tuple(args), kwargs


class Calls(nn.Module):
    """Several calls of one operation as one module, each on tensors of its own."""

    def __init__(self, function: Callable[..., Any], samples: Sequence[Sample]) -> None:
        super().__init__()
        self.function, self.samples = function, tuple(samples)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs, place = [], 0
        for sample in self.samples:
            count = len(sample.tensors)
            args, kwargs = sample.fill(tensors[place : place + count])
            place += count
            outputs += list_outputs(self.function(*args, **kwargs))
        return tuple(outputs)


def list_outputs(value: Any) -> list[torch.Tensor]:
    """The tensors of an answer; a complex one as its two parts, since ONNX has none."""
    tensors = [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    return [torch.view_as_real(one.resolve_conj()) if one.is_complex() else one for one in tensors]


def choose_samples(op: Any, dtype: torch.dtype) -> list[Sample]:
    """Samples that differ in kind: ranks, empty and single dimensions, names of arguments."""
    chosen: dict[Any, Sample] = {}
    rest: list[Sample] = []
    torch.manual_seed(0)
    for place, one in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
        if place >= 64:
            break
        leaves, spec = pytree.tree_flatten(((one.input, *one.args), one.kwargs))
        sample = Sample(tuple(_own(leaf) for leaf in leaves), spec)
        tensors = sample.tensors
        plain = all(t.layout == torch.strided and not t.is_complex() and not t.is_quantized for t in tensors)
        if not tensors or not plain or max(t.numel() for t in tensors) > MOST_ELEMENTS:
            continue
        kind = (
            tuple((t.ndim, t.numel() == 0, 1 in t.shape, t.dtype) for t in tensors),
            tuple(str(leaf)[:40] for leaf in leaves if isinstance(leaf, (str, bool))),
            str(spec)[:400],
        )
        if kind in chosen:
            rest.append(sample)
        else:
            chosen[kind] = sample
    every = [*chosen.values(), *rest]
    # Half of the first kinds, half spread over the others: the odd arguments come last in torch's lists.
    spread = [every[i] for i in np.linspace(0, len(every) - 1, MOST_SAMPLES).astype(int)] if every else []
    picked = [*every[: MOST_SAMPLES // 2], *spread]
    return list({id(one): one for one in picked}.values())[:MOST_SAMPLES]


def _own(leaf: Any) -> Any:
    return leaf.detach().clone().contiguous() if isinstance(leaf, torch.Tensor) else leaf


# Floats of each kind; what a dtype cannot hold is left out.
FAIR: dict[str, tuple[float, ...]] = {
    "halves": tuple(k / 2 for k in range(-9, 10)),
    "equal": (1.0, 1.0, 2.0, -1.0, 2.0, 1.0),
    "zeros": (0.0, -0.0, 0.0, 1.0, -0.0, -1.0),
    "small": (1e-3, -1e-3, 1e-5, -1e-5, 1e-7, -1e-7, 1e-8),
    "moderate": (0.1, -0.3, 1.0, -2.5, 10.0, -10.0, 30.0, -40.0, 88.5, -88.5, 95.0, 300.0, -700.0, 1000.0),
    "below one": (0.999, -0.999, 0.99999, 0.5, -0.25, 0.75, 1e-3),
}
# Tiny ones too: their squares are denormal numbers, which kernels may take for zero.
UNFAIR: dict[str, tuple[float, ...]] = {
    "tiny": (1e-20, -1e-20, 1e-30, 0.0),
    "large": (1e4, -1e4, 1e6, -3e6, 1e9, -5e12, 1e20, -1e20),
    "limits": (3e38, -3e38, 1e19, 65504.0, -65504.0, 1.2e-38),
    "infinite": (float("inf"), float("-inf"), 1.0, -2.0, 0.0),
    "nan": (float("nan"), 1.0, -2.0, float("nan"), 0.5, 3.0),
}
WHOLE: dict[str, tuple[int, ...]] = {
    "small integers": (0, 1, -1, 2, -2, 3, -3, 5, -7, 10),
    "equal": (2, 2, 3, -1, 3, 2),
    "hundreds": (100, -100, 127, -127, 60, -33, 17, 255, 256, 1000),
}
WIDE: dict[str, tuple[int, ...]] = {
    "wide integers": (32767, -32768, 65536, 2**24 + 1, -(2**24) - 1, 2**31 - 1, -(2**31), 2**53 + 1),
    "ends of the range": (2**63 - 1, -(2**63) + 1, 2**31 - 1, -(2**31) + 1, 255, 127, -127, 0),
}
TRUTHS: dict[str, tuple[bool, ...]] = {"all true": (True,), "all false": (False,), "mixed": (True, False, False)}


def list_profiles(dtype: torch.dtype) -> dict[str, bool]:
    """The kinds of values for tensors of a dtype, and whether each is fair."""
    if dtype == torch.bool:
        return dict.fromkeys(TRUTHS, True)
    fair, unfair = (FAIR, UNFAIR) if dtype.is_floating_point else (WHOLE, WIDE)
    return dict.fromkeys(fair, True) | dict.fromkeys(unfair, not dtype.is_floating_point)


def make_values(profile: str, array: Array, place: int) -> Array:
    """An array like another with values of a kind; each input begins at another of them, but for `equal`."""
    values = _fit(profile, array.dtype)
    if not values.size:
        return array
    start = 0 if profile == "equal" else 3 * place
    return values[(np.arange(array.size) + start) % len(values)].reshape(array.shape)


def _fit(profile: str, dtype: np.dtype[Any]) -> Array:
    if dtype == np.bool_:
        return np.asarray(TRUTHS[profile])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.asarray([v for v in {**WHOLE, **WIDE}[profile] if limits.min < v <= limits.max or v == 0], dtype)
    largest = float(ml_dtypes.finfo(dtype).max)
    every = {**FAIR, **UNFAIR}[profile]
    return np.asarray([v for v in every if not np.isfinite(v) or abs(v) <= largest]).astype(dtype)


def fill_values(sample: Sample, profile: str, varied: Sequence[int]) -> list[torch.Tensor]:
    """A sample's tensors as they went in: values of a kind at some places, its own at the others."""
    return [
        to_torch(make_values(profile, to_numpy(tensor), place)) if place in varied else tensor
        for place, tensor in enumerate(sample.tensors)
    ]


def vary(
    inputs: dict[str, Array], dtype: np.dtype[Any], groups: Sequence[Sequence[str]]
) -> Iterator[tuple[str, bool, list[dict[str, Array]]]]:
    """Kinds of values: name, whether they are fair, and inputs to try until torch takes one: all tensors of a call, then the first of each."""
    torch_dtype = getattr(torch, dtype.name)
    for profile, fair in list_profiles(torch_dtype).items():
        whole = {
            name: make_values(profile, inputs[name], place)
            for group in groups
            for place, name in enumerate(group)
            if inputs[name].dtype == dtype
        }
        firsts = {group[0]: whole[group[0]] for group in groups if group and group[0] in whole}
        one_by_one = [
            {**inputs, **{n: whole[n] for n in group if n in whole}} for group in groups if {*group} & {*whole}
        ]
        tries = [{**inputs, **whole}, {**inputs, **firsts}]
        yield profile, fair, tries + (one_by_one if len(groups) > 1 else [])
