"""Runs of pytest inside pytest, with the plugin as an installation would load it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).parents[1] / "src"

MODELS = """
import torch
from torch import nn

class Epsilon(nn.Module):
    def forward(self, x):
        return x / (x.norm(dim=-1, keepdim=True) + 1e-8), x * 2, torch.log(x.abs() + 1e-8)

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5)), (torch.randn(2, 6),)

def good():
    return net()[0].eval(), net()[1]

def training():
    return net()

def bad():
    return Epsilon().eval(), (torch.randn(2, 5),)
"""


def installed() -> bool:
    """Whether an installation of this very tree registers the plugin."""
    points = importlib.metadata.entry_points(group="pytest11")
    return any(point.value == "_onnxproof_pytest" for point in points)


def arguments_of(given: tuple[str, ...]) -> list[str]:
    loaded = [] if installed() else ["-p", "_onnxproof_pytest"]
    return [*loaded, "-p", "no:cacheprovider", "-p", "no:xdist", "--strict-markers", *given]


@pytest.fixture(scope="session")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models' file, exported once."""
    import onnxproof

    names: dict[str, Any] = {}
    exec(MODELS, names)
    out = tmp_path_factory.mktemp("plugin")
    onnxproof.export(*names["good"](), out=out)
    return out / "model.onnx"


@pytest.fixture
def suite(pytester: pytest.Pytester, artifact: Path):
    """Run a test file in this process, where torch is loaded already; `good.onnx` is there."""
    pytester.makepyfile(net=MODELS)
    shutil.copy(artifact, pytester.path / "good.onnx")

    def run(code: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=code)
        return pytester.runpytest_inprocess(*arguments_of(arguments))

    return run


@pytest.fixture
def apart(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run a test file in a process of its own."""
    monkeypatch.setenv("PYTHONPATH", str(SOURCES), prepend=os.pathsep)

    def run(code: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=code)
        return pytester.run(sys.executable, "-m", "pytest", *arguments_of(arguments))

    return run
