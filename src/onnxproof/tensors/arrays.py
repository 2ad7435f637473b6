"""Named arrays, the form in which every value crosses a seam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Arrays = Mapping[str, Array]


def is_narrow_float(dtype: np.dtype[Any]) -> bool:
    """bfloat16 and the float8 family, which numpy itself knows only as void types."""
    return "float" in dtype.name and dtype.kind == "V"
