"""Unusual structure: heads, graphs, flows, solvers, nested and several inputs and outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from benchmarks.zoo.registry import model


class Detector(nn.Module):
    """Anchors decoded to boxes, the best by score."""

    def __init__(self, keep: int = 5) -> None:
        super().__init__()
        self.keep = keep
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, stride=4, padding=1), nn.ReLU())
        self.score, self.box = nn.Conv2d(16, 2, 1), nn.Conv2d(16, 4, 1)
        self.register_buffer(
            "centres",
            torch.stack(torch.meshgrid(torch.arange(8), torch.arange(8), indexing="xy"), -1).reshape(64, 2) * 4.0,
        )

    def forward(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.body(image)
        scores = self.score(x).flatten(2).softmax(1)[:, 1]
        deltas = self.box(x).flatten(2).transpose(1, 2)
        middle = self.centres + deltas[..., :2].tanh() * 4
        size = 8 * deltas[..., 2:].clamp(max=4).exp()
        boxes = torch.cat([middle - size / 2, middle + size / 2], -1).clamp(0, 32)
        best, places = scores.topk(self.keep, dim=1)
        chosen = boxes.gather(1, places.unsqueeze(-1).expand(-1, -1, 4))
        return {"scores": best, "boxes": chosen, "places": places}


@model("structure", "detection head: decode, clamp, top-k, gather")
def detection_head():
    torch.manual_seed(0)
    return Detector().eval(), (torch.randn(2, 3, 32, 32),)


class Overlaps(nn.Module):
    """Intersection over union of all pairs of boxes."""

    def forward(self, boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        low, high = boxes[..., :2], boxes[..., :2] + boxes[..., 2:].abs() + 0.1
        low2, high2 = others[..., :2], others[..., :2] + others[..., 2:].abs() + 0.1
        sides = (
            torch.minimum(high.unsqueeze(2), high2.unsqueeze(1)) - torch.maximum(low.unsqueeze(2), low2.unsqueeze(1))
        ).clamp(min=0)
        shared = sides.prod(-1)
        area, area2 = (high - low).prod(-1), (high2 - low2).prod(-1)
        return shared / (area.unsqueeze(2) + area2.unsqueeze(1) - shared)


@model("structure", "overlaps of boxes: two inputs, pairwise broadcast")
def box_overlaps():
    torch.manual_seed(1)
    return Overlaps().eval(), (torch.rand(2, 6, 4), torch.rand(2, 5, 4))


class GraphNet(nn.Module):
    """Messages along fixed edges, summed at their targets."""

    def __init__(self, nodes: int = 10, edges: int = 24, width: int = 16) -> None:
        super().__init__()
        self.register_buffer("source", torch.randint(0, nodes, (edges,)))
        self.register_buffer("target", torch.randint(0, nodes, (edges,)))
        self.message, self.update = nn.Linear(2 * width, width), nn.GRUCell(width, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            pair = torch.cat([x[:, self.source], x[:, self.target]], -1)
            total = torch.zeros_like(x).index_add(1, self.target, self.message(pair).relu())
            x = self.update(total.flatten(0, 1), x.flatten(0, 1)).view_as(x)
        return self.head(x)


@model("structure", "graph network: index_add along fixed edges")
def graph_index_add():
    torch.manual_seed(2)
    return GraphNet().eval(), (torch.randn(2, 10, 16),)


class EdgeAttention(nn.Module):
    """Attention over given edges: scatter of exponentials, normalised per target."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.project, self.score = nn.Linear(width, width), nn.Linear(2 * width, 1)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        x = self.project(nodes)
        wide = edges.unsqueeze(-1).expand(-1, -1, -1, x.shape[-1])
        source, target = x.gather(1, wide[:, 0]), x.gather(1, wide[:, 1])
        weight = torch.exp(torch.tanh(self.score(torch.cat([source, target], -1))))
        total = torch.zeros_like(x[..., :1]).scatter_add(1, edges[:, 1].unsqueeze(-1), weight)
        mixed = torch.zeros_like(x).scatter_add(1, wide[:, 1], weight * source)
        return functional.elu(mixed / (total + 1))


@model("structure", "graph attention: scatter_add along edges that are an input", range={"edges": (0, 9)})
def graph_scatter_add():
    torch.manual_seed(3)
    return EdgeAttention().eval(), (torch.randn(2, 10, 8), torch.randint(0, 10, (2, 2, 20)))


class PointCloud(nn.Module):
    """Shared layers over points and their maximum (PointNet), with the nearest neighbour's offset."""

    def __init__(self) -> None:
        super().__init__()
        self.point = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32))
        self.head = nn.Linear(32, 4)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        distance = (points.unsqueeze(2) - points.unsqueeze(1)).square().sum(-1) + 1e9 * torch.eye(points.shape[1])
        nearest = points.gather(1, distance.argmin(-1, keepdim=True).expand(-1, -1, 3))
        return self.head(self.point(torch.cat([points, nearest - points], -1)).amax(1))


@model("structure", "points: nearest neighbour and maximum")
def point_cloud():
    torch.manual_seed(4)
    return PointCloud().eval(), (torch.randn(2, 16, 3),)


class RealNVP(nn.Module):
    """Affine couplings, with the log-determinant and the density."""

    def __init__(self, width: int = 6, layers: int = 4) -> None:
        super().__init__()
        half = width // 2
        self.nets = nn.ModuleList(
            nn.Sequential(nn.Linear(half, 24), nn.Tanh(), nn.Linear(24, 2 * half)) for _ in range(layers)
        )

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        a, b = x.chunk(2, -1)
        determinant = torch.zeros_like(x[:, 0])
        for net in self.nets:
            scale, shift = net(a).chunk(2, -1)
            scale = scale.tanh()
            a, b = b * scale.exp() + shift, a
            determinant = determinant + scale.sum(-1)
        z = torch.cat([a, b], -1)
        density = -0.5 * z.square().sum(-1) - 0.5 * z.shape[-1] * math.log(2 * math.pi) + determinant
        return {"z": z, "log_density": density}


@model("structure", "normalising flow and its density")
def realnvp():
    torch.manual_seed(5)
    return RealNVP().eval(), (torch.randn(3, 6),)


class NeuralOde(nn.Module):
    """Runge-Kutta steps of a learned field."""

    def __init__(self, steps: int = 6, rk4: bool = False) -> None:
        super().__init__()
        self.steps, self.rk4 = steps, rk4
        self.field = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = 1 / self.steps
        path = [x]
        for _ in range(self.steps):
            k1 = self.field(x)
            if self.rk4:
                k2 = self.field(x + h / 2 * k1)
                k3 = self.field(x + h / 2 * k2)
                k4 = self.field(x + h * k3)
                x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            else:
                x = x + h * k1
            path.append(x)
        return torch.stack(path, 1)


@model("structure", "Euler steps of a learned field")
def neural_ode_euler():
    torch.manual_seed(6)
    return NeuralOde().eval(), (torch.randn(3, 4),)


@model("structure", "Runge-Kutta steps of a learned field")
def neural_ode_rk4():
    torch.manual_seed(7)
    return NeuralOde(steps=4, rk4=True).eval(), (torch.randn(3, 4),)


class Spline(nn.Module):
    """Linear combinations of hat functions per edge (KAN)."""

    def __init__(self, inputs: int = 5, outputs: int = 3, knots: int = 8) -> None:
        super().__init__()
        self.register_buffer("grid", torch.linspace(-2, 2, knots))
        self.weight = nn.Parameter(torch.randn(outputs, inputs, knots) / 4)
        self.base = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spacing = 4 / (self.grid.shape[0] - 1)
        hats = functional.relu(1 - (x.unsqueeze(-1) - self.grid).abs() / spacing)
        return self.base(functional.silu(x)) + torch.einsum("bik,oik->bo", hats, self.weight)


@model("structure", "learned splines on edges")
def kan():
    torch.manual_seed(8)
    return nn.Sequential(Spline(5, 8), Spline(8, 3)).eval(), (torch.randn(3, 5),)


class Nested(nn.Module):
    """Dicts and lists in, dicts and tuples out."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(4, 8)

    def forward(self, batch: dict[str, torch.Tensor], extras: list[torch.Tensor]):
        left, right = self.a(batch["left"]), self.b(batch["right"])
        both = left * right + sum(extras)
        return {"pair": (left, right), "fused": {"sum": both, "norm": functional.layer_norm(both, (8,))}}


@model("structure", "nested dicts, lists and tuples on both sides")
def nested_containers():
    torch.manual_seed(9)
    inputs = ({"left": torch.randn(2, 6), "right": torch.randn(2, 4)}, [torch.randn(2, 8), torch.randn(2, 8)])
    return Nested().eval(), inputs


@dataclass
class Prediction:
    """What the dataclass model returns."""

    mean: torch.Tensor
    deviation: torch.Tensor
    label: torch.Tensor


class Gaussian(nn.Module):
    """Mean and deviation by feature, and the class with the largest mean."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.Softplus(), nn.Linear(16, 6))

    def forward(self, x: torch.Tensor) -> Prediction:
        mean, raw = self.body(x).chunk(2, -1)
        return Prediction(mean, functional.softplus(raw) + 1e-3, mean.argmax(-1))


@model("structure", "a dataclass as output")
def dataclass_output():
    torch.manual_seed(10)
    return Gaussian().eval(), (torch.randn(3, 8),)


class OptionalBias(nn.Module):
    """An optional input that is given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, bias: torch.Tensor | None = None, scale: torch.Tensor | None = None):
        y = self.layer(x)
        if bias is not None:
            y = y + bias
        return y if scale is None else y * scale


@model("structure", "keyword inputs, one optional input left out")
def optional_inputs():
    torch.manual_seed(11)
    return OptionalBias().eval(), {"x": torch.randn(2, 8), "bias": torch.randn(2, 8)}


class Crf(nn.Module):
    """Viterbi scores and the best last tag, unrolled over positions."""

    def __init__(self, tags: int = 5) -> None:
        super().__init__()
        self.moves = nn.Parameter(torch.randn(tags, tags))

    def forward(self, emissions: torch.Tensor) -> dict[str, torch.Tensor]:
        score = emissions[:, 0]
        total = emissions[:, 0]
        for step in range(1, emissions.shape[1]):
            score = (score.unsqueeze(2) + self.moves).amax(1) + emissions[:, step]
            total = torch.logsumexp(total.unsqueeze(2) + self.moves, 1) + emissions[:, step]
        return {"best": score.amax(-1), "tag": score.argmax(-1), "partition": torch.logsumexp(total, -1)}


@model("structure", "Viterbi and forward recursions")
def crf_decoder():
    torch.manual_seed(12)
    return Crf().eval(), (torch.randn(2, 8, 5),)


class Kalman(nn.Module):
    """Predict and update with small matrices; the gain's denominator is a scalar."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("move", torch.tensor([[1.0, 0.1], [0.0, 1.0]]))

    def forward(self, measured: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(measured[:, :2])
        spread = torch.eye(2).expand(measured.shape[0], 2, 2)
        states = []
        for step in range(measured.shape[1]):
            state = state @ self.move.T
            spread = self.move @ spread @ self.move.T + 0.01 * torch.eye(2)
            gain = spread[:, :, 0] / (spread[:, 0, 0] + 0.25).unsqueeze(-1)
            state = state + gain * (measured[:, step] - state[:, 0]).unsqueeze(-1)
            spread = spread - gain.unsqueeze(-1) * spread[:, :1]
            states.append(state)
        return torch.stack(states, 1)


@model("structure", "Kalman filter over a short track")
def kalman_filter():
    torch.manual_seed(13)
    return Kalman().eval(), (torch.randn(2, 6),)
