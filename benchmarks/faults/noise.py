"""Faults below the usual tolerances and far above rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from benchmarks.faults.helpers import after, become, before, bfloat, constant, edit, find, half, int8, put, through_half
from benchmarks.faults.inputs import like
from benchmarks.faults.registry import Fault, add

Model = onnx.ModelProto
Mutate = Callable[[Model], str | None]


def fault(name: str, architecture: str, mutate: Mutate, why: str, seed: int = 7) -> None:
    """Register a noise fault; an ordinary random input shows it."""
    add(Fault(name, "noise", architecture, mutate, like(architecture, seed), why))


def epsilon(op: str, value: float, index: int = 0) -> Mutate:
    """Another epsilon in a norm."""
    return lambda m: put(find(m, op, index), epsilon=value)


# --- other epsilons -------------------------------------------------------------------------------------------------

fault("layernorm-epsilon", "gelu_mlp", epsilon("LayerNormalization", 1e-6), "1e-6, as in another library's default")
fault("batchnorm-epsilon", "cnn", epsilon("BatchNormalization", 1e-4), "1e-4 instead of 1e-5")
fault("groupnorm-epsilon", "groupnorm_net", epsilon("InstanceNormalization", 1e-6), "1e-6 instead of 1e-5")
fault("instancenorm-epsilon", "style_net", epsilon("InstanceNormalization", 1e-6), "1e-6 instead of 1e-5")
fault(
    "rmsnorm-epsilon",
    "rms_swiglu",
    lambda m: edit(m, find(m, "Add"), 1, lambda v: v * 0 + np.float32(1e-4)),
    "1e-4 instead of 1e-5",
)


# --- rounded weights ------------------------------------------------------------------------------------------------

fault("weights-float16", "mlp", lambda m: edit(m, find(m, "Gemm", 2), 1, half), "the last layer went through float16")
fault(
    "weights-bfloat16",
    "mobilenet",
    lambda m: edit(m, find(m, "Conv", 2), 1, bfloat),
    "a small gating layer went through bfloat16",
)
fault(
    "weights-int8",
    "mobilenet",
    lambda m: edit(m, find(m, "Conv", 3), 1, int8),
    "a small gating layer was quantised to int8 and back",
)
fault(
    "recurrent-weights-float16",
    "lstm_classifier",
    lambda m: edit(m, find(m, "LSTM"), 2, half),
    "recurrent weights rounded to float16",
)
fault(
    "positions-float16",
    "patch_vit",
    lambda m: edit(m, find(m, "Add"), 1, half),
    "the table of positions was stored in float16",
)
fault(
    "table-four-digits",
    "recommender",
    lambda m: edit(m, find(m, "Gather", 1), 0, lambda w: np.round(w, 4)),
    "item vectors written as text with four digits",
)


def one_weight(m: Model) -> str:
    def change(w: np.ndarray) -> np.ndarray:
        w.reshape(-1)[5] *= 1.005
        return w

    return edit(m, find(m, "Conv", 1), 1, change)


fault("one-weight-half-percent", "cnn", one_weight, "one weight of a convolution is off by 0.5 %")
fault(
    "bias-one-in-100000",
    "square_mlp",
    lambda m: edit(m, find(m, "Gemm", 2), 2, lambda b: b + np.float32(1e-5)),
    "a bias is off by 1e-5",
)
fault(
    "prelu-slope-two-digits",
    "activations",
    lambda m: edit(m, find(m, "PRelu"), 1, lambda v: np.round(v, 2)),
    "learned slopes written with two digits",
)
fault(
    "batchnorm-unbiased-variance",
    "resnet",
    lambda m: edit(m, find(m, "BatchNormalization"), 4, lambda v: v * np.float32(4096 / 4095)),
    "the variance over n − 1 instead of n of 4096 values",
)


# --- truncated constants --------------------------------------------------------------------------------------------

fault(
    "root-of-eight",
    "cross_attention",
    lambda m: edit(m, find(m, "Div"), 1, lambda v: v * 0 + np.float32(2.828)),
    "the root of the width written with four digits",
)
fault(
    "attention-scale-bfloat16",
    "encoder",
    lambda m: edit(m, find(m, "Mul"), 1, bfloat),
    "the scale of the scores rounded to bfloat16",
)
fault(
    "pi-four-digits",
    "fourier_features",
    lambda m: edit(m, find(m, "Mul"), 1, lambda v: v * np.float32(3.1416 / np.pi)),
    "3.1416 for pi",
)
fault(
    "temperature-rounded",
    "mixture_of_experts",
    lambda m: edit(m, find(m, "Div"), 1, lambda v: v * 0 + np.float32(0.6998)),
    "a temperature of 0.7 became 0.6998",
)
fault(
    "dropout-scale",
    "siamese",
    lambda m: after(m, find(m, "Tanh").output[0], "Mul", constant(m, 0.9999, np.float32)),
    "a leftover scale of 0.9999",
)
fault(
    "resize-scale-drift",
    "unet",
    lambda m: edit(m, find(m, "Resize"), 2, lambda v: np.array([1, 1, 2.0002, 2.0002])),
    "the scale of a resize was computed in low precision",
)


# --- approximations -------------------------------------------------------------------------------------------------


def polynomial_erf(m: Model) -> str:
    """GELU by a polynomial for erf with three terms (error 2.5e-5)."""
    node = find(m, "Gelu")

    def number(value: float) -> str:
        return constant(m, value, np.float32)

    def op(kind: str, *inputs: str) -> str:
        return before(m, node, kind, list(inputs))

    x = node.input[0]
    z = op("Mul", x, number(1 / np.sqrt(2)))
    size = op("Abs", z)
    t = op("Reciprocal", op("Add", op("Mul", size, number(0.47047)), number(1)))
    series = op("Mul", t, number(0.7478556))
    series = op("Mul", t, op("Add", series, number(-0.0958798)))
    series = op("Mul", t, op("Add", series, number(0.3480242)))
    tail = op("Mul", series, op("Exp", op("Neg", op("Mul", z, z))))
    erf = op("Mul", op("Sign", z), op("Sub", number(1), tail))
    return become(node, "Mul", [op("Mul", x, number(0.5)), op("Add", erf, number(1))])


def rational_tanh(m: Model) -> str:
    """tanh(x) as a quotient of polynomials."""
    node = find(m, "Tanh", 1)

    def number(value: float) -> str:
        return constant(m, value, np.float32)

    def op(kind: str, *inputs: str) -> str:
        return before(m, node, kind, list(inputs))

    x = op("Clip", node.input[0], number(-4), number(4))
    s = op("Mul", x, x)
    top = op("Mul", x, op("Add", s, number(15)))
    low = op("Add", op("Mul", s, number(6)), number(15))
    return become(node, "Div", [top, low])


fault(
    "gelu-tanh",
    "encoder",
    lambda m: put(find(m, "Gelu"), approximate="tanh"),
    "the approximation by tanh instead of erf",
)
fault("gelu-polynomial", "gelu_mlp", polynomial_erf, "erf by a short polynomial")
fault("tanh-rational", "coupling_flow", rational_tanh, "tanh by a quotient of polynomials")
fault(
    "activation-in-float16",
    "pointnet",
    lambda m: through_half(m, find(m, "Relu").output[0]),
    "one activation is stored in float16",
)
fault(
    "states-in-float16",
    "masked_pool",
    lambda m: through_half(m, find(m, "Tanh").output[0]),
    "hidden states are kept in float16 before they are averaged",
)
