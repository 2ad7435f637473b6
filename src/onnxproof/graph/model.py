"""An ONNX model as the lint reads it: every node with its types, without building a session and without copying weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from onnxproof.findings import Where
from onnxproof.graph import sourcemap
from onnxproof.graph.file import load_model, opset_of, real_inputs, subgraphs

HEAVY = 4096
"""Bytes above which a weight takes no part in shape inference."""


@dataclass(frozen=True)
class Graph:
    """A model, its file and what is known about the origin of its nodes."""

    path: Path
    model: onnx.ModelProto
    origins: dict[str, sourcemap.Origin] = field(default_factory=dict)

    @staticmethod
    def read(path: Path) -> Graph:
        """Read a file; the source map beside it is used where there is one."""
        return Graph(path, load_model(path, weights=False), sourcemap.read(path.with_suffix(".sourcemap.json")))

    @property
    def graph(self) -> onnx.GraphProto:
        """The main graph."""
        return self.model.graph

    @property
    def opset(self) -> int:
        """The version of the standard operators."""
        return opset_of(self.model)

    @cached_property
    def nodes(self) -> list[onnx.NodeProto]:
        """Every node, those of subgraphs and local functions included."""
        return list(_walk(self.graph.node)) + [n for f in self.model.functions for n in _walk(f.node)]

    @cached_property
    def types(self) -> dict[str, int]:
        """Value → element type, as far as inference tells."""
        return {**self._declared(self.graph), **self._declared(self._inferred)}

    @cached_property
    def shapes(self) -> dict[str, tuple[int | str | None, ...]]:
        """Value → shape, as far as inference tells."""
        values = [*self._inferred.value_info, *self._inferred.input, *self._inferred.output]
        return {v.name: _shape(v) for v in values if v.type.tensor_type.HasField("shape")}

    @cached_property
    def _inferred(self) -> onnx.GraphProto:
        light = onnx.ModelProto()
        light.CopyFrom(self.model)
        heavy = [t for t in light.graph.initializer if t.external_data or t.ByteSize() > HEAVY]
        listed = {value.name for value in light.graph.input}
        for tensor in heavy:
            if tensor.name not in listed:
                light.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
            light.graph.initializer.remove(tensor)
        try:
            return onnx.shape_inference.infer_shapes(light, data_prop=True).graph
        except Exception:
            return light.graph  # a graph that inference rejects is the checker's to tell

    @classmethod
    def _declared(cls, graph: onnx.GraphProto) -> dict[str, int]:
        inner = [g for node in graph.node for g in subgraphs(node)]
        types = {name: kind for g in inner for name, kind in cls._declared(g).items()}
        values = [*graph.input, *graph.output, *graph.value_info]
        types |= {v.name: int(v.type.tensor_type.elem_type) for v in values if v.type.HasField("tensor_type")}
        return types | {t.name: int(t.data_type) for t in graph.initializer}

    @cached_property
    def running(self) -> list[onnx.NodeProto]:
        """Every node of the graph and of the subgraphs that may be taken; local functions, whose types are not known, are left out."""
        return list(_walk(self.graph.node, self.decided))

    @cached_property
    def decided(self) -> dict[str, bool]:
        """Conditions that the file stores."""
        stored = {name: self.array(t) for name, t in self.constants() if t.data_type == onnx.TensorProto.BOOL}
        return {name: bool(array.any()) for name, array in stored.items() if array is not None and array.size == 1}

    @property
    def inputs(self) -> list[onnx.ValueInfoProto]:
        """Inputs that are not weights."""
        return real_inputs(self.graph)

    def function(self, node: onnx.NodeProto) -> onnx.FunctionProto | None:
        """The function of the file that a node calls, if it calls one."""
        return next((f for f in self.model.functions if (f.domain, f.name) == (node.domain, node.op_type)), None)

    def where(self, node: onnx.NodeProto) -> Where:
        """A node, and the module and line it comes from."""
        origin = self.origins.get(node.name, sourcemap.Origin())
        return Where(node=node.name or None, module=origin.module, file=origin.file, line=origin.line)

    def constants(self) -> Iterator[tuple[str, onnx.TensorProto]]:
        """Every tensor that the file stores: initialisers, and constants of nodes."""
        for tensor in self.graph.initializer:
            yield tensor.name, tensor
        for node in self.nodes:
            for attribute in node.attribute:
                tensor = _stored(node, attribute)
                if tensor is not None:
                    yield node.output[0] if node.output else node.name, tensor

    def array(self, tensor: onnx.TensorProto) -> NDArray[Any] | None:
        """The values of a stored tensor; None where they cannot be read."""
        try:
            return np.asarray(numpy_helper.to_array(tensor, base_dir=str(self.path.parent)))
        except Exception:
            return None


def _stored(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> onnx.TensorProto | None:
    """The tensor of an attribute; a Constant may also hold numbers."""
    if attribute.type == onnx.AttributeProto.TENSOR:
        return attribute.t
    kinds = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
    if node.op_type != "Constant" or attribute.name not in kinds:
        return None
    value = onnx.helper.get_attribute_value(attribute)
    return numpy_helper.from_array(np.array(value, kinds[attribute.name]))


def _walk(nodes: Any, decided: Mapping[str, bool] | None = None) -> Iterator[onnx.NodeProto]:
    """Nodes and those of their subgraphs, without branches that a stored condition never takes."""
    for node in nodes:
        yield node
        never = _never(node, decided or {})
        for attribute in node.attribute:
            if attribute.name != never:
                for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                    yield from _walk(graph.node, decided)


def _never(node: onnx.NodeProto, decided: Mapping[str, bool]) -> str | None:
    if node.op_type != "If" or not node.input or node.input[0] not in decided:
        return None
    return "else_branch" if decided[node.input[0]] else "then_branch"


def _shape(value: onnx.ValueInfoProto) -> tuple[int | str | None, ...]:
    return tuple(
        int(d.dim_value) if d.HasField("dim_value") else (d.dim_param or None) for d in value.type.tensor_type.shape.dim
    )
