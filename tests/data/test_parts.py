"""Rows that calibrate and rows that judge: all rows, none in both, the same ones each time."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.data.opening import hold, open_source
from onnxproof.data.parts import MOST
from onnxproof.errors import InputError


def rows(data, part, fields=("x",)):
    with hold(data) as name:
        source = open_source(name, part=part).select(fields)
        return source, np.concatenate([table["x"] for table in source.read(0, None, 7)])[:, 0]


@pytest.mark.parametrize("count", [5, 40, 3000])
def test_every_row_is_in_one_part(count):
    data = {"x": np.arange(count, dtype="f4")[:, None], "names": np.array(["a", "b"])}
    (first, calibrating), (second, judging) = rows(data, "calibration"), rows(data, "judging")
    assert len(calibrating) == first.rows == min(MOST, count // 4)
    assert second.rows == len(judging)
    assert sorted([*calibrating, *judging]) == list(range(count))
    np.testing.assert_array_equal(rows(data, "judging")[1], judging)
    assert first.fingerprint != second.fingerprint


def test_rows_can_be_taken_and_read_from_the_middle():
    data = {"x": np.arange(100, dtype="f4")[:, None]}
    with hold(data) as name:
        source = open_source(name, part="judging").select(["x"])
        every = np.concatenate([table["x"] for table in source.read(0, None, 8)])
        np.testing.assert_array_equal(source.take(np.array([3, 50]))["x"], every[[3, 50]])
        np.testing.assert_array_equal(np.concatenate([t["x"] for t in source.read(10, 31, 8)]), every[10:31])
        np.testing.assert_array_equal(source.column("x"), every)


def test_batches_that_only_pass_by_are_split_too():
    batches = [{"x": np.arange(i, i + 10, dtype="f4")[:, None]} for i in range(0, 60, 10)]
    (_, calibrating), (_, judging) = rows(batches, "calibration"), rows(batches, "judging")
    assert sorted([*calibrating, *judging]) == list(range(60))


def test_too_few_rows_are_refused():
    with pytest.raises(InputError, match="at least 4"):
        rows({"x": np.zeros((3, 1), "f4")}, "judging")
