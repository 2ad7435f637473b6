"""Prompts continued by both sides."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import onnxproof
from onnxproof.errors import UserError
from onnxproof.quality.generation import find_alive

VOCAB = 23


class Language(nn.Module):
    """Scores of the next token, from a recurrent state."""

    def __init__(self, late=0.0, factor=1.0):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.mix = nn.Embedding(VOCAB, 16), nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, VOCAB)
        self.late, self.factor = late, factor

    def forward(self, input_ids):
        scores = self.head(self.mix(self.words(input_ids))[0]) * self.factor * 10
        place = torch.arange(input_ids.shape[1])[None, :, None]
        return scores + self.late * (place >= 9) * torch.arange(VOCAB)


TESTS = Path(__file__).parents[1]
EXAMPLE = {"input_ids": torch.arange(10).reshape(2, 5)}


@pytest.fixture(scope="module")
def prompts(tmp_path_factory):
    file = tmp_path_factory.mktemp("prompts") / "prompts.npz"
    np.savez(file, prompts=np.random.default_rng(0).integers(0, VOCAB, (6, 5)))
    return str(file)


@pytest.fixture(autouse=True)
def modules_are_found(monkeypatch):
    """Children that export find the module of this file."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH")))))


def evaluate(shipped, prompts, folder, **options):
    dynamic = {"input_ids": {0: "batch", 1: "seq"}}
    file = onnxproof.export(shipped, EXAMPLE, out=folder, dynamic=dynamic, isolate=True).artifact.path
    how = {"onnx": file, "data": prompts, "task": "generate", "tokens": 12, "in_process": True, "out": folder / "out"}
    return onnxproof.evaluate(Language().eval(), EXAMPLE, **{**how, **options})


def test_a_right_file_continues_alike(prompts, tmp_path):
    proof = evaluate(Language().eval(), prompts, tmp_path)
    q = proof.quality
    assert proof.verdict == "ship"
    assert (q.task, q.n, q.decisions, q.flip_count) == ("generate", 6, 72, 0)
    assert q.candidate["exact_match"] == 1.0
    assert q.candidate["prefix"] == 12
    assert q.candidate["perplexity"] == pytest.approx(q.baseline["perplexity"], rel=1e-5)
    assert q.intervals["perplexity"].difference is not None


def test_a_token_that_no_rounding_changes_is_a_bug_at_its_step(prompts, tmp_path):
    """The scores change from place 9 on, which the fifth step of a prompt of five tokens reads."""
    proof = evaluate(Language(late=0.4).eval(), prompts, tmp_path)
    told = next(f for f in proof.findings if f.code == "OX502")
    assert proof.verdict == "block"
    assert told.evidence["step"] == 5
    assert "step 5" in told.message
    assert min(flip.place[0] for flip in proof.quality.flips) >= 5
    with np.load(told.evidence["file"]) as inputs:
        assert inputs["input_ids"].shape == (1, 10)
    (blamed,) = proof.blame  # the farthest of them
    assert blamed in {f"generate/prompt={one['id']}/step=5" for one in told.evidence["examples"]}
    assert told.where.node in {node.name for node in onnx.load(proof.artifact.path).graph.node}


@pytest.mark.slow
def test_scores_that_choose_the_same_tokens_are_held_to_rounding_too(prompts, tmp_path):
    proof = evaluate(Language(factor=1.001).eval(), prompts, tmp_path)
    assert proof.quality.flip_count == 0
    assert "OX517" in {f.code for f in proof.findings if f.weight}


@pytest.mark.slow
def test_a_search_keeps_what_the_module_keeps(prompts, tmp_path):
    proof = evaluate(Language().eval(), prompts, tmp_path, beams=3)
    assert proof.verdict == "ship"
    assert (proof.quality.flip_count, proof.quality.candidate["exact_match"]) == (0, 1.0)


@pytest.mark.slow
def test_ox502_a_search_that_goes_another_way_is_a_bug_at_its_step(prompts, tmp_path):
    proof = evaluate(Language(late=0.4).eval(), prompts, tmp_path, beams=3)
    told = next(f for f in proof.findings if f.code == "OX502")
    assert proof.verdict == "block"
    assert told.evidence["step"] == 5
    assert min(flip.place[0] for flip in proof.quality.flips) == 5


def test_beams_are_fewer_than_tokens(prompts, tmp_path):
    with pytest.raises(UserError, match="at most half of the 23 tokens"):
        evaluate(Language().eval(), prompts, tmp_path, beams=12)


def test_prompts_are_rows_of_integers(tmp_path):
    np.savez(tmp_path / "words.npz", input_ids=np.ones((3, 4), np.float32))
    with pytest.raises(UserError, match="expected token ids in a field input_ids"):
        evaluate(Language().eval(), str(tmp_path / "words.npz"), tmp_path)


def test_a_text_ends_with_its_end():
    assert find_alive(np.array([[3, 9, 9], [3, 3, 3]]), [9]).tolist() == [[True, True, False], [True, True, True]]
