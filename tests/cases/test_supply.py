"""Where cases come from: the example, the data, the counterexamples that were kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import onnxproof
from onnxproof.cases import counterexample_files as keep
from onnxproof.cases.domain import WIDE_INTEGERS, infer_domain
from onnxproof.cases.roles import Use
from onnxproof.cases.supply import Supply
from onnxproof.errors import InputError
from onnxproof.request.request import VerifySettings
from onnxproof.request.specs import Range
from seam import Mlp


def test_integers_that_pytorch_rejects_fall_back_to_the_example(tmp_path):
    class Pick(torch.nn.Module):
        def forward(self, x, place):
            return x.gather(1, place)

    proof = onnxproof.prove(Pick(), (torch.randn(2, 5), torch.tensor([[0, 4], [1, 2]])), out=tmp_path)
    compared = [case for case in proof.cases if case.outputs]
    assert proof.verdict == "ship"
    assert len(compared) >= 15, [c.message for c in proof.cases]


class Entropy(torch.nn.Module):
    def forward(self, x):
        return torch.special.entr(x.abs())


class Guarded(torch.nn.Module):
    def forward(self, x):
        return torch.special.entr(x.abs()).nan_to_num()


@pytest.mark.parametrize(("module", "fair"), [(Entropy(), False), (Guarded(), True)])
def test_nan_gates_where_the_module_asks_for_it_and_not_where_an_exporter_does(module, fair, tmp_path):
    """The file asks whether something is NaN in both."""
    proof = onnxproof.prove(module.eval(), (torch.randn(2, 3),), out=tmp_path)
    assert {case.fair for case in proof.cases if case.profile == "nonfinite"} == {fair}


def test_the_proof_tells_what_of_the_users_data_was_covered(tmp_path):
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


def test_kept_counterexamples_come_first_and_those_of_others_are_left(exported, tmp_path):
    mlp = Mlp(exported("mlp"))
    (name,) = mlp.example()
    keep.write(tmp_path / "ours.npz", mlp.example())
    keep.write(tmp_path / "odd.npz", {name: mlp.example()[name] * np.float32(np.nan)})
    keep.write(tmp_path / "others.npz", {"other": np.zeros(3)})
    supply = Supply(mlp.subject, mlp.artifact, VerifySettings(counterexamples=tmp_path))
    kept = [case for case in supply.plan() if case.profile == "kept"]
    assert [(case.name, case.fair) for case in supply.plan()[:2]] == [("kept/odd", False), ("kept/ours", True)]
    assert len(kept) == 2
    assert np.array_equal(supply.make_inputs(kept[1])[name], mlp.example()[name])


def test_sizes_of_a_batch_that_does_not_vary_are_refused(exported):
    mlp = Mlp(exported("mlp"))
    settings = VerifySettings(batch_sizes=(5,))
    assert {case.sizes["batch"] for case in Supply(mlp.subject, mlp.artifact, settings).plan()} == {5}
    fixed = replace(mlp.subject, dynamic={})
    with pytest.raises(InputError, match="no first dimension is dynamic"):
        Supply(fixed, mlp.artifact, settings).plan()


def test_integers_are_wide_where_pytorch_takes_them(exported):
    mlp = Mlp(exported("mlp"))
    supply = Supply(mlp.subject, mlp.artifact, VerifySettings())
    counts = infer_domain("n", np.array([3, 8]), {0: "batch"}, None, Use())
    for accepted, valid in ((True, WIDE_INTEGERS), (False, Range(3, 8))):
        supply.domains = [counts]
        supply.calibrate(lambda inputs, answer=accepted: answer)
        assert (supply.domains[0].valid, supply.domains[0].extremes) == (valid, accepted)


def test_a_number_far_from_those_that_are_tried_has_neighbours_of_its_own(exported):
    mlp = Mlp(exported("mlp"))
    supply = Supply(mlp.subject, mlp.artifact, VerifySettings())
    rate, mode = (infer_domain("n", np.array(number), {}, None, Use()) for number in (16000, 3))
    for number, valid in ((rate, Range(8000, 32000)), (mode, WIDE_INTEGERS)):
        supply.domains = [number]
        supply.calibrate(lambda inputs: True)
        assert supply.domains[0].valid == valid
    # A module that takes two rates only is asked for the ends of what would be tried, whatever chance says.
    supply.domains = [rate]
    supply.calibrate(lambda inputs: int(inputs["n"]) in (8000, 16000))
    assert supply.domains[0].valid == Range(16000, 16000)


def test_places_in_a_dimension_follow_its_size(exported):
    mlp = Mlp(exported("mlp"))
    supply = Supply(mlp.subject, mlp.artifact, VerifySettings())
    rows = mlp.subject.sizes()["batch"]
    supply.domains = [infer_domain("edges", np.array([[0, 1], [rows - 1, 0]]), {}, None, Use())]
    supply.calibrate(lambda inputs: bool(inputs["edges"].min() >= 0 and inputs["edges"].max() < rows))
    (edges,) = supply.domains
    assert edges.within({"batch": 100}) == Range(0, 99)
    assert edges.within({"batch": 1}) == Range(0, 0)
    # Integers that end elsewhere have nothing to do with the rows.
    supply.domains = [infer_domain("edges", np.array([[0, 1]]), {}, None, Use())]
    supply.calibrate(lambda inputs: bool(inputs["edges"].max() < rows + 3))
    assert supply.domains[0].within({"batch": 100}) == Range(0, 1)
