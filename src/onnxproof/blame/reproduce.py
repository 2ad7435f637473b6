"""One culprit alone: a model of one node, its true inputs, and a script that shows what it should say and what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np
import onnx_ir as ir

from onnxproof.blame.store import Values
from onnxproof.errors import NotWritten
from onnxproof.files import replacing, write_file
from onnxproof.graph.view import Graph, label_node, list_names, list_subgraphs, read_name
from onnxproof.proof.blame import Culprit
from onnxproof.tensors.arrays import Array

# Culprits that are reproduced.
REPRODUCED = 3
# What a script is run with, where it does not matter which release it is.
NEEDS = "pip install numpy onnxruntime"


class NotAlone(Exception):
    """The node cannot stand alone."""


def reproduce_culprits(
    graph: Graph, culprits: Sequence[Culprit], truth: Values, fed: Values, folder: Path | None, needs: str = NEEDS
) -> tuple[Culprit, ...]:
    """The culprits, the first ones with a model of one node each, ready to be attached to a report."""
    if folder is None:
        return tuple(culprits)
    first = [
        replace(one, reproduction=_attempt(graph, one, truth, fed, folder, needs)) for one in culprits[:REPRODUCED]
    ]
    return (*first, *culprits[REPRODUCED:])


def _attempt(graph: Graph, culprit: Culprit, truth: Values, fed: Values, folder: Path, needs: str) -> str | None:
    if culprit.value is None or culprit.value not in truth:
        return None
    # A reproduction is an extra: a full disk must not cost the blame.
    with suppress(NotAlone, NotWritten, OSError, ValueError, TypeError):
        return str(reproduce(graph, culprit.node, culprit.value, fed, truth[culprit.value], folder, needs))
    return None


def reproduce(
    graph: Graph, node_name: str, value: str, known: Values, expected: Array, folder: Path, needs: str = NEEDS
) -> Path:
    """Write node.onnx, values.npz and reproduce.py into a folder of the node's own; raises `NotAlone`."""
    node = next((n for n in graph.nodes if label_node(n) == node_name and value in list_names(n.outputs)), None)
    if node is None or next(list_subgraphs(node), None) is not None:
        raise NotAlone(f"{node_name} is no node of the main graph, or holds a subgraph")
    inputs = [v for v in dict.fromkeys(node.inputs) if v is not None and not v.is_initializer()]
    unknown = [name for name in list_names(inputs) if name not in known]
    if unknown:
        raise NotAlone(f"the value {unknown[0]} is not known")
    alone = graph.piece(inputs, [graph.values[value]])
    answer = _narrow(expected, graph.types.get(value))
    fed = [_narrow(known[name], graph.types.get(name)) for name in list_names(inputs)]
    feeds = _rename_values(alone.graph, fed, answer)
    # Exporters put slashes into names of nodes.
    target = folder / (re.sub(r"[^A-Za-z0-9_.-]+", "_", node_name)[:100].strip("_.") or "node")
    with replacing(target / "node.onnx") as half:
        ir.save(alone, half)
    with replacing(target / "values.npz") as half, half.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **feeds, expected=answer)
    script = Template(files("onnxproof.blame").joinpath("templates/reproduce.py.txt").read_text(encoding="utf-8"))
    # As a literal: a node's name must not become code.
    title = repr(f"{node.op_type} node {node_name}")
    write_file(target / "reproduce.py", script.substitute(title=title, needs=needs))
    return target


def _rename_values(alone: ir.Graph, fed: Sequence[Array], answer: Array) -> dict[str, Array]:
    """Give the values of a graph of one node plain names, and the types of what is fed; what is fed, by these names."""
    (node,) = alone
    for i, output in enumerate(node.outputs):
        if output.name:
            output.name = "result" if output.is_graph_output() else f"other_{i}"
    for i, value in reversed([*enumerate(node.inputs)]):  # what is read twice has the name of its first place
        if value is not None:
            value.name = f"input_{i}"
    for value, array in zip(alone.inputs, fed, strict=True):
        value.type, value.shape = _make_type(array), ir.Shape(array.shape)
    (result,) = alone.outputs
    result.type, result.shape = _make_type(answer), None
    return {read_name(value): array for value, array in zip(alone.inputs, fed, strict=True)}


def _make_type(array: Array) -> ir.TensorType:
    return ir.TensorType(ir.DataType.from_numpy(array.dtype))


def _narrow(array: Array, dtype: int | None) -> Array:
    """A float64 truth in the dtype that the graph has there; what is unknown is taken for float32."""
    if dtype:
        return array.astype(ir.DataType(dtype).numpy())
    return array.astype(np.float32) if array.dtype == np.float64 else array
