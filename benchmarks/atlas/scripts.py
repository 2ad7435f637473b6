"""A difference as a script of a few lines that needs torch, onnx and onnxruntime only; kept where a bare process shows it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from benchmarks.atlas.measure import list_samples
from benchmarks.atlas.rows import Row
from benchmarks.atlas.samples import Sample, fill_values, list_outputs, load_operations
from benchmarks.forked import ask

SCRIPT = '''"""{title}"""

import sys
{imports}
import numpy as np
import onnxruntime
import torch


class Model(torch.nn.Module):
    def forward(self, {names}):
        return {call}


inputs = ({inputs},)
expected = Model()(*inputs)
{export}
{session}
names = [one.name for one in session.get_inputs()]
got = session.run(None, dict(zip(names, [x.numpy() for x in inputs])))
expected = [one.numpy() for one in (expected if isinstance(expected, (tuple, list)) else [expected])]
for one, other in zip(expected, got):
    same = one.dtype == other.dtype and np.array_equal(one, other)
    if one.dtype.kind == "f" and one.shape == other.shape:
        finite = np.abs(one[np.isfinite(one)]).max(initial=0)
        same = one.dtype == other.dtype and np.allclose(one, other, {rtol}, {rtol} * 0.1 * finite, equal_nan=True)
    if not same:
        print("PyTorch:    ", one.dtype, one.shape, one.ravel())
        print("onnxruntime:", other.dtype, other.shape, other.ravel())
        sys.exit(1)
'''
EXPORTS = {
    "dynamo": (
        "",
        "file = torch.onnx.export(Model(), inputs, dynamo=True, opset_version={opset}, verbose=False).model_proto.SerializeToString()",
    ),
    "torchscript": (
        "from io import BytesIO\n",
        "file = BytesIO()\ntorch.onnx.export(Model(), inputs, file, dynamo=False, opset_version={opset})",
    ),
}
SESSIONS = {
    "all": 'session = onnxruntime.InferenceSession({file}, providers=["CPUExecutionProvider"])',
    "disable": (
        "options = onnxruntime.SessionOptions()\n"
        "options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL\n"
        'session = onnxruntime.InferenceSession({file}, options, providers=["CPUExecutionProvider"])'
    ),
}
PRECISION = {"float16": "1e-2", "float64": "1e-11"}
# What numpy has no type for, and elements that a script may spell out.
NO_NUMPY, MOST_SHOWN = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), 400
# Seconds that a script may take on a busy machine.
PATIENCE = 180.0


class Name:
    """Stands for a tensor in what is printed of a call."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def write_script(entry: Row, found: Row, folder: Path, title: str, *, run: bool = True) -> str | None:
    """The name of a script that shows the difference; None where none does, or none is there and nothing is to be run."""
    op = load_operations()[entry["op"]]
    name = re.sub(
        r"\W+", "_", f"{entry['cause'].removeprefix('aten.').removesuffix('.default')}_{entry['dtype']}"
    ).strip("_")
    name += "_torchscript" if entry["exporter"] == "torchscript" else ""
    kept = folder / f"{name}.py"
    for text in _propose(op, entry, found, title):
        # What is there and has not changed but for its title was run before.
        known = kept.exists() and _cut_title(kept.read_text()) == _cut_title(text)
        if known or (run and next(ask(lambda _, text=text: _shows_here(text), 1, 1)) is True):
            kept.write_text(text)
            return kept.name
    return None


def _cut_title(text: str) -> str:
    return text.partition("\n")[2]


def _shows_here(text: str) -> bool:
    """Whether a script ends with 1, and prints two answers and no warning; in a forked process, whose outputs it takes for itself."""
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        code: Any = 0
        try:
            exec(compile(text, "script", "exec"), {"__name__": "script"})
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
        log.seek(0)
        told = log.read()
    return _is_shown(code, told, told)


def shows(file: Path) -> bool:
    """The same with nothing loaded before."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            [sys.executable, str(file)],
            capture_output=True,
            timeout=PATIENCE,
            env=environment,
            cwd=file.parent,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return _is_shown(done.returncode, done.stdout, done.stderr)


def _is_shown(code: Any, printed: bytes, errors: bytes) -> bool:
    # What onnxruntime warns of is no silent difference.
    return code == 1 and b"onnxruntime:" in printed and b"[W:onnxruntime" not in errors


def _propose(op: Any, entry: Row, found: Row, title: str) -> Iterator[str]:
    """The call on one number each, where it works element by element, and as it was tried."""
    if entry["dtype"] in NO_NUMPY or found["size"] > MOST_SHOWN:
        return
    sample = list_samples(op, getattr(torch, entry["dtype"]))[found["sample"]]
    called = _find_call(op, sample, sample.tensors)
    if called is None:
        return
    if len(found["given"]) == len(sample.tensors):
        pairs = zip(found["given"], sample.tensors, strict=True)
        yield _write(called, [torch.tensor([_number(v)], dtype=t.dtype) for v, t in pairs], entry, title)
    tensors = fill_values(sample, found["profile"], found["varied"])
    if found["code"] == "OX214":
        # A dtype may be another one whatever the shape is.
        yield _write(called, [tensor.flatten()[:1] for tensor in tensors], entry, title)
    yield _write(called, tensors, entry, title)


def _number(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _find_call(op: Any, sample: Sample, tensors: list[torch.Tensor]) -> str | None:
    """The call as one writes it, where that gives what the sample's own function gives."""
    names = [Name(f"x{number}") for number in range(len(tensors))]
    given = iter(names)
    leaves = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in sample.leaves]
    args, kwargs = pytree.tree_unflatten(leaves, sample.spec)
    inside = ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])
    if "<" in inside or "tensor(" in inside:
        return None
    wanted = _answer(lambda: op.op(*sample.fill(tensors)[0], **sample.fill(tensors)[1]))
    for path in (f"torch.{op.name}", f"torch.Tensor.{op.name}", f"torch.ops.aten.{op.name}"):
        text = f"{path}({inside})"
        places = {"torch": torch, "inf": float("inf"), "nan": float("nan")} | {
            f"x{i}": t.clone() for i, t in enumerate(tensors)
        }
        known = _answer(lambda text=text, places=places: eval(text, places))  # our own text
        if _agree(known, wanted):
            return text.replace("(inf", '(float("inf")').replace("-inf", '-float("inf")')
    return None


def _agree(known: list[torch.Tensor] | None, wanted: list[torch.Tensor] | None) -> bool:
    if known is None or wanted is None or len(known) != len(wanted):
        return False
    pairs = zip(known, wanted, strict=True)
    return all(a.shape == b.shape and torch.allclose(a.double(), b.double(), equal_nan=True) for a, b in pairs)


def _answer(call: Any) -> list[torch.Tensor] | None:
    try:
        answer = call()
        return (
            None
            if any(t.is_complex() for t in pytree.tree_leaves(answer) if isinstance(t, torch.Tensor))
            else list_outputs(answer)
        )
    except Exception:
        return None


def _write(call: str, tensors: list[torch.Tensor], entry: Row, title: str) -> str:
    imports, export = EXPORTS[entry["exporter"]]
    file = "file" if entry["exporter"] == "dynamo" else "file.getvalue()"
    return SCRIPT.format(
        title=title,
        imports=imports,
        names=", ".join(f"x{number}" for number in range(len(tensors))),
        call=call,
        inputs=",\n    ".join(map(_show, tensors)) if len(tensors) > 1 else _show(tensors[0]),
        export=export.format(opset=entry["opset"]),
        session=SESSIONS[entry["level"]].format(file=file),
        rtol=PRECISION.get(entry["dtype"], "1e-5"),
    )


def _show(tensor: torch.Tensor) -> str:
    def tell(value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(tell, value))}]"
        if isinstance(value, float):
            return f'float("{value}")' if value != value or value in (float("inf"), float("-inf")) else repr(value)
        return repr(value)

    if not tensor.numel():
        return f"torch.zeros({list(tensor.shape)}, dtype={tensor.dtype})"
    return f"torch.tensor({tell(tensor.tolist())}, dtype={tensor.dtype})"
