"""Faults of the second jury that nobody planted: exporters and runtimes that err by themselves, on small models."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

from benchmarks.faults.inputs import Witness, given
from benchmarks.faults.registry import Fault, add, architecture

Made = tuple[nn.Module, tuple[Tensor, ...]]


def fault(name: str, architecture: str, witness: Witness, why: str, stage: str, **options: Any) -> None:
    """Register a fault of the exporter or the runtime."""
    add(Fault(f"jury-{name}", "runtime", architecture, None, witness, why, "tracker", stage, options))


class Shares(nn.Module):
    """Shares of a whole, kept from dividing by zero by a small number."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, counts: Tensor) -> Tensor:
        share = counts.abs() / (counts.abs().sum(-1, keepdim=True) + 1e-8)
        return self.head(share)


@architecture()
def jury_shares() -> Made:
    torch.manual_seed(71)
    return Shares().eval(), (torch.randn(3, 6),)


class Alternatives(nn.Module):
    """The log of two chances summed."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.logaddexp(self.left(x), self.right(x))


@architecture()
def jury_alternatives() -> Made:
    torch.manual_seed(72)
    return Alternatives().eval(), (torch.randn(3, 4),)


class Likelihood(nn.Module):
    """The log of a chance, as a product of experts sums it."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.logsigmoid(self.score(x)).sum(-1)


@architecture()
def jury_likelihood() -> Made:
    torch.manual_seed(73)
    return Likelihood().eval(), (torch.randn(3, 4),)


class Dead(nn.Module):
    """A limit below zero in front of a rectifier: all that is left is the bias."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 5), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.relu(self.first(x).clamp(-5.0, -1.0)))


@architecture()
def jury_dead() -> Made:
    torch.manual_seed(74)
    return Dead().eval(), (torch.randn(3, 4),)


class PaddedPool(nn.Module):
    """Zeros around a picture, then the greatest of each window: zeros may win."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 1)

    def forward(self, image: Tensor) -> Tensor:
        return F.max_pool2d(F.pad(self.stem(image), (1, 1, 1, 1)), 3, stride=2)


@architecture()
def jury_padded_pool() -> Made:
    torch.manual_seed(75)
    return PaddedPool().eval(), (torch.randn(2, 2, 5, 5),)


class Divisor(nn.Module):
    """A pooling with a divisor of its own."""

    def forward(self, image: Tensor) -> Tensor:
        return F.avg_pool2d(image, 3, stride=2, divisor_override=5)


@architecture()
def jury_divisor() -> Made:
    torch.manual_seed(76)
    return Divisor().eval(), (torch.randn(2, 2, 7, 7),)


class Objective(nn.Module):
    """A classifier that gives its own loss for each label."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(4, 3)

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.score(x), label, reduction="none")


@architecture(x={0: "batch"}, label={0: "batch"})
def jury_objective() -> Made:
    torch.manual_seed(77)
    return Objective().eval(), (torch.randn(3, 4), torch.tensor([[0.0, 1, 1], [1, 0, 1], [0, 0, 1]]))


class Steps(nn.Module):
    """How many whole steps of a tenth are in a price, and what is left."""

    def forward(self, price: Tensor) -> Tensor:
        return torch.div(price, 0.1, rounding_mode="floor")


@architecture()
def jury_steps() -> Made:
    torch.manual_seed(78)
    return Steps().eval(), (torch.randn(2, 8),)


class Stamps(nn.Module):
    """Milliseconds since 1970, none before a given one."""

    def forward(self, stamp: Tensor) -> Tensor:
        return torch.maximum(stamp, torch.tensor(1000))


@architecture()
def jury_stamps() -> Made:
    return Stamps().eval(), (torch.tensor([[0, 5, 999, 70000], [8, 1500, 20000, 90000]]),)


class Epochs(nn.Module):
    """Milliseconds since 1970 in whole seconds."""

    def forward(self, stamp: Tensor) -> Tensor:
        return torch.div(stamp, 1000, rounding_mode="floor")


@architecture()
def jury_epochs() -> Made:
    return Epochs().eval(), (torch.tensor([[0, 5, 999, 70000], [8, 1500, 20000, 90000]]),)


class Bearing(nn.Module):
    """The angle of a vector whose first part is cut at zero."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.atan2(x[:, 0].clamp(min=0.0), x[:, 1])


@architecture()
def jury_bearing() -> Made:
    torch.manual_seed(79)
    return Bearing().eval(), (torch.randn(6, 2),)


class Smooth(nn.Module):
    """A running log of sums."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.logcumsumexp(x, 1)


@architecture()
def jury_smooth() -> Made:
    torch.manual_seed(80)
    return Smooth().eval(), (torch.randn(2, 6),)


LARGE = [[300.0, 1, -2, 5], [1, 300, 1, -300], [-300, 2, 300, 300]]
STAMPS = [[2**31 + 5, 2**31 + 900000, 5, 2**32 - 7], [1_700_000_000_123, 999, 2**33 - 11, 3_000_000_001]]

fault(
    "epsilon-folded-away",
    "jury_shares",
    given("jury_shares", counts=0.0),
    "an addend of 1e-8 is taken for zero and removed",
    "simplify",
)
fault(
    "logaddexp-overflows",
    "jury_alternatives",
    given("jury_alternatives", x=LARGE),
    "exported as the logarithm of a sum of exponentials",
    "translate",
)
fault(
    "logsigmoid-vanishes",
    "jury_likelihood",
    given("jury_likelihood", x=LARGE),
    "exported as the logarithm of a sigmoid",
    "translate",
)
fault(
    "relu-fused-into-clip",
    "jury_dead",
    given("jury_dead", x=0.5),
    "a rectifier behind a limit below zero becomes one limit with its ends crossed",
    "simplify",
)
fault(
    "pad-fused-into-maxpool",
    "jury_padded_pool",
    given("jury_padded_pool", image=-np.abs(np.random.default_rng(4).normal(size=(2, 2, 5, 5)))),
    "zeros become the pool's own padding, which never wins",
    "optimize",
)
fault(
    "divisor-ignored",
    "jury_divisor",
    given("jury_divisor", image=1.0),
    "the divisor of an average pooling is dropped",
    "translate",
)
fault(
    "bce-with-logits-overflows",
    "jury_objective",
    given("jury_objective", x=LARGE, label=[[0, 1, 1], [1, 0, 1], [0, 0, 1]]),
    "exported as the logarithm of a sigmoid that vanished",
    "translate",
)
fault(
    "floor-of-quotient",
    "jury_steps",
    given("jury_steps", price=[[0.3, 0.6, 0.7, 0.9, 1.1, 1.2, 1.3, 1.7]] * 2),
    "the floor of a rounded quotient is one too large",
    "translate",
)
fault(
    "int64-compared-by-half",
    "jury_stamps",
    given("jury_stamps", stamp=STAMPS),
    "of 64 bits the lower half is compared",
    "kernel",
    range={"stamp": (0, 2**41)},
)
fault(
    "int64-divided-as-float",
    "jury_epochs",
    given("jury_epochs", stamp=STAMPS),
    "whole numbers are divided in single precision",
    "translate",
    range={"stamp": (0, 2**41)},
)
fault(
    "atan2-of-zero",
    "jury_bearing",
    given("jury_bearing", x=[[0.0, -1.0], [-3, -2], [1, 1], [2, -1], [0, -5], [0.5, 0]]),
    "the angle of (0, −1) is −π",
    "translate",
)
fault(
    "logcumsumexp-overflows",
    "jury_smooth",
    given("jury_smooth", x=[[100.0, 200, -50, 3, 120, 0], [-200.0, -150, -300, -120, -90, -100]]),
    "exported without a shift",
    "translate",
)
