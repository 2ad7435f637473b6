"""Models the tests prove, as TARGETs: each function returns (module, example_inputs)."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name


def tutorial():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 3)).eval(), (torch.randn(4, 10),)


def mlp():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5)).eval(), (
        torch.randn(3, 20),
    )


def cnn():
    torch.manual_seed(2)
    layers = [
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
    ]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4)).eval()
    return net, (torch.randn(2, 3, 16, 16),)


def gelu_mlp():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8)).eval(), (torch.randn(2, 16),)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.embed = nn.Embedding(50, 32)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 50)

    def forward(self, ids):
        return self.head(self.encoder(self.embed(ids)))


def transformer():
    torch.manual_seed(4)
    return Transformer().eval(), (torch.randint(0, 50, (2, 9)),)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 16, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def lstm():
    torch.manual_seed(5)
    return Recurrent().eval(), (torch.randn(2, 12, 6),)


def softmax():
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(12, 30), nn.Softmax(dim=-1)).eval(), (torch.randn(2, 12),)


CORRECT = ("mlp", "cnn", "gelu_mlp", "transformer", "lstm", "softmax")


# --- structure ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Result:
    logits: torch.Tensor
    hidden: list[torch.Tensor]


class Pair(NamedTuple):
    key: torch.Tensor
    value: torch.Tensor


class Structured(nn.Module):
    """Keyword, nested and optional inputs; a dataclass with a list and a named tuple as output."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x, state, *, scale=2.0, mask=None):
        y = self.fc(x) * scale + state["bias"]
        if mask is not None:
            y = y * mask
        return {"result": Result(y, [y + 1, y * 2]), "past": (Pair(y - 1, state["more"][0] + 1),)}


def structured():
    torch.manual_seed(7)
    state = {"bias": torch.randn(2, 3), "more": [torch.randn(2, 3)]}
    return Structured().eval(), {"x": torch.randn(2, 4), "state": state, "scale": 3.0, "mask": None}


class TwoOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6)

    def forward(self, x):
        y = self.fc(x)
        return {"first": y[:, :3], "second": y[:, 3:] * 2}


def two_outputs():
    torch.manual_seed(8)
    return TwoOutputs().eval(), (torch.randn(2, 4),)


class Discrete(nn.Module):
    def forward(self, x):
        return {"top": x.argmax(-1), "positive": x > 0, "values": x * 2}


def discrete():
    return Discrete(), (torch.randn(2, 5),)


# --- trouble --------------------------------------------------------------------------------------------------------


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.fc(x))


def train_mode():
    return Dropped(), (torch.randn(2, 4),)


class Random(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, training=True)


def random():
    return Random(), (torch.randn(2, 4),)


class BakedBatch(nn.Module):
    def forward(self, x):
        return torch.stack([x[i] * (i + 1) for i in range(x.shape[0])])


def baked_batch():
    return BakedBatch(), (torch.randn(4, 6),)


class AlwaysNan(nn.Module):
    def forward(self, x):
        return x * float("nan")


def always_nan():
    return AlwaysNan(), (torch.randn(2, 3),)


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        self.count += 1
        return x + self.count


def stateful():
    return Stateful(), (torch.randn(2, 3),)


class Median(nn.Module):
    def forward(self, x):
        return x.median(dim=-1).values


def median():
    return Median(), (torch.randn(2, 5),)


class ByValue(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1


def by_value():
    return ByValue(), (torch.ones(2, 3),)


class Epsilon(nn.Module):
    """The exporter's optimiser deletes the epsilon: NaN on a zero row."""

    def forward(self, x):
        return x / (x.norm(dim=-1, keepdim=True) + 1e-8)


def epsilon():
    return Epsilon(), (torch.randn(2, 5),)


class LongSums(nn.Module):
    """onnxruntime adds in order and is far noisier than PyTorch; it is still only noise."""

    def forward(self, x):
        return {"running": x.cumsum(-1), "sum": x.sum(-1), "mean": x.mean(-1)}


def long_sums():
    return LongSums(), (torch.randn(2, 5000),)


class Chaos(nn.Module):
    """A logistic map: rounding is amplified until nothing agrees, on any machine."""

    def forward(self, x):
        y = torch.sigmoid(x)
        for _ in range(60):
            y = 3.9 * y * (1 - y)
        return y


def chaos():
    return Chaos(), (torch.randn(2, 4),)


class Float64Casts(nn.Module):
    """Hard-coded dtypes, as in the norms of many language models."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))

    def forward(self, x):
        wide = x.to(torch.float32)
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * scaled.to(x.dtype)


def hard_coded():
    torch.manual_seed(9)
    return Float64Casts(), (torch.randn(2, 8),)


def half():
    torch.manual_seed(10)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).half().eval(), (torch.randn(2, 8).half(),)


def double():
    torch.manual_seed(11)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).double().eval(), (torch.randn(2, 8).double(),)


class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30, 4)

    def forward(self, ids, attention_mask):
        return self.table(ids) * attention_mask[..., None]


def lookup():
    torch.manual_seed(12)
    return Lookup().eval(), (torch.randint(0, 30, (2, 5)), torch.ones(2, 5, dtype=torch.int64))


class TwoInputs(nn.Module):
    def forward(self, a, b):
        return a - 2 * b


def two_inputs():
    return TwoInputs(), (torch.randn(2, 3), torch.randn(2, 3))


def wrong_return():
    return 42


def raises():
    raise RuntimeError("weights are missing")


class NoTensor(nn.Module):
    def forward(self, x):
        return 3


def no_tensor():
    return NoTensor(), (torch.randn(2, 3),)


class Picky(nn.Module):
    def forward(self, x):
        raise ValueError("I reject everything")


def picky():
    return Picky(), (torch.randn(2, 3),)
