"""Two preprocessing pipelines on the same raw records: the first step and field in which they part."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from onnxproof.candidates import exchange, serve
from onnxproof.data.source import Table
from onnxproof.errors import InputError
from onnxproof.proof.traps import PreprocessingFacts
from onnxproof.request.session import SessionSettings
from onnxproof.subject.target import load_target
from onnxproof.tensors.arrays import Array, Floats

# Rows on which the steps are compared one by one.
COMPARED_ROWS = 2048
# Differences below this share of a field's scale are rounding.
ROUNDING = 1e-5
# Parameters with these names take many records at once.
BATCH_NAMES = frozenset(
    ("batch", "X", "rows", "records", "images", "inputs", "data", "df", "frame", "table", "batches")
)


@dataclass(frozen=True)
class Step:
    """One named step of a pipeline."""

    name: str
    call: Callable[[Any], Any]
    batched: bool | None
    """Whether it takes many records at once; None where only trying tells."""


def open_file(path: str, flag: str) -> Callable[[Any], Any]:
    """An ONNX file that prepares records, many at once or one by one, such as a tokenizer of onnxruntime-extensions."""
    try:
        opened = serve.make_session(path, exchange.encode_settings(SessionSettings()))
    except Exception as error:
        raise InputError(f"{flag} {path}: {exchange.refuse_file(str(error).strip()).message}") from error
    session, ranks = serve.ArraySession(opened), {port.name: len(port.shape or ()) for port in opened.get_inputs()}

    def prepare(value: Any) -> Any:
        fields = value if isinstance(value, Mapping) else dict.fromkeys(ranks, value)
        arrays = {name: np.asarray(fields[name]) for name in ranks}
        lone = all(array.ndim < ranks[name] for name, array in arrays.items())
        given = {name: array[None] if lone else array for name, array in arrays.items()}
        made = session.prepared(exchange.feed(given, session.inputs, {}))()
        rows = [array[0] if lone and array.ndim > 1 and len(array) == 1 else array for array in made]
        return dict(zip(session.outputs, rows, strict=True)) if len(rows) > 1 else rows[0]

    return prepare


def load_steps(text: str, flag: str) -> tuple[list[Step], Any]:
    """The steps of the pipeline that a user means, and the object itself."""
    if text.endswith(".onnx"):
        return [Step(Path(text).name, file := open_file(text, flag), None)], file
    value, name = load_target(text)
    if inspect.isclass(value):
        value = value()
    steps = _split_steps(value, name)
    if not steps:
        raise InputError(
            f"{flag} {text} is a {type(value).__name__}; expected a function, a module, a pipeline or a list of steps"
        )
    return steps, value


def _split_steps(value: Any, name: str) -> list[Step]:
    if hasattr(value, "steps") and hasattr(value, "transform"):  # a scikit-learn pipeline
        return [Step(str(n), part.transform, True) for n, part in value.steps if hasattr(part, "transform")]
    if hasattr(value, "transform") and not inspect.isfunction(value):
        return [Step(name, value.transform, True)]
    inner = getattr(value, "transforms", None)
    if isinstance(inner, (list, tuple)):
        value = inner
    if isinstance(value, (list, tuple)):
        return [step for i, part in enumerate(value) for step in _split_steps(part, _name_part(part, i))]
    if isinstance(value, nn.Module):
        children = list(value.named_children()) if type(value).__name__ == "Sequential" else []
        return [Step(str(n), _wrap(part), True) for n, part in children] or [Step(name, _wrap(value), True)]
    return [Step(name, value, _wants_batch(value))] if callable(value) else []


def _name_part(part: Any, place: int) -> str:
    return str(getattr(part, "__name__", None) or f"{type(part).__name__}[{place}]")


def _wrap(module: nn.Module) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        with torch.inference_mode():
            if isinstance(value, Mapping):
                return module(**{n: torch.as_tensor(np.ascontiguousarray(a)) for n, a in value.items()})
            return module(torch.as_tensor(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value)

    return call


def _wants_batch(function: Callable[..., Any]) -> bool | None:
    try:
        first = next(iter(inspect.signature(function).parameters), None)
    except (TypeError, ValueError):
        return None
    return True if first in BATCH_NAMES else None


def to_record(table: Table) -> Any:
    """A table with one array is that array; otherwise it stays a mapping of fields."""
    return next(iter(table.values())) if len(table) == 1 else dict(table)


def _map_fields(function: Callable[..., Any], *values: Any) -> Any:
    """A function of arrays, for every field where there are several."""
    if isinstance(values[0], Mapping):
        return {name: function(*(value[name] for value in values)) for name in values[0]}
    return function(*values)


def _take_row(value: Any, i: int | slice) -> Any:
    return _map_fields(lambda a: a[i], value)


def _run_some(step: Step, value: Any, i: int | slice) -> Any:
    return to_plain(step.call(_take_row(value, i)))


def to_plain(value: Any) -> Any:
    """Tensors as arrays, in mappings and sequences too."""
    if isinstance(value, Mapping):
        return {str(n): to_plain(v) for n, v in value.items()}
    if hasattr(value, "detach"):
        return np.asarray(value.detach().cpu())
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value)  # a sparse matrix of scikit-learn has it


def apply_step(step: Step, value: Any) -> Any:
    """A step on many records: at once where it takes them so, else one by one."""
    rows = len(next(iter(value.values())) if isinstance(value, Mapping) else value)
    if step.batched:
        return _check_rows(step, to_plain(step.call(value)), rows)
    # A function for one record may take many without complaint and mean something else by it,
    # such as a mean over all rows: the first and the last are tried alone.
    together = _attempt(lambda: _check_rows(step, to_plain(step.call(value)), rows))
    if _is_text(value) and not isinstance(together, Exception):
        # One text by itself is a sequence of letters to a function of many: it is tried in a list of one.
        ends = (slice(0, 1), slice(rows - 1, rows))
        if all(_same(_attempt(partial(_run_some, step, value, at)), _take_row(together, at)) for at in ends):
            return together
    single = _attempt(partial(_run_some, step, value, 0))
    if isinstance(single, Exception):
        if isinstance(together, Exception):
            raise InputError(f"preprocessing step {step.name} raised {type(single).__name__}: {single}") from single
        return together
    if (
        not isinstance(together, Exception)
        and _same(_take_row(together, 0), single)
        and _same(_take_row(together, rows - 1), _run_some(step, value, rows - 1))
    ):
        return together
    others = (_run_some(step, value, i) for i in range(1, rows))
    return _map_fields(lambda *parts: _stack(step, parts), single, *others)


def _stack(step: Step, parts: Sequence[Array]) -> Array:
    shapes = list(dict.fromkeys(part.shape for part in parts))
    if len(shapes) > 1:
        told = f"the shapes {list(shapes[0])} and {list(shapes[1])}"
        raise InputError(
            f"preprocessing step {step.name} made {told} of two records: expected one for all, padded or cut"
        )
    return np.stack(parts)


def _is_text(value: Any) -> bool:
    first = np.asarray(next(iter(value.values())) if isinstance(value, Mapping) else value)
    return bool(first.size) and isinstance(first.flat[0], str)


def _attempt(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:  # what the user's code raises decides which way it wants its records
        return error


def _check_rows(step: Step, value: Any, rows: int) -> Any:
    first = np.asarray(next(iter(value.values()), 0) if isinstance(value, Mapping) else value)
    if first.shape[:1] != (rows,):
        raise InputError(
            f"preprocessing step {step.name} made {np.shape(value)} of {rows} records: expected one row for each"
        )
    return value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping) != isinstance(b, Mapping):
        return False
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(_same(a[n], b[n]) for n in a)
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return bool(a.shape == b.shape and (a == b).all())
    return bool(np.allclose(a, b, rtol=1e-5, atol=1e-7, equal_nan=True))


class Preprocessing:
    """The pipelines of training and serving, where the user gave them."""

    def __init__(self, training: str | None, serving: str | None, *, apply: bool = True) -> None:
        if serving is not None and training is None:
            raise InputError("--serve-preprocess needs --preprocess too: they are compared with each other")
        self._training = load_steps(training, "--preprocess")[0] if training is not None and apply else []
        self._serving = load_steps(serving, "--serve-preprocess")[0] if serving is not None else []

    def training(self, table: Table) -> Table:
        """The fields as the model was trained on them."""
        return _run(self._training, table) if self._training else table

    def serving(self, table: Table) -> Table | None:
        """The fields as production will prepare them; None where that is not asked."""
        return _run(self._serving, table) if self._serving else None

    def drop_serving(self) -> None:
        """The model cannot take what serving makes."""
        self._serving = []

    @property
    def compares(self) -> bool:
        """Whether there are two pipelines."""
        return bool(self._training and self._serving)

    def compare(self, table: Table) -> PreprocessingFacts:
        """Where the two part on some records."""
        raw = to_record({n: a[:COMPARED_ROWS] for n, a in table.items()})
        ours, theirs = _run_steps(self._training, raw), _run_steps(self._serving, raw)
        # Steps are compared one by one as far as they go together; the results of the last ones always are.
        together = min(len(ours), len(theirs)) - 1
        for i, j in [*((i, i) for i in range(together)), (len(ours) - 1, len(theirs) - 1)]:
            found = find_difference(ours[i], theirs[j])
            if found is not None:
                names = {"training": self._training[i].name, "serving": self._serving[j].name}
                return PreprocessingFacts(same=False, step=i, names=names, steps=self._name_steps(), **found)
        return PreprocessingFacts(same=True, steps=self._name_steps())

    def _name_steps(self) -> dict[str, tuple[str, ...]]:
        return {"training": tuple(s.name for s in self._training), "serving": tuple(s.name for s in self._serving)}


def _run_steps(steps: Sequence[Step], raw: Any) -> list[Any]:
    """The records after each step."""
    return list(accumulate(steps, lambda value, step: apply_step(step, value), initial=raw))[1:]


def _run(steps: Sequence[Step], table: Table) -> Table:
    value = reduce(lambda value, step: apply_step(step, value), steps, to_record(table))
    return dict(value) if isinstance(value, Mapping) else {"X": np.asarray(value)}


def find_difference(a: Any, b: Any) -> dict[str, Any] | None:
    """The field that differs most between two results, and by how much; None where only rounding differs."""
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        return _compare_fields(a, b)
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        told = f"shape {list(a.shape[1:])} against {list(b.shape[1:])}"
        return {"field": None, "what": told, "hint": _guess_layout(a, b)}
    if a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        rows = int((a != b).any(axis=tuple(range(1, a.ndim))).sum())
        return {"field": None, "what": "values differ", "rows_differing": rows} if rows else None
    return _compare_numbers(a.astype(np.float64), b.astype(np.float64))


def _compare_fields(a: Any, b: Any) -> dict[str, Any] | None:
    if not (isinstance(a, Mapping) and isinstance(b, Mapping)) or a.keys() != b.keys():
        names = [sorted(v) if isinstance(v, Mapping) else ["one array"] for v in (a, b)]
        return {"field": None, "what": f"fields {names[0]} against {names[1]}"}
    for name in a:
        found = find_difference(a[name], b[name])
        if found is not None:
            inner = found.get("field")
            return {**found, "field": name if inner is None else f"{name}[{inner}]"}
    return None


def _compare_numbers(a: Floats, b: Floats) -> dict[str, Any] | None:
    axes = _choose_axes(a)
    with np.errstate(invalid="ignore"):
        apart = np.where(np.isnan(a) & np.isnan(b), 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf))
    known = np.where(np.isfinite(a), a, 0.0)
    scale = np.sqrt((known**2).mean(axis=axes, keepdims=True)) + np.abs(known).mean()
    wrong = apart > ROUNDING * np.maximum(np.abs(a), scale) + 1e-12
    if not wrong.any():
        return None
    relative = (np.where(wrong, apart, 0.0) / np.maximum(scale, 1e-12)).max(axis=axes)
    field = int(np.argmax(relative > 0)) if relative.ndim else None
    rows = wrong.reshape(len(a), -1).any(axis=1)
    finite = apart[np.isfinite(apart)]
    return {
        "field": field,
        "what": "values differ",
        "rows_differing": int(rows.sum()),
        "compared": len(a),
        "first_row": int(np.argmax(rows)),
        "max_abs": float(apart.max()),
        "mean_abs": float(finite.mean()) if finite.size else None,
        "hint": _guess_change(a, b),
    }


def _choose_axes(a: Array) -> tuple[int, ...]:
    """The axes that are not the field: a column of a table, a channel of images."""
    if a.ndim == 4:
        return (0, 2, 3) if a.shape[1] <= 4 else (0, 1, 2)
    return tuple(range(a.ndim - 1)) if a.ndim > 1 else ()


def _guess_change(a: Floats, b: Floats) -> str | None:
    """A simple change that would explain all of it."""

    def alike(x: Any, y: Any) -> bool:
        return bool(np.shape(x) == np.shape(y) and np.allclose(x, y, rtol=1e-4, atol=1e-6, equal_nan=True))

    for axis in range(1, a.ndim):
        if a.shape[axis] == 3 and alike(np.flip(a, axis), b):
            return "the channels come in the opposite order (RGB against BGR)"
    for factor in (255.0, 1 / 255.0, 256.0, 1 / 256.0, 100.0, 0.01):
        if alike(a * factor, b):
            return f"serving is {factor:g} times training (0–255 against 0–1?)"
    for axis in range(1, a.ndim):
        if alike(np.flip(a, axis), b):
            return f"axis {axis} comes in the opposite order"
    if a.ndim == 4 and a.shape[2] == a.shape[3] and alike(a.swapaxes(2, 3), b):
        return "height and width are swapped"
    shift = b - a
    if np.allclose(shift, shift.ravel()[0], rtol=1e-4, atol=1e-6):
        return f"serving is training + {float(shift.ravel()[0]):.6g}"
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = b / a
    sure = ratio[np.isfinite(ratio) & (np.abs(a) > 1e-6)]
    if sure.size and np.allclose(sure, sure[0], rtol=1e-4):
        return f"serving is training × {float(sure[0]):.6g}"
    return None


def _guess_layout(a: Array, b: Array) -> str | None:
    if a.ndim == b.ndim == 4 and np.moveaxis(a, 3, 1).shape == b.shape:
        return "training is channels last (NHWC), serving channels first (NCHW)"
    if a.ndim == b.ndim == 4 and np.moveaxis(a, 1, 3).shape == b.shape:
        return "training is channels first (NCHW), serving channels last (NHWC)"
    return None
