"""Correct models that a search for the greatest difference is tempted to flag: it climbs to where rounding is all there is."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from benchmarks.zoo.numerics import rows
from benchmarks.zoo.registry import model


def front(width: int, outputs: int) -> nn.Sequential:
    """Layers whose outputs are unbounded and never equal to the last digit on both sides."""
    return nn.Sequential(nn.Linear(width, 48), nn.SiLU(), nn.Linear(48, outputs))


class Growth(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rate = front(8, 4)

    def forward(self, x):
        return torch.exp(self.rate(x))


@model("tempting", "an exponential of a sum: beyond 88 both sides are infinite, at 88.7 only one may be")
def exponential_growth():
    torch.manual_seed(300)
    return Growth().eval(), rows(8)


class EmptyShares(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.units = front(6, 5)

    def forward(self, x):
        y = self.units(x).relu()
        return y / y.sum(-1, keepdim=True)


@model("tempting", "shares of a sum without an epsilon: rows without a positive value are NaN on both sides")
def empty_shares():
    torch.manual_seed(301)
    return EmptyShares().eval(), rows(6)


class Logs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = front(12, 5)

    def forward(self, x):
        y = self.inner(x)
        return torch.log(y), torch.sqrt(y)


@model("tempting", "logarithm and root of a sum: NaN below zero, and the sum's sign is rounding near zero")
def log_of_negatives():
    torch.manual_seed(302)
    return Logs().eval(), rows(12)


class Chosen(nn.Module):
    """The best of eight rows of a table, by a score."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.table = front(16, 8), nn.Embedding(8, 4)

    def forward(self, x):
        return self.table(self.score(x).argmax(-1))


@model("tempting", "a row of a table by argmax: near ties give quite another row")
def argmax_row():
    torch.manual_seed(303)
    return Chosen().eval(), rows()


class Ordered(nn.Module):
    """Tokens in the order of a score, the best three kept."""

    def __init__(self) -> None:
        super().__init__()
        self.score = front(6, 1)

    def forward(self, x):
        order = self.score(x)[..., 0].sort(-1, descending=True).indices[:, :3]
        return torch.gather(x, 1, order[..., None].expand(-1, -1, 6)).tanh()


@model("tempting", "tokens gathered in the order of a score: almost equal scores change places")
def order_by_score():
    torch.manual_seed(304)
    return Ordered().eval(), (torch.randn(2, 9, 6),)


class Binomial(nn.Module):
    def forward(self, x):
        y = functional.silu(x)
        return (y + 1).square() - y.square() - 2 * y


@model("tempting", "the binomial formula minus its parts: nothing but rounding is left")
def binomial_cancellation():
    torch.manual_seed(305)
    return Binomial().eval(), rows()


class LargeLogits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.keys, self.values = front(16, 10), nn.Linear(10, 4)

    def forward(self, x):
        weights = (self.keys(x) * 100).softmax(-1)
        return weights, self.values(weights), torch.logsumexp(self.keys(x) * 100, -1)


@model("tempting", "softmax of logits of a hundred thousand: the last digits of a logit decide")
def large_logits():
    torch.manual_seed(306)
    return LargeLogits().eval(), rows()


class Poles(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.above, self.below = front(10, 3), front(10, 3)

    def forward(self, x):
        return self.above(x) / self.below(x)


@model("tempting", "a quotient of two layers: poles wherever the lower one is nearly zero")
def quotient_poles():
    torch.manual_seed(307)
    return Poles().eval(), rows(10)


class Recurrence(nn.Module):
    """A state that is mixed and folded fifty times."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(8, 8)
        nn.init.orthogonal_(self.mix.weight, 1.6)

    def forward(self, x):
        for _ in range(50):
            x = torch.sin(2 * self.mix(x))
        return x


@model("tempting", "fifty turns of a chaotic recurrence: any rounding error grows to the size of the state")
def chaotic_recurrence():
    torch.manual_seed(308)
    return Recurrence().eval(), rows(8)


class Explosive(nn.Module):
    """A linear recurrence whose state doubles with every step."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(6, 6)
        nn.init.orthogonal_(self.step.weight, 2.2)

    def forward(self, x):
        x = functional.silu(x)
        for _ in range(110):
            x = self.step(x)
        return x


@model("tempting", "a growing linear recurrence: outputs of 1e38, infinite and then NaN for larger inputs")
def explosive_recurrence():
    torch.manual_seed(309)
    return Explosive().eval(), rows(6)


class NearlyConstant(nn.Module):
    """A linear layer, standardised per row."""

    def __init__(self) -> None:
        super().__init__()
        self.spread, self.norm = nn.Linear(4, 32), nn.LayerNorm(32)
        nn.init.normal_(self.spread.weight, 1.0, 1e-3)
        nn.init.constant_(self.spread.bias, 0.5)

    def forward(self, x):
        return self.norm(self.spread(x))


@model("tempting", "a LayerNorm of rows that are nearly constant and up to thousands")
def nearly_constant_norm():
    torch.manual_seed(310)
    return NearlyConstant().eval(), rows(4)


class SelfCosine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = front(20, 48)

    def forward(self, x):
        y = functional.normalize(self.project(x), dim=-1, eps=1e-5)
        return torch.sqrt((1 - (y * y).sum(-1)).abs()), functional.normalize(x * 1e-4, dim=-1, eps=1e-5)


@model("tempting", "the distance of a vector from itself: the root of a rounding error")
def self_distance():
    torch.manual_seed(311)
    return SelfCosine().eval(), rows(20)


class Angle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.plane = front(10, 2)

    def forward(self, x):
        first, second = self.plane(x).unbind(-1)
        radius = torch.sqrt(first.square() + second.square() + 1e-5)
        return torch.sign(first) * torch.acos(second / radius)


@model("tempting", "an angle at the cut: rounding turns plus pi into minus pi")
def angle_at_the_cut():
    torch.manual_seed(312)
    return Angle().eval(), rows(10)


class HalfLimit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(24, 24), nn.Linear(24, 4)
        nn.init.normal_(self.first.weight, std=5.0)

    def forward(self, x):
        y = self.first(x)
        return y, self.second(y.tanh())


@model("tempting", "float16 sums up to 96000: infinite above 65504 on both sides, and one after the tanh")
def float16_limit():
    torch.manual_seed(313)
    return HalfLimit().half().eval(), (torch.randn(3, 24).half(),)


class Sawtooth(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.phase = front(12, 4)

    def forward(self, x):
        turns = self.phase(x)
        return torch.remainder(turns, 1.0), torch.sin(200 * turns), torch.floor(turns)


@model("tempting", "phases: the remainder jumps from one to zero, a fast sine magnifies rounding")
def phase_wrap():
    torch.manual_seed(314)
    return Sawtooth().eval(), rows(12)


class LongPath(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(3000))

    def forward(self, x):
        return torch.cumsum(x * self.weight, -1)[:, -4:], (x @ self.weight)[:, None] - x.mean(-1, keepdim=True)


@model("tempting", "3000 products added up in two ways: sums of large numbers that nearly cancel")
def long_cancelling_sums():
    torch.manual_seed(315)
    return LongPath().eval(), (torch.randn(2, 3000),)


class StableLikelihood(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.logits = front(16, 6)

    def forward(self, x):
        y = self.logits(x)
        return -functional.softplus(-y), torch.log_softmax(y, -1).exp()


@model("tempting", "stable forms of the logarithm of a sigmoid and of a softmax: both tails end in exact zeros")
def stable_likelihoods():
    torch.manual_seed(316)
    return StableLikelihood().eval(), rows()
