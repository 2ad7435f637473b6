"""Faster float64 versions of the reference evaluator's slowest operators.

The reference convolution and pooling loop in Python. Where an operator's attributes are the plain ones, torch computes the
same float64 numbers much faster; everything unusual goes to the reference implementation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_average_pool import AveragePool_19 as SlowAveragePool
from onnx.reference.ops.op_batch_normalization import BatchNormalization_14 as SlowBatchNormalization
from onnx.reference.ops.op_conv import Conv as SlowConv
from onnx.reference.ops.op_conv_transpose import ConvTranspose as SlowConvTranspose
from onnx.reference.ops.op_gather import Gather as SlowGather
from onnx.reference.ops.op_gemm import Gemm_7 as SlowGemm
from onnx.reference.ops.op_matmul import numpy_matmul
from onnx.reference.ops.op_max_pool import MaxPool as SlowMaxPool
from onnx.reference.ops.op_pad import Pad_18 as SlowPad
from onnx.reference.ops.op_pow import Pow as SlowPow
from onnx.reference.ops.op_quantize_linear import _CommonQuantizeLinear as SlowQuantizeLinear
from onnx.reference.ops.op_resize import Resize as SlowResize
from torch.nn import functional

from onnxproof.graph.sequences import GRU, LSTM, RNN
from onnxproof.graph.widening import Narrow
from onnxproof.tensors.products import multiply_widened


def _to_tensor(array: Any) -> torch.Tensor:
    # A copy: torch takes no negative strides, which slices with a negative step leave.
    return torch.from_numpy(np.array(array, order="C"))


class _Window:
    """The attributes of a convolution or a pooling, in torch's words."""

    def __init__(self, x: Any, given: dict[str, Any]) -> None:
        self.rank = x.ndim - 2
        self.plain = self.rank in (1, 2, 3) and given["auto_pad"] in (None, b"NOTSET", "NOTSET", b"VALID", "VALID")
        self.strides = list(given["strides"] or [1] * self.rank)
        self.dilations = list(given["dilations"] or [1] * self.rank)
        pads = list(given["pads"] or [0] * (2 * self.rank))
        self.begin, self.end = pads[: self.rank], pads[self.rank :]

    def padded(self, x: Any, value: float = 0.0) -> torch.Tensor:
        """The array with its borders; torch's order is the last axis first, begin and end."""
        # Not torch's own padding: it is the same at both ends, and in a pooling half the kernel at most.
        sides = [size for pair in reversed([*zip(self.begin, self.end, strict=True)]) for size in pair]
        return functional.pad(_to_tensor(x), sides, value=value)

    def extended(self, padded: torch.Tensor, sizes: Sequence[int], kernel: Sequence[int], value: float) -> torch.Tensor:
        """A padded array with what so many windows ask for behind its end."""
        needed = [
            (count - 1) * stride + dilation * (length - 1) + 1
            for count, stride, dilation, length in zip(sizes, self.strides, self.dilations, kernel, strict=True)
        ]
        missing = [max(0, need - have) for need, have in zip(needed, padded.shape[2:], strict=True)]
        return functional.pad(padded, [side for more in reversed(missing) for side in (0, more)], value=value)

    def count(self, shape: Sequence[int], kernel: Sequence[int]) -> list[int]:
        """How many windows fit along each axis, rounded up; one that begins behind the last value is none."""
        counts = []
        for i, size in enumerate(shape):
            span = size + self.begin[i] + self.end[i] - self.dilations[i] * (kernel[i] - 1) - 1
            more = -(-span // self.strides[i]) + 1
            counts.append(more - ((more - 1) * self.strides[i] >= size + self.begin[i]))
        return counts

    def call(self, name: str, *args: Any) -> Any:
        """What torch's function for this number of dimensions answers."""
        return (getattr(functional, f"{name}{self.rank}d")(*args).numpy(),)


class Conv(SlowConv):
    def _run(self, X, W, B=None, **given):
        window = _Window(X, given)
        if not window.plain or X.dtype != np.float64 or W.dtype != np.float64:
            return super()._run(X, W, B, **given)
        bias = None if B is None else _to_tensor(B)
        strides, dilations, group = window.strides, window.dilations, given["group"] or 1
        return window.call("conv", window.padded(X), _to_tensor(W), bias, strides, 0, dilations, group)


class MatMul(OpRun):
    """A large weight may have stayed narrow: it is widened piece by piece."""

    def _run(self, a, b):
        if not isinstance(b, Narrow):
            return (numpy_matmul(a, b),)
        return (_multiply(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1]),)


class Gemm(SlowGemm):
    """The same."""

    def _run(self, a, b, c=None, alpha=None, beta=None, transA=None, transB=None, broadcast=None):
        if not isinstance(b, Narrow):
            return super()._run(a, b, c, alpha, beta, transA, transB)
        product = _multiply(a.T if transA else a, b.T if transB else b) * alpha
        return (product if c is None or beta == 0 else product + c * beta,)


class Gather(SlowGather):
    """The same."""

    def _run(self, x, indices, axis=None):
        if not isinstance(x, Narrow):
            return super()._run(x, indices, axis)
        return (np.take(np.asarray(x), indices, axis).astype(np.float64),)


def _multiply(left: Any, right: Any) -> Any:
    return multiply_widened(_to_tensor(left), _see(np.asarray(right))).numpy()


def _see(weight: Any) -> torch.Tensor:
    """A tensor of the same memory: a large one is not copied. It may be a file's, and nobody writes to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(weight)


class MaxPool(SlowMaxPool):
    """The reference one gives wrong places beside the maxima, and wrong sizes where they are rounded up."""

    def _run(self, x, **given):
        window = _Window(x, given)
        if not window.plain or given.get("storage_order") or x.dtype not in (np.float64, np.float32):
            return super()._run(x, **given)
        kernel = list(given["kernel_shape"])
        sizes = window.count(x.shape[2:], kernel) if given["ceil_mode"] else []
        # Zeros at the border would win against negative values.
        padded = window.padded(x, -torch.inf)
        if sizes:
            padded = window.extended(padded, sizes, kernel, -torch.inf)
        pool = getattr(functional, f"max_pool{window.rank}d")
        found, places = pool(padded, kernel, window.strides, 0, window.dilations, return_indices=True)
        cut = (..., *(slice(size) for size in sizes))
        if len(self.onnx_node.output) == 1:
            return (found[cut].numpy(),)
        inner = np.unravel_index(places[cut].numpy(), padded.shape[2:])
        moved = [at - begin for at, begin in zip(inner, window.begin, strict=True)]
        rows = np.indices(places[cut].shape)[:2]
        return found[cut].numpy(), np.ravel_multi_index((*rows, *moved), x.shape)


class AveragePool(SlowAveragePool):
    """The reference one divides by windows that reach beyond what is padded, where sizes are rounded up."""

    def _run(self, x, **given):
        window = _Window(x, given)
        if not window.plain or set(window.dilations) != {1} or x.dtype != np.float64:
            return super()._run(x, **given)
        kernel, padded = list(given["kernel_shape"]), window.padded(x)
        if not given["ceil_mode"] and (given["count_include_pad"] or not any(given["pads"] or [])):
            return window.call("avg_pool", padded, kernel, window.strides)
        counted = torch.ones_like(padded) if given["count_include_pad"] else window.padded(np.ones_like(x))
        if given["ceil_mode"]:
            sizes = window.count(x.shape[2:], kernel)
            padded, counted = (window.extended(one, sizes, kernel, 0.0) for one in (padded, counted))
        sums, counts = (window.call("avg_pool", one, kernel, window.strides)[0] for one in (padded, counted))
        return (sums / counts,)


class ConvTranspose(SlowConvTranspose):
    def _run(self, X, W, B=None, **given):
        window = _Window(X, given)
        uneven = given["output_shape"] or window.begin != window.end
        if not window.plain or uneven or X.dtype != np.float64:
            return super()._run(X, W, B, **given)
        bias = None if B is None else _to_tensor(B)
        strides, added = window.strides, list(given["output_padding"] or [0] * window.rank)
        how = (strides, window.begin, added, given["group"] or 1, window.dilations)
        return window.call("conv_transpose", _to_tensor(X), _to_tensor(W), bias, *how)


class Erf(OpRun):
    """The reference one rounds to float32."""

    def _run(self, x):
        return (torch.erf(_to_tensor(x)).numpy(),)


class BatchNormalization(SlowBatchNormalization):
    """The reference one of opsets 9 to 13 takes the mean and variance of the batch, as if it were trained."""

    def _run(self, x, scale, bias, mean, var, epsilon=None, momentum=None, training_mode=None, spatial=None):
        if spatial == 0:
            raise NotImplementedError("BatchNormalization with a mean for each position")
        return super()._run(x, scale, bias, mean, var, epsilon, momentum, training_mode or len(self.output) > 1)


class Gelu(OpRun):
    """The reference one is a function with float32 constants, and 1 + erf(x) loses what is left far below zero."""

    def _run(self, x, approximate=None):
        if _decode(approximate, "none") == "tanh":
            return (x * torch.sigmoid(_to_tensor(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))).numpy(),)
        return (x * torch.erfc(_to_tensor(-x / math.sqrt(2))).numpy() / 2,)


class GlobalMaxPool(OpRun):
    """The reference one is right for images only."""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class HardSwish(OpRun):
    """The reference one has a sixth in float32."""

    def _run(self, x):
        return (x * np.clip(x + 3, 0, 6) / 6,)


class LRN(OpRun):
    """The reference one goes through the batch where it means the channels."""

    def _run(self, x, alpha=None, beta=None, bias=None, size=None):
        before, after = (size - 1) // 2, size // 2
        windows = [x[:, max(0, c - before) : c + after + 1] for c in range(x.shape[1])]
        squares = np.stack([np.square(window).sum(axis=1) for window in windows], axis=1)
        return ((x / (float(bias) + float(alpha) / size * squares) ** float(beta)).astype(x.dtype),)


class LpNormalization(OpRun):
    """The reference one adds up numbers, not magnitudes."""

    def _run(self, x, axis=None, p=None):
        size = np.linalg.norm(x, 2 if p is None else p, -1 if axis is None else axis, keepdims=True)
        return (np.where(size == 0, 0.0, x / size).astype(x.dtype),)


class Resize(SlowResize):
    """The reference one computes cubic weights in the dtype of an attribute, float32."""

    def _run(self, *inputs, cubic_coeff_a=None, **given):
        return super()._run(*inputs, cubic_coeff_a=-0.75 if cubic_coeff_a is None else float(cubic_coeff_a), **given)


class GridSample(OpRun):
    """The reference one computes partly in float32, is wrong at borders of cubic patches, and has no names of opset 16."""

    def _run(self, X, grid, mode=None, padding_mode=None, align_corners=None):
        kind = {"linear": "bilinear", "cubic": "bicubic"}.get(_decode(mode, "linear"), _decode(mode, "linear"))
        out = functional.grid_sample(
            _to_tensor(X), _to_tensor(grid.astype(X.dtype)), kind, _decode(padding_mode, "zeros"), bool(align_corners)
        )
        return (out.numpy(),)


class LogSoftmax(OpRun):
    """The reference one takes the logarithm of the softmax, which is zero far from the largest."""

    def _run(self, X, axis=None):
        return (functional.log_softmax(_to_tensor(X), -1 if axis is None else axis).numpy(),)


class GatherElements(OpRun):
    """The reference one refuses an index that is smaller than the data beside its axis, and every one along an axis from the end."""

    def _run(self, data, indices, axis=0):
        axis %= data.ndim
        # Beside the axis an index takes what stands at its own place.
        beside = tuple(slice(None) if at == axis else slice(size) for at, size in enumerate(indices.shape))
        return (np.take_along_axis(data[beside], indices, axis),)


class Pad(SlowPad):
    """The reference one refuses to cut off."""

    def _run(self, data, pads, constant_value=None, axes=None, mode=None, value=None):
        rank = data.ndim
        places = range(rank) if axes is None else [int(axis) % rank for axis in np.ravel(axes)]
        sides = np.zeros((2, rank), np.int64)
        sides[:, list(places)] = np.reshape(pads, (2, -1))
        if (sides < 0).any():
            cut = -np.minimum(sides, 0)
            data = data[tuple(slice(first, size - last) for first, last, size in zip(*cut, data.shape, strict=True))]
        # Before opset 11 it is an attribute.
        filled = value if constant_value is None else constant_value
        return super()._run(data, np.maximum(sides, 0).ravel(), filled, None, mode)


class Pow(SlowPow):
    """Squares and cubes of the reference one take as long as any other power."""

    def _run(self, a, b):
        power = (
            float(np.reshape(b, ())) if np.size(b) == 1 and a.dtype.kind == "f" and np.ndim(b) <= np.ndim(a) else 0.0
        )
        if power not in (2.0, 3.0):
            return super()._run(a, b)
        return (a * a if power == 2 else a * a * a,)


def _spread(value, shape, axis, block=None):
    """A scale or a zero point for all values of a shape: it is one, or has one for each place of an axis or for each block of them."""
    if value.size == 1:
        return value.reshape(())
    if block:
        return np.repeat(value, block, axis).take(range(shape[axis]), axis)
    dims = [1] * len(shape)
    dims[axis] = value.size
    return value.reshape(dims)


class QuantizeLinear(SlowQuantizeLinear):
    """As it is defined, in float32 whatever the graph was widened to: a value on the border of two integers goes where it is said to
    go. The reference one wraps around where a quotient exceeds 32 bits."""

    def _run(self, x, y_scale, zero_point=None, **given):
        axis, block = given.get("axis", 1), given.get("block_size")
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            quotient = x.astype(np.float32) / _spread(y_scale.astype(np.float32), x.shape, axis, block)
        return super()._run(np.clip(quotient, -(2.0**24), 2.0**24), np.ones_like(y_scale), zero_point, **given)


class DequantizeLinear(OpRun):
    """The reference has none of the opsets before 19, in which most quantised files are."""

    def _run(self, x, x_scale, x_zero_point=None, axis=None, block_size=None, output_dtype=None):
        where = (x.shape, 1 if axis is None else axis, block_size)
        zero = 0.0 if x_zero_point is None else _spread(x_zero_point, *where).astype(np.float64)
        return (((x.astype(np.float64) - zero) * _spread(x_scale, *where)).astype(x_scale.dtype),)


class DynamicQuantizeLinear(OpRun):
    """In float32 from end to end, for the same reason."""

    def _run(self, x):
        x32 = x.astype(np.float32)
        low, high = np.float32(np.min(x32, initial=0.0)), np.float32(np.max(x32, initial=0.0))
        scale = np.float32(1.0) if low == high else (high - low) / np.float32(255)
        zero = np.clip(np.rint(-low / scale), 0, 255)
        stored = np.clip(np.rint(x32 / scale) + zero, 0, 255).astype(np.uint8)
        return stored, np.asarray(scale, dtype=x.dtype), np.asarray(zero, dtype=np.uint8)


class Whole(OpRun):
    """Integers less their zero point (one, or one for each channel along an axis), as real numbers."""

    op_domain = "onnxproof"

    def _run(self, x, zero=None, axis=None):
        whole = x.astype(np.float64)
        return (whole if zero is None else whole - _spread(zero.astype(np.float64), x.shape, axis % x.ndim),)


class UnpackBits(OpRun):
    """Weights of a few bits in blocks with a scale each; two or more of them in a byte, the lower bits first."""

    op_domain = "onnxproof"

    def _run(self, b, scales, zero_points=None, N=None, K=None, bits=None, block_size=None):
        if bits not in (2, 4, 8):
            raise NotImplementedError(f"weights of {bits} bits")
        rows, columns, block = N, K, block_size
        blocks = -(-columns // block)
        stored = _unpack(b, bits).reshape(rows, blocks, -1)[:, :, :block]
        zeros = np.float64(2 ** (bits - 1))
        if zero_points is not None:
            floats = zero_points.dtype.kind == "f"
            zeros = zero_points.reshape(rows, blocks) if floats else _unpack(zero_points, bits, rows)[:, :blocks]
            zeros = zeros[:, :, None]
        weights = ((stored - zeros) * scales.reshape(rows, blocks, 1)).reshape(rows, -1)[:, :columns]
        return (weights.T.copy(),)


def _unpack(packed: Any, bits: int, rows: int | None = None) -> Any:
    """Every number of some bytes, as a float; of each row where it fills its bytes by itself."""
    parts = [(packed.astype(np.uint8) >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    numbers = np.stack(parts, axis=-1).astype(np.float64)
    return numbers.reshape((*packed.shape[:-1], -1)) if rows is None else numbers.reshape(rows, -1)


def _decode(value: Any, default: str) -> str:
    return value.decode() if isinstance(value, bytes) else value or default


FAST_OPS = [
    GRU,
    LSTM,
    RNN,
    AveragePool,
    BatchNormalization,
    Conv,
    ConvTranspose,
    DequantizeLinear,
    DynamicQuantizeLinear,
    Erf,
    Gather,
    GatherElements,
    Gelu,
    Gemm,
    GlobalMaxPool,
    GridSample,
    HardSwish,
    LogSoftmax,
    LRN,
    LpNormalization,
    MatMul,
    MaxPool,
    Pad,
    Pow,
    QuantizeLinear,
    Resize,
    UnpackBits,
    Whole,
]
# For a graph in its own dtypes: the reference pooling loses NaN, which a maximum must keep.
FAITHFUL_OPS = [MaxPool]
# Operators whose reference implementation computes partly in float32: they are exact only to float32's accuracy.
IMPRECISE = {"AffineGrid", "CausalConvWithState", "LinearAttention", "MelWeightMatrix"}
