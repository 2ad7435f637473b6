"""Faults that are right at the exported sizes and wrong at others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from benchmarks.faults.helpers import after, before, constant, edit, find
from benchmarks.faults.inputs import Witness, given, like
from benchmarks.faults.registry import Fault, add

Model = onnx.ModelProto
Mutate = Callable[[Model], str | None]


def fault(name: str, architecture: str, mutate: Mutate, witness: Witness, why: str) -> None:
    """Register a shape fault."""
    add(Fault(name, "shape", architecture, mutate, witness, why))


def fixed(model: Model, node: onnx.NodeProto, slot: int, value: Any, dtype: Any = np.int64) -> str:
    """Give a node a constant where the graph computed something from a shape."""
    if any(tensor.name == node.input[slot] for tensor in model.graph.initializer):
        raise LookupError(f"the input {slot} of {node.name} is a constant already")
    node.input[slot] = constant(model, value, dtype)
    return node.name


# --- batch ----------------------------------------------------------------------------------------------------------

fault(
    "reshape-batch-baked",
    "resnet",
    lambda m: edit(m, find(m, "Reshape"), 1, lambda v: np.array([2, 54])),
    like("resnet", batch=3),
    "the example's batch in a reshape: other batches are refused",
)
fault(
    "reshape-folds-batch",
    "resizer",
    lambda m: edit(m, find(m, "Reshape"), 1, lambda v: np.array([2, -1])),
    like("resizer", batch=4),
    "the example's batch in a reshape: other samples go into the features",
)
fault(
    "class-token-batch",
    "patch_vit",
    lambda m: fixed(m, find(m, "Expand"), 1, [2, 1, 16]),
    like("patch_vit", batch=5),
    "the class token is expanded to the example's batch",
)
fault(
    "initial-state-batch",
    "lstm_classifier",
    lambda m: fixed(m, find(m, "Expand"), 1, [1, 2, 8]),
    like("lstm_classifier", batch=4),
    "the initial state has the example's batch",
)
fault(
    "resize-batch-baked",
    "resizer",
    lambda m: fixed(m, find(m, "Resize"), 3, [2, 3, 8, 8]),
    like("resizer", batch=4),
    "the batch is resized like a picture's side",
)
fault(
    "index-expanded-to-batch",
    "detector",
    lambda m: edit(m, find(m, "Expand"), 1, lambda v: np.array([2, 5, 4])),
    like("detector", batch=3),
    "indices are expanded to the example's batch",
)
fault(
    "squeeze-drops-batch",
    "mlp",
    lambda m: after(m, "output", "Squeeze"),
    like("mlp", batch=1),
    "squeeze() without a dimension also takes a batch of one away",
)


def filled_for_example(m: Model) -> str:
    """A buffer of sample weights that was filled for the example's three rows only."""
    node = find(m, "Gemm", -1)
    table = constant(m, np.concatenate([np.ones((3, 4)), np.zeros((253, 4))]), np.float32)
    rows = before(m, node, "Shape", [node.input[0]], start=0, end=1)
    rate = before(m, node, "Slice", [table, constant(m, [0], np.int64), rows, constant(m, [0], np.int64)])
    return after(m, node.output[0], "Mul", rate)


fault(
    "rows-beyond-the-batch",
    "mlp",
    filled_for_example,
    like("mlp", batch=5),
    "a buffer filled for the example's rows: later rows come out as zero",
)


# --- length ---------------------------------------------------------------------------------------------------------


def clipped_positions(m: Model) -> str:
    node = find(m, "Gather", 1)
    node.input[1] = before(m, node, "Min", [node.input[1], constant(m, 6, np.int64)])
    return node.name


def cut_causal_mask(m: Model) -> str:
    node = find(m, "Where")
    seen = find(m, "Greater")
    known = before(m, node, "Less", [seen.input[0], constant(m, 7, np.int64)])
    node.input[0] = before(m, node, "And", [node.input[0], known])
    return node.name


def right_aligned_positions(m: Model) -> str:
    node = find(m, "Gather", 1)
    length = find(m, "Range").input[1]
    shift = before(m, node, "Sub", [constant(m, 6, np.int64), length])
    moved = before(m, node, "Add", [node.input[1], shift])
    node.input[1] = before(m, node, "Max", [moved, constant(m, 0, np.int64)])
    return node.name


def counted_to_five(m: Model) -> str:
    node = find(m, "ReduceSum", 1)
    ends = [constant(m, [v], np.int64) for v in (0, 5, 1)]
    node.input[0] = before(m, node, "Slice", [node.input[0], *ends])
    return node.name


def baked_scales(m: Model) -> str:
    node = find(m, "Resize")
    node.input[:] = [node.input[0], "", constant(m, [1, 1, 8 / 10, 8 / 12], np.float32)]
    return node.name


def baked_mean(m: Model) -> str:
    """The mean as a sum over the points, divided by the example's number of points."""
    node = find(m, "ReduceMean")
    node.op_type = "ReduceSum"
    return after(m, node.output[0], "Div", constant(m, 7, np.float32))


fault(
    "mean-divisor-baked",
    "series",
    lambda m: fixed(m, find(m, "Div"), 1, 9.0, np.float32),
    like("series", time=5),
    "the sum is divided by the example's length",
)
fault("centre-divisor-baked", "pointnet", baked_mean, like("pointnet", points=11), "the example's number of points")
fault(
    "slice-end-baked",
    "series",
    lambda m: edit(m, find(m, "Slice", 2), 2, lambda v: v * 0 + 8),
    like("series", time=12),
    "a slice ends at the example's last step",
)
fault(
    "positions-clipped",
    "decoder",
    clipped_positions,
    like("decoder", seq=12),
    "the table of positions was cut to the example's length",
)
fault(
    "causal-mask-cut",
    "decoder",
    cut_causal_mask,
    like("decoder", seq=11),
    "the causal mask has the example's size: later positions are never hidden",
)
fault(
    "positions-right-aligned",
    "encoder",
    right_aligned_positions,
    like("encoder", seq=4),
    "positions are counted back from the example's length",
)
fault(
    "mask-counted-to-five",
    "masked_pool",
    counted_to_five,
    given("masked_pool", x=np.linspace(-1, 1, 2 * 9 * 6).reshape(2, 9, 6), mask=np.ones((2, 9))),
    "the count of positions stops at the example's length",
)
fault(
    "resize-scales-baked",
    "resizer",
    baked_scales,
    like("resizer", height=9, width=15),
    "the example's scales instead of the wished size",
)
fault(
    "nodes-baked",
    "graph_net",
    lambda m: fixed(m, find(m, "Expand"), 1, [5, 8]),
    like("graph_net", nodes=8, edges=12),
    "messages are gathered in a table of the example's size",
)


# --- real ones: the exporter specialises to the example's size -------------------------------------------------------


def tracker(name: str, architecture: str, witness: Witness, why: str, dynamic: dict[str, dict[int, str]]) -> None:
    """Register a bug of the exporter."""
    options = {"dynamic": dynamic}
    add(Fault(name, "shape", architecture, None, witness, why, "tracker", "capture", options))


tracker(
    "branch-on-batch-size",
    "branch_on_batch",
    like("branch_on_batch", batch=2),
    "a Python branch on the batch is decided once",
    {"x": {0: "batch"}},
)
tracker(
    "length-times-a-half",
    "half_crop",
    like("half_crop", time=12),
    "int(length * 0.5) becomes the example's number",
    {"x": {0: "batch", 1: "time"}},
)
tracker(
    "adaptive-pool-any-size",
    "adaptive_pool",
    like("adaptive_pool", height=10, width=11),
    "the window of adaptive pooling is the example's",
    {"image": {0: "batch", 2: "height", 3: "width"}},
)
