"""torch tensors ↔ numpy arrays, bit for bit, bfloat16 and float8 included."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch
from numpy.typing import NDArray

# Types numpy does not have: the same bytes seen as integers on the way.
NARROW: dict[torch.dtype, tuple[torch.dtype, Any, Any]] = {
    torch.bfloat16: (torch.int16, np.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, np.uint8, ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: (torch.uint8, np.uint8, ml_dtypes.float8_e5m2),
}


def to_numpy(tensor: torch.Tensor, *, copy: bool = True) -> NDArray[Any]:
    """A copy of the tensor's values that nothing else refers to; without `copy` the values themselves where they can be had."""
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.dtype in NARROW:
        seen, _, dtype = NARROW[tensor.dtype]
        return (
            np.ascontiguousarray(tensor.detach().cpu().contiguous().view(seen).numpy())
            .view(dtype)
            .copy()
            .reshape(tensor.shape)
        )
    array = tensor.numpy(force=True)
    return np.array(array, copy=True, order="C") if copy else np.asarray(array, order="C")


def to_torch(array: NDArray[Any]) -> torch.Tensor:
    """A tensor of its own with the array's values."""
    for dtype, (_, seen, narrow) in NARROW.items():
        if array.dtype == narrow:
            return torch.from_numpy(np.array(array, copy=True).view(seen)).view(dtype)
    return torch.from_numpy(np.array(array, copy=True, order="C"))
