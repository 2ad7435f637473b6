"""The worker's first part: what is said of module and file, in which order, and what gates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from onnxproof.pipeline import events
from onnxproof.pipeline.exporting import run_export, run_lint
from onnxproof.pipeline.workshop import Workshop
from onnxproof.request.build import build_request
from onnxproof.request.specs import parse_input
from pipeline.small import Told, twice, written


def test_a_given_file_is_read_and_not_exported(tmp_path):
    told = Told()
    run_export(told, twice(onnx=str(written(tmp_path)), out=str(tmp_path)), shop=Workshop())
    assert [event.stage for event in told.of(events.Entered)] == ["import", "examine"]
    (exported,) = told.of(events.Exported)
    assert (exported.artifact.path, exported.artifact.sourcemap) == (str(tmp_path / "twice.onnx"), None)
    assert told[-1] is exported


def test_the_source_map_beside_a_file_is_taken_up(tmp_path):
    path = written(tmp_path)
    path.with_suffix(".sourcemap.json").write_text("{}")
    told = Told()
    run_export(told, twice(onnx=str(path), out=str(tmp_path)), shop=Workshop())
    assert told.of(events.Exported)[0].artifact.sourcemap == str(tmp_path / "twice.sourcemap.json")


@pytest.mark.parametrize(("value", "severity"), [(np.nan, "review"), (np.inf, "note")], ids=["nan", "infinite"])
def test_of_notes_about_a_file_only_weights_that_are_nan_gate(value, severity, tmp_path):
    path = written(tmp_path)
    model = onnx.load(path)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([[1, 2], [value, 3]], np.float32), "two"))
    onnx.save(model, path)
    told = Told()
    run_export(told, twice(onnx=str(path), out=str(tmp_path)), shop=Workshop())
    found = [event.finding for event in told.of(events.Observed) if event.finding.code == "OX320"]
    assert [finding.severity for finding in found] == [severity]


def test_where_the_exporter_killed_its_process_the_other_one_is_used_and_told(tmp_path):
    told = Told()
    run_export(told, twice(out=str(tmp_path)), killed_by="SIGSEGV", shop=Workshop())
    assert told.of(events.Exported)[0].artifact.exporter == "torchscript"
    told_so = [event.finding for event in told.of(events.Observed) if event.finding.code == "OX107"]
    assert [finding.evidence for finding in told_so] == [{"signal": "SIGSEGV"}]


def test_a_file_that_is_no_model_ends_with_a_finding_and_no_artifact(tmp_path):
    (tmp_path / "no.onnx").write_bytes(b"no model")
    told = Told()
    run_export(told, twice(onnx=str(tmp_path / "no.onnx"), out=str(tmp_path)), shop=Workshop())
    assert told.of(events.Exported) == []
    assert [event.finding.severity for event in told.of(events.Observed)][-1] == "block"


def test_a_lint_looks_at_the_module_and_makes_nothing(tmp_path):
    module = torch.nn.Dropout()  # in train mode
    told = Told()
    run_lint(
        told, replace(build_request("lint", {}), held=(module, (torch.ones(2, 3),)), out=str(tmp_path)), shop=Workshop()
    )
    assert "OX102" in {event.finding.code for event in told.of(events.Observed)}
    assert told.of(events.Exported) == []
    assert list(tmp_path.iterdir()) == []


def test_ox151_a_large_input_of_the_file_alone_is_told_by_its_form(tmp_path):
    """Thousands of values say nothing in a line."""
    path = written(tmp_path)
    model = onnx.load(path)
    for name, shape in (("sr", []), ("table", [40, 50])):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    onnx.save(model, path)
    inputs = tuple(parse_input(text) for text in ("sr=0.5", "table:40x50"))
    told = Told()
    run_export(told, replace(twice(onnx=str(path), out=str(tmp_path)), inputs=inputs), shop=Workshop())
    (said,) = [event.finding.message for event in told.of(events.Observed) if event.finding.code == "OX151"]
    assert said == "sr = 0.5, table (40x50, float32) goes to the file alone, which asks for it"
