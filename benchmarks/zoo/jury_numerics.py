"""Correct models with hard arithmetic: scales, tails, cancellation, chaos, decisions, integers, other precisions."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from benchmarks.zoo.registry import model


class Call(nn.Module):
    """A module around a plain function of one input."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor):
        return self.function(x)


class Head(nn.Module):
    """A small network, then a plain function."""

    def __init__(self, function, width: int = 16, outputs: int = 8) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, outputs))
        self.function = function

    def forward(self, x: torch.Tensor):
        return self.function(self.net(x))


def rows(*shape: int) -> tuple[torch.Tensor]:
    return (torch.randn(*(shape or (3, 16))),)


class FourierFeatures(nn.Module):
    """NeRF's encoding of coordinates with frequencies up to 2**14."""

    def __init__(self, octaves: int = 15) -> None:
        super().__init__()
        self.register_buffer("scales", math.pi * 2.0 ** torch.arange(octaves))
        self.net = nn.Sequential(nn.Linear(3 + 6 * octaves, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, points):
        angles = (points.unsqueeze(-1) * self.scales).flatten(1)
        out = self.net(torch.cat([points, angles.sin(), angles.cos()], dim=-1))
        return {"rgb": out[:, :3].sigmoid(), "density": functional.softplus(out[:, 3])}


@model("numerics", "sine and cosine of angles of tens of thousands")
def jury_nerf_encoding():
    torch.manual_seed(100)
    return FourierFeatures().eval(), (torch.rand(5, 3) * 2 - 1,)


class Siren(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 48), nn.Linear(48, 48), nn.Linear(48, 48), nn.Linear(48, 1)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.sin(30 * layer(x))
        return self.layers[-1](x)


@model("numerics", "sine networks with omega 30: gain at every layer")
def jury_siren():
    torch.manual_seed(101)
    return Siren().eval(), (torch.rand(4, 2) * 2 - 1,)


class HandSolve(nn.Module):
    """A Hilbert-like system, solved by elimination written out."""

    def __init__(self, size: int = 6) -> None:
        super().__init__()
        i = torch.arange(size, dtype=torch.float32)
        self.register_buffer("matrix", 1 / (1 + i[:, None] + i[None, :]) + 1e-4 * torch.eye(size))
        self.size = size

    def forward(self, right):
        rows_ = [self.matrix[i] for i in range(self.size)]
        values = [right[:, i] for i in range(self.size)]
        for i in range(self.size):
            for j in range(i + 1, self.size):
                factor = rows_[j][i] / rows_[i][i]
                rows_[j] = rows_[j] - factor * rows_[i]
                values[j] = values[j] - factor * values[i]
        solution = [values[0]] * self.size
        for i in reversed(range(self.size)):
            value = values[i]
            for j in range(i + 1, self.size):
                value = value - rows_[i][j] * solution[j]
            solution[i] = value / rows_[i][i]
        return torch.stack(solution, dim=-1)


@model("numerics", "an ill-conditioned system solved by hand")
def jury_hilbert_solve():
    torch.manual_seed(102)
    return HandSolve().eval(), rows(3, 6)


class NewtonSchulz(nn.Module):
    """Whitening: the inverse square root of a covariance by Newton-Schulz steps."""

    def forward(self, x):
        x = x - x.mean(1, keepdim=True)
        eye = torch.eye(8, dtype=x.dtype)
        cov = x.transpose(1, 2) @ x / x.shape[1] + 1e-3 * eye
        trace = cov.diagonal(dim1=1, dim2=2).sum(-1)[:, None, None]
        y, z = cov / trace, eye.expand_as(cov)
        for _ in range(12):
            t = 1.5 * eye - 0.5 * z @ y
            y, z = y @ t, t @ z
        return x @ (z / trace.sqrt())


@model("numerics", "iterative whitening of a covariance matrix")
def jury_newton_schulz_whitening():
    torch.manual_seed(103)
    return NewtonSchulz().eval(), rows(2, 20, 8)


@model("numerics", "running products of 300 factors near one, by logarithms")
def jury_long_cumprod():
    torch.manual_seed(104)
    return Call(lambda x: torch.exp(torch.cumsum(torch.log(1 + 0.05 * x.tanh()), dim=-1))).eval(), rows(2, 300)


@model("numerics", "prefix sums in the log domain")
def jury_logcumsumexp():
    torch.manual_seed(105)

    class Scan(nn.Module):
        def forward(self, x):
            state, out = x[:, 0], [x[:, 0]]
            for i in range(1, 24):
                state = torch.logsumexp(torch.stack([state - 0.1, x[:, i]], -1), -1)
                out.append(state)
            return torch.stack(out, dim=1)

    return Scan().eval(), rows(3, 24)


@model("numerics", "softmax of logits of a hundred thousand")
def jury_huge_logit_softmax():
    torch.manual_seed(106)
    return Head(lambda y: (y * 1e5).softmax(-1)).eval(), rows()


@model("numerics", "entropy of a saturated softmax")
def jury_saturated_entropy():
    torch.manual_seed(107)

    def entropy(y):
        p = (y * 60).softmax(-1)
        return -(p * (p + 1e-6).log()).sum(-1)

    return Head(entropy).eval(), rows()


@model("numerics", "log odds, and a sigmoid far in its tail")
def jury_sigmoid_tails():
    torch.manual_seed(108)
    return Head(
        lambda y: {
            "odds": torch.log(torch.sigmoid(8 * y) + 1e-7) - torch.log1p(-torch.sigmoid(8 * y) + 1e-7),
            "tail": torch.sigmoid(-30 - y.abs()),
        }
    ).eval(), rows()


@model("numerics", "atanh of a tanh: saturates, then undone")
def jury_tanh_roundtrip():
    torch.manual_seed(109)
    return Call(lambda x: torch.atanh(torch.tanh(x).clamp(-0.999999, 0.999999))).eval(), rows()


@model("numerics", "subnormal results: products of tiny numbers")
def jury_denormals():
    torch.manual_seed(110)
    return Call(lambda x: (x * 1e-20) * (x.abs() * 1e-20)).eval(), rows()


@model("numerics", "Gaussian densities that underflow, then normalised by their sum")
def jury_underflowing_kernels():
    torch.manual_seed(111)

    class Kernel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("centres", torch.randn(10, 4))

        def forward(self, x):
            d = (x[:, None] - self.centres).square().sum(-1)
            k = torch.exp(-2 * d)
            return k, k / (k.sum(-1, keepdim=True) + 1e-6)

    return Kernel().eval(), rows(3, 4)


@model("numerics", "pairwise distances by the binomial formula, clamped, square root")
def jury_cdist_by_matmul():
    torch.manual_seed(112)

    def distances(x):
        squares = x.square().sum(-1)
        product = x @ x.transpose(1, 2)
        return (squares[:, :, None] + squares[:, None] - 2 * product).clamp(min=0).sqrt()

    return Call(distances).eval(), rows(2, 6, 12)


@model("numerics", "haversine distance on the earth")
def jury_haversine():
    torch.manual_seed(113)

    class Haversine(nn.Module):
        def forward(self, here, there):
            a, b = torch.deg2rad(here), torch.deg2rad(there)
            h = ((b - a) / 2).sin().square()
            inner = h[:, 0] + a[:, 0].cos() * b[:, 0].cos() * h[:, 1]
            return 2 * 6371.0088 * torch.asin(inner.clamp(0, 1).sqrt())

    return Haversine().eval(), (torch.rand(4, 2) * 90, torch.rand(4, 2) * 90)


class DoublePendulum(nn.Module):
    """Runge-Kutta steps of a double pendulum."""

    def slope(self, s):
        a, b, p, q = s.unbind(-1)
        d = a - b
        bottom = 2 - torch.cos(d) ** 2
        dp = (-9.81 * (2 * a.sin() - b.sin() * d.cos()) - (q**2 + p**2 * d.cos()) * d.sin()) / bottom
        dq = (2 * (p**2 * d.sin() + 9.81 * (a.sin() * d.cos() - b.sin())) + q**2 * d.sin() * d.cos()) / bottom
        return torch.stack([p, q, dp, dq], -1)

    def forward(self, state):
        for _ in range(12):
            k1 = self.slope(state)
            k2 = self.slope(state + 0.025 * k1)
            k3 = self.slope(state + 0.025 * k2)
            k4 = self.slope(state + 0.05 * k3)
            state = state + 0.05 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return state


@model("numerics", "a double pendulum by Runge-Kutta")
def jury_double_pendulum():
    torch.manual_seed(114)
    return DoublePendulum().eval(), rows(3, 4)


@model("numerics", "the tent map: the slope is two at each of 20 steps")
def jury_tent_map():
    torch.manual_seed(115)

    def tent(x):
        x = x.sigmoid()
        for _ in range(20):
            x = 1.999 * torch.minimum(x, 1 - x)
        return x

    return Call(tent).eval(), rows()


@model("numerics", "the fractional part of a large multiple, as in a hash of coordinates")
def jury_shader_hash():
    torch.manual_seed(116)
    return Call(lambda x: torch.frac(torch.sin((x * x.new_tensor([12.9898, 78.233])).sum(-1)) * 43758.5453)).eval(), (
        torch.rand(4, 9, 2),
    )


class IntHash(nn.Module):
    """A linear congruential hash into buckets, as for feature hashing."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(64, 8)

    def forward(self, ids):
        h = (ids * 2654435761 + 12345) % 4294967296
        h = (h ^ (h >> 16)) % 64
        return self.table(h).mean(1)


@model("integers", "hashed ids into an embedding", range={"ids": (0, 1_000_000)})
def jury_feature_hashing():
    torch.manual_seed(117)
    return IntHash().eval(), (torch.randint(0, 1_000_000, (3, 5)),)


class Bits(nn.Module):
    def forward(self, words):
        places = torch.arange(16)
        bits = (words.unsqueeze(-1) >> places) & 1
        return {"bits": bits, "ones": bits.sum(-1), "parity": bits.sum(-1) % 2 == 1, "low": words & 255}


@model("integers", "bits of integers", range={"words": (0, 65535)})
def jury_bit_unpacking():
    return Bits().eval(), (torch.randint(0, 65536, (3, 4)),)


class Logic(nn.Module):
    def forward(self, a, b):
        return {"xor": a ^ b, "implies": ~a | b, "count": (a & b).sum(-1), "first": (a & ~b).int().argmax(-1)}


@model("integers", "boolean logic with boolean inputs")
def jury_boolean_logic():
    torch.manual_seed(118)
    return Logic().eval(), (torch.rand(3, 7) > 0.5, torch.rand(3, 7) > 0.5)


class Dates(nn.Module):
    """Days since an epoch to month, weekday and features, in whole numbers."""

    def forward(self, days):
        z = days + 719468
        era = torch.div(z, 146097, rounding_mode="floor")
        doe = z - era * 146097
        yoe = torch.div(
            doe
            - torch.div(doe, 1460, rounding_mode="floor")
            + torch.div(doe, 36524, rounding_mode="floor")
            - torch.div(doe, 146096, rounding_mode="floor"),
            365,
            rounding_mode="floor",
        )
        doy = doe - (365 * yoe + torch.div(yoe, 4, rounding_mode="floor") - torch.div(yoe, 100, rounding_mode="floor"))
        mp = torch.div(5 * doy + 2, 153, rounding_mode="floor")
        month = torch.where(mp < 10, mp + 3, mp - 9)
        angle = doy.float() * (2 * math.pi / 365.25)
        return month, (days + 4) % 7, torch.stack([angle.sin(), angle.cos()], -1)


@model("integers", "calendar arithmetic on days", range={"days": (0, 40000)})
def jury_calendar():
    return Dates().eval(), (torch.randint(0, 20000, (4, 3)),)


class QuantDequant(nn.Module):
    """A layer in whole numbers: quantised by hand, an integer-valued product, scales per channel."""

    def __init__(self) -> None:
        super().__init__()
        weight = torch.randn(12, 16)
        scale = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("weight", torch.round(weight / scale))
        self.register_buffer("scale", scale.squeeze(1))

    def forward(self, x):
        top = x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 127
        q = torch.round(x / top).clamp(-127, 127)
        return (q @ self.weight.t()) * self.scale * top


@model("numerics", "dynamic quantisation by hand, scale from the row's maximum")
def jury_dynamic_quant_by_hand():
    torch.manual_seed(119)
    return QuantDequant().eval(), rows()


@model("numerics", "quantisation to signed eight-bit integers, then back")
def jury_int8_roundtrip():
    torch.manual_seed(120)
    return Head(lambda y: torch.round(y * 32).clamp(-128, 127).to(torch.int8).to(torch.float32) / 32).eval(), rows()


@model("numerics", "bins by bucketize of scores")
def jury_bucketize():
    torch.manual_seed(121)

    class Bins(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("edges", torch.linspace(-1, 1, 21))
            self.table = nn.Embedding(22, 4)

        def forward(self, x):
            return self.table((x.unsqueeze(-1) > self.edges).sum(-1))

    return Bins().eval(), rows()


class TiedTopK(nn.Module):
    """Values of the best of quantised scores (the places of ties are free, so they are not given)."""

    def forward(self, x):
        y = torch.round(x * 4) / 4
        values = y.topk(4, dim=-1).values
        return values, (y >= values[:, -1:]).sum(-1), y.argmax(-1)


@model("numerics", "top-k and argmax of scores with exact ties")
def jury_tied_scores():
    torch.manual_seed(122)
    return TiedTopK().eval(), rows(3, 20)


class Vote(nn.Module):
    """Majority of nearest neighbours: distances, top-k, one-hot, count."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("points", torch.randn(40, 6))
        self.register_buffer("labels", torch.randint(0, 3, (40,)))

    def forward(self, x):
        d = (x[:, None] - self.points).square().sum(-1)
        places = d.topk(5, dim=-1, largest=False).indices
        votes = functional.one_hot(self.labels[places], 3).sum(1)
        return votes, votes.argmax(-1)


@model("numerics", "nearest neighbours vote")
def jury_nearest_neighbours():
    torch.manual_seed(123)
    return Vote().eval(), rows(3, 6)


class VectorQuantiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(16, 8), nn.Linear(8, 16)
        self.codes = nn.Embedding(32, 8)

    def forward(self, x):
        z = self.encode(x)
        d = z.square().sum(-1, keepdim=True) - 2 * z @ self.codes.weight.t() + self.codes.weight.square().sum(-1)
        place = d.argmin(-1)
        return self.decode(self.codes(place)), place


@model("numerics", "nearest code of a codebook, decoded")
def jury_vector_quantiser():
    torch.manual_seed(124)
    return VectorQuantiser().eval(), rows(2, 5, 16)


@model("numerics", "a median filter by sorting windows")
def jury_median_filter():
    torch.manual_seed(125)
    return Call(lambda x: x.unfold(-1, 5, 1).sort(-1).values[..., 2]).eval(), rows(2, 3, 30)


@model("numerics", "a mean over 200 000 numbers far from zero")
def jury_large_mean():
    torch.manual_seed(126)
    return Call(lambda x: (x + 1000).mean((1, 2))).eval(), rows(2, 400, 500)


@model("numerics", "power with fractional exponents and its inverse")
def jury_gamma_correction():
    torch.manual_seed(127)

    def srgb(x):
        x = x.clamp(0, 1)
        linear = torch.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
        y = (linear * linear.new_tensor([0.2126, 0.7152, 0.0722]).view(3, 1, 1)).sum(1, keepdim=True)
        lab = torch.where(y > 0.008856, y ** (1 / 3), 7.787 * y + 16 / 116)
        return 116 * lab - 16

    return Call(srgb).eval(), (torch.rand(2, 3, 9, 9),)


@model("numerics", "hue of colours: a quotient by the spread, jumps at grey")
def jury_rgb_to_hsv():
    torch.manual_seed(128)

    def hsv(x):
        r, g, b = x.unbind(1)
        top, low = x.amax(1), x.amin(1)
        spread = top - low
        safe = torch.where(spread == 0, torch.ones_like(spread), spread)
        hue = torch.where(
            top == r,
            torch.remainder((g - b) / safe, 6.0),
            torch.where(top == g, (b - r) / safe + 2, (r - g) / safe + 4),
        )
        return torch.stack([hue / 6, spread / top.clamp(min=1e-6), top], 1)

    return Call(hsv).eval(), (torch.rand(2, 3, 6, 6),)


@model("numerics", "quaternions: axis and angle to a matrix, and the trace back to the angle")
def jury_quaternion_rotation():
    torch.manual_seed(129)

    def rotate(v):
        angle = v.norm(dim=-1, keepdim=True)
        axis = v / angle.clamp(min=1e-8)
        half = angle / 2
        w, (x, y, z) = half.cos().squeeze(-1), (axis * half.sin()).unbind(-1)
        m = torch.stack(
            [
                1 - 2 * (y * y + z * z),
                2 * (x * y - z * w),
                2 * (x * z + y * w),
                2 * (x * y + z * w),
                1 - 2 * (x * x + z * z),
                2 * (y * z - x * w),
                2 * (x * z - y * w),
                2 * (y * z + x * w),
                1 - 2 * (x * x + y * y),
            ],
            -1,
        ).unflatten(-1, (3, 3))
        trace = m.diagonal(dim1=-2, dim2=-1).sum(-1)
        return m, torch.acos(((trace - 1) / 2).clamp(-1, 1))

    return Call(rotate).eval(), rows(4, 3)


@model("numerics", "bfloat16 inside, float32 outside")
def jury_bfloat16_inside():
    torch.manual_seed(130)

    class Inside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.randn(16, 16).to(torch.bfloat16).float())

        def forward(self, x):
            return (x.to(torch.bfloat16).float() @ self.weight).to(torch.bfloat16).float()

    return Inside().eval(), rows()


@model("numerics", "float16 attention with a mask of -65504", range={"x": (-3, 3)})
def jury_float16_attention():
    torch.manual_seed(131)

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)

        def forward(self, x):
            q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
            scores = q @ k.transpose(1, 2) / 4
            future = torch.ones(6, 6, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, torch.finfo(scores.dtype).min)
            return x + self.out(scores.softmax(-1) @ v)

    return Attention().half().eval(), (torch.randn(2, 6, 16).half(),)


@model("numerics", "float64 dynamics: differences of 1e-12 matter")
def jury_float64_dynamics():
    torch.manual_seed(132)

    class Kepler(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("c", torch.tensor([0.6, 0.8], dtype=torch.float64))

        def forward(self, mean):
            e = mean
            for _ in range(8):
                e = e - (e - self.c[0] * e.sin() - mean) / (1 - self.c[0] * e.cos())
            return torch.stack([e.cos() - self.c[0], self.c[1] * e.sin()], -1)

    return Kepler().eval(), (torch.rand(4, 3, dtype=torch.float64) * 6,)


@model("numerics", "a scalar input scales and shifts")
def jury_zero_dim_inputs():
    torch.manual_seed(133)

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(8, 4)

        def forward(self, x, temperature, count):
            y = self.net(x) / temperature.abs().clamp(min=0.1)
            return y.softmax(-1), y.sum() * count, temperature * 2

    return Scaled().eval(), (torch.randn(3, 8), torch.tensor(0.7), torch.tensor(3))


@model("numerics", "Chebyshev polynomials by recurrence outside of their interval")
def jury_chebyshev():
    torch.manual_seed(134)

    class Chebyshev(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.Parameter(torch.randn(10, 16, 4) / 10)

        def forward(self, x):
            x = x.tanh()
            terms = [torch.ones_like(x), x]
            for _ in range(8):
                terms.append(2 * x * terms[-1] - terms[-2])
            return torch.einsum("kbi,kio->bo", torch.stack(terms), self.weights)

    return Chebyshev().eval(), rows()


@model("numerics", "Horner form of a polynomial with nearly cancelling terms")
def jury_wilkinson():
    torch.manual_seed(135)

    def product(x):
        coefficients = [1.0]
        for root in range(1, 9):
            coefficients = [a - root * b for a, b in zip([*coefficients, 0.0], [0.0, *coefficients], strict=True)]
        x = 4 + 4 * x.tanh()
        y = torch.zeros_like(x)
        for c in coefficients:
            y = y * x + c
        return y

    return Call(product).eval(), rows()


@model("numerics", "Sinkhorn: alternating normalisation in the log domain")
def jury_sinkhorn():
    torch.manual_seed(136)

    def sinkhorn(x):
        z = x / 0.05
        for _ in range(10):
            z = z - z.logsumexp(-1, keepdim=True)
            z = z - z.logsumexp(-2, keepdim=True)
        return z.exp()

    return Call(sinkhorn).eval(), rows(2, 6, 6)


@model("numerics", "sparsemax: sort, running sum, threshold")
def jury_sparsemax():
    torch.manual_seed(137)

    def sparsemax(x):
        z = x.sort(-1, descending=True).values
        k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
        running = z.cumsum(-1)
        size = (1 + k * z > running).sum(-1, keepdim=True)
        tau = (running.gather(-1, size - 1) - 1) / size.to(x.dtype)
        return (x - tau).clamp(min=0)

    return Call(sparsemax).eval(), rows()


@model("numerics", "erf tails: a normal distribution's tail, its logarithm and a probit score")
def jury_normal_tails():
    torch.manual_seed(138)

    def tails(x):
        cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        # Without erfc: the exporter writes it as 1 − erf, which loses the digits of its tail.
        return cdf, (1 - cdf).clamp(min=1e-7).log()

    return Call(tails).eval(), rows()


class BlackScholes(nn.Module):
    def forward(self, spot, strike, years, sigma):
        spot, strike = spot.abs() + 1, strike.abs() + 1
        years, sigma = years.abs() + 0.01, sigma.abs() + 0.01
        root = sigma * years.sqrt()
        d1 = ((spot / strike).log() + (0.02 + sigma.square() / 2) * years) / root
        n1, n2 = (0.5 * (1 + torch.erf(d / math.sqrt(2))) for d in (d1, d1 - root))
        call = spot * n1 - strike * torch.exp(-0.02 * years) * n2
        return {"call": call, "put": call - spot + strike * torch.exp(-0.02 * years), "delta": n1}


@model("numerics", "option prices: differences of near numbers")
def jury_black_scholes():
    torch.manual_seed(139)
    return BlackScholes().eval(), tuple(torch.rand(5) * s for s in (100, 100, 2, 0.5))
