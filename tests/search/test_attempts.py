"""What a search's input shows, and that a find is written before the next one."""

from __future__ import annotations

import numpy as np
import pytest

from fake import FakeCandidate
from onnxproof.cases import counterexample_files as keep
from onnxproof.proof.search import Search
from onnxproof.request.thresholds import Policy
from onnxproof.search.attempts import Attempts, Told
from onnxproof.search.hunt import Find
from onnxproof.search.look import FOUND, TRYING, Look
from seam import Heard, Mlp


@pytest.fixture
def mlp(exported):
    return Mlp(exported("mlp"))


@pytest.mark.parametrize("wrong", [False, True])
def test_an_attempt_is_kept_until_it_is_over_and_a_find_for_good(mlp, wrong, tmp_path):
    told = []
    listeners = Told(*(lambda *one, kind=kind: told.append((kind, one)) for kind in ("hit", "case", "searched")))
    verifier = mlp.verifier(FakeCandidate(mlp.wrong_where(lambda settings: wrong)), Heard())
    attempts = Attempts(verifier, Look((), {}, {}, Policy()), tmp_path, listeners)
    trial = attempts.attempt("search/mixture/1", mlp.example())
    assert trial.fails == (2 if wrong else 0)
    assert (trial.score > 1) == wrong
    assert keep.read(tmp_path / TRYING).keys() == mlp.example().keys()
    attempts.tell(Search(1.0), Find("search/mixture/1", mlp.example(), trial.fails) if wrong else None)
    attempts.close()
    assert [kind for kind, _ in told] == (["hit", "case", "searched"] if wrong else ["searched"])
    assert (tmp_path / FOUND).exists() == wrong
    assert not (tmp_path / TRYING).exists()


def test_what_is_known_is_no_news(mlp, tmp_path, monkeypatch):
    verifier = mlp.verifier(FakeCandidate(mlp.wrong_where(lambda settings: True)), Heard())
    silent = Told(lambda *one: None, lambda *one: None, lambda *one: None)
    first = Attempts(verifier, Look((), {}, {}, Policy()), tmp_path, silent)
    first.attempt("search/mixture/1", mlp.example())
    from onnxproof.search.counterexample import list_gating

    known = tuple(list_gating(first._last, Policy()))
    assert known
    again = Attempts(verifier, Look(known, {}, {}, Policy()), tmp_path, silent)
    asked: list[bool] = []
    evaluate = verifier.evaluate
    monkeypatch.setattr(
        verifier, "evaluate", lambda *one, glance=False: asked.append(glance) or evaluate(*one, glance=glance)
    )
    assert again.attempt("search/mixture/2", mlp.example()).fails == 0
    assert asked == [True]  # at a glance: samples would tell nothing new
    assert np.isfinite(again.attempt("search/mixture/3", mlp.example()).score)
