"""What is asked about a lower precision that is to be made, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from onnxproof.request.option import option
from onnxproof.request.reading import named, number, one_of
from onnxproof.request.thresholds import parse_gate

Kind = Literal["fp16", "int8 dynamic", "int8 static", "int4"]
Goal = Literal["auto", "int8", "int8-dynamic", "int8-static", "fp16", "int4"]
Method = Literal["MinMax", "Entropy", "Percentile"]
# What is made for each answer to --to.
KINDS: dict[Goal, tuple[Kind, ...]] = {
    "auto": get_args(Kind),
    "int8": ("int8 dynamic", "int8 static"),
    "int8-dynamic": ("int8 dynamic",),
    "int8-static": ("int8 static",),
    "fp16": ("fp16",),
    "int4": ("int4",),
}


@dataclass(frozen=True)
class Lowering:
    """One conversion: with it, the float file and the data the same file can be made again."""

    kind: Kind
    method: Method | None = None
    """How ranges come from the calibration rows; None to choose by them."""
    per_channel: bool = True
    reduce_range: bool | None = None
    """Weights of seven bits, so that sums of two products do not saturate on CPUs without VNNI; None to ask this CPU."""
    block: int = 32
    """Weights of four bits that share a scale."""
    kept: tuple[str, ...] = ()
    """Nodes of the float file that stay in float."""


@dataclass(frozen=True)
class QuantizeSettings:
    """Which precisions to try, and what they may cost."""

    to: Goal = option(
        "auto",
        "The precision: int8 (or int8-dynamic, int8-static), fp16, int4, or auto for all of them.",
        one_of(*get_args(Goal)),
        told=True,
    )
    keep_within: Mapping[str, float] = option(
        dict,
        "Largest loss: accuracy=0.005, or changed=0.01 of the decisions; nodes stay in float until it holds (repeatable).",
        named(parse_gate, number(lambda value: value >= 0, "a number of 0 or more"), '{"accuracy": 0.005}'),
        repeated=True,
    )
    """Metric → by how much it may be worse; `changed` is the share of decisions that are others than the original's."""
    making: Lowering | None = None
    """The one that a run of the pipeline makes."""
