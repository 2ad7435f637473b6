"""Failures and their remedies: for each name a function that fails, and one (or options) with which it passes.

`NAME()` and `NAME_remedied()` return (module, example inputs), as TARGETs do.
"""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

from onnxproof import rewrites


class Apply(nn.Module):
    """A linear layer with a function around it: enough of a model, and the failing line is the function's."""

    def __init__(self, function, features=8):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(features, features)
        self.function = function

    def forward(self, x):
        return self.function(self.linear(x))


def _rows(function, *shape):
    torch.manual_seed(1)
    return Apply(function, (shape or (3, 8))[-1]).eval(), (torch.randn(*(shape or (3, 8))),)


def _example():
    torch.manual_seed(1)
    return (torch.randn(3, 8),)


# --- control flow and sizes -------------------------------------------------------------------------------------------


def if_on_a_value():
    return _rows(lambda x: x * 2 if x.sum() > 0 else x - 1)


def if_on_a_value_remedied():
    return _rows(lambda x: torch.where(x.sum() > 0, x * 2, x - 1))


def item_as_size():
    return _rows(lambda x: x[:, : int((x[0, 0] > 0).item()) + 2].sum(1))


def item_as_size_remedied():
    def masked(x):
        kept = torch.arange(x.shape[1]) < (x[0, 0] > 0).to(torch.int64) + 2
        return torch.where(kept, x, 0).sum(1)

    return _rows(masked)


def compares_tensors():
    return _rows(lambda x: x * 2 if torch.equal(x, x.abs()) else x)


def compares_tensors_remedied():
    return _rows(lambda x: torch.where((x == x.abs()).all(), x * 2, x))


def while_on_a_value():
    def halve(x):
        while x.abs().max() > 1:
            x = x / 2
        return x

    return _rows(halve)


def while_on_a_value_remedied():
    return _rows(lambda x: x / torch.exp2(torch.ceil(torch.log2(x.abs().max().clamp(min=1.0)))))


class Loop(nn.Module):
    def forward(self, x):
        state = torch.zeros(x.shape[0], x.shape[2])
        for step in range(x.shape[1]):
            state = torch.tanh(state + x[:, step])
        return state


def loop_over_a_dim():
    return Loop().eval(), (torch.randn(2, 3, 4),)


def loop_over_a_dim_remedied():
    return loop_over_a_dim()


def root_of_a_size():
    return _rows(lambda x: x / math.sqrt(x.shape[0]))


def root_of_a_size_remedied():
    return _rows(lambda x: x / x.shape[0] ** 0.5)


def hard_coded_batch():
    return _rows(lambda x: x.view(3, 4, 2).sum(1))


def hard_coded_batch_remedied():
    return _rows(lambda x: x.view(-1, 4, 2).sum(1))


class Gates(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn = nn.LSTM(4, 6, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.rnn(packed)[1][0][-1]


def packed_sequence():
    torch.manual_seed(1)
    return Gates().eval(), (torch.randn(3, 5, 4), torch.tensor([5, 3, 2]))


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn = nn.LSTM(4, 6, batch_first=True)

    def forward(self, x, lengths):
        states = self.rnn(x)[0]
        last = (lengths - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, states.shape[-1])
        return states.gather(1, last).squeeze(1)


def packed_sequence_remedied():
    torch.manual_seed(1)
    return Masked().eval(), (torch.randn(3, 5, 4), torch.tensor([5, 3, 2]))


class Aliasing(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t, lambda t: t - 1, (x,))


def cond_returns_its_input():
    return Aliasing().eval(), _example()


class Cloning(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t.clone(), lambda t: t - 1, (x,))


def cond_returns_its_input_remedied():
    return Cloning().eval(), _example()


# --- operators without a translation ----------------------------------------------------------------------------------


def median():
    return _rows(lambda x: x.median(-1).values)


def median_remedied():
    return _rows(lambda x: x.sort(-1).values[:, (x.shape[-1] - 1) // 2])


def mode():
    return _rows(lambda x: x.round().mode(-1).values)


def mode_remedied():
    def most_frequent(x):
        x = x.round()
        same = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)
        often = same == same.amax(-1, keepdim=True)
        return torch.where(often, x, torch.full_like(x, torch.inf)).amin(-1)

    return _rows(most_frequent)


def kthvalue():
    return _rows(lambda x: x.kthvalue(3, -1).values)


def kthvalue_remedied():
    return _rows(lambda x: x.topk(3, -1, largest=False).values[:, -1])


def cummax():
    return _rows(lambda x: x.cummax(-1).values)


def cummax_remedied():
    def running(x):
        length = x.shape[-1]
        past = torch.ones(length, length).tril().bool()
        return torch.where(past, x.unsqueeze(-2), torch.full_like(x.unsqueeze(-2), -torch.inf)).amax(-1)

    return _rows(running)


def cumprod():
    return _rows(lambda x: x.cumprod(-1))


def cumprod_remedied():
    def running(x):
        sign = 1 - 2 * ((x < 0).to(torch.int64).cumsum(-1) % 2)
        return sign * x.abs().log().cumsum(-1).exp()

    return _rows(running)


def stable_sort():
    return _rows(lambda x: x.sort(dim=-1, stable=True).values)


def stable_sort_remedied():
    return _rows(lambda x: x.sort(dim=-1).values)


class Buckets(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.register_buffer("edges", torch.tensor([-1.0, 0.0, 1.0]))
        self.how = how

    def forward(self, x):
        if self.how == "searchsorted":
            return torch.searchsorted(self.edges, x)
        return (x.unsqueeze(-1) > self.edges).sum(-1)


def searchsorted():
    return Buckets("searchsorted").eval(), _example()


def searchsorted_remedied():
    return Buckets("compare").eval(), _example()


def masked_select():
    return _rows(lambda x: x.masked_select(x > 0))


def masked_select_remedied():
    return _rows(lambda x: x[x > 0])


def index_reduce():
    return _rows(lambda x: torch.zeros_like(x).index_reduce(1, torch.tensor([0, 1, 2, 3, 4, 5, 6, 7]), x, "amax"))


def index_reduce_remedied():
    def reduce(x):
        index = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7]).expand_as(x)
        return torch.zeros_like(x).scatter_reduce(1, index, x, "amax")

    return _rows(reduce)


def cdist():
    return _rows(lambda x: torch.cdist(x, x))


def cdist_remedied():
    return _rows(lambda x: (x.unsqueeze(-2) - x.unsqueeze(-3)).square().sum(-1).sqrt())


def _square(x):
    """Symmetric and far from singular."""
    return x @ x.transpose(-2, -1) + torch.eye(3)


def inverse():
    return _rows(lambda x: torch.linalg.inv(x + 9 * torch.eye(3)), 2, 3, 3)


def inverse_remedied():
    return _rows(lambda x: rewrites.inv(x + 9 * torch.eye(3)), 2, 3, 3)


def solve():
    return _rows(lambda x: torch.linalg.solve(x + 9 * torch.eye(3), x), 2, 3, 3)


def solve_remedied():
    return _rows(lambda x: rewrites.solve(x + 9 * torch.eye(3), x), 2, 3, 3)


def lu_factor():
    return _rows(lambda x: torch.linalg.lu_solve(*torch.linalg.lu_factor(x + 9 * torch.eye(3)), x), 2, 3, 3)


def lu_factor_remedied():
    return solve_remedied()


def lu():
    def unmixed(x):
        order, lower, upper = torch.linalg.lu(x + 9 * torch.eye(3))
        left = torch.linalg.solve_triangular(lower, order.transpose(-2, -1) @ x, upper=False)
        return torch.linalg.solve_triangular(upper, left, upper=True)

    return _rows(unmixed, 2, 3, 3)


def lu_remedied():
    return solve_remedied()


def least_squares():
    return _rows(lambda x: torch.linalg.lstsq(_square(x), x).solution, 2, 3, 3)


def least_squares_remedied():
    def normal(x):
        a = _square(x)
        return rewrites.solve(a.transpose(-2, -1) @ a, a.transpose(-2, -1) @ x)

    return _rows(normal, 2, 3, 3)


def pseudo_inverse():
    return _rows(lambda x: torch.linalg.pinv(_square(x)[..., :2]), 2, 3, 3)


def pseudo_inverse_remedied():
    return _rows(lambda x: rewrites.pinv(_square(x)[..., :2]), 2, 3, 3)


def cholesky():
    return _rows(lambda x: torch.linalg.cholesky(_square(x)), 2, 3, 3)


def cholesky_remedied():
    return _rows(lambda x: rewrites.cholesky(_square(x)), 2, 3, 3)


def cholesky_solve():
    return _rows(lambda x: torch.cholesky_solve(x, _square(x).tril()), 2, 3, 3)


def cholesky_solve_remedied():
    def twice_triangular(x):
        lower = _square(x).tril()
        return rewrites.solve_triangular(
            lower.transpose(-2, -1), rewrites.solve_triangular(lower, x, upper=False), upper=True
        )

    return _rows(twice_triangular, 2, 3, 3)


def cholesky_inverse():
    return _rows(lambda x: torch.cholesky_inverse(_square(x).tril()), 2, 3, 3)


def cholesky_inverse_remedied():
    def inverted(x):
        lower = _square(x).tril()
        return rewrites.inv(lower @ lower.transpose(-2, -1))

    return _rows(inverted, 2, 3, 3)


def solve_triangular():
    return _rows(lambda x: torch.linalg.solve_triangular(_square(x).triu(), x, upper=True), 2, 3, 3)


def solve_triangular_remedied():
    return _rows(lambda x: rewrites.solve_triangular(_square(x).triu(), x, upper=True), 2, 3, 3)


def triangular_solve():
    return _rows(lambda x: torch.triangular_solve(x, _square(x).triu()).solution, 2, 3, 3)


def triangular_solve_remedied():
    return solve_triangular_remedied()


def qr():
    return _rows(lambda x: torch.linalg.qr(_square(x)), 2, 3, 3)


def qr_remedied():
    return _rows(lambda x: rewrites.qr(_square(x)), 2, 3, 3)


def svd():
    return _rows(lambda x: torch.linalg.svdvals(x), 2, 3, 3)


def svd_remedied():
    return _rows(lambda x: rewrites.svd(x)[1], 2, 3, 3)


def nearest_rotation():
    """Procrustes: what a decomposition of an input is most often wanted for; signs of the vectors cancel."""

    def rotation(x):
        u, _, vh = torch.linalg.svd(_square(x))
        return u @ vh

    return _rows(rotation, 2, 3, 3)


def nearest_rotation_remedied():
    def rotation(x):
        u, _, vh = rewrites.svd(_square(x))
        return u @ vh

    return _rows(rotation, 2, 3, 3)


class Projects(nn.Module):
    """Principal directions of a weight."""

    def __init__(self, before):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(8, 8)
        self.before = before
        if before:
            self.register_buffer("directions", torch.linalg.svd(self.linear.weight.detach().double())[2][:3])

    def forward(self, x):
        vh = self.directions.to(x.dtype) if self.before else torch.linalg.svd(self.linear.weight)[2][:3]
        return self.linear(x) @ vh.transpose(-2, -1) @ vh


def svd_of_a_weight():
    torch.manual_seed(1)
    return Projects(False).eval(), (torch.randn(3, 8),)


def svd_of_a_weight_remedied():
    torch.manual_seed(1)
    return Projects(True).eval(), (torch.randn(3, 8),)


def whitening():
    def whiten(x):
        values, vectors = torch.linalg.eigh(_square(x))
        return vectors / values.sqrt().unsqueeze(-2) @ vectors.transpose(-2, -1)

    return _rows(whiten, 2, 3, 3)


def whitening_remedied():
    def whiten(x):
        values, vectors = rewrites.eigh(_square(x))
        return vectors / values.sqrt().unsqueeze(-2) @ vectors.transpose(-2, -1)

    return _rows(whiten, 2, 3, 3)


def eigenvalues():
    return _rows(lambda x: torch.linalg.eigvals(_square(x)).real.sort(-1).values, 2, 3, 3)


def eigenvalues_remedied():
    return _rows(lambda x: rewrites.eigh(_square(x))[0], 2, 3, 3)


def symmetric_eigenvalues():
    return _rows(lambda x: torch.linalg.eigvalsh(_square(x)), 2, 3, 3)


def symmetric_eigenvalues_remedied():
    return eigenvalues_remedied()


def log_determinant():
    return _rows(lambda x: torch.linalg.slogdet(_square(x)), 2, 3, 3)


def log_determinant_remedied():
    def parts(x):
        determinant = torch.linalg.det(_square(x))
        return torch.sign(determinant), determinant.abs().log()

    return _rows(parts, 2, 3, 3)


def matrix_exponential():
    return _rows(lambda x: torch.linalg.matrix_exp(torch.tanh(x)), 2, 3, 3)


def matrix_exponential_remedied():
    return _rows(lambda x: rewrites.matrix_exp(torch.tanh(x)), 2, 3, 3)


def erfinv():
    return _rows(lambda x: torch.erfinv(torch.tanh(x)))


def erfinv_remedied():
    return _rows(lambda x: rewrites.erfinv(torch.tanh(x)))


def ndtri():
    return _rows(lambda x: torch.special.ndtri(torch.sigmoid(x)))


def ndtri_remedied():
    return _rows(lambda x: rewrites.ndtri(torch.sigmoid(x)))


def lgamma():
    return _rows(lambda x: torch.lgamma(x.abs() + 1))


def lgamma_remedied():
    return _rows(lambda x: rewrites.lgamma(x.abs() + 1))


def digamma():
    return _rows(lambda x: torch.digamma(x.abs() + 1))


def digamma_remedied():
    return _rows(lambda x: rewrites.digamma(x.abs() + 1))


def polygamma():
    return _rows(lambda x: torch.polygamma(2, x.abs() + 1))


def polygamma_remedied():
    return _rows(lambda x: rewrites.polygamma(2, x.abs() + 1))


def igamma():
    return _rows(lambda x: torch.igamma(torch.tensor(3.0, dtype=x.dtype), x.abs()))


def igamma_remedied():
    return _rows(lambda x: 1 - torch.exp(-x.abs()) * sum(x.abs() ** k / math.factorial(k) for k in range(3)))


def igammac():
    return _rows(lambda x: torch.igammac(torch.tensor(3.0, dtype=x.dtype), x.abs()))


def igammac_remedied():
    return _rows(lambda x: torch.exp(-x.abs()) * sum(x.abs() ** k / math.factorial(k) for k in range(3)))


def bessel_i0():
    return _rows(lambda x: torch.i0(x))


def bessel_i0_remedied():
    return _rows(lambda x: rewrites.i0(x))


def bessel_i0e():
    return _rows(lambda x: torch.special.i0e(x))


def bessel_i0e_remedied():
    return _rows(lambda x: rewrites.i0e(x))


def bessel_i1():
    return _rows(lambda x: torch.special.i1(x))


def bessel_i1_remedied():
    return _rows(lambda x: rewrites.i1(x))


def bessel_i1e():
    return _rows(lambda x: torch.special.i1e(x))


def bessel_i1e_remedied():
    return _rows(lambda x: rewrites.i1e(x))


def nanmedian():
    return _rows(lambda x: torch.where(x > 1, torch.nan, x).nanmedian(-1).values)


def nanmedian_remedied():
    def middle(x):
        x = torch.where(x > 1, torch.nan, x)
        ordered = torch.where(x.isnan(), torch.inf, x).sort(-1).values
        count = (~x.isnan()).sum(-1, keepdim=True)
        value = ordered.gather(-1, (count - 1).clamp(min=0) // 2)
        return torch.where(count > 0, value, torch.nan).squeeze(-1)

    return _rows(middle)


def amax():
    return _rows(lambda x: x.amax() - x)


def amax_remedied():
    return _rows(lambda x: x.max() - x)


def amin():
    return _rows(lambda x: x.amin() - x)


def amin_remedied():
    return _rows(lambda x: x.min() - x)


def aminmax():
    return _rows(lambda x: torch.aminmax(x)[1] - torch.aminmax(x)[0] + x)


def aminmax_remedied():
    return _rows(lambda x: x.max() - x.min() + x)


def cummin():
    return _rows(lambda x: x.cummin(-1).values)


def cummin_remedied():
    def running(x):
        past = torch.ones(x.shape[-1], x.shape[-1]).tril().bool()
        return torch.where(past, x.unsqueeze(-2), torch.inf).amin(-1)

    return _rows(running)


def vander():
    return _rows(lambda x: torch.vander(torch.tanh(x)[0], 4))


def vander_remedied():
    return _rows(lambda x: (torch.tanh(x)[0].unsqueeze(-1) ** torch.arange(4)).flip(-1))


def put():
    return _rows(lambda x: x.put(torch.tensor([1, 5]), torch.ones(2, dtype=x.dtype)))


def put_remedied():
    return _rows(lambda x: x.flatten().scatter(0, torch.tensor([1, 5]), torch.ones(2, dtype=x.dtype)).view(x.shape))


def segment_reduce():
    return _rows(
        lambda x: torch.segment_reduce(x.transpose(-2, -1), "sum", lengths=torch.tensor([3, 5]), axis=0).transpose(
            -2, -1
        )
    )


def segment_reduce_remedied():
    def sums(x):
        ids = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
        return torch.zeros(x.shape[0], 2, dtype=x.dtype).index_add(1, ids, x)

    return _rows(sums)


def pdist():
    return _rows(lambda x: F.pdist(x.view(-1, 4, 2)[0]))


def pdist_remedied():
    i, j = torch.triu_indices(4, 4, 1)

    def distances(x):
        x = x.view(-1, 4, 2)[0]
        return (x[i] - x[j]).square().sum(-1).sqrt()

    return _rows(distances)


def hypot():
    return _rows(lambda x: torch.hypot(x, x + 1))


def hypot_remedied():
    return _rows(lambda x: (x.square() + (x + 1).square()).sqrt())


def fmax():
    return _rows(lambda x: torch.fmax(torch.where(x > 0.5, torch.nan, x), x.flip(-1)))


def fmax_remedied():
    def larger(x):
        a, b = torch.where(x > 0.5, torch.nan, x), x.flip(-1)
        return torch.where(a.isnan(), b, torch.where(b.isnan(), a, torch.maximum(a, b)))

    return _rows(larger)


def fmin():
    return _rows(lambda x: torch.fmin(torch.where(x > 0.5, torch.nan, x), x.flip(-1)))


def fmin_remedied():
    def smaller(x):
        a, b = torch.where(x > 0.5, torch.nan, x), x.flip(-1)
        return torch.where(a.isnan(), b, torch.where(b.isnan(), a, torch.minimum(a, b)))

    return _rows(smaller)


def _counts(x, bins, low, high):
    places = ((x - low) / (high - low) * bins).floor().clamp(max=bins - 1).flatten()
    inside = ((x >= low) & (x <= high)).flatten()
    return ((places == torch.arange(bins).unsqueeze(-1)) & inside).sum(-1).to(x.dtype)


def histc():
    return _rows(lambda x: torch.histc(torch.tanh(x).round(decimals=1), bins=5))


def histc_remedied():
    def counts(x):
        x = torch.tanh(x).round(decimals=1)
        return _counts(x, 5, x.min(), x.max())

    return _rows(counts)


def histogram():
    return _rows(lambda x: torch.histogram(x.round(), bins=5, range=(-2.5, 2.5)).hist)


def histogram_remedied():
    return _rows(lambda x: _counts(x.round(), 5, -2.5, 2.5))


def covariance():
    return _rows(lambda x: torch.cov(x))


def covariance_remedied():
    def moments(x):
        centred = x - x.mean(1, keepdim=True)
        return centred @ centred.transpose(-2, -1) / (x.shape[1] - 1)

    return _rows(moments)


def correlation():
    return _rows(lambda x: torch.corrcoef(x))


def correlation_remedied():
    def cosines(x):
        centred = x - x.mean(1, keepdim=True)
        centred = centred / centred.norm(dim=1, keepdim=True)
        return (centred @ centred.transpose(-2, -1)).clamp(-1, 1)

    return _rows(cosines)


def allclose():
    return _rows(lambda x: x * 2 if torch.allclose(x, x.abs()) else x)


def allclose_remedied():
    return _rows(lambda x: torch.where(torch.isclose(x, x.abs()).all(), x * 2, x))


def copysign():
    return _rows(lambda x: torch.copysign(x.abs() + 1, x))


def copysign_remedied():
    return _rows(lambda x: torch.where(x < 0, -(x.abs() + 1), x.abs() + 1))


def rrelu():
    return _rows(lambda x: F.rrelu(x))


def rrelu_remedied():
    return _rows(lambda x: F.leaky_relu(x, (1 / 8 + 1 / 3) / 2))


def adaptive_max_pool_of_a_line():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(3, 4, 3), nn.AdaptiveMaxPool1d(4)).eval(), (torch.randn(2, 3, 11),)


class LinePool(nn.Module):
    def forward(self, x):
        return rewrites.adaptive_max_pool2d(x.unsqueeze(-2), (1, 4)).squeeze(-2)


def adaptive_max_pool_of_a_line_remedied():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(3, 4, 3), LinePool()).eval(), (torch.randn(2, 3, 11),)


def matrix_transpose():
    return _rows(lambda x: x @ x.mT, 2, 3, 3)


def matrix_transpose_remedied():
    return _rows(lambda x: x @ x.transpose(-2, -1), 2, 3, 3)


def attention_without_heads():
    return _rows(lambda x: F.scaled_dot_product_attention(x, x, x), 2, 5, 8)


def attention_without_heads_remedied():
    def attend(x):
        x = x.unsqueeze(1)
        return F.scaled_dot_product_attention(x, x, x).squeeze(1)

    return _rows(attend, 2, 5, 8)


def frequencies():
    return _rows(lambda x: x * torch.fft.fftfreq(8, dtype=x.dtype))


class Frequencies(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(8, 8)
        self.register_buffer("frequencies", torch.fft.fftfreq(8))

    def forward(self, x):
        return self.linear(x) * self.frequencies


def frequencies_remedied():
    return Frequencies().eval(), (torch.randn(3, 8),)


def diagonal_scatter():
    return _rows(lambda x: x.diagonal_scatter(torch.ones(x.shape[:-1]).to(x), dim1=-2, dim2=-1), 2, 3, 3)


def diagonal_scatter_remedied():
    return _rows(lambda x: torch.where(torch.eye(3, dtype=torch.bool), 1, x), 2, 3, 3)


def adaptive_max_pool():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveMaxPool2d(4)).eval(), (torch.randn(2, 3, 11, 11),)


class AdaptivePool(nn.Module):
    def __init__(self, pool, size):
        super().__init__()
        self.pool, self.size = pool, size

    def forward(self, x):
        return self.pool(x, self.size)


def adaptive_max_pool_remedied():
    torch.manual_seed(0)
    pool = AdaptivePool(rewrites.adaptive_max_pool2d, 4)
    return nn.Sequential(nn.Conv2d(3, 4, 3), pool).eval(), (torch.randn(2, 3, 11, 11),)


def adaptive_average_pool():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv3d(3, 4, 3), nn.AdaptiveAvgPool3d(2)).eval(), (torch.randn(2, 3, 7, 7, 7),)


def adaptive_average_pool_remedied():
    torch.manual_seed(0)
    pool = AdaptivePool(rewrites.adaptive_avg_pool3d, 2)
    return nn.Sequential(nn.Conv3d(3, 4, 3), pool).eval(), (torch.randn(2, 3, 7, 7, 7),)


def unique():
    return _rows(lambda x: torch.unique_consecutive(x.round()))


def unique_remedied():
    def changes(x):
        x = x.round().flatten()
        return x[torch.cat([torch.ones(1, dtype=torch.bool), x[1:] != x[:-1]])]

    return _rows(changes)


@torch.library.custom_op("onnxprooffailures::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def custom_operator():
    return _rows(lambda x: twice(x))


def custom_operator_remedied():
    return _rows(lambda x: x * 2)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(x.detach().numpy() ** 2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * ctx.saved_tensors[0]


def through_numpy():
    return _rows(lambda x: Square.apply(x))


def through_numpy_remedied():
    return _rows(lambda x: x**2)


# --- types ------------------------------------------------------------------------------------------------------------


class Spectrum(nn.Module):
    def __init__(self, real):
        super().__init__()
        self.real = real

    def forward(self, x):
        spectrum = torch.fft.rfft(x)
        return torch.view_as_real(spectrum) if self.real else spectrum


def complex_output():
    return Spectrum(False).eval(), (torch.randn(3, 8),)


def complex_output_remedied():
    return Spectrum(True).eval(), (torch.randn(3, 8),)


class Opaque:
    """It has no attributes that can be listed."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Wraps(nn.Module):
    def __init__(self, opaque):
        super().__init__()
        self.opaque = opaque

    def forward(self, x):
        return Opaque(x * 2) if self.opaque else x * 2


def opaque_output():
    return Wraps(True).eval(), (torch.randn(3, 8),)


def opaque_output_remedied():
    return Wraps(False).eval(), (torch.randn(3, 8),)


@dataclasses.dataclass
class Point:
    x: torch.Tensor
    y: torch.Tensor


class TakesPoint(nn.Module):
    def forward(self, point):
        return point.x + point.y


def dataclass_input():
    return TakesPoint().eval(), (Point(torch.randn(3, 8), torch.randn(3, 8)),)


class WithNumber(nn.Module):
    def forward(self, x):
        return x * 2, 7


def number_among_outputs():
    return WithNumber().eval(), (torch.randn(3, 8),)


class TakesDict(nn.Module):
    def forward(self, d):
        return d["a"] + d["b"]


def single_dict():
    return TakesDict().eval(), ({"a": torch.randn(3, 8), "b": torch.randn(3, 8)},)


def scripted():
    module, inputs = _rows(lambda x: x * 2)
    return torch.jit.script(module.linear), inputs


def quantized():
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    return torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, dtype=torch.qint8), (torch.randn(3, 8),)


def quantized_remedied():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), (torch.randn(3, 8),)


def meta_weights():
    with torch.device("meta"):
        module = nn.Linear(8, 8)
    return module.eval(), (torch.randn(3, 8, device="meta"),)


def meta_weights_remedied():
    torch.manual_seed(0)
    return nn.Linear(8, 8).eval(), (torch.randn(3, 8),)


class SparseWeight(nn.Module):
    def __init__(self, dense):
        super().__init__()
        weight = torch.eye(8).roll(1, 0)
        self.register_buffer("weight", weight if dense else weight.to_sparse())

    def forward(self, x):
        return (self.weight @ x.T if self.weight.layout == torch.strided else torch.sparse.mm(self.weight, x.T)).T


def sparse_weight():
    return SparseWeight(False).eval(), _example()


def sparse_weight_remedied():
    return SparseWeight(True).eval(), _example()


def sparse():
    return _rows(lambda x: torch.sparse.mm(torch.eye(3, dtype=x.dtype).to_sparse(), x))


def sparse_remedied():
    return _rows(lambda x: torch.eye(3, dtype=x.dtype) @ x)


# --- the exporter's own failures ----------------------------------------------------------------------------------------


class Chunks(nn.Module):
    def forward(self, x):
        first, second = x.chunk(2, dim=0)
        return first.sum() + second.sum()


def chunk_of_a_dynamic_dim():
    return Chunks().eval(), (torch.randn(4, 8),)


class InPlace(nn.Module):
    def forward(self, x):
        x.data.add_(1)
        return x * 2


def data_in_place():
    return InPlace().eval(), _example()


class OutOfPlace(nn.Module):
    def forward(self, x):
        return (x + 1) * 2


def data_in_place_remedied():
    return OutOfPlace().eval(), _example()


class Reads(nn.Module):
    def forward(self, x):
        return x * float(open("weights.txt").read())


# --- at the runtime -----------------------------------------------------------------------------------------------------


def adds_booleans():
    return _rows(lambda x: (x > 0) + (x > 1))


def adds_booleans_remedied():
    return _rows(lambda x: (x > 0) | (x > 1))


def softmax_of_integers():
    class Model(nn.Module):
        def forward(self, x):
            return torch.softmax(x, -1, dtype=torch.float32)

    return Model().eval(), (torch.randint(0, 5, (3, 8)),)


def negates_bytes():
    class Model(nn.Module):
        def forward(self, x):
            return -x

    return Model().eval(), ((_example()[0] * 50).to(torch.uint8),)


def negates_bytes_remedied():
    class Model(nn.Module):
        def forward(self, x):
            return (-x.to(torch.int32)).bitwise_and(255).to(torch.uint8)

    return Model().eval(), ((_example()[0] * 50).to(torch.uint8),)


def sorts_booleans():
    return _rows(lambda x: (x > 0).sort(-1).values)


def sorts_booleans_remedied():
    return _rows(lambda x: (x > 0).to(torch.int32).sort(-1).values.bool())


def erf_in_float64():
    module, (x,) = _rows(lambda x: torch.erf(x))
    return module.double(), (x.double(),)


def erf_in_float64_remedied():
    return _rows(lambda x: torch.erf(x))


def squeezes_the_batch():
    return _rows(lambda x: x.squeeze(0))


def squeezes_the_batch_remedied():
    return _rows(lambda x: x)
