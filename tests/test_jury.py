"""The jury's models: what a seed makes stays the same, runs at other sizes, and is whole after what no output needs is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from benchmarks.jury import page
from benchmarks.jury.causes import find_cause
from benchmarks.jury.generator import generate
from benchmarks.jury.program import load


@pytest.mark.parametrize("seed", [1, 2, 3, 17])
def test_a_seed_is_a_model_that_runs(seed):
    program = generate(seed)
    assert program.write() == generate(seed).write()
    model, inputs = load(replace(program, sizes={"batch": 4, "seq": 5}).write())
    with torch.no_grad():
        outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    assert len(outputs) == len(program.outputs)
    assert all(torch.isfinite(output.double()).all() for output in outputs)


def test_a_pruned_model_has_only_what_its_output_needs():
    program = generate(3)
    first = program.statements[0].targets[0]
    smaller = replace(program, outputs=(first,), blocks=()).prune()
    assert len(smaller.statements) == 1
    load(smaller.write())


def test_a_cause_is_told_by_the_line_and_not_by_a_likeness():
    """`scaled_dot_product_attention` has the letters of a product of integers."""
    finding = {"code": "OX207", "severity": "block", "text": "v0 = x.prod(0)"}
    cause = find_cause({"seed": 1, "findings": [finding]})
    assert cause is not None
    assert "ReduceProd" in cause.what
    assert find_cause({"seed": 1, "findings": [finding | {"text": "F.scaled_dot_product_attention(q, k, v)"}]}) is None


def test_a_cause_may_be_told_by_the_node_or_by_the_death():
    finding = {"code": "OX201", "severity": "block", "text": "v0 = torch.cdist(x, x)"}
    causes = [find_cause({"seed": 1, "findings": [finding | {"node": node}]}) for node in ("/model/Sqrt", "/model/Pow")]
    assert [cause.script for cause in causes if cause is not None] == ["distance_by_products", "distance_exponent"]
    assert find_cause({"seed": 1355, "died": "signal 8"}) is not None
    assert find_cause({"seed": 1, "died": "hung"}) is None


def test_a_model_that_is_proved_again_counts_once():
    known = {
        "count": 3,
        "verdicts": {"ship": 1, "block": 2},
        "operations": [3, 9],
        "seconds": 10,
        "older exporter": 0,
        "states": 1,
        "unshipped": [{"model": 1, "verdict": "block"}, {"model": 2, "verdict": "block"}],
        "proved": [0, 1, 2],
    }
    again = {**known, "count": 2, "verdicts": {"ship": 2}, "unshipped": [], "proved": [1, 3]}
    both = page.add(known, again)
    assert (both["count"], both["verdicts"]) == (4, {"ship": 3, "block": 1})
    assert [one["model"] for one in both["unshipped"]] == [2]
    assert sorted(both["proved"]) == [0, 1, 2, 3]
