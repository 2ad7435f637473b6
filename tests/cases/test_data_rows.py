"""Rows of the user's data as cases."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.cases.data_rows import DATA_CASES, SAMPLE_ROWS, DataRows, stratify
from onnxproof.data.arrays import ArraySource
from onnxproof.data.examples import Examples
from onnxproof.data.iterables import open_object
from onnxproof.errors import InputError

INPUT = {"x": np.zeros((2, 3), np.float32)}
MANY = 100_000
X = np.repeat(np.arange(MANY, dtype=np.float32)[:, None], 3, axis=1)


def rows(size=32, **arrays):
    return DataRows(Examples(ArraySource(arrays, "--data d.npz", ""), INPUT, None, None), size)


def test_every_label_comes_early_in_stratified_rows():
    labels = np.array([0] * 90 + [1] * 8 + [2] * 2)
    order = stratify(labels)
    assert sorted(order.tolist()) == list(range(100))
    assert set(labels[order[:3]].tolist()) == {0, 1, 2}
    assert labels[order[:6]].tolist().count(2) == 2
    assert stratify(np.linspace(0, 1, 100)) is None
    assert rows(x=X[:100], labels=labels).cases()[0].name == "data/stratified=0-31"


def test_windows_lie_over_all_of_the_data():
    data = rows(x=X)
    cases = data.cases()
    assert len(cases) == DATA_CASES
    assert (cases[0].name, cases[-1].name) == ("data/rows=0-31", f"data/rows={MANY - 32}-{MANY - 1}")
    assert not any(case.repeated for case in cases)
    assert np.array_equal(data.read(cases[-1].rows)["x"], X[-32:])
    assert rows(x=X[:10]).windows == [(0, 10)]
    assert rows(x=X[:40]).windows == [(0, 32), (8, 32)]
    assert [case.repeated for case in rows(x=X[:40]).cases()] == [0, 24]


def test_a_window_of_stratified_rows_has_every_label():
    labels = (np.arange(MANY) > MANY - 3).astype(int)
    data = rows(x=X, labels=labels)
    assert data.read((0, 4))["x"][:, 0].tolist() == [0, MANY - 2, 1, MANY - 1]
    assert data.read((0, 2000))["x"].shape == (2000, 3), "rows that no case takes are read when they are asked for"


def test_the_sample_is_even_and_bounded():
    sample = rows(x=X).sample["x"][:, 0]
    assert SAMPLE_ROWS <= len(sample) < 2 * SAMPLE_ROWS
    assert (np.diff(sample) == sample[1]).all()
    wide = np.zeros((4000, 100, 100), np.float32)
    data = DataRows(Examples(ArraySource({"x": wide}, "", ""), {"x": wide[:2]}, None, None), 32)
    assert data.sample["x"].nbytes <= 2 * 64e6


def test_only_rows_that_are_taken_are_held():
    passes = []

    def batches():
        passes.append(0)
        for start in range(0, MANY, 1000):
            yield {"x": X[start : start + 1000]}

    data = DataRows(Examples(open_object(batches, "t", "--data t"), INPUT, None, None), 32)
    before = len(passes)
    for case in data.cases():
        start, count = case.rows
        assert np.array_equal(data.read(case.rows)["x"], X[start : start + count])
    assert len(passes) == before, "what is held is not read again"


def test_no_rows_are_told():
    with pytest.raises(InputError, match=r"--data d\.npz has no rows"):
        rows(x=X[:0])
