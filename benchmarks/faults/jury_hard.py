"""Faults of the second jury on the architectures of jury_more, and needles: one row, one weight, one block, one rare id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.faults.helpers import after, become, before, constant, edit, find, half, producer, put
from benchmarks.faults.inputs import Witness, given, like
from benchmarks.faults.registry import Class, Fault, add

Model = onnx.ModelProto
Mutate = Callable[[Model], str | None]


def fault(
    name: str, cls: Class, architecture: str, mutate: Mutate, why: str, witness: Witness | None = None, **options: Any
) -> None:
    """Register a fault."""
    add(Fault(f"jury-{name}", cls, architecture, mutate, witness or like(architecture), why, options=options))


def reorder_gates(weight: np.ndarray) -> np.ndarray:
    """From i, o, f, c to i, f, o, c."""
    i, o, f, c = np.split(weight, 4, 1)
    return np.concatenate([i, f, o, c], 1)


def exchange_rows(table: np.ndarray) -> np.ndarray:
    """Two neighbours in the middle of a table change places."""
    table[[2345, 2346]] = table[[2346, 2345]]
    return table


def nudge(weight: np.ndarray) -> np.ndarray:
    """One weight is two percent too large."""
    weight[3, 4] *= 1.02
    return weight


def through_single(m: Model) -> str:
    node = find(m, "Sub")
    for slot in (0, 1):
        single = before(m, node, "Cast", [node.input[slot]], to=TensorProto.FLOAT)
        node.input[slot] = before(m, node, "Cast", [single], to=TensorProto.DOUBLE)
    return node.name


def multiply_in_int32(m: Model) -> str:
    node = find(m, "Mul")
    node.input[:] = [before(m, node, "Cast", [name], to=TensorProto.INT32) for name in node.input]
    return after(m, node.output[0], "Cast", to=TensorProto.INT64)


def ignore_minus_one(m: Model) -> str:
    node = find(m, "GreaterOrEqual")
    return become(node, "Not", [before(m, node, "Equal", [node.input[0], constant(m, -1, np.int64)])])


def fill_masked(m: Model) -> str:
    """Masked scores are replaced, not lowered."""
    node = producer(m, "add_99")
    hidden = before(m, node, "Cast", ["sub_44"], to=TensorProto.BOOL)
    return become(node, "Where", [hidden, constant(m, -1e4, np.float32), "add_66"])


def cap_wealth(m: Model) -> str:
    return after(m, "exp", "Min", constant(m, 1e4, np.float32))


def positions_bfloat(m: Model) -> str:
    node = producer(m, "unsqueeze")
    small = before(m, node, "Cast", [node.input[0]], to=TensorProto.BFLOAT16)
    node.input[0] = before(m, node, "Cast", [small], to=TensorProto.FLOAT)
    return node.name


NOW = 1_700_000_000.0

fault("bytes-by-256", "plain", "jury_camera", lambda m: edit(m, find(m, "Div"), 1, lambda v: v + 1), "divided by 256")
fault(
    "blue-before-red",
    "plain",
    "jury_camera",
    lambda m: edit(m, find(m, "Conv"), 1, lambda v: v[:, ::-1]),
    "the channels the other way round",
)
fault(
    "gate-order",
    "plain",
    "jury_tagger",
    lambda m: edit(m, find(m, "LSTM"), 1, reorder_gates),
    "the gates in PyTorch's order",
)
fault(
    "state-of-the-other-direction",
    "plain",
    "jury_tagger",
    lambda m: edit(m, producer(m, "output_1"), 1, lambda v: v * 0),
    "the last state of the forward direction",
)
fault(
    "spectrum-norm",
    "plain",
    "jury_spectrum",
    lambda m: edit(m, find(m, "Div"), 1, lambda v: v * 4),
    "divided by n, not by its root",
)
fault(
    "softmax-over-words",
    "plain",
    "jury_learned",
    lambda m: put(find(m, "Softmax"), axis=1),
    "chances sum to one over the words",
)
fault(
    "recurrence-half",
    "noise",
    "jury_tagger",
    lambda m: edit(m, find(m, "LSTM"), 2, half),
    "the recurrent weights in half precision",
)
fault(
    "one-weight",
    "noise",
    "jury_stack",
    lambda m: edit(m, find(m, "Gemm", 12), 1, nudge),
    "one weight of the seventh block",
)
fault(
    "one-gelu",
    "noise",
    "jury_stack",
    lambda m: put(find(m, "Gelu", 7), approximate="tanh"),
    "the eighth block's GELU is approximated",
)
fault(
    "one-epsilon",
    "noise",
    "jury_stack",
    lambda m: put(find(m, "LayerNormalization"), epsilon=1e-6),
    "the first block's epsilon",
    like("jury_stack", scale=0.2),
)
fault(
    "seconds-single",
    "edge",
    "jury_clock",
    through_single,
    "seconds since 1970 in single precision",
    given("jury_clock", now=NOW + 3.25, event=[NOW, NOW - 60, NOW - 900, NOW + 1]),
)
fault(
    "two-rows-of-many",
    "edge",
    "jury_catalogue",
    lambda m: edit(m, find(m, "Gather"), 0, exchange_rows),
    "two neighbours of a table changed places",
    given("jury_catalogue", product=2345),
)
fault(
    "hash-in-int32",
    "edge",
    "jury_bits",
    multiply_in_int32,
    "the hash of large keys overflows",
    given("jury_bits", key=[60000, 99999, 70001, 80808, 54321]),
    range={"key": (0, 100000)},
)
fault(
    "ignore-index",
    "edge",
    "jury_losses",
    ignore_minus_one,
    "labels of −100 count, only −1 does not",
    given("jury_losses", label=[0, 3, -100, 2, -100]),
    range={"label": (-100, 3)},
)
fault(
    "places-end-at-32",
    "shape",
    "jury_learned",
    lambda m: after(m, "arange", "Min", constant(m, 31, np.int64)),
    "places beyond the thirty-second are its own",
    like("jury_learned", seq=40),
    range={"seq": (1, 64)},
)
fault(
    "masked-row-filled",
    "edge",
    "jury_relative",
    fill_masked,
    "scores of masked tokens are replaced, not lowered: only rows without any token differ",
    given("jury_relative", mask=0),
)
fault(
    "wealth-cap",
    "edge",
    "jury_returns",
    cap_wealth,
    "growth is capped at ten thousand, which only a long run of gains reaches",
    given("jury_returns", daily=3.0),
)
fault(
    "mask-of-32-bits",
    "edge",
    "jury_bits",
    lambda m: edit(m, find(m, "BitwiseAnd"), 1, lambda v: v * 2 + 1),
    "the sign bit of a 32-bit hash is kept",
    given("jury_bits", key=[60000, 99999, 70001, 80808, 54321]),
    range={"key": (0, 100000)},
)
fault(
    "positions-bfloat",
    "shape",
    "jury_sinusoid",
    positions_bfloat,
    "positions beyond 256 are rounded to bfloat16",
    like("jury_sinusoid", seq=300),
    range={"seq": (1, 512)},
)
