"""What each input may hold: its dtype, its role and the range of valid values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray

from onnxproof.comparison import is_narrow_float
from onnxproof.specs import Range

Role = Literal["float", "integer", "id", "mask"]
WIDE_INTEGERS = Range(-100, 100)
"""Tried first for integers of unknown meaning; PyTorch says whether it accepts them."""
PASSED_THROUGH = {"Cast", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Identity", "Expand", "Slice"}


@dataclass(frozen=True)
class Domain:
    """One input."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    role: Role
    dims: Mapping[int, str] = field(default_factory=dict)
    valid: Range | None = None
    declared: bool = False
    """Whether the user declared the range: then nothing outside it is ever used."""
    hints: tuple[float, ...] = ()
    """Constants of the graph (limits, thresholds) that values are tried at."""
    example: NDArray[Any] | None = field(default=None, compare=False)

    def sized(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape at these sizes of the dynamic dims."""
        return tuple(sizes.get(self.dims.get(i, ""), size) for i, size in enumerate(self.shape))


def infer_domain(
    name: str,
    example: NDArray[Any],
    dims: Mapping[int, str],
    declared: Range | None,
    table: int | None,
    hints: tuple[float, ...] = (),
) -> Domain:
    """Declared beats the graph, the graph beats the example."""
    domain = Domain(name, example.dtype, example.shape, "float", dims, declared, declared is not None, hints, example)
    if example.dtype.kind == "f" or example.dtype.kind == "c" or is_narrow_float(example.dtype):
        return domain
    if example.dtype.kind == "b" or (declared is None and table is None and _looks_like_mask(name, example)):
        return replace(domain, role="mask", valid=Range(0, 1))
    if declared is not None:
        return replace(domain, role="id")
    if table is not None:
        return replace(domain, role="id", valid=Range(0, max(table - 1, 0)))
    return replace(domain, role="integer")


def _looks_like_mask(name: str, example: NDArray[Any]) -> bool:
    return "mask" in name.lower() and example.dtype.kind in "iu" and bool(np.isin(example, (0, 1)).all())


def observed(domain: Domain) -> Range:
    """The range of the example's values."""
    if domain.example is None or not domain.example.size:
        return Range(0, 1)
    return Range(float(domain.example.min()), float(domain.example.max()))


def table_sizes(model: onnx.ModelProto) -> dict[str, int]:
    """Inputs that index a table (through Gather), with the table's size."""
    shapes = _shapes(model)
    uses: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for value in node.input:
            uses.setdefault(value, []).append(node)
    return {
        value.name: size
        for value in model.graph.input
        if value.type.tensor_type.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
        and (size := _table(value.name, uses, shapes)) is not None
    }


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    for value in model.graph.value_info:
        shapes.setdefault(value.name, [d.dim_value for d in value.type.tensor_type.shape.dim])
    return shapes


def _table(name: str, uses: Mapping[str, list[onnx.NodeProto]], shapes: Mapping[str, list[int]]) -> int | None:
    found: list[int] = []
    waiting, seen = [name], {name}
    while waiting:
        value = waiting.pop()
        for node in uses.get(value, ()):
            if node.op_type == "Gather" and node.input[1] == value and node.input[0] in shapes:
                axis = next((int(a.i) for a in node.attribute if a.name == "axis"), 0)
                shape = shapes[node.input[0]]
                if -len(shape) <= axis < len(shape) and shape[axis] > 0:
                    found.append(shape[axis])
            elif node.op_type in PASSED_THROUGH and node.input[0] == value:
                waiting += [out for out in node.output if out not in seen]
                seen.update(node.output)
    return min(found, default=None)


def scalar_constants(model: onnx.ModelProto, limit: float) -> tuple[float, ...]:
    """Numbers written into the graph, such as the limits of a Clip or the threshold of a comparison."""
    tensors = [t for t in model.graph.initializer if not t.external_data]
    tensors += [a.t for n in model.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"]
    floats: set[float] = set()
    for tensor in tensors:
        if int(np.prod(tensor.dims)) == 1:
            array = onnx.numpy_helper.to_array(tensor)
            if array.dtype.kind in "fi" and np.isfinite(array).all():
                floats.add(float(array.reshape(-1)[0]))
    for node in model.graph.node:
        floats |= {float(a.f) for a in node.attribute if a.type == onnx.AttributeProto.FLOAT}
    return tuple(sorted(v for v in floats if abs(v) <= limit))[:64]
