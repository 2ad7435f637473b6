"""One view of an ONNX model: who writes a value and who uses it, what is stored, which types are known.

It is read only and stands on onnx_ir, which shares the weights of the protobuf that was read.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from onnxproof.errors import FindingError
from onnxproof.findings import Where, found
from onnxproof.graph import sourcemap
from onnxproof.graph.file import load_model
from onnxproof.graph.inference import infer, infer_shapes, infer_types
from onnxproof.graph.mending import mend
from onnxproof.graph.weights import Weights, read, separate, take_outside
from onnxproof.tensors.arrays import Array

# Numbers up to which a stored tensor is read as a constant: a limit, a condition, a shape.
SMALL = 64
# How a Constant may hold numbers without a tensor.
NUMBERS = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}


# Known by identity: graphs are keys, and comparing two would compare their protobufs.
@dataclass(frozen=True, eq=False)
class Graph:
    """A model, and the file it was read from."""

    proto: onnx.ModelProto
    """What sessions, the checker and the evaluator take."""
    path: Path = Path()
    held: Mapping[str, ir.TensorProtocol] = field(default_factory=dict)
    """Tensors that are in memory and not in the protobuf."""

    @staticmethod
    def read(path: Path) -> Graph:
        """Read a file; weights that lie in others stay there until they are asked for."""
        return Graph(load_model(path), path)

    @staticmethod
    def of(model: ir.Model) -> Graph:
        """A model in memory, as it is now; its weights are shared."""
        proto, held = take_outside(model)
        return Graph(proto, held=held)

    @cached_property
    def model(self) -> ir.Model:
        """The model as onnx_ir has it."""
        with _silence_log():
            try:
                model = _read_proto(self.proto, self.path.parent)
            except Exception:
                model = _read_mended(self.proto, self.path.parent)
        for name, tensor in self.held.items():
            model.graph.initializers[name].const_value = tensor
        return model

    @cached_property
    def separated(self) -> tuple[onnx.ModelProto, Weights]:
        """The model and its large weights, as the evaluator takes them."""
        stored = {name: v.const_value for name, v in self.main.initializers.items() if v.const_value is not None}
        return separate(self.proto, stored)

    @property
    def main(self) -> ir.Graph:
        """The main graph."""
        return self.model.graph

    @cached_property
    def nodes(self) -> Sequence[ir.Node]:
        """The nodes of the main graph, in order."""
        return tuple(self.main)

    @cached_property
    def all_nodes(self) -> Sequence[ir.Node]:
        """Every node, those of subgraphs and local functions included."""
        functions = (node for function in self.model.functions.values() for node in function.all_nodes())
        return (*self.main.all_nodes(), *functions)

    @cached_property
    def running(self) -> Sequence[ir.Node]:
        """The nodes of the graph and of the subgraphs that may be taken; local functions, whose types are not known, are left out."""
        return tuple(self._walk_running(self.main))

    def _walk_running(self, graph: ir.Graph) -> Iterator[ir.Node]:
        for node in graph:
            yield node
            never = self.never_taken(node)
            for attribute in node.attributes.values():
                for inner in list_graphs(attribute) if attribute.name != never else ():
                    yield from self._walk_running(inner)

    def never_taken(self, node: ir.Node) -> str | None:
        """The branch that an `If` never takes, because the file stores its condition."""
        if node.op_type != "If" or not node.inputs or node.inputs[0] is None:
            return None
        tensor = self.stored(node.inputs[0])
        if tensor is None or tensor.dtype != ir.DataType.BOOL or tensor.size != 1:
            return None
        array = self.array(tensor)
        return None if array is None else "else_branch" if array.any() else "then_branch"

    def function(self, node: ir.Node) -> ir.Function | None:
        """The function of the file that a node calls, if it calls one."""
        return self.model.functions.get(node.op_identifier())

    @cached_property
    def _origins(self) -> Mapping[str, sourcemap.Origin]:
        return sourcemap.read(self.path.with_suffix(".sourcemap.json")) if self.path.name else {}

    def where(self, node: ir.Node) -> Where:
        """A node, and the module and line it comes from, where a source map lies beside the file."""
        return sourcemap.place_in(self._origins, node.name or None)

    @property
    def inputs(self) -> Sequence[ir.Value]:
        """Inputs that are not weights (old files list both)."""
        return [value for value in self.main.inputs if not value.is_initializer()]

    @property
    def outputs(self) -> Sequence[ir.Value]:
        """What the graph returns."""
        return self.main.outputs

    @cached_property
    def values(self) -> Mapping[str, ir.Value]:
        """The values of the main graph by name."""
        return ir.convenience.create_value_mapping(self.main, include_subgraphs=False)

    def writer(self, name: str) -> ir.Node | None:
        """The node of the main graph that writes a value."""
        value = self.values.get(name)
        return value.producer() if value is not None else None

    def before(self, *values: ir.Value) -> set[ir.Node]:
        """The nodes of the main graph that values are computed from."""
        waiting, seen = list(values), set[ir.Node]()
        while waiting:
            node = waiting.pop().producer()
            if node is not None and node.graph is self.main and node not in seen:
                seen.add(node)
                waiting += list_taken(node)
        return seen

    @cached_property
    def unwritten(self) -> Sequence[tuple[ir.Node, str]]:
        """Nodes of the main graph and its subgraphs, and a name each reads that nothing writes."""
        sparse = {tensor.values.name for tensor in self.proto.graph.sparse_initializer}  # onnx_ir leaves them out
        read = ((node, value) for node in self.main.all_nodes() for value in node.inputs if value is not None)
        lost = ((node, v) for node, v in read if v.producer() is None and not v.is_graph_input())
        return [(n, read_name(v)) for n, v in lost if not v.is_initializer() and v.name not in sparse]

    @property
    def opset(self) -> int:
        """The version of the standard operators."""
        return self.opsets.get("", 0)

    @cached_property
    def opsets(self) -> Mapping[str, int]:
        """Domain → version."""
        # The standard's domain has two names, and a file may import both: the newer one counts.
        imports = sorted(self.model.opset_imports.items(), key=lambda one: one[1])
        return {"" if domain == "ai.onnx" else domain: int(version) for domain, version in imports}

    @cached_property
    def _inferred(self) -> onnx.GraphProto:
        return infer(self.proto)

    @cached_property
    def types(self) -> Mapping[str, int]:
        """Value → element type, as far as inference tells; those of subgraphs too."""
        return {**infer_types(self.proto.graph), **infer_types(self._inferred)}

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int | str | None, ...]]:
        """Value → shape, as far as inference tells."""
        return infer_shapes(self._inferred)

    def tensors(self) -> Iterator[tuple[str, ir.TensorProtocol]]:
        """Every tensor that the file stores: initialisers, and those of nodes."""
        for graph in self.model.graphs():
            yield from ((name, v.const_value) for name, v in graph.initializers.items() if v.const_value is not None)
        for node in self.all_nodes:
            for attribute in node.attributes.values():
                tensor = _read_tensor(node, attribute)
                if tensor is not None:
                    yield read_name(node.outputs[0]) if node.outputs else node.name or "", tensor

    def stored(self, value: ir.Value) -> ir.TensorProtocol | None:
        """The tensor that the file stores for a value: of an initialiser or a Constant."""
        node = value.producer()
        if node is None or node.op_type != "Constant":
            return value.const_value
        return next(filter(None, (_read_tensor(node, attribute) for attribute in node.attributes.values())), None)

    def constant(self, value: ir.Value) -> Array | None:
        """A stored value of few numbers, also where it comes through Identity or Cast."""
        casts: list[ir.DataType] = []
        seen: set[ir.Value] = set()
        while (before := _step_back(value)) is not None and value not in seen:
            seen.add(value)  # a file may write circles
            value, cast = before
            casts += [cast] if cast is not None else []
        tensor = self.stored(value)
        array = self.array(tensor) if tensor is not None and tensor.size <= SMALL else None
        for dtype in reversed(casts):
            array = array.astype(dtype.numpy()) if array is not None else None
        return array

    @cached_property
    def constants(self) -> Mapping[str, Array]:
        """The values of the main graph that are a few stored numbers."""
        known = ((name, self.constant(value)) for name, value in self.values.items())
        return {name: array for name, array in known if array is not None}

    @cached_property
    def scalars(self) -> Mapping[str, Array]:
        """Those that are one."""
        return {name: array.reshape(()) for name, array in self.constants.items() if array.size == 1}

    def array(self, tensor: ir.TensorProtocol) -> Array | None:
        """The values of a stored tensor; None where they cannot be read."""
        try:
            return read(tensor)
        except Exception:
            return None

    @property
    def folder(self) -> str | None:
        """Where weights lie that the protobuf does not hold."""
        outside = any(tensor.external_data for tensor in self.proto.graph.initializer)
        return str(self.path.parent.resolve()) if outside else None

    def showing(self, wanted: Sequence[str], *, besides: bool = False) -> bytes:
        """The model as a session takes it, with these values as its outputs (or besides its own)."""
        shown = copy.deepcopy(self.proto)
        if not besides:
            del shown.graph.output[:]  # what they do not need is left out by onnxruntime
        # Without a type: onnxruntime infers it, also where our own inference does not know it.
        shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
        return bytes(shown.SerializeToString())

    def piece(self, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]) -> ir.Model:
        """What lies between values, with the weights it uses, as a model of its own."""
        cut = ir.convenience.extract(self.main, inputs, outputs)
        for value in cut.inputs:
            kind, shape = self.types.get(read_name(value)), self.shapes.get(read_name(value))
            value.type = ir.TensorType(ir.DataType(kind)) if kind else value.type
            value.shape = ir.Shape(shape) if shape is not None else value.shape
        for value in cut.initializers.values():
            stored = value.const_value
            if stored is not None:  # the piece may be renamed; what it was cut from stays as it is
                value.const_value = ir.tensor(stored.numpy(), dtype=stored.dtype, name=value.name)
        return ir.Model(cut, ir_version=self.model.ir_version, functions=[*self.model.functions.values()])


def label_node(node: ir.Node) -> str:
    """What a node is called: its name, or that of its first result."""
    return node.name or (read_name(node.outputs[0]) if node.outputs else "")


def read_name(value: ir.Value | None) -> str:
    """The name of a value; empty for one that is left out."""
    return value.name or "" if value is not None else ""


def list_names(values: Sequence[ir.Value | None]) -> list[str]:
    """The names of values, without those that are left out."""
    return [value.name for value in values if value is not None and value.name]


def list_subgraphs(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs that a node holds: branches and bodies of loops."""
    for attribute in node.attributes.values():
        yield from list_graphs(attribute)


def list_taken(node: ir.Node) -> Iterator[ir.Value]:
    """What a node reads, its subgraphs included."""
    yield from (value for value in node.inputs if value is not None)
    for graph in list_subgraphs(node):
        for inner in graph:
            yield from list_taken(inner)


def read_dims(value: ir.Value) -> tuple[int | str | None, ...] | None:
    """A declared shape: numbers, names, and None for sizes without a name."""
    return None if value.shape is None else tuple(d if isinstance(d, int) else d.value for d in value.shape)


def list_graphs(attribute: ir.Attr) -> Sequence[ir.Graph]:
    """The graphs that an attribute holds."""
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.value]
    return attribute.value if attribute.type == ir.AttributeType.GRAPHS else ()


def _read_tensor(node: ir.Node, attribute: ir.Attr) -> ir.TensorProtocol | None:
    """The tensor of an attribute; a Constant may also hold numbers."""
    if attribute.is_ref():
        return None  # an argument of the function that the node stands in
    if attribute.type == ir.AttributeType.TENSOR:
        tensor: ir.TensorProtocol = attribute.value
        try:
            return tensor if tensor.dtype != ir.DataType.UNDEFINED else None
        except ValueError:
            return None  # a number that stands for no type
    if node.op_type != "Constant" or attribute.name not in NUMBERS:
        return None
    return ir.tensor(np.array(attribute.value, NUMBERS[attribute.name]))


def _step_back(value: ir.Value) -> tuple[ir.Value, ir.DataType | None] | None:
    """What Identity or Cast makes a value of, and the type that it is cast to."""
    node = value.producer()
    if node is None or node.op_type not in ("Identity", "Cast") or not node.inputs or node.inputs[0] is None:
        return None
    to = node.attributes.get("to")
    return node.inputs[0], ir.DataType(to.value) if to is not None and not to.is_ref() else None


def _read_proto(proto: onnx.ModelProto, folder: Path) -> ir.Model:
    model: ir.Model = ir.from_proto(proto)
    ir.external_data.set_base_dir(model.graph, folder)
    return model


def _read_mended(proto: onnx.ModelProto, folder: Path) -> ir.Model:
    try:
        return _read_proto(mend(proto), folder)
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise FindingError(found("OX306", f"the graph cannot be read: {cause}", severity="review")) from error


@contextmanager
def _silence_log() -> Iterator[None]:
    """onnx_ir tells of a broken file in log lines; the lint tells it in findings."""
    log = logging.getLogger("onnx_ir")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
