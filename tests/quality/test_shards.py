"""A data set in pieces: what a process runs of it, and what is kept of that."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fake import FakeCandidate
from onnxproof.data.arrays import ArraySource
from onnxproof.errors import FindingError
from onnxproof.quality.accumulate import merge
from onnxproof.quality.engine import Engine
from onnxproof.quality.shardrun import RowRun
from onnxproof.quality.shards import Piece, Work
from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.request import Request
from onnxproof.request.session import SessionSettings
from seam import Mlp

X = torch.randn(50, 20, generator=torch.Generator().manual_seed(0)).numpy()


@pytest.fixture
def mlp(exported):
    return Mlp(exported("mlp"))


def opened(mlp, answer, **settings):
    """The two sides with rows of data, the candidate answering with what PyTorch said, changed."""

    def candidate(inputs, session):
        return {name: answer(array) for name, array in mlp.right(inputs, session).items()}

    engine = Engine(
        mlp.subject,
        mlp.artifact,
        SessionSettings(),
        EvaluateSettings("unread", batch_size=8, **settings),
        candidate=FakeCandidate(candidate),
    )
    name = next(iter(engine.examples))
    labels = engine.baseline({name: X})["output"].argmax(axis=1)
    rows = engine.open(ArraySource({name: X, "labels": labels}, "--data rows", "mark"))
    return engine, rows, engine.plan(rows, labels)


def test_pieces_together_are_the_whole(mlp):
    engine, rows, plan = opened(mlp, lambda array: array)
    whole = RowRun(engine, plan, 0).run(rows.batches(0, 8), None, lambda n: None)
    work = Work(Request(evaluate=engine.settings), mlp.artifact, plan, False, "mark")
    told = []
    pieces = [work.run(engine, rows, Piece(i, *ends), told.append) for i, ends in enumerate([(0, 16), (16, 50)])]
    assert [piece.rows for piece in pieces] == [16, 34]
    assert sum(told) == 50
    merged, once = merge(pieces[::-1], plan), merge([whole], plan)
    for side in ("baseline", "candidate"):
        np.testing.assert_allclose(merged.sides[side].scores, once.sides[side].scores, rtol=1e-5)
    assert merged.flipped == once.flipped == 0
    assert merged.facts["inputs"] == once.facts["inputs"]
    assert set(merged.seconds) == {"data", "pytorch", "onnxruntime"}


def test_flips_are_named_scored_and_examined(mlp):
    engine, rows, plan = opened(mlp, lambda array: -array)
    shard = RowRun(engine, plan, 0).run(rows.batches(0, 8), None, lambda n: None)
    assert shard.flipped == len(shard.flips) == 50
    flip = shard.flips[9]
    scores = shard.columns["baseline"][9]
    assert (flip["id"], flip["row"]) == (9, 9)
    assert flip["label"] == flip["baseline"] == plan.classes[scores.argmax()]
    assert flip["candidate"] == plan.classes[scores.argmin()]
    assert flip["baseline_score"] == pytest.approx(scores.max())
    assert flip["margin"] == pytest.approx(scores.max() - scores.min(), rel=1e-5)
    assert flip["explained"] is False
    assert shard.facts["apart"]["worst"] == pytest.approx(2 * np.abs(shard.columns["baseline"]).max(), rel=1e-5)


def test_scores_of_another_shape_are_a_finding(mlp):
    engine, rows, plan = opened(mlp, lambda array: array[:, :2])
    with pytest.raises(FindingError, match="the scores have different shapes") as error:
        RowRun(engine, plan, 0).run(rows.batches(0, 8), None, lambda n: None)
    assert error.value.finding.code == "OX518"


def test_a_finished_piece_is_used_again_only_where_nothing_changed(mlp, tmp_path):
    engine, rows, plan = opened(mlp, lambda array: array, resume=True)
    work = Work(Request(evaluate=engine.settings, out=str(tmp_path)), mlp.artifact, plan, False, "mark")
    assert work.kept(0) is None
    work.run(engine, rows, Piece(0, 0, 16), lambda n: None).save(work.file(0), work.mark)
    assert work.kept(0).rows == 16
    assert Work(work.request, mlp.artifact, plan, False, "other").kept(0) is None
    assert "rows 16 to 49 were not evaluated" in Piece(1, 16, 50).lost().message
