"""What the graph says about its inputs: which are ids of a table, masks, lengths or images, and which constants matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx

PASSED_THROUGH = {"Cast", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Identity", "Expand", "Slice"}
COMPARISONS = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"}
SIZED = {"Range", "Tile", "Expand", "ConstantOfShape", "Reshape", "Resize", "Loop", "OneHot", "Pad", "Slice"}
"""Operations whose later inputs are sizes or counts: a huge integer there asks for huge memory."""


@dataclass(frozen=True)
class Use:
    """How one input is used, as far as the graph tells."""

    table: int | None = None
    """The size of the table that it indexes."""
    selects: bool = False
    """It decides a Where, or is compared with zero or one and decides then."""
    compared: bool = False
    """It is compared as a number: the sign of a length."""
    convolved: bool = False
    added_before_softmax: bool = False
    sizes: bool = False
    """It (or what is computed from it) says how large something is."""


class Graph:
    """Who consumes what."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.shapes = _shapes(model)
        self._uses: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
        for node in model.graph.node:
            for place, value in enumerate(node.input):
                self._uses.setdefault(value, []).append((node, place))

    def use(self, name: str) -> Use:
        """How an input is used."""
        direct = list(self.consumers(name, PASSED_THROUGH))
        tables = [size for node, place in direct if (size := self._table(node, place)) is not None]
        after = {"Equal", "Not", "And", "Or", "Sub", "Mul", *PASSED_THROUGH}
        return Use(
            table=min(tables, default=None),
            selects=any(node.op_type == "Where" and place == 0 for node, place in self.consumers(name, after)),
            compared=any(node.op_type in COMPARISONS for node, _ in direct),
            convolved=any(node.op_type == "Conv" and place == 0 for node, place in direct),
            added_before_softmax=self._added_before_softmax(direct),
            sizes=any(self._sizes(node, place) for node, place in self.consumers(name, None)),
        )

    def consumers(self, name: str, through: set[str] | None) -> Iterator[tuple[onnx.NodeProto, int]]:
        """Nodes that take the value, directly or through such operations (None: through anything)."""
        waiting, seen = [name], {name}
        while waiting:
            value = waiting.pop()
            for node, place in self._uses.get(value, ()):
                yield node, place
                if through is None or node.op_type in through:
                    waiting += [out for out in node.output if out not in seen]
                    seen.update(node.output)

    def _table(self, node: onnx.NodeProto, place: int) -> int | None:
        if node.op_type != "Gather" or place != 1 or node.input[0] not in self.shapes:
            return None
        axis = next((int(a.i) for a in node.attribute if a.name == "axis"), 0)
        shape = self.shapes[node.input[0]]
        return shape[axis] if -len(shape) <= axis < len(shape) and shape[axis] > 0 else None

    def _added_before_softmax(self, direct: list[tuple[onnx.NodeProto, int]]) -> bool:
        added = [out for node, _ in direct if node.op_type == "Add" for out in node.output]
        return any(node.op_type == "Softmax" for value in added for node, _ in self.consumers(value, PASSED_THROUGH))

    @staticmethod
    def _sizes(node: onnx.NodeProto, place: int) -> bool:
        return node.op_type in SIZED and (place > 0 or node.op_type in ("Range", "ConstantOfShape"))


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    for value in model.graph.value_info:
        shapes.setdefault(value.name, [d.dim_value for d in value.type.tensor_type.shape.dim])
    return shapes


def uses(model: onnx.ModelProto) -> Mapping[str, Use]:
    """Every input of the graph and how it is used."""
    graph = Graph(model)
    return {value.name: graph.use(value.name) for value in model.graph.input}


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
