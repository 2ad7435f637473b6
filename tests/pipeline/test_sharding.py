"""Rows in pieces: how many, on how many processes, what is kept of an earlier run and when it no longer counts."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from onnxproof.data.opening import open_source
from onnxproof.errors import InputError
from onnxproof.pipeline import sharding
from onnxproof.pipeline.events import Evaluated
from onnxproof.pipeline.loading import load_subject
from onnxproof.pipeline.sharding import MOST_PROCESSES, MOST_SHARDS, PROCESSES_FROM, SHARD_ROWS, collect_scores
from onnxproof.quality.engine import Engine
from onnxproof.quality.shards import Piece
from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.request import Request
from onnxproof.request.session import SessionSettings
from pipeline.small import Told, artifact_of, twice

ROWS = 23
X = np.random.default_rng(0).normal(size=(ROWS, 2)).astype(np.float32)


def test_pieces_cover_every_row_once():
    assert sharding._cut_pieces(23, 10) == [Piece(0, 0, 10), Piece(1, 10, 20), Piece(2, 20, 23)]
    assert sharding._cut_pieces(20, 10) == [Piece(0, 0, 10), Piece(1, 10, 20)]
    assert sharding._cut_pieces(0, 10) == sharding._cut_pieces(None, 10) == []


@pytest.mark.parametrize(
    ("rows", "batch", "batches"),
    [(1000, 256, SHARD_ROWS // 256), (None, 256, SHARD_ROWS // 256), (10**9, 1000, 3906), (10, 10**6, 1)],
    ids=["small", "unknown", "very many", "one batch is more"],
)
def test_shards_are_large_and_never_too_many(rows, batch, batches):
    assert sharding._choose_shard_size(rows, batch) == batches
    if rows:
        assert rows / (batches * batch) <= MOST_SHARDS + 1


def test_processes_are_started_for_many_rows_or_when_asked(monkeypatch):
    file = EvaluateSettings("data.npz")
    for cores, processes in ((3, 3), (96, MOST_PROCESSES)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process, cores=cores: set(range(cores)), raising=False)
        assert sharding._choose_workers(Request(), file, PROCESSES_FROM, False) == processes
    assert sharding._choose_workers(Request(), file, PROCESSES_FROM - 1, False) == 1
    assert sharding._choose_workers(Request(), replace(file, workers=3), 10, False) == 3
    for alone in ((twice(), file, False), (Request(), file, True), (Request(), EvaluateSettings("memory:0"), False)):
        request, settings, sequential = alone
        assert sharding._choose_workers(request, replace(settings, workers=3), 10**7, sequential) == 1
    with pytest.raises(InputError, match="--workers 0: expected 1 or more"):
        sharding._choose_workers(Request(), replace(file, workers=0), 10, False)


def test_paths_are_right_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.npz").touch()
    settings = EvaluateSettings("data.npz", labels="fraud", preprocess="prep.py:train")
    request = sharding._make_absolute(Request(target="m.py:make", out="made", evaluate=settings))
    assert (request.target, request.out) == (f"{tmp_path}/m.py:make", f"{tmp_path}/made")
    assert request.evaluate.data == f"{tmp_path}/data.npz"
    assert request.evaluate.labels == "fraud"  # a field's name, no file
    assert (request.evaluate.preprocess, request.evaluate.serve_preprocess) == (f"{tmp_path}/prep.py:train", None)
    module = sharding._make_absolute(replace(request, target="package.module:make"))
    assert module.target == "package.module:make"


def test_progress_is_told_now_and_then_and_kept_rows_say_nothing_about_the_rate():
    told = Told()
    progress = sharding._Progress(told, 100)
    progress.add(10)
    assert told == []
    progress._told -= sharding.TELL_EVERY
    progress.add(40, kept=True)
    progress.add(50, last=True)
    assert [event.done for event in told.of(Evaluated)] == [50, 100]
    middle, end = told
    assert middle.left == pytest.approx(50 / middle.rate)
    assert end.left == 0


# --- shards in this process -------------------------------------------------------------------------------------------


class Evaluation:
    """Rows of a file through the right artifact, in shards of eight rows."""

    def __init__(self, folder, monkeypatch, x=X, **settings):
        monkeypatch.setattr(sharding, "SHARD_ROWS", 8)
        np.savez(folder / "data.npz", x=x, labels=x.argmax(axis=1))
        self.asked = EvaluateSettings(str(folder / "data.npz"), batch_size=4, task="multiclass", **settings)
        self.request = replace(twice(out=str(folder)), evaluate=self.asked)
        self.artifact = artifact_of(folder)
        self.engine = Engine(load_subject(self.request), self.artifact, SessionSettings(), self.asked)

    def collect(self):
        rows = self.engine.open(open_source(self.asked.data))
        plan = self.engine.plan(rows, rows.all_labels())
        told = Told()
        scores, lost, where = collect_scores(self.request, self.engine, rows, plan, False, told)
        assert (lost, where) == ([], (1, "local"))
        return scores, told.of(Evaluated)[-1]


def test_all_rows_come_back_in_order_and_a_finished_run_computes_nothing(tmp_path, monkeypatch):
    evaluation = Evaluation(tmp_path, monkeypatch)
    first, told = evaluation.collect()
    assert told.done == ROWS
    np.testing.assert_allclose(first.sides["candidate"].scores, X * 2)
    assert len(list((tmp_path / "evaluate").iterdir())) == 3
    again, told = evaluation.collect()
    assert (told.done, told.rate) == (ROWS, 0)
    np.testing.assert_array_equal(again.sides["candidate"].scores, first.sides["candidate"].scores)


def test_a_run_goes_on_where_it_was_killed(tmp_path, monkeypatch):
    evaluation = Evaluation(tmp_path, monkeypatch)
    first, _ = evaluation.collect()
    (tmp_path / "evaluate" / "shard-0001.npz").write_bytes(b"half a file")
    again, told = evaluation.collect()
    assert told.rate > 0
    np.testing.assert_array_equal(again.sides["candidate"].scores, first.sides["candidate"].scores)


def test_without_resume_or_with_other_data_everything_is_computed(tmp_path, monkeypatch):
    Evaluation(tmp_path, monkeypatch).collect()
    _, told = Evaluation(tmp_path, monkeypatch, resume=False).collect()
    assert told.rate > 0
    other, told = Evaluation(tmp_path, monkeypatch, x=X + 1).collect()
    assert told.rate > 0
    np.testing.assert_allclose(other.sides["candidate"].scores, (X + 1) * 2, rtol=1e-6)


def test_the_mark_changes_with_whatever_changes_a_shard(tmp_path, monkeypatch):
    one = Evaluation(tmp_path, monkeypatch)
    rows = one.engine.open(open_source(one.asked.data))
    plan = one.engine.plan(rows, rows.all_labels())

    def mark(request=one.request, artifact=one.artifact, plan=plan, data="data", per_shard=2):
        monkeypatch.setattr(one.engine, "artifact", artifact)
        return sharding._fingerprint_work(request, one.engine, plan, data, per_shard)

    threads = replace(one.request, verify=replace(one.request.verify, session=SessionSettings(threads=1)))
    changed = [
        mark(threads),
        mark(artifact=replace(one.artifact, sha256="other")),
        mark(plan=replace(plan, scale="probability")),
        mark(data="others"),
        mark(per_shard=3),
    ]
    assert mark() == mark()
    assert len({mark(), *changed}) == 6
    steps = set()
    monkeypatch.setattr(one.engine, "settings", replace(one.asked, preprocess=str(tmp_path / "tokenizer.onnx")))
    for content in ("one", "another"):
        (tmp_path / "tokenizer.onnx").write_text(content)
        steps.add(mark())
    assert len(steps) == 2
