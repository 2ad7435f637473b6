"""Which field is what."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from onnxproof.data.fields import choose_fields, describe_columns, find_field, select_inputs
from onnxproof.errors import InputError

N, V, T = "number", "vector", "other"


@pytest.mark.parametrize(
    ("fields", "inputs", "chosen"),
    [
        ({"a": N, "b": V, "c": T}, ["b", "a"], {"b": ("b",), "a": ("a",)}),
        ({"X": V}, ["input"], {"input": ("X",)}),
        ({"anything": V}, ["input"], {"input": ("anything",)}),
        ({"extra": V, "data": V}, ["input"], {"input": ("data",)}),
        ({"features": V, "age": N, "note": T}, ["input"], {"input": ("features",)}),
        ({"a": N, "note": T, "b": N}, ["input"], {"input": ("a", "b")}),
        ({"x": N, "z": N}, ["input"], {"input": ("x", "z")}),
    ],
)
def test_inputs_are_found(fields, inputs, chosen):
    assert choose_fields(fields, inputs, "--data") == chosen


@pytest.mark.parametrize(
    ("fields", "inputs", "message"),
    [
        ({"a": V, "b": V}, ["input"], "--data has no array for the input 'input'; it has 'a', 'b'"),
        ({"a": N}, ["a", "b"], "no array for the input 'b'; it has 'a'"),
        ({"other": N, "more": N}, ["a", "b"], "no array for the input 'b'"),
        ({}, ["input"], "no array for the input 'input'; it has none"),
        ({"a": N}, [], "no input of the model has rows"),
    ],
)
def test_inputs_that_are_not_there_are_told(fields, inputs, message):
    with pytest.raises(InputError, match=message):
        choose_fields(fields, inputs, "--data")


def example(dtype="f4", rank=2):
    return np.zeros((2,) * rank, dtype)


@pytest.mark.parametrize(
    ("dtype", "given", "kind"),
    [
        (np.float32, [[0.1, 0.2]], "f8"),
        (np.float64, [[0.1, 0.2]], "f8"),
        (np.int64, [[1.0, 2.0]], "f8"),
        (bool, [[1, 0]], "i8"),
        (ml_dtypes.bfloat16, [[0.5, 2.0]], "f4"),
        (np.float32, [[1, 2]], "u1"),
    ],
)
def test_values_come_in_the_dtype_of_the_model(dtype, given, kind):
    values = select_inputs({"X": np.array(given, kind)}, {"input": example(dtype)})["input"]
    assert values.dtype == dtype
    assert np.array_equal(values, np.array(given, kind).astype(dtype))


@pytest.mark.parametrize(
    ("dtype", "given", "message"),
    [
        (np.int64, [[0.5]], "X holds float64 and the model takes int64: convert it first, values would be lost"),
        (np.int64, [[np.nan]], "has missing values"),
        (np.int8, [[300]], "values would be lost"),
        (np.float32, [["a"]], "holds <U1"),
    ],
)
def test_values_are_never_lost(dtype, given, message):
    with pytest.raises(InputError, match=message):
        select_inputs({"X": np.array(given)}, {"X": example(dtype)})


def test_columns_become_vectors_without_rounding_on_the_way():
    table = {"a": np.array([1, 2]), "b": np.array([0.1, 0.2]), "c": np.array([True, False])}
    assert select_inputs(table, {"input": example("f8")})["input"].tolist() == [[1, 0.1, 1], [2, 0.2, 0]]


def test_one_column_is_what_the_model_takes():
    column = {"age": np.array([1.0, 2.0])}
    assert select_inputs(column, {"age": example(rank=1)})["age"].shape == (2,)
    assert select_inputs(column, {"age": example(rank=2)})["age"].shape == (2, 1)
    assert select_inputs(column, {"input": example(rank=2)})["input"].shape == (2, 1)


def test_rows_are_as_many_for_every_input():
    with pytest.raises(InputError, match=r"different numbers of rows, or none: {'a': 2, 'b': 3}"):
        select_inputs({"a": np.zeros(2), "b": np.zeros(3)}, {"a": example(rank=1), "b": example(rank=1)})


def test_a_field_is_found_by_its_usual_name_unless_it_is_an_input():
    assert find_field(["x", "label", "y"], None, ("labels", "y", "label"), ["x"], "--labels") == "y"
    assert find_field(["x", "label", "y"], None, ("labels", "y", "label"), ["y"], "--labels") == "label"
    assert find_field(["x"], None, ("y",), [], "--labels") is None
    assert find_field(["x", "kind"], "kind", ("y",), [], "--labels") == "kind"
    with pytest.raises(InputError, match="--labels: the data have no field 'kind'; they have 'x'"):
        find_field(["x"], "kind", ("y",), [], "--labels")


def test_columns_are_told():
    assert describe_columns({"a": N, "b": N, "note": T}) == "; its columns are 'a', 'b', left out are 'note'"
    assert describe_columns({"a": N}) == ""
    assert "'f11', '…', 'f26'" in describe_columns({f"f{i}": N for i in range(30)})
