"""Both sides in free run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import onnxproof
from fake import FakeCandidate
from onnxproof.artifact.file import read_artifact
from onnxproof.parity.verification import verify
from onnxproof.parity.verifier import Verifier
from onnxproof.policy.rollout import judge_rollout
from onnxproof.report.text import render
from onnxproof.request.request import VerifySettings
from onnxproof.request.thresholds import Policy
from onnxproof.subject.assembly import make_subject
from seam import Heard


class Cell(nn.Module):
    """A cell whose state is what it answers."""

    def __init__(self, gain: float = 0.9) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(4, 4)
        self.gain = gain

    def forward(self, x, state):
        new = torch.tanh(self.inner(x) + self.gain * state)
        return {"y": new.sum(-1), "state": new}


class Chaos(nn.Module):
    """Rounding doubles with every step."""

    def forward(self, x, state):
        new = 3.99 * state * (1 - state) + 1e-3 * torch.sigmoid(x)
        new = new.clamp(0.0, 1.0)
        return {"y": new * 2, "state": new}


INPUTS = torch.rand(2, 4), torch.full((2, 4), 0.3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cells")


def export(module, folder, name):
    proof = onnxproof.export(module, INPUTS, out=folder / name)
    assert proof.artifact is not None
    return proof.artifact.path


def told(proof):
    return [(f.code, f.evidence.get("step"), f.evidence.get("forced")) for f in proof.findings if f.code == "OX231"]


def test_ox231_a_wrong_step_is_named_and_told_from_the_state(folder):
    path = export(Cell(0.9), folder, "right")
    right = onnxproof.verify(Cell(0.9), INPUTS, onnx=path, out=folder / "a")
    assert right.verdict == "ship"
    assert right.rollout is not None
    assert right.rollout.state == {"state": "state"}
    assert (len(right.rollout.steps), right.rollout.guessed) == (12, True)
    wrong = onnxproof.verify(Cell(0.7), INPUTS, onnx=path, out=folder / "b", fast=True)
    # The first step begins with a state of zeros, which no gain changes.
    assert told(wrong) == [("OX231", 1, True)]
    assert "state: state (guessed by names and shapes" in render(right)


def test_ox231_drift_is_no_fault(folder):
    path = export(Chaos(), folder, "chaos")
    proof = onnxproof.verify(Chaos(), INPUTS, onnx=path, out=folder / "c", fast=True)
    assert proof.rollout is not None
    assert len(proof.rollout.steps) == 12
    assert told(proof) == []


def test_state_can_be_given_and_turned_off(folder):
    path = export(Cell(0.9), folder, "asked")
    none = onnxproof.verify(Cell(0.9), INPUTS, onnx=path, out=folder / "d", fast=True, state="none")
    assert none.rollout is None
    given = onnxproof.verify(Cell(0.9), INPUTS, onnx=path, out=folder / "e", fast=True, state="state_out=state")
    assert given.rollout is not None
    assert given.rollout.guessed is False
    with pytest.raises(onnxproof.errors.InputError, match=r"--state y=state: expected OUTPUT=INPUT"):
        onnxproof.verify(Cell(0.9), INPUTS, onnx=path, out=folder / "f", state="y=state")


class Handing(nn.Module):
    """It hands on what it was given, as a decoder does with what its encoder said."""

    def forward(self, x, hidden_state):
        return {"y": x * hidden_state, "hidden_state": hidden_state}


def test_what_is_only_handed_on_is_not_rolled_out_unless_asked(folder):
    path = export(Handing(), folder, "handing")
    proof = onnxproof.verify(Handing(), INPUTS, onnx=path, out=folder / "g", fast=True)
    assert (proof.verdict, proof.rollout) == ("ship", None)
    asked = onnxproof.verify(
        Handing(), INPUTS, onnx=path, out=folder / "h", fast=True, state="hidden_state_out=hidden_state"
    )
    assert asked.rollout is not None


class Forgetful:
    """Answers right, but not where its own state came back to it three times."""

    def __init__(self, module) -> None:
        self.module, self.before, self.streak = module, np.zeros((1, 4), np.float32), 0

    def __call__(self, inputs, settings):
        with torch.no_grad():
            made = self.module(*(torch.from_numpy(inputs[name]) for name in ("x", "state")))
        self.streak = self.streak + 1 if np.array_equal(self.before, inputs["state"][:1]) else 0
        leaked = made["state"].numpy() + np.float32(1e-2 if self.streak > 2 else 0)
        self.before = leaked[:1]
        return {"y": made["y"].numpy(), "state_out": leaked}


def test_ox231_it_is_the_state_where_the_step_agrees(folder):
    """Seen only where the candidate's own state comes back to it."""
    module, heard = Cell(), Heard()
    artifact = read_artifact(Path(export(module, folder, "leak")))
    subject = make_subject(module, INPUTS)
    verifier = Verifier(
        subject, artifact, VerifySettings(), heard.listener(), candidate=FakeCandidate(Forgetful(module))
    )
    seen = []
    listener = heard.listener()
    verify(verifier, type(listener)(listener.finding, listener.plan, listener.stage, listener.case, seen.append))
    (finding,) = judge_rollout(seen[0], heard.cases, Policy(), "PyTorch")
    assert finding.evidence["step"] == 3
    assert "it is the state that is wrong, not the step" in finding.message


class Inside(nn.Module):
    """The same cell with its state in a buffer."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(4, 4)
        self.gain = gain
        self.register_buffer("kept", torch.zeros(2, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept = torch.tanh(self.inner(x) + self.gain * self.kept)
        return self.kept.sum(-1)


@pytest.mark.parametrize("wrap", [lambda module: module, torch.jit.script])
def test_ox231_a_state_inside_the_module_is_rolled_out_with_the_files(folder, wrap):
    path = export(Cell(0.9), folder, f"outside{wrap.__name__}")
    options = {"onnx": path, "dynamic": {}, "fast": True}
    right = onnxproof.verify(wrap(Inside(0.9).eval()), INPUTS[:1], out=folder / "g", **options)
    assert right.verdict == "ship", right.findings
    assert right.rollout is not None
    assert right.rollout.state == {"state_out": "state"}
    assert len(right.rollout.steps) == 12
    wrong = onnxproof.verify(wrap(Inside(0.7).eval()), INPUTS[:1], out=folder / "h", **options)
    assert told(wrong) == [("OX231", 1, None)]
