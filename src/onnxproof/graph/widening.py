"""The ONNX graph itself in float64, and with its derived constants moved a little.

Every tensor of a model is written anew here, which is what protobufs are best at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx.inliner

from onnxproof.tensors.arrays import Array

NARROW = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
LOSSY = {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
EXPANDED = {"GroupNormalization", "MeanVarianceNormalization", "Mish"}
DTYPE_ATTRIBUTES = {"to", "dtype", "output_dtype"}

# Numbers of an array from which on it is told by what they make together and by as many of them; seen as integers of their size.
SUMMED = 4096
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

Part: TypeAlias = "onnx.GraphProto | onnx.FunctionProto"
# Of a shape: relative steps in ulp.
Steps = Callable[..., Any]


class Narrow(np.ndarray[Any, Any]):
    """A large weight that the operators of a widened graph widen themselves, piece by piece."""


def widen_array(array: Array) -> Array:
    """A float array in float64; any other as it is."""
    return array.astype(np.float64) if array.dtype.kind == "f" or "float" in array.dtype.name else array


def widen(model: onnx.ModelProto, *, keep_lossy_casts: bool) -> onnx.ModelProto:
    """The same graph with every float tensor in float64.

    With `keep_lossy_casts`, a cast to float16 or bfloat16 still loses digits: right for a module that has no such cast.
    """
    wide = _expose_constants(model)
    for part in (wide.graph, *wide.functions):
        _widen_part(part, keep_lossy_casts)
    return wide


def _expose_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy with the operators written out that the evaluator would expand itself, with float32 constants inside."""
    if not any(node.op_type in EXPANDED for node in model.graph.node):
        return deepcopy(model)
    functions = [("", name) for name in sorted(EXPANDED)]
    return onnx.inliner.inline_selected_functions(model, functions, inline_schema_functions=True)


def _widen_part(part: Part, keep_lossy: bool) -> None:
    if isinstance(part, onnx.GraphProto):
        for tensor in part.initializer:
            _widen_tensor(tensor)
        for value in (*part.input, *part.output, *part.value_info):
            if value.type.tensor_type.elem_type in NARROW:
                value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    added: list[tuple[int, onnx.NodeProto]] = []
    for i, node in enumerate(part.node):
        lossy = keep_lossy and node.op_type == "Cast" and any(a.name == "to" and a.i in LOSSY for a in node.attribute)
        if lossy:
            # The cast stays and is followed by one back: digits are lost, and the nodes after it still get float64.
            result = node.output[0]
            node.output[0] = f"{result}/narrow"
            back = onnx.helper.make_node("Cast", [node.output[0]], [result], name=node.name, to=onnx.TensorProto.DOUBLE)
            added.append((i + 1, back))
            continue
        for attribute in node.attribute:
            _widen_attribute(attribute, keep_lossy)
        _widen_default(node)
    # From the end, so that the places before stay right.
    for place, node in reversed(added):
        part.node.insert(place, node)


def _widen_attribute(attribute: onnx.AttributeProto, keep_lossy: bool) -> None:
    if attribute.type == onnx.AttributeProto.TENSOR:
        _widen_tensor(attribute.t)
    elif attribute.type == onnx.AttributeProto.GRAPH:
        _widen_part(attribute.g, keep_lossy)
    elif attribute.name in DTYPE_ATTRIBUTES and attribute.i in NARROW:
        attribute.i = onnx.TensorProto.DOUBLE


def _widen_default(node: onnx.NodeProto) -> None:
    """Constants that are float32 without saying so: a factor that the operator's definition rounds is written out, so that it can be moved."""
    for name, default in _list_rounded_defaults(node.op_type) if not node.domain else ():
        if all(attribute.name != name for attribute in node.attribute):
            node.attribute.append(onnx.helper.make_attribute(name, default))
    if node.op_type == "ConstantOfShape" and not node.attribute:
        node.attribute.append(onnx.helper.make_attribute("value", onnx.numpy_helper.from_array(np.zeros(1))))
    elif node.op_type == "Constant" and node.attribute[0].name in ("value_float", "value_floats"):
        given = node.attribute[0]
        array = np.float64(given.f) if given.name == "value_float" else np.array(given.floats, dtype=np.float64)
        del node.attribute[:]
        node.attribute.append(onnx.helper.make_attribute("value", onnx.numpy_helper.from_array(np.asarray(array))))


@cache
def _list_rounded_defaults(op: str) -> list[tuple[str, float]]:
    """The attributes of an operator whose default is a float32 that stands for another number."""
    if not onnx.defs.has(op):
        return []
    given = ((name, one.default_value) for name, one in onnx.defs.get_schema(op).attributes.items())
    floats = ((name, value.f) for name, value in given if value.type == onnx.AttributeProto.FLOAT)
    return [(name, value) for name, value in floats if value * 2.0**10 % 1]


def _widen_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type in NARROW:
        array = onnx.numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))


def digest_weight(array: Array) -> bytes:
    """What a weight holds, whatever its name and shape."""
    held = _sum_up(array) if array.size > SUMMED and array.itemsize in WORDS else np.ascontiguousarray(array)
    return hashlib.blake2b(held.reshape(-1).view(np.uint8).data, digest_size=16).digest()


def _sum_up(array: Array) -> Array:
    """How many numbers a large array has, what all of them make together, and some of them at places by chance: it is neither copied nor hashed whole.

    Every changed number shows, and another order of many. Where a few changed places, it is taken for the module's own, and excused less.
    """
    words = array.view(WORDS[array.itemsize])
    places = np.random.default_rng(array.size).integers(0, array.size, SUMMED)
    some = words[np.unravel_index(places, array.shape)]
    return np.asarray([array.size, np.bitwise_xor.reduce(words, axis=None), *some], np.uint64)


def digest_weights(arrays: Iterable[Array]) -> set[bytes]:
    """Digests of weights, and of their transposes: what an exporter may store without computing anything."""
    return {digest_weight(one) for array in arrays for one in ((array, array.T) if array.ndim == 2 else (array,))}


def choose_way(seed: int) -> tuple[float, float]:
    """How constants are moved, in float32 ulp: all up, all down, or at random: signs at random can cancel out, and one sign may decide."""
    return ((-4.0, 4.0), (1.0, 4.0), (-4.0, -1.0), (1.0, 4.0))[seed % 4]


def nudge_constants(wide: onnx.ModelProto, known: set[bytes], seed: int) -> onnx.ModelProto | None:
    """The widened graph with each derived float constant moved a little; None if it has none.

    Constants that hold a parameter or buffer of the module are exact; all others (folded, scalars, attributes) were
    computed or stored in float32.
    """
    steps = partial(np.random.default_rng(seed).uniform, *choose_way(seed))
    moved = deepcopy(wide)
    constants = [constant for part in (moved.graph, *moved.functions) for constant in _list_constants(part)]
    changed = [
        _nudge_tensor(one, known, steps) if isinstance(one, onnx.TensorProto) else _nudge_attribute(one, steps)
        for one in constants
    ]
    return moved if any(changed) else None


def _list_constants(part: Part) -> Iterator[onnx.TensorProto | onnx.AttributeProto]:
    """Stored tensors and numbers, those of subgraphs too."""
    yield from part.initializer if isinstance(part, onnx.GraphProto) else ()
    for attribute in (attribute for node in part.node for attribute in node.attribute):
        if attribute.type == onnx.AttributeProto.TENSOR:
            yield attribute.t
        elif attribute.type == onnx.AttributeProto.GRAPH:
            yield from _list_constants(attribute.g)
        elif attribute.type == onnx.AttributeProto.FLOAT:
            yield attribute


def _nudge_attribute(attribute: onnx.AttributeProto, steps: Steps) -> bool:
    """Attributes are float32 in the file: a whole step at least."""
    # These are exact in every dtype: nobody has rounded them.
    if attribute.f in (0.0, 1.0):
        return False
    step = float(steps())
    attribute.f = attribute.f * (1 + np.copysign(max(abs(step), 2.0), step) * 2.0**-24)
    return True


def _nudge_tensor(tensor: onnx.TensorProto, known: set[bytes], steps: Steps) -> bool:
    if tensor.data_type != onnx.TensorProto.DOUBLE:
        return False
    array = onnx.numpy_helper.to_array(tensor)
    # Few digits are meant as they stand; a number beyond float32's integers was rounded to be stored, and one of all its bits too.
    whole = array.size < 64 and np.all((array == np.round(array * 2.0**10) / 2.0**10) & (np.abs(array) < 2.0**24))
    bits = np.frexp(array)[0] * 2.0**17
    whole = whole and np.all((bits == np.round(bits)) | (array == np.round(array)))
    # The module may hold the same numbers in float32 or in float64.
    if not array.size or whole or digest_weight(array.astype(np.float32)) in known or digest_weight(array) in known:
        return False
    moved = array * (1 + steps(array.shape) * 2.0**-24)
    tensor.CopyFrom(onnx.numpy_helper.from_array(np.asarray(moved), tensor.name))
    return True
