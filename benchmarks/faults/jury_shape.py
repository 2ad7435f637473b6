"""Faults of the second jury that only other sizes show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from benchmarks.faults.helpers import after, become, before, bypass, constant, consumer, edit, find, producer
from benchmarks.faults.inputs import Witness, draw, like
from benchmarks.faults.registry import Fault, add

Model = onnx.ModelProto
Mutate = Callable[[Model], str | None]
# One word has no half: its mean is NaN in PyTorch and 0 in onnxruntime, which is another fault.
HALVES = {"range": {"seq": (2, 40)}}


def fault(name: str, architecture: str, mutate: Mutate, witness: Witness, why: str, **options: Any) -> None:
    """Register a shape fault."""
    add(Fault(f"jury-{name}", "shape", architecture, mutate, witness, why, options=options))


def read_constant(value: str, slot: int, to: object, dtype: type = np.int64) -> Mutate:
    """A node reads a constant where it read what the size is."""

    def mutate(m: Model) -> str:
        node = producer(m, value)
        node.input[slot] = constant(m, to, dtype)
        return node.name

    return mutate


def wrapped_distance(m: Model) -> str:
    bypass(m, find(m, "Clip"))
    return after(m, "add_15", "Mod", constant(m, 9, np.int64))


def mask_by_size(m: Model) -> str:
    node = find(m, "Trilu")
    node.input[1] = before(m, node, "Sub", ["sym_size_int_9", constant(m, 5, np.int64)])
    return node.name


def resize_by_two(m: Model) -> str:
    node = find(m, "Resize")
    node.input[:] = [node.input[0], "", constant(m, [1, 1, 2, 2], np.float32)]
    return node.name


def half_rounded_up(m: Model) -> str:
    node = producer(m, "floordiv")
    node.input[0] = before(m, node, "Add", [node.input[0], constant(m, 1, np.int64)])
    return node.name


def mean_of_five(m: Model) -> str:
    name = become(producer(m, "val_49"), "ReduceSum", keepdims=1)
    after(m, "val_49", "Div", constant(m, 5, np.float32))
    return name


def first_four(m: Model) -> str:
    node = producer(m, "output_1")
    ends = [constant(m, [value], np.int64) for value in (0, 4, 2)]
    node.input[0] = before(m, node, "Slice", [node.input[0], *ends])
    return node.name


def first_ten(m: Model) -> str:
    node = consumer(m, "series")
    ends = [constant(m, [value], np.int64) for value in (0, 10, 2)]
    node.input[0] = before(m, node, "Slice", [node.input[0], *ends])
    return node.name


def long_cache() -> dict[str, np.ndarray]:
    """A longer past, all of it valid."""
    drawn = draw("jury_grouped", 7, past=9)
    drawn["length"] = np.array([9, 7])
    return drawn


def long_text() -> dict[str, np.ndarray]:
    """Ten words in each row."""
    return {"ids": np.arange(1, 31).reshape(3, 10)}


fault(
    "distance-wraps",
    "jury_relative",
    wrapped_distance,
    like("jury_relative", seq=9),
    "far distances wrap around in the table",
)
fault(
    "positions-clipped",
    "jury_rotary",
    lambda m: after(m, "arange", "Min", constant(m, 5, np.int64)),
    like("jury_rotary", seq=9),
    "positions end where the example's ended",
)
fault(
    "mask-offset-by-size",
    "jury_rotary",
    mask_by_size,
    like("jury_rotary", seq=9),
    "the diagonal of the mask moves with the length",
)
fault(
    "state-rows-baked",
    "jury_gru",
    read_constant("zeros", 1, [3, 6]),
    like("jury_gru", batch=1),
    "the first state has three rows",
)
fault(
    "resize-by-two",
    "jury_unet",
    resize_by_two,
    like("jury_unet", height=7),
    "twice the size instead of the picture's: odd heights do not fit",
)
fault(
    "half-rounded-up",
    "jury_halves",
    half_rounded_up,
    like("jury_halves", seq=9),
    "half of an odd length is rounded up",
    **HALVES,
)
fault(
    "third-baked",
    "jury_halves",
    read_constant("slice_2", 1, [-3]),
    like("jury_halves", seq=14),
    "a third of the example's length",
    **HALVES,
)
fault(
    "last-place-baked",
    "jury_halves",
    read_constant("div", 1, 7, np.float32),
    like("jury_halves", seq=12),
    "places are divided by the example's last",
    **HALVES,
)
fault(
    "last-day-baked",
    "jury_returns",
    lambda m: edit(m, find(m, "Gather"), 1, lambda v: v * 0 + 7),
    like("jury_returns", days=12),
    "the eighth day instead of the last",
)
fault(
    "words-counted-to-six",
    "jury_pooling",
    lambda m: after(m, "sum_1", "Min", constant(m, 6, np.int64)),
    long_text,
    "words beyond the sixth are not counted",
)
fault(
    "positions-wrap",
    "jury_sinusoid",
    lambda m: after(m, "arange", "Mod", constant(m, 7, np.float32), fmod=1),
    like("jury_sinusoid", seq=10),
    "positions begin again after the example's length",
)
fault(
    "cache-of-five",
    "jury_grouped",
    lambda m: after(m, "unsqueeze_1", "Min", constant(m, 5, np.int64)),
    long_cache,
    "a past longer than the example's is not seen",
)
fault(
    "mean-of-five", "jury_losses", mean_of_five, like("jury_losses", batch=8), "the mean divides by the example's batch"
)
fault("best-of-four", "jury_overlap", first_four, like("jury_overlap", m=9), "only the first four boxes are looked at")
fault(
    "series-cut",
    "jury_causal",
    first_ten,
    like("jury_causal", time=16),
    "a longer series is cut at the example's length",
)
