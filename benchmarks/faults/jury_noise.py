"""Faults of the second jury that no usual tolerance sees: rounded constants, other epsilons, half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from benchmarks.faults.helpers import bfloat, edit, find, half, producer, put, through_half
from benchmarks.faults.inputs import Witness, given, like
from benchmarks.faults.registry import Fault, add

Model = onnx.ModelProto
Mutate = Callable[[Model], str | None]


def fault(
    name: str, architecture: str, mutate: Mutate, why: str, witness: Witness | None = None, **options: Any
) -> None:
    """Register a fault below the tolerances."""
    add(Fault(f"jury-{name}", "noise", architecture, mutate, witness or like(architecture), why, options=options))


def round_constant(value: str, slot: int, to: float) -> Mutate:
    """A constant is written with fewer digits."""
    return lambda m: edit(m, producer(m, value), slot, lambda v: v * 0 + to)


def halve(value: str, slot: int) -> Mutate:
    """A weight is stored in half precision."""
    return lambda m: edit(m, producer(m, value), slot, half)


def int16(values: np.ndarray) -> np.ndarray:
    """Quantised to 16 bits with one scale, and back."""
    scale = np.abs(values).max() / 32767
    return np.asarray(np.round(values / scale) * scale, values.dtype)


PLACES = {"here": [[52.5, 13.4], [40.7, -74.0]], "there": [[48.9, 2.4], [35.7, 139.7]]}
DAYS = [7, 59, 11017, 19782, 20000]

# --- weights and values in fewer bits -------------------------------------------------------------------------------

fault(
    "norm-fold-epsilon",
    "jury_separable",
    lambda m: edit(m, find(m, "Conv"), 1, lambda v: v * (1 - 5e-5)),
    "folded with another epsilon",
)
fault(
    "slope-half",
    "jury_separable",
    lambda m: put(find(m, "LeakyRelu"), alpha=float(np.float16(0.1))),
    "the slope in half precision",
)
fault("subpixel-half", "jury_upscaler", halve("conv2d_1", 1), "the last convolution's weights in half precision")
fault(
    "gate-half",
    "jury_gates",
    lambda m: through_half(m, "sigmoid"),
    "the gate of the channels goes through half precision",
)
fault("bias-table-half", "jury_relative", halve("embedding", 0), "the table of distances in half precision")
fault(
    "rates-bfloat", "jury_rotary", lambda m: edit(m, producer(m, "mul_27"), 1, bfloat), "the rotary rates in bfloat16"
)
fault("cell-weights-int16", "jury_peephole", lambda m: edit(m, find(m, "Gemm"), 1, int16), "weights of 16 bits")
fault("decay-half", "jury_scan", halve("mul_8", 1), "the decay rates in half precision")
fault("heat-half", "jury_towers", halve("div_2", 1), "the temperature in half precision")
fault("noise-half", "jury_tracker", halve("add_19", 1), "the noise in half precision")
fault("smoothing-half", "jury_losses", halve("mul_14", 1), "the share of the smoothing in half precision")

# --- epsilons -------------------------------------------------------------------------------------------------------

fault(
    "window-norm-epsilon",
    "jury_windows",
    lambda m: put(find(m, "LayerNormalization"), epsilon=1e-5),
    "1e-5 instead of 1e-6",
    like("jury_windows", scale=0.3),
)
fault(
    "query-norm-epsilon",
    "jury_grouped",
    round_constant("add_6", 1, 1e-6),
    "1e-6 instead of 1e-5",
    like("jury_grouped", scale=0.3),
)
fault("spread-epsilon", "jury_quantiles", round_constant("add_89", 1, 1e-4), "1e-4 instead of 1e-3")

# --- constants with fewer digits ------------------------------------------------------------------------------------

fault("gelu-tanh", "jury_patches", lambda m: put(find(m, "Gelu"), approximate="tanh"), "the GELU's approximation")
fault(
    "chroma-digits",
    "jury_colour",
    lambda m: edit(m, find(m, "Einsum"), 0, lambda v: np.where(v == v[1, 0], -0.168736, v)),
    "another standard's digits",
)
fault("gamma-digits", "jury_colour", round_constant("pow_1", 1, 0.4167), "1/2.4 with four digits")
fault("ln-ten-digits", "jury_logmel", round_constant("log10", 1, 2.3026), "the logarithm of ten with four digits")
fault("mask-of-minus-ten", "jury_relative", round_constant("mul_67", 1, -10.0), "masked places keep a little weight")
fault("scale-digits", "jury_relative", round_constant("div", 1, 1.732), "the root of three with three digits")
fault("fee-first-order", "jury_returns", round_constant("mul_8", 1, 0.01), "1 − exp(−0.01) taken as 0.01")
fault(
    "degree-digits",
    "jury_globe",
    round_constant("deg2rad_1", 1, 0.017453),
    "π/180 with five digits",
    given("jury_globe", **PLACES),
)
fault(
    "two-pi-digits", "jury_mixture", round_constant("sub_19", 1, 0.919), "the constant of the normal with three digits"
)
fault(
    "season-digits",
    "jury_calendar",
    round_constant("mul_32", 1, 6.2832),
    "2π with five digits",
    given("jury_calendar", day=DAYS),
    range={"day": (-100000, 100000)},
)
fault(
    "codes-int16",
    "jury_codebook",
    lambda m: edit(m, find(m, "GatherND"), 0, int16),
    "the codes that are given in 16 bits",
)
