"""Operators that the exporters do not translate, and what to write instead.

Every form was applied: `benchmarks/failures` has the model before and after, `tests/test_remedies.py` proves that both
compute the same and that the second ships. What takes more than a line is a function of `onnxproof.rewrites`.
"""

from __future__ import annotations

import re

from onnxproof.findings import entry_of


def _named(call: str, note: str = "") -> str:
    """A form that is a function of `onnxproof.rewrites`."""
    return f"`onnxproof.rewrites.{call}`, which is written in operators that export{note} (import it or copy it)"


BEFORE = "; where the matrix is a weight, compute it in `__init__` and keep it by `register_buffer`"
MEDIAN = "`x.sort(dim).values.select(dim, (n - 1) // 2)` with `n = x.shape[dim]` is what `median` returns for rows without NaN"
CUMPROD = "`sign * x.abs().log().cumsum(dim).exp()` with `sign = 1 - 2 * ((x < 0).to(torch.int64).cumsum(dim) % 2)` for `cumprod`"
STABLE = "`x.sort(dim)` without `stable=True` (ONNX's TopK keeps the lower index first)"
SEARCH = "`(x.unsqueeze(-1) > edges).sum(-1)`, with `>=` for `right=True`"
DISTANCE = "`(a.unsqueeze(-2) - b.unsqueeze(-3)).square().sum(-1).sqrt()`"
PAIRS = (
    "`(x[i] - x[j]).square().sum(-1).sqrt()` with `i, j = torch.triu_indices(n, n, 1)` for the fixed number of rows `n`"
)
COPYSIGN = "`torch.where(y < 0, -x.abs(), x.abs())` for `copysign(x, y)` (it differs for −0.0 only)"
RRELU = "`F.leaky_relu(x, (lower + upper) / 2)`, which is what rrelu does in eval mode"
SPARSE = "a dense matrix, `sparse.to_dense() @ x`; ONNX has no sparse tensors"
INVERSE = _named("inv(a)", " for a fixed size") + BEFORE
SOLVE = _named("solve(a, b)", " for a fixed size") + BEFORE
CHOLESKY = _named("cholesky(a)", " for a fixed size") + BEFORE
TRIANGULAR = _named("solve_triangular(a, b, upper=…)", " for a fixed size")
SVD = (
    _named("svd(a)", " for a fixed, small size") + BEFORE + "; `svdvals(a)` is `svd(a)[1]`, the norms "
    "`matrix_norm(a, 2)` and `'nuc'` are its `amax(-1)` and `sum(-1)`"
)
EIGH = _named("eigh(a)", " for a fixed, small size") + BEFORE
EIG = (
    "`onnxproof.rewrites.eigh(a)` where the matrix is symmetric; the values of others are complex, and nothing but "
    "computing them outside the model helps"
)
QR = _named("qr(a)", " for a fixed size") + BEFORE
SLOGDET = "`d = torch.linalg.det(a)` and `torch.sign(d), d.abs().log()`"
LSTSQ = "`onnxproof.rewrites.solve(a.mT @ a, a.mT @ b)` for a matrix of full rank with more rows than columns"
ERFINV = _named("erfinv(x)")
LGAMMA = _named("lgamma(x)")
DIGAMMA = _named("digamma(x)")
ERLANG = (
    "`1 - torch.exp(-x) * sum(x**k / math.factorial(k) for k in range(a))` where `a` is a fixed whole number "
    "(`igammac` without the `1 -`); for other `a` nothing but computing it outside the model helps"
)
HYPOT = "`(a.square() + b.square()).sqrt()` (it overflows where the square does)"
FMAX = "`torch.where(a.isnan(), b, torch.where(b.isnan(), a, torch.maximum(a, b)))` (`torch.minimum` for `fmin`)"
HISTC = (
    "`places = ((x - low) / (high - low) * bins).floor().clamp(max=bins - 1)` and "
    "`((places.flatten() == torch.arange(bins).unsqueeze(-1)) & (x >= low).flatten() & (x <= high).flatten()).sum(-1).to(x.dtype)`"
)
CONSECUTIVE = "`x[torch.cat([torch.ones(1, dtype=torch.bool), x[1:] != x[:-1]])]` with `x = x.flatten()`"
COV = "`d = x - x.mean(1, keepdim=True)` and `d @ d.T / (x.shape[1] - 1)`"
CORRCOEF = "`d = x - x.mean(1, keepdim=True)`, `d = d / d.norm(dim=1, keepdim=True)` and `(d @ d.T).clamp(-1, 1)`"
EQUAL = (
    "`(a == b).all()` stays a tensor: choose with `torch.where`; where the line calls `torch.cov` or `torch.corrcoef`, "
    f"which compare too: {COV}; {CORRCOEF}"
)
PUT = "`x.flatten().scatter(0, index, values).view(x.shape)`"
VANDER = (
    "`x.unsqueeze(-1) ** torch.arange(n)` with `n` fixed (`.flip(-1)` for `torch.vander`, unless `increasing=True`)"
)
AMINMAX = "`x.amin(dim), x.amax(dim)`, or `x.min(), x.max()` without a dimension"
SEGMENTS = (
    "`torch.zeros(segments, …).index_add(0, ids, x)` with `ids` of the rows, for the fixed number of segments (sums)"
)
FREQUENCIES = "the frequencies, which are constants, made in `__init__`: `self.register_buffer('frequencies', torch.fft.fftfreq(n))`"
BESSEL = ("i0", "bessel_i0", *(f"{prefix}_{name}" for prefix in ("bessel", "special") for name in ("i0e", "i1", "i1e")))

FORMS: dict[str, str] = {
    "median": MEDIAN,
    "nanmedian": "`torch.where(x.isnan(), torch.inf, x).sort(dim).values` at index `((~x.isnan()).sum(dim, keepdim=True) - 1).clamp(min=0) // 2`, by `gather`",
    "mode": "`same = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)` and `torch.where(same == same.amax(-1, keepdim=True), x, torch.inf).amin(-1)`",
    "kthvalue": "`x.topk(k, dim, largest=False).values[..., -1]`",
    "amax": "`x.max()`, or `amax` with a dimension",
    "amin": "`x.min()`, or `amin` with a dimension",
    "aminmax": AMINMAX,
    "cummax": "`torch.where(past, x.unsqueeze(-2), -torch.inf).amax(-1)` with `past = torch.ones(n, n).tril().bool()`",
    "cummin": "`torch.where(past, x.unsqueeze(-2), torch.inf).amin(-1)` with `past = torch.ones(n, n).tril().bool()`",
    "cumprod": CUMPROD,
    "prod": CUMPROD,
    "vander": VANDER,
    "sort.stable": STABLE,
    "sort": STABLE,
    "Sort": STABLE,
    "searchsorted": SEARCH,
    "masked_select": "`x[mask]`",
    "index_reduce": "`scatter_reduce` with the index expanded to the source's shape: `index.expand_as(source)`",
    "put": PUT,
    "segment_reduce": SEGMENTS,
    "_cdist_forward": DISTANCE,
    "cdist": DISTANCE,
    "_pdist_forward": PAIRS,
    "pdist": PAIRS,
    "signbit": COPYSIGN,
    "copysign": COPYSIGN,
    "hypot": HYPOT,
    "fmax": FMAX,
    "fmin": FMAX,
    "mT": "`x.transpose(-2, -1)`",
    "diagonal_scatter": "`torch.where(torch.eye(n, dtype=torch.bool), values.unsqueeze(-1), x)` for the main diagonal of square matrices",
    "rrelu_with_noise_functional": RRELU,
    "rrelu": RRELU,
    "adaptive_max_pool2d": _named("adaptive_max_pool2d(x, size)", " for a fixed input size"),
    "_adaptive_avg_pool3d": _named("adaptive_avg_pool3d(x, size)", " for a fixed input size"),
    "adaptive_avg_pool3d": _named("adaptive_avg_pool3d(x, size)", " for a fixed input size"),
    "adaptive_max_pool1d": "`onnxproof.rewrites.adaptive_max_pool2d(x.unsqueeze(-2), (1, size)).squeeze(-2)` for a fixed input size",
    "to_sparse": SPARSE,
    "_sparse_mm": SPARSE,
    "linalg_inv_ex": INVERSE,
    "linalg_inv": INVERSE,
    "_linalg_solve_ex": SOLVE,
    "linalg_solve": SOLVE,
    "linalg_lu": SOLVE,
    "linalg_lu_factor_ex": SOLVE,
    "linalg_lu_factor": SOLVE,
    "linalg_lstsq": LSTSQ,
    "linalg_pinv": _named("pinv(a)", " for a fixed, small size") + BEFORE,
    "linalg_cholesky_ex": CHOLESKY,
    "linalg_cholesky": CHOLESKY,
    "cholesky_solve": "`onnxproof.rewrites.solve_triangular` twice: `y` of `(l, b, upper=False)`, then `(l.mT, y, upper=True)`",
    "cholesky_inverse": "`onnxproof.rewrites.inv(l @ l.mT)` for a fixed size",
    "linalg_solve_triangular": TRIANGULAR,
    "triangular_solve": TRIANGULAR,
    "linalg_qr": QR,
    "_linalg_svd": SVD,
    "linalg_svd": SVD,
    "linalg_svdvals": SVD,
    "_linalg_eigh": EIGH,
    "linalg_eigh": EIGH,
    "linalg_eigvalsh": EIGH,
    "linalg_eig": EIG,
    "linalg_eigvals": EIG,
    "_linalg_slogdet": SLOGDET,
    "linalg_slogdet": SLOGDET,
    "linalg_matrix_exp": _named("matrix_exp(a)", " for a fixed size"),
    "erf_inv": ERFINV,
    "erfinv": ERFINV,
    "ndtri": _named("ndtri(p)"),
    "special_ndtri": _named("ndtri(p)"),
    "lgamma": LGAMMA,
    "digamma": DIGAMMA,
    "polygamma": _named("polygamma(n, x)", " for x > 0"),
    "igamma": ERLANG,
    "igammac": ERLANG,
    **{name: _named(f"{name.rpartition('_')[2]}(x)") for name in BESSEL},
    "unique_consecutive": CONSECUTIVE,
    "histc": HISTC,
    "histogram": HISTC,
    "equal": EQUAL,
    "cov": COV,
    "corrcoef": CORRCOEF,
    "scaled_dot_product_attention": "tensors of four dimensions: `F.scaled_dot_product_attention(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1)).squeeze(1)`",
    "fft_fftfreq": FREQUENCIES,
    "allclose": "`torch.isclose(a, b).all()` stays a tensor: choose with `torch.where`",
    "_sym_sqrt": "`x.shape[0] ** 0.5` for `math.sqrt(x.shape[0])`; for other functions of a size a tensor, `torch.full((), x.shape[0], dtype=x.dtype).log()`",
}
"""What to write instead, by the operator's name as the exporters print it; an overload's form stands before its operator's."""


NODE = re.compile(r"^%|(?<=[a-z])_\d+$")
"""What the name of a node has more than its operator's: `%amax_1`."""


def nearest(operator: str) -> str | None:
    """What to write instead of an operator (`aten.median.dim`, `prims.prod`, `aten::median`)."""
    parts = re.sub(r"::", ".", NODE.sub("", operator)).split(".")
    for name in (".".join(parts[1:]), parts[1] if len(parts) > 1 else parts[0]):
        if name in FORMS:
            return FORMS[name]
    return None


REWRITTEN: tuple[tuple[re.Pattern[str], str] | tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"divisor_override"), "multiply the average by `kernel area / divisor` instead of `divisor_override`"),
    (
        re.compile(r"floor_divide|//|rounding_mode\s*=\s*['\"]floor"),
        "`onnxproof.rewrites.floor_divide(a, b)` floors as PyTorch does (import it or copy it)",
    ),
    (
        re.compile(r"\.amax\(|\.amin\(|max_pool|\.max\("),
        "onnxruntime loses NaN here: test for it with `x.isnan().any(dim)`",
        "nan",
    ),
    (
        re.compile(r"scatter_reduce\(.*mean"),
        "divide a `scatter_add` of the values by one of ones: `o.scatter_add(d, i, x) / o.scatter_add(d, i, torch.ones_like(x)).clamp(min=1)`",
    ),
    (re.compile(r"bernoulli|rand"), "make the random numbers an input"),
    (re.compile(r"adaptive_\w+_pool"), "pool to size 1, or export for one input size (`--dynamic none`)"),
    (re.compile(r"int\(.*(?:shape|size)"), "stay with `x.shape[i]` and integer arithmetic: `x.shape[1] // 2`"),
    (re.compile(r"\bif\b.*(?:shape|size)"), "choose with `torch.cond`, or export one file for each size"),
    (
        re.compile(r"\.sum\(|\.mean\(|cumsum"),
        "say the dtype of the result: `.sum(dim, dtype=x.dtype)`; a cast behind it is dropped",
        "dtype",
    ),
    (
        re.compile(r"topk|sort|argmax|argmin"),
        "equal values (ties) come in another order; make them differ, as `torch.topk(x * n - torch.arange(n), k)` does for integers, "
        "or return the values and not their places",
        "discrete",
    ),
    (re.compile(r"logaddexp"), "`torch.maximum(a, b) + torch.log1p(torch.exp(-(a - b).abs()))`"),
)
"""Lines that come out wrong silently, by what stands in them, what to write instead, and what differs where it is for that alone."""


def rewritten(line: str, code: str) -> str | None:
    """What to write instead of a line that is exported wrongly, where the finding is of a kind that the advice is for."""
    differs = entry_of(code).differs
    fitting = (
        advice for fragment, advice, *only in REWRITTEN if fragment.search(line) and (not only or differs in only)
    )
    return next(fitting, None)
