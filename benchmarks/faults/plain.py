"""Faults that almost any input shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from benchmarks.faults.helpers import after, array, become, before, bypass, constant, edit, find, get, put, swap_inputs
from benchmarks.faults.inputs import like
from benchmarks.faults.registry import Fault, add

Model = onnx.ModelProto
Mutate = Callable[[Model], str | None]


def fault(name: str, architecture: str, mutate: Mutate, why: str, source: str = "mutation") -> None:
    """Register a plain fault; an ordinary random input shows it."""
    add(Fault(name, "plain", architecture, mutate, like(architecture), why, source))


# --- attributes -----------------------------------------------------------------------------------------------------

fault(
    "leaky-relu-alpha",
    "activations",
    lambda m: put(find(m, "LeakyRelu"), alpha=0.01),
    "PyTorch's default slope instead of the model's 0.1",
)
fault(
    "softmax-over-queries",
    "cross_attention",
    lambda m: put(find(m, "Softmax"), axis=1),
    "the weights add up to one over the queries, not over the keys",
)
fault(
    "gemm-transpose-lost",
    "square_mlp",
    lambda m: put(find(m, "Gemm", 1), transB=0),
    "a square weight is used untransposed",
)
fault(
    "conv-padding-shifted",
    "cnn",
    lambda m: put(find(m, "Conv"), pads=[0, 0, 2, 2]),
    "all padding at the end, as in another framework's SAME",
)
fault(
    "average-pool-count",
    "resnet",
    lambda m: put(find(m, "AveragePool"), count_include_pad=0),
    "the padding is left out of the average",
)
fault(
    "pixel-shuffle-order",
    "super_resolution",
    lambda m: put(find(m, "DepthToSpace"), mode="DCR"),
    "depth first instead of column first",
)
fault(
    "resize-align-corners",
    "unet",
    lambda m: put(find(m, "Resize"), coordinate_transformation_mode="align_corners"),
    "corners aligned where the model does not",
)
fault(
    "gru-reset-order",
    "gru_tagger",
    lambda m: put(find(m, "GRU"), linear_before_reset=0),
    "the reset gate is applied before the matrix product",
)
fault("pad-edge", "style_net", lambda m: put(find(m, "Pad"), mode="edge"), "the border is repeated, not reflected")
fault(
    "cumsum-exclusive",
    "series",
    lambda m: put(find(m, "CumSum"), exclusive=1),
    "the running total leaves the current value out",
)
fault(
    "topk-smallest", "detector", lambda m: put(find(m, "TopK"), largest=0), "the five worst anchors instead of the best"
)
fault(
    "scatter-overwrites",
    "graph_net",
    lambda m: put(find(m, "ScatterND"), reduction="none"),
    "of several messages to a node only one arrives",
)
fault(
    "conv-dilation-lost",
    "tcn",
    lambda m: put(find(m, "Conv", 1), dilations=[1], pads=[2, 0]),
    "the second layer looks at neighbours instead of every other step",
)


# --- weights --------------------------------------------------------------------------------------------------------


def swapped_query_key(m: Model) -> str:
    query, key = find(m, "MatMul", 0), find(m, "MatMul", 1)
    query.input[1], key.input[1] = key.input[1], query.input[1]
    return query.name


def lstm_gates(m: Model) -> str:
    node = find(m, "LSTM")

    def reorder(w: np.ndarray) -> np.ndarray:
        i, o, f, c = np.split(w, 4, axis=1)
        return np.concatenate([i, f, c, o], axis=1)

    edit(m, node, 1, reorder)
    return edit(m, node, 2, reorder)


def fresh_statistics(m: Model) -> str:
    node = find(m, "BatchNormalization")
    edit(m, node, 3, np.zeros_like)
    return edit(m, node, 4, np.ones_like)


def lost_bias(m: Model) -> str:
    node = find(m, "Gemm", 1)
    array(m, node.input[2])
    node.input.pop()
    return node.name


fault("swapped-query-key", "decoder", swapped_query_key, "the weights of queries and keys are exchanged")
fault("lstm-gate-order", "lstm_classifier", lstm_gates, "PyTorch's order of gates instead of ONNX's")
fault("batchnorm-fresh-statistics", "resnet", fresh_statistics, "the buffers of the checkpoint were not loaded")
fault("bias-lost", "mlp", lost_bias, "a layer without its bias")
fault(
    "weight-transposed",
    "cross_attention",
    lambda m: edit(m, find(m, "MatMul", 3), 1, np.transpose),
    "the value projection is transposed once too often",
)
fault(
    "deconv-kernel-flipped",
    "deconv_decoder",
    lambda m: edit(m, find(m, "ConvTranspose"), 1, lambda w: w[..., ::-1, ::-1]),
    "the kernel is turned as for a convolution",
)
fault(
    "group-halves-swapped",
    "groupnorm_net",
    lambda m: edit(m, find(m, "Conv", 1), 1, lambda w: np.concatenate([w[4:], w[:4]])),
    "the groups of a convolution in the wrong order",
)
fault(
    "embedding-off-by-one",
    "recommender",
    lambda m: edit(m, find(m, "Gather", 1), 0, lambda w: np.roll(w, 1, axis=0)),
    "ids counted from one: every item gets its neighbour's vector",
)


# --- constants and wiring -------------------------------------------------------------------------------------------


def bgr(m: Model) -> str:
    node = find(m, "Div")
    edit(m, find(m, "Sub"), 1, lambda v: v[:, ::-1])
    return edit(m, node, 1, lambda v: v[:, ::-1])


def residual_of_normalised(m: Model) -> str:
    node = find(m, "Add", -1)
    if node.input[0] != "x":
        raise LookupError("the residual connection has moved")
    node.input[0] = find(m, "Mul", 1).output[0]
    return node.name


def baked_dropout(m: Model) -> str:
    mask = np.where(np.random.default_rng(3).random(16) < 0.5, 0, 2)
    return after(m, find(m, "Relu").output[0], "Mul", constant(m, mask, np.float32))


def batch_statistics(m: Model) -> str:
    """What a BatchNorm computes in train mode: mean and variance of the batch."""
    node = find(m, "BatchNormalization")
    x, scale, bias = node.input[0], node.input[1], node.input[2]
    epsilon = constant(m, get(node, "epsilon"), np.float32)
    axes = constant(m, [0, 2, 3], np.int64)
    shape = constant(m, [-1, 1, 1], np.int64)
    mean = before(m, node, "ReduceMean", [x, axes], keepdims=1)
    centred = before(m, node, "Sub", [x, mean])
    variance = before(m, node, "ReduceMean", [before(m, node, "Mul", [centred, centred]), axes], keepdims=1)
    deviation = before(m, node, "Sqrt", [before(m, node, "Add", [variance, epsilon])])
    normal = before(m, node, "Div", [centred, deviation])
    scaled = before(m, node, "Mul", [normal, before(m, node, "Reshape", [scale, shape])])
    return become(node, "Add", [scaled, before(m, node, "Reshape", [bias, shape])])


fault(
    "attention-scale-forgotten",
    "encoder",
    lambda m: edit(m, find(m, "Mul"), 1, np.ones_like),
    "scores are not divided by the root of the width",
)
fault(
    "causal-mask-missing",
    "decoder",
    lambda m: bypass(m, find(m, "Where"), 2),
    "every position sees what comes after it",
)
fault(
    "padding-mask-inverted",
    "encoder",
    lambda m: edit(m, find(m, "Equal"), 1, np.ones_like),
    "real tokens are hidden and padding is seen",
)
fault(
    "output-scale-constant",
    "style_net",
    lambda m: edit(m, find(m, "Mul", -1), 1, lambda v: v * 0 + np.float32(0.5)),
    "0.5 where the model has 0.6",
)
fault("subtraction-swapped", "square_mlp", lambda m: swap_inputs(find(m, "Sub")), "b − a instead of a − b")
fault(
    "gate-added",
    "mobilenet",
    lambda m: become(find(m, "Mul"), "Add"),
    "squeeze and excitation adds its gate instead of multiplying",
)
fault(
    "slice-start",
    "coupling_flow",
    lambda m: (edit(m, find(m, "Slice", 1), 1, lambda v: v - 1), edit(m, find(m, "Slice", 1), 2, lambda v: v * 0 + 5))[
        1
    ],
    "the second half starts one feature early",
)
fault(
    "class-token-index",
    "patch_vit",
    lambda m: edit(m, find(m, "Gather"), 1, lambda v: v + 9),
    "the last patch is read instead of the class token",
)
fault("skip-concat-order", "unet", lambda m: swap_inputs(find(m, "Concat")), "skip and upsampled features exchanged")
fault("channels-bgr", "resizer", bgr, "mean and deviation of the channels in the order of OpenCV")
fault("residual-of-normalised", "rms_swiglu", residual_of_normalised, "the residual is taken after the norm")
fault("abs-lost", "siamese", lambda m: bypass(m, find(m, "Abs")), "the difference keeps its sign")
fault(
    "cosine-without-norm",
    "retrieval",
    lambda m: bypass(m, find(m, "Div")),
    "the query keeps its length: a dot product instead of a cosine",
)
fault("dropout-mask-baked", "mlp", baked_dropout, "traced in train mode: one mask for ever", "user")
fault("batchnorm-in-train-mode", "cnn", batch_statistics, "exported in train mode: statistics of the batch", "user")
