"""What rounding explains, asked in order of cost."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import models
import onnxproof
from onnxproof.parity.comparison import compare, measure_excess
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner
from onnxproof.parity.truth import SAMPLES, Effort, Truth, _explain_discrete, _explain_float, _Samples
from onnxproof.proof.comparison import Noise
from onnxproof.request.request import Limits
from onnxproof.subject.assembly import make_subject
from onnxproof.tensors.conversion import to_numpy


@pytest.fixture
def mlp():
    subject = make_subject(*models.mlp())
    inputs = {name: to_numpy(tensor) for name, tensor in subject.inputs.tensors.items()}
    return SimpleNamespace(subject=subject, inputs=inputs, eager=EagerRunner(subject), double=DoubleRunner(subject))


def judged(mlp, candidate, truth, *group, **how):
    baseline = mlp.eager.run(mlp.inputs)
    comparison = compare("output", baseline["output"], candidate)
    exact = truth.of(mlp.inputs)
    (result,), kept = truth.judge_case(mlp.inputs, exact, baseline, {"output": candidate}, [comparison], *group, **how)
    return result, kept


def judge_with(*arguments, **how):
    return judged(*arguments, **how)[0]


def test_an_ulp_is_explained_and_a_wrong_value_is_not(mlp):
    right = mlp.eager.run(mlp.inputs)["output"]
    fine, kept = judged(mlp, np.nextafter(right, np.float32(9)), Truth(mlp.eager, mlp.double, Limits()))
    assert fine.noise.method == "float64"
    assert kept is not None
    assert fine.noise.unexplained is None or fine.noise.unexplained <= 1
    wrong = right.copy()
    wrong.flat[0] += 0.5
    assert judge_with(mlp, wrong, Truth(mlp.eager, mlp.double, Limits())).noise.unexplained > 10


def test_without_float64_inputs_are_moved_by_an_ulp(mlp):
    wrong = mlp.eager.run(mlp.inputs)["output"] + np.float32(0.5)
    result, kept = judged(mlp, wrong, Truth(mlp.eager, None, Limits()))
    assert kept is None
    assert result.noise.method == "ulp"
    assert result.noise.unexplained > 1


def test_an_output_that_was_wrong_often_enough_is_asked_no_more(mlp):
    wrong = mlp.eager.run(mlp.inputs)["output"] + np.float32(0.5)

    def ask(*groups: str) -> list[bool]:
        truth = Truth(mlp.eager, mlp.double, Limits())
        return [judge_with(mlp, wrong, truth, group).noise.unexplained is not None for group in groups]

    # What weighs less settles nothing for what weighs more.
    assert ask("fair", "fair", "fair", "unfair", "denormal") == [True, True, False, False, False]
    assert ask("unfair", "unfair", "unfair", "denormal", "fair") == [True, True, False, True, True]
    careful = Truth(mlp.eager, mlp.double, Limits(), Effort(settles=False))
    assert all(judge_with(mlp, wrong, careful, "fair").noise.unexplained > 1 for _ in range(3))


def test_where_the_graph_means_something_else_few_roundings_tell(mlp):
    right, drawn = mlp.eager.run(mlp.inputs)["output"], list[int]()
    truth = Truth(mlp.eager, mlp.double, Limits())

    def sample(seed: int, doubled: bool) -> dict[str, np.ndarray] | None:
        drawn.append(seed)
        return truth.sample(mlp.inputs, seed, doubled)

    apart = measure_excess(right, right + np.float32(1e-5), truth.of(mlp.inputs)["output"], [right], 2.0**-24)
    wrong = right + np.float32(1e-5 * 40 / apart.max())  # beyond the noise, and not beyond hope
    assert judge_with(mlp, wrong, truth, "fair", sample=sample).noise.unexplained > 1
    assert len(drawn) == SAMPLES[-1]
    drawn.clear()
    assert truth.note_changed({"output"}, settled=False) == set()
    assert judge_with(mlp, wrong, truth, "fair", sample=sample).noise.unexplained > 1
    assert len(drawn) == SAMPLES[0]
    drawn.clear()
    assert truth.note_changed({"output"}, settled=True) == {"output"}
    assert judge_with(mlp, wrong, truth, "fair", sample=sample).noise.unexplained is None
    assert drawn == []


def test_a_truth_that_is_none_is_no_witness_that_the_graph_means_something_else(mlp):
    """The module does not lie among roundings of it: then its own inputs are moved, as often as for any other."""
    baseline = {name: array.copy() for name, array in mlp.eager.run(mlp.inputs).items()}
    truth = Truth(mlp.eager, mlp.double, Limits())
    truth.note_changed({"output"}, settled=False)
    drawn = list[bool]()

    def sample(seed: int, doubled: bool) -> dict[str, np.ndarray] | None:
        drawn.append(doubled)
        made = truth.sample(mlp.inputs, seed, doubled)
        return {name: array + doubled for name, array in made.items()}

    other = {name: array + 1.0 for name, array in truth.of(mlp.inputs).items()}
    candidate = baseline["output"] + np.float32(0.5)
    comparison = compare("output", baseline["output"], candidate)
    (result,), kept = truth.judge_case(
        mlp.inputs, other, baseline, {"output": candidate}, [comparison], "fair", sample=sample
    )
    assert kept is None
    assert result.noise.method == "ulp"
    assert drawn.count(False) > SAMPLES[0]


def test_a_glance_leaves_open_what_rounding_explains(mlp):
    wrong = mlp.eager.run(mlp.inputs)["output"] + np.float32(0.5)
    seen = judge_with(mlp, wrong, Truth(mlp.eager, mlp.double, Limits()), "fair", glance=True)
    assert seen.noise.ratio > 100
    assert seen.noise.unexplained is None


def no_wider(truth):
    return iter(())


@pytest.mark.parametrize(("flipped", "left"), [(1, 0), (40, 40)])
def test_a_few_choices_may_lie_as_far_away_as_numbers_may(flipped, left):
    """No sample flips them, one of four times the size does; of many that no sample flips nobody is asked again."""
    count = 1000
    baseline = np.zeros(count, np.int64)
    candidate = (np.arange(count) < flipped).astype(np.int64)
    truth = {"y": baseline}
    samples = _Samples(lambda seed, doubled: truth, lambda truth: iter([{"y": candidate}]), SAMPLES, truth, truth)
    compared = compare("y", baseline, candidate, atol=1e-4, rtol=1e-3)
    assert _explain_discrete(compared, baseline, candidate, samples).unexplained_mismatches == left


def test_signs_of_nothing_are_flipped_by_every_second_sample():
    """Three samples leave an eighth of a few signs, which more of them flip; what no sample flips stays."""
    count, few = 2000, 40
    baseline = np.ones(count, np.float32)
    candidate = np.where(np.arange(count) < few, -1, baseline).astype(np.float32)

    def explain(stays: int) -> float | None:
        def sample(seed: int, doubled: bool) -> dict[str, np.ndarray]:
            signs = baseline.astype(np.float64)
            signs[stays:few] = np.sign(np.random.default_rng(seed).standard_normal(few - stays))
            return {"y": signs}

        samples = _Samples(sample, no_wider, SAMPLES, {"y": baseline}, {"y": baseline.astype(np.float64)})
        loud = replace(
            compare("y", baseline, candidate, atol=1e-4, rtol=1e-3), noise=Noise("float64", 0.0, 2.0, 1e9, 1e9)
        )
        noise = _explain_float(loud, baseline, candidate, samples, 2.0**-24).noise
        return None if noise is None else noise.unexplained

    assert (explain(0) or np.inf) <= 1
    assert (explain(few // 2) or 0) > 1


class Spread(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(x.std(-2), dim=-1)


def test_squares_that_vanish_are_asked_for_before_a_difference_is_hopeless(tmp_path):
    """A deviation of numbers near 1e-30 is nothing where its squares are float32, which random errors do not show."""
    torch.manual_seed(0)
    proof = onnxproof.prove(Spread().eval(), (torch.randn(3, 4, 6),), out=tmp_path, fast=True)
    assert proof.verdict == "ship", proof.findings
