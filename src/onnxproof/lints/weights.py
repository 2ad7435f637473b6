"""The stored tensors of an ONNX file: doubles, giants, widths, values that are no numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from onnxproof.findings import Finding, Severity, found
from onnxproof.graph.view import Graph
from onnxproof.tensors.arrays import Array

# Elements from which a stored tensor counts as a weight.
MANY = 1024
# Bytes from which a repeated value is worth a word.
GIANT = 1_000_000
FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16})
DENORMAL_SHARE = 0.01
# Denormal numbers cost time, not truth.
SLOW: Severity = "note"


def lint_weights(graph: Graph) -> list[Finding]:
    """One pass over the stored tensors."""
    seen: dict[tuple[Any, ...], list[tuple[str, ir.TensorProtocol]]] = defaultdict(list)
    notes: dict[str, list[str]] = defaultdict(list)
    wasted = 0
    for name, tensor in graph.tensors():
        array = graph.array(tensor)
        if array is None or not array.size:
            continue
        if array.size >= MANY:
            # Few tensors begin alike: only those are read as a whole, and again.
            alike = seen[array.dtype, array.shape, array.ravel()[:MANY].tobytes()]
            first = next(
                (one for one, other in alike if np.array_equal(_view_bits(graph.array(other)), _view_bits(array))), None
            )
            if first is not None:
                notes["twice"].append(f"{name} = {first}")
                wasted += array.nbytes
            alike.append((name, tensor))
        _remark(name, tensor, array, notes)
    return _tell_notes(graph, notes, wasted)


def _remark(name: str, tensor: ir.TensorProtocol, array: Array, notes: dict[str, list[str]]) -> None:
    if array.nbytes >= GIANT and _repeats(array):
        notes["giants"].append(f"{name} {list(array.shape)} {array.nbytes / 1e6:.1f} MB")
    if tensor.dtype == ir.DataType.DOUBLE:
        notes["wide"].append(name)
    if tensor.dtype == ir.DataType.INT64 and _exceeds_int32(array):
        notes["integers"].append(name)
    # A single NaN or infinity is a value that the model fills in; among others it is a weight that went wrong.
    if tensor.dtype in FLOATS and array.size > 1 and not np.isfinite(array).all():
        finite = array[np.isfinite(array)]
        if np.isnan(array).any():
            notes["nan"].append(name)
        elif (finite != finite[:1]).any():  # a mask of zeros and −inf is no accident
            notes["infinite"].append(name)
    if tensor.dtype in FLOATS and array.dtype.kind == "f" and array.size >= MANY:
        tiny = np.finfo(array.dtype).tiny
        if np.count_nonzero((array != 0) & (np.abs(array) < tiny)) > DENORMAL_SHARE * array.size:
            notes["denormal"].append(name)


def _view_bits(array: Array | None) -> NDArray[np.uint8]:
    """NaN equals NaN here."""
    return np.frombuffer(b"" if array is None else array.tobytes(), np.uint8)


def _repeats(array: Array) -> bool:
    """One value everywhere, or one slice repeated along a dimension."""
    return any(
        array.shape[axis] > 1 and bool((array == np.take(array, [0], axis=axis)).all()) for axis in range(array.ndim)
    )


def _exceeds_int32(array: Array) -> bool:
    """Values that 32 bits do not hold; the largest and smallest int64 mean "to the end" in slices."""
    limits = np.iinfo(np.int64)
    real = array[(array < limits.max - 1) & (array > limits.min + 1)]
    return bool(((real > 2**31 - 1) | (real < -(2**31))).any())


def _tell_notes(graph: Graph, notes: dict[str, list[str]], wasted: int) -> list[Finding]:
    wide = notes["wide"] if all(value.dtype != ir.DataType.DOUBLE for value in graph.inputs) else []
    return [
        *_tell_tensors("OX314", notes["twice"], f"{wasted / 1e6:.1f} MB of weights are stored twice"),
        *_tell_tensors("OX315", notes["giants"], "one value or one slice, repeated"),
        *_tell_tensors("OX316", wide, "stored tensors are float64"),
        *_tell_tensors("OX319", notes["integers"], "stored integers are beyond 32 bits"),
        *_tell_tensors("OX320", notes["nan"], "NaN among the weights", values="nan"),
        *_tell_tensors("OX320", notes["infinite"], "infinity among the weights", values="infinite"),
        *_tell_tensors("OX320", notes["denormal"], "many denormal numbers among the weights", SLOW, values="denormal"),
    ]


def _tell_tensors(
    code: str, names: list[str], what: str, severity: Severity | None = None, **facts: str
) -> Iterator[Finding]:
    """The finding about some stored tensors, if there are any."""
    if names:
        evidence = {"tensors": names[:50], "count": len(names), **facts}
        yield found(code, f"{what}: {', '.join(names[:3])}", severity=severity, evidence=evidence)
