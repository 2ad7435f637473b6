"""Correct models of unusual shape: keywords, nested outputs, tied weights, norms, dynamic dimensions, control flow."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrize

from benchmarks.zoo.registry import model


class Keywords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, 8), nn.Linear(4, 8)

    def forward(self, *, query, context, scale):
        return {"score": (self.left(query) * self.right(context)).sum(-1) * scale, "context": self.right(context)}


@model("structure", "keyword inputs only, a dictionary of outputs")
def jury_keyword_inputs():
    torch.manual_seed(400)
    return Keywords().eval(), {"query": torch.randn(3, 6), "context": torch.randn(3, 4), "scale": torch.rand(3)}


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, features):
        x, states = features["dense"] + features["pair"][0], []
        for layer in self.layers:
            x = torch.tanh(layer(x))
            states.append((x, x.norm(dim=-1)))
        return {"last": x, "states": states, "deep": {"mean": (x.mean(-1), [features["pair"][1] * 2])}}


@model("structure", "nested inputs and nested outputs")
def jury_nested_in_and_out():
    torch.manual_seed(401)
    return Nested().eval(), ({"dense": torch.randn(2, 6), "pair": [torch.randn(2, 6), torch.randn(2, 3)]},)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.body = nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embed.weight
        self.scale = 16**0.5

    def forward(self, ids):
        return self.head(self.body(self.embed(ids) * self.scale)[0]).log_softmax(-1)


@model("structure", "embedding and head share a weight", range={"ids": (0, 49)})
def jury_tied_weights():
    torch.manual_seed(402)
    return Tied().eval(), (torch.randint(0, 50, (2, 6)),)


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).transpose(-1, -2)


@model("structure", "a symmetric weight as a parametrisation of ones own")
def jury_symmetric_parametrisation():
    torch.manual_seed(403)
    layer = nn.Linear(12, 12)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return nn.Sequential(layer, nn.SELU(), nn.Linear(12, 3)).eval(), (torch.randn(4, 12),)


class Norms(nn.Module):
    """The norms that people write."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(12) + 0.5)
        self.rms = nn.RMSNorm(12, eps=1e-6)
        self.group, self.instance = nn.GroupNorm(3, 12), nn.InstanceNorm1d(12, affine=True)
        self.layer = nn.LayerNorm((5, 12), eps=1e-12)

    def forward(self, x):
        mine = x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6) * (1 + self.gain)
        t = x.transpose(1, 2)
        unit = functional.normalize(x, dim=-1) * 12**0.5 * self.gain
        return mine, self.rms(x), self.group(t), self.instance(t), self.layer(x), unit


@model("structure", "RMS, group, instance, layer and unit norm beside each other")
def jury_norms():
    torch.manual_seed(404)
    return Norms().eval(), (torch.randn(3, 5, 12),)


class GlobalResponse(nn.Module):
    """Batch, instance and local response norms around convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, padding_mode="circular")
        self.local = nn.LocalResponseNorm(4)
        self.gamma, self.beta = nn.Parameter(torch.randn(1, 8, 1, 1)), nn.Parameter(torch.randn(1, 8, 1, 1))

    def forward(self, x):
        y = self.local(self.conv(x).relu())
        size = y.square().sum((2, 3), keepdim=True).add(1e-6).sqrt()
        return self.gamma * (y * size / (size.mean(1, keepdim=True) + 1e-6)) + self.beta + y


@model("structure", "local and global response norm, circular padding")
def jury_response_norms():
    torch.manual_seed(405)
    return GlobalResponse().eval(), (torch.randn(2, 3, 10, 10),)


class Branches(nn.Module):
    """Python branches on what does not change, loops over modules, an early return that is never taken."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.register_buffer("on", torch.tensor([1.0, 0, 1, 1]))
        self.residual = True

    def forward(self, x):
        if self.training:
            return x
        for i, layer in enumerate(self.layers):
            y = functional.gelu(layer(x), approximate="tanh") * self.on[i]
            x = x + y if self.residual and i % 2 == 0 else y
        return x if x.dim() == 2 else x.flatten(1)


@model("structure", "control flow over constants")
def jury_static_branches():
    torch.manual_seed(406)
    return Branches().eval(), (torch.randn(3, 8),)


class Conditional(nn.Module):
    """torch.cond on the data's mean."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: self.a(v).relu(), lambda v: self.b(v).tanh(), (x,))


@model("structure", "torch.cond: a branch taken at run time")
def jury_cond():
    torch.manual_seed(407)
    return Conditional().eval(), (torch.randn(3, 6),)


class Ragged(nn.Module):
    """Mean, maximum and last of sequences whose lengths are an input."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(5, 7)

    def forward(self, x, lengths):
        y = self.net(x)
        mask = torch.arange(x.shape[1])[None] < lengths[:, None]
        mean = (y * mask[..., None]).sum(1) / lengths[:, None].clamp(min=1)
        top = y.masked_fill(~mask[..., None], float("-inf")).amax(1)
        last = y.gather(1, (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, 7)).squeeze(1)
        return mean, torch.where(torch.isfinite(top), top, torch.zeros_like(top)), last


@model(
    "structure",
    "ragged sequences by lengths, time dynamic",
    dynamic={"x": {0: "batch", 1: "time"}, "lengths": {0: "batch"}},
    range={"lengths": (1, 4)},
)
def jury_ragged_lengths():
    torch.manual_seed(408)
    return Ragged().eval(), (torch.randn(3, 9, 5), torch.tensor([4, 2, 1]))


class TwoLengths(nn.Module):
    """Alignment of two sequences of their own lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 6)

    def forward(self, left, right):
        scores = self.net(left) @ right.transpose(1, 2)
        return scores.softmax(-1) @ right, scores.softmax(1).transpose(1, 2) @ left, scores.amax((1, 2))


@model(
    "structure",
    "two dynamic lengths and a shared batch",
    dynamic={"left": {0: "batch", 1: "left"}, "right": {0: "batch", 1: "right"}},
)
def jury_two_lengths():
    torch.manual_seed(409)
    return TwoLengths().eval(), (torch.randn(2, 5, 6), torch.randn(2, 7, 6))


class EmptyAble(nn.Module):
    """Boxes per picture, maybe none: sums over a dimension that may be empty."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 8)

    def forward(self, boxes):
        y = self.net(boxes).relu()
        return y, y.sum(0), (boxes[:, 2] * boxes[:, 3]).sum()


@model("structure", "a set of boxes that may be empty", dynamic={"boxes": {0: "count"}}, range={"count": (0, 40)})
def jury_maybe_empty():
    torch.manual_seed(410)
    return EmptyAble().eval(), (torch.rand(5, 4),)


class Windows(nn.Module):
    """Window partition and its reverse, a cyclic shift."""

    def forward(self, x):
        b, h, w, c = x.shape
        y = (
            torch.roll(x, (-2, -2), (1, 2))
            .view(b, h // 4, 4, w // 4, 4, c)
            .permute(0, 1, 3, 2, 4, 5)
            .reshape(-1, 16, c)
        )
        y = y - y.mean(1, keepdim=True)
        y = y.view(b, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return torch.roll(y, (2, 2), (1, 2))


@model("structure", "window partition with a cyclic shift")
def jury_shifted_windows():
    torch.manual_seed(411)
    return Windows().eval(), (torch.randn(2, 8, 12, 3),)


class Preprocess(nn.Module):
    """Bytes of a picture to a normalised crop, inside of the file."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))
        self.conv = nn.Conv2d(3, 4, 3, stride=2)

    def forward(self, picture):
        x = picture.permute(0, 3, 1, 2).to(torch.float32) / 255
        x = functional.interpolate(x, size=(18, 18), mode="bilinear", align_corners=False)[:, :, 1:17, 1:17]
        return self.conv((x - self.mean) / self.std).flatten(1).argmax(-1), x.mean((1, 2, 3))


@model("structure", "uint8 pictures, channels last, prepared in the graph")
def jury_uint8_pictures():
    torch.manual_seed(412)
    return Preprocess().eval(), (torch.randint(0, 256, (2, 12, 14, 3), dtype=torch.uint8),)


class GraphNet(nn.Module):
    """Messages over edges with degrees, nodes and edges dynamic."""

    def __init__(self) -> None:
        super().__init__()
        self.send, self.keep = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, nodes, edges):
        source, target = edges[0], edges[1]
        ones = torch.ones_like(target, dtype=nodes.dtype)
        degree = torch.zeros_like(nodes[:, 0]).index_add(0, target, ones).clamp(min=1)
        total = torch.zeros_like(nodes).index_add(0, target, self.send(nodes)[source])
        return (self.keep(nodes) + total / degree[:, None]).relu()


@model(
    "structure",
    "a graph network with as many edges as there are",
    dynamic={"edges": {1: "edges"}},
    range={"edges": (0, 6)},
)
def jury_graph_messages():
    torch.manual_seed(413)
    return GraphNet().eval(), (torch.randn(7, 6), torch.randint(0, 7, (2, 11)))


class Experts(nn.Module):
    """Top-2 of four experts, weights by one-hot, all computed."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.first, self.second = nn.Parameter(torch.randn(4, 8, 16) / 3), nn.Parameter(torch.randn(4, 16, 8) / 4)

    def forward(self, x):
        value, place = self.gate(x).softmax(-1).topk(2, -1)
        weight = (functional.one_hot(place, 4) * (value / value.sum(-1, keepdim=True)).unsqueeze(-1)).sum(-2)
        y = torch.einsum("bnh,nho->bno", torch.einsum("bi,nih->bnh", x, self.first).relu(), self.second)
        return (y * weight.unsqueeze(-1)).sum(1), weight


@model("structure", "top-2 experts by one-hot weights: routes flip at ties")
def jury_top2_experts():
    torch.manual_seed(414)
    return Experts().eval(), (torch.randn(4, 8),)
