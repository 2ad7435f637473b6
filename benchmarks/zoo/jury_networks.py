"""Correct networks as they are written in projects: convolutions, recurrence, tables, time series, sound, densities."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from benchmarks.zoo.registry import model


def settle(module: nn.Module) -> nn.Module:
    """Give batch norms statistics of their own, as training would."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.running_mean.normal_(std=0.3)
            part.running_var.uniform_(0.3, 2)
            part.weight.data.uniform_(0.5, 1.5)
            part.bias.data.normal_(std=0.2)
    return module.eval()


def train(module: nn.Module, inputs: tuple[torch.Tensor, ...], steps: int = 20) -> nn.Module:
    """Some steps towards random targets."""
    optimiser = torch.optim.Adam(module.parameters(), 1e-2)
    module.train()
    with torch.no_grad():
        target = torch.randn_like(module(*inputs))
    for _ in range(steps):
        optimiser.zero_grad()
        (module(*inputs) - target).square().mean().backward()
        optimiser.step()
    return module.eval()


def image(size: int = 32, channels: int = 3, count: int = 2) -> tuple[torch.Tensor]:
    return (torch.randn(count, channels, size, size),)


@model("convnets", "VGG with batch norm, adaptive pooling to 7x7 from 2x2")
def jury_vgg():
    torch.manual_seed(200)
    layers: list[nn.Module] = []
    channels = 3
    for width in (8, "M", 16, "M", 16, 16, "M", 32, "M"):
        if width == "M":
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            channels = width
    head = [nn.Flatten(), nn.Linear(32 * 4, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 10)]
    return settle(nn.Sequential(*layers, nn.AdaptiveAvgPool2d((2, 2)), *head)), image()


class Shuffle(nn.Module):
    """A ShuffleNet v2 unit."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.branch = nn.Sequential(
            nn.Conv2d(half, half, 1), nn.BatchNorm2d(half), nn.ReLU(),
            nn.Conv2d(half, half, 3, padding=1, groups=half), nn.BatchNorm2d(half),
            nn.Conv2d(half, half, 1), nn.BatchNorm2d(half), nn.ReLU(),
        )  # fmt: skip

    def forward(self, x):
        left, right = x.chunk(2, dim=1)
        x = torch.cat([left, self.branch(right)], dim=1)
        b, c, h, w = x.shape
        return x.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)


@model("convnets", "ShuffleNet: channel split and shuffle")
def jury_shufflenet():
    torch.manual_seed(201)
    return settle(
        nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.MaxPool2d(3, 2, 1), Shuffle(16), Shuffle(16), Shuffle(16),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 7),
        )
    ), image()  # fmt: skip


class MBConv(nn.Module):
    """Expansion, depthwise convolution, squeeze and excitation, projection."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        wide = channels * 4
        self.expand = nn.Sequential(nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide, 1e-3), nn.SiLU())
        self.depth = nn.Sequential(
            nn.Conv2d(wide, wide, kernel, padding=kernel // 2, groups=wide, bias=False),
            nn.BatchNorm2d(wide, 1e-3),
            nn.SiLU(),
        )
        self.squeeze = nn.Sequential(nn.Conv2d(wide, 4, 1), nn.SiLU(), nn.Conv2d(4, wide, 1))
        self.project = nn.Sequential(nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels, 1e-3))

    def forward(self, x):
        y = self.depth(self.expand(x))
        y = y * self.squeeze(y.mean((2, 3), keepdim=True)).sigmoid()
        return x + self.project(y)


@model("convnets", "EfficientNet blocks with SiLU and excitation")
def jury_efficientnet():
    torch.manual_seed(202)
    return settle(
        nn.Sequential(
            nn.Conv2d(3, 12, 3, 2, 1), MBConv(12, 3), MBConv(12, 5), nn.Hardswish(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 9),
        )
    ), image(24)  # fmt: skip


class AttentionGate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.gate_x, self.gate_g, self.psi = nn.Conv2d(8, 8, 1), nn.Conv2d(16, 8, 1), nn.Conv2d(8, 1, 1)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = self.down1(x).relu()
        b = self.down2(functional.max_pool2d(a, 2)).relu()
        up = functional.interpolate(self.gate_g(b), size=a.shape[-2:], mode="bilinear", align_corners=True)
        gate = self.psi((self.gate_x(a) + up).relu()).sigmoid()
        return self.out(torch.cat([a * gate, self.up(b)], 1)).log_softmax(1)


@model(
    "convnets",
    "a U-Net with gates, height and width dynamic",
    dynamic={"x": {0: "batch", 2: "height", 3: "width"}},
    range={"height": (16, 48), "width": (16, 48)},
)
def jury_attention_unet():
    torch.manual_seed(203)
    return AttentionGate().eval(), (torch.randn(1, 1, 24, 32),)


class YoloHead(nn.Module):
    """A detector's raw maps turned to boxes with a grid and anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 12, 3, 4, 1), nn.SiLU(), nn.Conv2d(12, 12, 3, 2, 1), nn.SiLU())
        self.head = nn.Conv2d(12, 3 * 9, 1)
        self.register_buffer("anchors", torch.tensor([[10.0, 13], [16, 30], [33, 23]]))

    def forward(self, x):
        y = self.head(self.body(x))
        b, _, h, w = y.shape
        y = y.view(b, 3, 9, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack([columns, rows], -1).to(y.dtype)
        centre = (y[..., :2] * 2 - 0.5 + grid) * 8
        size = (y[..., 2:4] * 2) ** 2 * self.anchors[:, None, None]
        boxes = torch.cat([centre - size / 2, centre + size / 2], -1).flatten(1, 3)
        scores = (y[..., 4:5] * y[..., 5:]).flatten(1, 3)
        best, label = scores.max(-1)
        return {"boxes": boxes, "best": best, "label": label}


@model("convnets", "a YOLO head with grid and anchors: boxes of hundreds of pixels")
def jury_yolo_head():
    torch.manual_seed(204)
    return YoloHead().eval(), (torch.rand(2, 3, 64, 64),)


class CenterNet(nn.Module):
    """Peaks of a heat map by max pooling, the best of them gathered."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.ReLU())
        self.heat, self.size = nn.Conv2d(16, 3, 1), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        y = self.body(x)
        heat = self.heat(y).sigmoid()
        peaks = heat * (functional.max_pool2d(heat, 3, 1, 1) == heat).to(heat.dtype)
        score, place = peaks.flatten(1).topk(4)
        where = place % (heat.shape[2] * heat.shape[3])
        size = self.size(y).flatten(2).gather(2, where[:, None].expand(-1, 2, -1))
        return score, size.transpose(1, 2).exp()


@model("convnets", "CenterNet: equality with a pooled map, top-k, gather")
def jury_centernet():
    torch.manual_seed(205)
    return CenterNet().eval(), (torch.rand(2, 3, 32, 32),)


class SoftArgmax(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 5, padding=2), nn.ELU(), nn.Conv2d(8, 5, 5, padding=2))

    def forward(self, x):
        heat = self.body(x)
        p = (heat.flatten(2) * 10).softmax(-1).view_as(heat)
        places = torch.linspace(-1, 1, 20)
        return torch.stack([(p.sum(2) * places).sum(-1), (p.sum(3) * places).sum(-1)], -1)


@model("vision", "key points by soft argmax")
def jury_soft_argmax():
    torch.manual_seed(206)
    return SoftArgmax().eval(), (torch.rand(2, 3, 20, 20),)


class Upscalers(nn.Module):
    def forward(self, x):
        return {
            "nearest": functional.interpolate(x, scale_factor=3, mode="nearest"),
            "bilinear": functional.interpolate(x, size=(17, 11), mode="bilinear", align_corners=False),
            "corners": functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
            "bicubic": functional.interpolate(x, size=(20, 20), mode="bicubic", align_corners=False),
        }


@model("vision", "interpolation in several modes upwards")
def jury_interpolations():
    torch.manual_seed(207)
    return Upscalers().eval(), (torch.rand(2, 3, 8, 8),)


class Sampler(nn.Module):
    """Optical flow: an image warped by a flow field."""

    def __init__(self) -> None:
        super().__init__()
        self.flow = nn.Conv2d(6, 2, 3, padding=1)

    def forward(self, first, second):
        flow = self.flow(torch.cat([first, second], 1)).tanh() * 3
        ys, xs = torch.meshgrid(torch.arange(12.0), torch.arange(16.0), indexing="ij")
        x = 2 * (xs + flow[:, 0]) / 15 - 1
        y = 2 * (ys + flow[:, 1]) / 11 - 1
        return functional.grid_sample(
            second, torch.stack([x, y], -1), mode="bilinear", padding_mode="border", align_corners=True
        )


@model("vision", "backward warping by grid_sample, borders clamped")
def jury_flow_warp():
    torch.manual_seed(208)
    return Sampler().eval(), (torch.rand(2, 3, 12, 16), torch.rand(2, 3, 12, 16))


class NearestSampler(nn.Module):
    def forward(self, x, theta):
        grid = functional.affine_grid(theta.view(-1, 2, 3), [x.shape[0], 2, 9, 9], align_corners=False)
        return functional.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


@model("vision", "affine grids from an input, zeros outside")
def jury_affine_grid():
    torch.manual_seed(209)
    return NearestSampler().eval(), (torch.rand(2, 2, 9, 9), torch.randn(2, 6))


class PixelShuffle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 12, 3, padding=1, padding_mode="reflect")

    def forward(self, x):
        y = functional.pixel_shuffle(self.body(x), 2)
        return functional.pixel_unshuffle(functional.leaky_relu(y, 0.2), 4).clamp(0, 1)


@model("vision", "pixel shuffle and unshuffle, reflected borders")
def jury_pixel_shuffle():
    torch.manual_seed(210)
    return PixelShuffle().eval(), (torch.rand(2, 3, 12, 12),)


class RoiGather(nn.Module):
    """Patches at given places, read by index."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3 * 16, 5)

    def forward(self, x, corners):
        steps = torch.arange(4)
        ys = (corners[:, :, 0, None] + steps)[:, :, :, None]
        xs = (corners[:, :, 1, None] + steps)[:, :, None]
        batch = torch.arange(x.shape[0])[:, None, None, None]
        patches = x.permute(0, 2, 3, 1)[batch, ys, xs]
        return self.net(patches.flatten(2))


@model("vision", "patches gathered at integer corners", range={"corners": (0, 12)})
def jury_roi_gather():
    torch.manual_seed(211)
    return RoiGather().eval(), (torch.rand(2, 3, 16, 16), torch.randint(0, 13, (2, 3, 2)))


@model("vision", "SSIM of two images: variances as differences of moments")
def jury_ssim():
    torch.manual_seed(212)

    class Ssim(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            line = torch.exp(-((torch.arange(7.0) - 3) ** 2) / 4.5)
            kernel = line[:, None] * line
            self.register_buffer("kernel", (kernel / kernel.sum()).expand(3, 1, 7, 7).clone())

        def blur(self, x):
            return functional.conv2d(x, self.kernel, groups=3)

        def forward(self, a, b):
            ma, mb = self.blur(a), self.blur(b)
            va, vb, cov = self.blur(a * a) - ma * ma, self.blur(b * b) - mb * mb, self.blur(a * b) - ma * mb
            top = (2 * ma * mb + 1e-4) * (2 * cov + 9e-4)
            return (top / ((ma * ma + mb * mb + 1e-4) * (va + vb + 9e-4))).mean((1, 2, 3))

    a = torch.rand(2, 3, 16, 16)
    return Ssim().eval(), (a, (a + 0.05 * torch.randn_like(a)).clamp(0, 1))


class QRNN(nn.Module):
    """A quasi-recurrent layer: convolutions, then a pooled recurrence."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Conv1d(8, 36, 2)

    def forward(self, x):
        z, f, o = self.gates(functional.pad(x.transpose(1, 2), (1, 0))).chunk(3, 1)
        z, f, o = z.tanh(), f.sigmoid(), o.sigmoid()
        state, out = torch.zeros_like(z[:, :, 0]), []
        for i in range(15):
            state = f[:, :, i] * state + (1 - f[:, :, i]) * z[:, :, i]
            out.append(state)
        return (torch.stack(out, -1) * o).transpose(1, 2)


@model("recurrent", "QRNN with its pooling unrolled")
def jury_qrnn():
    torch.manual_seed(213)
    return QRNN().eval(), (torch.randn(2, 15, 8),)


class PeepholeCell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(6, 40), nn.Linear(10, 40, bias=False)
        self.peep = nn.Parameter(torch.randn(3, 10) * 0.3)
        self.norm = nn.LayerNorm(10)

    def forward(self, x, h, c):
        out = []
        for i in range(9):
            a, f, g, o = (self.x(x[:, i]) + self.h(h)).chunk(4, -1)
            i_, f = (a + self.peep[0] * c).sigmoid(), (f + self.peep[1] * c + 1).sigmoid()
            c = f * c + i_ * g.tanh()
            h = (o + self.peep[2] * c).sigmoid() * self.norm(c).tanh()
            out.append(h)
        return torch.stack(out, 1), h, c


@model("recurrent", "LSTM cells with peepholes and layer norm, by hand, states in and out")
def jury_peephole_lstm():
    torch.manual_seed(214)
    return PeepholeCell().eval(), (torch.randn(3, 9, 6), torch.zeros(3, 10), torch.zeros(3, 10))


@model("recurrent", "two GRUs both ways, last states joined", dynamic={"x": {0: "batch", 1: "time"}})
def jury_bigru_dynamic():
    torch.manual_seed(215)

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(5, 7, num_layers=2, bidirectional=True, batch_first=True)
            self.head = nn.Linear(14, 3)

        def forward(self, x):
            out, last = self.gru(x)
            return self.head(out), torch.cat([last[-2], last[-1]], -1)

    return Tagger().eval(), (torch.randn(2, 11, 5),)


class TCNBlock(nn.Module):
    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.pad = 2 * dilation
        self.first = parametrizations.weight_norm(nn.Conv1d(channels, channels, 3, dilation=dilation))
        self.second = parametrizations.weight_norm(nn.Conv1d(channels, channels, 3, dilation=dilation))

    def forward(self, x):
        y = self.first(functional.pad(x, (self.pad, 0))).relu()
        return (x + self.second(functional.pad(y, (self.pad, 0)))).relu()


@model("recurrent", "a TCN with weight norm as a parametrisation, trained some steps")
def jury_weight_norm_tcn():
    torch.manual_seed(216)
    net = nn.Sequential(nn.Conv1d(4, 8, 1), *[TCNBlock(8, 2**i) for i in range(4)], nn.Conv1d(8, 2, 1))
    inputs = (torch.randn(3, 4, 40),)
    return train(net, inputs), inputs


@model("recurrent", "spectral norm and orthogonal weights as parametrisations")
def jury_spectral_norm():
    torch.manual_seed(217)
    net = nn.Sequential(
        parametrizations.spectral_norm(nn.Linear(10, 16)), nn.LeakyReLU(0.1),
        parametrizations.spectral_norm(nn.Linear(16, 16)), nn.LeakyReLU(0.1), nn.Linear(16, 1),
    )  # fmt: skip
    inputs = (torch.randn(4, 10),)
    return train(net, inputs), inputs


class SelectiveScan(nn.Module):
    """A state space layer with input-dependent steps, the scan unrolled."""

    def __init__(self, width: int = 6, state: int = 4) -> None:
        super().__init__()
        self.log_a = nn.Parameter(torch.log(torch.arange(1.0, state + 1)).repeat(width, 1))
        self.delta, self.b, self.c = nn.Linear(width, width), nn.Linear(width, state), nn.Linear(width, state)
        self.skip = nn.Parameter(torch.ones(width))

    def forward(self, u):
        delta = functional.softplus(self.delta(u))
        a, b, c = -self.log_a.exp(), self.b(u), self.c(u)
        h = torch.zeros_like(u[:, 0, :, None] * a)
        out = []
        for i in range(20):
            d = delta[:, i, :, None]
            h = torch.exp(d * a) * h + d * b[:, i, None] * u[:, i, :, None]
            out.append((h * c[:, i, None]).sum(-1) + self.skip * u[:, i])
        return torch.stack(out, 1)


@model("time series", "selective state space scan")
def jury_selective_scan():
    torch.manual_seed(218)
    return SelectiveScan().eval(), (torch.randn(2, 20, 6),)


class DiagonalSSM(nn.Module):
    """A linear recurrence as a long convolution with a decaying, rotating kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.decay, self.turn = nn.Parameter(torch.rand(8, 1) * 0.1), nn.Parameter(torch.rand(8, 1) * 3)
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        t = torch.arange(64.0)
        kernel = torch.exp(-self.decay * t) * torch.cos(self.turn * t)
        y = functional.conv1d(functional.pad(x, (63, 0)), kernel.flip(-1).unsqueeze(1), groups=8)
        return self.mix(y.transpose(1, 2))


@model("time series", "S4D as a convolution over 64 steps")
def jury_s4d_convolution():
    torch.manual_seed(219)
    return DiagonalSSM().eval(), (torch.randn(2, 8, 64),)


class RevIN(nn.Module):
    """Reversible instance norm around a decomposition and linear maps."""

    def __init__(self) -> None:
        super().__init__()
        self.trend, self.season = nn.Linear(48, 12), nn.Linear(48, 12)

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        std = (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        z = ((x - mean) / std).transpose(1, 2)
        trend = functional.avg_pool1d(functional.pad(z, (12, 12), mode="replicate"), 25, 1)
        out = self.trend(trend) + self.season(z - trend)
        return out.transpose(1, 2) * std + mean


@model("time series", "reversible norm, replicate padding, moving averages")
def jury_revin_decomposition():
    torch.manual_seed(220)
    return RevIN().eval(), (torch.randn(3, 48, 5).cumsum(1),)


class AutoCorrelation(nn.Module):
    """Informer-like: the queries with the sharpest scores attend, the others take the mean."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = q @ k.transpose(1, 2) / math.sqrt(8)
        sharp = scores.amax(-1) - scores.mean(-1)
        top = sharp.topk(4, dim=-1).indices[..., None].expand(-1, -1, 8)
        chosen = q.gather(1, top) @ k.transpose(1, 2) / math.sqrt(8)
        mean = v.mean(1, keepdim=True).expand(-1, 16, -1)
        return mean.scatter(1, top, chosen.softmax(-1) @ v)


@model("time series", "ProbSparse attention: top-k queries, scatter")
def jury_probsparse():
    torch.manual_seed(221)
    return AutoCorrelation().eval(), (torch.randn(2, 16, 8),)


class NHits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(48 // p, 32), nn.ReLU(), nn.Linear(32, 48 + 12 // p * 1)) for p in (1, 2, 4)
        )

    def forward(self, x):
        forecast = torch.zeros_like(x[:, :12])
        for pool, block in zip((1, 2, 4), self.blocks, strict=True):
            theta = block(functional.max_pool1d(x.unsqueeze(1), pool).squeeze(1))
            x = x - theta[:, :48]
            step = functional.interpolate(theta[:, 48:].unsqueeze(1), size=12, mode="linear", align_corners=False)
            forecast = forecast + step.squeeze(1)
        return forecast


@model("time series", "N-HiTS: pooled blocks, residuals, linear interpolation")
def jury_nhits():
    torch.manual_seed(222)
    return NHits().eval(), (torch.randn(3, 48),)


class TabNet(nn.Module):
    """Sequential attention with ghost-norm-free steps and a prior."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(12)
        self.feature = nn.Linear(12, 16)
        self.attend = nn.ModuleList(nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12)) for _ in range(3))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        x = self.norm(x)
        prior, total, masks = torch.ones_like(x), 0, []
        a = functional.glu(self.feature(x), dim=-1)
        for attend in self.attend:
            mask = (attend(a) * prior).softmax(-1)
            prior = prior * (1.3 - mask)
            a = functional.glu(self.feature(mask * x), dim=-1)
            total = total + a.relu()
            masks.append(mask)
        return self.head(total), torch.stack(masks, 1)


@model("tabular", "TabNet-like steps with masks as outputs")
def jury_tabnet():
    torch.manual_seed(223)
    return settle(TabNet()), (torch.randn(4, 12),)


class NODE(nn.Module):
    """Oblivious differentiable trees of depth four."""

    def __init__(self) -> None:
        super().__init__()
        self.choice, self.limits = nn.Parameter(torch.randn(10, 6, 4)), nn.Parameter(torch.randn(6, 4))
        self.leaves = nn.Parameter(torch.randn(6, 16, 3))
        codes = (torch.arange(16)[:, None] >> torch.arange(4)) & 1
        self.register_buffer("codes", codes.float())

    def forward(self, x):
        values = torch.einsum("bi,itd->btd", x, (self.choice * 4).softmax(0))
        right = ((values - self.limits) * 5).sigmoid().unsqueeze(2)
        weights = (right * self.codes + (1 - right) * (1 - self.codes)).prod(-1)
        return torch.einsum("btl,tlo->bo", weights, self.leaves)


@model("tabular", "oblivious soft trees: products of gates")
def jury_node_trees():
    torch.manual_seed(224)
    return NODE().eval(), (torch.randn(4, 10),)


class Missing(nn.Module):
    """Numbers with gaps (NaN) and categories, a mask beside."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("means", torch.randn(6))
        self.table = nn.Embedding(20, 4, padding_idx=0)
        self.net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, numbers, category):
        gone = torch.isnan(numbers)
        filled = torch.where(gone, self.means, numbers)
        return self.net(torch.cat([filled, gone.to(numbers.dtype), self.table(category)], -1))


@model("tabular", "missing values filled with means, an indicator beside", range={"category": (0, 19)})
def jury_missing_values():
    torch.manual_seed(225)
    numbers = torch.randn(4, 6)
    numbers[0, 2] = float("nan")
    return Missing().eval(), (numbers, torch.randint(0, 20, (4,)))


class DeepFM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offsets", torch.tensor([0, 10, 30, 37]))
        self.first, self.second = nn.Embedding(50, 1), nn.Embedding(50, 6)
        self.deep = nn.Sequential(nn.Linear(24, 16), nn.BatchNorm1d(16), nn.PReLU(), nn.Linear(16, 1))

    def forward(self, fields):
        ids = fields + self.offsets
        v = self.second(ids)
        pairs = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(-1, keepdim=True)
        return (self.first(ids).sum(1) + pairs + self.deep(v.flatten(1))).sigmoid()


@model("tabular", "DeepFM over four fields", range={"fields": (0, 6)})
def jury_deepfm():
    torch.manual_seed(226)
    return settle(DeepFM()), (torch.randint(0, 7, (5, 4)),)


class DIN(nn.Module):
    """A target attends to a history with padding."""

    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(40, 8, padding_idx=0)
        self.score = nn.Sequential(nn.Linear(32, 16), nn.PReLU(16), nn.Linear(16, 1))
        self.head = nn.Linear(16, 1)

    def forward(self, history, target):
        h, t = self.items(history), self.items(target).unsqueeze(1).expand(-1, 7, -1)
        joined = torch.cat([h, t, h - t, h * t], -1)
        y = self.score[0](joined)
        y = self.score[1](y.flatten(0, 1)).view_as(y)
        w = self.score[2](y).squeeze(-1).masked_fill(history == 0, -1e9).softmax(-1)
        user = (w.unsqueeze(-1) * h).sum(1)
        return self.head(torch.cat([user, t[:, 0]], -1)).sigmoid()


@model("tabular", "DIN: attention over a padded history", range={"history": (0, 39), "target": (0, 39)})
def jury_din():
    torch.manual_seed(227)
    return DIN().eval(), (torch.randint(0, 40, (3, 7)), torch.randint(0, 40, (3,)))


class SincNet(nn.Module):
    """Band-pass filters made from cut-off frequencies, windowed."""

    def __init__(self, bands: int = 8, width: int = 65) -> None:
        super().__init__()
        self.low = nn.Parameter(torch.linspace(30, 3000, bands)[:, None])
        self.band = nn.Parameter(torch.full((bands, 1), 300.0))
        self.register_buffer("window", torch.hamming_window(width, periodic=False)[: width // 2])
        self.register_buffer("n", 2 * math.pi * torch.arange(-(width // 2), 0).float()[None] / 16000)

    def forward(self, wave):
        low = 50 + self.low.abs()
        high = (low + 50 + self.band.abs()).clamp(50, 8000)
        left = (torch.sin(high @ self.n) - torch.sin(low @ self.n)) / (self.n / 2) * self.window
        full = torch.cat([left, 2 * (high - low), left.flip(1)], 1) / (2 * (high - low))
        return functional.conv1d(wave, full.unsqueeze(1), stride=4).abs().add(1).log()


@model("audio", "SincNet: filters made from frequencies at run time")
def jury_sincnet():
    torch.manual_seed(228)
    return SincNet().eval(), (torch.randn(2, 1, 400),)


class LogMel(nn.Module):
    """A spectrogram by convolution with cosines and sines, mel bands, decibels with a floor."""

    def __init__(self, size: int = 128, bands: int = 20) -> None:
        super().__init__()
        n = torch.arange(size // 2 + 1).float()[:, None] * torch.arange(size).float() * (2 * math.pi / size)
        window = torch.hann_window(size)
        self.register_buffer("real", (n.cos() * window).unsqueeze(1))
        self.register_buffer("imag", (n.sin() * window).unsqueeze(1))
        self.register_buffer("mel", torch.rand(bands, size // 2 + 1) ** 8)

    def forward(self, wave):
        x = functional.pad(wave, (64, 64), mode="reflect").unsqueeze(1)
        power = (
            functional.conv1d(x, self.real, stride=64).square() + functional.conv1d(x, self.imag, stride=64).square()
        )
        db = 10 * torch.log10((self.mel @ power).clamp(min=1e-10))
        db = torch.maximum(db, db.amax((1, 2), keepdim=True) - 80)
        return (db - db.mean((1, 2), keepdim=True)) / (db.std((1, 2), keepdim=True) + 1e-5)


@model("audio", "log-mel with a floor of 80 dB below the peak")
def jury_log_mel_db():
    torch.manual_seed(229)
    return LogMel().eval(), (torch.randn(2, 512) * 0.1,)


class PCEN(nn.Module):
    """Per-channel energy normalisation: a smoother unrolled, then powers."""

    def forward(self, energy):
        energy = energy.abs()
        state, out = energy[:, 0], []
        for i in range(25):
            state = 0.975 * state + 0.025 * energy[:, i]
            out.append(state)
        smooth = torch.stack(out, 1)
        return (energy / (1e-6 + smooth) ** 0.98 + 2) ** 0.5 - 2**0.5


@model("audio", "PCEN: powers of a smoothed energy")
def jury_pcen():
    torch.manual_seed(230)
    return PCEN().eval(), (torch.rand(2, 25, 10),)


class Vad(nn.Module):
    """Energy and zero crossings, hysteresis, a decision for every frame."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 12, batch_first=True)
        self.head = nn.Linear(12, 1)

    def forward(self, wave):
        frames = wave.unfold(1, 40, 20)
        energy = (frames.square().mean(-1) + 1e-6).log()
        cross = ((frames[..., 1:] * frames[..., :-1]) < 0).to(wave.dtype).mean(-1)
        p = self.head(self.lstm(torch.stack([energy, cross, energy - energy.mean(1, keepdim=True)], -1))[0]).sigmoid()
        return p.squeeze(-1), p.squeeze(-1) > 0.5


@model("audio", "voice activity: zero crossings, LSTM, threshold")
def jury_vad():
    torch.manual_seed(231)
    return Vad().eval(), (torch.randn(2, 400) * 0.1,)


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(20, 12), nn.Linear(6, 20)

    def forward(self, x, noise):
        mean, logvar = self.encode(x).chunk(2, -1)
        z = mean + noise * (0.5 * logvar).exp()
        y = self.decode(z.tanh()).sigmoid()
        kl = -0.5 * (1 + logvar - mean.square() - logvar.exp()).sum(-1)
        return {"out": y, "kl": kl, "loss": functional.mse_loss(y, x, reduction="none").sum(-1) + kl}


@model("probabilistic", "a VAE with its noise as an input: KL of exponentials")
def jury_vae():
    torch.manual_seed(232)
    return VAE().eval(), (torch.rand(3, 20), torch.randn(3, 6))


class MDN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 12))

    def forward(self, x, y):
        logits, mean, log_sigma = self.net(x).chunk(3, -1)
        z = (y - mean) * torch.exp(-log_sigma)
        log = logits.log_softmax(-1) - log_sigma - 0.5 * z.square() - 0.5 * math.log(2 * math.pi)
        return torch.logsumexp(log, -1), logits.softmax(-1), mean, log_sigma.exp()


@model("probabilistic", "a mixture density's log likelihood")
def jury_mixture_density():
    torch.manual_seed(233)
    return MDN().eval(), (torch.randn(4, 5), torch.randn(4, 1))


class Spline(nn.Module):
    """A rational quadratic spline flow: bins searched, quotients of quadratics."""

    def __init__(self) -> None:
        super().__init__()
        self.params = nn.Parameter(torch.randn(5, 3 * 8 + 1))

    def forward(self, x):
        w, h, d = self.params[:, :8].softmax(-1), self.params[:, 8:16].softmax(-1), self.params[:, 16:]
        d = functional.softplus(d) + 1e-3
        xs = functional.pad(w.cumsum(-1), (1, 0)) * 6 - 3
        ys = functional.pad(h.cumsum(-1), (1, 0)) * 6 - 3
        inside = (x > -3) & (x < 3)
        u = x.clamp(-2.999, 2.999)
        k = (u.unsqueeze(-1) >= xs[:, :-1]).sum(-1).clamp(1, 8).unsqueeze(-1) - 1

        def pick(table):
            return table.expand(x.shape[0], -1, -1).gather(-1, k).squeeze(-1)

        x0, y0, width, height = pick(xs), pick(ys), pick(w) * 6, pick(h) * 6
        d0, d1 = pick(d[:, :-1]), pick(d[:, 1:])
        t, s = (u - x0) / width, height / width
        bottom = s + (d0 + d1 - 2 * s) * t * (1 - t)
        y = y0 + height * (s * t * t + d0 * t * (1 - t)) / bottom
        slope = s * s * (d1 * t * t + 2 * s * t * (1 - t) + d0 * (1 - t) ** 2) / bottom.square()
        return torch.where(inside, y, x), torch.where(inside, slope.log(), torch.zeros_like(x)).sum(-1)


@model("probabilistic", "a spline flow: bins by comparison, logarithm of a slope")
def jury_spline_flow():
    torch.manual_seed(234)
    return Spline().eval(), (torch.randn(4, 5),)


class CRFForward(nn.Module):
    """The partition function of a chain, with a mask and -1e4 for forbidden moves."""

    def __init__(self) -> None:
        super().__init__()
        self.emit = nn.Linear(8, 5)
        moves = torch.randn(5, 5)
        moves[0, 3] = moves[2, 4] = -1e4
        self.moves = nn.Parameter(moves)

    def forward(self, x, mask):
        e = self.emit(x)
        alpha = e[:, 0]
        for i in range(1, 10):
            step = torch.logsumexp(alpha.unsqueeze(-1) + self.moves, 1) + e[:, i]
            alpha = torch.where(mask[:, i, None], step, alpha)
        return torch.logsumexp(alpha, -1)


@model("probabilistic", "a chain's partition function with a mask")
def jury_crf_partition():
    torch.manual_seed(235)
    return CRFForward().eval(), (torch.randn(3, 10, 8), torch.arange(10)[None] < torch.tensor([[10], [6], [3]]))


class GaussianProcess(nn.Module):
    """Posterior mean and variance of a GP whose inverse was computed once."""

    def __init__(self) -> None:
        super().__init__()
        points, values = torch.rand(30, 2, dtype=torch.float64), torch.randn(30, dtype=torch.float64)
        kernel = torch.exp(-((points[:, None] - points) ** 2).sum(-1) / 0.1) + 1e-2 * torch.eye(30)
        inverse = torch.linalg.inv(kernel)
        self.register_buffer("points", points.float())
        self.register_buffer("inverse", inverse.float())
        self.register_buffer("alpha", (inverse @ values).float())

    def forward(self, x):
        k = torch.exp(-((x[:, None] - self.points) ** 2).sum(-1) / 0.1)
        return k @ self.alpha, (1 - ((k @ self.inverse) * k).sum(-1)).clamp(min=1e-6).sqrt()


@model("probabilistic", "a Gaussian process: one minus a quadratic form near one")
def jury_gaussian_process():
    torch.manual_seed(236)
    return GaussianProcess().eval(), (torch.rand(4, 2),)


class StudentMahalanobis(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("lower", torch.tril(torch.randn(6, 6)) * 0.2 + torch.eye(6))
        self.mean = nn.Parameter(torch.randn(6))

    def forward(self, x):
        d = x - self.mean
        solved: list[torch.Tensor] = []
        for i in range(6):
            value = d[:, i]
            for j in range(i):
                value = value - self.lower[i, j] * solved[j]
            solved.append(value / self.lower[i, i])
        m = torch.stack(solved, -1).square().sum(-1)
        return -0.5 * (4 + 6) * torch.log1p(m / 4) - self.lower.diagonal().abs().log().sum()


@model("probabilistic", "a multivariate t density by forward substitution")
def jury_student_t():
    torch.manual_seed(237)
    return StudentMahalanobis().eval(), (torch.randn(4, 6),)


class HeatStep(nn.Module):
    """Explicit steps of heat flow with replicated borders, and a Poisson solve by Jacobi."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("star", torch.tensor([[[[0.0, 1, 0], [1, -4, 1], [0, 1, 0]]]]))

    def forward(self, u):
        for _ in range(20):
            u = u + 0.2 * functional.conv2d(functional.pad(u, (1, 1, 1, 1), mode="replicate"), self.star)
        p = torch.zeros_like(u)
        for _ in range(10):
            q = functional.pad(p, (1, 1, 1, 1))
            p = (q[..., 1:-1, 2:] + q[..., 1:-1, :-2] + q[..., 2:, 1:-1] + q[..., :-2, 1:-1] - u) / 4
        return u, p


@model("scientific", "explicit heat flow and Jacobi iterations")
def jury_heat_flow():
    torch.manual_seed(238)
    return HeatStep().eval(), (torch.randn(2, 1, 14, 14) * 100,)


class LennardJones(nn.Module):
    """Energy of a cluster: 1/r^12 - 1/r^6 over pairs, a smooth cut-off."""

    def forward(self, points):
        d = points[:, :, None] - points[:, None]
        eye = torch.eye(6)
        r2 = d.square().sum(-1) + eye
        s6 = (0.8 / (r2 + 0.2)) ** 3
        pair = 4 * (s6 * s6 - s6) * torch.where(r2 < 6.25, (1 - r2 / 6.25) ** 2, torch.zeros_like(r2)) * (1 - eye)
        force = (pair.unsqueeze(-1) * d / r2.unsqueeze(-1)).sum(2)
        return pair.sum((1, 2)) / 2, force


@model("scientific", "Lennard-Jones energies with a cut-off")
def jury_lennard_jones():
    torch.manual_seed(239)
    return LennardJones().eval(), (torch.randn(2, 6, 3) * 1.5,)


class SpectralConv(nn.Module):
    """A Fourier layer with its transform as matrix products."""

    def __init__(self, size: int = 32, modes: int = 6) -> None:
        super().__init__()
        n = 2 * math.pi / size * torch.arange(modes).float()[:, None] * torch.arange(size).float()
        self.register_buffer("cos", n.cos())
        self.register_buffer("sin", n.sin())
        self.real, self.imag = (nn.Parameter(torch.randn(4, 4, modes) / 8) for _ in range(2))
        self.skip = nn.Conv1d(4, 4, 1)

    def forward(self, x):
        re, im = x @ self.cos.t(), -x @ self.sin.t()
        a = torch.einsum("bim,iom->bom", re, self.real) - torch.einsum("bim,iom->bom", im, self.imag)
        b = torch.einsum("bim,iom->bom", re, self.imag) + torch.einsum("bim,iom->bom", im, self.real)
        return functional.gelu(2 / 32 * (a @ self.cos - b @ self.sin) + self.skip(x))


@model("scientific", "a Fourier neural operator without FFT")
def jury_fourier_operator():
    torch.manual_seed(240)
    return nn.Sequential(SpectralConv(), SpectralConv(), SpectralConv()).eval(), (torch.randn(2, 4, 32),)
