"""Faults of the contract: names, order, number, types and ranks of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.faults.helpers import after, before, constant, find, initializer, output_type, rename, reorder
from benchmarks.faults.inputs import like
from benchmarks.faults.registry import Fault, add

Model = onnx.ModelProto


def fault(name: str, architecture: str, edit: Callable[[Model], object], why: str) -> None:
    """Register a contract fault; no node is to blame."""

    def mutate(model: Model) -> None:
        edit(model)

    add(Fault(name, "contract", architecture, mutate, like(architecture), why))


def declared(model: Model, name: str) -> onnx.ValueInfoProto:
    """A graph input."""
    for value in model.graph.input:
        if value.name == name:
            return value
    raise LookupError(f"there is no input {name}")


# --- outputs --------------------------------------------------------------------------------------------------------


def drop_output(m: Model) -> None:
    m.graph.output.remove(next(o for o in m.graph.output if o.name == "aux"))


def extra_output(m: Model) -> None:
    hidden = find(m, "Relu").output[0]
    m.graph.output.append(helper.make_tensor_value_info(hidden, TensorProto.FLOAT, ["batch", 16]))


def exchange(first: str, second: str) -> Callable[[Model], None]:
    """Two values take each other's name; the order of the names stays."""

    def edit(m: Model) -> None:
        inputs, outputs = [i.name for i in m.graph.input], [o.name for o in m.graph.output]
        rename(m, first, "in_between")
        rename(m, second, first)
        rename(m, "in_between", second)
        if first in inputs:
            reorder(m.graph.input, inputs)
        else:
            reorder(m.graph.output, outputs)

    return edit


def cast_output(name: str, to: int) -> Callable[[Model], None]:
    """An output of another type."""

    def edit(m: Model) -> None:
        after(m, name, "Cast", to=to)
        output_type(m, name, to)

    return edit


def squeezed(m: Model) -> None:
    after(m, "output", "Squeeze", constant(m, [1], np.int64))
    output_type(m, "output", TensorProto.FLOAT, ["batch"])


def unsqueezed(m: Model) -> None:
    after(m, "output", "Unsqueeze", constant(m, [1], np.int64))
    output_type(m, "output", TensorProto.FLOAT, ["batch", 1])


def transposed(m: Model) -> None:
    after(m, "output", "Transpose", perm=[0, 2, 1])
    output_type(m, "output", TensorProto.FLOAT, ["batch", 8, 4])


def flattened(m: Model) -> None:
    after(m, "output", "Flatten", axis=1)
    output_type(m, "output", TensorProto.FLOAT, ["batch", 128])


def rounded_action(m: Model) -> None:
    after(m, "action", "Cast", to=TensorProto.INT32)
    output_type(m, "action", TensorProto.INT32, ["batch"])


def scores_first(m: Model) -> None:
    reorder(m.graph.output, ["scores", "boxes"])


fault("output-missing", "multi_task", drop_output, "a head was left out")
fault("output-extra", "mlp", extra_output, "a hidden activation is also returned")
fault("output-renamed", "multi_task", lambda m: rename(m, "value", "values"), "the service asks for another name")
fault("outputs-swapped", "multi_task", exchange("logits", "aux"), "two heads of one shape have each other's name")
fault("outputs-reordered", "detector", scores_first, "scores first: who reads by position gets boxes")
fault("output-float64", "cnn", cast_output("output", TensorProto.DOUBLE), "the result is widened")
fault("output-float16", "wide_deep", cast_output("probability", TensorProto.FLOAT16), "one result is in half precision")
fault("action-int32", "multi_task", rounded_action, "an index of 32 bits where PyTorch has 64")
fault("output-squeezed", "siamese", squeezed, "(n, 1) became (n)")
fault("output-unsqueezed", "recommender", unsqueezed, "(n) became (n, 1)")
fault("output-transposed", "cross_attention", transposed, "features before positions")
fault("output-flattened", "super_resolution", flattened, "a picture became a row of 288 numbers")


# --- inputs ---------------------------------------------------------------------------------------------------------


def retyped_input(name: str, to: int, back: int) -> Callable[[Model], None]:
    """An input of another type, cast back inside."""

    def edit(m: Model) -> None:
        value = declared(m, name)
        first = m.graph.node[0]
        wide = before(m, first, "Cast", [name], to=back)
        for node in m.graph.node:
            if wide not in node.output:
                node.input[:] = [wide if used == name else used for used in node.input]
        value.type.tensor_type.elem_type = to

    return edit


def input_as_constant(m: Model) -> None:
    m.graph.input.remove(declared(m, "weight"))
    tensor = helper.make_tensor("weight", TensorProto.FLOAT, [1], [0.5])
    m.graph.initializer.append(tensor)
    initializer(m, "weight")


def fixed_batch(m: Model) -> None:
    dim = declared(m, "input").type.tensor_type.shape.dim[0]
    dim.ClearField("dim_param")
    dim.dim_value = 3


def extra_input(m: Model) -> None:
    m.graph.input.append(helper.make_tensor_value_info("temperature", TensorProto.FLOAT, [1]))
    after(m, "output", "Div", "temperature")


def channels_last(m: Model) -> None:
    value = declared(m, "x")
    inner = before(m, m.graph.node[0], "Transpose", ["x"], perm=[0, 3, 1, 2])
    for node in m.graph.node:
        if inner not in node.output:
            node.input[:] = [inner if used == "x" else used for used in node.input]
    dims = value.type.tensor_type.shape.dim
    sizes = [dims[i].dim_value for i in (2, 3, 1)]
    for dim, size in zip(list(dims)[1:], sizes, strict=True):
        dim.dim_value = size


fault("input-renamed", "siamese", lambda m: rename(m, "right", "other"), "the service sends another name")
fault("inputs-swapped", "siamese", exchange("left", "right"), "two inputs of one shape have each other's name")
fault("inputs-reordered", "wide_deep", lambda m: reorder(m.graph.input, ["ids", "dense"]), "ids come first")
fault("ids-int32", "decoder", retyped_input("ids", TensorProto.INT32, TensorProto.INT64), "ids of 32 bits")
fault("mask-bool", "masked_pool", retyped_input("mask", TensorProto.BOOL, TensorProto.INT64), "a mask of booleans")
fault("input-as-constant", "siamese", input_as_constant, "an input was folded into a constant")
fault("batch-fixed", "mlp", fixed_batch, "the batch of the example is the only one")
fault("input-extra", "square_mlp", extra_input, "an input that the module does not have")
fault("input-channels-last", "cnn", channels_last, "pictures are expected with their channels last")
