"""Fraud-like data, 99 to 1: a model that is 99 % accurate and misses most of what it is for.

    onnxproof evaluate examples/fraud.py:model --data examples/fraud.py:test --classes ok,fraud
    onnxproof evaluate examples/fraud.py:model --data examples/fraud.py:test --classes ok,fraud --goal "recall>=0.8" --cost fn=100,fp=1

The first is a BLOCK for recall, whatever the parity; the second names the thresholds.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import make_classification
from torch import nn

FEATURES = 20


def load() -> tuple[np.ndarray, np.ndarray]:
    """All transactions and whether they are fraud: always the same."""
    x, y = make_classification(
        n_samples=20_000,
        n_features=FEATURES,
        n_informative=8,
        n_clusters_per_class=2,
        weights=[0.99],
        class_sep=0.55,
        flip_y=0.0,
        random_state=7,
    )
    return x.astype(np.float32), y


def train() -> dict[str, np.ndarray]:
    """The first half."""
    x, y = load()
    return {"transaction": x[:10_000], "labels": y[:10_000]}


def test() -> dict[str, np.ndarray]:
    """The second half."""
    x, y = load()
    return {"transaction": x[10_000:], "labels": y[10_000:]}


class Detector(nn.Module):
    """A linear model: one logit."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(FEATURES, 1)

    def forward(self, transaction: torch.Tensor) -> torch.Tensor:
        return self.score(transaction)[:, 0]


def model() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """A detector trained without a thought about the imbalance."""
    torch.manual_seed(0)
    data = train()
    x, y = torch.from_numpy(data["transaction"]), torch.from_numpy(data["labels"]).float()
    net = Detector()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(net(x), y).backward()
        optimizer.step()
    return net.eval(), (x[:4],)
