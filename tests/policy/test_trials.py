"""Differences that no case has reached."""

from __future__ import annotations

from dataclasses import replace

from onnxproof.policy.trials import judge_trials
from onnxproof.proof.trials import Latent, Trials

ONE = Latent("node_add", "node_floor", "Floor", "y", "halves", True, 0.0, 1.0, {"x": 0.5})


def test_ox250_what_the_cases_come_near_is_to_be_reviewed():
    (finding,) = judge_trials(Trials(3, 3, 40, latent=(ONE,)))
    assert (finding.code, finding.severity) == ("OX250", "review")
    assert "Floor (node_add to node_floor) by itself gives 1 where PyTorch gives 0, on 0.5" in finding.message


def test_what_is_far_from_the_cases_is_a_note():
    (finding,) = judge_trials(Trials(latent=(replace(ONE, near=False, first="node_floor"),)))
    assert finding.severity == "note"
    assert "(node_floor)" in finding.message


def test_what_was_reached_is_told_by_its_case():
    assert not list(judge_trials(Trials(latent=(replace(ONE, reached="search/regime/1"),))))
    assert not list(judge_trials(None))


def test_what_the_outputs_do_not_show_is_a_note():
    (finding,) = judge_trials(Trials(latent=(replace(ONE, swallowed=True),)))
    assert finding.severity == "note"
    assert "the outputs are the same with either" in finding.message
