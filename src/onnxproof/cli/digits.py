"""The demo: a small CNN, trained on the spot on scikit-learn's handwritten digits."""

from __future__ import annotations

import torch
from torch import nn

from onnxproof.errors import UserError


class DigitsNet(nn.Module):
    """Two convolutions and a classifier for 8×8 images."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.GELU(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(32 * 4, 10))

    def forward(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.classifier(self.features(image))
        return {"logits": logits, "digit": logits.argmax(dim=-1)}


def load_digits() -> tuple[torch.Tensor, torch.Tensor]:
    """All images (N×1×8×8, 0 to 1) and labels."""
    try:
        from sklearn.datasets import load_digits as load
    except ImportError:
        raise UserError("the demo needs scikit-learn: pip install 'onnxproof[demo]'") from None
    digits = load()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    return images, torch.tensor(digits.target)


def load_seen() -> dict[str, torch.Tensor]:
    """What the net is trained on."""
    return _take_rows(test=False)


def load_unseen() -> dict[str, torch.Tensor]:
    """What it is tested on."""
    return _take_rows(test=True)


def _take_rows(*, test: bool) -> dict[str, torch.Tensor]:
    """A fifth of the images to test on, or the others: always the same."""
    images, labels = load_digits()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    fifth = len(order) // 5
    rows = order[:fifth] if test else order[fifth:]
    return {"image": images[rows], "labels": labels[rows], "id": rows}


def train(epochs: int = 8) -> DigitsNet:
    """A trained net: a few seconds on two cores."""
    torch.manual_seed(0)
    data = load_seen()
    images, labels = data["image"], data["labels"]
    net = DigitsNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[rows])["logits"], labels[rows]).backward()
            optimizer.step()
    return net.eval()


def digits() -> tuple[DigitsNet, tuple[torch.Tensor]]:
    """TARGET of `onnxproof demo`."""
    images, _ = load_digits()
    return train(), (images[:4],)
