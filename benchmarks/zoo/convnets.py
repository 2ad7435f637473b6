"""Hand-written convolutional networks."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from benchmarks.zoo.registry import model


def images(size: int = 32, channels: int = 3) -> tuple[torch.Tensor]:
    return (torch.randn(2, channels, size, size),)


def settled(net: nn.Module) -> nn.Module:
    """Batch norms with statistics as after training, in eval mode."""
    for part in net.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            nn.init.normal_(part.running_mean, std=0.5)
            nn.init.uniform_(part.running_var, 0.5, 2)
            nn.init.uniform_(part.weight, 0.5, 1.5)
    return net.eval()


def conv(inputs: int, outputs: int, size: int = 3, **more) -> nn.Sequential:
    """Convolution, batch norm, ReLU."""
    layer = nn.Conv2d(inputs, outputs, size, padding=more.pop("padding", size // 2), bias=False, **more)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU())


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.one = conv(inputs, outputs, stride=stride)
        self.two = nn.Sequential(nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs))
        self.skip = nn.Conv2d(inputs, outputs, 1, stride=stride) if stride > 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        return functional.relu(self.two(self.one(x)) + self.skip(x))


@model("convnets", "residual blocks with settled batch norms")
def residual_stack():
    torch.manual_seed(0)
    blocks = [conv(3, 16), Residual(16, 16), Residual(16, 32, 2), Residual(32, 32)]
    return settled(nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))), images(16)


class Inverted(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.grow = conv(width, 4 * width, 1)
        self.depthwise = conv(4 * width, 4 * width, groups=4 * width)
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4 * width, width, 1), nn.Hardswish())
        self.excite = nn.Sequential(nn.Conv2d(width, 4 * width, 1), nn.Hardsigmoid())
        self.shrink = nn.Conv2d(4 * width, width, 1)

    def forward(self, x):
        y = self.depthwise(self.grow(x))
        return x + self.shrink(y * self.excite(self.squeeze(y)))


@model("convnets", "depthwise, squeeze and excite, hard activations")
def mobile_blocks():
    torch.manual_seed(1)
    return settled(nn.Sequential(conv(3, 16, stride=2), Inverted(16), Inverted(16))), images(16)


class UNet(nn.Module):
    def __init__(self, bilinear: bool) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = conv(3, 16), conv(16, 32), conv(32, 64)
        up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.up2 = nn.Sequential(up, conv(64, 32)) if bilinear else nn.ConvTranspose2d(64, 32, 2, stride=2)
        self.up1 = nn.Sequential(up, conv(32, 16)) if bilinear else nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.mix2, self.mix1, self.head = conv(64, 32), conv(32, 16), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(functional.max_pool2d(a, 2))
        y = self.up2(self.bottom(functional.max_pool2d(b, 2)))
        y = self.up1(self.mix2(torch.cat([y, b], 1)))
        return self.head(self.mix1(torch.cat([y, a], 1))).sigmoid()


@model("convnets", "skip connections, transposed convolutions")
def unet():
    torch.manual_seed(2)
    return settled(UNet(bilinear=False)), images(16)


@model("convnets", "skip connections, bilinear upsampling")
def unet_bilinear():
    torch.manual_seed(3)
    return settled(UNet(bilinear=True)), images(16)


class Inception(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.three, self.five = conv(width, 8, 1), conv(width, 8, 3), conv(width, 8, 5)
        self.pool = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(width, 8, 1))

    def forward(self, x):
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pool(x)], 1)


@model("convnets", "parallel branches concatenated")
def inception():
    torch.manual_seed(4)
    return settled(nn.Sequential(conv(3, 16), Inception(16), nn.AvgPool2d(2), Inception(32))), images(16)


class Dense(nn.Module):
    def __init__(self, width: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(conv(width + i * growth, growth) for i in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


@model("convnets", "every layer sees all before it")
def densenet():
    torch.manual_seed(5)
    return settled(nn.Sequential(Dense(3, 8, 4), nn.Conv2d(35, 16, 1), nn.AvgPool2d(2), Dense(16, 8, 3))), images(16)


@model("convnets", "super-resolution by pixel shuffle")
def super_resolution():
    torch.manual_seed(6)
    layers = [nn.Conv2d(1, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 9, 3, padding=1), nn.PixelShuffle(3)]
    return nn.Sequential(*layers).eval(), images(12, 1)


@model("convnets", "bicubic upsampling with a learned residual")
def bicubic_residual():
    torch.manual_seed(7)
    return Bicubic().eval(), images(12, 1)


class Bicubic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fix = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.PReLU(16), nn.Conv2d(16, 1, 3, padding=1))

    def forward(self, x):
        big = functional.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
        return big + self.fix(big)


@model("convnets", "generator: transposed convolutions up from a vector")
def dcgan_generator():
    torch.manual_seed(8)
    layers = [nn.Unflatten(1, (16, 1, 1)), nn.ConvTranspose2d(16, 32, 4), nn.BatchNorm2d(32), nn.ReLU()]
    layers += [nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1)]
    return settled(nn.Sequential(*layers, nn.Tanh())), (torch.randn(2, 16),)


@model("convnets", "group norm between convolutions")
def group_norm_net():
    torch.manual_seed(9)
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1)]
    return nn.Sequential(*layers, nn.GroupNorm(8, 16), nn.SiLU()).eval(), images(16)


@model("convnets", "style transfer: instance norm and reflection padding")
def instance_norm_net():
    torch.manual_seed(10)
    layers = [nn.ReflectionPad2d(4), nn.Conv2d(3, 8, 9), nn.InstanceNorm2d(8, affine=True), nn.ReLU()]
    return nn.Sequential(*layers, nn.ReflectionPad2d(1), nn.Conv2d(8, 3, 3)).eval(), images(16)


class Temporal(nn.Module):
    """Causal dilated convolutions."""

    def __init__(self, width: int = 16, levels: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 3, dilation=2**i) for i in range(levels))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = x + functional.gelu(layer(functional.pad(x, (2 * 2 ** (i + 1) // 2, 0))))
        return x


@model("convnets", "causal dilated convolutions over time")
def dilated_tcn():
    torch.manual_seed(11)
    return Temporal().eval(), (torch.randn(2, 16, 48),)


@model("convnets", "three-dimensional convolutions and pooling")
def video_net():
    torch.manual_seed(12)
    layers = [nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(8, 16, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 5)).eval(), (
        torch.randn(2, 1, 8, 16, 16),
    )


class Pyramid(nn.Module):
    """Feature pyramid with nearest upsampling and lateral connections."""

    def __init__(self) -> None:
        super().__init__()
        self.c1, self.c2, self.c3 = conv(3, 8, stride=2), conv(8, 16, stride=2), conv(16, 32, stride=2)
        self.lateral = nn.ModuleList(nn.Conv2d(w, 16, 1) for w in (8, 16, 32))

    def forward(self, x):
        a = self.c1(x)
        b = self.c2(a)
        c = self.c3(b)
        p3 = self.lateral[2](c)
        p2 = self.lateral[1](b) + functional.interpolate(p3, scale_factor=2, mode="nearest")
        p1 = self.lateral[0](a) + functional.interpolate(p2, scale_factor=2, mode="nearest")
        return p1, p2, p3


@model("convnets", "three maps as a tuple")
def feature_pyramid():
    torch.manual_seed(13)
    return settled(Pyramid()), images()


class SpatialTransformer(nn.Module):
    """A predicted affine grid resamples the image."""

    def __init__(self) -> None:
        super().__init__()
        self.locate = nn.Sequential(nn.Conv2d(1, 8, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 3 * 3, 6))
        nn.init.normal_(self.locate[-1].weight, std=1e-2)
        self.locate[-1].bias.data.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))

    def forward(self, x):
        theta = torch.tanh(self.locate(x)).view(-1, 2, 3)
        grid = functional.affine_grid(theta, [x.shape[0], 1, 16, 16], align_corners=False)
        return functional.grid_sample(x, grid, padding_mode="border", align_corners=False)


@model("convnets", "a predicted grid resamples the image")
def spatial_transformer():
    torch.manual_seed(14)
    return SpatialTransformer().eval(), images(16, 1)
