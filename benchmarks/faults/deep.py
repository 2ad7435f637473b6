"""Faults that random inputs and simple profiles hardly reach: the trigger lies behind layers, or is one case of thousands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

from benchmarks.faults.architectures import CrossAttention, Encoder, Made, settled
from benchmarks.faults.edge import change_row
from benchmarks.faults.helpers import after, become, before, bypass, constant, edit, find, put, through_half
from benchmarks.faults.inputs import Witness, draw, given, like
from benchmarks.faults.registry import ARCHITECTURES, Class, Fault, add, architecture

Model = onnx.ModelProto
Mutate = Callable[[Model], str | None]


def fault(name: str, cls: Class, architecture: str, mutate: Mutate, witness: Witness, why: str, **options: Any) -> None:
    """Register a deep fault."""
    add(Fault(name, cls, architecture, mutate, witness, why, options=options))


def built(architecture: str) -> Any:
    """The module of an architecture."""
    return ARCHITECTURES[architecture]()[0]


def orthogonal_rows(layer: nn.Linear) -> nn.Linear:
    """Unit rows at right angles, each with a mean of zero: behind a LayerNorm every output has a spread of one."""
    with torch.no_grad():
        random = torch.randn(layer.in_features, layer.out_features)
        layer.weight.copy_(torch.linalg.qr(random - random.mean(0))[0].T)
    return layer


def along(architecture: str, direction: Callable[[Any], torch.Tensor]) -> Witness:
    """A witness whose rows all point where the module's weights say."""

    def make() -> dict[str, np.ndarray]:
        row = direction(built(architecture)).detach().numpy()
        drawn = draw(architecture, 7)
        return {name: np.broadcast_to(row, value.shape).astype(value.dtype) for name, value in drawn.items()}

    return make


def solved(layer: nn.Linear, wanted: torch.Tensor) -> torch.Tensor:
    """The least input for which a layer gives what is wanted."""
    weight, bias = layer.weight.detach(), layer.bias.detach()
    return torch.linalg.lstsq(weight.double(), (wanted - bias).double()).solution.float()


# --- behind a norm: the direction of the input decides, not its size --------------------------------------------------


class NormedHeads(nn.Module):
    """Three heads on a LayerNorm: capped features, sharp weights written by hand, and floored log probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.features, self.score = orthogonal_rows(nn.Linear(64, 24)), nn.Linear(24, 4)
        self.keys, self.classes = orthogonal_rows(nn.Linear(64, 12)), orthogonal_rows(nn.Linear(64, 4))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.norm(x)
        logits = self.keys(y) * 12.0
        grown = torch.exp(logits - logits.amax(-1, keepdim=True))
        probability = torch.softmax(self.classes(y) * 1.5, dim=-1)
        return {
            "score": self.score(F.relu6(self.features(y))),
            "weights": grown / grown.sum(-1, keepdim=True),
            "log": torch.log(probability.clamp(min=1e-6)),
        }


@architecture()
def normed_heads() -> Made:
    torch.manual_seed(200)
    return NormedHeads().eval(), (torch.randn(3, 64),)


class RareGate(nn.Module):
    """A correction that only two strong signals together switch on."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.signals = nn.LayerNorm(16), orthogonal_rows(nn.Linear(16, 2, bias=False))
        self.body, self.correction = nn.Linear(16, 3), nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        gate = F.relu(self.signals(y) - 2.0).prod(-1, keepdim=True)
        return torch.tanh(self.body(y)) + gate * self.correction(y)


@architecture()
def rare_gate() -> Made:
    torch.manual_seed(201)
    return RareGate().eval(), (torch.randn(3, 16),)


class Router(nn.Module):
    """Tokens go to the expert with the best score; scores are capped."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.score = nn.LayerNorm(32), orthogonal_rows(nn.Linear(32, 6))
        self.experts = nn.Embedding(6, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        best = self.score(y).clamp(max=3.5).argmax(-1)
        return (y * self.experts(best)).view(-1, 4, 8).sum(-1)


@architecture()
def capped_router() -> Made:
    torch.manual_seed(202)
    return Router().eval(), (torch.randn(3, 32),)


# --- behind a layer: one combination of units decides ----------------------------------------------------------------


class Saturating(nn.Module):
    """Inner sums of 32 bounded units: a score, and a bin that chooses a row of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(40, 32), nn.Linear(32, 6, bias=False)
        self.head, self.table = nn.Linear(6, 3), nn.Embedding(12, 3)
        with torch.no_grad():
            self.second.weight.copy_(torch.randn(6, 32).sign() * 0.25)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        inner = self.second(torch.tanh(self.first(x)))
        bins = torch.floor(inner[:, 0] + 6.0).long() % 12
        return {"score": self.head(F.silu(inner)), "bin": self.table(bins)}


@architecture()
def saturating() -> Made:
    torch.manual_seed(203)
    return Saturating().eval(), (torch.randn(3, 40),)


class Shares(nn.Module):
    """Activations as shares of their sum; the sum is zero where no unit is alive."""

    def __init__(self) -> None:
        super().__init__()
        self.units, self.head = nn.Linear(24, 20), nn.Linear(20, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        alive = F.relu(self.units(x))
        return self.head(alive / alive.sum(-1, keepdim=True).clamp(min=1e-6))


@architecture()
def shares() -> Made:
    torch.manual_seed(204)
    return Shares().eval(), (torch.randn(3, 24),)


class Quorum(nn.Module):
    """32 detectors vote; more than 28 of them call the alarm."""

    def __init__(self) -> None:
        super().__init__()
        self.detectors, self.usual, self.alarm = nn.Linear(40, 32), nn.Linear(40, 3), nn.Linear(40, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        votes = (self.detectors(x) > 0).sum(-1, keepdim=True)
        return torch.where(votes > 28, self.alarm(x), self.usual(x))


@architecture()
def quorum() -> Made:
    torch.manual_seed(205)
    return Quorum().eval(), (torch.randn(3, 40),)


class Prototype(nn.Module):
    """What is close to a known case gets the known answer."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.head = nn.Linear(8, 6), nn.Linear(6, 3)
        self.register_buffer("known", torch.rand(6) * 1.6 - 0.8)
        self.register_buffer("answer", torch.tensor([[0.9, 0.06, 0.04]]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        code = torch.tanh(self.encode(x))
        far = (code - self.known).square().sum(-1, keepdim=True)
        return torch.where(far < 0.05, self.answer, torch.softmax(self.head(code), -1))


@architecture()
def prototype() -> Made:
    torch.manual_seed(206)
    return Prototype().eval(), (torch.randn(3, 8),)


class Int8Layer(nn.Module):
    """Integer arithmetic in floats: eight-bit inputs and weights, a sum, and a shift by twelve bits."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (4, 32)).float())
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = torch.clamp(torch.round(x * 16.0), -128, 127)
        total = F.linear(steps, self.weight)
        return self.head(torch.clamp(torch.round(total / 4096.0), -128, 127))


@architecture()
def int8_layer() -> Made:
    torch.manual_seed(207)
    return Int8Layer().eval(), (torch.randn(3, 32),)


# --- integers --------------------------------------------------------------------------------------------------------


class Catalogue(nn.Module):
    """The items of a basket, averaged."""

    def __init__(self) -> None:
        super().__init__()
        self.items, self.head = nn.Embedding(12000, 8), nn.Linear(8, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.items(ids)).mean(1))


@architecture()
def catalogue() -> Made:
    torch.manual_seed(210)
    return Catalogue().eval(), (torch.randint(0, 12000, (2, 6)),)


class Crossed(nn.Module):
    """Two categories, and a table of their combinations."""

    def __init__(self) -> None:
        super().__init__()
        self.city, self.device, self.both = nn.Embedding(200, 4), nn.Embedding(60, 4), nn.Embedding(12000, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, city: torch.Tensor, device: torch.Tensor) -> torch.Tensor:
        return self.head(self.city(city) + self.device(device) + self.both(city * 60 + device))


@architecture()
def crossed() -> Made:
    torch.manual_seed(211)
    return Crossed().eval(), (torch.randint(0, 200, (4,)), torch.randint(0, 60, (4,)))


class Hashed(nn.Module):
    """Ids of any size, hashed into a table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4093, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table((ids * 40503 + 12345) % 4093).sum(1)


@architecture()
def hashed() -> Made:
    torch.manual_seed(212)
    return Hashed().eval(), (torch.randint(0, 1000, (2, 5)),)


class Basket(nn.Module):
    """Quantities, added up."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2, 3)

    def forward(self, quantities: torch.Tensor) -> torch.Tensor:
        total = quantities.sum(-1, keepdim=True).to(torch.float32)
        return self.head(torch.cat([torch.log1p(total.abs()), torch.sign(total)], -1))


@architecture()
def basket() -> Made:
    torch.manual_seed(213)
    return Basket().eval(), (torch.randint(0, 20, (2, 8)),)


class Calendar(nn.Module):
    """Days since 1970 as year and day of the year (from the first of March), by the usual integer rule."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2, 3)

    def forward(self, days: torch.Tensor) -> torch.Tensor:
        since = days + 719468
        era = since // 146097
        day = since - era * 146097
        year = (day - day // 1460 + day // 36524 - day // 146096) // 365
        rest = day - (365 * year + year // 4 - year // 100)
        return self.head(torch.stack([(year + era * 400 - 1970) / 50, rest / 366], -1))


@architecture()
def calendar() -> Made:
    torch.manual_seed(214)
    return Calendar().eval(), (torch.randint(10000, 25000, (4,)),)


class LastToken(nn.Module):
    """A decoder's classifier: the features of the token before the first padding (id 3), or of the last token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix, self.head = nn.Embedding(20000, 6), nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.mix(self.embed(ids)))
        last = ((ids == 3).int().argmax(-1) - 1) % 6
        return self.head(y[torch.arange(ids.shape[0]), last])


@architecture()
def last_token() -> Made:
    torch.manual_seed(215)
    return LastToken().eval(), (torch.randint(4, 20000, (2, 6)),)


# --- sizes -----------------------------------------------------------------------------------------------------------


class RelativeBias(nn.Module):
    """Attention with a learned bias per distance; distances beyond 48 share one."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.value, self.bias = nn.Linear(8, 8), nn.Linear(8, 8), nn.Embedding(97, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1])
        distance = torch.clamp(places[None, :] - places[:, None], -48, 48) + 48
        scores = self.query(x) @ x.transpose(1, 2) / 8 + self.bias(distance)[..., 0]
        return torch.softmax(scores, -1) @ self.value(x)


@architecture(x={0: "batch", 1: "seq"})
def relative_bias() -> Made:
    torch.manual_seed(220)
    net = RelativeBias()
    with torch.no_grad():
        net.bias.weight[:12] += 4
        net.bias.weight[-12:] += 4
    return net.eval(), (torch.randn(2, 6, 8),)


class LongPositions(nn.Module):
    """A table of 512 positions."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.position, self.head = nn.Embedding(60, 8), nn.Embedding(512, 8), nn.Linear(8, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.embed(ids) + self.position(torch.arange(ids.shape[1]))))


@architecture(ids={0: "batch", 1: "seq"})
def long_positions() -> Made:
    torch.manual_seed(221)
    return LongPositions().eval(), (torch.randint(0, 60, (2, 6)),)


class Rotary(nn.Module):
    """Queries and keys turned by their position."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.register_buffer("rate", 100.0 ** (-torch.arange(4) / 4))

    @staticmethod
    def turned(x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        left, right = x[..., :4], x[..., 4:]
        return torch.cat([left * angle.cos() - right * angle.sin(), right * angle.cos() + left * angle.sin()], -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angle = torch.arange(x.shape[1]).to(x.dtype)[:, None] * self.rate
        scores = self.turned(self.query(x), angle) @ self.turned(self.key(x), angle).transpose(1, 2)
        return torch.softmax(scores, -1) @ self.value(x)


@architecture(x={0: "batch", 1: "seq"})
def rotary() -> Made:
    torch.manual_seed(222)
    return Rotary().eval(), (torch.randn(2, 6, 8),)


class WarmUp(nn.Module):
    """The mean of what follows the first 84 percent of the steps."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1])
        kept = (places >= x.shape[1] * 84 // 100).to(x.dtype)[:, None]
        return self.head((x * kept).sum(1) / kept.sum(0))


@architecture(x={0: "batch", 1: "time"})
def warm_up() -> Made:
    torch.manual_seed(223)
    return WarmUp().eval(), (torch.randn(2, 10, 4),)


class FlatPick(nn.Module):
    """The last step of each sequence, taken from all steps in one row."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = torch.tanh(self.body(x)).reshape(-1, 4)
        return self.head(flat[torch.arange(x.shape[0]) * x.shape[1] + x.shape[1] - 1])


@architecture(x={0: "batch", 1: "time"})
def flat_pick() -> Made:
    torch.manual_seed(224)
    return FlatPick().eval(), (torch.randn(2, 6, 3),)


@architecture(ids={0: "batch", 1: "seq"}, mask={0: "batch", 1: "seq"})
def ragged_encoder() -> Made:
    torch.manual_seed(225)
    mask = (torch.arange(6) < torch.tensor([6, 4, 5, 2])[:, None]).long()
    return settled(Encoder()), (torch.randint(1, 40, (4, 6)), mask)


@architecture(x={0: "batch", 1: "queries"}, memory={0: "batch", 1: "keys"})
def free_cross_attention() -> Made:
    torch.manual_seed(226)
    return CrossAttention().eval(), (torch.randn(2, 4, 8), torch.randn(2, 6, 8))


# --- the faults: values ----------------------------------------------------------------------------------------------


def flipped_column(weight: np.ndarray) -> np.ndarray:
    """The weights of one feature have the other sign."""
    weight[:, 5] *= -1
    return weight


def swapped_rows(table: np.ndarray) -> np.ndarray:
    """Two neighbours of a table have changed places."""
    table[[1204, 1205]] = table[[1205, 1204]]
    return table


def calibrated(m: Model) -> str:
    """Inner sums are cut at the range seen in calibration."""
    low, high = constant(m, -6.5, np.float32), constant(m, 6.5, np.float32)
    return after(m, find(m, "Gemm", 1).output[0], "Clip", low, high)


def requantised_half_up(m: Model) -> str:
    node = find(m, "Round", 1)
    raised = before(m, node, "Add", [node.input[0], constant(m, 0.5, np.float32)])
    return become(node, "Floor", [raised])


def cast_twice(m: Model, node: onnx.NodeProto, slot: int, to: int) -> str:
    """What a node reads goes through a narrower integer."""
    narrow = before(m, node, "Cast", [node.input[slot]], to=to)
    node.input[slot] = before(m, node, "Cast", [narrow], to=TensorProto.INT64)
    return node.name


def counted_padding(m: Model) -> str:
    """The number of real tokens instead of the place of the first padding."""
    node = find(m, "ArgMax")
    real = before(m, node, "Not", [find(m, "Equal").output[0]])
    count = before(m, node, "Cast", [real], to=TensorProto.INT64)
    return become(node, "ReduceSum", [count, constant(m, [-1], np.int64)], keepdims=0)


def saturated(net: Any) -> torch.Tensor:
    """Units at 0.8 against the signs of the first row: its sum is -6.4, of which the bin is -1."""
    return solved(net.first, torch.atanh(-0.8 * net.second.weight[0].sign()))


def most_saturated(net: Any) -> torch.Tensor:
    """Units at 0.95 along the signs of the second row: its sum is 7.6."""
    return solved(net.first, torch.atanh(0.95 * net.second.weight[1].sign()))


def just_no_quorum(net: Any) -> torch.Tensor:
    """28 of 32 detectors vote."""
    return solved(net.detectors, torch.where(torch.arange(32) < 28, 1.0, -1.0))


def shift_tie(net: Any) -> torch.Tensor:
    """Two steps whose weighted sum is half of 4096."""
    first, second = net.weight[0, :2]
    steps = torch.arange(-127, 128)
    total = first * steps[:, None] + second * steps[None, :]
    left, right = (total % 8192 == 2048).nonzero()[0]
    row = torch.zeros(32)
    row[0], row[1] = steps[left] / 16, steps[right] / 16
    return row


fault(
    "inner-relu6-cap-eight",
    "edge",
    "normed_heads",
    lambda m: edit(m, find(m, "Clip"), 2, lambda v: v + 2),
    along("normed_heads", lambda net: net.features.weight[7] * 20),
    "a cap of 8 for 6, on units that pass 6 only for inputs along their weights",
)
fault(
    "inner-softmax-overflow",
    "edge",
    "normed_heads",
    lambda m: bypass(m, find(m, "Sub")),
    along("normed_heads", lambda net: net.keys.weight[3] * 20),
    "no maximum is subtracted; logits pass 88 only for inputs along a key",
)
fault(
    "log-floor-raised",
    "edge",
    "normed_heads",
    lambda m: edit(m, find(m, "Clip", 1), 1, lambda v: v * 100),
    along("normed_heads", lambda net: (net.classes.weight[0] - net.classes.weight[1]) * 20),
    "probabilities are floored at 1e-4 instead of 1e-6 before the logarithm",
)
fault(
    "weight-behind-closed-gate",
    "edge",
    "rare_gate",
    lambda m: edit(m, find(m, "Gemm", -1), 1, flipped_column),
    along("rare_gate", lambda net: net.signals.weight.sum(0) * 5),
    "a feature's sign is wrong in a layer that only two strong signals together let through",
)
fault(
    "router-last-of-capped",
    "edge",
    "capped_router",
    lambda m: put(find(m, "ArgMax"), select_last_index=1),
    along("capped_router", lambda net: (net.score.weight[1] + net.score.weight[4]) * 5),
    "of two experts at the cap the last is taken",
)
fault(
    "inner-calibration-clip",
    "edge",
    "saturating",
    calibrated,
    along("saturating", most_saturated),
    "an inner sum is cut at 6.5; it gets there when nearly all of 32 units agree with its weights",
)
fault(
    "inner-floor-truncates",
    "edge",
    "saturating",
    lambda m: bypass(m, find(m, "Floor")),
    along("saturating", saturated),
    "the cast alone rounds towards zero; the inner value is hardly ever negative",
)
fault(
    "dead-row-epsilon",
    "edge",
    "shares",
    lambda m: bypass(m, find(m, "Clip")),
    along("shares", lambda net: solved(net.units, torch.full((20,), -1.0))),
    "a row whose twenty units are all dead divides by zero",
)
fault(
    "quorum-inclusive",
    "edge",
    "quorum",
    lambda m: become(find(m, "Greater", 1), "GreaterOrEqual"),
    along("quorum", just_no_quorum),
    "exactly 28 votes already call the alarm",
)
fault(
    "known-case-answer",
    "edge",
    "prototype",
    lambda m: edit(m, find(m, "Where"), 1, lambda v: v[:, ::-1]),
    along("prototype", lambda net: solved(net.encode, torch.atanh(net.known))),
    "the answer for inputs close to one known case is another's",
)
fault(
    "shift-half-up",
    "edge",
    "int8_layer",
    requantised_half_up,
    along("int8_layer", shift_tie),
    "an integer sum that is an exact half after the shift is rounded up, not to even",
)


# --- the faults: integers --------------------------------------------------------------------------------------------

fault(
    "row-in-the-middle",
    "edge",
    "catalogue",
    lambda m: edit(m, find(m, "Gather"), 0, change_row(3127, 0.0)),
    given("catalogue", ids=[[12, 3127, 40, 7, 900, 4000], [3127, 1, 2, 3, 4, 5]]),
    "one row of 12000 is lost",
)
fault(
    "neighbouring-rows-swapped",
    "edge",
    "catalogue",
    lambda m: edit(m, find(m, "Gather"), 0, swapped_rows),
    given("catalogue", ids=[[1204, 8, 15, 16, 23, 42], [1205, 1, 2, 3, 4, 5]]),
    "two neighbours of 12000 rows have changed places",
)
fault(
    "one-combination-stale",
    "edge",
    "crossed",
    lambda m: edit(m, find(m, "Gather", 2), 0, change_row(137 * 60 + 41, 0.0)),
    given("crossed", city=[137, 137, 3, 9], device=[41, 40, 41, 7]),
    "one of 12000 combinations of two categories",
)
fault(
    "hash-in-int32",
    "edge",
    "hashed",
    lambda m: cast_twice(m, find(m, "Mod"), 0, TensorProto.INT32),
    given("hashed", ids=1_000_000),
    "the product of the hash wraps around for ids above 53000",
)
fault(
    "total-through-half",
    "edge",
    "basket",
    lambda m: through_half(m, find(m, "Cast").output[0]),
    given("basket", quantities=9000),
    "sums are exact in half precision up to 2048 and infinite above 65504",
)
fault(
    "leap-day-of-2000",
    "edge",
    "calendar",
    lambda m: bypass(m, find(m, "Sub", 6)),
    given("calendar", days=[11016, 11015, 11017, 0]),
    "the term for the last day of 400 years is gone: one day of 146097",
    range={"days": (0, 30000)},
)
fault(
    "padding-in-the-middle",
    "edge",
    "last_token",
    counted_padding,
    given("last_token", ids=[[50, 60, 3, 70, 80, 90], [9, 9, 9, 9, 9, 9]]),
    "tokens are counted: wrong where the padding id of 20000 stands between others",
)


# --- the faults: sizes -----------------------------------------------------------------------------------------------


def shorter_reach(m: Model) -> str:
    node = find(m, "Clip")
    edit(m, node, 1, lambda v: v + 8)
    return edit(m, node, 2, lambda v: v - 8)


def rescaled_positions(m: Model) -> str:
    """Positions are squeezed into 48 where the sequence is longer, as models stretched after training do."""
    node = find(m, "Cast")
    length = before(m, node, "Cast", [find(m, "Range").input[1]], to=TensorProto.FLOAT)
    rate = before(m, node, "Div", [constant(m, 48, np.float32), length])
    rate = before(m, node, "Min", [rate, constant(m, 1, np.float32)])
    return after(m, node.output[0], "Mul", rate)


def share_in_floats(m: Model) -> str:
    """floor(length * 0.84) in single precision."""
    node = find(m, "Div")
    length = before(m, node, "Cast", [find(m, "Range").input[1]], to=TensorProto.FLOAT)
    share = before(m, node, "Mul", [length, constant(m, 0.84, np.float32)])
    return become(node, "Cast", [before(m, node, "Floor", [share])], to=TensorProto.INT64)


def ambiguous_mask(m: Model) -> str:
    """A mask of two dims is taken for one of queries and keys where it is square."""
    node = find(m, "Unsqueeze")
    one = constant(m, [1], np.int64)
    rows, length = find(m, "Shape").output[0], find(m, "Shape", 1).output[0]
    square = before(m, node, "Equal", [rows, length])
    padding = before(m, node, "Concat", [rows, one, one, length], axis=0)
    pairs = before(m, node, "Concat", [one, one, rows, length], axis=0)
    return become(node, "Reshape", [node.input[0], before(m, node, "Where", [square, pairs, padding])])


def causal_when_square(m: Model) -> str:
    """Equal lengths are taken for self-attention with a causal mask."""
    node = find(m, "Softmax")
    zero, one = constant(m, 0, np.int64), constant(m, 1, np.int64)
    queries, keys = (before(m, node, "Shape", [node.input[0]], start=i, end=i + 1) for i in (1, 2))
    ends = [before(m, node, "Squeeze", [size]) for size in (queries, keys)]
    rows, columns = (before(m, node, "Range", [zero, end, one]) for end in ends)
    later = before(m, node, "Greater", [columns, before(m, node, "Unsqueeze", [rows, constant(m, [1], np.int64)])])
    hidden = before(m, node, "And", [later, before(m, node, "Equal", [queries, keys])])
    node.input[0] = before(m, node, "Where", [hidden, constant(m, -1e4, np.float32), node.input[0]])
    return node.name


def state_buffer(m: Model) -> str:
    """The initial state is cut from a buffer of 256 rows."""
    node = find(m, "LSTM")
    rows = find(m, "Shape").output[0]
    zero, one = constant(m, [0], np.int64), constant(m, [1], np.int64)
    buffer = constant(m, np.zeros((1, 256, 8)), np.float32)
    state = before(m, node, "Slice", [buffer, zero, rows, one])
    node.input[5] = node.input[6] = state
    return node.name


def uncarried_sum(m: Model) -> str:
    """A running sum in chunks of fifty; the second chunk starts again from zero."""
    node = find(m, "CumSum")
    zero, fifty = constant(m, [0], np.int64), constant(m, [50], np.int64)
    axis = constant(m, [1], np.int64)
    chunk = before(m, node, "Slice", [node.input[0], zero, fifty, axis])
    carried = before(m, node, "ReduceSum", [chunk, axis], keepdims=1)
    length = find(m, "Squeeze").output[0]
    places = before(m, node, "Range", [constant(m, 0, np.int64), length, constant(m, 1, np.int64)])
    beyond = before(m, node, "GreaterOrEqual", [places, fifty])
    lost = before(m, node, "Where", [beyond, carried, constant(m, 0, np.float32)])
    return after(m, node.output[0], "Sub", lost)


fault(
    "relative-reach-forty",
    "shape",
    "relative_bias",
    shorter_reach,
    like("relative_bias", seq=60),
    "distances beyond 40 share a bias instead of those beyond 48: wrong above a length of 41",
)
fault(
    "position-ninety-nine",
    "shape",
    "long_positions",
    lambda m: edit(m, find(m, "Gather", 1), 0, change_row(99, 0.0)),
    like("long_positions", seq=110),
    "one row of 512 positions is lost: wrong from a length of 100",
)
fault(
    "rotary-rescaled",
    "shape",
    "rotary",
    rescaled_positions,
    like("rotary", seq=70),
    "angles are rescaled above a length of 48",
)
fault(
    "share-in-floats",
    "shape",
    "warm_up",
    share_in_floats,
    like("warm_up", time=75),
    "84 percent of a length in single precision: below 200 only wrong at 75 and 150",
)
fault(
    "mask-square",
    "shape",
    "ragged_encoder",
    ambiguous_mask,
    like("ragged_encoder", batch=6),
    "a padding mask is taken for an attention mask where batch and length are equal",
)
fault(
    "equal-lengths-causal",
    "shape",
    "free_cross_attention",
    causal_when_square,
    like("free_cross_attention", queries=6),
    "as many queries as keys are taken for causal self-attention",
)
fault(
    "state-of-256-rows",
    "shape",
    "lstm_classifier",
    state_buffer,
    like("lstm_classifier", batch=300),
    "batches above the buffer of initial states are refused",
)
fault(
    "sum-not-carried",
    "shape",
    "series",
    uncarried_sum,
    like("series", time=64),
    "the running sum starts again after fifty steps",
)
fault(
    "length-in-int8",
    "shape",
    "series",
    lambda m: cast_twice(m, find(m, "Cast"), 0, TensorProto.INT8),
    like("series", time=130),
    "a length above 127 is negative",
)
fault(
    "flat-index-in-int16",
    "shape",
    "flat_pick",
    lambda m: cast_twice(m, find(m, "Unsqueeze"), 0, TensorProto.INT16),
    like("flat_pick", batch=220, time=160),
    "places above 32767 wrap around: batch times length decides",
)
