"""Faults of the second jury in what a file promises: types, shapes, names, order and number of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.faults.helpers import after, before, constant, consumer, output_type, rename, reorder
from benchmarks.faults.inputs import like
from benchmarks.faults.registry import Fault, add

Model = onnx.ModelProto


def fault(name: str, architecture: str, change: Callable[[Model], object], why: str) -> None:
    """Register a contract fault: no node is to blame."""

    def mutate(m: Model) -> None:
        change(m)

    add(Fault(f"jury-{name}", "contract", architecture, mutate, like(architecture), why))


def retype_output(name: str, to: int, shape: list[int | str]) -> Callable[[Model], object]:
    """An output of another type."""

    def change(m: Model) -> None:
        after(m, name, "Cast", to=to)
        output_type(m, name, to, shape)

    return change


def retype_input(name: str, to: int, back: int) -> Callable[[Model], object]:
    """An input of another type, converted inside."""

    def change(m: Model) -> None:
        node = consumer(m, name)
        node.input[:] = [before(m, node, "Cast", [name], to=back) if n == name else n for n in node.input]
        next(v for v in m.graph.input if v.name == name).type.tensor_type.elem_type = to

    return change


def exchange_names(m: Model) -> None:
    rename(m, "output_0", "other")
    rename(m, "output_1", "output_0")
    rename(m, "other", "output_1")


def add_axis(m: Model) -> None:
    after(m, "spread", "Unsqueeze", constant(m, [1], np.int64))
    output_type(m, "spread", TensorProto.FLOAT, ["batch", 1])


def fix_batch(m: Model) -> None:
    m.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    m.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2


def channels_last(m: Model) -> None:
    node = next(n for n in m.graph.node if n.op_type == "Reshape")
    node.input[0] = before(m, node, "Transpose", ["image"], perm=[0, 3, 1, 2])
    m.graph.input[0].CopyFrom(helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 6, 6, 2]))


def extra_output(m: Model) -> None:
    m.graph.output.append(helper.make_tensor_value_info("minimum", TensorProto.FLOAT, ["batch", 9]))


fault("labels-int32", "jury_detector", retype_output("labels", TensorProto.INT32, ["batch", 15]), "labels of 32 bits")
fault(
    "chance-float16",
    "jury_towers",
    retype_output("output_1", TensorProto.FLOAT16, ["batch"]),
    "chances in half precision",
)
fault("rank-int64", "jury_quantiles", retype_output("output_1", TensorProto.INT64, ["batch", 9]), "ranks are integers")
fault(
    "daily-float64",
    "jury_returns",
    retype_input("daily", TensorProto.DOUBLE, TensorProto.FLOAT),
    "the file wants doubles",
)
fault(
    "fields-int32",
    "jury_machine",
    retype_input("fields", TensorProto.INT32, TensorProto.INT64),
    "the file wants ids of 32 bits",
)
fault(
    "outputs-reordered",
    "jury_unet",
    lambda m: reorder(m.graph.output, ["output_1", "output_0"]),
    "the mask comes before the scores",
)
fault(
    "output-names-exchanged", "jury_peephole", exchange_names, "the cell is called the output and the output the cell"
)
fault("choice-missing", "jury_experts", lambda m: m.graph.output.pop(), "which experts were chosen is not given")
fault("output-added", "jury_quantiles", extra_output, "a value from inside is given too")
fault("spread-keeps-axis", "jury_moments", add_axis, "a column instead of a row of numbers")
fault("batch-of-two", "jury_separable", fix_batch, "the batch of the example is declared")
fault("channels-last", "jury_patches", channels_last, "the file wants pictures with their channels last")
