"""Much of everything, each in a process of its own: how long it takes and what memory it needs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
MB = 1 << 20


@dataclass(frozen=True)
class Load:
    """What was asked for, and what it took."""

    name: str
    seconds: float
    megabytes: int
    """The peak of the process."""
    told: str


def _findings(count: int) -> str:
    """Observed one after the other, judged, and shown in every form."""
    from onnxproof.findings import Where, found
    from onnxproof.pipeline.collected import Collected
    from onnxproof.pipeline.events import Observed
    from onnxproof.policy.judgement import judge_proof
    from onnxproof.report.github import render_annotations
    from onnxproof.report.html import render_html
    from onnxproof.report.junit import render_junit
    from onnxproof.report.markdown import render_markdown
    from onnxproof.report.text import render
    from onnxproof.request.thresholds import Policy

    collected = Collected()
    for i in range(count):
        collected.receive(Observed(found("OX229", f"node {i} is wrong", where=Where(node=f"n{i}"), evidence={"i": i})))
    proof = judge_proof(collected.proof, Policy())
    sizes = [len(form(proof)) for form in (render, render_html, render_junit, render_markdown, render_annotations)]
    again = type(proof).loads(proof.dumps())
    assert len(again.findings) == count
    return f"text {sizes[0] // 1000} kB, page {sizes[1] / 1e6:.1f} MB, proof {len(proof.dumps()) / 1e6:.1f} MB"


def _cases(count: int) -> str:
    """A proof of so many cases: collected, judged, written, read and shown."""
    sys.path.append(str(ROOT / "tests"))
    from onnxproof.pipeline.collected import Collected
    from onnxproof.pipeline.events import Compared, Planned
    from onnxproof.policy.judgement import judge_proof
    from onnxproof.report.html import render_html
    from onnxproof.report.text import render
    from onnxproof.request.thresholds import Policy
    from proofs import make_case

    collected = Collected()
    names = [f"batch={i % 7}/normal/seed={i}" for i in range(count)]
    collected.receive(Planned(names, [], {}))
    for i, name in enumerate(names):
        collected.receive(Compared(make_case(name, 1e-3 if i % 100 == 0 else 1e-8, i)))
    proof = judge_proof(collected.proof, Policy())
    text = proof.dumps()
    again = type(proof).loads(text)
    assert len(again.cases) == count
    return f"text {len(render(proof)) // 1000} kB, page {len(render_html(proof)) / 1e6:.1f} MB, proof {len(text) / 1e6:.0f} MB"


def write_chain(file: Path, count: int, wrong: bool = False) -> None:
    """A graph of so many nodes, one after the other, that stays near to its input."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = []
    for i in range(count):
        op = ("Add", "Mul", "Tanh", "Sub")[i % 4]
        inputs = [f"v{i}", ("a", "b", "", "a")[i % 4]]
        if wrong and i == count - 8:  # what comes earlier is forgotten by so many squashings
            op, inputs = "Sub", [f"v{i}", "b"]
        nodes.append(helper.make_node(op, [name for name in inputs if name], [f"v{i + 1}"], name=f"n{i}"))
    stored = [numpy_helper.from_array(np.array([value], np.float32), name) for name, value in (("a", 0.01), ("b", 0.9))]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in ("v0", f"v{count}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), file)


def _prove_graph(count: int) -> str:
    """A right and a wrong file of so many nodes against the right one, in this process."""
    import onnxproof

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_chain(folder / "a.onnx", count)
        write_chain(folder / "b.onnx", count)
        write_chain(folder / "wrong.onnx", count, wrong=True)
        told = []
        for file in ("b", "wrong"):
            began = time.perf_counter()
            proof = onnxproof.verify(
                str(folder / "a.onnx"), onnx=folder / f"{file}.onnx", out=folder / "out", batch_sizes=(2, 3)
            )
            culprits = [c.node for blame in proof.blame.values() for c in blame.culprits][:1]
            told.append(f"{proof.verdict} {' '.join(map(str, culprits))} in {time.perf_counter() - began:.0f} s")
        return "; ".join(told)


def _lint_graph(count: int) -> str:
    import onnxproof

    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "a.onnx"
        write_chain(file, count)
        began = time.perf_counter()
        proof = onnxproof.lint(file)
        return f"{proof.verdict}, {len(proof.findings)} findings, the lint alone {time.perf_counter() - began:.0f} s"


def _compare(count: int) -> str:
    from onnxproof.parity.comparison import compare, measure_noise

    b = np.linspace(-3, 3, count, dtype=np.float32).reshape(-1, 1000)
    c = b.copy()
    c[7, 7] += 0.5
    result = compare("x", b, c)
    noise = measure_noise(b, c, b, "float64", 2.0**-24)
    assert noise is not None
    return f"max_abs {result.max_abs:.2g}, outside {result.outside}, arrays of {b.nbytes // MB} MB"


def _prove_output(count: int) -> str:
    """A module whose output has so many elements, and its file, in this process."""
    import onnx
    import torch
    from onnx import TensorProto, helper, numpy_helper

    import onnxproof

    class Spread(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, count // 1000))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    module, inputs = Spread().eval(), (torch.linspace(-1, 1, 1000)[:, None],)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "m.onnx"
        stored = numpy_helper.from_array(module.weight.detach().numpy(), "w")
        sizes = {"x": [1000, 1], "y": [1000, count // 1000]}
        ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, shape) for end, shape in sizes.items()]
        graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [stored])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), file)
        proof = onnxproof.verify(module, inputs, onnx=file, out=name, dynamic="none", fast=True, budget=10.0)
    return f"{proof.verdict}, {len(proof.cases)} cases, outputs of {4 * count // MB} MB in float32"


def write_stack(folder: Path, layers: int, width: int) -> Path:
    """A file of so many square layers whose weights lie outside, written layer by layer."""
    import onnx
    from onnx import TensorProto, helper

    generator, stored, nodes = np.random.default_rng(0), [], []
    with (folder / "weights.bin").open("wb") as stream:
        for i in range(layers):
            tensor = TensorProto(name=f"w{i}", data_type=1, dims=[width, width], data_location=TensorProto.EXTERNAL)
            place = {"location": "weights.bin", "offset": str(stream.tell()), "length": str(4 * width * width)}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=value)
            stream.write((generator.standard_normal((width, width), np.float32) / np.float32(width**0.5)).tobytes())
            stored.append(tensor)
            nodes.append(helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"], name=f"n{i}"))
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, ["batch", width]) for end in ("v0", f"v{layers}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), folder / "model.onnx"
    )
    return folder / "model.onnx"


def _prove_stack(layers: int, width: int = 4096) -> str:
    """Weights outside the file, and a module that maps the same ones into memory."""
    import torch

    import onnxproof

    with tempfile.TemporaryDirectory() as name:
        file = write_stack(Path(name), layers, width)
        mapped = np.memmap(Path(name) / "weights.bin", np.float32, "c", shape=(layers, width, width))
        stack = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False, device="meta") for _ in range(layers)))
        for layer, weight in zip(stack, mapped, strict=True):
            layer.weight = torch.nn.Parameter(torch.from_numpy(weight).T, requires_grad=False)
        inputs = (torch.ones(2, width),)
        proof = onnxproof.verify(stack.eval(), inputs, onnx=file, out=name, batch_sizes=(1, 2), fast=True, budget=5.0)
        size = (Path(name) / "weights.bin").stat().st_size
    return f"{proof.verdict}, {len(proof.cases)} cases, weights of {size // MB} MB"


def _together(count: int) -> str:
    """Proofs on the command line, all of them at once, each in a folder of its own."""
    from benchmarks.reliability.kills import list_leavings
    from benchmarks.reliability.subjects import write_subjects

    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / str(i) for i in range(count)]
        for folder in folders:
            (folder / "tmp").mkdir(parents=True)
            write_subjects(folder)
        runs = [_begin(folder, ("right.onnx", "wrong.onnx")[i % 2]) for i, folder in enumerate(folders)]
        each, all_of_them = _watch_memory(runs)
        ends = [(run.wait(), (folder / "stdout").read_text()) for run, folder in zip(runs, folders, strict=True)]
        left = sum(len(list_leavings(folder, run.pid, 5.0)) for run, folder in zip(runs, folders, strict=True))
    wanted = [(0, "SHIP"), (1, "BLOCK")]
    right = sum((code, said.partition(" ")[0]) == wanted[i % 2] for i, (code, said) in enumerate(ends))
    memory = f"the largest process {each // MB} MB, all of them together {all_of_them // MB} MB"
    return f"{right} of {count} with the right verdict, {left} processes or files left behind, {memory}"


def _begin(folder: Path, file: str) -> subprocess.Popen[bytes]:
    words = ["verify", "m.py:scaled", "--batch-sizes", "2,3", "--budget", "5s", "--fast", "--onnx", file, "-q"]
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    command = [sys.executable, "-m", "onnxproof", *words]
    with (folder / "stdout").open("wb") as out:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=subprocess.DEVNULL, start_new_session=True
        )


def _watch_memory(runs: Sequence[subprocess.Popen[bytes]]) -> tuple[int, int]:
    """Until all have ended: the most bytes that one process had, and that all had together; what is shared counts once."""
    from benchmarks.reliability.kills import list_members

    each, together = 0, 0
    while any(run.poll() is None for run in runs):
        members = [pid for run in runs if run.returncode is None for pid, _ in list_members(run.pid)]
        sizes = [_read_share(pid) for pid in members]
        each, together = max([each, *sizes]), max(together, sum(sizes))
        time.sleep(2)
    return each, together


def _read_share(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


LOADS: dict[str, Callable[[], str]] = {
    "10,000 findings": lambda: _findings(10_000),
    "100,000 cases": lambda: _cases(100_000),
    "a graph of 5,000 nodes, right and wrong": lambda: _prove_graph(5_000),
    "a graph of 1,000,000 nodes, linted": lambda: _lint_graph(1_000_000),
    "an output of 100,000,000 elements": lambda: _compare(100_000_000),
    "a proof with an output of 100,000,000 elements": lambda: _prove_output(100_000_000),
    "a proof of 3 GB of weights outside the file": lambda: _prove_stack(48),
    "50 proofs at once": lambda: _together(50),
}


def measure(name: str) -> Load:
    """One of them, in a process of its own."""
    program = f"from benchmarks.reliability.load import run; run({name!r})"
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    seconds = time.perf_counter() - began
    last = (done.stdout.strip().splitlines() or [""])[-1]
    megabytes, _, told = last.partition(" ")
    if done.returncode or not megabytes.isdigit():
        return Load(name, seconds, 0, f"failed: {done.stderr.strip().splitlines()[-1:]}")
    return Load(name, seconds, int(megabytes), told)


def run(name: str) -> None:
    """In that process: do it, and say what it took."""
    from onnxproof.system import read_peak

    told = LOADS[name]()
    print(read_peak() // MB, told)
