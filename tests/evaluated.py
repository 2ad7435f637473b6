"""Models and data for the tests of evaluate: TARGETs, data sources, metrics, preprocessing."""

from __future__ import annotations

import os
import signal

import numpy as np
import torch
from torch import nn

FEATURES = 12


def blobs(n=1500, seed=1):
    """Three classes of points that overlap a little."""
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(0, 1.1, (3, FEATURES))
    labels = generator.integers(0, 3, n)
    return (centres[labels] + generator.normal(size=(n, FEATURES))).astype(np.float32), labels


def fitted(columns=3):
    x, y = blobs(3000, seed=0)
    torch.manual_seed(0)
    net = nn.Linear(FEATURES, columns)
    target = torch.tensor(y if columns > 1 else (y == 0).astype(np.int64))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        scores = net(torch.tensor(x))
        loss = (
            nn.functional.cross_entropy(scores, target)
            if columns > 1
            else nn.functional.binary_cross_entropy_with_logits(scores[:, 0], target.float())
        )
        loss.backward()
        optimizer.step()
    return net.eval()


class Wide(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)


def points():
    return Wide(fitted()), (torch.randn(4, FEATURES),)


def yes_or_no():
    return Wide(fitted(1)), (torch.randn(4, FEATURES),)


class Sums(nn.Module):
    """A sum of thousands of numbers: its sign is rounding where it should be zero."""

    def forward(self, x):
        return x.sum(dim=-1)


def sums():
    return Sums(), (torch.randn(2, 4000),)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, image):
        return self.head(self.conv(image).mean(dim=(2, 3)))


def images():
    return Images().eval(), (torch.rand(2, 3, 8, 8),)


class Numbers(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        return self.fc(x)


def numbers():
    return Numbers().eval(), (torch.randn(4, 3),)


class Mortal(nn.Module):
    """Kills its process at a certain value, the first time or always."""

    def __init__(self, marker=None):
        super().__init__()
        self.fc = fitted()
        self.marker = marker

    def forward(self, x):
        if not torch.onnx.is_in_onnx_export() and not torch.compiler.is_compiling() and float(x.max()) > 1e6:
            marker = os.environ.get("MORTAL_MARKER")
            if marker is None or not os.path.exists(marker):
                if marker is not None:
                    open(marker, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
        return self.fc(x.clamp(-100, 100))


def mortal():
    return Mortal().eval(), (torch.randn(4, FEATURES),)


def share_right(labels, scores):
    return float((scores.argmax(axis=1) == labels).mean())


def fails(labels, scores):
    raise ValueError("I do not like them")


# --- preprocessing ----------------------------------------------------------------------------------------------------

MEAN = np.linspace(-1, 1, FEATURES).astype(np.float32)


def centre(record):
    return record - MEAN


def halve(record):
    return record / 2


def shifted(record):
    return record - MEAN - np.eye(FEATURES, dtype=np.float32)[3] * 4


training = [centre, halve]
serving = [shifted, halve]
same = [lambda record: (record.astype(np.float64) - MEAN).astype(np.float32), halve]


class Halve(nn.Module):
    def forward(self, raw):
        return raw / 2


halves = Halve()
