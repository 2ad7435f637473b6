"""Products of bytes as x86 CPUs without VNNI add them: two neighbours at a time in 16 bits, which saturate (the instruction is vpmaddubsw).

It takes an unsigned activation and a signed weight; onnxruntime has other kernels for other pairs of types, and these are exact. Which nodes it
computes so, and in which order, was compared bit by bit with releases on an emulated CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from onnxproof.graph.evaluator import Step, Stop
from onnxproof.tensors.arrays import Array

LOW, HIGH = np.iinfo(np.int16).min, np.iinfo(np.int16).max
# What kernels take in between a convolution and the quantising of its result.
ACTIVATIONS = ("Relu", "Clip")


@dataclass(frozen=True)
class Bytes:
    """A tensor of bytes that is about to become real numbers."""

    array: Array
    scale: Array
    zero: int
    stop: Stop


@dataclass(frozen=True)
class Saturated:
    """Pairs of products of one node that leave 16 bits, of how many."""

    node: str
    pairs: int
    of: int


@dataclass
class BytePairs:
    """Follows one evaluation, and saturates what such a CPU would."""

    steps: Sequence[Step]
    stored: Mapping[str, Any]
    fused: bool = True
    """Whether products between dequantising and quantising are computed in integers."""
    found: dict[str, Saturated] = field(default_factory=dict)
    _bytes: dict[str, Bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._nodes = {name: step.node for step in self.steps for name in step.gives}
        self._quantised = {*_list_quantised(self.steps)}

    def look(self, stop: Stop, results: Sequence[Any]) -> Sequence[Any]:
        """A node's results on such a CPU."""
        if stop.op in ("DequantizeLinear", "Whole"):
            self._note(stop)
        x, w = (self._bytes.get(name) for name in (*stop.taken, "", "")[:2])
        if stop.op not in PRODUCTS or x is None or w is None or not self._saturates(stop, x, w):
            return results
        products = [*PRODUCTS[stop.op](_make_unsigned(x), w.array.astype(np.int32), self._nodes[stop.values[0]])]
        sums = [sum_excess(left, right) for left, right in products]
        pairs = sum(count for _, count in sums)
        if not pairs:
            return results
        of = sum(len(left) * right.shape[1] * -(-len(right) // 2) for left, right in products)
        self.found[stop.node] = Saturated(stop.node, pairs, of)
        excess = _shape(np.concatenate([one for one, _ in sums], axis=1), results[0], stop.op)
        return [results[0] + excess * x.scale * _align(w.scale, results[0], stop.op), *results[1:]]

    def _note(self, stop: Stop) -> None:
        array, whole = stop.arguments[0], stop.op == "Whole"
        if getattr(array, "dtype", None) not in (np.uint8, np.int8):
            return
        scale = np.asarray(1.0 if whole else stop.arguments[1], np.float64)
        zero = [value for value in stop.arguments[1 if whole else 2 :] if value is not None]
        self._bytes[stop.values[0]] = Bytes(array, scale, int(np.max(zero[0])) if zero else 0, stop)

    def _saturates(self, stop: Stop, x: Bytes, w: Bytes) -> bool:
        """Whether the kernel of this node is the one; activations of QDQ files become unsigned on the way to it."""
        if w.array.dtype != np.int8 or w.stop.taken[0] not in self.stored or x.scale.size != 1:
            return False
        # Written out of one node, or between nodes that onnxruntime takes together.
        if x.stop.node == stop.node:
            return x.array.dtype == np.uint8 and not (x.stop.op == "Whole" and stop.op == "Conv")
        return self.fused and (stop.op != "Conv" or stop.values[0] in self._quantised)


def _list_quantised(steps: Sequence[Step]) -> Iterator[str]:
    """Values that are quantised, at once or behind an activation."""
    behind = {step.gives[0]: step.takes[0] for step in steps if step.op in ACTIVATIONS}
    for step in steps:
        if step.op == "QuantizeLinear":
            yield step.takes[0]
            yield from [behind[step.takes[0]]] if step.takes[0] in behind else []


def _make_unsigned(x: Bytes) -> Bytes:
    """As the kernel gets it."""
    shift = 128 if x.array.dtype == np.int8 else 0
    return Bytes(x.array.astype(np.int32) + shift, x.scale, x.zero + shift, x.stop)


def _shape(rows: Array, result: Array, op: str) -> Array:
    """Rows as the result has them: a convolution's have the channels last."""
    if op != "Conv":
        return rows.reshape(result.shape)
    return np.moveaxis(rows.reshape(len(result), *result.shape[2:], result.shape[1]), -1, 1)


def _align(scale: Array, result: Array, op: str) -> Array:
    """One for each column of a result, or for each channel."""
    return scale.reshape(-1, *[1] * (result.ndim - 2)) if op == "Conv" and scale.size > 1 else scale


def sum_excess(x: Array, w: Array) -> tuple[Array, int]:
    """What saturation adds to x @ w, and how many pairs of neighbours it hits."""
    if x.shape[1] % 2:
        x, w = np.pad(x, ((0, 0), (0, 1))), np.pad(w, ((0, 1), (0, 0)))
    excess, count = np.zeros((len(x), w.shape[1]), np.int64), 0
    if not x.size:
        return excess, count
    most, (even, odd) = x.max(axis=0), (w[0::2], w[1::2])
    top = most[0::2, None] * np.maximum(even, 0) + most[1::2, None] * np.maximum(odd, 0)
    bottom = most[0::2, None] * np.minimum(even, 0) + most[1::2, None] * np.minimum(odd, 0)
    reach = (top > HIGH) | (bottom < LOW)
    for pair in np.flatnonzero(reach.any(axis=1)):
        [columns] = np.nonzero(reach[pair])
        sums = np.outer(x[:, 2 * pair], even[pair, columns]) + np.outer(x[:, 2 * pair + 1], odd[pair, columns])
        over = np.clip(sums, LOW, HIGH) - sums
        excess[:, columns] += over
        count += int(np.count_nonzero(over))
    return excess, count


# Rows of activations and columns of weights.
Products = Iterator[tuple[Array, Array]]


def _list_products(x: Bytes, w: Array, node: NodeProto) -> Products:
    given = _read_attributes(node)
    left = x.array.T if given.get("transA") else x.array
    right = w.T if given.get("transB") else w
    if right.ndim == 2 and given.get("alpha", 1.0) == 1.0:
        yield left.reshape(-1, left.shape[-1]), right


def _list_patches(x: Bytes, w: Array, node: NodeProto) -> Products:
    """Patches of an image, channels last, group by group; a depthwise convolution has a kernel that does not saturate."""
    given, rank = _read_attributes(node), w.ndim - 2
    groups, auto = given.get("group", 1), given.get("auto_pad", b"NOTSET")
    if auto not in (b"NOTSET", b"VALID") or (w.shape[1] == 1 and groups == len(w)):
        return
    pads = given.get("pads") or [0] * (2 * rank)
    sides = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(x.array, sides, constant_values=x.zero)
    dilations, strides = given.get("dilations") or [1] * rank, given.get("strides") or [1] * rank
    reach = [(size - 1) * step + 1 for size, step in zip(w.shape[2:], dilations, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=tuple(range(2, 2 + rank)))
    steps = [slice(None, None, step) for step in (1, 1, *strides, *dilations)]
    patches = np.moveaxis(windows[tuple(steps)], 1, -1)
    for group, kernels in enumerate(np.split(np.moveaxis(w, 1, -1), groups)):
        part = patches[..., group * w.shape[1] : (group + 1) * w.shape[1]]
        columns = kernels.reshape(len(kernels), -1).T
        yield part.reshape(-1, len(columns)), columns


def _read_attributes(node: NodeProto) -> dict[str, Any]:
    return {one.name: helper.get_attribute_value(one) for one in node.attribute}


PRODUCTS = {"MatMul": _list_products, "Gemm": _list_products, "Conv": _list_patches}
