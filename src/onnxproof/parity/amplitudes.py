"""What float rounding may cost an operation: the error that a correct kernel of the module's dtype may make.

In units of the unit roundoff u, following the operation: nothing for moving data, a few u of the result for element-wise arithmetic, u of
the sum of magnitudes for products and sums (with the length of the sum, and for plain sums the very error that adding in order would
make), u of 1 for functions that runtimes approximate with absolute accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

Amplitude = torch.Tensor | None

# Operations whose results need no rounding: they move, choose or compare.
EXACT = frozenset(
    """abs amax amin arange argmax argmin argsort bernoulli bitwise_and bitwise_not bitwise_or bitwise_xor
    bucketize cat ceil clamp clamp_max clamp_min clone constant_pad_nd contiguous copy copy_ detach diag_embed
    embedding empty empty_like empty_strided eq eye fill fill_ flip floor floor_divide full full_like gather ge
    gt hardtanh hardtanh_ im2col index index_put index_put_ index_select isfinite isinf isnan le leaky_relu
    lift_fresh lift_fresh_copy linspace logical_and logical_not logical_or lt masked_fill masked_fill_
    masked_scatter masked_select max max_pool2d_with_indices max_pool3d_with_indices maximum min minimum mode
    median ne neg new_empty new_full new_ones new_zeros nonzero one_hot ones ones_like pixel_shuffle
    pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d relu relu_ repeat repeat_interleave
    replication_pad1d replication_pad2d replication_pad3d roll round scalar_tensor scatter scatter_ searchsorted
    select_scatter sgn sign slice_scatter sort stack threshold threshold_ topk tril triu trunc
    unique_consecutive upsample_nearest1d upsample_nearest2d upsample_nearest3d where zero_ zeros zeros_like
    zeros_ _local_scalar_dense _to_copy _unique2 native_dropout adaptive_max_pool2d unfold heaviside signbit
    channel_shuffle _embedding_bag_exact set_ resize_ random_ uniform_ normal_ rand randn""".split()
)


# Where SELU ends far below zero.
SELU = 1.7580993408473766


@dataclass(frozen=True)
class Operation:
    """One call of an operation and its result."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: torch.Tensor
    sizes: torch.dtype = torch.float32
    """The dtype in which magnitudes are computed: products in float64 are slow, and an error needs few digits."""

    @property
    def name(self) -> str:
        """The operation's name, without its overload."""
        return str(self.func.overloadpacket.__name__)

    @property
    def source(self) -> Any:
        """What it is applied to."""
        return self.args[0]

    @property
    def gathered(self) -> int:
        """How many elements of the source are behind one of the result."""
        return max(1, self.source.numel() // max(1, self.out.numel()))

    def on_magnitudes(self, **changed: Any) -> torch.Tensor:
        """The same operation on absolute values."""
        floats = [isinstance(v, torch.Tensor) and v.is_floating_point() for v in self.args]
        sizes = [_take_sizes(v, self.sizes) if wide else v for v, wide in zip(self.args, floats, strict=True)]
        result: torch.Tensor = self.func(*sizes, **{**self.kwargs, **changed})
        return result


Rule = Callable[[Operation], Amplitude]


def _estimate_growth(length: int) -> float:
    # Errors of single additions have either sign: they add up like a random walk, with the root of the length.
    return 1.0 + math.sqrt(max(length, 1)) / 8


def _take_sizes(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """|tensor|; a weight that is the same for every row of a batch stays one."""
    held = tensor
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            held = held.narrow(dim, 0, 1)
    return held.abs().to(dtype).expand(tensor.shape)


def lose_in_products(op: Operation) -> Amplitude:
    """Matrix products and convolutions: the same operation on magnitudes bounds the sum of |terms|."""
    factors = {k: abs(v) for k, v in op.kwargs.items() if k in ("alpha", "beta")}
    return op.on_magnitudes(**factors).abs() * _estimate_growth(_count_terms(op))


def _count_terms(op: Operation) -> int:
    """The length of the sum behind each element of a product."""
    tensors = [a for a in op.args if isinstance(a, torch.Tensor)]
    if "conv" in op.name:
        weight = tensors[1]
        return int(weight[0].numel()) if weight.shape[0] else 1
    left = tensors[1] if op.name in ("addmm", "baddbmm", "addbmm", "addmv") and len(tensors) > 2 else tensors[0]
    return int(left.shape[-1]) if left.ndim else 1


def lose_in_sums(op: Operation) -> Amplitude:
    """Sums and means: what adding in order loses, and a little for every other order."""
    source, args = op.source, op.args
    if not source.is_floating_point():
        return None
    dims = _list_dims(args[1] if len(args) > 1 else op.kwargs.get("dim"), source.ndim)
    length = math.prod(source.shape[d] for d in dims)
    lost = _lose_in_mean(source, dims).reshape(op.out.shape)
    return lost if op.name == "mean" else lost * max(length, 1)


def _list_dims(given: Any, rank: int) -> list[int]:
    if given is None or (isinstance(given, (list, tuple)) and not given):
        return list(range(rank))
    return [d % rank for d in (given if isinstance(given, (list, tuple)) else [given])] if rank else []


def _measure_loss(source: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """|sum in order in float32 − sum|, in units of float32's u (other dtypes scale alike)."""
    kept = [d for d in range(source.ndim) if d not in dims]
    rows = source.permute(*kept, *dims).reshape(*[source.shape[d] for d in kept], -1) if dims else source[..., None]
    if rows.shape[-1] < 2:
        return torch.zeros(rows.shape[:-1], dtype=torch.float64)
    values = rows.detach().numpy()
    with np.errstate(all="ignore"):
        # Not np.sum, which adds in pairs and loses far less than a kernel that adds in order.
        # Both sums are of the rounded terms: what rounding the terms costs is not lost by adding.
        ordered = np.add.accumulate(values.astype(np.float32), axis=-1, dtype=np.float32)[..., -1]
        lost = np.abs(ordered.astype(np.float64) - values.astype(np.float32).astype(np.float64).sum(-1))
    return torch.from_numpy(np.asarray(np.nan_to_num(lost, posinf=0.0) * 2.0**24))


def _cumulative(op: Operation) -> Amplitude:
    """Running sums: the error of each prefix, added in order."""
    source, dim = op.source, op.args[1] if len(op.args) > 1 else op.kwargs["dim"]
    if not source.is_floating_point() or not source.ndim:
        return None
    values = source.detach().numpy()
    with np.errstate(all="ignore"):
        ordered = np.add.accumulate(values.astype(np.float32), axis=dim, dtype=np.float32).astype(np.float64)
        lost = np.nan_to_num(np.abs(ordered - np.add.accumulate(values, axis=dim)), posinf=0.0) * 2.0**24
    return torch.from_numpy(np.asarray(lost)) + source.abs().cumsum(dim) * _estimate_growth(source.shape[dim])


def _spread(op: Operation) -> Amplitude:
    """Variances and standard deviations, of deviations from the mean.

    Not E[x²] − E[x]², which loses every digit where the mean is large: no exporter writes it, and no kernel of a variance does.
    """
    source, dims = op.source, _read_spread_dims(op)
    growth = _estimate_growth(math.prod(source.shape[d] for d in dims))
    # What the mean loses is in every deviation alike: it counts only squared.
    lost = _lose_in_mean(source, dims).reshape(op.out.shape).square() * 2.0**-22
    if op.name in ("std", "std_mean"):
        # Where nothing is spread, its root.
        lost = torch.minimum(lost / (2 * op.out.abs() + 1e-30), (lost * 2.0**24).sqrt())
    return lost + op.out.abs() * (2 * growth)


def _lose_in_mean(source: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """Of the mean over some dims, without these."""
    length = math.prod(source.shape[d] for d in dims)
    kept = [d for d in range(source.ndim) if d not in dims]
    rows = source.permute(*kept, *dims).reshape(*[source.shape[d] for d in kept], -1)
    return (rows.abs().sum(-1) * _estimate_growth(length) + _measure_loss(source, dims)) / max(length, 1)


def lose_beside(op: Operation) -> Amplitude:
    """Further results: the mean beside a variance; any other loses a few u."""
    if op.name not in ("var_mean", "std_mean"):
        return lose_relatively(op)
    return _lose_in_mean(op.source, _read_spread_dims(op)).reshape(op.out.shape)


def _read_spread_dims(op: Operation) -> list[int]:
    given = op.args[1] if len(op.args) > 1 and not isinstance(op.args[1], bool) else op.kwargs.get("dim")
    return _list_dims(given, op.source.ndim)


def _normalised(op: Operation) -> Amplitude:
    """Layer and group norms."""
    source, args = op.source, op.args
    if op.name == "native_layer_norm":
        return _standardised(op, source, list(range(source.ndim - len(args[1]), source.ndim)))
    return _standardised(op, source.reshape(source.shape[0], int(args[6]), -1), [2])


def _standardised(op: Operation, rows: torch.Tensor, dims: list[int]) -> torch.Tensor:
    """Cancellation in x − mean, and in E[x²] − E[x]² where the mean is large."""
    args = op.args
    length = math.prod(rows.shape[d] for d in dims)
    mean, variance = rows.mean(dims, keepdim=True), rows.var(dims, unbiased=False, keepdim=True)
    square = rows.square().mean(dims, keepdim=True)
    epsilon = next((a for a in reversed(args) if isinstance(a, float)), 1e-5) or 1e-5  # a momentum comes before it
    deviation = (variance + epsilon).sqrt()
    # Values that cancel in the mean leave it with an error of their own size, equal ones that are added in order with one that grows.
    added = _measure_loss(rows, dims).reshape(mean.shape) / max(length, 1)
    lost = (rows.abs() + rows.abs().mean(dims, keepdim=True) + added) / deviation
    squeezed = (
        (square / (variance + epsilon)).clamp(max=1e8) * ((rows - mean).abs() / deviation) * _estimate_growth(length)
    )
    weight = next((a.abs().amax() for a in args[1:] if isinstance(a, torch.Tensor) and a.numel()), torch.ones(()))
    return ((2 * lost + squeezed) * weight).reshape(op.source.shape) + op.out.abs()


def _batch_norm(op: Operation) -> Amplitude:
    source, weight, _, mean, variance = op.args[:5]
    if not torch.is_tensor(mean) or not torch.is_tensor(variance) or op.args[5] is True:
        # Of the batch itself: instance norms are this, with every instance a channel.
        return _standardised(op, source, [d for d in range(source.ndim) if d != 1])
    shape = [1, -1] + [1] * (source.ndim - 2)
    epsilon = max([a for a in op.args if isinstance(a, float)], default=1e-5)
    scale = (weight.abs() if torch.is_tensor(weight) else 1.0) / (variance + min(epsilon, 1e-3)).sqrt()
    return 2 * (source.abs() + mean.abs().reshape(shape)) * scale.reshape(shape) + 2 * op.out.abs()


def _softmax(op: Operation) -> Amplitude:
    source, dim = op.args[:2]
    if not source.numel() or not source.ndim:
        return op.out.abs()
    if op.name == "_log_softmax":
        return 2 + 2 * op.out.abs().nan_to_num(posinf=0.0) + source.abs().nan_to_num(nan=0.0, posinf=0.0)
    below = (source.amax(dim, keepdim=True) - source).nan_to_num(nan=0.0, posinf=0.0).clamp(max=1e6)
    return op.out.abs() * (4 + 2 * below + _estimate_growth(source.shape[dim]))


def _attention(op: Operation) -> Amplitude:
    query, key, value = op.args[:3]
    width = max(1, int(query.shape[-1]))
    scores = (query.abs() @ key.abs().transpose(-1, -2)).amax() / math.sqrt(width)
    # Twice: the softmax adds up as many terms as there are keys, and so does the product with the values.
    sums = 2 * _estimate_growth(int(key.shape[-2]))
    return (6 + sums + 2 * scores * _estimate_growth(width)) * value.abs().amax() * torch.ones_like(op.out)


def _resampled(op: Operation) -> Amplitude:
    """Interpolation: coordinates of size s carry an error of s·u into the weights."""
    return (4.0 + max(op.source.shape[2:], default=1)) * op.source.abs().amax() * torch.ones_like(op.out)


def _exponential(op: Operation) -> Amplitude:
    return op.out.abs() * (4 + 2 * op.source.abs().nan_to_num(posinf=0.0))


def _saturated(op: Operation) -> Amplitude:
    """ELU and its kind: kernels take 1 from an exponential, which below zero costs u of the value that they end at."""
    height = SELU if op.name.startswith("selu") else math.prod(abs(float(a)) for a in op.args[1:3])
    return 4 * op.out.abs() + torch.where(op.source < 0, 4 * height, 0.0)


def _joined(op: Operation) -> Amplitude:
    """Sums of a few tensors: u of each term, since kernels fuse and reorder them."""
    terms = [a.abs() for a in op.args if isinstance(a, torch.Tensor) and a.is_floating_point()]
    return sum(terms, start=op.out.abs()).expand_as(op.out)


def _transformed(op: Operation) -> Amplitude:
    # Transforms of awkward lengths are computed term by term, with angles that grow with the length.
    length = max(op.source.shape, default=1)
    return (8 + 4 * length) * op.out.abs().amax() * torch.ones_like(op.out.abs())


def _scattered(op: Operation) -> Amplitude:
    """What is added at a place loses by what is added there; what is chosen among others loses nothing."""
    chosen = next((a for a in (*op.args, *op.kwargs.values()) if isinstance(a, str)), "")
    if chosen in ("amax", "amin"):
        return torch.zeros_like(op.out)
    # Each of several that meet costs at most what they are together.
    factors = {"alpha": abs(op.kwargs["alpha"])} if "alpha" in op.kwargs else {}
    return lose_relatively(op) if chosen == "prod" else 4 * op.on_magnitudes(**factors).abs()


def _bagged(op: Operation) -> Amplitude:
    floats = [a for a in op.args if torch.is_tensor(a) and a.is_floating_point() and a.numel()]
    return 2 * op.out.abs() + 2 * max((float(a.abs().amax()) for a in floats), default=0.0)


def _gated(op: Operation) -> Amplitude:
    """One half of the source times something of size 1 that the other half decides."""
    dim = op.args[1] if len(op.args) > 1 else op.kwargs.get("dim", -1)
    return 4 * op.source.chunk(2, dim)[0].abs() + 4 * op.out.abs()


def _determinant(op: Operation) -> Amplitude:
    """Terms of the size of the product of the rows' lengths cancel, to nothing where rows depend on each other."""
    size = max(1, int(op.source.shape[-1]))
    return size * op.source.norm(dim=-1).prod(-1)


def lose_relatively(op: Operation) -> Amplitude:
    return 4 * op.out.abs()


_RULES: dict[str, Rule] = {
    """mm bmm addmm baddbmm addbmm mv addmv dot vdot convolution _convolution linear matmul
    mkldnn_convolution""": lose_in_products,
    "sum mean nansum nanmean": lose_in_sums,
    "cumsum cumsum_": _cumulative,
    "var std var_mean std_mean": _spread,
    "norm linalg_vector_norm linalg_norm logsumexp": lambda op: op.out.abs() * 2 * _estimate_growth(op.gathered),
    "native_layer_norm native_group_norm": _normalised,
    "native_batch_norm _native_batch_norm_legit_no_training cudnn_batch_norm _native_batch_norm_legit": _batch_norm,
    "_softmax _log_softmax _safe_softmax": _softmax,
    """scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_attention_math""": _attention,
    """avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d""": lambda op: (
        op.on_magnitudes() * _estimate_growth(op.gathered * 9)
    ),
    """upsample_bilinear2d upsample_bicubic2d upsample_linear1d upsample_trilinear3d _upsample_bilinear2d_aa
    _upsample_bicubic2d_aa grid_sampler_2d grid_sampler_3d""": _resampled,
    # Functions with results of size 1, which runtimes approximate with absolute accuracy, or which cancel in PyTorch too. Not the other
    # elementary ones: every kernel of these keeps the digits of small results, and who writes them as a difference does not.
    """sigmoid sigmoid_ hardsigmoid logaddexp logaddexp2 logit remainder fmod special_entr digamma lgamma erfinv""": lambda op: (
        4 + 4 * op.out.abs()
    ),
    # x times something of size 1.
    """gelu silu silu_ mish mish_ hardswish hardswish_ prelu rrelu_with_noise""": lambda op: (
        4 * op.source.abs() + 4 * op.out.abs()
    ),
    "elu elu_ selu selu_ celu celu_": _saturated,
    "glu": _gated,
    "_linalg_det": _determinant,
    "exp exp_ exp2 expm1": _exponential,
    "pow pow_": lambda op: op.out.abs() * (4 + 4 * op.out.abs().clamp(min=1e-300).log().abs().nan_to_num(posinf=0.0)),
    "add add_ sub sub_ rsub addcmul addcdiv lerp": _joined,
    "prod cumprod": lambda op: op.out.abs() * op.gathered,
    "_fft_r2c _fft_c2r _fft_c2c linalg_inv_ex linalg_solve_ex _linalg_solve_ex linalg_cholesky_ex": _transformed,
    "scatter_add scatter_add_ index_add index_add_ scatter_reduce scatter_reduce_": _scattered,
    "_embedding_bag _embedding_bag_forward_only": _bagged,
}
# Operation → what it may lose; any other loses a few u of its result.
RULES = {name: rule for names, rule in _RULES.items() for name in names.split()}


@cache
def find_rule(func: Any) -> Rule | None:
    """What an operation may lose; None where it moves, chooses or compares."""
    name = func.overloadpacket.__name__
    exact = func.is_view or name in EXACT or name.rstrip("_") in EXACT
    return None if exact else RULES.get(name, lose_relatively)


def count_operations(func: Any, args: Sequence[Any], out: Any) -> float:
    """Additions and multiplications behind a result; moving data is free."""
    results = [t for t in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(t, torch.Tensor)]
    rule, size = find_rule(func), float(sum(t.numel() for t in results))
    if rule is lose_in_products:
        return 2 * size * _count_terms(Operation(func, tuple(args), {}, results[0]))
    if rule is _attention:
        return 4 * size * float(args[1].shape[-2])
    return 0.0 if rule is None else 40 * size  # each element goes through memory
