"""Rows as the two sides take them."""

from __future__ import annotations

import numpy as np
import pytest

from onnxproof.quality.rows import Batch, judge_layout


@pytest.mark.parametrize(
    ("row", "told"),
    [((32, 32, 3), "channels last (NHWC)"), ((3, 32, 31), "takes [3, 32, 32]"), ((3072,), "have the shape [3072]")],
)
def test_rows_of_another_shape_are_told(row, told):
    finding = judge_layout("x", row, (3, 32, 32))
    assert finding.code == "OX608"
    assert told in finding.message


def test_sizes_that_are_left_open_agree_with_all():
    assert judge_layout("x", (3, 17, 99), (3, None, None)) is None
    assert "channels first (NCHW)" in judge_layout("x", (3, 32, 30), (32, 30, 3)).message


def test_a_row_has_the_datas_own_name_or_its_number():
    labels = np.zeros(3)
    assert Batch(40, {}, labels, None, None).name(2) == 42
    assert Batch(40, {}, labels, np.array([7.0, 8.5, 9.0]), None).name(0) == 7
    assert Batch(40, {}, labels, np.array(["a", "b", "c"]), None).name(1) == "b"
    assert Batch(40, {}, labels, None, None).rows == 3
