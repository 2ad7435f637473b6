"""Weights that are read when a node asks for them and kept by nobody: several copies of a large file's would not fit."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from onnxproof.graph.lightening import HEAVY, LARGE, join_model, strip_initializers
from onnxproof.graph.widening import Narrow, choose_way, digest_weight, widen_array
from onnxproof.tensors.arrays import Array

Change = Callable[[str, Array], Array]


class Weights(Mapping[str, Array]):
    """Stored tensors by name, each made anew whenever it is asked for."""

    def __init__(self, tensors: Mapping[str, ir.TensorProtocol], change: Change = lambda name, array: array) -> None:
        self._tensors, self._change = tensors, change

    def __getitem__(self, name: str) -> Array:
        return self._change(name, read(self._tensors[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def widened(self, but: Collection[str] = ()) -> Weights:
        """In float64, but for some that stay as they are and are marked so."""

        def change(name: str, array: Array) -> Array:
            array = self._change(name, array)
            return array.view(Narrow) if name in but else widen_array(array)

        return Weights(self._tensors, change)

    def whole(self) -> Weights:
        """Also those in float64 that were marked."""

        def change(name: str, array: Array) -> Array:
            array = self._change(name, array)
            return widen_array(np.asarray(array)) if isinstance(array, Narrow) else array

        return Weights(self._tensors, change)

    def list_matrices(self) -> set[str]:
        """Those of float32 with rows and columns."""
        return {name for name, one in self._tensors.items() if one.dtype == ir.DataType.FLOAT and len(one.shape) == 2}

    def list_derived(self, known: set[bytes]) -> frozenset[str]:
        """Those that are no parameter of the module's: whoever wrote the file has computed them."""
        floats = ((name, tensor) for name, tensor in self._tensors.items() if tensor.dtype.is_floating_point())
        return frozenset(name for name, tensor in floats if not _is_known(read(tensor), known))

    def nudged(self, derived: frozenset[str], seed: int) -> Weights:
        """With some moved a little. See `nudge_constants`."""

        def change(name: str, array: Array) -> Array:
            array = self._change(name, array)
            if name not in derived:
                return array
            array = widen_array(np.asarray(array))
            # Seeded by its name: a weight is made anew whenever a node asks for it, and must come out the same.
            steps = partial(np.random.default_rng([seed, zlib.crc32(name.encode())]).uniform, *choose_way(seed))
            return np.asarray(array * (1 + steps(array.shape) * 2.0**-24))

        return Weights(self._tensors, change)


def _is_known(array: Array, known: set[bytes]) -> bool:
    """Whether the module holds it, in its own dtype or in float32."""
    own = (array,) if array.dtype == np.float32 else (array, array.astype(np.float32))
    return any(digest_weight(one) in known for one in own)


NONE = Weights({})


def read(tensor: ir.TensorProtocol) -> Array:
    """The values of a stored tensor. Of a file's part, a copy of the wrapper: its mapping ends with the array."""
    return np.asarray((copy.copy(tensor) if isinstance(tensor, ir.ExternalTensor) else tensor).numpy())


def separate(proto: onnx.ModelProto, stored: Mapping[str, ir.TensorProtocol]) -> tuple[onnx.ModelProto, Weights]:
    """A model without its large tensors, and those; small ones that lie in other files are brought in."""
    together = sum(tensor.nbytes for tensor in stored.values())
    apart = {name: tensor for name, tensor in stored.items() if together > HEAVY and tensor.nbytes >= LARGE}
    light = strip_initializers(proto)
    for tensor in proto.graph.initializer:
        if tensor.name not in apart and tensor.name in stored:
            outside = tensor.data_location == onnx.TensorProto.EXTERNAL
            light.graph.initializer.append(_embed_tensor(stored[tensor.name]) if outside else tensor)
    return light, Weights(apart)


def _embed_tensor(tensor: ir.TensorProtocol) -> onnx.TensorProto:
    return ir.to_proto(ir.tensor(read(tensor), dtype=tensor.dtype, name=tensor.name))


def take_outside(model: ir.Model) -> tuple[onnx.ModelProto, dict[str, ir.TensorProtocol]]:
    """A model in memory as a protobuf whose large tensors are said to lie elsewhere, and these: a protobuf holds 2 GB at most."""
    values = model.graph.initializers.values()
    tensors = {value: value.const_value for value in values if value.const_value is not None}
    large = {value: tensor for value, tensor in tensors.items() if tensor.nbytes >= LARGE}
    try:
        for value, tensor in large.items():
            value.const_value = ir.ExternalTensor(
                "memory", 0, tensor.nbytes, tensor.dtype, shape=ir.Shape(tensor.shape.numpy()), name=str(value.name)
            )
        proto: onnx.ModelProto = ir.to_proto(model)
    finally:
        for value, tensor in large.items():
            value.const_value = tensor
    return proto, {str(value.name): tensor for value, tensor in large.items()}


def write_model(model: ir.Model, path: Path, beside: str | None = None) -> None:
    """Write a model to a file, its weights beside it in one of that name, or one after the other into the file itself: a protobuf of a heavy
    one would hold them twice more."""
    weights = sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None)
    if beside is not None or weights < HEAVY:
        ir.save(model, path, external_data=beside)
        return
    proto, held = take_outside(model)
    with path.open("wb") as file:
        for part in join_model(proto, {name: tensor.tobytes for name, tensor in held.items()}):
            file.write(part)
