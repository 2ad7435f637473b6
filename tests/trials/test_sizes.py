"""Pieces at other sizes than the example's: what depends on sizes shows there, on values that a forward does not bring."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import onnxproof
from onnxproof.policy.trials import judge_trials
from onnxproof.proof.trials import Latent, Trials
from onnxproof.report.wording import tell_trials
from onnxproof.trials.sizes import list_others
from trials.small import capped, export


def follow_batch(model: onnx.ModelProto) -> None:
    """The cap is 6 for three rows, and half of one less or more for another."""
    cap = next(node for node in model.graph.node if node.op_type in ("Clip", "Min"))
    numbers = {"per_row": 0.5, "none": 4.5}
    model.graph.initializer.extend(helper.make_tensor(n, TensorProto.FLOAT, [], [v]) for n, v in numbers.items())
    nodes = [
        helper.make_node("Shape", [model.graph.input[0].name], ["sizes"], "sizes"),
        helper.make_node("Gather", ["sizes", "first"], ["rows"], "rows"),
        helper.make_node("Cast", ["rows"], ["many"], "many", to=TensorProto.FLOAT),
        helper.make_node("Mul", ["many", "per_row"], ["scaled"], "scaled"),
        helper.make_node("Add", ["scaled", "none"], ["cap"], "limit"),
    ]
    model.graph.initializer.append(helper.make_tensor("first", TensorProto.INT64, [], [0]))
    for place, node in enumerate(nodes):
        model.graph.node.insert(place, node)
    cap.input[len(cap.input) - 1] = "cap"


def test_a_limit_that_follows_the_batch_is_found_where_the_batch_is_another(tmp_path):
    """At three rows, where edges are tried, it is the module's; no case gets as far as either."""
    onnx_file = export(tmp_path / "file", follow_batch)
    proof = onnxproof.verify(*capped(), onnx=onnx_file, out=tmp_path / "out", fast=True)
    assert proof.verdict != "ship"
    assert proof.trials is not None
    assert all(one.sizes for one in proof.trials.latent)
    assert (proof.trials.latent[0].op, proof.trials.latent[0].sizes) in (("Clip", {"batch": 1}), ("Min", {"batch": 1}))


def test_what_is_remembered_of_a_model_says_what_was_tried(tmp_path):
    onnx_file, told = export(tmp_path / "file"), []
    for run in ("first", "second"):
        proof = onnxproof.verify(*capped(), onnx=onnx_file, out=tmp_path / run)
        assert proof.trials is not None
        assert "at batch=1, batch=2 too" in tell_trials(proof.trials)
        told.append(proof.trials)
    assert told[0] == told[1]


def test_sizes_are_others_than_the_recorded_ones_and_served():
    recorded = {"batch": 3, "tokens": 8}
    assert list_others(recorded, "batch", {}) == [{"batch": 1, "tokens": 1}, {"batch": 2, "tokens": 9}]
    assert list_others(recorded, "batch", {}, [2, 3]) == [{"batch": 2, "tokens": 9}]
    assert list_others(recorded, "batch", {}, empty=True)[-1] == {"batch": 0, "tokens": 8}
    assert list_others(recorded, "batch", {"tokens": (4, 16)}) == [{"batch": 2, "tokens": 9}]
    assert list_others({}, "batch", {}, empty=True) == []
    assert list_others({"batch": 1}, "batch", {}) == [{"batch": 2}]


@pytest.mark.parametrize(("rows", "severity"), [(1, "review"), (0, "note")])
def test_a_difference_says_its_sizes_and_of_no_rows_does_not_gate(rows, severity):
    latent = Latent("n", "n", "Min", "y", "mixed", True, 1.0, 2.0, sizes={"batch": rows})
    [finding] = judge_trials(Trials(1, 1, 1, latent=(latent,)))
    assert finding.severity == severity
    assert f"at batch={rows}" in finding.message
