"""From a fault to the wrong artifact: export the architecture, change the graph, keep the source map."""

from __future__ import annotations

import json
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

import onnxproof
from benchmarks.faults.registry import ARCHITECTURES, DYNAMIC, Fault


@dataclass(frozen=True)
class Built:
    """A fault ready to be judged."""

    target_module: Any
    inputs: Any
    onnx_path: Path | None
    """The wrong artifact: the changed graph, or the plain export where nothing is changed."""
    culprit: str | None
    """Name of the changed node in the artifact."""


def dynamic_of(fault: Fault) -> dict[str, dict[int, str]] | None:
    """The dynamic dims a fault's artifact is exported with."""
    return fault.options.get("dynamic", DYNAMIC.get(fault.architecture))


def export_of(fault: Fault, folder: Path) -> Path:
    """The correct export of a fault's architecture, made once per set of options."""
    key = json.dumps([fault.export, dynamic_of(fault)], sort_keys=True)
    out = folder / "exports" / f"{fault.architecture}-{zlib.crc32(key.encode()):08x}"
    path = out / "model.onnx"
    if not path.is_file():
        module, inputs = ARCHITECTURES[fault.architecture]()
        proof = onnxproof.export(module, inputs, out=out, dynamic=dynamic_of(fault), **fault.export)
        if proof.artifact is None or not path.is_file():
            raise RuntimeError(f"{fault.architecture} was not exported: {[f.message for f in proof.findings]}")
    return path


def build(fault: Fault, folder: Path) -> Built:
    """Build a fault's artifact below a folder; exports are shared between faults."""
    module, inputs = ARCHITECTURES[fault.architecture]()
    clean = export_of(fault, folder)
    if fault.mutate is None:
        return Built(module, inputs, clean, None)
    model = onnx.load(clean)
    before = model.SerializeToString(deterministic=True)
    culprit = fault.mutate(model)
    if model.SerializeToString(deterministic=True) == before:
        raise ValueError(f"{fault.name} changes nothing")
    if culprit is not None and culprit not in {node.name for node in model.graph.node}:
        raise ValueError(f"{fault.name} blames {culprit}, which is not in the graph")
    del model.graph.value_info[:]
    path = folder / fault.name / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    origins = clean.with_suffix(".sourcemap.json")
    if origins.is_file():
        shutil.copyfile(origins, path.with_suffix(".sourcemap.json"))
    return Built(module, inputs, path, culprit)
