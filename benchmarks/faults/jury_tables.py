"""Architectures of the second jury: tables, recommenders, graphs, losses, statistics, integers and dates."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

from benchmarks.faults.registry import architecture

Made = tuple[nn.Module, tuple[Tensor, ...]]


class Towers(nn.Module):
    """A user and an item, each with a tower, and the cosine between them."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(50, 8), nn.Embedding(30, 8)
        self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)
        self.register_buffer("heat", torch.tensor(0.07))

    def forward(self, user: Tensor, item: Tensor) -> tuple[Tensor, Tensor]:
        a, b = self.left(self.users(user)), self.right(self.items(item))
        close = F.cosine_similarity(a, b, dim=-1)
        return close, torch.sigmoid(close / self.heat)


@architecture(user={0: "batch"}, item={0: "batch"})
def jury_towers() -> Made:
    torch.manual_seed(51)
    return Towers().eval(), (torch.tensor([0, 49, 7]), torch.tensor([29, 3, 0]))


class Machine(nn.Module):
    """A factorisation machine over fields of ids, each field with an offset of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.weight = nn.Embedding(30, 4), nn.Embedding(30, 1)
        self.register_buffer("offset", torch.tensor([0, 10, 20]))

    def forward(self, fields: Tensor) -> Tensor:
        ids = fields + self.offset
        x = self.table(ids)
        pairs = x.sum(1).square() - x.square().sum(1)
        return self.weight(ids).sum((1, 2)) + 0.5 * pairs.sum(-1)


@architecture()
def jury_machine() -> Made:
    torch.manual_seed(52)
    return Machine().eval(), (torch.tensor([[0, 9, 3], [9, 0, 5], [4, 2, 7]]),)


class Messages(nn.Module):
    """Messages along edges, summed at their target and divided by how many came."""

    def __init__(self) -> None:
        super().__init__()
        self.send, self.keep = nn.Linear(4, 6), nn.Linear(4, 6)

    def forward(self, nodes: Tensor, source: Tensor, target: Tensor) -> Tensor:
        sent = self.send(nodes)[source]
        total = torch.zeros(nodes.shape[0], 6).index_add(0, target, sent)
        count = torch.zeros(nodes.shape[0]).index_add(0, target, torch.ones(target.shape[0]))
        return F.relu(self.keep(nodes) + total / count.clamp(min=1.0)[:, None])


@architecture(nodes={0: "nodes"}, source={0: "edges"}, target={0: "edges"})
def jury_messages() -> Made:
    torch.manual_seed(53)
    source, target = torch.tensor([0, 1, 2, 3, 4, 0, 2]), torch.tensor([1, 2, 3, 4, 0, 2, 2])
    return Messages().eval(), (torch.randn(5, 4), source, target)


class EdgeAttention(nn.Module):
    """Attention over the edges of a graph of six nodes: a softmax for each target."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.score = nn.Linear(4, 5), nn.Linear(10, 1)

    def forward(self, nodes: Tensor, source: Tensor, target: Tensor) -> Tensor:
        h = self.embed(nodes)
        raw = F.leaky_relu(self.score(torch.cat([h[source], h[target]], -1)), 0.2)[:, 0]
        top = torch.full((6,), -1e30).scatter_reduce(0, target, raw, "amax", include_self=True)
        weight = torch.exp(raw - top[target])
        total = torch.zeros(6).scatter_add(0, target, weight)
        share = weight / (total[target] + 1e-12)
        return torch.zeros(6, 5).index_add(0, target, share[:, None] * h[source])


@architecture(source={0: "edges"}, target={0: "edges"})
def jury_edge_attention() -> Made:
    torch.manual_seed(54)
    source, target = torch.tensor([0, 1, 2, 3, 4, 5, 2, 0]), torch.tensor([1, 2, 3, 4, 5, 0, 0, 3])
    return EdgeAttention().eval(), (torch.randn(6, 4), source, target)


class Coupling(nn.Module):
    """Two layers of an affine flow with the log of the volume."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 6), nn.Linear(3, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        volume = torch.zeros(x.shape[0])
        for layer in (self.first, self.second):
            a, b = x.chunk(2, -1)
            scale, shift = layer(a).chunk(2, -1)
            scale = 2.0 * torch.tanh(scale)
            x = torch.cat([b * scale.exp() + shift, a], -1)
            volume = volume + scale.sum(-1)
        density = -0.5 * (x.square() + math.log(2 * math.pi)).sum(-1)
        return x, density + volume


@architecture()
def jury_coupling() -> Made:
    torch.manual_seed(55)
    return Coupling().eval(), (torch.randn(3, 6),)


class Losses(nn.Module):
    """A model that gives its own losses: cross entropy of the labels that count, a focal one, a Huber one."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.value = nn.Linear(5, 4), nn.Linear(5, 1)

    def forward(self, x: Tensor, label: Tensor, goal: Tensor) -> dict[str, Tensor]:
        scores = F.log_softmax(self.head(x), -1)
        counts = (label >= 0).float()
        own = scores.gather(1, label.clamp(min=0)[:, None])[:, 0]
        smooth = 0.9 * own + 0.1 * scores.mean(-1)
        focal = (1 - own.exp()).square() * own
        error = self.value(x)[:, 0] - goal
        huber = torch.where(error.abs() < 1.0, 0.5 * error.square(), error.abs() - 0.5)
        total = counts.sum().clamp(min=1.0)
        return {"ce": -(smooth * counts).sum() / total, "focal": -(focal * counts).sum() / total, "huber": huber.mean()}


@architecture(x={0: "batch"}, label={0: "batch"}, goal={0: "batch"})
def jury_losses() -> Made:
    torch.manual_seed(56)
    return Losses().eval(), (torch.randn(5, 5), torch.tensor([0, 3, -1, 2, 1]), torch.randn(5))


class Quantiles(nn.Module):
    """Order statistics of a row, values beyond them cut, and its rank sums."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        ordered = x.sort(-1).values
        low = ordered[:, 1] * 0.25 + ordered[:, 2] * 0.75
        high = ordered[:, -3] * 0.4 + ordered[:, -2] * 0.6
        cut = torch.minimum(torch.maximum(x, low[:, None]), high[:, None])
        rank = (x[:, :, None] > x[:, None]).float().sum(-1)
        return (cut - cut.mean(-1, keepdim=True)) / (high - low + 1e-3)[:, None], rank


@architecture()
def jury_quantiles() -> Made:
    torch.manual_seed(57)
    return Quantiles().eval(), (torch.randn(3, 9),)


class Moments(nn.Module):
    """Deviation, skew and kurtosis of a row, and the row made standard."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        centred = x - x.mean(-1, keepdim=True)
        spread = x.std(-1, unbiased=True, keepdim=True)
        z = centred / (spread + 1e-6)
        return {"z": z, "spread": spread[:, 0], "skew": z.pow(3).mean(-1), "tail": z.pow(4).mean(-1) - 3.0}


@architecture()
def jury_moments() -> Made:
    torch.manual_seed(58)
    return Moments().eval(), (torch.randn(3, 12),)


class Returns(nn.Module):
    """Growth over days: running totals of log returns, the worst day, and what is left of a fee."""

    def forward(self, daily: Tensor) -> tuple[Tensor, Tensor]:
        kept = daily.clamp(-0.9, 9.0)
        growth = torch.cumsum(torch.log1p(kept), 1)
        wealth = torch.exp(growth)
        fee = wealth * (1 - torch.exp(torch.tensor(-0.01)))
        return wealth - fee, growth[:, -1] - growth.amin(1)


@architecture(daily={0: "batch", 1: "days"})
def jury_returns() -> Made:
    torch.manual_seed(59)
    return Returns().eval(), (torch.randn(2, 8) * 0.2,)


class Mixture(nn.Module):
    """The log likelihood of a value under a mixture of normals that the input decides."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 9)

    def forward(self, x: Tensor, value: Tensor) -> Tensor:
        weight, mean, raw = self.net(x).chunk(3, -1)
        scale = F.softplus(raw) + 1e-2
        z = (value[:, None] - mean) / scale
        parts = F.log_softmax(weight, -1) - 0.5 * z.square() - scale.log() - 0.5 * math.log(2 * math.pi)
        top = parts.amax(-1, keepdim=True)
        return top[:, 0] + (parts - top).exp().sum(-1).log()


@architecture(x={0: "batch"}, value={0: "batch"})
def jury_mixture() -> Made:
    torch.manual_seed(60)
    return Mixture().eval(), (torch.randn(3, 4), torch.randn(3))


class Missing(nn.Module):
    """A table with holes: filled with the column's mean, marked, put into bins, and embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.3, -1.0, 2.0, 0.0]))
        self.register_buffer("scale", torch.tensor([1.5, 0.7, 2.0, 1.0]))
        self.register_buffer("edges", torch.tensor([-1.5, -0.5, 0.0, 0.5, 1.5]))
        self.bins = nn.Embedding(6, 3)
        self.head = nn.Linear(4 * 5, 2)

    def forward(self, row: Tensor) -> Tensor:
        hole = torch.isnan(row)
        x = (torch.where(hole, self.mean, row) - self.mean) / self.scale
        bins = (x[:, :, None] >= self.edges).long().sum(-1)
        return self.head(torch.cat([self.bins(bins), x[:, :, None], hole.float()[:, :, None]], -1).flatten(1))


@architecture()
def jury_missing() -> Made:
    torch.manual_seed(61)
    return Missing().eval(), (torch.randn(3, 4),)


class Bits(nn.Module):
    """Ids mixed by a multiplication and exclusive or, into buckets and single bits."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(16, 4)
        self.head = nn.Linear(8, 4)
        self.register_buffer("places", 2 ** torch.arange(8))

    def forward(self, key: Tensor) -> tuple[Tensor, Tensor]:
        mixed = (key ^ 0x2A) * 40503
        mixed = (mixed ^ (mixed // 1024)) & 0x7FFFFFFF
        bits = (key[:, None] // self.places) % 2
        return self.table(mixed % 16) + self.head(bits.float()), mixed


@architecture()
def jury_bits() -> Made:
    torch.manual_seed(62)
    return Bits().eval(), (torch.tensor([0, 17, 999, 512, 255]),)


class Calendar(nn.Module):
    """Days since 1970 to weekday, year, month and day, by integer arithmetic, and a seasonal term."""

    def forward(self, day: Tensor) -> dict[str, Tensor]:
        z = day + 719468
        era = torch.div(z, 146097, rounding_mode="floor")
        doe = z - era * 146097
        yoe = torch.div(doe - doe // 1460 + doe // 36524 - doe // 146096, 365, rounding_mode="floor")
        doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
        part = (5 * doy + 2) // 153
        month = torch.where(part < 10, part + 3, part - 9)
        year = yoe + era * 400 + (month <= 2).long()
        season = torch.sin(2 * math.pi * doy.float() / 365.25)
        return {"weekday": (day + 4) % 7, "year": year, "month": month, "season": season}


@architecture()
def jury_calendar() -> Made:
    return Calendar().eval(), (torch.tensor([0, 59, 11017, 19782, 20000]),)


class Globe(nn.Module):
    """The great circle between two places, and the bearing."""

    def forward(self, here: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        a, b = torch.deg2rad(here), torch.deg2rad(there)
        half = (b - a) / 2
        inner = half[:, 0].sin().square() + a[:, 0].cos() * b[:, 0].cos() * half[:, 1].sin().square()
        far = 2 * 6371.0 * torch.asin(inner.clamp(0.0, 1.0).sqrt())
        x = b[:, 0].cos() * (b[:, 1] - a[:, 1]).sin()
        y = a[:, 0].cos() * b[:, 0].sin() - a[:, 0].sin() * b[:, 0].cos() * (b[:, 1] - a[:, 1]).cos()
        return far, torch.rad2deg(torch.atan2(x, y)) % 360.0


@architecture(here={0: "batch"}, there={0: "batch"})
def jury_globe() -> Made:
    torch.manual_seed(63)
    return Globe().eval(), (torch.tensor([[52.5, 13.4], [40.7, -74.0]]), torch.tensor([[48.9, 2.4], [35.7, 139.7]]))


class Tracker(nn.Module):
    """One step of a filter with a two by two covariance, inverted by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("move", torch.tensor([[1.0, 0.5], [0.0, 1.0]]))
        self.register_buffer("noise", torch.tensor([[0.3, 0.05], [0.05, 0.2]]))

    def forward(self, state: Tensor, seen: Tensor, spread: Tensor) -> tuple[Tensor, Tensor]:
        guess = state @ self.move.T
        cov = self.move @ (spread @ spread.transpose(1, 2)) @ self.move.T + self.noise
        total = cov + torch.eye(2)
        a, b, c, d = total[:, 0, 0], total[:, 0, 1], total[:, 1, 0], total[:, 1, 1]
        inverse = torch.stack([d, -b, -c, a], -1).reshape(-1, 2, 2) / (a * d - b * c)[:, None, None]
        gain = cov @ inverse
        return guess + (gain @ (seen - guess)[:, :, None])[:, :, 0], cov - gain @ cov


@architecture(state={0: "batch"}, seen={0: "batch"}, spread={0: "batch"})
def jury_tracker() -> Made:
    torch.manual_seed(64)
    return Tracker().eval(), (torch.randn(2, 2), torch.randn(2, 2), torch.randn(2, 2, 2))


class Many(nn.Module):
    """Three inputs, three answers, and square weights."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)
        self.kind = nn.Embedding(5, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, text: Tensor, sound: Tensor, kind: Tensor) -> dict[str, Tensor]:
        x = torch.tanh(self.a(text)) * torch.sigmoid(self.b(sound)) + self.kind(kind)
        mean, raw = self.head(F.layer_norm(x, (6,))).unbind(-1)
        return {"mean": mean, "spread": F.softplus(raw), "embedding": F.normalize(x, dim=-1)}


@architecture(text={0: "batch"}, sound={0: "batch"}, kind={0: "batch"})
def jury_many() -> Made:
    torch.manual_seed(65)
    return Many().eval(), (torch.randn(3, 6), torch.randn(3, 6), torch.tensor([0, 4, 2]))
