"""The float64 evaluator against arithmetic of 60 digits: every operator that computes, at every opset that changed it.

python -m benchmarks.evaluator      writes docs/evaluator.md and docs/evaluator.json

Functions are taken at edges and at large and small magnitudes, sums and products on values of mixed magnitude. An error is relative to the
exact value; of an operator that adds, relative to the sum of magnitudes, since no order of adding in float64 does better.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import onnx
from mpmath import mpf
from onnx import TensorProto, helper

from onnxproof.graph.evaluator import Evaluator
from onnxproof.graph.operators import IMPRECISE

ROOT = Path(__file__).parents[1]
DIGITS = 60
LIMIT = 1e-12
"""A worst relative error above it is a failure: float64 has 1e-16, and a few operations lie between."""
OLDEST = 7
Array = np.ndarray[Any, Any]
Oracle = Callable[..., Any]

MAGNITUDES = (
    0.0,
    1e-300,
    1e-30,
    1e-17,
    1e-8,
    3e-4,
    0.01,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    1.25,
    2.0,
    3.0,
    5.5,
    10.0,
    17.0,
    20.0,
    37.0,
    88.0,
    300.0,
)
HUGE = (700.0, 1e3, 12345.678, 1e6, 1e10, 1e30)
REAL = tuple(sign * size for size in MAGNITUDES for sign in (1.0, -1.0))
WIDE = REAL + tuple(sign * size for size in HUGE for sign in (1.0, -1.0))
POSITIVE = tuple(size for size in MAGNITUDES + HUGE if size > 0)
UNIT = (*(x for x in REAL if abs(x) < 1), 0.999999, -0.999999, 1 - 1e-12)


@dataclass(frozen=True)
class Check:
    """One operator on some inputs, and what it means."""

    op: str
    inputs: tuple[Array | None, ...]
    exact: Oracle
    """Of the inputs as arrays of high precision → one array, or a pair of it and the scale that errors are held against."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    since: int = OLDEST
    """The first opset that has this form."""
    until: int = 99
    output: int = 0


def wrap(array: Array) -> Array:
    """Its floats as numbers of high precision."""
    return np.vectorize(mpf, otypes=[object])(array) if array.dtype.kind == "f" and array.size else array


def each(function: Callable[..., Any]) -> Oracle:
    """A function of numbers on arrays."""
    return lambda *arrays, **_: np.vectorize(function, otypes=[object])(*arrays)


def check(case: Check) -> Iterator[tuple[int, float]]:
    """(Opset, worst relative error); an opset that refuses is left out, and what is not a number where it should be is infinite."""
    with mpmath.workdps(DIGITS):
        told = case.exact(*[None if a is None else wrap(a) for a in case.inputs], **case.attributes)
        exact, scale = told if isinstance(told, tuple) else (told, np.abs(told))
        for opset in list_opsets(case.op):
            if case.since <= opset <= case.until and (got := _evaluate(case, opset)) is not None:
                yield opset, _measure(got, np.asarray(exact, dtype=object), np.asarray(scale, dtype=object))


def list_opsets(op: str) -> list[int]:
    """Where the operator changed, and the last one."""
    last = onnx.defs.onnx_opset_version()
    changed = {s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op and s.domain == ""}
    first = max((version for version in changed if version <= OLDEST), default=0)
    return sorted({max(version, OLDEST) for version in changed if version >= first} | {last})


def _evaluate(case: Check, opset: int) -> Array | None:
    kinds = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}
    names = ["" if array is None else f"i{place}" for place, array in enumerate(case.inputs)]
    ports = [
        helper.make_tensor_value_info(name, kinds[array.dtype.kind], array.shape)
        for name, array in zip(names, case.inputs, strict=True)
        if array is not None
    ]
    outputs = [f"o{place}" for place in range(case.output + 1)]
    node = helper.make_node(case.op, names, outputs, **case.attributes)
    graph = helper.make_graph([node], "g", ports, [helper.make_empty_tensor_value_info(outputs[-1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    feed = {n: a for n, a in zip(names, case.inputs, strict=True) if a is not None}
    try:
        return np.asarray(Evaluator.exact(model, keep_lossy_casts=True).run(feed)[outputs[-1]])
    except Exception:
        return None


def _measure(got: Array, exact: Array, scale: Array) -> float:
    if got.shape != exact.shape:
        return float("inf")
    worst = 0.0
    for mine, right, size in zip(got.flat, exact.flat, np.broadcast_to(scale, exact.shape).flat, strict=True):
        right = mpf(right)
        if mpmath.isnan(right) and np.isnan(mine):
            continue
        if not np.isfinite(mine):
            # Beyond float64's range an infinity is right.
            fine = abs(right) > mpf(np.finfo(np.float64).max) and (mine > 0) == (right > 0)
            worst = worst if fine else float("inf")
            continue
        # Below the normal numbers float64 has fewer digits.
        worst = max(worst, float(abs(mpf(mine) - right) / max(abs(mpf(size)), mpf(1e-290))))
    return worst


# --- functions ------------------------------------------------------------------------------------------------------


def softplus(x: Any) -> Any:
    return mpmath.log1p(mpmath.exp(x))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def gelu(x: Any) -> Any:
    return x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def gelu_tanh(x: Any) -> Any:
    inner = mpmath.sqrt(2 / mpmath.pi) * (x + mpf("0.044715") * x**3)
    return x * sigmoid(2 * inner)


def narrow(value: float) -> Any:
    """An attribute: the file has it in float32."""
    return mpf(float(np.float32(value)))


SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
FUNCTIONS: dict[str, tuple[Callable[..., Any], Sequence[float], Mapping[str, Any]]] = {
    "Abs": (abs, WIDE, {}),
    "Acos": (mpmath.acos, UNIT, {}),
    "Acosh": (mpmath.acosh, tuple(1 + x for x in POSITIVE if x > 1e-9), {}),
    "Asin": (mpmath.asin, UNIT, {}),
    "Asinh": (mpmath.asinh, WIDE, {}),
    "Atan": (mpmath.atan, WIDE, {}),
    "Atanh": (mpmath.atanh, UNIT, {}),
    "Ceil": (mpmath.ceil, WIDE, {}),
    "Cos": (mpmath.cos, WIDE, {}),
    "Cosh": (mpmath.cosh, REAL, {}),
    "Erf": (mpmath.erf, WIDE, {}),
    "Exp": (mpmath.exp, WIDE, {}),
    "Floor": (mpmath.floor, WIDE, {}),
    "Log": (mpmath.log, POSITIVE, {}),
    "Neg": (lambda x: -x, WIDE, {}),
    "Reciprocal": (lambda x: 1 / x, tuple(x for x in WIDE if x), {}),
    "Relu": (lambda x: max(x, mpf(0)), WIDE, {}),
    "Round": (lambda x: mpmath.nint(x), (*WIDE, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5), {}),
    "Sigmoid": (sigmoid, WIDE, {}),
    "Sign": (mpmath.sign, WIDE, {}),
    "Sin": (mpmath.sin, WIDE, {}),
    "Sinh": (mpmath.sinh, REAL, {}),
    "Softplus": (softplus, WIDE, {}),
    "Softsign": (lambda x: x / (1 + abs(x)), WIDE, {}),
    "Sqrt": (mpmath.sqrt, (0.0, *POSITIVE), {}),
    "Tan": (mpmath.tan, WIDE, {}),
    "Tanh": (mpmath.tanh, WIDE, {}),
    "Mish": (lambda x: x * mpmath.tanh(softplus(x)), WIDE, {}),
    "HardSwish": (lambda x: x * max(mpf(0), min(mpf(1), x / 6 + mpf(1) / 2)), WIDE, {}),
}
WITH_ATTRIBUTES: list[tuple[str, Mapping[str, float | str], Callable[..., Any]]] = [
    ("Gelu", {}, gelu),
    ("Gelu", {"approximate": "tanh"}, gelu_tanh),
    ("Swish", {"alpha": 1.0}, lambda x: x * sigmoid(x)),
    ("Swish", {"alpha": 1.7}, lambda x: x * sigmoid(narrow(1.7) * x)),
    ("Elu", {"alpha": 1.5}, lambda x: x if x > 0 else narrow(1.5) * mpmath.expm1(x)),
    ("Celu", {"alpha": 1.5}, lambda x: x if x > 0 else narrow(1.5) * mpmath.expm1(x / narrow(1.5))),
    ("Selu", {}, lambda x: narrow(SELU_GAMMA) * (x if x > 0 else narrow(SELU_ALPHA) * mpmath.expm1(x))),
    ("LeakyRelu", {"alpha": 0.3}, lambda x: x if x > 0 else narrow(0.3) * x),
    ("ThresholdedRelu", {"alpha": 1.1}, lambda x: x if x > narrow(1.1) else mpf(0)),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, lambda x: max(mpf(0), min(mpf(1), narrow(0.3) * x + narrow(0.4)))),
    (
        "Shrink",
        {"lambd": 0.6, "bias": 0.2},
        lambda x: x + narrow(0.2) if x < -narrow(0.6) else x - narrow(0.2) if x > narrow(0.6) else mpf(0),
    ),
]


def _mod(a: Any, b: Any) -> Any:
    """The sign of the dividend, as C has it."""
    rest = abs(a) - abs(b) * mpmath.floor(abs(a) / abs(b))
    return rest if a >= 0 else -rest


BINARY: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "Add": (lambda a, b: a + b, {}),
    "Sub": (lambda a, b: a - b, {}),
    "Mul": (lambda a, b: a * b, {}),
    "Div": (lambda a, b: a / b, {}),
    "Max": (max, {}),
    "Min": (min, {}),
    "Sum": (lambda a, b: a + b, {}),
    "Mean": (lambda a, b: (a + b) / 2, {}),
    "PRelu": (lambda a, b: a if a > 0 else a * b, {}),
    "Mod": (_mod, {"fmod": 1}),
}


def list_functions() -> Iterator[Check]:
    """Of one number, and of two."""
    for op, (function, points, attributes) in FUNCTIONS.items():
        yield Check(op, (np.array(points),), each(function), attributes)
    for op, attributes, function in WITH_ATTRIBUTES:
        yield Check(op, (np.array(WIDE),), each(function), attributes)
    pairs = np.array([pair for pair in itertools.product(REAL[::3], REAL[1::4]) if pair[1]])
    left, right = pairs[:, 0], pairs[:, 1]
    for op, (function, attributes) in BINARY.items():
        moderate = op == "Mod"
        fits = (
            (np.abs(left) < 400) & (np.abs(right) > (1e-9 if moderate else 0)) & ((np.abs(left) > 1e-9) | (left == 0))
        )
        a, b = (left[fits], right[fits]) if moderate else (left, right)
        yield Check(op, (a, b), each(function), attributes)
    bases, powers = (
        np.array(v)
        for v in zip(
            *itertools.product((1e-8, 0.3, 1.0, 1.5, 10.0, 700.0), (-3.0, -0.5, 0.0, 1e-8, 0.5, 2.0, 7.3)), strict=True
        )
    )
    yield Check("Pow", (bases, powers), each(lambda a, b: a**b))
    yield Check(
        "Clip",
        (np.array(WIDE), np.array(-1.5), np.array(2.5)),
        each(lambda x, low, high: max(low, min(high, x))),
        since=11,
    )


# --- sums -----------------------------------------------------------------------------------------------------------

GENERATOR = np.random.default_rng(0)


def mixed(*shape: int) -> Array:
    """Both signs, several magnitudes."""
    return GENERATOR.standard_normal(shape) * 10.0 ** GENERATOR.integers(-3, 3, shape)


def along(function: Callable[[list[Any]], tuple[Any, Any]], axis: int = -1) -> Oracle:
    """A list of numbers → its value and scale, along an axis that stays."""

    def run(x: Array, *_: Any, **__: Any) -> tuple[Array, Array]:
        moved = np.moveaxis(x, axis, -1)
        pairs = [function(list(row)) for row in moved.reshape(-1, moved.shape[-1])]
        shape = (*moved.shape[:-1], 1)
        parts = (np.array([pair[side] for pair in pairs], dtype=object).reshape(shape) for side in (0, 1))
        value, scale = (np.moveaxis(part, -1, axis) for part in parts)
        return value, scale

    return run


def _relative(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], tuple[Any, Any]]:
    return lambda row: (function(row), abs(function(row)))


def _log_sum_exp(row: list[Any]) -> tuple[Any, Any]:
    value = mpmath.log(mpmath.fsum(mpmath.exp(x) for x in row))
    return value, max(abs(value), mpf(1))


REDUCTIONS: dict[str, Callable[[list[Any]], tuple[Any, Any]]] = {
    "ReduceSum": lambda row: (mpmath.fsum(row), mpmath.fsum(abs(x) for x in row)),
    "ReduceMean": lambda row: (mpmath.fsum(row) / len(row), mpmath.fsum(abs(x) for x in row) / len(row)),
    "ReduceL1": _relative(lambda row: mpmath.fsum(abs(x) for x in row)),
    "ReduceL2": _relative(lambda row: mpmath.sqrt(mpmath.fsum(x * x for x in row))),
    "ReduceSumSquare": _relative(lambda row: mpmath.fsum(x * x for x in row)),
    "ReduceProd": _relative(mpmath.fprod),
    "ReduceMax": _relative(max),
    "ReduceMin": _relative(min),
    "ReduceLogSumExp": _log_sum_exp,
}


def list_reductions() -> Iterator[Check]:
    """Axes as an attribute and as an input."""
    rows = {
        "plain": mixed(3, 40),
        "large": np.array([[1000.0, 999.0, -1000.0], [-1000.0, -1001.0, -999.5], [800.0, 0.0, 1e-5]]),
        "small": np.array([[1e-9, 2e-9, -3e-9], [1e-160, 3e-160, 2e-160]]),
    }
    axes = np.array([-1], dtype=np.int64)
    for op, function in REDUCTIONS.items():
        for x in rows.values():
            squares = op in ("ReduceL2", "ReduceSumSquare", "ReduceProd") and np.abs(x).min() < 1e-100
            if squares:  # their squares are below float64
                x = x[:1]
            yield Check(op, (x,), along(function), {"axes": [-1], "keepdims": 1}, until=12 if op == "ReduceSum" else 17)
            moved = Check(op, (x, axes), along(function), {"keepdims": 1}, since=13 if op == "ReduceSum" else 18)
            yield moved
    positive = np.abs(rows["plain"])
    log_sum = _relative(lambda row: mpmath.log(mpmath.fsum(row)))
    yield Check("ReduceLogSum", (positive,), along(log_sum), {"axes": [-1], "keepdims": 1}, until=17)
    yield Check("ReduceLogSum", (positive, axes), along(log_sum), {"keepdims": 1}, since=18)
    yield Check("CumSum", (rows["plain"], np.array(1)), _cumulate, since=11)
    yield Check("GlobalAveragePool", (mixed(2, 3, 11),), along(REDUCTIONS["ReduceMean"]))
    yield Check("GlobalMaxPool", (mixed(2, 3, 11),), along(REDUCTIONS["ReduceMax"]))
    yield Check("GlobalLpPool", (mixed(2, 3, 11),), along(REDUCTIONS["ReduceL2"]), {"p": 2})


def _cumulate(x: Array, *_: Any, **__: Any) -> tuple[Array, Array]:
    return np.cumsum(x, axis=1), np.cumsum(np.abs(x), axis=1)


# --- normalisations -------------------------------------------------------------------------------------------------


def rowwise(function: Callable[..., list[Any]], absolute: bool = False) -> Oracle:
    """Rows → rows."""

    def run(x: Array, *given: Any, **_: Any) -> Any:
        rows = [function(list(row), *given) for row in x.reshape(-1, x.shape[-1])]
        value = np.array(rows, dtype=object).reshape(x.shape)
        return (value, np.maximum(np.abs(value), mpf(1))) if absolute else value

    return run


def _softmax(row: list[Any]) -> list[Any]:
    top = max(row)
    parts = [mpmath.exp(x - top) for x in row]
    return [part / mpmath.fsum(parts) for part in parts]


def _log_softmax(row: list[Any]) -> list[Any]:
    total = mpmath.log(mpmath.fsum(mpmath.exp(x) for x in row))
    return [x - total for x in row]


def standardise(row: Sequence[Any], epsilon: Any, centre: bool = True) -> list[Any]:
    """Less the mean, by the root of the variance."""
    mean = mpmath.fsum(row) / len(row) if centre else mpf(0)
    variance = mpmath.fsum((x - mean) ** 2 for x in row) / len(row)
    return [(x - mean) / mpmath.sqrt(variance + epsilon) for x in row]


def _scaled(function: Callable[[Array], Array]) -> Oracle:
    """With errors held against 1: what was centred may be near zero."""

    def run(x: Array, *given: Any, **_: Any) -> tuple[Array, Array]:
        value = function(x, *given)
        return value, np.maximum(np.abs(value), mpf(1))

    return run


def _layer(x: Array, weight: Array, bias: Array | None = None, centre: bool = True) -> Array:
    rows = [standardise(list(row), narrow(1e-5), centre) for row in x.reshape(-1, x.shape[-1])]
    shaped = np.array(rows, dtype=object).reshape(x.shape) * weight
    return shaped if bias is None else shaped + bias


def _instances(x: Array, weight: Array, bias: Array, groups: int | None = None) -> Array:
    batch, channels = x.shape[:2]
    parts = x.reshape(batch * (groups or channels), -1)
    shaped = np.array([standardise(list(row), narrow(1e-5)) for row in parts], dtype=object).reshape(x.shape)
    return shaped * weight.reshape(1, -1, 1) + bias.reshape(1, -1, 1)


def _batch(x: Array, weight: Array, bias: Array, mean: Array, variance: Array) -> Array:
    root = np.vectorize(mpmath.sqrt, otypes=[object])(variance + narrow(1e-5))
    return (x - mean.reshape(1, -1, 1)) / root.reshape(1, -1, 1) * weight.reshape(1, -1, 1) + bias.reshape(1, -1, 1)


def _response(x: Array) -> Array:
    """LRN of size 3."""
    out = np.empty_like(x)
    for place in np.ndindex(x.shape):
        near = range(max(0, place[1] - 1), min(x.shape[1], place[1] + 2))
        squares = mpmath.fsum(x[(place[0], channel, *place[2:])] ** 2 for channel in near)
        out[place] = x[place] / (narrow(1.0) + narrow(0.01) / 3 * squares) ** narrow(0.75)
    return out


def list_normalisations() -> Iterator[Check]:
    """Softmax and its kind, at moderate and at extreme values."""
    extremes = np.array(
        [[1000.0, 999.0, -1000.0, 0.0], [-1e5, -1e5 - 40, -1e5 - 700, -1e5 + 1e-3], [1e-9, -1e-9, 0.0, 2e-9]]
    )
    for x in (mixed(4, 9) / 30, extremes):
        yield Check("Softmax", (x,), rowwise(_softmax), {"axis": -1}, since=13)
        yield Check("Softmax", (x,), rowwise(_softmax), {"axis": 1}, until=12)
        yield Check("LogSoftmax", (x,), rowwise(_log_softmax, absolute=True), {"axis": -1}, since=13)
        yield Check("LogSoftmax", (x,), rowwise(_log_softmax, absolute=True), {"axis": 1}, until=12)
    for x in (mixed(3, 8), mixed(3, 8) * 1e-6, 1e4 + mixed(3, 8)):
        weight, bias = mixed(8), mixed(8)
        size = float(np.abs(weight).max() * 4 + np.abs(bias).max() * 4)
        # Centring loses what the mean has in common with the values.
        loss = max(1.0, float(np.abs(x).max() / np.std(x)))
        yield Check(
            "LayerNormalization", (x, weight, bias), _against(_layer, size * loss), {"epsilon": 1e-5, "axis": -1}
        )
        rms = _against(lambda x, weight: _layer(x, weight, None, centre=False), size)
        yield Check("RMSNormalization", (x, weight), rms, {"epsilon": 1e-5, "axis": -1})
    x, weight, bias = mixed(2, 4, 6), mixed(4), mixed(4)
    size = float(np.abs(weight).max() * 4 + np.abs(bias).max() * 4) * 3
    yield Check("InstanceNormalization", (x, weight, bias), _against(_instances, size), {"epsilon": 1e-5})
    groups = _against(lambda x, weight, bias: _instances(x, weight, bias, 2), size)
    yield Check("GroupNormalization", (x, weight, bias), groups, {"epsilon": 1e-5, "num_groups": 2}, since=21)
    mean, variance = mixed(4), np.abs(mixed(4)) + 0.1
    yield Check(
        "BatchNormalization", (x, weight, bias, mean, variance), _against(_batch, size * 1e3), {"epsilon": 1e-5}
    )
    yield Check("LRN", (x[..., None],), _scaled(_response), {"size": 3, "alpha": 0.01, "beta": 0.75, "bias": 1.0})
    yield Check(
        "LpNormalization",
        (mixed(3, 7),),
        rowwise(lambda row: [v / mpmath.sqrt(mpmath.fsum(u * u for u in row)) for v in row]),
        {"axis": -1, "p": 2},
    )
    yield Check(
        "LpNormalization",
        (mixed(3, 7),),
        rowwise(lambda row: [v / mpmath.fsum(abs(u) for u in row) for v in row]),
        {"axis": -1, "p": 1},
    )


def _against(function: Callable[..., Array], size: float) -> Oracle:
    """Errors held against a size that the values before the last cancellation have."""

    def run(*given: Any, **_: Any) -> tuple[Array, Array]:
        value = function(*given)
        return value, np.full(value.shape, mpf(size), dtype=object)

    return run


# --- products, windows, resizing ------------------------------------------------------------------------------------


def rational(array: Array) -> Array:
    """Exactly."""
    return np.vectorize(lambda value: Fraction(float(value)), otypes=[object])(array)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    exact, size = rational(a) @ rational(b), np.abs(rational(a)) @ np.abs(rational(b))
    return _to_mp(exact), _to_mp(size)


def _to_mp(array: Array) -> Array:
    return np.vectorize(lambda v: mpf(v.numerator) / mpf(v.denominator), otypes=[object])(array)


def _convolve(
    x: Array, w: Array, b: Array | None, stride: int, pad: int, dilation: int, group: int
) -> tuple[Array, Array]:
    """In one dimension, by its definition."""
    x, w = rational(x), rational(w)
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad)), constant_values=Fraction(0))
    span = (w.shape[2] - 1) * dilation + 1
    length, share = (padded.shape[2] - span) // stride + 1, w.shape[0] // group
    out = np.empty((x.shape[0], w.shape[0], length), dtype=object)
    size = np.empty_like(out)
    for n, m, t in np.ndindex(out.shape):
        first = (m // share) * w.shape[1]
        window = padded[n, first : first + w.shape[1], t * stride : t * stride + span : dilation]
        bias = Fraction(0) if b is None else Fraction(float(b[m]))
        out[n, m, t] = (window * w[m]).sum() + bias
        size[n, m, t] = np.abs(window * w[m]).sum() + abs(bias)
    return _to_mp(out), _to_mp(size)


def _average(x: Array, kernel: int, stride: int, pad: int, counted: bool) -> Array:
    """Pooling in one dimension."""
    steps = (x.shape[2] + 2 * pad - kernel) // stride + 1
    out = np.empty((*x.shape[:2], steps), dtype=object)
    for t in range(steps):
        low, high = t * stride - pad, t * stride - pad + kernel
        part = x[:, :, max(low, 0) : min(high, x.shape[2])]
        out[:, :, t] = part.sum(axis=2) / (kernel if counted else part.shape[2])
    return out


def _source(place: int, old: int, new: int, mode: str) -> Fraction:
    """Where an element of the resized axis comes from."""
    scale = Fraction(new, old)
    if mode == "align_corners":
        return Fraction(place * (old - 1), new - 1) if new > 1 else Fraction(0)
    if mode == "asymmetric":
        return place / scale
    if mode == "pytorch_half_pixel" and new == 1:
        return Fraction(0)
    return (place + Fraction(1, 2)) / scale - Fraction(1, 2)


def _resize(x: Array, new: int, how: str, mode: str, a: Fraction = Fraction(-3, 4)) -> Array:
    """The last axis, by rational coordinates and weights."""
    old, out = x.shape[-1], np.empty((*x.shape[:-1], new), dtype=object)
    for place in range(new):
        where = _source(place, old, new, mode)
        base = where.numerator // where.denominator
        rest = where - base
        if how == "nearest":  # halves go down
            taken = {base if rest <= Fraction(1, 2) else base + 1: Fraction(1)}
        elif how == "linear":
            taken = {base: 1 - rest, base + 1: rest}
        else:
            taken = {base + k: _cubic(abs(rest - k), a) for k in (-1, 0, 1, 2)}
        out[..., place] = sum(
            x[..., min(max(at, 0), old - 1)] * (mpf(share.numerator) / mpf(share.denominator))
            for at, share in taken.items()
        )
    return out


def _cubic(t: Fraction, a: Fraction) -> Fraction:
    if t <= 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a


def list_products() -> Iterator[Check]:
    """By exact rationals."""
    a, b = mixed(4, 9), mixed(9, 3)
    yield Check("MatMul", (a, b), lambda *_, **__: _product(a, b))
    yield Check("Einsum", (a, b), lambda *_, **__: _product(a, b), {"equation": "ij,jk->ik"}, since=12)
    yield Check("Gemm", (a, b), lambda *_, **__: _product(a, b))
    x, w, bias = mixed(2, 4, 11), mixed(6, 2, 3), mixed(6)
    for stride, pad, dilation in ((1, 0, 1), (2, 1, 1), (1, 2, 2)):
        attributes = {"strides": [stride], "pads": [pad, pad], "dilations": [dilation], "group": 2}
        exact = _convolve(x, w, bias, stride, pad, dilation, 2)
        yield Check("Conv", (x, w, bias), lambda *_, exact=exact, **__: exact, attributes)
    x = mixed(2, 3, 10)
    size = float(np.abs(x).max())
    for stride, pad, counted in ((1, 0, 1), (2, 1, 0), (2, 1, 1)):
        attributes = {"kernel_shape": [3], "strides": [stride], "pads": [pad, pad], "count_include_pad": counted}
        pooled = _against(lambda x, s=stride, p=pad, c=counted: _average(x, 3, s, p, bool(c)), size)
        yield Check("AveragePool", (x,), pooled, attributes)
    x = mixed(1, 2, 7)
    size = float(np.abs(x).max()) * 4
    empty, modes = np.array([]), ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
    for how, mode, new in itertools.product(("linear", "cubic", "nearest"), modes, (3, 5, 13, 14)):
        wanted = np.array([1, 2, new], dtype=np.int64)
        attributes = {"mode": how, "coordinate_transformation_mode": mode, "nearest_mode": "round_prefer_floor"}
        resized = _against(lambda x, *_, h=how, m=mode, n=new: _resize(x, n, h, m), size)
        yield Check("Resize", (x, empty, empty, wanted), resized, attributes, since=11)


def list_checks() -> Iterator[Check]:
    """All of them."""
    yield from list_functions()
    yield from list_reductions()
    yield from list_normalisations()
    yield from list_products()


def measure() -> dict[str, dict[str, Any]]:
    """Operator → its worst error, the opset of it, and the opsets that were checked."""
    table: dict[str, dict[str, Any]] = {}
    for case in list_checks():
        row = table.setdefault(case.op, {"worst": 0.0, "at": None, "opsets": set()})
        for opset, error in check(case):
            row["opsets"].add(opset)
            if error > row["worst"]:
                row["worst"], row["at"] = error, opset
    return {op: {**row, "opsets": sorted(row["opsets"])} for op, row in sorted(table.items())}


def render(table: Mapping[str, Mapping[str, Any]]) -> str:
    """The page."""
    failed = [op for op, row in table.items() if row["worst"] > LIMIT]
    lines = [
        "# The evaluator against 60 digits",
        "",
        f"Made by `make evaluator`. The float64 evaluator decides what a graph means; here each of {len(table)} operators that compute is held against mpmath or exact "
        "rationals, at every opset that changed it, on edges, large and small magnitudes. Errors are relative to the exact value; of operators that add, to the sum of "
        f"magnitudes. Above {LIMIT:.0e} is a failure: {', '.join(failed) if failed else 'none'}.",
        "",
        f"Operators whose word is not taken, since their reference implementation computes partly in float32: {', '.join(sorted(IMPRECISE))}. Operators that only move or "
        "select values have no error of their own.",
        "",
        "| operator | worst relative error | opsets |",
        "|---|---|---|",
        *(f"| {op} | {row['worst']:.1e} | {', '.join(map(str, row['opsets']))} |" for op, row in table.items()),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and write."""
    table = measure()
    (ROOT / "docs" / "evaluator.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    (ROOT / "docs" / "evaluator.md").write_text(render(table), encoding="utf-8")
    for op, row in table.items():
        if row["worst"] > LIMIT or not row["opsets"]:
            print(op, row)


if __name__ == "__main__":
    main()
