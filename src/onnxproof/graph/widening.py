"""The ONNX graph itself in float64, and with its derived constants moved a little.

Every tensor of a model is written anew here, which is what protobufs are best at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
import onnx.inliner
from numpy.typing import NDArray

NARROW = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
LOSSY = {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
EXPANDED = {"GroupNormalization", "HardSwish", "MeanVarianceNormalization", "Mish"}
DTYPE_ATTRIBUTES = {"to", "dtype", "output_dtype"}


def in_float64(array: NDArray[Any]) -> NDArray[Any]:
    """A float array in float64; any other as it is."""
    return array.astype(np.float64) if array.dtype.kind == "f" or "float" in array.dtype.name else array


def widen(model: onnx.ModelProto, *, keep_lossy_casts: bool) -> onnx.ModelProto:
    """The same graph with every float tensor in float64.

    With `keep_lossy_casts`, a cast to float16 or bfloat16 still loses digits: right for a module that has no such cast.
    """
    wide = _with_visible_constants(model)
    _widen_graph(wide.graph, keep_lossy_casts)
    for function in wide.functions:
        _widen_nodes(function.node, keep_lossy_casts)
    return wide


def _with_visible_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy with the operators written out that the evaluator would expand itself, with float32 constants inside."""
    if not any(node.op_type in EXPANDED for node in model.graph.node):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy
    functions = [("", name) for name in sorted(EXPANDED)]
    return onnx.inliner.inline_selected_functions(model, functions, inline_schema_functions=True)


def _widen_graph(graph: onnx.GraphProto, keep_lossy: bool) -> None:
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type in NARROW:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    _widen_nodes(graph.node, keep_lossy)


def _widen_nodes(nodes: Any, keep_lossy: bool) -> None:
    added: list[tuple[int, onnx.NodeProto]] = []
    for i, node in enumerate(nodes):
        lossy = keep_lossy and node.op_type == "Cast" and any(a.name == "to" and a.i in LOSSY for a in node.attribute)
        if lossy:
            result = node.output[0]
            node.output[0] = f"{result}/narrow"
            back = onnx.helper.make_node("Cast", [node.output[0]], [result], name=node.name, to=onnx.TensorProto.DOUBLE)
            added.append((i + 1, back))
            continue
        for attribute in node.attribute:
            _widen_attribute(attribute, keep_lossy)
        _widen_default(node)
    for place, node in reversed(added):
        nodes.insert(place, node)


def _widen_attribute(attribute: onnx.AttributeProto, keep_lossy: bool) -> None:
    if attribute.type == onnx.AttributeProto.TENSOR:
        _widen_tensor(attribute.t)
    elif attribute.type == onnx.AttributeProto.GRAPH:
        _widen_graph(attribute.g, keep_lossy)
    elif attribute.name in DTYPE_ATTRIBUTES and attribute.i in NARROW:
        attribute.i = onnx.TensorProto.DOUBLE


def _widen_default(node: onnx.NodeProto) -> None:
    """Constants that are float32 without saying so."""
    if node.op_type == "ConstantOfShape" and not node.attribute:
        zero = onnx.numpy_helper.from_array(np.zeros(1))
        node.attribute.append(onnx.helper.make_attribute("value", zero))
    elif node.op_type == "Constant" and node.attribute[0].name in ("value_float", "value_floats"):
        given = node.attribute[0]
        array = np.float64(given.f) if given.name == "value_float" else np.array(given.floats, dtype=np.float64)
        del node.attribute[:]
        node.attribute.append(onnx.helper.make_attribute("value", onnx.numpy_helper.from_array(np.asarray(array))))


def _widen_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type in NARROW:
        array = onnx.numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))


def digest(array: NDArray[Any]) -> bytes:
    """What a weight holds, whatever its name."""
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()


def digests(arrays: Iterable[NDArray[Any]]) -> set[bytes]:
    """Digests of weights, and of their transposes: what an exporter may store without computing anything."""
    known: set[bytes] = set()
    for array in arrays:
        known.add(digest(array))
        if array.ndim == 2:
            known.add(digest(array.T))
    return known


class Nudge:
    """Moves float constants by up to four float32 ulp: at random, or all the same way (signs at random can cancel out)."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self._drift = seed % 2 == 1

    def steps(self, shape: tuple[int, ...] = ()) -> NDArray[Any]:
        """Relative steps in ulp."""
        return self._generator.uniform(1 if self._drift else -4, 4, shape)


def nudge_constants(wide: onnx.ModelProto, known: set[bytes], seed: int) -> onnx.ModelProto | None:
    """The widened graph with each derived float constant moved a little; None if it has none.

    Constants that hold a parameter or buffer of the module are exact; all others (folded, scalars, attributes) were
    computed or stored in float32.
    """
    nudge = Nudge(seed)
    moved = onnx.ModelProto()
    moved.CopyFrom(wide)
    count = _nudge_graph(moved.graph, known, nudge)
    for function in moved.functions:
        count += sum(_nudge_node(node, known, nudge) for node in function.node)
    return moved if count else None


def _nudge_graph(graph: onnx.GraphProto, known: set[bytes], nudge: Nudge) -> int:
    count = sum(_nudge_tensor(tensor, known, nudge) for tensor in graph.initializer)
    return count + sum(_nudge_node(node, known, nudge) for node in graph.node)


def _nudge_node(node: onnx.NodeProto, known: set[bytes], nudge: Nudge) -> int:
    count = 0
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR:
            count += _nudge_tensor(attribute.t, known, nudge)
        elif attribute.type == onnx.AttributeProto.GRAPH:
            count += _nudge_graph(attribute.g, known, nudge)
        elif attribute.type == onnx.AttributeProto.FLOAT and attribute.f not in (0.0, 1.0):
            # Attributes are float32 in the file: a whole step at least.
            step = float(nudge.steps())
            attribute.f = attribute.f * (1 + np.copysign(max(abs(step), 2.0), step) * 2.0**-24)
            count += 1
    return count


def _nudge_tensor(tensor: onnx.TensorProto, known: set[bytes], nudge: Nudge) -> int:
    if tensor.data_type != onnx.TensorProto.DOUBLE:
        return 0
    array = onnx.numpy_helper.to_array(tensor)
    whole = np.all(array == np.round(array * 2.0**10) / 2.0**10) if array.size < 64 else False
    if not array.size or whole or digest(array.astype(np.float32)) in known or digest(array) in known:
        return 0
    moved = array * (1 + nudge.steps(array.shape) * 2.0**-24)
    tensor.CopyFrom(onnx.numpy_helper.from_array(np.asarray(moved), tensor.name))
    return 1
