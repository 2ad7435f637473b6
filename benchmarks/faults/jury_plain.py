"""Faults of the second jury that ordinary inputs show: wrong axes, orders, modes, signs and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from benchmarks.faults.helpers import become, bypass, edit, find, producer, put, swap_inputs
from benchmarks.faults.inputs import Witness, given, like
from benchmarks.faults.registry import Fault, add

Model = onnx.ModelProto
Mutate = Callable[[Model], str | None]


def fault(
    name: str, architecture: str, mutate: Mutate, why: str, witness: Witness | None = None, **options: Any
) -> None:
    """Register a plain fault; any ordinary input is a witness."""
    add(Fault(f"jury-{name}", "plain", architecture, mutate, witness or like(architecture), why, options=options))


def read(model: Model, value: str, slot: int, instead: str) -> str:
    """Let the node that makes a value read another input."""
    node = producer(model, value)
    if node.input[slot] == instead:
        raise ValueError(f"{node.name} reads {instead} already")
    node.input[slot] = instead
    return node.name


# --- pictures -------------------------------------------------------------------------------------------------------


def undilated(m: Model) -> str:
    node = find(m, "Conv", 2)
    put(node, pads=[1, 1, 1, 1])
    return put(node, dilations=[1, 1])


fault(
    "pool-counts-padding",
    "jury_separable",
    lambda m: put(find(m, "AveragePool"), count_include_pad=1),
    "the zeros of the padding are counted in the mean",
)
fault("dilation-lost", "jury_separable", undilated, "a dilated convolution became a dense one of the same output size")
fault(
    "skip-concat-order",
    "jury_unet",
    lambda m: swap_inputs(producer(m, "cat")),
    "what comes from below stands before the picture; the channels add up either way",
)
fault(
    "resize-align-corners",
    "jury_unet",
    lambda m: put(find(m, "Resize"), coordinate_transformation_mode="align_corners"),
    "the corners are aligned though the model does not",
)
fault(
    "shuffle-depth-first",
    "jury_upscaler",
    lambda m: put(find(m, "DepthToSpace"), mode="DCR"),
    "blocks are taken depth first",
)
fault(
    "reflect-pad-as-edge",
    "jury_upscaler",
    lambda m: put(find(m, "Pad"), mode="edge"),
    "the border is repeated, not mirrored",
)
fault(
    "max-gate-as-mean",
    "jury_gates",
    lambda m: become(find(m, "ReduceMax", 1), "ReduceMean", keepdims=1),
    "the greatest channel became the mean",
)
fault(
    "square-weight-transposed",
    "jury_gates",
    lambda m: put(producer(m, "linear_3"), transB=0),
    "a square weight is used the other way round",
)
fault(
    "patch-channels-first",
    "jury_patches",
    lambda m: put(producer(m, "permute"), perm=[0, 2, 4, 1, 3, 5]),
    "inside a patch, channels come first",
)
fault(
    "grid-x-and-y",
    "jury_detector",
    lambda m: edit(m, producer(m, "add_32"), 0, lambda v: v[:, ::-1]),
    "rows and columns of the grid are exchanged",
)
fault(
    "anchor-order",
    "jury_detector",
    lambda m: edit(m, producer(m, "mul_30"), 0, lambda v: v[::-1]),
    "the anchor is height by width",
)
fault(
    "union-adds", "jury_overlap", lambda m: become(producer(m, "sub_131"), "Add"), "the overlap is added to the union"
)
fault(
    "colour-matrix-transposed",
    "jury_colour",
    lambda m: edit(m, find(m, "Einsum"), 0, lambda v: v.T),
    "a square matrix of colours the other way round",
)
fault(
    "sample-align-corners",
    "jury_warp",
    lambda m: put(find(m, "GridSample"), align_corners=1),
    "the grid's ends are the centres of the corner pixels",
)


# --- sound and sequences --------------------------------------------------------------------------------------------

fault(
    "window-symmetric",
    "jury_logmel",
    lambda m: edit(m, producer(m, "mul_13"), 1, lambda v: np.hanning(16)),
    "a symmetric window instead of a periodic one",
)
fault(
    "decibel-base-two",
    "jury_logmel",
    lambda m: edit(m, producer(m, "log10"), 1, lambda v: v * 0 + np.log(2)),
    "the logarithm to the base two",
)
fault(
    "rotary-sign-of-keys", "jury_rotary", lambda m: bypass(m, producer(m, "neg_1")), "keys are turned without the minus"
)
fault("relative-sign", "jury_relative", lambda m: swap_inputs(producer(m, "sub_4")), "distances are counted backwards")
fault(
    "windows-not-shifted-back",
    "jury_windows",
    lambda m: swap_inputs(producer(m, "roll_1")),
    "what was rolled stays rolled",
)
fault(
    "gate-not-complemented",
    "jury_gru",
    lambda m: read(m, "mul_76", 0, "split_1_split_0"),
    "in the second step the new state is weighed with z, not 1 − z",
)
fault(
    "forget-bias-lost",
    "jury_peephole",
    lambda m: edit(m, producer(m, "add_35"), 1, lambda v: v * 0),
    "the one that the forget gate adds is gone",
)
fault(
    "state-exclusive",
    "jury_linear_attention",
    lambda m: put(find(m, "CumSum"), exclusive=1),
    "the running state does not include the present",
)
fault(
    "experts-not-renormalised",
    "jury_experts",
    lambda m: bypass(m, find(m, "Div")),
    "the weights of the chosen experts do not sum to one",
)


# --- tables ---------------------------------------------------------------------------------------------------------

fault(
    "volume-sign",
    "jury_coupling",
    lambda m: become(producer(m, "add_77"), "Sub"),
    "the volume of the second layer is subtracted",
)
fault(
    "field-offset",
    "jury_machine",
    lambda m: edit(m, find(m, "Add"), 1, lambda v: np.array([0, 10, 10])),
    "two fields share their rows",
)
fault(
    "messages-by-max",
    "jury_messages",
    lambda m: put(find(m, "ScatterND"), reduction="max"),
    "the greatest message instead of their sum",
)
fault(
    "focal-exponent",
    "jury_losses",
    lambda m: edit(m, producer(m, "pow_1"), 1, lambda v: v - 1),
    "the focal loss with gamma one",
)
fault(
    "motion-not-transposed",
    "jury_tracker",
    lambda m: read(m, "matmul_3", 1, "move"),
    "the covariance is moved with F on both sides",
)
fault(
    "quantile-one-off",
    "jury_quantiles",
    lambda m: edit(m, producer(m, "select_2"), 1, lambda v: v - 1),
    "the upper quantile begins one place too low",
)
fault(
    "weekday-off-by-one",
    "jury_calendar",
    lambda m: edit(m, producer(m, "add_73"), 1, lambda v: v - 1),
    "1970 began on a Wednesday",
    given("jury_calendar", day=[0, 59, 11017, 19782, 20000]),
)
fault("modality-swapped", "jury_many", lambda m: read(m, "linear_1", 0, "text"), "both branches read the text")
fault(
    "beam-by-ten",
    "jury_beam",
    lambda m: edit(m, producer(m, "val_30"), 1, lambda v: v - 1),
    "the beam is found with another number of words",
)
