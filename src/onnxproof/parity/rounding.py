"""What float rounding may cost: after every operation, the error that a correct kernel of the module's dtype may make.

The amplitude is in units of the unit roundoff u and follows the operation: nothing for moving data, a few u of the result
for element-wise arithmetic, u of the sum of magnitudes for products and sums (with the length of the sum, and for plain sums
the very error that adding in order would make), u of 1 for functions that runtimes approximate with absolute accuracy. Run
several times with random signs, this shows where legal implementations of the same model may end up: amplified where the
model is ill-conditioned, flipped where a decision is close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

Amplitude = torch.Tensor | None
Rule = Callable[[Any, tuple[Any, ...], dict[str, Any], torch.Tensor], Amplitude]

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
"""Operations whose results need no rounding: they move, choose or compare."""


CORRECTLY_ROUNDED = frozenset("add add_ sub sub_ rsub mul mul_ div div_ sqrt reciprocal".split())
"""IEEE operations: where the exact result is a number of the narrow dtype, every kernel gives that number. Ties stay ties."""


def _length_factor(length: int) -> float:
    return 1.0 + math.sqrt(max(length, 1)) / 8


def _magnitudes(values: Any) -> Any:
    return [v.abs() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in values]


def _product(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    """Matrix products and convolutions: the same operation on magnitudes bounds the sum of |terms|."""
    sums = func(*_magnitudes(args), **{k: abs(v) if k in ("alpha", "beta") else v for k, v in kwargs.items()})
    return sums.abs() * _length_factor(_contracted(func, args))


def _contracted(func: Any, args: tuple[Any, ...]) -> int:
    """The length of the sum behind each element of a product."""
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    name = func.overloadpacket.__name__
    if "conv" in name:
        weight = tensors[1]
        return int(weight[0].numel()) if weight.shape[0] else 1
    left = tensors[1] if name in ("addmm", "baddbmm", "addbmm", "addmv") and len(tensors) > 2 else tensors[0]
    return int(left.shape[-1]) if left.ndim else 1


def _sum(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    """Sums and means: what adding in order loses, and a little for every other order."""
    source = args[0]
    if not source.is_floating_point():
        return None
    dims = _dims(args[1] if len(args) > 1 else kwargs.get("dim"), source.ndim)
    keep = bool(args[2]) if len(args) > 2 and isinstance(args[2], bool) else bool(kwargs.get("keepdim", False))
    length = math.prod(source.shape[d] for d in dims)
    spread = source.abs().sum(dims, keepdim=keep) * _length_factor(length)
    lost = _lost_in_order(source, dims).reshape(spread.shape)
    divisor = max(length, 1) if func.overloadpacket.__name__ == "mean" else 1
    return (spread + lost) / divisor


def _dims(given: Any, rank: int) -> list[int]:
    if given is None or (isinstance(given, (list, tuple)) and not given):
        return list(range(rank))
    return [d % rank for d in (given if isinstance(given, (list, tuple)) else [given])] if rank else []


def _lost_in_order(source: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """|sum in order in float32 − sum|, in units of float32's u (other dtypes scale alike)."""
    kept = [d for d in range(source.ndim) if d not in dims]
    rows = source.permute(*kept, *dims).reshape(*[source.shape[d] for d in kept], -1) if dims else source[..., None]
    if rows.shape[-1] < 2:
        return torch.zeros(rows.shape[:-1], dtype=torch.float64)
    values = rows.detach().numpy()
    with np.errstate(all="ignore"):
        ordered = np.add.accumulate(values.astype(np.float32), axis=-1, dtype=np.float32)[..., -1]
        lost = np.abs(ordered.astype(np.float64) - values.astype(np.float32).astype(np.float64).sum(-1))
    return torch.from_numpy(np.asarray(np.nan_to_num(lost, posinf=0.0) * 2.0**24))


def _cumulative(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    """Running sums: the error of each prefix, added in order."""
    source, dim = args[0], args[1] if len(args) > 1 else kwargs["dim"]
    if not source.is_floating_point() or not source.ndim:
        return None
    values = source.detach().numpy()
    with np.errstate(all="ignore"):
        ordered = np.add.accumulate(values.astype(np.float32), axis=dim, dtype=np.float32).astype(np.float64)
        lost = np.nan_to_num(np.abs(ordered - np.add.accumulate(values, axis=dim)), posinf=0.0) * 2.0**24
    return torch.from_numpy(np.asarray(lost)) + source.abs().cumsum(dim) * _length_factor(source.shape[dim])


def _spread(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    """Variances and standard deviations: kernels may compute E[x²] − E[x]²."""
    source = args[0]
    dims = _dims(args[1] if len(args) > 1 and not isinstance(args[1], bool) else kwargs.get("dim"), source.ndim)
    length = math.prod(source.shape[d] for d in dims)
    square = source.square().mean(dims, keepdim=True).expand_as(source).amax() if source.numel() else source.sum()
    if func.overloadpacket.__name__ == "std":
        square = square / (2 * out.abs() + 1e-30)
    return (square + out.abs()) * _length_factor(length)


def _norm(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    length = max(1, args[0].numel() // max(1, out.numel()))
    return out.abs() * 2 * _length_factor(length)


def _normalised(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    """Layer, group and instance norms: cancellation in x − mean, and in E[x²] − E[x]² where the mean is large."""
    source = args[0]
    name = func.overloadpacket.__name__
    if name == "native_layer_norm":
        dims = list(range(source.ndim - len(args[1]), source.ndim))
        rows = source
    else:
        groups = int(args[6]) if name == "native_group_norm" else source.shape[1]
        rows = source.reshape(source.shape[0], groups, -1)
        dims = [2]
    length = math.prod(rows.shape[d] for d in dims)
    mean, variance = rows.mean(dims, keepdim=True), rows.var(dims, unbiased=False, keepdim=True)
    square = rows.square().mean(dims, keepdim=True)
    epsilon = max([a for a in args if isinstance(a, float)], default=1e-5) or 1e-5
    deviation = (variance + epsilon).sqrt()
    lost = (rows.abs() + mean.abs()) / deviation
    squeezed = (
        (square / (variance + epsilon)).clamp(max=1e8) * ((rows - mean).abs() / deviation) * _length_factor(length)
    )
    weight = next((a.abs().amax() for a in args[1:] if isinstance(a, torch.Tensor) and a.numel()), torch.ones(()))
    return ((2 * lost + squeezed) * weight).reshape(source.shape) + out.abs()


def _batch_norm(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    source, weight, _, mean, variance = args[:5]
    if mean is None or variance is None or not torch.is_tensor(mean):
        return None
    shape = [1, -1] + [1] * (source.ndim - 2)
    epsilon = max([a for a in args if isinstance(a, float)], default=1e-5)
    scale = (weight.abs() if torch.is_tensor(weight) else 1.0) / (variance + min(epsilon, 1e-3)).sqrt()
    return 2 * (source.abs() + mean.abs().reshape(shape)) * scale.reshape(shape) + 2 * out.abs()


def _softmax(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    source, dim = args[0], args[1]
    if not source.numel() or not source.ndim:
        return out.abs()
    below = (source.amax(dim, keepdim=True) - source).nan_to_num(nan=0.0, posinf=0.0).clamp(max=1e6)
    if func.overloadpacket.__name__ == "_log_softmax":
        return 2 + 2 * out.abs().nan_to_num(posinf=0.0) + source.abs().nan_to_num(nan=0.0, posinf=0.0)
    return out.abs() * (4 + 2 * below + _length_factor(source.shape[dim]))


def _attention(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    query, key, value = args[:3]
    width = max(1, int(query.shape[-1]))
    scores = (query.abs() @ key.abs().transpose(-1, -2)).amax() / math.sqrt(width) if out.numel() else torch.zeros(())
    return (8 + 2 * scores * _length_factor(width)) * value.abs().amax() * torch.ones_like(out)


def _pooled(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    sums = func(*_magnitudes(args), **kwargs)
    return sums * _length_factor(max(1, args[0].numel() // max(1, out.numel())) * 9)


def _resampled(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    """Interpolation: coordinates of size s carry an error of s·u into the weights."""
    top = args[0].abs().amax() if args[0].numel() else torch.zeros(())
    return (4.0 + max(args[0].shape[2:], default=1)) * top * torch.ones_like(out)


def _bounded(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    """Functions with results of size 1, which runtimes approximate with absolute accuracy."""
    return 4 + 4 * out.abs()


def _gated(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    """x times something of size 1."""
    return 4 * args[0].abs() + 4 * out.abs()


def _exponential(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    size = args[0].abs() if isinstance(args[0], torch.Tensor) else torch.tensor(0.0)
    return out.abs() * (4 + 2 * size.nan_to_num(posinf=0.0)) + (4.0 if func.overloadpacket.__name__ == "expm1" else 0.0)


def _power(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    return out.abs() * (4 + 4 * out.abs().clamp(min=1e-300).log().abs().nan_to_num(posinf=0.0))


def _joined(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    """Sums of a few tensors: u of each term, since kernels fuse and reorder them."""
    terms = [a.abs() for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
    total = out.abs()
    for term in terms:
        total = total + term
    return total.expand_as(out) if total.shape != out.shape else total


def _product_of_all(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    return out.abs() * max(1, args[0].numel() // max(1, out.numel()))


def _transformed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    # Transforms of awkward lengths are computed term by term, with angles that grow with the length.
    length = max(args[0].shape, default=1)
    return (8 + 4 * length) * out.abs().amax() * torch.ones_like(out.abs()) if out.numel() else None


def _scattered(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    top = max(
        (float(a.abs().amax()) for a in args if torch.is_tensor(a) and a.is_floating_point() and a.numel()), default=0.0
    )
    return 2 * out.abs() + 2 * top


def _relative(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: torch.Tensor) -> Amplitude:
    return 4 * out.abs()


def _rules(rule: Rule, names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


RULES: dict[str, Rule] = {
    **_rules(
        _product,
        "mm bmm addmm baddbmm addbmm mv addmv dot vdot convolution _convolution linear matmul mkldnn_convolution",
    ),
    **_rules(_sum, "sum mean nansum nanmean"),
    **_rules(_cumulative, "cumsum cumsum_"),
    **_rules(_spread, "var std var_mean std_mean"),
    **_rules(_norm, "norm linalg_vector_norm linalg_norm logsumexp"),
    **_rules(_normalised, "native_layer_norm native_group_norm"),
    **_rules(
        _batch_norm, "native_batch_norm _native_batch_norm_legit_no_training cudnn_batch_norm _native_batch_norm_legit"
    ),
    **_rules(_softmax, "_softmax _log_softmax _safe_softmax"),
    **_rules(
        _attention,
        "scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_attention_math",
    ),
    **_rules(_pooled, "avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d"),
    **_rules(
        _resampled,
        """upsample_bilinear2d upsample_bicubic2d upsample_linear1d upsample_trilinear3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa
        grid_sampler_2d grid_sampler_3d""",
    ),
    **_rules(
        _bounded,
        """sigmoid sigmoid_ tanh tanh_ erf erfc sin cos tan atan asin acos atan2 log log2 log10 log1p softplus log_sigmoid_forward logaddexp
        logaddexp2 hardsigmoid cosh sinh acosh asinh atanh logit remainder fmod special_entr digamma lgamma erfinv""",
    ),
    **_rules(_gated, "gelu silu silu_ mish mish_ hardswish hardswish_ elu elu_ selu celu glu prelu rrelu_with_noise"),
    **_rules(_exponential, "exp exp_ exp2 expm1"),
    **_rules(_power, "pow pow_"),
    **_rules(_joined, "add add_ sub sub_ rsub addcmul addcdiv lerp"),
    **_rules(_product_of_all, "prod cumprod"),
    **_rules(
        _transformed, "_fft_r2c _fft_c2r _fft_c2c linalg_inv_ex linalg_solve_ex _linalg_solve_ex linalg_cholesky_ex"
    ),
    **_rules(
        _scattered,
        "scatter_add scatter_add_ index_add index_add_ scatter_reduce scatter_reduce_ _embedding_bag _embedding_bag_forward_only",
    ),
}


class Injector:
    """Calls operations and adds a legal rounding error to what they give.

    With `tainted` inputs, only results that do not depend on them are changed: the constants that an exporter folds.
    """

    def __init__(
        self, unit: float, narrow: torch.dtype, seed: int, tainted: Sequence[torch.Tensor] | None = None
    ) -> None:
        self._unit = unit
        self._narrow = narrow
        self._largest = torch.finfo(narrow).max
        self._generator = torch.Generator().manual_seed(seed)
        # Tensors are kept alive so that no address is used twice.
        self._alive = list(tainted) if tainted is not None else None
        self._tainted = {_address(t) for t in tainted or ()}
        self.injected = 0

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run the operation and round."""
        dependent = self._alive is not None and self._depends(args, kwargs)
        rule = None if dependent or func.is_view else self._rule(func)
        before = _tensors(args[:1]) if rule is not None and func._schema.is_mutable else []
        saved = [tensor.clone() for tensor in before]
        out = func(*args, **kwargs)
        if dependent:
            self._taint(out)
        if rule is None:
            return out
        if func._schema.is_mutable:
            self._round_in_place(func, rule, (*saved, *args[1:]) if saved else args, kwargs, out)
            return out
        if isinstance(out, torch.Tensor):
            return self._rounded(func, rule, args, kwargs, out)
        if isinstance(out, (tuple, list)):
            return type(out)([self._rounded(func, rule, args, kwargs, o) if i == 0 else o for i, o in enumerate(out)])
        return out

    @staticmethod
    def _rule(func: Any) -> Rule | None:
        name = func.overloadpacket.__name__
        if name in EXACT or name.rstrip("_") in EXACT:
            return None
        return RULES.get(name, _relative)

    def _rounded(self, func: Any, rule: Rule, args: Any, kwargs: Any, out: Any) -> Any:
        error = self._error(func, rule, args, kwargs, out)
        if error is None:
            return out
        total = out + error
        if out.is_complex():
            return total
        return torch.where(total.abs() > self._largest, torch.sign(total) * math.inf, total)

    def _round_in_place(self, func: Any, rule: Rule, args: Any, kwargs: Any, out: Any) -> None:
        target = out if isinstance(out, torch.Tensor) else None
        error = self._error(func, rule, args, kwargs, target)
        if error is not None and target is not None:
            target.add_(error)

    def _error(self, func: Any, rule: Rule, args: Any, kwargs: Any, out: Any) -> torch.Tensor | None:
        if not isinstance(out, torch.Tensor) or not (out.is_floating_point() or out.is_complex()) or not out.numel():
            return None
        try:
            amplitude = rule(func, args, kwargs, out)
        except (RuntimeError, IndexError, TypeError, ValueError, AttributeError):
            amplitude = _relative(func, args, kwargs, out)  # an unusual overload: fall back to a plain relative error
        if amplitude is None:
            return None
        if func.overloadpacket.__name__ in CORRECTLY_ROUNDED:
            amplitude = torch.where(out == out.to(self._narrow).to(out.dtype), 0.0, amplitude)
        self.injected += 1
        signs = torch.rand(out.shape, generator=self._generator, dtype=torch.float64) * 2 - 1
        # Constant rows round alike: half of the error is common to the whole tensor.
        common = float(torch.rand((), generator=self._generator, dtype=torch.float64) * 2 - 1)
        error = torch.where(torch.isfinite(out.abs()), (signs + common) * self._unit * amplitude, 0.0)
        return error.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).expand_as(out)

    def _depends(self, args: Any, kwargs: Any) -> bool:
        return any(_address(t) in self._tainted for t in _tensors([args, kwargs]))

    def _taint(self, out: Any) -> None:
        assert self._alive is not None
        for tensor in _tensors([out]):
            self._alive.append(tensor)
            self._tainted.add(_address(tensor))


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _tensors(values: Any) -> list[torch.Tensor]:
    from torch.utils._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
