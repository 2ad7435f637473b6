"""Both sides on rows of data: the candidate is whatever stands behind the seam."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from conftest import target
from fake import FakeCandidate
from onnxproof.errors import FindingError, Rejected
from onnxproof.pipeline.conduct import conduct
from onnxproof.quality.engine import Engine
from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.request import Request, Steps, VerifySettings
from onnxproof.request.session import SessionSettings
from onnxproof.request.thresholds import Policy
from seam import Mlp


@pytest.fixture
def mlp(exported):
    return Mlp(exported("mlp"))


def engine_of(mlp: Mlp, candidate: FakeCandidate) -> Engine:
    return Engine(mlp.subject, mlp.artifact, SessionSettings(), EvaluateSettings("unread"), candidate=candidate)


def test_the_candidate_answers_under_the_graphs_names(mlp):
    engine = engine_of(mlp, FakeCandidate(mlp.wrong_where(lambda settings: True)))
    apart = engine.candidate(mlp.example())["output"] - engine.baseline(mlp.example())["output"]
    np.testing.assert_allclose(apart, 0.5, rtol=1e-5)


def test_rows_that_the_candidate_refuses_are_a_finding(mlp):
    def refuses(inputs, settings):
        raise Rejected("no such row")

    with pytest.raises(FindingError, match="refuses rows of the data: no such row") as error:
        engine_of(mlp, FakeCandidate(refuses)).candidate(mlp.example())
    assert error.value.finding.code == "OX501"


def test_another_interpreter_is_evaluated(mlp, exported, tmp_path):
    torch.manual_seed(0)
    rows = torch.randn(64, 20)
    labels = mlp.module(rows).argmax(1)
    np.savez(tmp_path / "rows.npz", X=rows.numpy(), labels=labels.numpy())
    session = SessionSettings(runtime=f"python:{sys.executable}")
    request = Request(
        target=target("mlp"),
        onnx=str(exported("mlp")),
        out=str(tmp_path / "out"),
        verify=VerifySettings(session=session),
        steps=Steps(cases=False),
        evaluate=EvaluateSettings(str(tmp_path / "rows.npz")),
        in_process=True,
    )
    proof = conduct(request, Policy())
    assert proof.quality is not None, proof.findings
    assert proof.quality.n == 64
    assert proof.quality.candidate["accuracy"] == 1.0
    assert str(proof.environment.runtime).startswith(session.runtime)
