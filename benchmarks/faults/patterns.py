"""Small models on which today's exporters, onnxruntime's optimisers or its kernels err. Nothing is mutated in them."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

from benchmarks.faults.architectures import Made
from benchmarks.faults.registry import architecture

# --- sizes ----------------------------------------------------------------------------------------------------------


class BranchOnBatch(nn.Module):
    """Small batches take the fast path."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        if x.shape[0] > 2:
            return torch.softmax(y, dim=-1)
        return torch.sigmoid(y)


@architecture()
def branch_on_batch() -> Made:
    torch.manual_seed(70)
    return BranchOnBatch().eval(), (torch.randn(3, 6),)


class HalfCrop(nn.Module):
    """Only the first half of a series is used."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, : int(x.shape[1] * 0.5)].sum(1)


@architecture(x={0: "batch", 1: "time"})
def half_crop() -> Made:
    torch.manual_seed(71)
    return HalfCrop().eval(), (torch.randn(2, 8, 3),)


class AdaptivePool(nn.Module):
    """Pictures of any size, pooled to 2 x 2."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(16, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(F.adaptive_avg_pool2d(F.relu(self.conv(image)), (2, 2)).flatten(1))


@architecture(image={0: "batch", 2: "height", 3: "width"})
def adaptive_pool() -> Made:
    torch.manual_seed(72)
    return AdaptivePool().eval(), (torch.randn(2, 3, 8, 8),)


# --- onnxruntime ----------------------------------------------------------------------------------------------------


class PadPool(nn.Module):
    """A stem that pads by hand before it pools."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(F.pad(x - 3, (1, 1, 1, 1)), 3, 2)


@architecture()
def pad_pool() -> Made:
    torch.manual_seed(73)
    return PadPool().eval(), (torch.randn(2, 3, 8, 8),)


class NanAwareMax(nn.Module):
    """The peak of a signal; a channel with a missing value counts as missing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nan_to_num(x.amax(-1), nan=-1.0)


@architecture()
def nan_aware_max() -> Made:
    torch.manual_seed(74)
    return NanAwareMax().eval(), (torch.randn(3, 4, 8),)


class NanAwarePool(nn.Module):
    """Pooled tiles of a satellite picture; a tile with a missing pixel is marked."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = F.max_pool2d(x, 2)
        return torch.where(torch.isnan(pooled), torch.full_like(pooled, -9.0), pooled)


@architecture()
def nan_aware_pool() -> Made:
    torch.manual_seed(75)
    return NanAwarePool().eval(), (torch.randn(2, 1, 8, 8),)


class NanAwareTop(nn.Module):
    """The three largest readings; a missing one sorts first, and is then zeroed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nan_to_num(x.topk(3, dim=-1).values, nan=0.0)


@architecture()
def nan_aware_top() -> Made:
    torch.manual_seed(76)
    return NanAwareTop().eval(), (torch.randn(3, 8),)


# --- translation ----------------------------------------------------------------------------------------------------


class DivisorPool(nn.Module):
    """A sum over windows, scaled."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(x, 3, 2, 1, divisor_override=2)


@architecture()
def divisor_pool() -> Made:
    torch.manual_seed(77)
    return DivisorPool().eval(), (torch.randn(2, 3, 8, 8),)


class Buckets(nn.Module):
    """Which bucket of width 0.1 a reading falls into."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.floor_divide(x, 0.1)


@architecture()
def width_buckets() -> Made:
    torch.manual_seed(78)
    return Buckets().eval(), (torch.rand(3, 6),)


class HalfTotals(nn.Module):
    """Totals in half precision."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2).sum(-1)


@architecture()
def half_totals() -> Made:
    torch.manual_seed(79)
    return HalfTotals().eval(), (torch.randn(3, 8).half(),)


class PairRanker(nn.Module):
    """The log likelihood that one item is preferred over another."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(5, 1)

    def forward(self, chosen: torch.Tensor, rejected: torch.Tensor) -> torch.Tensor:
        return F.logsigmoid(self.score(chosen) - self.score(rejected))


@architecture()
def pair_ranker() -> Made:
    torch.manual_seed(80)
    return PairRanker().eval(), (torch.randn(3, 5), torch.randn(3, 5))


class LogMixture(nn.Module):
    """Two log densities, mixed."""

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return torch.logaddexp(first - 0.7, second - 0.7)


@architecture()
def log_mixture() -> Made:
    torch.manual_seed(81)
    return LogMixture().eval(), (torch.randn(3, 4), torch.randn(3, 4))


class ForwardScores(nn.Module):
    """A running log-sum, as in a forward algorithm."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logcumsumexp(x, dim=1)


@architecture()
def forward_scores() -> Made:
    torch.manual_seed(82)
    return ForwardScores().eval(), (torch.randn(3, 8),)


class Interest(nn.Module):
    """Interest on a million at small daily rates."""

    def forward(self, rate: torch.Tensor) -> torch.Tensor:
        return torch.expm1(rate.clamp(max=3.0)) * 1e6


@architecture()
def interest() -> Made:
    torch.manual_seed(83)
    return Interest().eval(), (torch.randn(3, 4) * 1e-3,)


class Heading(nn.Module):
    """The direction of a movement."""

    def forward(self, east: torch.Tensor, north: torch.Tensor) -> torch.Tensor:
        return torch.atan2(north, east)


@architecture()
def heading() -> Made:
    torch.manual_seed(84)
    return Heading().eval(), (torch.randn(3, 4), torch.randn(3, 4))


class MeanMessages(nn.Module):
    """A graph layer that averages what arrives at each node."""

    def __init__(self) -> None:
        super().__init__()
        self.update = nn.Linear(4, 4)

    def forward(self, nodes: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        messages = nodes[source]
        index = target[:, None].expand(-1, nodes.shape[1])
        gathered = torch.zeros_like(nodes).scatter_reduce(0, index, messages, "mean", include_self=False)
        return self.update(gathered)


@architecture(nodes={0: "nodes"}, source={0: "edges"}, target={0: "edges"})
def mean_messages() -> Made:
    torch.manual_seed(85)
    source, target = torch.tensor([0, 1, 2, 3, 4, 0]), torch.tensor([1, 1, 0, 0, 0, 3])
    return MeanMessages().eval(), (torch.randn(5, 4), source, target)


class MaskedAttention(nn.Module):
    """Attention where a query may have no key to look at."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x)[:, None].chunk(3, dim=-1)
        allowed = (mask != 0)[:, None, None, :].expand(-1, 1, x.shape[1], -1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)[:, 0]


@architecture()
def masked_attention() -> Made:
    torch.manual_seed(86)
    return MaskedAttention().eval(), (torch.randn(2, 4, 8), torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]]))


# --- the exporter's own optimiser -----------------------------------------------------------------------------------


class UnitVectors(nn.Module):
    """Rows of length one, with the usual guard against zero."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x / (x.norm(dim=-1, keepdim=True) + 1e-8))


@architecture()
def unit_vectors() -> Made:
    torch.manual_seed(87)
    return UnitVectors().eval(), (torch.randn(3, 5),)


class Entropy(nn.Module):
    """How uncertain a classifier is."""

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        p = torch.softmax(logits, dim=-1)
        return -(p * torch.log(p + 1e-10)).sum(-1)


@architecture()
def entropy() -> Made:
    torch.manual_seed(88)
    return Entropy().eval(), (torch.randn(3, 6),)


class Standardise(nn.Module):
    """Each row to mean 0 and variance 1."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-9)


@architecture()
def standardise() -> Made:
    torch.manual_seed(89)
    return Standardise().eval(), (torch.randn(3, 6),)


class Penalty(nn.Module):
    """A bounded loss turned into a reward; what would be negative counts as none."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x.clamp(-3.0, -1.0)) + x * 0.5


@architecture()
def penalty() -> Made:
    torch.manual_seed(90)
    return Penalty().eval(), (torch.randn(3, 5),)


# --- the TorchScript exporter ---------------------------------------------------------------------------------------


class Histogram(nn.Module):
    """Weights added up per bucket; several may fall into the same one."""

    def forward(self, index: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.zeros(6).index_put((index,), weight, accumulate=True)


@architecture(index={0: "items"}, weight={0: "items"})
def histogram() -> Made:
    torch.manual_seed(91)
    return Histogram().eval(), (torch.tensor([0, 3, 3, 5]), torch.rand(4))


class Bucket(nn.Module):
    """The bucket that an id is in."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.div(x, 16, rounding_mode="floor")


@architecture()
def bucket() -> Made:
    """Integer floor division by name."""
    torch.manual_seed(93)
    return Bucket().eval(), (torch.randint(-50, 50, (3, 4)),)


class GridCell(nn.Module):
    """The cell of a grid that a coordinate is in."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x // 10


@architecture()
def grid_cell() -> Made:
    torch.manual_seed(92)
    return GridCell().eval(), (torch.randint(0, 50, (3, 2)),)


class ByValue(nn.Module):
    """One formula for gains, another for losses."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x - 1


@architecture()
def by_value() -> Made:
    return ByValue().eval(), (torch.ones(2, 3),)


class ItemScale(nn.Module):
    """The input's own peak, taken out as a Python number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / max(float(x.abs().max()), 1.0)


@architecture()
def item_scale() -> Made:
    torch.manual_seed(93)
    return ItemScale().eval(), (torch.randn(3, 4) * 2,)


class ShiftedBits(nn.Module):
    """Fixed-point numbers, halved by a shift."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x >> 1


@architecture()
def shifted_bits() -> Made:
    torch.manual_seed(94)
    return ShiftedBits().eval(), (torch.randint(0, 100, (3, 4)),)
