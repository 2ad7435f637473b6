"""Faster float64 versions of the reference evaluator's slowest operators.

The reference convolution and pooling loop in Python. Where an operator's attributes are the plain ones, torch computes the
same float64 numbers much faster; everything unusual goes to the reference implementation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_average_pool import AveragePool_19 as SlowAveragePool
from onnx.reference.ops.op_conv import Conv as SlowConv
from onnx.reference.ops.op_conv_transpose import ConvTranspose as SlowConvTranspose
from onnx.reference.ops.op_max_pool import MaxPool as SlowMaxPool

CONVOLUTIONS = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}
AVERAGES = {1: torch.nn.functional.avg_pool1d, 2: torch.nn.functional.avg_pool2d, 3: torch.nn.functional.avg_pool3d}
TRANSPOSED = {
    1: torch.nn.functional.conv_transpose1d,
    2: torch.nn.functional.conv_transpose2d,
    3: torch.nn.functional.conv_transpose3d,
}
POOLS = {1: torch.nn.functional.max_pool1d, 2: torch.nn.functional.max_pool2d, 3: torch.nn.functional.max_pool3d}


def _tensor(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(array, order="C"))


def _plain(auto_pad: Any) -> bool:
    return auto_pad in (None, b"NOTSET", "NOTSET", b"VALID", "VALID")


def _pads(pads: Any, rank: int) -> list[int]:
    """ONNX pads (all begins, then all ends) in torch's order (last axis first, begin and end)."""
    given = list(pads) if pads is not None else [0] * (2 * rank)
    return [given[axis + side * rank] for axis in reversed(range(rank)) for side in (0, 1)]


class Conv(OpRun):
    op_domain = ""

    def _run(self, X, W, B=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):
        rank = X.ndim - 2
        if rank not in CONVOLUTIONS or not _plain(auto_pad) or X.dtype != np.float64 or W.dtype != np.float64:
            return SlowConv._run(self, X, W, B, auto_pad, dilations, group, kernel_shape, pads, strides)
        padded = torch.nn.functional.pad(_tensor(X), _pads(pads, rank))
        bias = None if B is None else _tensor(B)
        weight = _tensor(W)
        ones = [1] * rank
        out = CONVOLUTIONS[rank](padded, weight, bias, list(strides or ones), 0, list(dilations or ones), group or 1)
        return (out.numpy(),)


class MaxPool(OpRun):
    op_domain = ""

    def _run(
        self,
        x,
        auto_pad=None,
        ceil_mode=None,
        dilations=None,
        kernel_shape=None,
        pads=None,
        storage_order=None,
        strides=None,
    ):
        rank = x.ndim - 2
        if (
            rank not in POOLS
            or not _plain(auto_pad)
            or ceil_mode
            or x.dtype not in (np.float64, np.float32)
            or len(self.onnx_node.output) > 1
        ):
            return SlowMaxPool._run(self, x, auto_pad, ceil_mode, dilations, kernel_shape, pads, storage_order, strides)
        padded = torch.nn.functional.pad(_tensor(x), _pads(pads, rank), value=-torch.inf)
        ones = [1] * rank
        out = POOLS[rank](padded, list(kernel_shape), list(strides or ones), 0, list(dilations or ones))
        return (out.numpy(),)


class AveragePool(OpRun):
    op_domain = ""

    def _run(
        self,
        x,
        auto_pad=None,
        ceil_mode=None,
        count_include_pad=None,
        dilations=None,
        kernel_shape=None,
        pads=None,
        strides=None,
    ):
        rank = x.ndim - 2
        ones = [1] * rank
        padded = any(pads or [])
        plain = rank in AVERAGES and _plain(auto_pad) and not ceil_mode and list(dilations or ones) == ones
        if not plain or x.dtype != np.float64 or (padded and not count_include_pad):
            return SlowAveragePool._run(
                self, x, auto_pad, ceil_mode, count_include_pad, dilations, kernel_shape, pads, strides
            )
        source = torch.nn.functional.pad(_tensor(x), _pads(pads, rank))
        return (AVERAGES[rank](source, list(kernel_shape), list(strides or ones)).numpy(),)


class ConvTranspose(OpRun):
    op_domain = ""

    def _run(
        self,
        X,
        W,
        B=None,
        auto_pad=None,
        dilations=None,
        group=None,
        kernel_shape=None,
        output_padding=None,
        output_shape=None,
        pads=None,
        strides=None,
    ):
        rank = X.ndim - 2
        begin, end = list(pads or [0] * 2 * rank)[:rank], list(pads or [0] * 2 * rank)[rank:]
        if rank not in TRANSPOSED or not _plain(auto_pad) or output_shape or begin != end or X.dtype != np.float64:
            return SlowConvTranspose._run(
                self, X, W, B, auto_pad, dilations, group, kernel_shape, output_padding, output_shape, pads, strides
            )
        ones = [1] * rank
        out = TRANSPOSED[rank](
            _tensor(X),
            _tensor(W),
            None if B is None else _tensor(B),
            list(strides or ones),
            begin,
            list(output_padding or [0] * rank),
            group or 1,
            list(dilations or ones),
        )
        return (out.numpy(),)


class Erf(OpRun):
    """The reference one rounds to float32."""

    op_domain = ""

    def _run(self, x):
        return (torch.erf(_tensor(x)).numpy(),)


class Gelu(OpRun):
    """The reference one is a function with float32 constants."""

    op_domain = ""

    def _run(self, x, approximate=None):
        return (torch.nn.functional.gelu(_tensor(x), approximate=_text(approximate, "none")).numpy(),)


class GridSample(OpRun):
    """The reference one computes partly in float32, is wrong at borders of cubic patches, and has no names of opset 16."""

    op_domain = ""

    def _run(self, X, grid, mode=None, padding_mode=None, align_corners=None):
        kind = {"linear": "bilinear", "cubic": "bicubic"}.get(_text(mode, "linear"), _text(mode, "linear"))
        out = torch.nn.functional.grid_sample(
            _tensor(X), _tensor(grid.astype(X.dtype)), kind, _text(padding_mode, "zeros"), bool(align_corners)
        )
        return (out.numpy(),)


def _text(value: Any, default: str) -> str:
    return value.decode() if isinstance(value, bytes) else value or default


FAST_OPS = [AveragePool, Conv, ConvTranspose, Erf, Gelu, GridSample, MaxPool]
FAITHFUL_OPS = [MaxPool]
"""For a graph in its own dtypes: the reference pooling loses NaN, which a maximum must keep."""
IMPRECISE = {
    "AffineGrid",
    "CausalConvWithState",
    "DynamicQuantizeLinear",
    "LinearAttention",
    "MelWeightMatrix",
}
"""Operators whose reference implementation computes partly in float32: they are exact only to float32's accuracy."""
