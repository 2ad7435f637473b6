"""Architectures of the second jury: attention, recurrence, texts, routing and scans."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

from benchmarks.faults.registry import architecture

Made = tuple[nn.Module, tuple[Tensor, ...]]


class Rotary(nn.Module):
    """Causal attention with rotary positions."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.register_buffer("rates", 100.0 ** (-torch.arange(2.0) / 2))

    def turn(self, x: Tensor) -> Tensor:
        angle = torch.arange(x.shape[2])[:, None] * self.rates
        cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, 2, 4).permute(2, 0, 3, 1, 4)
        scores = self.turn(q) @ self.turn(k).transpose(-1, -2) / math.sqrt(4)
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, -1e9).softmax(-1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(b, n, 8))


@architecture(x={0: "batch", 1: "seq"})
def jury_rotary() -> Made:
    torch.manual_seed(31)
    return Rotary().eval(), (torch.randn(2, 6, 8),)


class Relative(nn.Module):
    """Attention with a table of biases by distance, the far ones sharing a row, and a mask of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 2)
        self.qk, self.v, self.out = nn.Linear(6, 12), nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        b, n, _ = x.shape
        place = torch.arange(n)
        distance = (place[None] - place[:, None]).clamp(-4, 4) + 4
        bias = self.table(distance).permute(2, 0, 1)
        q, k = self.qk(x).reshape(b, n, 2, 2, 3).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(3) + bias
        scores = scores + (1.0 - mask[:, None, None].float()) * -1e4
        mixed = scores.softmax(-1) @ self.v(x).reshape(b, n, 2, 3).transpose(1, 2)
        return self.out(mixed.transpose(1, 2).reshape(b, n, 6))


@architecture(x={0: "batch", 1: "seq"}, mask={0: "batch", 1: "seq"})
def jury_relative() -> Made:
    torch.manual_seed(32)
    return Relative().eval(), (torch.randn(2, 5, 6), torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]]))


class Windows(nn.Module):
    """Attention within shifted windows."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(6, eps=1e-6)
        self.qkv, self.out = nn.Linear(6, 18), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        y = torch.roll(self.norm(x), -2, 1).reshape(b, n // 4, 4, 6)
        q, k, v = self.qkv(y).chunk(3, -1)
        y = torch.softmax(q @ k.transpose(-1, -2) * 6**-0.5, -1) @ v
        return x + torch.roll(self.out(y).reshape(b, n, 6), 2, 1)


@architecture()
def jury_windows() -> Made:
    torch.manual_seed(33)
    return Windows().eval(), (torch.randn(2, 12, 6),)


class LinearAttention(nn.Module):
    """Attention by running sums, without a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(5, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
        state = torch.cumsum(k[..., None] * v[..., None, :], 1)
        total = (q * k.cumsum(1)).sum(-1, keepdim=True)
        return (q[..., None] * state).sum(2) / (total + 1e-6)


@architecture(x={0: "batch", 1: "seq"})
def jury_linear_attention() -> Made:
    torch.manual_seed(34)
    return LinearAttention().eval(), (torch.randn(2, 6, 5),)


class Gru(nn.Module):
    """A gated cell written by hand, unrolled over a fixed length."""

    def __init__(self) -> None:
        super().__init__()
        self.gates, self.inner, self.keep = nn.Linear(4, 12), nn.Linear(6, 12), nn.Linear(6, 6)
        self.new = nn.Linear(4, 6)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.shape[0], 6)
        for t in range(4):
            z, r = torch.sigmoid(self.gates(x[:, t]) + self.inner(h)).chunk(2, -1)
            h = (1 - z) * torch.tanh(self.new(x[:, t]) + r * self.keep(h)) + z * h
        return h


@architecture()
def jury_gru() -> Made:
    torch.manual_seed(35)
    return Gru().eval(), (torch.randn(3, 4, 4),)


class Peephole(nn.Module):
    """An LSTM whose gates see the cell; it gives its state away."""

    def __init__(self) -> None:
        super().__init__()
        self.all = nn.Linear(7, 16)
        self.peep = nn.Parameter(torch.randn(3, 4) * 0.5)

    def forward(self, x: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = self.all(torch.cat([x, hidden], -1)).chunk(4, -1)
        i, f = torch.sigmoid(i + self.peep[0] * cell), torch.sigmoid(f + self.peep[1] * cell + 1.0)
        new_cell = (f * cell + i * torch.tanh(g)).clamp(-10, 10)
        return torch.sigmoid(o + self.peep[2] * new_cell) * torch.tanh(new_cell), new_cell


@architecture(x={0: "batch"}, hidden={0: "batch"}, cell={0: "batch"})
def jury_peephole() -> Made:
    torch.manual_seed(36)
    return Peephole().eval(), (torch.randn(3, 3), torch.randn(3, 4), torch.randn(3, 4))


class Pooling(nn.Module):
    """A text by the mean, the greatest and the last of its words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 6, padding_idx=0)
        self.head = nn.Linear(18, 3)

    def forward(self, ids: Tensor) -> Tensor:
        real = (ids != 0)[:, :, None]
        x = self.words(ids)
        count = real.sum(1)
        mean = (x * real).sum(1) / count.clamp(min=1)
        best = x.masked_fill(~real, -100.0).amax(1)
        last = x.gather(1, (count[:, :, None] - 1).clamp(min=0).expand(-1, -1, 6))[:, 0]
        return self.head(torch.cat([mean, best, last], -1))


@architecture(ids={0: "batch", 1: "seq"})
def jury_pooling() -> Made:
    torch.manual_seed(37)
    ids = torch.tensor([[3, 39, 7, 2, 1, 0], [5, 11, 0, 0, 0, 0], [8, 9, 10, 22, 31, 6]])
    return Pooling().eval(), (ids,)


class Sinusoid(nn.Module):
    """Positions by sines, a block with both norms, and the tanh form of the GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(16, 8)
        self.scale = nn.Parameter(torch.rand(8) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        place = torch.arange(x.shape[1], dtype=torch.float32)[:, None]
        rate = torch.exp(torch.arange(0, 8, 2) * (-math.log(10000.0) / 8))
        x = x + torch.stack([torch.sin(place * rate), torch.cos(place * rate)], -1).flatten(1)
        x = x + self.narrow(F.gelu(self.wide(self.norm(x)), approximate="tanh"))
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.scale


@architecture(x={0: "batch", 1: "seq"})
def jury_sinusoid() -> Made:
    torch.manual_seed(38)
    return Sinusoid().eval(), (torch.randn(2, 7, 8),)


class Scan(nn.Module):
    """A diagonal state space with steps that depend on the input, written as a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.step, self.read, self.write = nn.Linear(4, 4), nn.Linear(4, 3), nn.Linear(4, 3)
        self.rates = nn.Parameter(torch.rand(4, 3).log())
        self.skip = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        delta = F.softplus(self.step(x))
        decay = torch.exp(-delta[..., None] * self.rates.exp())
        drive = (delta * x)[..., None] * self.write(x)[:, :, None]
        h, seen = torch.zeros(x.shape[0], 4, 3), []
        for t in range(5):
            h = decay[:, t] * h + drive[:, t]
            seen.append((h * self.read(x)[:, t, None]).sum(-1))
        return torch.stack(seen, 1) + self.skip * x


@architecture()
def jury_scan() -> Made:
    torch.manual_seed(39)
    return Scan().eval(), (torch.randn(2, 5, 4),)


class Experts(nn.Module):
    """Two of four experts for each token, with weights that sum to one."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, 6, 8) * 0.4), nn.Parameter(torch.randn(4, 8, 6) * 0.4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        weight, chosen = self.router(x).softmax(-1).topk(2, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        hidden = F.silu(torch.einsum("bd,bkdh->bkh", x, self.up[chosen]))
        out = torch.einsum("bkh,bkhd->bkd", hidden, self.down[chosen])
        return (out * weight[..., None]).sum(1), chosen


@architecture()
def jury_experts() -> Made:
    torch.manual_seed(40)
    return Experts().eval(), (torch.randn(4, 6),)


class Grouped(nn.Module):
    """Grouped queries over a cache whose rows are of different length."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.out = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
        self.gate = nn.Parameter(torch.rand(8) + 0.5)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, length: Tensor) -> Tensor:
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.gate
        q = self.q(y).reshape(-1, 4, 1, 2)
        k, v = keys.repeat_interleave(2, 1), values.repeat_interleave(2, 1)
        seen = torch.arange(keys.shape[2]) < length[:, None, None, None]
        scores = torch.where(seen, q @ k.transpose(-1, -2) / math.sqrt(2), torch.tensor(-1e30))
        return x + self.out((scores.softmax(-1) @ v).reshape(-1, 8))


@architecture(x={0: "batch"}, keys={0: "batch", 2: "past"}, values={0: "batch", 2: "past"}, length={0: "batch"})
def jury_grouped() -> Made:
    torch.manual_seed(41)
    return Grouped().eval(), (torch.randn(2, 8), torch.randn(2, 2, 5, 2), torch.randn(2, 2, 5, 2), torch.tensor([5, 1]))


class Beam(nn.Module):
    """One step of a beam: scores so far plus those of the next word, the best of all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(5, 11)

    def forward(self, hidden: Tensor, score: Tensor) -> dict[str, Tensor]:
        total = F.log_softmax(self.head(hidden), -1) + score[:, :, None]
        best, flat = total.flatten(1).topk(3, -1)
        return {"best": best, "beam": flat // 11, "token": flat % 11}


@architecture(hidden={0: "batch"}, score={0: "batch"})
def jury_beam() -> Made:
    torch.manual_seed(42)
    return Beam().eval(), (torch.randn(2, 3, 5), torch.randn(2, 3))


class Halves(nn.Module):
    """Arithmetic with the length: halves, thirds, what is in the middle and places between 0 and 1."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        front, tail = x[:, : n // 2].mean(1), x[:, -((n + 2) // 3) :].mean(1)
        middle = x[:, n // 2]
        place = torch.arange(n) / max(n - 1, 1)
        drift = (x.flip(1) * place[:, None]).sum(1)
        return self.head(torch.cat([front, tail, middle, drift], -1))


@architecture(x={0: "batch", 1: "seq"})
def jury_halves() -> Made:
    torch.manual_seed(43)
    return Halves().eval(), (torch.randn(2, 8, 4),)
