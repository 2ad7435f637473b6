"""Architectures of the second jury: pictures, sound and boxes. Their exports are right: only the faults make them wrong."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

from benchmarks.faults.registry import architecture

Made = tuple[nn.Module, tuple[Tensor, ...]]


def settle(module: nn.Module) -> nn.Module:
    """Eval mode, and batch norms whose statistics are not those of a fresh module."""
    with torch.no_grad():
        for child in module.modules():
            if isinstance(child, nn.BatchNorm2d):
                child.running_mean.normal_(0, 0.3)  # type: ignore[union-attr]
                child.running_var.uniform_(0.4, 2)  # type: ignore[union-attr]
                child.weight.uniform_(0.5, 1.5)
                child.bias.normal_(0, 0.2)
    return module.eval()


class Separable(nn.Module):
    """Depthwise, pointwise and dilated convolutions with a pooling that does not count its padding."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = nn.Conv2d(4, 4, 3, padding=1, groups=4)
        self.norm = nn.BatchNorm2d(4)
        self.point = nn.Conv2d(4, 8, 1)
        self.wide = nn.Conv2d(8, 6, 3, padding=2, dilation=2)
        self.head = nn.Linear(6, 3)

    def forward(self, image: Tensor) -> Tensor:
        x = F.hardtanh(self.norm(self.depth(image)), -2.0, 2.0)
        x = F.leaky_relu(self.point(x), 0.1)
        x = F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False)
        x = F.max_pool2d(self.wide(x), 2, ceil_mode=True)
        return self.head(x.mean((2, 3)))


@architecture()
def jury_separable() -> Made:
    torch.manual_seed(11)
    return settle(Separable()), (torch.randn(2, 4, 9, 9),)


class Unet(nn.Module):
    """One step down, one step up, and what was there before beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(2, 6, 3, stride=2, padding=1)
        self.inner = nn.Conv2d(6, 6, 3, padding=1)
        self.up = nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        low = F.silu(self.inner(F.silu(self.down(image))))
        high = F.interpolate(low, size=image.shape[2:], mode="bilinear", align_corners=False)
        logits = self.up(torch.cat([image, high], 1))
        return logits, logits.argmax(1)


@architecture(image={0: "batch", 2: "height", 3: "width"})
def jury_unet() -> Made:
    torch.manual_seed(12)
    return Unet().eval(), (torch.randn(2, 2, 8, 12),)


class Upscaler(nn.Module):
    """Sub-pixel convolution on top of an enlarged picture."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv2d(3, 12, 3, padding=1, padding_mode="reflect")
        self.slope = nn.PReLU(12, init=0.2)
        self.out = nn.Conv2d(12, 12, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        base = F.interpolate(image, scale_factor=2.0, mode="nearest")
        fine = F.pixel_shuffle(self.out(self.slope(self.features(image))), 2)
        return (base + fine).clamp(-300.0, 300.0)


@architecture()
def jury_upscaler() -> Made:
    torch.manual_seed(13)
    return Upscaler().eval(), (torch.randn(2, 3, 6, 6),)


class Gates(nn.Module):
    """Channel and spatial attention."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.squeeze, self.excite = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
        self.place = nn.Conv2d(2, 1, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        x = F.elu(self.stem(image))
        pooled = x.mean((2, 3))
        strongest = x.amax((2, 3))
        gate = torch.sigmoid(self.excite(F.relu(self.squeeze(pooled))) + self.excite(F.relu(self.squeeze(strongest))))
        x = x * gate[:, :, None, None]
        where = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)
        return (x * torch.sigmoid(self.place(where))).sum((2, 3))


@architecture()
def jury_gates() -> Made:
    torch.manual_seed(14)
    return Gates().eval(), (torch.randn(2, 3, 5, 5),)


class Patches(nn.Module):
    """Pictures as rows of patches with a class token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(2 * 9, 10)
        self.token = nn.Parameter(torch.randn(1, 1, 10))
        self.places = nn.Parameter(torch.randn(1, 5, 10) * 0.5)
        self.norm = nn.LayerNorm(10)
        self.mix = nn.Linear(5, 5)
        self.head = nn.Linear(10, 4)

    def forward(self, image: Tensor) -> Tensor:
        b = image.shape[0]
        rows = image.reshape(b, 2, 2, 3, 2, 3).permute(0, 2, 4, 3, 5, 1).reshape(b, 4, 18)
        x = torch.cat([self.token.expand(b, -1, -1), self.embed(rows)], 1) + self.places
        x = x + F.gelu(self.mix(self.norm(x).transpose(1, 2))).transpose(1, 2)
        return F.log_softmax(self.head(x[:, 0]), -1)


@architecture()
def jury_patches() -> Made:
    torch.manual_seed(15)
    return Patches().eval(), (torch.randn(3, 2, 6, 6),)


class Detector(nn.Module):
    """Boxes from anchors on a grid, with a cap on how large a box may be."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.head = nn.Conv2d(8, 7, 1)
        self.register_buffer("anchor", torch.tensor([3.0, 5.0]))

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        raw = self.head(F.relu(self.stem(image)))
        h, w = raw.shape[2], raw.shape[3]
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack([xs, ys], -1).reshape(-1, 2) + 0.5
        raw = raw.flatten(2).transpose(1, 2)
        centre = (grid + torch.tanh(raw[..., :2])) * 2.0
        size = self.anchor * raw[..., 2:4].clamp(max=math.log(16.0)).exp()
        scores, labels = raw[..., 4:].softmax(-1).max(-1)
        return {"boxes": torch.cat([centre - size / 2, centre + size / 2], -1), "scores": scores, "labels": labels}


@architecture()
def jury_detector() -> Made:
    torch.manual_seed(16)
    return Detector().eval(), (torch.randn(2, 3, 6, 10),)


class Overlap(nn.Module):
    """Generalised overlap of every box with every other."""

    def forward(self, boxes: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        size = torch.exp(boxes[:, :, 2:].clamp(-4, 4))
        a = torch.cat([boxes[:, :, :2] - size / 2, boxes[:, :, :2] + size / 2], -1)
        reach = torch.exp(others[:, :, 2:].clamp(-4, 4))
        b = torch.cat([others[:, :, :2] - reach / 2, others[:, :, :2] + reach / 2], -1)
        low = torch.maximum(a[:, :, None, :2], b[:, None, :, :2])
        high = torch.minimum(a[:, :, None, 2:], b[:, None, :, 2:])
        inter = (high - low).clamp(min=0).prod(-1)
        union = size.prod(-1)[:, :, None] + reach.prod(-1)[:, None] - inter
        overlap = inter / union
        return overlap, overlap.amax(2)


@architecture(boxes={0: "batch", 1: "n"}, others={0: "batch", 1: "m"})
def jury_overlap() -> Made:
    torch.manual_seed(17)
    return Overlap().eval(), (torch.randn(2, 5, 4), torch.randn(2, 4, 4))


class Colour(nn.Module):
    """Linear light to sRGB, luma and chroma, then a small filter."""

    def __init__(self) -> None:
        super().__init__()
        matrix = [[0.299, 0.587, 0.114], [-0.1687, -0.3313, 0.5], [0.5, -0.4187, -0.0813]]
        self.register_buffer("matrix", torch.tensor(matrix))
        self.filter = nn.Conv2d(3, 3, 3, padding=1, padding_mode="replicate")

    def forward(self, image: Tensor) -> Tensor:
        x = image.clamp(0.0, 1.0)
        curved = 1.055 * x.clamp(min=1e-6).pow(1 / 2.4) - 0.055
        x = torch.where(x <= 0.0031308, 12.92 * x, curved)
        return self.filter(torch.einsum("ij,bjhw->bihw", self.matrix, x))


@architecture()
def jury_colour() -> Made:
    torch.manual_seed(18)
    return Colour().eval(), (torch.rand(2, 3, 5, 5),)


class Warp(nn.Module):
    """A spatial transformer: the picture is sampled where a grid says."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Linear(2, 2)

    def forward(self, image: Tensor, angle: Tensor) -> Tensor:
        shift = 0.3 * torch.tanh(self.shift(angle))
        lines = torch.linspace(-0.9, 0.9, 5)
        base = torch.stack([lines.repeat(5), lines.repeat_interleave(5)], -1).reshape(1, 5, 5, 2)
        return F.grid_sample(image, base + shift[:, None, None], padding_mode="border", align_corners=False)


@architecture(image={0: "batch"}, angle={0: "batch"})
def jury_warp() -> Made:
    torch.manual_seed(19)
    return Warp().eval(), (torch.randn(2, 2, 6, 6), torch.randn(2, 2))


class LogMel(nn.Module):
    """Frames of a wave, windowed, through a DFT and mel filters, in decibels below the loudest."""

    def __init__(self) -> None:
        super().__init__()
        n = torch.arange(16.0)
        angle = 2 * math.pi * torch.outer(torch.arange(9.0), n) / 16
        self.register_buffer("window", torch.hann_window(16))
        self.register_buffer("cos", torch.cos(angle))
        self.register_buffer("sin", torch.sin(angle))
        self.register_buffer("filters", torch.rand(5, 9))

    def forward(self, wave: Tensor) -> Tensor:
        x = wave - 0.97 * F.pad(wave, (1, 0))[:, :-1]
        frames = x.unfold(1, 16, 8) * self.window
        power = (frames @ self.cos.T).square() + (frames @ self.sin.T).square()
        level = 10.0 * torch.log10((power @ self.filters.T).clamp(min=1e-5))
        return torch.maximum(level, level.amax((1, 2), keepdim=True) - 60.0)


@architecture()
def jury_logmel() -> Made:
    torch.manual_seed(20)
    return LogMel().eval(), (torch.randn(2, 64),)


class Causal(nn.Module):
    """Dilated convolutions that see only the past."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(3, 6, 3), nn.Conv1d(6, 6, 3, dilation=2)
        self.gate = nn.Conv1d(6, 12, 1)
        self.head = nn.Conv1d(6, 2, 1)

    def forward(self, series: Tensor) -> Tensor:
        x = torch.tanh(self.first(F.pad(series, (2, 0))))
        x = x + F.glu(self.gate(self.second(F.pad(x, (4, 0)))), 1)
        return self.head(F.softsign(x))


@architecture(series={0: "batch", 2: "time"})
def jury_causal() -> Made:
    torch.manual_seed(21)
    return Causal().eval(), (torch.randn(2, 3, 10),)


class Codebook(nn.Module):
    """Nearest of a few codes, and how far it is."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Conv1d(4, 6, 1)
        self.codes = nn.Parameter(torch.randn(9, 6))
        self.decode = nn.Conv1d(6, 4, 1)

    def forward(self, series: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z = self.encode(series).transpose(1, 2)
        far = (z[:, :, None] - self.codes).square().sum(-1)
        index = far.argmin(-1)
        return self.decode(self.codes[index].transpose(1, 2)), index, far.amin(-1).sqrt()


@architecture()
def jury_codebook() -> Made:
    torch.manual_seed(22)
    return Codebook().eval(), (torch.randn(2, 4, 7),)
