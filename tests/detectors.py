"""Detectors and maps for the tests: models whose answers are sets of boxes, masks and tags."""

from __future__ import annotations

import torch
from torch import nn


class Anchors(nn.Module):
    """A box with a score for each class at every place of a grid."""

    def __init__(self, classes=3):
        super().__init__()
        torch.manual_seed(1)
        self.features = nn.Sequential(nn.Conv2d(3, 16, 4, stride=4), nn.Tanh(), nn.Conv2d(16, 4 + classes, 1))
        grid = torch.stack(torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="xy"), -1).reshape(-1, 2)
        self.register_buffer("centres", grid * 4 + 2)

    def forward(self, image):
        raw = self.features(image).flatten(2).transpose(1, 2)
        centre, size = self.centres + raw[..., :2], 3 + raw[..., 2:4].exp()
        return torch.cat([centre - size / 2, centre + size / 2], -1), (4 * raw[..., 4:]).sigmoid()


class Thresholded(nn.Module):
    """The boxes of one image whose score is above a threshold, the best first."""

    def __init__(self, threshold=0.6):
        super().__init__()
        self.anchors, self.threshold = Anchors(), threshold

    def forward(self, image):
        boxes, every = (part[0] for part in self.anchors(image))
        scores, labels = every.max(-1)
        order = scores.argsort(descending=True)
        order = order[scores[order] > self.threshold]
        return {"boxes": boxes[order], "scores": scores[order], "labels": labels[order]}


class Best(nn.Module):
    """The ten best boxes of each image of a batch."""

    def __init__(self):
        super().__init__()
        self.anchors = Anchors()

    def forward(self, image):
        boxes, every = self.anchors(image)
        scores, labels = every.max(-1)
        scores, order = scores.topk(10, -1)
        return {
            "boxes": boxes.gather(1, order[..., None].expand(-1, -1, 4)),
            "scores": scores,
            "labels": labels.gather(1, order),
        }


def thresholded():
    torch.manual_seed(0)
    return Thresholded().eval(), (torch.randn(1, 3, 32, 32),)


def best():
    torch.manual_seed(0)
    return Best().eval(), (torch.randn(2, 3, 32, 32),)


class Masks(nn.Module):
    """Logits of four classes for each place of a map, a quarter of the image's size."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.GELU(), nn.Conv2d(8, 4, 3, padding=1, stride=2)
        )

    def forward(self, image):
        return {"logits": self.net(image)}


class Tags(nn.Module):
    """Logits of five tags for each token."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.embedding, self.mix, self.head = nn.Embedding(50, 16), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 5)

    def forward(self, ids):
        return self.head(self.mix(self.embedding(ids))[0])


class Embedder(nn.Module):
    """A vector for each row."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.net = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 8))

    def forward(self, x):
        return {"embedding": nn.functional.normalize(self.net(x), dim=-1)}


def masks():
    return Masks().eval(), (torch.randn(2, 3, 32, 32),)


def tags():
    return Tags().eval(), (torch.randint(0, 50, (2, 9)),)


def embedder():
    return Embedder().eval(), (torch.randn(4, 12),)
