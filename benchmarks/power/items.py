"""What is verified: a PyTorch module, its inputs and an ONNX file, faulty or correct."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnxproof
from benchmarks.faults import FAULTS
from benchmarks.faults.build import build, dynamic_of
from benchmarks.zoo import ZOO
from onnxproof.graph import sourcemap
from onnxproof.graph.sourcemap import Origin


@dataclass(frozen=True)
class Item:
    """One thing to verify."""

    name: str
    kind: str
    """`fault` or `zoo`."""
    cls: str
    """Class of the fault, family of the model."""
    module: Any
    inputs: Any
    onnx: Path | None
    """None where there is no export: then there is only a diagnosis."""
    culprit: str | None = None
    module_path: str | None = None
    line: int | None = None
    """Where the culprit's node comes from, by the source map of the correct export."""
    stage: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    problem: str = ""


def names() -> list[str]:
    """All items: `fault:NAME` and `zoo:NAME`."""
    return [f"fault:{name}" for name in FAULTS] + [f"zoo:{name}" for name in ZOO]


def load(name: str, folder: Path) -> Item:
    """Make one item; artifacts are written below `folder`."""
    kind, _, key = name.partition(":")
    return _fault(key, folder) if kind == "fault" else _correct(key, folder)


def _fault(key: str, folder: Path) -> Item:
    fault = FAULTS[key]
    built = build(fault, folder)
    options = dict(fault.options)
    if dynamic_of(fault) is not None:
        options["dynamic"] = dynamic_of(fault)
    origin = Origin()
    if built.culprit is not None and built.onnx_path is not None:
        origin = sourcemap.read(built.onnx_path.with_suffix(".sourcemap.json")).get(built.culprit, origin)
    return Item(
        key,
        "fault",
        fault.cls,
        built.target_module,
        built.inputs,
        built.onnx_path,
        built.culprit,
        origin.module,
        origin.line,
        fault.stage,
        options,
    )


def _correct(key: str, folder: Path) -> Item:
    entry = ZOO[key]
    module, inputs = entry.make()
    options = dict(entry.options)
    exporting = {name: options[name] for name in ("dynamic", "opset", "exporter") if name in options}
    proof = onnxproof.export(module, inputs, out=folder / key, **exporting)
    if proof.artifact is None:
        problem = next((f.message for f in proof.findings if f.severity == "block"), "no artifact")
        return Item(key, "zoo", entry.family, module, inputs, None, options=options, problem=problem)
    return Item(key, "zoo", entry.family, module, inputs, folder / key / "model.onnx", options=options)
