"""What the graph says about its inputs: which are ids of a table, masks, lengths or images, and which constants matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxproof.graph.view import Graph, read_dims, read_name
from onnxproof.tensors.arrays import Array

PASSED_THROUGH = {"Cast", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Identity", "Expand", "Slice"}
COMPARISONS = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"}
# Operations whose later inputs are sizes or counts: a huge integer there asks for huge memory.
SIZED = {"Range", "Tile", "Expand", "ConstantOfShape", "Reshape", "Resize", "Loop", "OneHot", "Pad", "Slice"}
# Those whose first input is one too.
ALL_SIZES = {"Range", "ConstantOfShape"}
# Operations that tell how large a value is, and nothing of its numbers.
MEASURED = {"Shape", "Size"}
# Constants beyond stand for no end at all, and a list of more numbers is a weight.
LARGEST, MOST_BORDERS = 2.0**31, 32


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


def find_uses(graph: Graph) -> Mapping[str, Use]:
    """Every input of the graph and how it is used."""
    return {read_name(value): _find_use(value) for value in graph.main.inputs}


def _find_use(value: ir.Value) -> Use:
    direct = list(_list_consumers(value, PASSED_THROUGH))
    tables = [size for node, place in direct if (size := _measure_table(node, place)) is not None]
    after = {"Equal", "Not", "And", "Or", "Sub", "Mul", *PASSED_THROUGH}
    added = [out for node, _ in direct if node.op_type == "Add" for out in node.outputs]
    # Another mask or a bias of positions may be added behind it.
    past = (node for out in added for node, _ in _list_consumers(out, {"Add", *PASSED_THROUGH}))
    return Use(
        # An id that is looked up in several tables must be in the smallest.
        table=min(tables, default=None),
        selects=any(node.op_type == "Where" and place == 0 for node, place in _list_consumers(value, after)),
        compared=any(node.op_type in COMPARISONS for node, _ in direct),
        convolved=any(node.op_type == "Conv" and place == 0 for node, place in direct),
        added_before_softmax=any(node.op_type == "Softmax" for node in past),
        sizes=any(n.op_type in SIZED and (p > 0 or n.op_type in ALL_SIZES) for n, p in _list_consumers(value, None)),
    )


def _list_consumers(value: ir.Value, through: set[str] | None) -> Iterator[tuple[ir.Node, int]]:
    """Nodes that take the value, directly or through such operations (None: through anything that its numbers go through)."""
    waiting, seen = [value], {value}
    while waiting:
        for node, place in waiting.pop().uses():
            yield node, place
            if node.op_type in through if through is not None else node.op_type not in MEASURED:
                waiting += [out for out in node.outputs if out not in seen]
                seen.update(node.outputs)


def _measure_table(node: ir.Node, place: int) -> int | None:
    """The size of a stored or computed table that is looked up by ids."""
    table = node.inputs[0]
    given = table is not None and table.is_graph_input() and table.const_value is None
    if node.op_type != "Gather" or place != 1 or table is None or given:
        return None
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    shape = read_dims(table) or ()
    size = shape[axis] if -len(shape) <= axis < len(shape) else None
    return size if isinstance(size, int) and size > 0 else None


def find_constants(graph: Graph) -> tuple[float, ...]:
    """Numbers written into the graph, such as the limits of a Clip, the threshold of a comparison, or a list of borders."""
    stored = {float(n) for n in graph.scalars.values() if n.dtype.kind in "fi" and np.isfinite(n)}
    attributes = (attribute for node in graph.nodes for attribute in node.attributes.values())
    floats = {a.as_float() for a in attributes if a.type == ir.AttributeType.FLOAT and not a.is_ref()}
    borders = {float(n) for value in graph.constants.values() if _is_rising(value) for n in value}
    return tuple(sorted((v for v in stored | floats | borders if abs(v) <= LARGEST), key=abs))[:64]


def _is_rising(value: Array) -> bool:
    """Whether it is a short list that rises, and does not just count: what lies between two of its numbers is treated alike."""
    if value.ndim != 1 or not 1 < value.size <= MOST_BORDERS or value.dtype.kind not in "fi":
        return False
    steps = np.diff(value.astype(np.float64))
    return bool(np.isfinite(steps).all() and (steps > 0).all() and not (steps == 1).all())
