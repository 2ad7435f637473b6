"""Operators that the exporters do not translate, and the nearest form that they do.

Each form was exported and verified: `benchmarks/failures` has the model before and after for those that say so in code.
"""

from __future__ import annotations

import re

FORMS: dict[str, str] = {
    "median": "`x.sort(dim).values` at index `(n - 1) // 2` is what `median` returns",
    "nanmedian": "`x.sort(dim).values` (NaN goes last) at index `((~x.isnan()).sum(dim) - 1) // 2`, by `gather`",
    "mode": "count with `(x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)` and take the smallest of the most frequent",
    "kthvalue": "`x.topk(k, dim, largest=False).values[..., -1]`",
    "amax": "`x.max()`, or `amax` with a dimension",
    "amin": "`x.min()`, or `amin` with a dimension",
    "cummax": "a triangular mask and `amax`: `torch.where(past, x.unsqueeze(-2), -inf).amax(-1)`",
    "cummin": "a triangular mask and `amin`: `torch.where(past, x.unsqueeze(-2), inf).amin(-1)`",
    "cumprod": "`x.abs().log().cumsum(dim).exp()` with the sign counted apart",
    "prod": "`x.abs().log().sum(dim).exp()` with the sign counted apart",
    "sort.stable": "`x.sort(dim)` without `stable=True` (ONNX's TopK keeps the lower index first)",
    "sort": "`x.sort(dim)` without `stable=True` (ONNX's TopK keeps the lower index first)",
    "searchsorted": "`(x.unsqueeze(-1) > edges).sum(-1)`",
    "bucketize": "`(x.unsqueeze(-1) > edges).sum(-1)`",
    "masked_select": "`x[mask]`",
    "index_reduce": "`scatter_reduce` with the index expanded to the source's shape",
    "_cdist_forward": "`(a.unsqueeze(-2) - b.unsqueeze(-3)).square().sum(-1).sqrt()`",
    "cdist": "`(a.unsqueeze(-2) - b.unsqueeze(-3)).square().sum(-1).sqrt()`",
    "signbit": "`x < 0` (it differs for −0.0 only)",
    "copysign": "`torch.where(y < 0, -x.abs(), x.abs())` (it differs for −0.0 only)",
    "rrelu_with_noise_functional": "`F.leaky_relu(x, (lower + upper) / 2)`, which is what rrelu does in eval mode",
    "rrelu": "`F.leaky_relu(x, (lower + upper) / 2)`, which is what rrelu does in eval mode",
    "adaptive_max_pool2d": "`max_pool2d` with kernel and stride of input size / output size, where that divides",
    "sparse": "a dense matrix; ONNX has no sparse tensors",
    "_sparse_mm": "a dense matrix: `sparse.to_dense() @ x`",
    "linalg_inv_ex": "the inverse taken before export if the matrix is a weight; otherwise write the elimination out for the fixed size",
    "linalg_cholesky_ex": "the factor taken before export if the matrix is a weight; otherwise write it out for the fixed size",
    "_linalg_solve_ex": "the inverse taken before export if the matrix is a weight; otherwise write the elimination out for the fixed size",
    "_linalg_svd": "the decomposition taken before export if the matrix is a weight; ONNX has none",
    "_linalg_eigh": "the decomposition taken before export if the matrix is a weight; ONNX has none",
    "erf_inv": "a rational approximation of the inverse error function, written in torch",
    "erfinv": "a rational approximation of the inverse error function, written in torch",
    "lgamma": "Lanczos's series, written in torch",
    "unique_consecutive": "integers: the translation has them only",
    "histc": "`torch.histc` with min and max given, or comparisons with the edges and a sum",
}


def nearest(operator: str) -> str | None:
    """What to write instead of an operator (`aten.median.dim`, `prims.prod`, `aten::median`)."""
    parts = re.sub(r"::", ".", operator).split(".")
    for name in (".".join(parts[1:]), parts[1] if len(parts) > 1 else parts[0]):
        if name in FORMS:
            return FORMS[name]
    return None


REWRITTEN: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"divisor_override"), "multiply the average by `kernel area / divisor` instead of `divisor_override`"),
    (re.compile(r"floor_divide|//"), "`torch.round((a - torch.remainder(a, b)) / b)` floors as PyTorch does"),
    (
        re.compile(r"\.amax\(|\.amin\(|max_pool|\.max\("),
        "onnxruntime loses NaN here: test for it with `x.isnan().any(dim)`",
    ),
    (re.compile(r"bernoulli|rand"), "make the random numbers an input"),
    (re.compile(r"adaptive_\w+_pool"), "pool to size 1, or export for one input size (`--dynamic none`)"),
    (re.compile(r"int\(.*(?:shape|size)"), "stay with `x.shape[i]` and integer arithmetic: `x.shape[1] // 2`"),
    (re.compile(r"\bif\b.*(?:shape|size)"), "choose with `torch.cond`, or export one file for each size"),
    (re.compile(r"\.sum\(|\.mean\(|cumsum"), "cast the result back: `.sum(dim).to(x.dtype)`"),
    (re.compile(r"logaddexp"), "`torch.maximum(a, b) + torch.log1p(torch.exp(-(a - b).abs()))`"),
)
"""Lines that come out wrong silently, by what stands in them, and what to write instead."""


def rewritten(line: str) -> str | None:
    """What to write instead of a line that is exported wrongly."""
    return next((advice for fragment, advice in REWRITTEN if fragment.search(line)), None)
