"""A runtime whose kernel is wrong where no case comes: the meaning of the graph is right, and still it is told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import onnxproof
from onnxproof.candidates.onnxruntime import Onnxruntime
from onnxproof.policy.trials import judge_trials
from onnxproof.trials.kernels import find_wrong
from trials.small import capped, export


@dataclass
class Wrong:
    """A session whose answers stop at three, as a kernel with a wrong limit has them; the rest is onnxruntime's."""

    session: object

    def __getattr__(self, name):
        return getattr(self.session, name)

    def run(self, inputs):
        return {
            name: np.minimum(array, 3) if array.dtype.kind == "f" else array
            for name, array in self.session.run(inputs).items()
        }


@pytest.mark.parametrize("wrong", [True, False])
def test_a_wrong_kernel_is_latent_until_an_input_brings_it_there(wrong, tmp_path, monkeypatch):
    opens = Onnxruntime.open
    # There is no such input: a second of search shows it as well as ten.
    monkeypatch.setattr("onnxproof.pipeline.trying.REACHING", 1.0)

    def open_session(self, model, settings, renamed=None):
        session = opens(self, model, settings, renamed)
        # The whole file is opened by its path, and its cases stay below three.
        return Wrong(session) if wrong and isinstance(model, bytes) else session

    monkeypatch.setattr(Onnxruntime, "open", open_session)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # what is remembered is not asked again
    proof = onnxproof.verify(*capped(), onnx=export(tmp_path / "file"), out=tmp_path / "out", fast=True)
    assert proof.trials is not None
    assert [one.kernel for one in proof.trials.latent][:1] == ([True] if wrong else [])
    told = [finding.message for finding in judge_trials(proof.trials)]
    assert any("the runtime's" in message for message in told) == wrong
    assert proof.verdict != "block"


TRUE = np.array([[1.0, 2.0, -3.0]])


@pytest.mark.parametrize(
    ("answer", "own", "place"),
    [
        ([[1.0, 2.0, -3.0001]], TRUE, None),
        ([[1.0, 2.0, -3.1]], TRUE, 2),
        # PyTorch loses as much in the same dtype.
        ([[1.0, 2.0, -3.1]], [[1.0, 2.0, -3.01]], None),
        ([[np.inf, 2.0, -3.0]], TRUE, 0),
        ([[np.inf, 2.0, -3.0]], [[np.inf, 2.0, -3.0]], None),
    ],
)
def test_a_kernel_is_wrong_where_pytorch_in_float32_is_not(answer, own, place):
    narrow = [np.asarray(one, np.float32) for one in (answer, own)]
    assert find_wrong(narrow[0], TRUE, [narrow[1]], TRUE, 3.0) == place


def test_what_is_nothing_beside_usual_values_is_nothing():
    small = np.full((1, 3), 1e-8)
    assert find_wrong((small * 1.5).astype(np.float32), small, [small.astype(np.float32)], TRUE, 0.0) is None
    assert find_wrong((small * 1.5).astype(np.float32), small, [small.astype(np.float32)], small, 0.0) == 0


def test_integers_and_conditions_are_equal_or_not():
    true = np.array([1, 2, 3])
    assert find_wrong(np.array([1, 3, 3]), true, [true], true, 0.0) == 1
    assert find_wrong(true > 1, true > 2, [true > 1], true, 0.0) is None


def test_a_decision_is_wrong_only_where_no_legal_rounding_turns_it():
    true = np.array([True, True])
    assert find_wrong(~true, true, [true, true], true, 0.0) == 0
    assert find_wrong(~true, true, [true, np.array([False, True])], true, 0.0) == 1
