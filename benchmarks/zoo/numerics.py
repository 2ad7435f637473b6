"""Correct models that naive tolerances flag: large and tiny outputs, long sums, chaos, discontinuities, dtypes."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from benchmarks.zoo.registry import model


class Call(nn.Module):
    """A module around a plain function."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor):
        return self.function(x)


def rows(width: int = 16) -> tuple[torch.Tensor]:
    return (torch.randn(3, width),)


def net(width: int = 16, outputs: int = 4) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 32), nn.Tanh(), nn.Linear(32, outputs))


class Scaled(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.net, self.scale = net(), scale

    def forward(self, x):
        return self.net(x) * self.scale


@model("numerics", "outputs of a million: absolute differences of 0.1")
def outputs_1e6():
    torch.manual_seed(0)
    return Scaled(1e6).eval(), rows()


@model("numerics", "outputs of a millionth: any absolute tolerance passes or fails everything")
def outputs_1e_minus_6():
    torch.manual_seed(1)
    return Scaled(1e-6).eval(), rows()


@model("numerics", "sum of 5000 numbers of both signs")
def long_sum():
    torch.manual_seed(2)
    return Call(lambda x: x.sum(-1)).eval(), (torch.randn(2, 5000),)


@model("numerics", "running sum over 4000 numbers")
def long_cumsum():
    torch.manual_seed(3)
    return Call(lambda x: x.cumsum(-1)).eval(), (torch.randn(2, 4000),)


@model("numerics", "mean minus itself shifted: cancellation to nearly zero")
def cancelling_means():
    torch.manual_seed(4)
    return Call(lambda x: (x + 100).mean(-1) - 100 - x.mean(-1)).eval(), (torch.randn(3, 512),)


class Sharp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        weights = (self.q(x) @ self.k(x).transpose(1, 2) * 50).softmax(-1)
        return weights @ self.v(x)


@model("numerics", "attention at temperature 1/50: near ties flip")
def sharp_softmax():
    torch.manual_seed(5)
    return Sharp().eval(), (torch.randn(2, 8, 16),)


@model("numerics", "log of a sum of exponentials of large numbers")
def log_sum_exp():
    torch.manual_seed(6)
    return Call(lambda x: torch.logsumexp(50 * x, dim=-1)).eval(), rows(64)


@model("numerics", "36 linear layers without norms")
def deep_linear():
    torch.manual_seed(7)
    layers = [nn.Linear(32, 32) for _ in range(36)]
    for layer in layers:
        nn.init.orthogonal_(layer.weight, 1.1)
    return nn.Sequential(*layers).eval(), rows(32)


@model("numerics", "40 layers with tanh between, gain above one")
def deep_tanh():
    torch.manual_seed(8)
    parts: list[nn.Module] = []
    for _ in range(40):
        parts += [nn.Linear(24, 24), nn.Tanh()]
        nn.init.normal_(parts[-2].weight, std=1.5 / 24**0.5)
    return nn.Sequential(*parts).eval(), rows(24)


class Logistic(nn.Module):
    def forward(self, x):
        x = torch.sigmoid(x)
        for _ in range(30):
            x = 3.9 * x * (1 - x)
        return x


@model("numerics", "logistic map: chaos multiplies rounding by ten million")
def logistic_map():
    torch.manual_seed(9)
    return Logistic().eval(), rows()


class Lorenz(nn.Module):
    def forward(self, start):
        x, y, z = start.tanh().mul(5).unbind(-1)
        z = z + 20
        for _ in range(60):
            x, y, z = x + 0.03 * 10 * (y - x), y + 0.03 * (x * (28 - z) - y), z + 0.03 * (x * y - 8 / 3 * z)
        return torch.stack([x, y, z], -1)


@model("numerics", "Lorenz attractor by Euler steps")
def lorenz():
    torch.manual_seed(10)
    return Lorenz().eval(), rows(3)


class Quantised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = net()

    def forward(self, x):
        return torch.round(self.net(x) * 1000) / 1000


@model("numerics", "round after a large scale: steps flip")
def round_scaled():
    torch.manual_seed(11)
    return Quantised().eval(), rows()


class FakeQuant(nn.Module):
    """Weights and activations on an eight-bit grid."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        x = torch.clamp(torch.round(x / 0.05), -128, 127) * 0.05
        x = torch.clamp(torch.round(self.first(x).relu() / 0.02), 0, 255) * 0.02
        return self.second(x)


@model("numerics", "fake quantisation inside the network")
def fake_quantised():
    torch.manual_seed(12)
    return FakeQuant().eval(), rows()


class NearOne(nn.Module):
    def __init__(self, angle: bool) -> None:
        super().__init__()
        self.angle = angle
        self.register_buffer("nudge", 1e-3 * torch.randn(64))

    def forward(self, x):
        x = x + 2
        cosine = functional.cosine_similarity(x, x + self.nudge, dim=-1)
        return torch.acos(cosine.clamp(-1, 1)) if self.angle else 1 - cosine


@model("numerics", "one minus a cosine near one")
def cosine_near_one():
    torch.manual_seed(13)
    return NearOne(angle=False).eval(), rows(64)


@model("numerics", "acos near one: a rounding error becomes its square root")
def acos_near_one():
    torch.manual_seed(14)
    return NearOne(angle=True).eval(), rows(64)


@model("numerics", "variance of nearly constant data")
def tiny_variance():
    torch.manual_seed(15)
    return Call(lambda x: (1000 + 1e-2 * x.tanh()).var(-1)).eval(), rows(128)


@model("numerics", "variance as the mean of squares minus the square of the mean")
def naive_variance():
    torch.manual_seed(16)
    return Call(lambda x: x.square().mean(-1) - x.mean(-1).square()).eval(), rows(128)


@model("numerics", "softplus, log1p and expm1 in a chain")
def softplus_chain():
    torch.manual_seed(17)
    return Call(lambda x: torch.expm1(torch.log1p(functional.softplus(x)).tanh())).eval(), rows()


class Half(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))

    def forward(self, x):
        return self.net(x)


@model("numerics", "float16 weights and inputs", range={"x": (-4, 4)})
def float16_mlp():
    torch.manual_seed(18)
    return Half().half().eval(), (torch.randn(3, 32).half(),)


@model("numerics", "float16 convolutions", range={"input": (-4, 4)})
def float16_convnet():
    torch.manual_seed(19)
    layers = [nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5)]
    return nn.Sequential(*layers).half().eval(), (torch.randn(2, 3, 16, 16).half(),)


@model("numerics", "float64 weights and inputs")
def float64_mlp():
    torch.manual_seed(20)
    return Half().double().eval(), (torch.randn(3, 32, dtype=torch.float64),)


class Integers(nn.Module):
    def forward(self, ids, other):
        total = ids * 31 + other
        return {"hash": torch.remainder(total, 97), "bucket": torch.div(total, 16, rounding_mode="floor")}


# Beyond 2**24 the exporter's floor division is wrong: that is a fault of its own (integer-division-in-float).
@model(
    "numerics",
    "integers only: remainder and floor division of negative numbers",
    range={"ids": (-10_000, 10_000), "other": (-10_000, 10_000)},
)
def integer_hash():
    torch.manual_seed(21)
    return Integers().eval(), (torch.randint(-50, 50, (3, 8)), torch.randint(-50, 50, (3, 8)))


class Flags(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = net()

    def forward(self, x):
        y = self.net(x)
        return {"positive": y > 0, "any": (y > 0.5).any(-1), "all": (y > -0.5).all(-1)}


@model("numerics", "boolean outputs at a threshold")
def boolean_flags():
    torch.manual_seed(22)
    return Flags().eval(), rows()


class Ranks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = net(16, 12)

    def forward(self, x):
        y = self.net(x)
        values, places = y.topk(3, dim=-1)
        return {"label": y.argmax(-1), "values": values, "places": places, "sorted": y.sort(-1).values}


@model("numerics", "argmax, top-k and sort as outputs")
def ranking_outputs():
    torch.manual_seed(23)
    return Ranks().eval(), rows()


class Threshold(nn.Module):
    """Values above their row's upper quartile, the others set to zero."""

    def forward(self, x):
        limit = x.sort(-1).values[..., 11:12]
        return torch.where(x >= limit, x, torch.zeros_like(x)), limit.squeeze(-1)


@model("numerics", "a quantile as a threshold")
def quantile_threshold():
    torch.manual_seed(24)
    return Threshold().eval(), rows()


@model("numerics", "norm of tiny vectors with an epsilon of a thousandth")
def tiny_norms():
    torch.manual_seed(25)
    return Call(lambda x: x / torch.sqrt(x.square().sum(-1, keepdim=True) + 1e-3)).eval(), rows()


@model("numerics", "a matrix product over 4096 terms")
def wide_matmul():
    torch.manual_seed(26)
    return nn.Linear(4096, 16).eval(), (torch.randn(2, 4096),)


@model("numerics", "log-probabilities summed to a likelihood, then exponentiated")
def likelihood():
    torch.manual_seed(27)
    return Likelihood().eval(), rows()


class Likelihood(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = net(16, 24)

    def forward(self, x):
        score = self.net(x).log_softmax(-1)
        return score, torch.exp(score.sum(-1) / 8)
