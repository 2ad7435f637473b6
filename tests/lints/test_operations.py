"""Operations that are known to part: noted where the module uses one in that way, with these versions and this exporter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from benchmarks.atlas.differences import pick_for_lint
from torch import nn

from onnxproof.lints import operations
from onnxproof.lints.operations import ATLAS, lint_operations, read_manner
from onnxproof.subject.assembly import make_subject

DOCS = Path(__file__).parents[2] / "docs"


class Adds(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logaddexp(x, -x)


class Sums(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(torch.stack([x, -x]), 0)


def lint(module: nn.Module, x: torch.Tensor, exporter: str = "dynamo"):
    return list(lint_operations(make_subject(module.eval(), (x,)), exporter))


def test_ox148_an_operation_that_parts_is_noted_where_it_is_used():
    (finding,) = lint(nn.Sequential(nn.Linear(4, 4), Adds()), torch.randn(2, 4))
    assert (finding.code, finding.severity) == ("OX148", "note")
    assert "aten.logaddexp" in finding.message
    assert "inf where PyTorch gives" in finding.message
    assert finding.where.module == "1"
    assert finding.where.file == __file__
    assert finding.where.line == 22


def test_ox148_near_miss_the_same_in_a_stable_form():
    assert lint(nn.Sequential(nn.Linear(4, 4), Sums()), torch.randn(2, 4)) == []


@pytest.fixture
def known(monkeypatch):
    """What was measured, to be changed by a test."""
    atlas = json.loads(ATLAS.read_text())
    monkeypatch.setattr(operations, "_load_atlas", lambda: atlas)
    return atlas


def test_a_dtype_in_which_it_was_not_seen_to_part_is_not_noted(known):
    assert len(lint(Adds(), torch.randn(2, 4))) == 1
    for entry in known["differences"]:
        entry["dtypes"] = ["float16"]
    assert lint(Adds(), torch.randn(2, 4)) == []


def test_other_versions_are_not_judged_by_these(known):
    known["onnxruntime"] = "1.0.0"
    assert lint(Adds(), torch.randn(2, 4)) == []


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2), nn.Softmax(-1)),
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.SiLU(), nn.MaxPool2d(2), nn.AvgPool2d(2)),
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
    ],
)
def test_usual_models_are_left_alone(module):
    x = torch.randn(2, 3, 12, 12) if isinstance(module, nn.Sequential) and isinstance(module[0], nn.Conv2d) else None
    wide = torch.randn(2, 5, 8) if isinstance(module, nn.TransformerEncoderLayer) else torch.randn(2, 4)
    assert lint(module, wide if x is None else x) == []


class Chooses(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


def test_what_cannot_be_watched_runs_as_before():
    subject = make_subject(Chooses().eval(), (torch.ones(2, 4),))
    assert list(lint_operations(subject, "dynamo")) == []
    assert torch.equal(subject.call(subject.copies()), torch.full((2, 4), 2.0))


@pytest.mark.parametrize(
    ("call", "manner"),
    [
        (lambda x: torch.addmm(x, x, x), ""),
        (lambda x: torch.addmm(x, x, x, beta=0.5), "beta is not 1"),
        (lambda x: torch.addmm(x, x[:, :0], x[:0]), "empty"),
    ],
)
def test_the_manner_is_what_takes_another_way(call, manner):
    seen = []

    class See(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), read_manner(func, args, kwargs or {})))
            return func(*args, **(kwargs or {}))

    with See():
        call(torch.ones(3, 3))
    assert ("aten.addmm.default", manner) in seen


def test_what_is_packaged_is_what_was_measured():
    """After `make atlas` both are written."""
    assert json.loads(ATLAS.read_text()) == pick_for_lint(json.loads((DOCS / "atlas.json").read_text()))
