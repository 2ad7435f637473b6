"""What locating costs: writes docs/blame.md.

- wall time on a chain of 128 nodes with one bad weight, beside `polygraphy debug reduce`
- memory on a model whose inner values need 4 GB, with a budget of a twentieth of that
- wall time on a model of 5,000 nodes
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx

ROOT = Path(__file__).parents[1]
POLYGRAPHY = ROOT / ".venv-polygraphy" / "bin"
MEGABYTE = 1_000_000
WIDE_ROWS, WIDE_COLUMNS, WIDE_NODES = 128, 8192, 1024


# --- models ---------------------------------------------------------------------------------------------------------


def chain(path: Path, pairs: int, width: int = 64, bad: int | None = None) -> str | None:
    """Gemm and Relu in turns, on a batch of any size; the name of the node with half of its weights off by 10 %, if one is."""
    rng = np.random.default_rng(0)
    nodes, weights, value, culprit = [], [], "x", None
    for i in range(pairs):
        weight = (rng.standard_normal((width, width)) / np.sqrt(width / 2)).astype(np.float32)
        if i == bad:
            weight[:, : width // 2] *= 1.1
            culprit = f"gemm_{i}"
        weights.append(onnx.numpy_helper.from_array(weight, f"w{i}"))
        nodes.append(onnx.helper.make_node("MatMul", [value, f"w{i}"], [f"g{i}"], f"gemm_{i}"))
        nodes.append(onnx.helper.make_node("Relu", [f"g{i}"], [f"r{i}"], f"relu_{i}"))
        value = f"r{i}"
    _save(path, nodes, weights, value, width)
    return culprit


def wide(path: Path, nodes: int, columns: int, bad: int | None = None) -> str | None:
    """A chain of cheap nodes on large values; one adds a wrong constant."""
    made, weights, value = [], [], "x"
    for i in range(nodes):
        constant = np.full(1, 0.01 if i != bad else 0.02, np.float32)
        weights.append(onnx.numpy_helper.from_array(constant, f"c{i}"))
        made.append(onnx.helper.make_node("Add" if i % 2 else "Mul", [value, f"c{i}"], [f"v{i}"], f"node_{i}"))
        if i % 2 == 0:
            weights[-1].CopyFrom(onnx.numpy_helper.from_array(np.full(1, 1.001, np.float32), f"c{i}"))
        value = f"v{i}"
    _save(path, made, weights, value, columns)
    return f"node_{bad}" if bad is not None else None


def _save(path: Path, nodes: list[Any], weights: list[Any], last: str, width: int) -> None:
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "chain",
        [info("x", onnx.TensorProto.FLOAT, ["batch", width])],
        [info(last, onnx.TensorProto.FLOAT, ["batch", width])],
        weights,
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, path)


# --- ours -----------------------------------------------------------------------------------------------------------


def located(good: Path, bad: Path, rows: int, memory: int | None = None) -> dict[str, Any]:
    """Locate in this process: what is blamed, how long it took, and by how much memory grew meanwhile."""
    from onnxproof.artifact.file import read_artifact
    from onnxproof.blame.locate import MEMORY, Locator
    from onnxproof.candidates import choose_candidate
    from onnxproof.request.session import SessionSettings
    from onnxproof.subject.assembly import make_subject
    from onnxproof.subject.onnx_module import GraphModule, make_examples

    subject = make_subject(GraphModule(str(good)), make_examples(str(good)))
    artifact = read_artifact(bad)
    columns = artifact.inputs[0].shape[1]
    inputs = {"x": np.random.default_rng(1).standard_normal((rows, int(columns))).astype(np.float32)}
    names = {port.name: port.name for port in artifact.outputs}
    began = time.perf_counter()
    settings = SessionSettings()
    locator = Locator(
        subject, artifact, choose_candidate(settings), settings, {"x": "x"}, names, memory=memory or MEMORY
    )
    with Peak() as peak:
        blame = locator.locate(inputs)
    first = blame.culprits[0].node if blame.culprits else None
    return {"node": first, "seconds": time.perf_counter() - began, "memory": peak.grown}


class Peak:
    """By how much the process grew at most."""

    def __enter__(self) -> Peak:
        self._before = self._top = _resident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.002):
            self._top = max(self._top, _resident())

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.grown = max(self._top, _resident()) - self._before


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


# --- Polygraphy -----------------------------------------------------------------------------------------------------


def reduced(good: Path, bad: Path, folder: Path) -> dict[str, Any]:
    """`polygraphy debug reduce` by bisection: golden values of every layer from the right file, then checks of ever smaller models."""
    tool = [str(POLYGRAPHY / "python"), str(POLYGRAPHY / "polygraphy")]
    fed, golden = folder / "inputs.json", folder / "golden.json"
    shapes = ["--input-shapes", "x:[4,64]"]
    run = [*tool, "run", str(good), "--onnxrt", "--onnx-outputs", "mark", "all", *shapes]
    subprocess.run([*run, "--save-inputs", fed, "--save-outputs", golden], check=True, capture_output=True, cwd=folder)
    began = time.perf_counter()
    check = [
        *tool,
        "run",
        "polygraphy_debug.onnx",
        "--onnxrt",
        "--load-inputs",
        str(fed),
        "--load-outputs",
        str(golden),
    ]
    reduce = [*tool, "debug", "reduce", str(bad), "-o", "reduced.onnx", "--mode=bisect", "--load-inputs", str(fed)]
    done = subprocess.run([*reduce, "--check", *check], capture_output=True, text=True, cwd=folder)
    seconds = time.perf_counter() - began
    left = (
        [n.name for n in onnx.load(folder / "reduced.onnx").graph.node] if (folder / "reduced.onnx").is_file() else []
    )
    return {"nodes": left, "seconds": seconds, "code": done.returncode}


# --- one run --------------------------------------------------------------------------------------------------------


def measured(what: str) -> dict[str, Any]:
    """One measurement in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "benchmarks.blame", what], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{what}: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def measure(what: str, folder: Path) -> dict[str, Any]:
    """What `measured` asks for."""
    good, bad = folder / "good.onnx", folder / "bad.onnx"
    if what == "chain":
        chain(good, 64)
        culprit = chain(bad, 64, bad=41)
        return {"ours": located(good, bad, 4), "culprit": culprit, "polygraphy": reduced(good, bad, folder)}
    if what == "memory":
        wide(good, WIDE_NODES, WIDE_COLUMNS)
        culprit = wide(bad, WIDE_NODES, WIDE_COLUMNS, bad=401)
        marked = WIDE_ROWS * WIDE_COLUMNS * 4 * WIDE_NODES
        return {
            **located(good, bad, WIDE_ROWS, marked // 20),
            "culprit": culprit,
            "marked": marked,
            "budget": marked // 20,
        }
    chain(good, 2500, width=32)
    culprit = chain(bad, 2500, width=32, bad=1711)
    return {**located(good, bad, 4), "culprit": culprit}


def page(small: dict[str, Any], memory: dict[str, Any], large: dict[str, Any]) -> str:
    """docs/blame.md."""
    ours, theirs = small["ours"], small["polygraphy"]
    rows = [
        "# What locating costs",
        "",
        "Made by `make blame` in one run; each line is a process of its own.",
        "",
        "| what | measured |",
        "|---|---|",
        f"| chain of 128 nodes, one bad weight in `{small['culprit']}`: onnxproof names | `{ours['node']}` in {ours['seconds']:.2f} s |",
        f"| the same with `polygraphy debug reduce --mode=bisect` | {theirs['nodes']} in {theirs['seconds']:.2f} s |",
        f"| ratio | {theirs['seconds'] / ours['seconds']:.1f} |",
        f"| inner values of {memory['marked'] / 1e9:.1f} GB (float32), budget {memory['budget'] / MEGABYTE:.0f} MB: named | "
        f"`{memory['node']}` (right: `{memory['culprit']}`) in {memory['seconds']:.0f} s |",
        f"| by how much the process grew meanwhile | {memory['memory'] / MEGABYTE:.0f} MB |",
        f"| 5,000 nodes, one bad weight in `{large['culprit']}`: named | `{large['node']}` in {large['seconds']:.1f} s |",
        "",
        "The time of onnxproof is that of locating in a running process, as it happens after a case has failed; Polygraphy's is that of its command, "
        "which starts a process for every check (the golden values that it needs were made before and are not counted).",
        "",
    ]
    return "\n".join(rows)


def main() -> None:
    """Measure, write."""
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(sys.argv[1], Path(folder))))
        return
    text = page(measured("chain"), measured("memory"), measured("large"))
    (ROOT / "docs" / "blame.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
