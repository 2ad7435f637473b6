"""torch tensors ↔ numpy arrays, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from onnxproof.tensors.arrays import is_narrow_float
from onnxproof.tensors.conversion import to_numpy, to_torch

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex64,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_there_and_back(dtype):
    tensor = torch.tensor([[0.0, 1.5], [-2.0, 0.25]]).to(dtype)
    array = to_numpy(tensor)
    again = to_torch(array)
    assert (again.dtype, array.shape) == (dtype, (2, 2))
    assert bytes(again.untyped_storage()) == bytes(tensor.untyped_storage())


def test_nothing_is_shared_and_views_are_resolved():
    tensor = torch.arange(6.0).reshape(2, 3)
    array = to_numpy(tensor.T)
    tensor.zero_()
    assert array.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert to_numpy(torch.tensor([1 + 2j]).conj()).tolist() == [1 - 2j]
    assert to_numpy(torch.eye(2).to_sparse()).tolist() == [[1, 0], [0, 1]]
    given = np.zeros(2)
    to_torch(given).add_(1)
    assert given.tolist() == [0, 0]


def test_what_numpy_knows_as_void_types_only():
    narrow = [dtype for dtype in DTYPES if is_narrow_float(to_numpy(torch.zeros(1).to(dtype)).dtype)]
    assert narrow[:2] == [torch.bfloat16, torch.float8_e4m3fn]
    assert not {torch.float16, torch.float32, torch.int64, torch.bool} & set(narrow)


def test_a_single_narrow_number():
    assert float(to_numpy(torch.tensor(1.5, dtype=torch.bfloat16))) == 1.5
