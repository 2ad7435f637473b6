"""Correct models that saturate, tie, round through other precisions or fold norms into convolutions."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from benchmarks.zoo.jury_networks import Shuffle, image, settle, train
from benchmarks.zoo.jury_numerics import Call, Head, rows
from benchmarks.zoo.registry import model


class Retrieval(nn.Module):
    """The best three documents of a query and what they contain."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.randn(30, 8))
        self.register_buffer("texts", torch.randn(30, 4))

    def forward(self, x):
        scores = torch.sigmoid(x @ self.keys.t())
        top = scores.topk(3, dim=-1)
        return top.values, self.texts[top.indices]


@model("decisions", "the best of scores behind a sigmoid: exact ties where it saturates")
def jury_saturated_retrieval():
    torch.manual_seed(500)
    return Retrieval().eval(), rows(3, 8)


class TokenPruning(nn.Module):
    """Tokens kept by their attention, in order of importance."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.head = nn.Linear(12, 1), nn.Linear(12, 4)

    def forward(self, x):
        weight = (self.score(x).squeeze(-1) * 4).softmax(-1)
        kept = weight.argsort(-1, descending=True)[:, :4]
        return self.head(x.gather(1, kept[..., None].expand(-1, -1, 12)).mean(1))


@model("decisions", "tokens pruned by the order of a softmax that underflows to ties of zero")
def jury_token_pruning():
    torch.manual_seed(501)
    return TokenPruning().eval(), (torch.randn(2, 9, 12),)


@model("decisions", "argmax of probabilities: ties where the softmax is flat or saturated")
def jury_argmax_of_tanh():
    torch.manual_seed(502)
    return Head(lambda y: (torch.tanh(y * 4).argmax(-1), torch.tanh(y * 4).amax(-1))).eval(), rows()


class EarlyExit(nn.Module):
    """The first head that is sure enough answers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.heads = nn.ModuleList(nn.Linear(16, 5) for _ in range(3))

    def forward(self, x):
        answer, open_ = torch.zeros(x.shape[0], 5), torch.ones(x.shape[0], 1, dtype=torch.bool)
        for layer, head in zip(self.layers, self.heads, strict=True):
            x = layer(x).relu()
            p = head(x * 3).softmax(-1)
            sure = p.amax(-1, keepdim=True) > 0.7
            answer = torch.where(open_ & sure, p, answer)
            open_ = open_ & ~sure
        return torch.where(open_, p, answer)


@model("decisions", "early exits at a confidence of 0.7")
def jury_early_exit():
    torch.manual_seed(503)
    return EarlyExit().eval(), rows()


class GreedyNms(nn.Module):
    """Suppression of overlapping boxes, unrolled over a fixed number."""

    def forward(self, boxes, scores):
        corner = torch.cat([boxes[..., :2], boxes[..., :2] + boxes[..., 2:].abs() + 0.05], -1)
        order = scores.argsort(-1, descending=True)
        corner = corner.gather(1, order[..., None].expand(-1, -1, 4))
        low = torch.maximum(corner[:, :, None, :2], corner[:, None, :, :2])
        high = torch.minimum(corner[:, :, None, 2:], corner[:, None, :, 2:])
        both = (high - low).clamp(min=0).prod(-1)
        area = (corner[..., 2:] - corner[..., :2]).prod(-1)
        overlap = both / (area[:, :, None] + area[:, None] - both)
        keep = torch.ones_like(area)
        for i in range(1, 6):
            hit = ((overlap[:, i, :i] > 0.5).to(area.dtype) * keep[:, :i]).amax(-1)
            keep = torch.cat([keep[:, :i], (1 - hit)[:, None], keep[:, i + 1 :]], 1)
        return corner, keep


@model("decisions", "suppression of boxes by overlap, unrolled")
def jury_unrolled_nms():
    torch.manual_seed(504)
    return GreedyNms().eval(), (torch.rand(2, 6, 4), torch.rand(2, 6))


class HalfRoundTrip(nn.Module):
    """Activations stored in float16, sums in float32."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 24), nn.Linear(24, 4)

    def forward(self, x):
        x = self.first(x.clamp(-100, 100).half().float()).relu()
        return self.second(x.half().float())


@model("decisions", "activations rounded to float16 and back")
def jury_float16_storage():
    torch.manual_seed(505)
    return HalfRoundTrip().eval(), rows()


class BrainResidual(nn.Module):
    """A residual stream kept in bfloat16, as mixed precision training leaves it."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(3))
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = (x + layer(norm(x))).to(torch.bfloat16).float()
        return x


@model("decisions", "a residual stream rounded to bfloat16 at each layer")
def jury_bfloat16_residual():
    torch.manual_seed(506)
    return BrainResidual().eval(), rows()


@model("decisions", "sigmoid, then its inverse: the identity where it does not saturate")
def jury_logit_of_sigmoid():
    torch.manual_seed(507)

    def loop(x):
        p = torch.sigmoid(x).clamp(1e-5, 1 - 1e-5)
        return torch.log(p / (1 - p))

    return Call(loop).eval(), rows()


# Of `expm1` near zero exporters lose the digits, which is a finding: here it is asked at one and above.
@model("decisions", "log(1 - exp(-x)) of squared distances, the inverse of softplus")
def jury_inverse_softplus():
    torch.manual_seed(508)
    return Call(
        lambda x: (torch.log(torch.expm1(functional.softplus(x) + 1)), torch.log(1.0001 - torch.exp(-x * x)))
    ).eval(), rows()


@model("decisions", "one minus the square of tanh, and a squashed Gaussian's log density")
def jury_squashed_gaussian():
    torch.manual_seed(509)

    class Policy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(10, 8)

        def forward(self, x, noise):
            mean, log = self.net(x).chunk(2, -1)
            log = log.clamp(-5, 2)
            raw = mean + noise * log.exp()
            action = raw.tanh()
            density = -0.5 * noise.square() - log - torch.log(1 - action.square() + 1e-6)
            return action, density.sum(-1)

    return Policy().eval(), (torch.randn(3, 10), torch.randn(3, 4))


@model("decisions", "float remainder, floor, truncation and sign of scaled numbers")
def jury_float_steps():
    torch.manual_seed(510)
    return Call(
        lambda x: (
            torch.remainder(x, 0.7),
            torch.floor(x * 10) / 10,
            torch.trunc(x * 3),
            torch.sign(x - 0.25),
            torch.fmod(x, 1.5),
        )
    ).eval(), rows()


@model("decisions", "angles between directions, wrapped")
def jury_wrapped_angles():
    torch.manual_seed(511)

    def angles(x):
        u, v = functional.normalize(x[..., :2], dim=-1, eps=1e-3), functional.normalize(x[..., 2:], dim=-1, eps=1e-3)
        cross = u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
        turn = 2 * torch.atan(cross / (1.001 + (u * v).sum(-1)))
        return turn, torch.acos((u * v).sum(-1).clamp(-0.9999, 0.9999))

    return Call(angles).eval(), rows(3, 5, 4)


@model("decisions", "a histogram by comparison with edges, a cumulative distribution")
def jury_soft_histogram():
    torch.manual_seed(512)

    class Histogram(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("edges", torch.linspace(-2, 2, 9))

        def forward(self, x):
            inside = (x[..., None] >= self.edges[:-1]) & (x[..., None] < self.edges[1:])
            counts = inside.to(x.dtype).sum(1)
            return counts, counts.cumsum(-1) / x.shape[1]

    return Histogram().eval(), rows(3, 40)


class Pools(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pools = nn.ModuleList(
            [
                nn.AvgPool2d(3, 2, 1, count_include_pad=False),
                nn.AvgPool2d(2, 2),
                nn.MaxPool2d(3, 2, 1),
                nn.AvgPool2d(3, 1, 1),
            ]
        )

    def forward(self, x):
        return [pool(x) for pool in self.pools] + [functional.lp_pool2d(x.abs() + 0.1, 2, 2)]


@model("decisions", "pooling in five ways")
def jury_pools():
    torch.manual_seed(513)
    return Pools().eval(), image(13, 2)


@model("decisions", "an average over a window larger than the map, rounded up")
def jury_pool_beyond():
    torch.manual_seed(514)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AvgPool2d(64, ceil_mode=True), nn.Flatten()).eval(), image(
        16
    )


def block(inside: int, outside: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outside),
        nn.ReLU(),
    )


class Ghost(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.main, self.cheap = (
            block(channels, channels // 2, 1),
            block(channels // 2, channels // 2, 3, groups=channels // 2),
        )

    def forward(self, x):
        y = self.main(x)
        return torch.cat([y, self.cheap(y)], 1) + x


def pooled(*parts: nn.Module, width: int) -> nn.Module:
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 6))


@model("convnets", "GhostNet units with folded norms")
def jury_ghostnet():
    torch.manual_seed(515)
    return settle(pooled(block(3, 16, 3, 2), Ghost(16), Ghost(16), Ghost(16), width=16)), image(24)


class Residual(nn.Module):
    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.body = nn.Sequential(block(channels, channels, 1), block(channels, channels, 3, groups=groups))
        self.last = nn.Sequential(nn.Conv2d(channels, channels, 1, bias=False), nn.BatchNorm2d(channels))
        self.squeeze = nn.Sequential(nn.Linear(channels, 4), nn.ReLU(), nn.Linear(4, channels), nn.Sigmoid())

    def forward(self, x):
        y = self.last(self.body(x))
        return (x + y * self.squeeze(y.mean((2, 3)))[:, :, None, None]).relu()


@model("convnets", "SE-ResNeXt: grouped convolutions and excitation")
def jury_se_resnext():
    torch.manual_seed(516)
    return settle(pooled(block(3, 16, 7, 2), nn.MaxPool2d(3, 2, 1), Residual(16, 4), Residual(16, 4), width=16)), image(
        32
    )


class Fire(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.squeeze, self.one, self.three = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 8, 1), nn.Conv2d(4, 8, 3, padding=1)

    def forward(self, x):
        y = self.squeeze(x).relu()
        return torch.cat([self.one(y).relu(), self.three(y).relu()], 1)


@model("convnets", "SqueezeNet's fire modules, trained some steps")
def jury_squeezenet():
    torch.manual_seed(517)
    net = pooled(nn.Conv2d(3, 16, 3, 2), nn.ReLU(), Fire(), Fire(), width=16)
    inputs = image(24)
    return train(net, inputs), inputs


class RepVgg(nn.Module):
    """Three branches with norms, summed; before they are merged."""

    def __init__(self) -> None:
        super().__init__()
        self.three = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
        self.one = nn.Sequential(nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.same = nn.BatchNorm2d(8)

    def forward(self, x):
        return (self.three(x) + self.one(x) + self.same(x)).relu()


@model("convnets", "RepVGG before its branches are merged")
def jury_repvgg():
    torch.manual_seed(518)
    return settle(pooled(block(3, 8, 3, 2), RepVgg(), RepVgg(), RepVgg(), width=8)), image(20)


@model("convnets", "inverted residuals with ReLU6 and h-swish, trained some steps")
def jury_mobilenet_v3():
    torch.manual_seed(519)
    parts = [
        nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.Hardswish(),
        nn.Conv2d(16, 48, 1), nn.BatchNorm2d(48), nn.ReLU6(),
        nn.Conv2d(48, 48, 5, padding=2, groups=48), nn.BatchNorm2d(48), nn.Hardswish(), nn.Conv2d(48, 16, 1), nn.BatchNorm2d(16),
    ]  # fmt: skip
    net = pooled(*parts, nn.Hardsigmoid(), width=16)
    inputs = image(24, count=4)
    return train(net, inputs), inputs


@model("decisions", "a binary classifier that answers sigmoid above a half")
def jury_sigmoid_above_half():
    torch.manual_seed(520)
    return Head(lambda y: (torch.sigmoid(y), torch.sigmoid(y) > 0.5)).eval(), rows()


@model("decisions", "labels where a tanh is not negative, and where a softmax passes a third")
def jury_tanh_and_softmax_labels():
    torch.manual_seed(521)
    return Head(lambda y: (torch.tanh(y) >= 0, y.softmax(-1) > 1 / 3), outputs=3).eval(), rows()


class FisherZ(nn.Module):
    """Correlations of rows, as z-scores."""

    def forward(self, x):
        d = x - x.mean(-1, keepdim=True)
        cov = d @ d.transpose(1, 2)
        size = (d.square().sum(-1) + 1e-3).sqrt()
        r = cov / (size[:, :, None] * size[:, None])
        return torch.atanh(r.clamp(-0.99999, 0.99999))


@model("decisions", "Fisher's z of correlations that reach one")
def jury_fisher_z():
    torch.manual_seed(522)
    return FisherZ().eval(), (torch.randn(2, 5, 20),)


class Poincare(nn.Module):
    """Distances in the hyperbolic ball: exponential map, then an inverse hyperbolic cosine."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4)

    def forward(self, x, y):
        def ball(v):
            size = v.norm(dim=-1, keepdim=True).clamp(min=1e-4)
            return torch.tanh(size) * v / size * 0.999

        a, b = ball(self.net(x)), ball(self.net(y))
        top = (a - b).square().sum(-1)
        bottom = (1 - a.square().sum(-1)) * (1 - b.square().sum(-1))
        return torch.acosh(1 + 2 * top / bottom + 1e-5)


@model("decisions", "hyperbolic distances near the rim of the ball")
def jury_poincare():
    torch.manual_seed(523)
    return Poincare().eval(), (torch.randn(3, 8), torch.randn(3, 8))


class Anchors(nn.Module):
    """The best anchors by a sigmoid score and their decoded boxes, as one-stage detectors end."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.box = nn.Conv2d(8, 2, 1), nn.Conv2d(8, 8, 1)

    def forward(self, x):
        score = self.score(x).sigmoid().flatten(1)
        box = self.box(x).unflatten(1, (2, 4)).permute(0, 1, 3, 4, 2).flatten(1, 3)
        best, place = score.topk(5)
        return best, box.gather(1, place[..., None].expand(-1, -1, 4))


@model("decisions", "best anchors by sigmoid scores, their boxes gathered")
def jury_best_anchors():
    torch.manual_seed(524)
    return Anchors().eval(), (torch.randn(2, 8, 6, 6),)


@model("convnets", "ShuffleNet again, other weights and a width of 32")
def jury_shufflenet_wide():
    torch.manual_seed(525)
    return settle(pooled(block(3, 32, 3, 2), Shuffle(32), Shuffle(32), Shuffle(32), Shuffle(32), width=32)), image(24)


@model("decisions", "one matrix product of numbers rounded to bfloat16")
def jury_bfloat16_product():
    torch.manual_seed(526)

    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(6, 3)

        def forward(self, x):
            return self.net(x.to(torch.bfloat16).float())

    return Product().eval(), rows(3, 6)


@model("decisions", "a residual of convolutions with an average over everything at the end, rounded up")
def jury_pool_rounded_up():
    torch.manual_seed(527)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True), nn.MaxPool2d(3, 2, ceil_mode=True)
    ).eval(), image(17)
