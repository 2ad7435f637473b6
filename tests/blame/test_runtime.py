"""The runtime's steps on a graph of three nodes: which part of it is to blame follows from what it answers to other settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from fake import FakeCandidate
from onnxproof.blame.provenance import Provenance
from onnxproof.blame.runtime import Runtime
from onnxproof.blame.store import Layered
from onnxproof.candidates.candidate import Abilities
from onnxproof.graph.view import Graph
from onnxproof.request.session import SessionSettings
from onnxproof.subject.assembly import make_subject

TEXT = '<ir_version: 10, opset_import: ["" : 20]> g (float[N] x) => (float[N] y) { a = Neg(x) b = Exp(a) y = Log(b) }'
X = np.array([0.5, -2.0, 1.0], np.float32)
TRUTH = Layered({"x": X.astype(float), "a": -X.astype(float), "b": np.exp(-X.astype(float)), "y": -X.astype(float)})
BLIND, SEEING = Abilities(), Abilities(rewrites=True, inner_values=True)


def runtime(answer, abilities=BLIND, text=TEXT) -> Runtime:
    graph = Graph(onnx.parser.parse_model(text))
    provenance = Provenance(make_subject(torch.nn.ReLU(), (torch.ones(2),)), graph, None, {})
    candidate = FakeCandidate(answer, ("y",), abilities)
    return Runtime(Path("none.onnx"), provenance, candidate, SessionSettings(), {"x": "features"}, 1 << 20, None)


def answering(wrong):
    """−x, and half of it too much under some settings; inner values are right up to b."""

    def answer(inputs, settings):
        x = inputs["x"]
        return {"a": -x, "b": np.exp(-x), "y": -x + np.float32(0.5 if wrong(settings) else 0)}

    return answer


def test_what_is_given_under_the_modules_names_is_taken_under_the_graphs():
    one = runtime(answering(lambda settings: False))
    assert list(one.own(one.provenance.graph, {"features": X})) == ["x"]


def test_a_runtime_that_is_right_has_no_stage():
    assert runtime(answering(lambda settings: False)).blame({"features": X}, TRUTH).stage is None


def test_a_fault_that_one_rewrite_makes_is_that_rewrites():
    def fused(settings):
        return settings.optimization != "disable" and "MatMulAddFusion" not in settings.disabled_optimizers

    blame = runtime(answering(fused), Abilities(rewrites=True)).blame({"features": X}, TRUTH)
    assert (blame.stage, blame.rewrite, blame.unseen, blame.vanishes) == ("optimize", "MatMulAddFusion", True, False)


def test_a_kernel_is_found_by_the_values_inside():
    blame = runtime(answering(lambda settings: True), SEEING).blame({"features": X}, TRUTH)
    assert blame.stage == "kernel"
    assert [(culprit.op, culprit.value) for culprit in blame.culprits] == [("Log", "y")]
    assert [step.op for step in blame.path][-1] == "Log"
    assert not blame.unseen


def test_a_graph_that_loses_it_in_float32_by_itself_is_wrongly_written():
    """Halves are lost where 1e8 is added, though each operation rounds as it should."""
    text = """<ir_version: 10, opset_import: ["" : 20]> g (float[N] x) => (float[N] y)
    { big = Constant<value = float {1e8}>() a = Add(x, big) y = Sub(a, big) }"""
    truth = Layered({"x": X.astype(float), "big": np.float64(1e8), "a": X + 1e8, "y": X.astype(float)})

    def answer(inputs, settings):
        a = inputs["x"] + np.float32(1e8)
        return {"a": a, "big": np.float32(1e8), "y": a - np.float32(1e8)}

    assert runtime(answer, SEEING, text=text).blame({"features": X}, truth).stage == "translate"
    exact = runtime(answering(lambda settings: True), SEEING)
    assert exact.blame({"features": X}, TRUTH).stage == "kernel"  # evaluated by IEEE's rules this graph is right


@pytest.mark.parametrize(("x", "born"), [([200.0], "Log"), ([-200.0], "Exp"), ([1.0], None), ([np.nan], None)])
def test_the_first_nan_or_infinity_is_born_in_a_node_unless_it_was_fed(x, born):
    births = runtime(answering(lambda settings: False)).births({"features": np.array(x, np.float32)})
    assert [birth.op for birth in births] == ([born] if born else [])


def test_a_session_that_refuses_to_show_its_inside_costs_only_the_nodes():
    one = runtime(answering(lambda settings: True), Abilities(inner_values=True))

    def refuses(inputs, settings):
        raise MemoryError("64 GB")

    closed = replace(one, candidate=replace(one.candidate, function=refuses))
    assert closed._watch(SessionSettings(), {"features": X}, TRUTH).errors == {}
