"""Does every fault do what its class says? Torch and onnxruntime are compared directly, at the recorded inputs.

python -m benchmarks.faults.check [name ...]
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

from benchmarks.faults import ARCHITECTURES, FAULTS, Fault
from benchmarks.faults.build import Built, build, export_of
from benchmarks.faults.inputs import draw, example
from onnxproof.subject.structure import flatten

ATOL, RTOL = 1e-4, 1e-3
LEAST_NOISE = 2e-6
ROUNDING = 1.5e-6
"""What a correct export of these small models may be off by, relative to the scale of the output."""
LEVELS = {
    "disable": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
MINIMUM = {"plain": 22, "noise": 20, "edge": 20, "shape": 15, "contract": 15, "runtime": 12}
Arrays = dict[str, np.ndarray]


def session_of(path: Path, fault: Fault) -> onnxruntime.InferenceSession:
    """The session that ships."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[fault.options.get("optimization", "all")]
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def eager(built: Built, inputs: Arrays) -> Arrays:
    """Torch's outputs by name."""
    with torch.inference_mode():
        outputs = flatten(built.target_module(*(torch.from_numpy(inputs[name].copy()) for name in inputs)))
    return {name: tensor.numpy() for name, tensor in outputs.tensors.items()}


def run(session: onnxruntime.InferenceSession, inputs: Arrays) -> Arrays | str:
    """onnxruntime's outputs by name, or what it says against the inputs."""
    try:
        names = [output.name for output in session.get_outputs()]
        feed = {i.name: inputs[i.name] for i in session.get_inputs()}
        return dict(zip(names, session.run(names, feed), strict=True))
    except KeyError as error:
        return f"there is no input {error}"
    except Exception as error:
        return str(error).splitlines()[0]


def distance(expected: Arrays, actual: Arrays | str) -> tuple[bool, float]:
    """Whether the tolerances are exceeded (or form differs), and the greatest error relative to the output's scale."""
    if isinstance(actual, str) or list(expected) != list(actual):
        return True, np.inf
    beyond, worst = False, 0.0
    for name, y in expected.items():
        z = actual[name]
        if y.shape != z.shape or y.dtype != z.dtype:
            return True, np.inf
        if y.size == 0:
            continue
        a, b = y.astype(np.float64), z.astype(np.float64)
        with np.errstate(all="ignore"):
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            error = np.where(same, 0.0, np.abs(a - b))
            exact = y.dtype.kind != "f"
            close = same if exact else same | (error <= ATOL + RTOL * np.abs(a))
        beyond |= not close.all()
        scale = np.abs(a[np.isfinite(a)]).max(initial=0.0)
        error = np.where(np.isnan(error), np.inf, error)
        worst = max(worst, float(error.max() / scale) if scale else float(np.where(error.max() > 0, np.inf, 0)))
    return beyond, worst


def signature(session: onnxruntime.InferenceSession) -> list[Any]:
    """Names, order, types, ranks and fixed sizes of inputs; names, order and types of outputs."""
    inputs = [(i.name, i.type, [s if isinstance(s, int) else None for s in i.shape]) for i in session.get_inputs()]
    return [inputs, [(o.name, o.type) for o in session.get_outputs()]]


def problems(fault: Fault, folder: Path) -> tuple[list[str], str]:
    """What is wrong with a fault, and what it does at its witness."""
    built = build(fault, folder)
    assert built.onnx_path is not None
    clean, wrong = session_of(export_of(fault, folder), fault), session_of(built.onnx_path, fault)
    witness = dict(fault.witness())
    usual = example(fault.architecture)
    if list(witness) != list(usual):
        return [f"the witness has {list(witness)}, the module takes {list(usual)}"], ""
    expected = eager(built, witness)
    beyond, worst = distance(expected, run(wrong, witness))
    found: list[str] = []
    if fault.mutate is not None:
        clean_beyond, clean_worst = distance(expected, run(clean, witness))
        if clean_beyond or clean_worst > ROUNDING:
            found.append(f"the correct export differs at the witness, by {clean_worst:.1e}")
    if fault.cls == "noise":
        if beyond:
            found.append(f"exceeds the tolerances ({worst:.1e})")
        if worst < LEAST_NOISE:
            found.append(f"is not above rounding ({worst:.1e})")
    elif fault.cls == "contract":
        if signature(clean) == signature(wrong) and not beyond:
            found.append("keeps the contract")
        if fault.mutate is not None and built.culprit is not None:
            found.append("blames a node for a contract")
    elif not beyond:
        found.append(f"does not exceed the tolerances ({worst:.1e})")
    if fault.cls in ("edge", "shape"):
        seeds = (101, 102, 103)
        cases = [draw(fault.architecture, seed) for seed in seeds]
        for case in [usual, *cases]:
            if distance(eager(built, case), run(wrong, case))[0]:
                found.append("differs on ordinary inputs of the exported shape too")
                break
    if fault.cls == "shape" and all(witness[name].shape == usual[name].shape for name in usual):
        found.append("the witness has the exported shape")
    raised = run(wrong, witness)
    return found, f"raises: {raised[:60]}" if isinstance(raised, str) else f"{worst:.1e}"


def main(names: list[str]) -> int:
    """Check the faults of these names, or all."""
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    onnxruntime.set_default_logger_severity(4)
    unknown = set(names) - set(FAULTS)
    if unknown:
        print("no such fault:", *sorted(unknown))
        return 1
    chosen = [FAULTS[name] for name in names] or list(FAULTS.values())
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as temporary:
        for fault in chosen:
            start = time.perf_counter()
            try:
                found, effect = problems(fault, Path(temporary))
            except Exception as error:
                found, effect = [f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"], ""
            mark = "FAIL" if found else "ok"
            seconds = time.perf_counter() - start
            print(f"{mark:4} {fault.cls:8} {fault.name:34} {fault.architecture:20} {effect:12} {seconds:4.1f}s", *found)
            failed += [fault.name] if found else []
    counts = Counter(fault.cls for fault in FAULTS.values())
    print(f"{len(FAULTS)} faults over {len(ARCHITECTURES)} architectures:", json.dumps(counts))
    used = {fault.architecture for fault in FAULTS.values()}
    if set(ARCHITECTURES) - used:
        print("without a fault:", *sorted(set(ARCHITECTURES) - used))
    few = [name for name, least in MINIMUM.items() if counts[name] < least]
    if few:
        print("too few:", *few)
    print(f"{len(failed)} failed" + (": " + ", ".join(failed) if failed else ""))
    return 1 if failed or few else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
