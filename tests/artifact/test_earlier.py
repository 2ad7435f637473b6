"""An export is made once, and anew when anything that made it has changed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from onnxproof.artifact.earlier import export_once
from onnxproof.request.request import ExportOptions
from onnxproof.subject.assembly import make_subject

CODE = """
import torch

class Scaled(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x) * self.config["scale"]{more}
"""


@pytest.fixture
def load(tmp_path):
    """A subject whose code stands in a file of its own, so that it can be edited."""

    def loaded(more="", scale=2.0):
        file = tmp_path / "scaled.py"
        file.write_text(CODE.format(more=more))
        spec = importlib.util.spec_from_file_location("scaled", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules["scaled"] = module
        spec.loader.exec_module(module)
        torch.manual_seed(0)
        return make_subject(module.Scaled({"scale": scale}).eval(), (torch.ones(2, 4),))

    yield loaded
    sys.modules.pop("scaled", None)


def exported(subject, folder, weights="w", options=None):
    """When the file was written, after an export."""
    path = Path(folder) / "model.onnx"
    export_once(subject, path, options or ExportOptions(), weights, lambda finding: None)
    return path.stat().st_mtime_ns


def test_an_unchanged_module_is_exported_once_with_its_findings(load, tmp_path):
    told: list[list[str]] = []
    for _ in range(2):
        told.append([])
        subject = make_subject(load().module, (torch.ones(2, 4),), dynamic={"x": {0: "batch", 1: "width"}})
        export_once(subject, tmp_path / "m.onnx", ExportOptions(), "w", lambda finding: told[-1].append(finding.code))
    assert told[0] == told[1] != []
    assert exported(load(), tmp_path) == exported(load(), tmp_path)


@pytest.mark.parametrize(
    "changed",
    [{"more": " + 1"}, {"scale": 3.0}, {"weights": "other"}, {"options": ExportOptions(opset=18)}],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_made_it_makes_it_anew(load, tmp_path, changed):
    before = exported(load(), tmp_path)
    of_subject = {key: value for key, value in changed.items() if key in ("more", "scale")}
    of_export = {key: value for key, value in changed.items() if key not in of_subject}
    assert exported(load(**of_subject), tmp_path, **of_export) != before


def test_a_file_that_was_touched_is_written_anew(load, tmp_path):
    before = exported(load(), tmp_path)
    with (tmp_path / "model.onnx").open("ab") as file:
        file.write(b"\0")
    assert exported(load(), tmp_path) != before


def test_code_that_nobody_can_see_is_always_exported(load, tmp_path):
    subject = load()
    del sys.modules["scaled"].__file__
    assert exported(subject, tmp_path) != exported(subject, tmp_path)
    assert not (tmp_path / "model.export.json").exists()
