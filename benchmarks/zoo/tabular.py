"""Recommenders, tables and forecasters."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from benchmarks.zoo.registry import model


def mlp(*widths: int) -> nn.Sequential:
    """Linear layers with ReLU between."""
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Bags(nn.Module):
    """Means of embedded ids, by id lists of equal length."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(200, 16)
        self.head = mlp(16, 32, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(ids).mean(1)).squeeze(-1)


@model("tabular", "bag of embedded ids")
def embedding_bag_mean():
    torch.manual_seed(0)
    return Bags().eval(), (torch.randint(0, 200, (3, 6)),)


class SummedBags(nn.Module):
    """PyTorch's own bag layer over id lists of equal length."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(200, 16, mode="sum")
        self.head = mlp(16, 32, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.bag(ids)).squeeze(-1)


@model("tabular", "nn.EmbeddingBag", range={"ids": (0, 199)})
def embedding_bag():
    torch.manual_seed(11)
    return SummedBags().eval(), (torch.randint(0, 200, (3, 6)),)


class DLRM(nn.Module):
    """Dense and categorical features meet in pairwise products."""

    def __init__(self, tables: int = 4, width: int = 8) -> None:
        super().__init__()
        self.bottom = mlp(5, 16, width)
        self.tables = nn.ModuleList(nn.Embedding(30 + i, width) for i in range(tables))
        pairs = torch.triu_indices(tables + 1, tables + 1, offset=1)
        self.register_buffer("rows", pairs[0])
        self.register_buffer("columns", pairs[1])
        self.top = mlp(width + pairs.shape[1], 16, 1)

    def forward(self, dense: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        parts = [x] + [table(categories[:, i]) for i, table in enumerate(self.tables)]
        features = torch.stack(parts, 1)
        products = torch.bmm(features, features.transpose(1, 2))[:, self.rows, self.columns]
        return self.top(torch.cat([x, products], 1)).sigmoid().squeeze(-1)


@model("tabular", "embedding tables and pairwise products", range={"categories": (0, 29)})
def dlrm():
    torch.manual_seed(1)
    return DLRM().eval(), (torch.randn(3, 5), torch.randint(0, 30, (3, 4)))


class FactorizationMachine(nn.Module):
    """Square of the sum minus sum of the squares: cancellation by design."""

    def __init__(self, fields: int = 10, width: int = 8) -> None:
        super().__init__()
        self.bias, self.linear = nn.Parameter(torch.zeros(1)), nn.Linear(fields, 1)
        self.factors = nn.Parameter(torch.randn(fields, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        square_of_sum = (x @ self.factors).square()
        sum_of_squares = x.square() @ self.factors.square()
        return self.bias + self.linear(x).squeeze(-1) + 0.5 * (square_of_sum - sum_of_squares).sum(-1)


@model("tabular", "difference of two large sums")
def factorization_machine():
    torch.manual_seed(2)
    return FactorizationMachine().eval(), (torch.randn(3, 10),)


class WideDeep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.embed = nn.Linear(12, 1), nn.Embedding(40, 8)
        self.deep = mlp(12 + 3 * 8, 32, 16, 1)

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return (self.wide(dense) + self.deep(torch.cat([dense, self.embed(ids).flatten(1)], 1))).squeeze(-1)


@model("tabular", "wide and deep: floats and ids")
def wide_and_deep():
    torch.manual_seed(3)
    return WideDeep().eval(), (torch.randn(3, 12), torch.randint(0, 40, (3, 3)))


class TwoTower(nn.Module):
    """Normalised user and item vectors, and their cosine."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(50, 16), nn.Embedding(80, 16)
        self.user, self.item = mlp(16, 32, 16), mlp(16, 32, 16)

    def forward(self, user_id: torch.Tensor, item_id: torch.Tensor) -> dict[str, torch.Tensor]:
        user, item = self.user(self.users(user_id)), self.item(self.items(item_id))
        return {"user": user, "item": item, "score": nn.functional.cosine_similarity(user, item, dim=-1)}


@model("tabular", "two towers and their cosine")
def two_tower():
    torch.manual_seed(4)
    return TwoTower().eval(), {"user_id": torch.randint(0, 50, (3,)), "item_id": torch.randint(0, 80, (3,))}


class CrossNetwork(nn.Module):
    """Explicit feature crosses (DCN v2)."""

    def __init__(self, width: int = 12, layers: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        start = x
        for layer in self.layers:
            x = start * layer(x) + x
        return self.head(x).squeeze(-1)


@model("tabular", "polynomial crosses: outputs grow with the fourth power")
def deep_cross():
    torch.manual_seed(5)
    return CrossNetwork().eval(), (torch.randn(3, 12),)


class NBeatsBlock(nn.Module):
    def __init__(self, past: int, future: int) -> None:
        super().__init__()
        self.body, self.back, self.ahead = mlp(past, 32, 32), nn.Linear(32, past), nn.Linear(32, future)

    def forward(self, x):
        hidden = self.body(x).relu()
        return self.back(hidden), self.ahead(hidden)


class NBeats(nn.Module):
    def __init__(self, past: int = 24, future: int = 6, blocks: int = 4) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(NBeatsBlock(past, future) for _ in range(blocks))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        forecast = 0
        for block in self.blocks:
            back, ahead = block(x)
            x, forecast = x - back, forecast + ahead
        return forecast


@model("tabular", "forecaster: residuals of residuals")
def nbeats():
    torch.manual_seed(6)
    return NBeats().eval(), (torch.randn(3, 24),)


class DLinear(nn.Module):
    """Trend by a moving average, a linear map for trend and rest."""

    def __init__(self, past: int = 32, future: int = 8) -> None:
        super().__init__()
        self.trend, self.season = nn.Linear(past, future), nn.Linear(past, future)
        self.average = nn.AvgPool1d(5, stride=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = torch.cat([x[..., :1].repeat(1, 1, 2), x, x[..., -1:].repeat(1, 1, 2)], -1)
        trend = self.average(padded)
        return self.trend(trend) + self.season(x - trend)


@model("tabular", "forecaster: moving average and linear maps")
def dlinear():
    torch.manual_seed(7)
    return DLinear().eval(), (torch.randn(3, 4, 32),)


class PatchForecaster(nn.Module):
    """Patches of a normalised series through a transformer; the scale is put back at the end."""

    def __init__(self, patch: int = 8, width: int = 16, future: int = 6) -> None:
        super().__init__()
        self.patch = patch
        self.embed, self.head = nn.Linear(patch, width), nn.Linear(4 * width, future)
        self.encoder = nn.TransformerEncoderLayer(width, 2, 32, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, scale = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 0.1
        patches = ((x - mean) / scale).unfold(1, self.patch, self.patch)
        return self.head(self.encoder(self.embed(patches)).flatten(1)) * scale + mean


@model("tabular", "forecaster: reversible normalisation around patches")
def patch_forecaster():
    torch.manual_seed(8)
    return PatchForecaster().eval(), (torch.randn(3, 32),)


class Experts(nn.Module):
    """Dense mixture: all experts run, the two best gates count."""

    def __init__(self, experts: int = 4, width: int = 16) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.first = nn.Parameter(torch.randn(experts, width, 32) / 4)
        self.second = nn.Parameter(torch.randn(experts, 32, width) / 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)
        gates = torch.zeros_like(self.gate(x)).scatter(-1, chosen, weights / weights.sum(-1, keepdim=True))
        hidden = torch.einsum("bd,edh->beh", x, self.first).relu()
        return torch.einsum("beh,ehd,be->bd", hidden, self.second, gates)


@model("tabular", "mixture of experts with two of four gates")
def mixture_of_experts():
    torch.manual_seed(9)
    return Experts().eval(), (torch.randn(3, 16),)


class Tree(nn.Module):
    """Soft oblivious trees (NODE): products of sigmoids."""

    def __init__(self, features: int = 8, trees: int = 6, depth: int = 3) -> None:
        super().__init__()
        self.select = nn.Parameter(torch.randn(features, trees, depth))
        self.threshold = nn.Parameter(torch.randn(trees, depth))
        self.leaves = nn.Parameter(torch.randn(trees, 2**depth))
        codes = torch.tensor([[(leaf >> level) & 1 for level in range(depth)] for leaf in range(2**depth)])
        self.register_buffer("codes", codes.float())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        right = torch.sigmoid(torch.einsum("bf,ftd->btd", x, self.select.softmax(0)) - self.threshold).unsqueeze(2)
        share = (right * self.codes + (1 - right) * (1 - self.codes)).prod(-1)
        return (share * self.leaves).sum(-1)


@model("tabular", "soft decision trees: products of sigmoids")
def soft_trees():
    torch.manual_seed(10)
    return Tree().eval(), (torch.randn(3, 8),)
