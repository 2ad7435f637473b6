"""Small models of the kinds people export. Their exports are right: only the faults make them wrong."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

from benchmarks.faults.registry import architecture

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


def settled(module: nn.Module) -> nn.Module:
    """Eval mode, with norms whose statistics, weights and biases are not the trivial ones of a fresh module."""
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm2d)
    with torch.no_grad():
        for child in module.modules():
            if not isinstance(child, norms):
                continue
            if child.weight is not None:
                child.weight.uniform_(0.6, 1.4)
                child.bias.normal_(0, 0.3)
            if getattr(child, "running_mean", None) is not None:
                child.running_mean.normal_(0, 0.4)
                child.running_var.uniform_(0.5, 1.8)
    return module.eval()


# --- dense ----------------------------------------------------------------------------------------------------------


@architecture()
def mlp() -> Made:
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    return net.eval(), (torch.randn(3, 10),)


class SquareMlp(nn.Module):
    """Square layers, so that a transposed or swapped weight still fits."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.first(x))
        return self.third(F.silu(self.second(hidden)) - hidden)


@architecture()
def square_mlp() -> Made:
    torch.manual_seed(2)
    return SquareMlp().eval(), (torch.randn(3, 8),)


@architecture()
def gelu_mlp() -> Made:
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 6))
    return settled(net), (torch.randn(2, 12),)


class Activations(nn.Module):
    """One activation after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.Linear(6, 6), nn.Linear(6, 3)
        self.prelu = nn.PReLU(6, init=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.leaky_relu(self.inner(x), 0.1)
        y = self.prelu(y) + F.elu(x) + F.softplus(x)
        return self.head(F.hardswish(y))


@architecture()
def activations() -> Made:
    torch.manual_seed(4)
    net = Activations()
    with torch.no_grad():
        net.prelu.weight.uniform_(0.1, 0.6)
    return net.eval(), (torch.randn(3, 6),)


class RmsSwiglu(nn.Module):
    """The feed-forward block of current language models."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(16) + 0.5)
        self.gate, self.up, self.down = (
            nn.Linear(16, 24, bias=False),
            nn.Linear(16, 24, bias=False),
            nn.Linear(24, 16),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.scale
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@architecture(x={0: "batch", 1: "seq"})
def rms_swiglu() -> Made:
    torch.manual_seed(5)
    return RmsSwiglu().eval(), (torch.randn(2, 5, 16),)


class Experts(nn.Module):
    """A soft mixture of experts."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 4)
        self.weight = nn.Parameter(torch.randn(4, 8, 5) * 0.4)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        gates = F.softmax(self.router(x) / 0.7, dim=-1)
        each = torch.matmul(x[:, None, None, :], self.weight)[:, :, 0]
        return {"output": (gates[..., None] * each).sum(1), "gates": gates}


@architecture()
def mixture_of_experts() -> Made:
    torch.manual_seed(6)
    return Experts().eval(), (torch.randn(3, 8),)


# --- images ---------------------------------------------------------------------------------------------------------


class Cnn(nn.Module):
    """A pre-activation classifier: its BatchNorm cannot be folded into a convolution before it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.max_pool2d(F.relu(self.conv1(self.norm(x))), 2)
        return self.head(F.relu(self.conv2(y)).mean((2, 3)))


@architecture()
def cnn() -> Made:
    torch.manual_seed(10)
    return settled(Cnn()), (torch.randn(2, 3, 12, 12),)


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(width), nn.Conv2d(width, width, 3, padding=1)
        self.norm2, self.conv2 = nn.BatchNorm2d(width), nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv1(F.relu(self.norm1(x)))
        return x + self.conv2(F.relu(self.norm2(y)))


@architecture()
def resnet() -> Made:
    torch.manual_seed(11)
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2, padding=1),
        Residual(6),
        Residual(6),
        nn.AvgPool2d(3, 2, padding=1),
        nn.Flatten(),
        nn.Linear(54, 4),
    )
    return settled(net), (torch.randn(2, 3, 12, 12),)


class MobileNet(nn.Module):
    """Depthwise separable, with squeeze and excitation."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.depthwise, self.pointwise = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 12, 1)
        self.squeeze, self.excite = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)
        self.head = nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu6(self.depthwise(F.hardswish(self.stem(x))))
        y = y * F.hardsigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        return self.head(F.relu6(self.pointwise(y)).mean((2, 3)))


@architecture()
def mobilenet() -> Made:
    torch.manual_seed(12)
    net = MobileNet()
    with torch.no_grad():
        for layer in (net.squeeze, net.excite, net.pointwise):
            layer.weight.mul_(3)
    return net.eval(), (torch.randn(2, 3, 12, 12),)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
        self.up, self.head = nn.Conv2d(12, 6, 3, padding=1), nn.Conv2d(6, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skip = F.relu(self.down(x))
        low = F.relu(self.middle(F.max_pool2d(skip, 2)))
        high = F.interpolate(low, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.head(F.relu(self.up(torch.cat([high, skip], dim=1))))


@architecture()
def unet() -> Made:
    torch.manual_seed(13)
    return UNet().eval(), (torch.randn(2, 2, 8, 8),)


@architecture()
def groupnorm_net() -> Made:
    torch.manual_seed(14)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.GroupNorm(4, 8),
        nn.SiLU(),
        nn.Conv2d(8, 8, 3, padding=1, groups=2),
        nn.Flatten(1),
    )
    return settled(nn.Sequential(*net, nn.Linear(8 * 36, 3))), (torch.randn(2, 3, 6, 6),)


class StyleNet(nn.Module):
    """InstanceNorm and reflected borders, as in style transfer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 3, 3)
        self.norm = nn.InstanceNorm2d(6, affine=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm(self.conv1(F.pad(x, (1, 1, 1, 1), mode="reflect"))))
        return torch.tanh(self.conv2(F.pad(y, (1, 1, 1, 1), mode="reflect"))) * 0.6 + 0.5


@architecture()
def style_net() -> Made:
    torch.manual_seed(15)
    return settled(StyleNet()), (torch.randn(2, 3, 8, 8),)


@architecture()
def super_resolution() -> Made:
    torch.manual_seed(16)
    net = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.Tanh(), nn.Conv2d(8, 8, 3, padding=1), nn.PixelShuffle(2))
    return net.eval(), (torch.randn(2, 1, 6, 6),)


@architecture()
def deconv_decoder() -> Made:
    torch.manual_seed(17)
    net = nn.Sequential(
        nn.Linear(6, 32),
        nn.Unflatten(1, (8, 2, 2)),
        nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1),
        nn.ELU(),
        nn.ConvTranspose2d(4, 1, 4, stride=2, padding=1),
        nn.Sigmoid(),
    )
    return net.eval(), (torch.randn(2, 6),)


class Resizer(nn.Module):
    """Brings any picture to 8 x 8 and normalises it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        y = F.interpolate(image, size=(8, 8), mode="bilinear", align_corners=False)
        return F.relu(self.conv((y - self.mean) / self.std)).flatten(1)


@architecture(image={0: "batch", 2: "height", 3: "width"})
def resizer() -> Made:
    torch.manual_seed(18)
    return Resizer().eval(), (torch.rand(2, 3, 10, 12),)


class Detector(nn.Module):
    """A detector's head: the best five of all anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3, padding=1)
        self.score, self.box = nn.Conv2d(8, 1, 1), nn.Conv2d(8, 4, 1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        features = F.leaky_relu(self.body(x), 0.1)
        scores = torch.sigmoid(self.score(features)).flatten(1)
        boxes = self.box(features).flatten(2).transpose(1, 2)
        best, index = scores.topk(5, dim=1)
        chosen = torch.gather(boxes, 1, index[..., None].expand(-1, -1, 4))
        return {"boxes": torch.cat([chosen[..., :2], chosen[..., 2:].exp()], -1), "scores": best}


@architecture()
def detector() -> Made:
    torch.manual_seed(19)
    return Detector().eval(), (torch.randn(2, 3, 6, 6),)


class PatchViT(nn.Module):
    """A vision transformer's front: patches, a class token and positions."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.position = nn.Parameter(torch.randn(1, 10, 16) * 0.3)
        self.norm, self.mix, self.head = nn.LayerNorm(16), nn.Linear(10, 10), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.patch(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.token.expand(x.shape[0], -1, -1), y], dim=1) + self.position
        y = y + self.mix(self.norm(y).transpose(1, 2)).transpose(1, 2)
        return self.head(y[:, 0])


@architecture()
def patch_vit() -> Made:
    torch.manual_seed(20)
    return settled(PatchViT()), (torch.randn(2, 3, 12, 12),)


# --- sequences ------------------------------------------------------------------------------------------------------


class Attention(nn.Module):
    """Two heads, written out."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.scale = heads, 1 / math.sqrt(width // heads)
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """`hidden` is True where a position must not be looked at."""
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) * self.scale
        weights = F.softmax(scores.masked_fill(hidden, -1e4), dim=-1)
        return self.out(torch.matmul(weights, v).transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.position = nn.Embedding(40, 16, padding_idx=0), nn.Embedding(32, 16)
        self.attention, self.norm1, self.norm2 = Attention(), nn.LayerNorm(16), nn.LayerNorm(16)
        self.feed = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, 3)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y = self.embed(ids) + self.position(torch.arange(ids.shape[1]))
        y = self.norm1(y + self.attention(y, mask[:, None, None, :] == 0))
        y = self.norm2(y + self.feed(y))
        kept = mask[..., None].to(y.dtype)
        return self.head((y * kept).sum(1) / kept.sum(1).clamp(min=1.0))


@architecture(ids={0: "batch", 1: "seq"}, mask={0: "batch", 1: "seq"})
def encoder() -> Made:
    torch.manual_seed(30)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    return settled(Encoder()), (torch.randint(1, 40, (2, 6)), mask)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.position = nn.Embedding(30, 16), nn.Embedding(32, 16)
        self.attention, self.norm = Attention(), nn.LayerNorm(16)
        self.feed = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, 30)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1])
        y = self.embed(ids) + self.position(places)
        y = y + self.attention(self.norm(y), places[None, :] > places[:, None])
        return self.head(y + self.feed(y))


@architecture(ids={0: "batch", 1: "seq"})
def decoder() -> Made:
    torch.manual_seed(31)
    return settled(Decoder()), (torch.randint(0, 30, (2, 7)),)


class LstmClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


@architecture()
def lstm_classifier() -> Made:
    torch.manual_seed(32)
    return LstmClassifier().eval(), (torch.randn(2, 7, 6),)


class GruTagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(300, 6)
        self.gru, self.head = nn.GRU(6, 5, batch_first=True, bidirectional=True), nn.Linear(10, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.embed(ids))[0])


@architecture()
def gru_tagger() -> Made:
    torch.manual_seed(33)
    return GruTagger().eval(), (torch.randint(0, 300, (2, 6)),)


class Tcn(nn.Module):
    """Causal, dilated convolutions over time."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(4, 8, 3), nn.Conv1d(8, 8, 3, dilation=2)
        self.head = nn.Conv1d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.conv1(F.pad(x, (2, 0))))
        return self.head(F.relu(self.conv2(F.pad(y, (4, 0)))) + y)


@architecture(x={0: "batch", 2: "time"})
def tcn() -> Made:
    torch.manual_seed(34)
    return Tcn().eval(), (torch.randn(2, 4, 12),)


class Series(nn.Module):
    """Features of a time series: running total, change, deviation from the mean."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x.cumsum(1)
        change = torch.cat([torch.zeros_like(x[:, :1]), x[:, 1:] - x[:, :-1]], dim=1)
        deviation = x - x.sum(1, keepdim=True) / x.shape[1]
        return self.head(torch.stack([total, change, deviation], dim=-1))


@architecture(x={0: "batch", 1: "time"})
def series() -> Made:
    torch.manual_seed(35)
    return Series().eval(), (torch.randn(2, 9),)


class CrossAttention(nn.Module):
    """Queries over a memory; the query has its own length."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(self.query(x), self.key(memory).transpose(1, 2)) / math.sqrt(8)
        return torch.matmul(torch.softmax(scores, dim=-1), self.value(memory))


@architecture()
def cross_attention() -> Made:
    torch.manual_seed(36)
    return CrossAttention().eval(), (torch.randn(2, 4, 8), torch.randn(2, 6, 8))


class Fourier(nn.Module):
    """Positional features of coordinates, as in radiance fields."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bands", math.pi * 2.0 ** torch.arange(3))
        self.head = nn.Linear(12, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = (x[..., None] * self.bands).flatten(1)
        return self.head(torch.cat([angles.sin(), angles.cos()], dim=-1))


@architecture()
def fourier_features() -> Made:
    torch.manual_seed(37)
    return Fourier().eval(), (torch.rand(3, 2),)


class PointNet(nn.Module):
    """A set of points: shared layers, then the maximum over all points."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(3, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        centred = points - points.mean(1, keepdim=True)
        y = F.relu(self.second(F.relu(self.first(centred))))
        return self.head(y.max(dim=1).values)


@architecture(points={0: "batch", 1: "points"})
def pointnet() -> Made:
    torch.manual_seed(38)
    return PointNet().eval(), (torch.randn(2, 7, 3),)


# --- tables, ids and retrieval --------------------------------------------------------------------------------------


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.user, self.item = nn.Embedding(50, 8), nn.Embedding(50, 8)
        self.user_bias, self.item_bias = nn.Embedding(50, 1), nn.Embedding(50, 1)

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        dot = (self.user(user) * self.item(item)).sum(-1)
        return torch.sigmoid(dot + self.user_bias(user)[:, 0] + self.item_bias(item)[:, 0]) * 4 + 1


@architecture()
def recommender() -> Made:
    torch.manual_seed(40)
    return Recommender().eval(), (torch.randint(0, 50, (3,)), torch.randint(0, 50, (3,)))


class WideDeep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(24, 4)
        self.wide, self.deep, self.head = nn.Linear(5, 1), nn.Linear(5 + 12, 16), nn.Linear(16, 1)

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        deep = F.relu(self.deep(torch.cat([dense, self.embed(ids).flatten(1)], dim=1)))
        logit = (self.wide(dense) + self.head(deep))[:, 0]
        return {"logit": logit, "probability": torch.sigmoid(logit)}


@architecture()
def wide_deep() -> Made:
    torch.manual_seed(41)
    return WideDeep().eval(), (torch.randn(3, 5), torch.randint(0, 24, (3, 3)))


class Hasher(nn.Module):
    """Integer features: hashed into buckets, a coarse bin of the raw value, and the day of the week."""

    def __init__(self) -> None:
        super().__init__()
        self.bucket, self.bin = nn.Embedding(16, 4), nn.Embedding(12, 4)

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        bucket = (ids * 31 + 7) % 16
        bins = torch.clamp(ids // 10 + 4, 0, 11)
        weekday = (ids % 7).to(torch.float32) / 7
        return {"features": (self.bucket(bucket) + self.bin(bins)).sum(1), "bins": bins, "weekday": weekday}


@architecture()
def feature_hasher() -> Made:
    torch.manual_seed(42)
    return Hasher().eval(), (torch.randint(0, 60, (2, 5)),)


class Retrieval(nn.Module):
    """Cosine similarity with a table of documents; the best document."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(10, 8)
        self.register_buffer("table", torch.randn(12, 8))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        query = self.project(x)
        query = query / query.norm(dim=-1, keepdim=True).clamp(min=1e-4)
        table = self.table / self.table.norm(dim=-1, keepdim=True)
        scores = torch.matmul(query, table.T)
        return {"scores": scores, "best": scores.argmax(-1)}


@architecture()
def retrieval() -> Made:
    torch.manual_seed(43)
    return Retrieval().eval(), (torch.randn(3, 10),)


class GraphNet(nn.Module):
    """One round of messages along edges."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, nodes: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        messages = F.relu(self.message(nodes))[source]
        gathered = torch.zeros_like(nodes).index_add(0, target, messages)
        return self.update(gathered) + nodes


@architecture(nodes={0: "nodes"}, source={0: "edges"}, target={0: "edges"})
def graph_net() -> Made:
    torch.manual_seed(44)
    source, target = torch.tensor([0, 1, 2, 3, 3, 4, 0]), torch.tensor([1, 1, 0, 4, 2, 0, 3])
    return GraphNet().eval(), (torch.randn(5, 8), source, target)


class MaskedPool(nn.Module):
    """The mean of the positions that count."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.head = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        kept = mask.to(x.dtype)[..., None]
        pooled = (torch.tanh(self.project(x)) * kept).sum(1) / kept.sum(1).clamp(min=1.0)
        return self.head(pooled)


@architecture(x={0: "batch", 1: "seq"}, mask={0: "batch", 1: "seq"})
def masked_pool() -> Made:
    torch.manual_seed(45)
    return MaskedPool().eval(), (torch.randn(2, 5, 6), torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]))


# --- arithmetic -----------------------------------------------------------------------------------------------------


class Regressor(nn.Module):
    """Prices: logarithms in, an exponential out."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.head = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logs = torch.log(x.abs() + 1e-6)
        price = torch.exp(self.head(torch.relu(self.hidden(logs))).clamp(max=2.0))
        return price / (1.0 + x.pow(2).sum(-1, keepdim=True))


@architecture()
def price_regressor() -> Made:
    torch.manual_seed(50)
    net = Regressor()
    with torch.no_grad():
        net.head.weight.mul_(2)
    return net.eval(), (torch.randn(3, 4),)


class FakeQuant(nn.Module):
    """Quantisation as it is simulated in training."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = torch.clamp(torch.round(x * 16.0), -128, 127) / 16.0
        return self.linear(steps)


@architecture()
def fake_quant() -> Made:
    torch.manual_seed(51)
    return FakeQuant().eval(), (torch.randn(3, 6),)


class Gate(nn.Module):
    """A rule beside a model: what is above a threshold is capped, a reading of zero counts as missing."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gated = torch.where(x > 1.5, self.linear(x), x * 0.25)
        ratio = torch.where(x == 0, torch.zeros_like(x), 1.0 / torch.where(x == 0, torch.ones_like(x), x))
        return gated + torch.clamp(ratio, -5.0, 5.0) + torch.sign(x)


@architecture()
def threshold_gate() -> Made:
    torch.manual_seed(52)
    return Gate().eval(), (torch.randn(3, 5),)


class Flow(nn.Module):
    """An affine coupling layer with its log determinant."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 6))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        left, right = x[:, :3], x[:, 3:]
        scale, shift = self.net(left).split(3, dim=1)
        scale = torch.tanh(scale)
        return torch.cat([left, right * torch.exp(scale) + shift], dim=1), scale.sum(1)


@architecture()
def coupling_flow() -> Made:
    torch.manual_seed(53)
    return Flow().eval(), (torch.randn(3, 6),)


class MultiTask(nn.Module):
    """Three heads, in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(8, 12)
        self.policy, self.value, self.aux = nn.Linear(12, 4), nn.Linear(12, 1), nn.Linear(12, 4)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = torch.relu(self.body(x))
        logits = self.policy(y)
        return {"logits": logits, "value": self.value(y), "aux": self.aux(y), "action": logits.argmax(-1)}


@architecture()
def multi_task() -> Made:
    torch.manual_seed(54)
    return MultiTask().eval(), (torch.randn(3, 8),)


class Siamese(nn.Module):
    """Two pictures' features, compared."""

    def __init__(self) -> None:
        super().__init__()
        self.tower, self.head = nn.Linear(6, 8), nn.Linear(8, 1)

    def forward(self, left: torch.Tensor, right: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        a, b = torch.tanh(self.tower(left)), torch.tanh(self.tower(right))
        return torch.sigmoid(self.head((a - b).abs() * 2 + a * weight))


@architecture()
def siamese() -> Made:
    torch.manual_seed(55)
    return Siamese().eval(), (torch.randn(3, 6), torch.randn(3, 6), torch.rand(3, 1))


class Survival(nn.Module):
    """A hazard model: softplus rates, safe logarithms and a softmax over causes written by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        rate = F.softplus(x) + 0.05
        weights = torch.exp(x - x.amax(-1, keepdim=True))
        spread = torch.sqrt(x.pow(2).mean(-1) + 1e-6)
        return {
            "hazard": self.rate(torch.log(rate)),
            "cause": weights / weights.sum(-1, keepdim=True),
            "score": (x.sum(-1) / spread),
        }


@architecture()
def survival() -> Made:
    torch.manual_seed(56)
    return Survival().eval(), (torch.randn(3, 4),)


class ClippedPolicy(nn.Module):
    """Scores are clipped before the best action is taken: several may be at the limit."""

    def forward(self, scores: torch.Tensor) -> dict[str, torch.Tensor]:
        clipped = scores.clamp(-4.0, 4.0)
        return {"action": clipped.argmax(-1), "value": torch.softmax(clipped, -1)}


@architecture()
def clipped_policy() -> Made:
    torch.manual_seed(57)
    return ClippedPolicy().eval(), (torch.randn(3, 6),)


class SensorGuard(nn.Module):
    """Missing readings are NaN; they are replaced and flagged."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(12, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        missing = torch.isnan(x)
        filled = torch.where(missing, torch.zeros_like(x), x)
        return self.linear(torch.cat([filled, missing.to(x.dtype)], dim=-1))


@architecture()
def sensor_guard() -> Made:
    torch.manual_seed(58)
    return SensorGuard().eval(), (torch.randn(3, 6),)
