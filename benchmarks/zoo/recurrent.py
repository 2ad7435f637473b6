"""Recurrent networks."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.zoo.registry import model


class Recurrent(nn.Module):
    """All outputs of a recurrent layer, without its state."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


def series(length: int = 12, width: int = 8) -> tuple[torch.Tensor]:
    return (torch.randn(2, length, width),)


@model("recurrent", "one LSTM layer")
def lstm():
    torch.manual_seed(0)
    return Recurrent(nn.LSTM(8, 16, batch_first=True)).eval(), series()


@model("recurrent", "two directions, two layers")
def lstm_bidirectional_stacked():
    torch.manual_seed(1)
    return Recurrent(nn.LSTM(8, 16, num_layers=2, bidirectional=True, batch_first=True)).eval(), series()


@model("recurrent", "one GRU layer: the reset gate before or after the product matters")
def gru():
    torch.manual_seed(2)
    return Recurrent(nn.GRU(8, 16, batch_first=True)).eval(), series()


@model("recurrent", "GRU in two directions")
def gru_bidirectional():
    torch.manual_seed(3)
    return Recurrent(nn.GRU(8, 16, bidirectional=True, batch_first=True)).eval(), series()


@model("recurrent", "plain tanh recurrence")
def rnn_tanh():
    torch.manual_seed(4)
    return Recurrent(nn.RNN(8, 16, nonlinearity="tanh", batch_first=True)).eval(), series()


@model("recurrent", "64 steps: rounding accumulates in the state", batch_sizes=(1, 2, 7))
def lstm_long():
    torch.manual_seed(5)
    return Recurrent(nn.LSTM(4, 12, batch_first=True)).eval(), (torch.randn(2, 64, 4),)


class Tagger(nn.Module):
    """Ids to a label per position."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.encode = nn.LSTM(16, 16, bidirectional=True, batch_first=True)
        self.head = nn.Linear(32, 7)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.encode(self.embed(ids))[0]).log_softmax(-1)


@model("recurrent", "ids to labels per position")
def lstm_tagger():
    torch.manual_seed(6)
    return Tagger().eval(), (torch.randint(0, 50, (2, 10)),)


class Stateful(nn.Module):
    """The state comes in and goes out: streaming."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(8, 16, batch_first=True)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> dict[str, torch.Tensor]:
        out, state = self.layer(x, state.unsqueeze(0))
        return {"out": out, "state": state.squeeze(0)}


@model("recurrent", "streaming: the state is an input and an output")
def gru_streaming():
    torch.manual_seed(7)
    return Stateful().eval(), (torch.randn(2, 5, 8), torch.randn(2, 16))


class Unrolled(nn.Module):
    """An LSTM cell in a Python loop."""

    def __init__(self, steps: int = 6) -> None:
        super().__init__()
        self.steps = steps
        self.cell = nn.LSTMCell(8, 16)
        self.head = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.new_zeros(x.shape[0], 16)
        c = torch.zeros_like(h)
        outputs = []
        for _ in range(self.steps):
            h, c = self.cell(x, (h, c))
            x = self.head(h)
            outputs.append(x)
        return torch.stack(outputs, 1)


@model("recurrent", "a cell that feeds itself in a Python loop")
def lstm_cell_loop():
    torch.manual_seed(8)
    return Unrolled().eval(), (torch.randn(2, 8),)


class Attentive(nn.Module):
    """A GRU decoder with additive attention over an LSTM encoder."""

    def __init__(self, width: int = 16, steps: int = 4) -> None:
        super().__init__()
        self.steps = steps
        self.encode = nn.LSTM(8, width, batch_first=True)
        self.cell = nn.GRUCell(width, width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.score, self.head = nn.Linear(width, 1), nn.Linear(2 * width, 8)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        memory, (h, _) = self.encode(x)
        state, keys = h[0], self.key(memory)
        outputs, weights = [], []
        for _ in range(self.steps):
            score = self.score(torch.tanh(keys + self.query(state).unsqueeze(1))).squeeze(-1)
            weight = score.softmax(-1)
            context = torch.einsum("bt,btd->bd", weight, memory)
            state = self.cell(context, state)
            outputs.append(self.head(torch.cat([state, context], -1)))
            weights.append(weight)
        return {"out": torch.stack(outputs, 1), "attention": torch.stack(weights, 1)}


@model("recurrent", "sequence to sequence with additive attention")
def attention_seq2seq():
    torch.manual_seed(9)
    return Attentive().eval(), series()
