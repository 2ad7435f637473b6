"""Files small enough to say by hand what they answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper


def made(nodes: Sequence[onnx.NodeProto], inputs: dict[str, tuple[int, list]], outputs: dict[str, int]) -> bytes:
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [onnx.numpy_helper.from_array(np.float32(1.0), "one")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    return model.SerializeToString()


def sums() -> bytes:
    """more = x + 1, inner = 2 (x + 1), largest = the largest of its three columns."""
    nodes = [
        helper.make_node("Add", ["x", "one"], ["more"]),
        helper.make_node("Add", ["more", "more"], ["inner"]),
        helper.make_node("ReduceMax", ["inner"], ["largest"], axes=[1], keepdims=0),
    ]
    outputs = {"more": TensorProto.FLOAT, "largest": TensorProto.FLOAT}
    return made(nodes, {"x": (TensorProto.FLOAT, ["batch", 3])}, outputs)


def showing_inner() -> bytes:
    """The same with a value from inside as its output."""
    model = onnx.load_from_string(sums())
    del model.graph.output[:]
    model.graph.output.append(onnx.ValueInfoProto(name="inner"))
    return model.SerializeToString()


def identity(kind: int, shape: list) -> bytes:
    """Answers what it is given."""
    return made([helper.make_node("Identity", ["x"], ["y"])], {"x": (kind, shape)}, {"y": kind})
