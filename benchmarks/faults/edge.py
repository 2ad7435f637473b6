"""Faults that ordinary random inputs do not show: limits, ties, zeros, overflow and the ends of tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.faults.helpers import Change, after, become, before, bypass, constant, edit, find, put
from benchmarks.faults.inputs import Witness, given, like
from benchmarks.faults.registry import Fault, add

Model = onnx.ModelProto
Mutate = Callable[[Model], str | None]
SIGNED = {"range": {"ids": (-500, 500)}}


def fault(name: str, architecture: str, mutate: Mutate, witness: Witness, why: str, **options: Any) -> None:
    """Register an edge fault."""
    add(Fault(name, "edge", architecture, mutate, witness, why, options=options))


# --- limits ---------------------------------------------------------------------------------------------------------


def unclipped_hardsigmoid(m: Model) -> str:
    node = find(m, "HardSigmoid")
    sixth = before(m, node, "Mul", [node.input[0], constant(m, 1 / 6, np.float32)])
    return become(node, "Add", [sixth, constant(m, 0.5, np.float32)])


def unclipped_hardswish(m: Model) -> str:
    node = find(m, "HardSwish")
    sixth = before(m, node, "Mul", [node.input[0], constant(m, 1 / 6, np.float32)])
    return become(node, "Mul", [node.input[0], before(m, node, "Add", [sixth, constant(m, 0.5, np.float32)])])


def edge_clip(m: Model, op: str, limit: float) -> str:
    """Cut what a node reads."""
    node = find(m, op)
    low, high = constant(m, -limit, np.float32), constant(m, limit, np.float32)
    node.input[0] = before(m, node, "Clip", [node.input[0], low, high])
    return node.name


fault(
    "relu6-cap-sixty",
    "mobilenet",
    lambda m: edit(m, find(m, "Clip"), 2, lambda v: v * 10),
    like("mobilenet", scale=100),
    "a cap of 60 where the model has 6",
)
fault(
    "relu6-as-relu",
    "mobilenet",
    lambda m: become(find(m, "Clip", 1), "Relu", [find(m, "Clip", 1).input[0]]),
    like("mobilenet", scale=100),
    "the cap of the last activation is gone",
)
fault(
    "hardsigmoid-unclipped",
    "mobilenet",
    unclipped_hardsigmoid,
    like("mobilenet", scale=500),
    "the straight part of the hard sigmoid goes on beyond 0 and 1",
)
fault(
    "hardswish-unclipped",
    "mobilenet",
    unclipped_hardswish,
    like("mobilenet", scale=100),
    "the middle part of the hard swish goes on beyond 3",
)
fault(
    "int8-lower-limit",
    "fake_quant",
    lambda m: edit(m, find(m, "Clip"), 1, lambda v: v + 1),
    given("fake_quant", x=-9.0),
    "−127 instead of −128 as the least step",
)
fault(
    "uint8-upper-limit",
    "fake_quant",
    lambda m: edit(m, find(m, "Clip"), 2, lambda v: v * 0 + 255),
    given("fake_quant", x=12.0),
    "the limit of unsigned steps",
)
fault(
    "price-cap-lost",
    "price_regressor",
    lambda m: bypass(m, find(m, "Clip")),
    given("price_regressor", x=[[1, 0, 1, 0], [1, 0, 10, 0], [5, 0, 5, 0]]),
    "the exponent is not capped",
)
fault(
    "calibration-clip",
    "pointnet",
    lambda m: after(m, find(m, "Relu").output[0], "Clip", constant(m, 0, np.float32), constant(m, 6, np.float32)),
    like("pointnet", scale=200),
    "activations cut at the range seen in calibration",
)
fault(
    "sigmoid-saturates-early",
    "wide_deep",
    lambda m: edge_clip(m, "Sigmoid", 4.0),
    given("wide_deep", dense=300.0),
    "logits beyond 4 are cut before the sigmoid",
)


# --- integers -------------------------------------------------------------------------------------------------------

NEGATIVE = [[-1, -5, -9, -11, -25], [3, 17, -30, -31, 40]]

fault(
    "floor-division-truncates",
    "feature_hasher",
    lambda m: bypass(m, find(m, "Sub")),
    given("feature_hasher", ids=NEGATIVE),
    "towards zero instead of down",
    **SIGNED,
)


def truncated_remainder(m: Model) -> str:
    return put(find(m, "Mod", -1), fmod=1)


fault(
    "remainder-sign",
    "feature_hasher",
    truncated_remainder,
    given("feature_hasher", ids=NEGATIVE),
    "the remainder takes the sign of the number, as in C",
    **SIGNED,
)
fault(
    "bin-upper-limit",
    "feature_hasher",
    lambda m: edit(m, find(m, "Clip"), 2, lambda v: v - 1),
    given("feature_hasher", ids=300),
    "the last bin is never used",
    **SIGNED,
)


def narrow_ids(m: Model) -> str:
    node = find(m, "Div")
    narrow = before(m, node, "Cast", [node.input[0]], to=TensorProto.INT8)
    node.input[0] = before(m, node, "Cast", [narrow], to=TensorProto.INT64)
    return node.name


fault(
    "ids-through-int8",
    "feature_hasher",
    narrow_ids,
    given("feature_hasher", ids=[[200, 201, 250, 130, 150], [129, 300, 400, 180, 199]]),
    "ids wrap around at 128",
    **SIGNED,
)


# --- ties and thresholds --------------------------------------------------------------------------------------------


def half_up(m: Model) -> str:
    node = find(m, "Round")
    raised = before(m, node, "Add", [node.input[0], constant(m, 0.5, np.float32)])
    return become(node, "Floor", [raised])


def sign_without_zero(m: Model) -> str:
    node = find(m, "Sign")
    zero, one, minus = (constant(m, v, np.float32) for v in (0, 1, -1))
    positive = before(m, node, "GreaterOrEqual", [node.input[0], zero])
    return become(node, "Where", [positive, one, minus])


TIES = (np.arange(18).reshape(3, 6) - 9 + 0.5) / 16

fault("round-half-up", "fake_quant", half_up, given("fake_quant", x=TIES), "halves are rounded up, not to even")
fault(
    "argmax-last-of-ties",
    "clipped_policy",
    lambda m: put(find(m, "ArgMax"), select_last_index=1),
    given("clipped_policy", scores=[[1, 5, 0, 9, 2, 3]] * 3),
    "of two actions at the limit the last is taken",
)
fault(
    "threshold-inclusive",
    "threshold_gate",
    lambda m: become(find(m, "Greater"), "GreaterOrEqual"),
    given("threshold_gate", x=1.5),
    "at least the threshold instead of above it",
)
fault("sign-of-zero", "threshold_gate", sign_without_zero, given("threshold_gate", x=0.0), "the sign of zero is one")


# --- zeros and guards -----------------------------------------------------------------------------------------------

fault(
    "rms-epsilon-removed",
    "rms_swiglu",
    lambda m: bypass(m, find(m, "Add")),
    given("rms_swiglu", x=0.0),
    "a row of zeros divides by zero",
)
fault(
    "root-epsilon-removed",
    "survival",
    lambda m: bypass(m, find(m, "Add", 1)),
    given("survival", x=0.0),
    "nothing keeps the root above zero",
)
fault(
    "log-of-zero",
    "price_regressor",
    lambda m: bypass(m, find(m, "Add")),
    given("price_regressor", x=0.0),
    "the offset inside the logarithm is gone",
)
fault(
    "empty-mask-division",
    "masked_pool",
    lambda m: bypass(m, find(m, "Clip")),
    given("masked_pool", mask=0),
    "a row without any position divides by zero",
)
fault(
    "mask-of-minus-infinity",
    "encoder",
    lambda m: edit(m, find(m, "Where"), 1, lambda v: v * 0 - np.inf),
    given("encoder", mask=[[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0]]),
    "a fully masked row becomes NaN",
)
fault(
    "zero-reading-guard",
    "threshold_gate",
    lambda m: bypass(m, find(m, "Where", -1), 2),
    given("threshold_gate", x=0.0),
    "a reading of zero is no longer treated as missing",
)
fault(
    "nan-guard-removed",
    "sensor_guard",
    lambda m: bypass(m, find(m, "Where"), 2),
    given("sensor_guard", x=[[np.nan, 1, 2, 3, 4, 5]] * 3),
    "missing readings go on as NaN",
)
fault(
    "constant-image",
    "style_net",
    lambda m: put(find(m, "InstanceNormalization"), epsilon=0.0),
    given("style_net", x=0.0),
    "without an epsilon a plain picture divides by zero",
)


# --- overflow -------------------------------------------------------------------------------------------------------


def naive_softplus(m: Model) -> str:
    node = find(m, "Softplus")
    grown = before(m, node, "Exp", [node.input[0]])
    become(node, "Log", [before(m, node, "Add", [grown, constant(m, 1, np.float32)])])
    bypass(m, find(m, "Where"), 2)
    return node.name


fault(
    "softplus-overflow",
    "survival",
    naive_softplus,
    given("survival", x=200.0),
    "log(1 + exp(x)) without the straight branch for large x",
)
fault(
    "softmax-overflow",
    "survival",
    lambda m: bypass(m, find(m, "Sub")),
    given("survival", x=[[200, 1, 2, 3], [0, 150, 1, 1], [90, 91, 92, 0]]),
    "the maximum is not subtracted before the exponential",
)


# --- ends of tables -------------------------------------------------------------------------------------------------


def change_row(row: int, value: float) -> Change:
    """Overwrite one row of a table."""

    def change(table: np.ndarray) -> np.ndarray:
        table[row] = value
        return table

    return change


fault(
    "last-id-zero",
    "gru_tagger",
    lambda m: edit(m, find(m, "Gather"), 0, change_row(-1, 0.0)),
    given("gru_tagger", ids=299),
    "the last row of the table was cut off and filled with zeros",
)
fault(
    "padding-row-not-zero",
    "encoder",
    lambda m: edit(m, find(m, "Gather"), 0, change_row(0, 0.7)),
    given("encoder", ids=0),
    "the row of the padding id is not zero",
)
fault(
    "first-user-overwritten",
    "recommender",
    lambda m: edit(m, find(m, "Gather"), 0, change_row(0, 0.5)),
    given("recommender", user=0),
    "the row for unknown users replaced the first user",
)
