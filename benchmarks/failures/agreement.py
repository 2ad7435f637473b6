"""Does the lint know what onnxruntime refuses? Every operator of the standard, in several dtypes, through both."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

import onnxproof

OTHER = (onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.INT64)
"""What every float32 of a case is turned into, where the operators allow it."""


def models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """onnx's own cases, one or a few for each operator, as they are and in other dtypes."""
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(None):
        if case.model is None:
            continue
        yield case.name, case.model
        for kind in OTHER:
            changed = _retyped(case.model, kind)
            if changed is not None:
                yield f"{case.name} in {onnx.TensorProto.DataType.Name(kind).lower()}", changed


def _retyped(model: onnx.ModelProto, kind: int) -> onnx.ModelProto | None:
    """The model with another type in place of float32; None where it has none, or may not have the other."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for value in [*changed.graph.input, *changed.graph.output, *changed.graph.value_info]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = kind
    try:
        onnx.checker.check_model(changed, full_check=True)
    except Exception:
        return None
    return changed if changed != model else None


def compare(model: onnx.ModelProto, path: Path) -> tuple[bool, bool]:
    """Whether onnxruntime refuses a model, and whether the lint blocks it."""
    path.write_bytes(model.SerializeToString())
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        refused = False
    except Exception:
        refused = True
    return refused, any(finding.severity == "block" for finding in onnxproof.lint(path).findings)


def agreement() -> dict[str, Any]:
    """How many refused files the lint tells, and how many that load it blocks."""
    counts = {"files": 0, "refused": 0, "told": 0, "false": 0}
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models():
            refused, told = compare(model, Path(folder) / "model.onnx")
            counts["files"] += 1
            counts["refused"] += refused
            counts["told"] += refused and told
            counts["false"] += told and not refused
            if refused and not told:
                missed.append(name)
    return {**counts, "missed": missed, "onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__}


def section(counted: dict[str, Any]) -> list[str]:
    """The agreement as part of a page."""
    operators = ", ".join(f"`{name}`" for name in counted["missed"][:20])
    return [
        "## Lint against onnxruntime",
        "",
        f"onnx's own test cases for every operator, as they are and in float64, float16, bfloat16 and int64 where the operator allows it: "
        f"{counted['files']:,} files, each through `onnxproof lint` (no session) and through a session of onnxruntime {counted['onnxruntime']}.",
        "",
        f"onnxruntime refuses {counted['refused']:,} of them; the lint tells {counted['told']:,} ({counted['told'] / counted['refused']:.1%}), "
        f"and blocks {counted['false']} of the {counted['files'] - counted['refused']:,} that load.",
        "",
        f"Not told: {operators}.",
    ]
