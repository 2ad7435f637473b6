"""Faults of the second jury that ordinary random inputs do not show: limits, empty rows, overflow, days and ties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.faults.helpers import after, become, before, bypass, constant, edit, find, producer, put
from benchmarks.faults.inputs import Witness, draw, given, like
from benchmarks.faults.registry import Fault, add

Model = onnx.ModelProto
Mutate = Callable[[Model], str | None]
DAYS = {"range": {"day": (-100000, 100000)}}


def fault(name: str, architecture: str, mutate: Mutate, witness: Witness, why: str, **options: Any) -> None:
    """Register an edge fault."""
    add(Fault(f"jury-{name}", "edge", architecture, mutate, witness, why, options=options))


def set_constant(value: str, slot: int, to: float) -> Mutate:
    """Another constant."""
    return lambda m: edit(m, producer(m, value), slot, lambda v: v * 0 + to)


# --- limits ---------------------------------------------------------------------------------------------------------


def loud_then_silent() -> dict[str, np.ndarray]:
    """A wave that is loud for a while and then silent."""
    wave = draw("jury_logmel", 7, 300.0)["wave"]
    wave[:, 30:] = 0.0
    return {"wave": wave}


def big_boxes() -> dict[str, np.ndarray]:
    """Boxes beyond the cap of their size."""
    drawn = draw("jury_overlap", 7)
    drawn["boxes"][..., 2:] = 6.0
    return drawn


fault(
    "pixel-cap",
    "jury_upscaler",
    set_constant("output", 2, 255.0),
    like("jury_upscaler", scale=300),
    "255 as the greatest value, not 300",
)
fault(
    "pixel-floor",
    "jury_upscaler",
    set_constant("output", 1, -1000.0),
    like("jury_upscaler", scale=300),
    "nothing keeps values above −300",
)
fault(
    "box-cap-lost",
    "jury_detector",
    lambda m: bypass(m, find(m, "Clip")),
    like("jury_detector", scale=60),
    "the size of a box is not capped",
)
fault(
    "box-cap-five",
    "jury_overlap",
    lambda m: edit(m, producer(m, "clamp"), 2, lambda v: v + 1),
    big_boxes,
    "the cap of a size is e⁵, not e⁴",
)
fault(
    "silence-floor",
    "jury_logmel",
    set_constant("clamp", 1, 1e-10),
    given("jury_logmel", wave=0.0),
    "another floor under silence",
)
fault(
    "range-of-eighty-decibels",
    "jury_logmel",
    set_constant("sub_18", 1, 80.0),
    loud_then_silent,
    "80 decibels below the loudest, not 60",
)
fault(
    "gain-cap",
    "jury_returns",
    set_constant("clamp", 2, 5.0),
    given("jury_returns", daily=[[0.0, 0.0, 7.0, 0.0, 0.1, 0.0, 0.0, 0.0]] * 2),
    "a day's gain is capped at five, not nine",
)
fault(
    "cell-cap-lost",
    "jury_peephole",
    set_constant("output_1", 2, 1000.0),
    given("jury_peephole", cell=50.0),
    "the cell may grow beyond ten",
)


# --- masks and empty rows -------------------------------------------------------------------------------------------


def scattered_base(m: Model) -> str:
    node = producer(m, "scatter_reduce")
    node.input[0] = constant(m, np.zeros(6), np.float32)
    return node.name


fault(
    "weak-causal-mask",
    "jury_rotary",
    set_constant("masked_fill", 1, -100.0),
    like("jury_rotary", scale=40),
    "the future is 100 below, which large scores overcome",
)
fault(
    "weak-token-mask",
    "jury_relative",
    set_constant("mul_67", 1, -100.0),
    like("jury_relative", seed=0, scale=60),
    "masked tokens are 100 below, which large scores overcome",
)
fault(
    "empty-text",
    "jury_pooling",
    lambda m: bypass(m, find(m, "Clip")),
    given("jury_pooling", ids=0),
    "a text without words divides by zero",
)
fault(
    "padding-wins",
    "jury_pooling",
    set_constant("masked_fill", 1, -0.5),
    given("jury_pooling", ids=[[i, 0, 0, 0, 0, 0] for i in (1, 2, 3)]),
    "padding counts as −0.5, more than what a short text has",
)
fault(
    "empty-cache",
    "jury_grouped",
    set_constant("where", 2, -np.inf),
    given("jury_grouped", length=0),
    "a row without a past becomes NaN",
)
fault(
    "all-labels-ignored",
    "jury_losses",
    lambda m: bypass(m, producer(m, "clamp_1")),
    given("jury_losses", label=-1),
    "no label counts, and the mean divides by zero",
)
fault(
    "scatter-from-zero",
    "jury_edge_attention",
    scattered_base,
    given(
        "jury_edge_attention",
        nodes=np.random.default_rng(5).choice([-900, 900], (6, 4)),
        source=[0, 1, 2, 3, 4, 5, 2, 0],
        target=[1, 2, 3, 4, 5, 0, 0, 3],
    ),
    "the greatest score of a node is at least zero, and very low scores vanish",
)
fault(
    "attention-epsilon-lost",
    "jury_linear_attention",
    lambda m: bypass(m, producer(m, "add_76")),
    like("jury_linear_attention", scale=1000),
    "where nothing is attended to, zero is divided by zero",
)


# --- overflow and cancellation --------------------------------------------------------------------------------------


def naive_softplus(m: Model) -> str:
    node = find(m, "Softplus")
    become(node, "Log", [before(m, node, "Add", [before(m, node, "Exp", [node.input[0]]), constant(m, 1, np.float32)])])
    bypass(m, find(m, "Where"), 2)
    return node.name


def unshifted(m: Model) -> str:
    node = producer(m, "exp")
    node.input[0] = "sub_19"
    become(producer(m, "output"), "Identity", ["log_1"])
    return node.name


def naive_logsoftmax(m: Model) -> str:
    node = find(m, "LogSoftmax")
    return become(node, "Log", [before(m, node, "Softmax", [node.input[0]], axis=-1)])


def square_difference(m: Model) -> str:
    """E[x²] − E[x]² instead of the mean square of what is centred."""
    producer(m, "val_7").input[:] = ["x", "x"]
    mean = producer(m, "val_8")
    flat = before(m, mean, "ReduceMean", ["x", mean.input[1]], keepdims=0)
    return after(m, "val_8", "Sub", before(m, mean, "Mul", [flat, flat]))


def ratio_sigmoid(m: Model) -> str:
    node = find(m, "Sigmoid", 1)
    grown = before(m, node, "Exp", [node.input[0]])
    return become(node, "Div", [grown, before(m, node, "Add", [grown, constant(m, 1, np.float32)])])


def ratio_tanh(m: Model) -> str:
    node = find(m, "Tanh")
    grown = before(m, node, "Exp", [before(m, node, "Add", [node.input[0], node.input[0]])])
    one = constant(m, 1, np.float32)
    return become(node, "Div", [before(m, node, "Sub", [grown, one]), before(m, node, "Add", [grown, one])])


fault(
    "naive-softplus",
    "jury_scan",
    naive_softplus,
    given("jury_scan", x=np.full((2, 5, 4), 200.0) * [1, -1, 1, -1]),
    "log(1 + exp(x)) overflows",
)
fault(
    "unshifted-logsumexp",
    "jury_mixture",
    unshifted,
    given("jury_mixture", value=300.0),
    "the logarithm of a sum of vanishing terms",
)
fault(
    "log-of-softmax",
    "jury_losses",
    naive_logsoftmax,
    given("jury_losses", x=np.random.default_rng(1).normal(0, 200, (5, 5)), label=[0, 3, -1, 2, 1]),
    "the logarithm of a probability that vanished",
)
fault(
    "variance-by-squares",
    "jury_moments",
    square_difference,
    given("jury_moments", x=[901 + 0.3125 * np.array([1, 1, -2, 3, -1, -2, 5, -4, -1, 7, -3, -4])] * 3),
    "the difference of two large squares",
)
fault(
    "sigmoid-by-ratio",
    "jury_peephole",
    ratio_sigmoid,
    given("jury_peephole", cell=300.0),
    "exp(x)/(1 + exp(x)) is NaN for large x",
)
fault(
    "tanh-by-ratio",
    "jury_coupling",
    ratio_tanh,
    like("jury_coupling", scale=200),
    "(e²ˣ − 1)/(e²ˣ + 1) is NaN for large x",
)
fault(
    "constant-row",
    "jury_moments",
    lambda m: bypass(m, producer(m, "add_9")),
    given("jury_moments", x=2.0),
    "a constant row divides by zero",
)


# --- holes, bins, days and bits -------------------------------------------------------------------------------------


def narrow_days(m: Model) -> str:
    node = producer(m, "add")
    small = before(m, node, "Cast", [node.input[0]], to=TensorProto.INT16)
    node.input[0] = before(m, node, "Cast", [small], to=TensorProto.INT64)
    return node.name


HOLES = [[np.nan, 1.0, np.nan, 0.2], [0.1, np.nan, 3.0, np.nan], [1.0, 2.0, 3.0, 4.0]]

fault(
    "hole-filled-with-zero",
    "jury_missing",
    lambda m: edit(m, find(m, "Where"), 1, lambda v: v * 0),
    given("jury_missing", row=HOLES),
    "missing values become zero, not the column's mean",
)
fault(
    "bin-side",
    "jury_missing",
    lambda m: become(find(m, "GreaterOrEqual"), "Greater"),
    given("jury_missing", row=[[0.3, -1.0, 3.0, 0.5], [0.3, -1.0, 1.0, -0.5], [0, 0, 5, 1.5]]),
    "a value at the edge falls into the lower bin",
)
fault(
    "weekday-before-1970",
    "jury_calendar",
    lambda m: put(producer(m, "weekday"), fmod=1),
    given("jury_calendar", day=[-10, -20000, -3, 5, -5]),
    "the remainder takes the sign of the day",
    **DAYS,
)
fault(
    "days-int16",
    "jury_calendar",
    narrow_days,
    given("jury_calendar", day=[40000, 33000, -40000, 5, 32768]),
    "days after 2059 wrap around",
    **DAYS,
)
fault(
    "leap-of-four-centuries",
    "jury_calendar",
    lambda m: bypass(m, producer(m, "sub_11"), 0),
    given("jury_calendar", day=11016),
    "29 February 2000 is missing: the last day of four centuries",
    **DAYS,
)
fault(
    "key-sign",
    "jury_bits",
    lambda m: put(producer(m, "remainder"), fmod=1),
    given("jury_bits", key=[-1, -17, -999, 512, 255]),
    "the bits of negative keys are negative",
    range={"key": (-1000, 1000)},
)
