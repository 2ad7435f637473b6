"""Architectures of the second jury with what small models seldom have: bytes, doubles, large tables, long stacks."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

from benchmarks.faults.registry import architecture

Made = tuple[nn.Module, tuple[Tensor, ...]]


class Camera(nn.Module):
    """Bytes of a picture, centred and filtered."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406])[:, None, None])
        self.register_buffer("spread", torch.tensor([0.229, 0.224, 0.225])[:, None, None])
        self.filter = nn.Conv2d(3, 4, 3, stride=2)

    def forward(self, image: Tensor) -> Tensor:
        x = (image.float() / 255.0 - self.mean) / self.spread
        return F.relu(self.filter(x)).mean((2, 3))


@architecture()
def jury_camera() -> Made:
    torch.manual_seed(82)
    image = torch.randint(0, 256, (2, 3, 7, 7), dtype=torch.uint8)
    image[0, 0, 0, :2] = torch.tensor([0, 255], dtype=torch.uint8)
    return Camera().eval(), (image,)


class Tagger(nn.Module):
    """Both directions over a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
        self.head = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (h, _) = self.mix(x)
        return self.head(y), h[-1]


@architecture(x={0: "batch", 1: "seq"})
def jury_tagger() -> Made:
    torch.manual_seed(83)
    return Tagger().eval(), (torch.randn(2, 5, 4),)


class Spectrum(nn.Module):
    """The strength of each frequency."""

    def forward(self, wave: Tensor) -> Tensor:
        return torch.view_as_real(torch.fft.rfft(wave, norm="ortho")).square().sum(-1).sqrt()


@architecture()
def jury_spectrum() -> Made:
    torch.manual_seed(84)
    return Spectrum().eval(), (torch.randn(2, 16),)


class Clock(nn.Module):
    """Seconds in double precision to the time since an event, and its decay."""

    def forward(self, now: Tensor, event: Tensor) -> tuple[Tensor, Tensor]:
        age = (now - event).clamp(min=0.0)
        return age, torch.exp(-age / 3600.0)


@architecture(now={0: "batch"}, event={0: "batch"})
def jury_clock() -> Made:
    torch.manual_seed(85)
    now = torch.rand(4, dtype=torch.float64) * 900
    return Clock().eval(), (now, now - torch.rand(4, dtype=torch.float64) * 60)


class Catalogue(nn.Module):
    """A large table of products, and ids that fall into it by their remainder."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4000, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, product: Tensor) -> Tensor:
        return self.head(self.table(product).mean(1))


@architecture()
def jury_catalogue() -> Made:
    torch.manual_seed(86)
    return Catalogue().eval(), (torch.tensor([[0, 17, 3999], [25, 800, 1999]]),)


class Learned(nn.Module):
    """Learned places for up to 64 words, an example of six, and words that know the next."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(30, 6), nn.Embedding(64, 6)
        self.head = nn.Linear(12, 3)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        following = F.pad(x[:, 1:], (0, 0, 0, 1))
        return self.head(torch.cat([x, following], -1)).softmax(-1)


@architecture(ids={0: "batch", 1: "seq"})
def jury_learned() -> Made:
    torch.manual_seed(87)
    return Learned().eval(), (torch.tensor([[0, 29, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]),)


class Stack(nn.Module):
    """Ten blocks, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)) for _ in range(10)
        )

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + block(x)
        return x


@architecture()
def jury_stack() -> Made:
    torch.manual_seed(88)
    return Stack().eval(), (torch.randn(3, 8),)
