"""ONNX files with one change: the verdict is what a comparison by brute force says. `make fuzz` runs more of the same."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest
from benchmarks.mutants import Judged, ask_oracle, make_pairs, mutate, run_mutants

MUTANTS = 24


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return make_pairs(tmp_path_factory.mktemp("pairs"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_verdicts_are_those_of_brute_force(pairs, tmp_path):
    judged = list(run_mutants(pairs, MUTANTS, 5, tmp_path))
    assert [one for one in judged if one.fault or one.verdict == "bug"] == []
    assert {"right", "wrong"} <= {one.oracle for one in judged}


@pytest.mark.filterwarnings("ignore")
def test_the_oracle_knows_right_from_wrong(pairs):
    pair = pairs[0]
    assert ask_oracle(pair, pair.model.SerializeToString()) == "right"
    model = copy.deepcopy(pair.model)
    model.graph.initializer[0].raw_data = np.ones(model.graph.initializer[0].dims, np.float32).tobytes()
    assert ask_oracle(pair, model.SerializeToString()) == "wrong"
    assert ask_oracle(pair, b"") == "wrong"


def test_mutants_are_the_same_for_the_same_seed(pairs):
    model = pairs[0].model
    first, second = (mutate(model, random.Random(3)) for _ in range(2))
    assert first == second


def test_what_counts_as_a_fault():
    assert Judged("m", "w", "wrong", "ship").fault
    assert Judged("m", "w", "right", "block").fault
    assert not Judged("m", "w", "right", "review").fault
    assert not Judged("m", "w", "unclear", "block").fault
