"""A subject whose file is written by hand: no export, and as wrong as a test wants it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import torch

from onnxproof.artifact.file import read_artifact
from onnxproof.proof.artifact import Artifact
from onnxproof.request.build import build_request
from onnxproof.request.request import Request


class Twice(torch.nn.Module):
    """Two scores of two features."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


RIGHT = "y = Mul(x, two)"
WRONG_ABOVE_THREE = "three = Constant<value = float {3}>() z = Mul(x, two) l = Min(x, three) y = Add(l, x)"
UNKNOWN_OPERATOR = "y = NoSuchOperator(x, two)"


def twice(**options: Any) -> Request:
    return replace(build_request("prove", options), held=(Twice().eval(), (torch.tensor([[1.0, -1.0], [2.0, 0.5]]),)))


def written(folder: Path, body: str = RIGHT) -> Path:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[batch, 2] x) => (float[batch, 2] y) <float two = {{2}}> {{ {body} }}'
    path = folder / "twice.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def artifact_of(folder: Path, body: str = RIGHT) -> Artifact:
    return read_artifact(written(folder, body))


class Told(list[Any]):
    """Everything that was emitted; it is the `emit` itself."""

    def __call__(self, event: Any) -> None:
        self.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self if isinstance(event, kind)]
