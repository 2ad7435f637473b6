"""What verification costs beyond the bare forwards of the same cases (float32, float64, onnxruntime), in one run.

    python -m benchmarks.overhead

The forwards are timed alone, on the same inputs and in the same process, right after the verification of the same model;
each side is repeated and the smallest time counts, since the machine is noisy.
"""

from __future__ import annotations

import copy
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from onnxproof.artifact.export import export
from onnxproof.cases.plan import Case
from onnxproof.parity.verification import verify
from onnxproof.parity.verifier import Verifier
from onnxproof.pipeline.locating import SILENT
from onnxproof.request.request import ExportOptions, VerifySettings
from onnxproof.subject.assembly import make_subject
from onnxproof.subject.subject import Subject
from onnxproof.tensors.conversion import to_torch

REPEATS = 3


class Transformer(nn.Module):
    """A small encoder with a vocabulary."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(192, 6, 768, batch_first=True)
        self.embed = nn.Embedding(2000, 192)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(192, 100)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embed(ids)))  # type: ignore[no-any-return]  # modules return Any


def transformer() -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    return Transformer().eval(), (torch.randint(0, 2000, (4, 64)),)


def cnn() -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    channels = 3
    for width in (32, 64, 128):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)).eval()
    return net, (torch.randn(4, 3, 64, 64),)


def bare_forwards(verifier: Verifier, subject: Subject, cases: list[Case]) -> float:
    """The three forwards of every case, and nothing else."""
    double = copy.deepcopy(subject.module).double()
    inputs = [verifier.supply.make_inputs(case) for case in cases]
    names = list(subject.inputs.tensors)
    narrow = [[to_torch(case[name]) for name in names] for case in inputs]
    wide = [[t.double() if t.is_floating_point() else t for t in leaves] for leaves in narrow]
    calls = [verifier.session.prepare(case).run for case in inputs]
    began = time.perf_counter()
    with torch.inference_mode():
        for leaves, doubled, call in zip(narrow, wide, calls, strict=True):
            subject.call(leaves)
            subject.call(doubled, double)
            call()
    return time.perf_counter() - began


def measure(make: Callable[[], tuple[nn.Module, Any]]) -> dict[str, float]:
    """Both times of one model."""
    module, inputs = make()
    subject = make_subject(module, inputs)
    with tempfile.TemporaryDirectory() as folder:
        artifact = export(subject, Path(folder) / "model.onnx", ExportOptions(), lambda finding: None)
        ours, bare = [], []
        for _ in range(REPEATS):
            began = time.perf_counter()
            verifier = Verifier(subject, artifact, VerifySettings(), SILENT)
            verify(verifier, SILENT)
            ours.append(time.perf_counter() - began)
            plan = verifier.plan()
            bare.append(bare_forwards(verifier, subject, plan))
    return {"cases": len(plan), "verify_s": min(ours), "forwards_s": min(bare), "ratio": min(ours) / min(bare)}


def main() -> None:
    """Print the ratios and keep them."""
    results = {make.__name__: measure(make) for make in (cnn, transformer)}
    for name, result in results.items():
        print(
            f"{name:<12} verify {result['verify_s']:.2f} s, forwards {result['forwards_s']:.2f} s, ratio {result['ratio']:.2f}"
        )
    path = Path(__file__).parent / "overhead.json"
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
