"""Rows of a proof: bounded in number, with the worst among them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onnxproof.policy.merging import group_by
from onnxproof.proof.latency import Latency, Run
from onnxproof.report import points
from proofs import full_proof, make_proof, make_quality


@pytest.fixture(scope="module")
def full():
    return full_proof()


def test_points_hold_the_worst_and_leave_unfair_inputs_out(full):
    rows = points.list_judged(full)
    few = points.collect_error_points(rows, limit=5)
    assert len(few) == 5
    assert {row["state"] for row in few} == {"block"}
    assert sum(row["count"] for row in points.collect_error_points(rows)) == sum(
        len(r.comparison.envelope) for r in rows
    )
    unfair = [replace(row, case=replace(row.case, fair=False)) for row in rows]
    assert points.collect_error_points(unfair) == points.draw_noise_band(unfair, 8.0) == []


def test_the_band_reaches_from_the_least_noise_to_so_many_times_the_most(full):
    rows = points.list_judged(full)
    noises = [row.comparison.noise.baseline_rms for row in rows]
    band = points.draw_noise_band(rows, 8.0, bins=1)
    assert [(row["low"], row["high"]) for row in band] == [(min(noises), 8.0 * max(noises))]


def test_cells_keep_the_sizes_with_the_worst():
    rows = points.list_judged(make_proof(cases=96, wrong=1))
    cells = points.collect_heat_cells(rows, limit=2)
    assert "batch=12" in {cell["sizes"] for cell in cells}
    assert len({cell["sizes"] for cell in cells}) == len({cell["profile"] for cell in cells}) == 2
    assert max(cells, key=lambda cell: cell["noise_ratio"])["state"] == "block"
    assert points.collect_heat_cells([]) == []


def test_a_long_path_keeps_its_culprit():
    steps = points.collect_path_steps(make_proof(nodes=2000))
    kept = points.thin_steps(steps, limit=10)
    assert len(kept) <= 11
    assert [step["node"] for step in kept if step["culprit"]] == ["node_1000"]
    assert [step["step"] for step in kept] == sorted(step["step"] for step in kept)


def test_times_are_counted_once_and_the_slowest_stand_together():
    samples = (*range(1_000_000, 1_400_000, 1000), 90_000_000)
    proof = replace(make_proof(cases=0), latency=Latency((Run("x", 4, samples=samples), Run("x", 8)), ()))
    rows = points.collect_distributions(proof)
    assert points.list_timed_batches(proof) == [4]
    assert sum(row["count"] for row in rows) == len(samples)
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert rows[-1]["end"] < 3
    assert points.collect_distributions(proof, 8) == points.choose_timed(proof) == []


def test_curves_ascend_and_the_slider_starts_inside_them(full):
    curves = points.collect_curve_points(full)
    for side in points.SIDES:
        thresholds = [row["threshold"] for row in curves if row["side"] == side]
        assert thresholds == sorted(thresholds)
    assert points.choose_threshold(full, curves) == 0.5
    assert points.choose_threshold(full, curves[:3]) == curves[2]["threshold"]
    assert (
        points.collect_curve_points(make_proof(cases=0))
        == points.collect_confusion_cells(make_proof(cases=0), "baseline")
        == []
    )


def test_shares_of_a_true_class_add_up(full):
    cells = group_by(points.collect_confusion_cells(full, "candidate"), lambda cell: cell["true"])
    assert list(cells) == ["genuine", "fraud"]
    assert all(sum(cell["share"] for cell in row) == pytest.approx(1) for row in cells.values())


def test_matrices_and_columns_of_uneven_size_are_shown_as_far_as_they_fit():
    quality = make_quality(40)
    uneven = replace(quality.confusion, labels=quality.confusion.labels[:1])
    curve = replace(quality.thresholds.baseline, tp=())
    thresholds = replace(quality.thresholds, baseline=curve)
    proof = full_proof(quality=replace(quality, confusion=uneven, thresholds=thresholds))
    assert len(points.collect_confusion_cells(proof, "baseline")) == 1
    assert {row["side"] for row in points.collect_curve_points(proof)} == {"candidate"}
