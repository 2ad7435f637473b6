"""The guide looks into a candidate that shows something, and into the module in any case."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake import FakeCandidate
from onnxproof.candidates.candidate import Abilities
from onnxproof.candidates.onnxruntime import Onnxruntime
from onnxproof.graph.view import Graph
from onnxproof.request.session import SessionSettings
from onnxproof.search.guide import Guide
from seam import Mlp


@pytest.mark.parametrize(
    ("fake", "graph"),
    [
        (None, True),
        (FakeCandidate(lambda inputs, settings: {}), False),
        (FakeCandidate(lambda inputs, settings: {}, abilities=Abilities(inner_values=True), available=()), False),
    ],
    ids=["onnxruntime", "shows nothing", "opens nothing"],
)
def test_the_graphs_decisions_are_watched_where_the_candidate_shows_them(exported, fake, graph):
    mlp = Mlp(exported("mlp"))
    view = Graph.read(Path(mlp.artifact.path))
    renamed = {"input": next(iter(mlp.subject.inputs.tensors))}
    guide = Guide(mlp.subject, view, fake or Onnxruntime(), SessionSettings(), renamed, mlp.example())
    goals = guide.observe(mlp.example())
    assert any(goal.startswith("graph Relu") for goal in goals) == graph
    assert any(not goal.startswith("graph ") for goal in goals)
    if fake is not None:
        assert fake.opened == []
