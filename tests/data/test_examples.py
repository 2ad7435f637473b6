"""Rows with the roles of their fields known."""

from __future__ import annotations

import numpy as np
import pytest

from data.written import X, Y
from onnxproof.data.arrays import ArraySource
from onnxproof.data.examples import Examples
from onnxproof.errors import InputError

INPUT = {"input": np.zeros((2, 4), np.float32)}


def source(**arrays):
    return ArraySource({name: np.asarray(array) for name, array in arrays.items()}, "--data d.npz", "")


def test_labels_and_ids_are_no_inputs():
    rows = Examples(source(features=X, y=Y, id=np.arange(257)), INPUT, None, None)
    assert (rows.labels, rows.ids, list(rows.columns), rows.labelled) == ("y", "id", ["features"], True)
    assert np.array_equal(rows.take(np.array([7, 9]))["input"], X[[7, 9]])
    assert np.array_equal(rows.labels_of({"y": Y[:3]}, 0, 3), Y[:3])


def test_without_labels_they_are_missing():
    rows = Examples(source(X=X), INPUT, None, None)
    assert not rows.labelled
    assert rows.read_labels() is None
    assert np.isnan(rows.labels_of({"X": X[:3]}, 0, 3)).all()


def test_only_the_fields_that_have_a_role_are_read():
    columns = {"features": X, "age": Y, "note": Y.astype(str), "y": Y}
    assert list(Examples(source(**columns), INPUT, None, None).source.fields) == ["features", "y"]
    assert list(Examples(source(**columns), INPUT, None, None, raw=True).source.fields) == list(columns)
    assert list(Examples(source(**columns), INPUT, "age", None).source.fields) == ["features", "age"]


def test_an_input_of_the_name_of_labels_is_an_input():
    given = {"x": np.zeros((2, 4), np.float32), "y": np.zeros(2, np.int64)}
    rows = Examples(source(x=X, y=Y), given, None, None)
    assert rows.labels is None
    assert rows.take(np.arange(3))["y"].tolist() == [0, 1, 2]


def test_single_values_come_from_the_data_or_the_example():
    given = {**INPUT, "scale": np.float32(2.0), "bias": np.array(1, np.int64)}
    inputs = Examples(source(X=X, scale=np.float64(0.5)), given, None, None).take(np.arange(2))
    assert (inputs["scale"], inputs["scale"].dtype, inputs["bias"]) == (0.5, np.float32, 1)
    with pytest.raises(InputError, match="bias holds float64 and the model takes int64"):
        Examples(source(X=X, bias=np.float64(0.5)), given, None, None)
