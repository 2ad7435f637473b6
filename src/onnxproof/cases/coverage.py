"""How far the generated values reach, compared with the user's data: a gap should be visible."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from onnxproof.proof.search import Coverage
from onnxproof.tensors.arrays import Array, Floats

BINS = 64


def sort_finite(arrays: Iterable[Array]) -> Floats:
    """All finite values of some arrays, sorted."""
    values = [np.asarray(array, np.float64).ravel() for array in arrays]
    joined = np.concatenate(values) if values else np.zeros(0)
    return np.sort(joined[np.isfinite(joined)])


def cover(data: Array, generated: Floats) -> Coverage:
    """The data's range, the generated range, and the share of the data that lies in cells where generated values lie too.

    Cells split the data's range evenly: values beyond the generated range and gaps inside it both count as not covered.
    """
    values = sort_finite([data])
    if not values.size or not generated.size:
        return Coverage()
    low, high = float(values[0]), float(values[-1])
    edges = np.linspace(low, high, BINS + 1) if high > low else np.array([low, np.nextafter(low, np.inf)])
    there, _ = np.histogram(generated, bins=edges)
    counts, _ = np.histogram(values, bins=edges)
    share = float(counts[there > 0].sum() / counts.sum())
    return Coverage(share, low, high, float(generated[0]), float(generated[-1]))
