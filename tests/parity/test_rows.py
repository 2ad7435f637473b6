"""Rows of a large batch: the few that decide are those that differ, and only where rows are answers of their own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import onnxproof
from fake import FakeCandidate
from onnxproof.cases.plan import Case
from onnxproof.parity.rows import Rows, take
from onnxproof.policy.judgement import judge
from onnxproof.request.thresholds import Policy
from seam import Heard, Mlp

LARGE = Case("batch=64/normal/seed=0", {"batch": 64}, "normal")


@pytest.fixture
def mlp(exported):
    return Mlp(exported("mlp"))


def choose(mlp, answer):
    verifier = mlp.verifier(FakeCandidate(mlp.right), Heard())
    inputs = verifier.supply.make_inputs(LARGE)
    baseline = verifier.eager.run(inputs)
    assert verifier.double is not None
    return Rows(verifier.supply, verifier.double).choose(inputs, baseline, {"output": answer(baseline["output"])})


def test_rows_that_differ_are_chosen_in_themselves_and_for_their_size(mlp):
    def answer(output):
        changed = output.copy()
        changed[17] += 1.0
        changed[23] = np.nan
        return changed

    part = choose(mlp, answer)
    assert part is not None
    assert {0, 17, 23, 63} <= {*part.rows}
    assert len(part.rows) <= 8
    assert part.inputs["input"].shape[0] == part.baseline["output"].shape[0] == len(part.rows)


def test_a_small_difference_in_a_small_row_is_among_them():
    from onnxproof.parity.rows import _find_worst

    rows = np.full((40, 4), 1000.0, np.float32)
    rows[9] = 1e-6
    changed = rows + np.float32(1e-2) * np.arange(40, dtype=np.float32)[:, None] / 40
    changed[9] = 2e-6
    assert 9 in _find_worst(rows, changed)


def test_another_shape_is_asked_as_a_whole(mlp):
    assert choose(mlp, lambda output: output[:-1]) is None


class Normalised(torch.nn.Module):
    """Every row depends on all of them."""

    def forward(self, x):
        return x - x.mean(0, keepdim=True)


def test_rows_that_depend_on_each_other_are_asked_together(tmp_path):
    proof = onnxproof.prove(Normalised().eval(), (torch.randn(3, 4),), out=tmp_path, batch_sizes=(1, 64))
    assert proof.verdict == "ship"
    assert {case.name.partition("/")[0] for case in proof.cases} >= {"batch=64"}


def test_one_wrong_row_of_many_is_found_with_the_truth_of_few(mlp):
    asked = []

    def answer(inputs, settings):
        output = mlp.right(inputs, settings)["output"].copy()
        if len(output) > 40:
            output[41] *= np.float32(1.001)
        return {"output": output}

    heard = Heard()
    verifier = mlp.verifier(FakeCandidate(answer), heard)
    assert verifier.double is not None
    run = verifier.double.run
    verifier.double.run = lambda inputs: asked.append(len(inputs["input"])) or run(inputs)
    result = verifier.evaluate(LARGE, verifier.supply.make_inputs(LARGE))
    assert any(finding.weight for finding in judge([], [result], Policy()))
    right = mlp.verifier(FakeCandidate(mlp.right), Heard())
    assert right.double is not None
    asked.clear()
    right.double.run = lambda inputs: asked.append(len(inputs["input"])) or run(inputs)
    right.evaluate(LARGE, right.supply.make_inputs(LARGE))
    assert max(asked) < 16  # the truth of 64 rows was never asked for


def test_answers_whose_number_values_decide_have_no_rows(mlp):
    verifier = mlp.verifier(FakeCandidate(mlp.right), Heard())
    double = verifier.double
    assert double is not None
    double.run = lambda inputs: {"output": np.zeros((min(1, len(inputs["input"]) - 2), 3))}
    inputs = verifier.supply.make_inputs(LARGE)
    output = {"output": np.zeros((1, 3))}
    assert Rows(verifier.supply, double).choose(inputs, output, output) is None


def test_what_has_no_rows_is_taken_whole():
    arrays = {"x": np.arange(6).reshape(3, 2), "bias": np.arange(2)}
    taken = take(arrays, {"x": 0, "bias": None}, [2])
    assert taken["x"].tolist() == [[4, 5]]
    assert taken["bias"].tolist() == [0, 1]
