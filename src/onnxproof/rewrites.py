"""Functions that PyTorch has and the ONNX exporters do not translate, written in operators that they do.

Each computes what the function of the same name computes. Copy what is needed into the model, or import it.
Matrices are of a fixed, small size: loops over it are written out in the graph, so it grows with its square or cube.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the field's usual name


def solve(a: Tensor, b: Tensor) -> Tensor:
    """`torch.linalg.solve(a, b)` for matrices a (…, n, n) and b (…, n, k): elimination with row exchanges."""
    size = a.shape[-1]
    rows = torch.arange(size, device=a.device).unsqueeze(-1)
    both = torch.cat([a, b], -1)
    for k in range(size):
        pivot = both[..., k:, k].abs().argmax(-1, keepdim=True).unsqueeze(-1) + k
        best = both.gather(-2, pivot.expand(*both.shape[:-2], 1, both.shape[-1]))
        both = torch.where(rows == pivot, both[..., k : k + 1, :], both)
        row = best / best[..., k : k + 1]
        both = torch.where(rows == k, row, both - both[..., k : k + 1] * row)
    return both[..., size:]


def inv(a: Tensor) -> Tensor:
    """`torch.linalg.inv(a)`."""
    return solve(a, torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand_as(a))


def cholesky(a: Tensor) -> Tensor:
    """`torch.linalg.cholesky(a)`, column by column; NaN where a is not positive definite."""
    columns: list[Tensor] = []
    for k in range(a.shape[-1]):
        rest = a[..., k:, k]
        for column in columns:
            rest = rest - column[..., k:] * column[..., k : k + 1]
        columns.append(F.pad(rest / rest[..., :1].sqrt(), (k, 0)))
    return torch.stack(columns, -1)


def solve_triangular(a: Tensor, b: Tensor, *, upper: bool) -> Tensor:
    """`torch.linalg.solve_triangular(a, b, upper=upper)`, row by row."""
    size = a.shape[-1]
    rows: dict[int, Tensor] = {}
    for k in reversed(range(size)) if upper else range(size):
        rest = b[..., k, :]
        for done, row in rows.items():
            rest = rest - a[..., k, done, None] * row
        rows[k] = rest / a[..., k, k, None]
    return torch.stack([rows[k] for k in range(size)], -2)


def qr(a: Tensor) -> tuple[Tensor, Tensor]:
    """`torch.linalg.qr(a)` by Householder's reflections, with LAPACK's signs."""
    height, width = a.shape[-2:]
    q, r = torch.eye(height, dtype=a.dtype, device=a.device).expand(*a.shape[:-2], height, height), a
    for k in range(min(height - 1, width)):
        first, below = r[..., k : k + 1, k], r[..., k + 1 :, k]
        length = (first.square() + below.square().sum(-1, keepdim=True)).sqrt()
        mirror = torch.cat([torch.where(first < 0, first - length, first + length), below], -1)
        mirror = F.pad(mirror, (k, 0)).unsqueeze(-1)
        squared = mirror.square().sum(-2, keepdim=True)
        needed = (below != 0).any(-1)[..., None, None]
        mirrored = torch.where(needed, 2 * mirror / torch.where(needed, squared, 1), 0)
        q, r = q - (q @ mirror) @ mirrored.transpose(-2, -1), r - mirrored @ (mirror.transpose(-2, -1) @ r)
    least = min(height, width)
    return q[..., :least], r[..., :least, :].triu()


def eigh(a: Tensor) -> tuple[Tensor, Tensor]:
    """`torch.linalg.eigh(a)` by Jacobi's rotations. The signs of the vectors are arbitrary, here as there."""
    vectors = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand_as(a)
    for p, q in _pairs(a.shape[-1]):
        turn = _rotation(a[..., p, p], a[..., q, q], a[..., p, q], p, q, a.shape[-1])
        a, vectors = turn.transpose(-2, -1) @ a @ turn, vectors @ turn
    values, order = a.diagonal(dim1=-2, dim2=-1).sort(-1)
    return values, vectors.gather(-1, order.unsqueeze(-2).expand_as(vectors))


def svd(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`torch.linalg.svd(a, full_matrices=False)` by one-sided rotations. The signs of the vectors are arbitrary, here as there."""
    if a.shape[-2] < a.shape[-1]:
        u, values, vh = svd(a.transpose(-2, -1))
        return vh.transpose(-2, -1), values, u.transpose(-2, -1)
    size = a.shape[-1]
    vectors = torch.eye(size, dtype=a.dtype, device=a.device).expand(*a.shape[:-2], size, size)
    for p, q in _pairs(size):
        first, second = a[..., p], a[..., q]
        turn = _rotation(first.square().sum(-1), second.square().sum(-1), (first * second).sum(-1), p, q, size)
        a, vectors = a @ turn, vectors @ turn
    values, order = a.square().sum(-2).sqrt().sort(-1, descending=True)
    u = a.gather(-1, order.unsqueeze(-2).expand_as(a)) / torch.where(values > 0, values, 1).unsqueeze(-2)
    return u, values, vectors.gather(-1, order.unsqueeze(-2).expand_as(vectors)).transpose(-2, -1)


def _pairs(size: int) -> list[tuple[int, int]]:
    """What is rotated, in turn. Errors are squared by each sweep, so few are enough; a larger matrix takes one more."""
    return [(p, q) for _ in range(3 + size.bit_length()) for p in range(size) for q in range(p + 1, size)]


def _rotation(first: Tensor, second: Tensor, between: Tensor, p: int, q: int, size: int) -> Tensor:
    """The rotation of p and q that makes [[first, between], [between, second]] diagonal."""
    apart = second - first
    tangent = 2 * between / (apart.abs() + (apart.square() + 4 * between.square()).sqrt()).clamp(min=1e-37)
    tangent = torch.where(apart < 0, -tangent, tangent)
    cosine = (1 + tangent.square()).rsqrt()
    identity = torch.eye(size, dtype=first.dtype, device=first.device)
    kept, turned = torch.zeros_like(identity), torch.zeros_like(identity)
    kept[p, p] = kept[q, q] = turned[p, q] = 1
    turned[q, p] = -1
    return identity + (cosine - 1)[..., None, None] * kept + (cosine * tangent)[..., None, None] * turned


def pinv(a: Tensor) -> Tensor:
    """`torch.linalg.pinv(a)`."""
    u, values, vh = svd(a)
    smallest = values[..., :1] * (max(a.shape[-2:]) * torch.finfo(a.dtype).eps)
    inverted = torch.where(values > smallest, 1 / torch.where(values > smallest, values, 1), 0)
    return (vh.transpose(-2, -1) * inverted.unsqueeze(-2)) @ u.transpose(-2, -1)


# For the exponential of a matrix: the series of a norm of 0.1 is exact to rounding.
HALVINGS, TERMS = 10, 10


def matrix_exp(a: Tensor) -> Tensor:
    """`torch.linalg.matrix_exp(a)` for norms up to 100: the series of a small part of the matrix, squared again."""
    identity = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    small = a / 2**HALVINGS
    # The series of exp(a) - 1, so that squaring does not lose what is small beside the identity.
    series = small / TERMS
    for k in range(TERMS - 1, 0, -1):
        series = (identity + series) @ small / k
    for _ in range(HALVINGS):
        series = 2 * series + series @ series
    return torch.add(identity, series)


CENTRE = (
    -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17,
    -1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14,
    -8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
    1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
    -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512,
    -0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356,
)  # fmt: skip
FLANK = (
    2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
    1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05,
    -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
    0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107,
    0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635,
)  # fmt: skip
TAIL = (
    -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09, -3.7894654401267369937e-09,
    7.6157012080783393804e-09, -1.4960026627149240478e-08, 2.9147953450901080826e-08, -6.7711997758452339498e-08,
    2.2900482228026654717e-07, -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
    7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
    4.8499064014085844221,
)  # fmt: skip


def erfinv(x: Tensor) -> Tensor:
    """`torch.erfinv(x)` by Giles's polynomials (Approximating the erfinv function, 2010)."""
    w = -torch.log((1 - x) * (1 + x))
    root = w.clamp(min=0).sqrt()
    tails = torch.where(w < 16, _horner(root / 0.75 - 13 / 3, _scaled(FLANK, 0.75)), _horner(root - 5, TAIL))
    slope = torch.where(w < 6.25, _horner(w / 3.125 - 1, _scaled(CENTRE, 3.125)), tails)
    return torch.where(x.abs() == 1, x * math.inf, x * slope)


def ndtri(p: Tensor) -> Tensor:
    """`torch.special.ndtri(p)`: the quantile of the normal distribution. Below 1e-7 the difference 2 p - 1 loses digits."""
    return math.sqrt(2) * erfinv(2 * p - 1)


def _scaled(coefficients: tuple[float, ...], scale: float) -> tuple[float, ...]:
    """The same polynomial of x / scale. The exporter drops sums with constants near 1e-8 and below: here none of them matters."""
    degree = len(coefficients) - 1
    return tuple(coefficient * scale ** (degree - place) for place, coefficient in enumerate(coefficients))


def _horner(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    value = torch.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip


def lgamma(x: Tensor) -> Tensor:
    """`torch.lgamma(x)` by Lanczos's series (g = 7), reflected below one half."""
    low = x < 0.5
    z = torch.where(low, -x, x - 1)
    series = torch.full_like(z, LANCZOS[0])
    for k, factor in enumerate(LANCZOS[1:], 1):
        series = series + factor / (z + k)
    t = z + 7.5
    value = 0.5 * math.log(2 * math.pi) + (z + 0.5) * torch.log(t) - t + torch.log(series)
    inside = torch.where(low, x - torch.floor(x), 0.5)
    return torch.where(low, math.log(math.pi) - torch.log(torch.sin(math.pi * inside)) - value, value)


def digamma(x: Tensor) -> Tensor:
    """`torch.digamma(x)`: eight steps up, then the asymptotic series; reflected below zero."""
    low = x < 0
    z = torch.where(low, 1 - x, x)
    steps = sum(1 / (z + k) for k in range(8))
    z = z + 8
    inverse = 1 / z.square()
    series = _horner(inverse, (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)) * inverse
    value = torch.log(z) - 0.5 / z - series - steps
    inside = torch.where(low, x - torch.floor(x), 0.5)
    return torch.where(low, value - math.pi * torch.cos(math.pi * inside) / torch.sin(math.pi * inside), value)


BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def polygamma(order: int, x: Tensor) -> Tensor:
    """`torch.polygamma(order, x)` for x > 0 and order > 0: eight steps up, then the asymptotic series."""
    power = order + 1
    steps = sum((x + k).pow(-power) for k in range(8))
    z = x + 8
    tail = z.pow(-order) / order + 0.5 * z.pow(-power)
    for j, number in enumerate(BERNOULLI, 1):
        rising = math.prod(power + i for i in range(2 * j - 1))
        tail = tail + number * rising / math.factorial(2 * j) * z.pow(1 - power - 2 * j)
    return (steps + tail) * float((-1) ** power * math.factorial(order))


# Points of the trapezoidal rule around the circle: exact to rounding below NEAR.
CIRCLE = 96
NEAR = 40.0


def i0e(x: Tensor) -> Tensor:
    """`torch.special.i0e(x)`: the mean of exp(x cos t - x) around the circle, and the asymptotic series beyond 40."""
    cosines = _cosines(x)
    near = (x.abs().clamp(max=NEAR).unsqueeze(-1) * (cosines - 1)).exp().mean(-1)
    return torch.where(x.abs() < NEAR, near, _bessel_tail(x, 0))


def i1e(x: Tensor) -> Tensor:
    """`torch.special.i1e(x)`."""
    cosines = _cosines(x)
    near = (cosines * (x.abs().clamp(max=NEAR).unsqueeze(-1) * (cosines - 1)).expm1()).mean(-1)
    return torch.where(x < 0, -1, 1) * torch.where(x.abs() < NEAR, near, _bessel_tail(x, 1))


def i0(x: Tensor) -> Tensor:
    """`torch.i0(x)`."""
    return i0e(x) * x.abs().exp()


def i1(x: Tensor) -> Tensor:
    """`torch.special.i1(x)`."""
    return i1e(x) * x.abs().exp()


def _cosines(x: Tensor) -> Tensor:
    return torch.tensor([math.cos(2 * math.pi * k / CIRCLE) for k in range(CIRCLE)], dtype=x.dtype, device=x.device)


def _bessel_tail(x: Tensor, order: int) -> Tensor:
    z = x.abs().clamp(min=NEAR)
    term, series = torch.ones_like(z), torch.ones_like(z)
    for k in range(1, 15):
        term = term * ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k * z)
        series = series + term
    return series / (2 * math.pi * z).sqrt()


def adaptive_max_pool2d(x: Tensor, size: int | tuple[int, int]) -> Tensor:
    """`F.adaptive_max_pool2d(x, size)` for a fixed height and width, window by window."""
    return _adaptive(x, (size, size) if isinstance(size, int) else size, Tensor.amax)


def adaptive_avg_pool3d(x: Tensor, size: int | tuple[int, int, int]) -> Tensor:
    """`F.adaptive_avg_pool3d(x, size)` for a fixed depth, height and width, window by window."""
    return _adaptive(x, (size, size, size) if isinstance(size, int) else size, Tensor.mean)


def _adaptive(x: Tensor, sizes: tuple[int, ...], reduce: Callable[..., Tensor]) -> Tensor:
    for place, count in enumerate(sizes):
        dim = x.dim() - len(sizes) + place
        length = x.shape[dim]
        windows = [(k * length // count, -(-(k + 1) * length // count)) for k in range(count)]
        x = torch.stack([reduce(x.narrow(dim, first, last - first), dim) for first, last in windows], dim)
    return x


def floor_divide(a: Tensor, b: Tensor | float) -> Tensor:
    """`torch.floor_divide(a, b)` of floats. The exporter floors the rounded quotient: 50 instead of 49 for 5.0 by 0.1."""
    rest = torch.fmod(a, b)
    whole = torch.round((a - rest) / b)
    return torch.where((rest != 0) & ((rest < 0) != (b < torch.zeros_like(rest))), whole - 1, whole)
