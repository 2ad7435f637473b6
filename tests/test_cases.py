"""Cases: what is tried, and that a name is enough to make it again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import models
from onnxproof.cases import shapes
from onnxproof.cases.coverage import cover, spread
from onnxproof.cases.domain import infer_domain, with_lengths
from onnxproof.cases.plan import generated, make_inputs, make_plan
from onnxproof.cases.roles import Use, uses
from onnxproof.cases.values import PROFILES, UNFAIR, fill
from onnxproof.graph.view import Graph
from onnxproof.request.specs import Range


def domain(example, declared=None, use=None, name="x", role=None):
    return infer_domain(name, np.asarray(example), {0: "batch"}, declared, use or Use(), role=role)


def test_a_case_is_the_same_for_the_same_name():
    floats = domain(np.zeros((2, 3), np.float32))
    case = generated({"batch": 7}, "mixed")
    assert case.name == "batch=7/mixed/seed=0"
    first, second = make_inputs(case, [floats])["x"], make_inputs(case, [floats])["x"]
    assert first.shape == (7, 3)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, make_inputs(generated({"batch": 7}, "mixed", 1), [floats])["x"])


@pytest.mark.parametrize("profile", PROFILES)
def test_fair_floats_are_finite_and_moderate(profile):
    values = fill(domain(np.zeros((2, 3), np.float32)), profile, (50, 40), np.random.default_rng(0))
    assert values.dtype == np.float32
    assert np.isfinite(values).all()
    assert np.abs(values).max() <= 1e3


@pytest.mark.parametrize("profile", PROFILES)
def test_a_declared_range_is_never_left(profile):
    g = np.random.default_rng(0)
    floats = fill(domain(np.zeros((2, 3), np.float32), Range(2.0, 5.0)), profile, (50, 40), g)
    ids = fill(domain(np.zeros((2, 3), np.int64), Range(3, 9)), profile, (50, 40), g)
    assert floats.min() >= 2
    assert floats.max() <= 5
    assert ids.min() >= 3
    assert ids.max() <= 9


def test_both_ends_of_a_range_are_tried():
    ids = domain(np.zeros((2, 3), np.int64), None, Use(table=30))
    seen = {int(v) for p in PROFILES for v in fill(ids, p, (5, 9), np.random.default_rng(0)).ravel()}
    assert {0, 29} <= seen
    assert max(seen) == 29


def test_masks_are_on_off_and_ragged():
    mask = domain(np.ones((2, 6), np.int64), name="attention_mask")
    assert mask.role == "mask"
    g = np.random.default_rng(0)
    assert fill(mask, "zeros", (3, 6), g).sum() == 0
    assert fill(mask, "ones", (3, 6), g).all()
    ragged = fill(mask, "normal", (50, 6), g)
    assert 0 < ragged.mean() < 1
    assert ragged[:, 0].all()


def test_the_sweep_has_the_asked_sizes():
    sizes = {s["batch"] for s in shapes.sweep({"batch": 4}, None)}
    assert sizes == {1, 2, 3, 4, 7, 32, 128}
    assert {s["batch"] for s in shapes.sweep({"batch": 4}, (1, 5))} == {1, 5}
    two = shapes.sweep({"batch": 4, "seq": 16}, None)
    assert {s["seq"] for s in two} >= {1, 2, 3, 15, 16, 17, 33}


def test_the_exporters_bounds_join_the_sweep():
    assert {s["seq"] for s in shapes.sweep({"seq": 16}, None, bounds={"seq": (2, 40)})} >= {2, 40}


def test_a_covering_has_every_pair_and_is_smaller_than_the_product():
    choices = {"a": [1, 2, 3, 4], "b": [1, 5, 6], "c": [1, 7, 8], "d": [2, 9]}
    rows = shapes.covering(choices)
    for first, second in itertools.combinations(choices, 2):
        met = {(row[first], row[second]) for row in rows}
        assert met == set(itertools.product(choices[first], choices[second]))
    assert len(rows) < 4 * 3 * 3 * 2 / 3


def test_an_empty_batch_is_tried_last_and_does_not_gate():
    plan = make_plan({"batch": 2}, None, floats=True, empty=True)
    assert plan[-1].name == "batch=0/normal/seed=0"
    assert not plan[-1].fair
    assert all(case.sizes.get("batch") != 0 for case in plan[:-1])


def test_unfair_inputs_are_tried_and_marked():
    plan = make_plan({"batch": 2}, None, floats=True)
    unfair = {case.profile for case in plan if not case.fair}
    assert unfair == set(UNFAIR)
    assert len({case.name for case in plan}) == len(plan)


def test_a_gather_tells_the_range_of_ids(exported):
    assert uses(Graph.read(exported("lookup")))["ids"].table == 30


def test_integers_that_pytorch_rejects_fall_back_to_the_example(tmp_path):
    import torch

    import onnxproof

    class Pick(torch.nn.Module):
        def forward(self, x, place):
            return x.gather(1, place)

    proof = onnxproof.prove(Pick(), (torch.randn(2, 5), torch.tensor([[0, 4], [1, 2]])), out=tmp_path)
    compared = [case for case in proof.cases if case.outputs]
    assert proof.verdict == "ship"
    assert len(compared) >= 15, [c.message for c in proof.cases]


def test_models_module_is_what_the_tests_think():
    assert set(models.CORRECT) <= set(dir(models))


def test_roles_are_inferred_from_use_name_and_example():
    assert domain(np.zeros((2, 3, 8, 8), np.float32), use=Use(convolved=True)).role == "image"
    assert domain(np.zeros((2, 7, 8, 8), np.float32), use=Use(convolved=True)).role == "float"
    hidden = np.zeros((2, 1, 1, 5), np.float32)
    hidden[0, 0, 0, 3:] = -1e9
    assert domain(hidden, use=Use(added_before_softmax=True)).role == "additive-mask"
    assert domain(np.ones((2, 4), np.int64), use=Use(selects=True)).role == "mask"
    assert domain(np.array([3, 5]), name="lengths").role == "length"
    assert domain(np.array([3, 5]), use=Use(compared=True), name="n").role == "length"
    assert domain(np.array([-3, 5]), use=Use(compared=True), name="n").role == "integer"
    assert domain(np.zeros((2, 3), np.float32), role="mask").role == "mask"


def test_a_length_stays_within_what_it_counts():
    floats = infer_domain("x", np.zeros((2, 6, 4), np.float32), {0: "batch", 1: "time"}, None, Use())
    lengths = infer_domain("lengths", np.array([6, 5]), {0: "batch"}, None, Use())
    measured = with_lengths([floats, lengths])
    assert measured[1].measures == "time"
    for profile in PROFILES:
        made = make_inputs(generated({"batch": 40, "time": 3}, profile), measured)
        assert made["lengths"].min() >= 0
        assert made["lengths"].max() <= 3
    tried = {int(v) for p in PROFILES for v in make_inputs(generated({"batch": 40, "time": 9}, p), measured)["lengths"]}
    assert {0, 1, 8, 9} <= tried


def test_an_additive_mask_holds_zero_and_its_lowest_value_only():
    example = np.zeros((2, 5), np.float32)
    example[0, 2:] = -np.inf
    mask = domain(example, use=Use(added_before_softmax=True))
    for profile in PROFILES:
        values = fill(mask, profile, (3, 5), np.random.default_rng(0))
        assert set(np.unique(values)) <= {0.0, -np.inf}
    assert np.isneginf(fill(mask, "zeros", (3, 5), np.random.default_rng(0))).all()


def test_integers_reach_powers_of_two_and_the_largest():
    integers = domain(np.zeros((2, 3), np.int64))
    seen = {int(v) for v in fill(integers, "exponents", (200, 9), np.random.default_rng(0)).ravel()}
    assert {2**31, 2**31 - 1, -(2**31), 2**62} <= seen
    assert min(seen) > -(2**63)
    declared = domain(np.zeros((2, 3), np.int64), Range(0, 5))
    assert fill(declared, "exponents", (200, 9), np.random.default_rng(0)).max() <= 5


def test_coverage_shows_a_gap():
    data = np.concatenate([np.linspace(0, 1, 500), np.linspace(5000, 5001, 500)])
    covered = cover(data, spread([np.linspace(-3, 3, 1000)]))
    assert covered.share == pytest.approx(0.5)
    assert covered.data_high == 5001
    assert cover(np.linspace(-1, 1, 99), spread([np.linspace(-3, 3, 1000)])).share == 1.0


def test_the_proof_tells_what_of_the_users_data_was_covered(tmp_path):
    import torch

    import onnxproof

    rows = np.concatenate([np.random.default_rng(0).standard_normal((60, 4)), np.full((60, 4), 9e4)]).astype(np.float32)
    np.savez(tmp_path / "d.npz", X=rows, labels=np.arange(120) // 60)
    proof = onnxproof.prove(
        torch.nn.Linear(4, 2).eval(), (torch.randn(2, 4),), data=str(tmp_path / "d.npz"), out=tmp_path
    )
    names = [case.name for case in proof.cases]
    assert any(name.startswith("data/stratified=") for name in names)
    assert any("like-data" in name for name in names)
    assert proof.coverage["input"].data_high == pytest.approx(9e4)
    assert proof.coverage["input"].share == pytest.approx(0.5, abs=0.01)  # nothing synthetic goes as far as 9e4
