"""The user's own metrics."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.errors import InputError
from onnxproof.quality.metrics.measured import Measured
from onnxproof.quality.metrics.own import measure_custom
from quality.scored import binary, scores_of

FUNCTIONS = """
def share(labels, scores):
    return ((scores > 0) == (labels == 1)).mean()

def broken(labels, scores):
    raise KeyError("nope")

number = 3
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "own.py").write_text(FUNCTIONS)
    return tmp_path / "own.py"


def test_both_sides_are_measured_with_intervals(file):
    labels, logits = binary(400)
    measured = Measured()
    measure_custom([f"{file}:share"], scores_of(labels, logits, -logits), measured)
    right = ((logits > 0) == (labels == 1)).mean()
    assert measured.values["baseline"]["share"] == right
    assert measured.values["candidate"]["share"] == pytest.approx(1 - right)
    low, high = measured.intervals["share"]["baseline"]
    assert low < right < high
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(right * (1 - right) / 400), rel=0.3)
    assert measured.intervals["share"]["difference"][1] < 0


def test_what_is_no_metric_is_refused(file):
    scores = scores_of(*binary(50))
    with pytest.raises(InputError, match="raised KeyError"):
        measure_custom([f"{file}:broken"], scores, Measured())
    with pytest.raises(InputError, match="is a int; expected a function"):
        measure_custom([f"{file}:number"], scores, Measured())
