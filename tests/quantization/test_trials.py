"""`quantize` from end to end: several files, each proved; rows that calibrate judge nothing; the best is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import onnxproof
from lowered import net
from onnxproof.errors import UserError
from onnxproof.proof.proof import Proof
from onnxproof.report.html import render_html
from onnxproof.report.text import render

BUDGET = 1.0


def rows(labelled=True):
    module, _ = net()
    x = 4 * torch.randn(400, 20, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        labels = module(x).argmax(1).numpy()
    return {"x": x.numpy(), **({"labels": labels} if labelled else {})}


def quantize(tmp_path, **options):
    return onnxproof.quantize(*net(), out=tmp_path, budget=BUDGET, **options)


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    return quantize(tmp_path_factory.mktemp("several"), data=rows())


def test_every_precision_is_made_proved_and_timed(several):
    record = several.quantization
    assert [one.name for one in record.candidates] == ["fp16", "int8 dynamic", "int8 static", "int4"]
    for one in record.candidates:
        assert one.verdict in ("ship", "review", "block")
        assert one.bytes < record.original_bytes
        assert one.time.low <= one.time.value <= one.time.high
        assert one.drops["accuracy"].low <= one.drops["accuracy"].value <= one.drops["accuracy"].high
    assert record.candidates[2].settings.method in ("MinMax", "Percentile", "Entropy")


def test_the_best_file_is_where_the_user_looks_and_is_what_the_proof_is_about(several):
    record = several.quantization
    (winner,) = (one for one in record.candidates if one.name == record.winner)
    assert Path(winner.path).is_file()
    assert several.artifact.path == winner.path
    assert several.verdict == winner.verdict == "review"  # the data have no example of one class
    assert Proof.loads(several.dumps()).quantization == record


def test_rows_that_calibrate_do_not_judge(several):
    record = several.quantization
    assert (record.calibration_rows, record.judging_rows) == (96, 300)  # batches of sixteen
    assert several.quality.n == 300


def test_it_is_told_in_a_table_and_drawn(several):
    text = render(several)
    assert len(text.splitlines()) <= 30
    assert "96 rows calibrated, 300 others judged" in text
    assert all(one.name in text for one in several.quantization.candidates)
    page = render_html(several)
    assert "Every file that was made" in page
    assert "exact arithmetic" in page
    assert several.artifact.precision.text in page


def test_nodes_stay_in_float_until_the_goal_holds(tmp_path):
    proof = quantize(tmp_path, data=rows(), to="int4", keep_within={"accuracy": 0.045})
    search = proof.quantization.search
    assert search.minimal
    assert 0 < len(search.nodes) < search.of
    assert search.evaluations <= 10
    (winner,) = (one for one in proof.quantization.candidates if one.name == proof.quantization.winner)
    assert winner.settings.kept == search.nodes
    assert winner.drops["accuracy"].value <= 0.045
    assert f"{len(search.nodes)} of {search.of} nodes in float" in render(proof)


@pytest.mark.slow
def test_without_labels_the_changed_decisions_judge(tmp_path):
    proof = quantize(tmp_path, data=rows(labelled=False), to="int8", keep_within={"changed": 0.2})
    assert proof.quality is None
    assert proof.quantization.search is None
    assert all(one.changed.value <= 0.2 for one in proof.quantization.candidates)
    with pytest.raises(UserError, match="no labels"):
        quantize(tmp_path, data=rows(labelled=False), to="fp16", keep_within={"accuracy": 0.1})


@pytest.mark.slow
def test_without_data_what_needs_none_is_made_and_a_person_has_to_look(tmp_path):
    proof = quantize(tmp_path, to="int8")
    dynamic, static = proof.quantization.candidates
    assert proof.verdict == dynamic.verdict == "review"
    assert static.verdict is None
    assert "--data" in static.reason
    with pytest.raises(UserError, match="--data"):
        quantize(tmp_path, to="int8-static")
    with pytest.raises(UserError, match="--data"):
        quantize(tmp_path, keep_within={"accuracy": 0.1})


def test_labels_in_a_file_of_their_own_cannot_be_split(tmp_path):
    np.save(tmp_path / "labels.npy", rows()["labels"])
    with pytest.raises(UserError, match="a field of it"):
        quantize(tmp_path, data=rows(labelled=False), labels=str(tmp_path / "labels.npy"))
