"""The user's own objects: what is all of the data, what is a batch, what is a single example."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from data.written import X, Y
from onnxproof.data.iterables import make_table, open_object
from onnxproof.errors import InputError


def opened(value):
    return open_object(value, "t.py:name", "--data t.py:name")


@pytest.mark.parametrize(
    ("batch", "shapes"),
    [
        ({"a": X[:3], "b": torch.zeros(3)}, {"a": (3, 4), "b": (3,)}),
        ({"a": X[0], "b": 1}, {"a": (1, 4), "b": (1,)}),
        ((X[:3], Y[:3]), {"X": (3, 4), "labels": (3,)}),
        ([torch.tensor(X[0]), 2], {"X": (1, 4), "labels": (1,)}),
        ((X[:3], X[:3], X[:3]), {"X": (3, 4), "X1": (3, 4), "X2": (3, 4)}),
        (({"a": X[:3]}, Y[:3]), {"a": (3, 4), "labels": (3,)}),
        (torch.tensor(X[:3], requires_grad=True), {"X": (3, 4)}),
        (X[:3].tolist(), {"X": (3, 4)}),
    ],
)
def test_batches(batch, shapes):
    assert {name: array.shape for name, array in make_table(batch).items()} == shapes


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ({"a": X, "b": Y, "c": 0.5}, ("a", "b")),
        ((X, Y), ("X", "labels")),
        ([X, Y], ("X", "labels")),
        ((X, X, X), ("X", "X1", "X2")),
        (X, ("X",)),
        (lambda: torch.tensor(X), ("X",)),
    ],
)
def test_arrays_are_all_of_the_data(value, fields):
    source = opened(value)
    assert (tuple(source.fields), source.rows, source.sequential) == (fields, 257, False)


def test_a_list_of_arrays_is_a_list_of_batches():
    source = opened([X[:100], X[100:200], X[200:]])
    assert source.sequential
    assert source.count() == 257


def broken():
    yield {"X": X[:4]}
    raise OSError("disk\ngone")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "is a int; expected arrays, batches or a torch data set"),
        ([], "gives no batch"),
        (iter([X]), "is an iterator, which can be read once: give a function"),
        (broken, "t.py:name raised OSError: disk gone"),
        (lambda: 1 / 0, "t.py:name raised ZeroDivisionError"),
        ({1: X, "1": X}, "several fields of the name '1'"),
    ],
)
def test_what_is_no_data_is_told(value, message):
    with pytest.raises(InputError, match=message):
        opened(value).count()


def test_a_batch_without_a_field_of_the_first_is_told():
    with pytest.raises(InputError, match="cannot be read: KeyError: 'b'"):
        list(opened([{"a": X, "b": Y}, {"a": X}]).read(0, None, 9))


def test_data_sets_of_torch_are_read_in_batches():
    class Squares(torch.utils.data.Dataset):
        def __len__(self):
            return 300

        def __getitem__(self, i):
            return torch.full((2,), i), i * i

    source = opened(Squares())
    assert source.rows == 300
    assert np.concatenate([t["labels"] for t in source.read(250, 300, 16)]).tolist() == [i * i for i in range(250, 300)]
