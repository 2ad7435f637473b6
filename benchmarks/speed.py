"""How long a verdict takes, as ratios measured in one run; writes docs/speed.md.

    python -m benchmarks.speed                    all of it but the corpus
    python -m benchmarks.speed --corpus --against REV
                                                  every fault through the command line, by this version and by another one: hours, and it goes on
                                                  where it ended (benchmarks/corpus.json; without that file it begins anew)
    python -m benchmarks.speed --steady 10        the same proof, so many times on an idle machine and with every core loaded
    python -m benchmarks.speed --family           what trials cost for the second model of a family

CPU time is what is compared, of a process and all of its children: the machine is noisy. The bare script is what people write
themselves: it imports torch and onnxruntime, builds the module, exports it and runs the same cases once on both sides.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import torch

ROOT = Path(__file__).parents[1]
ROUNDS = 3
# Faults that one `prove --all` gets, and how many of these run at a time, each with one thread.
TOGETHER = 12
PARALLEL = 2
SMALL = ("tabular", "convolutional", "attentive", "cnn", "transformer")
"""Three that cost nothing but to import, export and look at, and the two of `benchmarks.overhead`, whose float64 forwards weigh."""
RESULTS = Path(__file__).parent / "speed.json"
CORPUS = Path(__file__).parent / "corpus.json"
PAGE = ROOT / "docs" / "speed.md"
HEAD = """# Speed

Ratios, each measured in one run (`make speed`, `make large`, `make overhead`): machines are noisy, so CPU time of a process and all its children is compared,
beside a bare script that imports torch and onnxruntime, builds and exports the module and runs the same cases once on both sides."""
SMALL_HEAD = """## Small models

*correct*: `prove` from nothing; *again*: a second time, where the export is still good; *faulty*: `prove --onnx` of a file with one weight changed by a
twentieth, with culprit, smallest input and reproduction; all over the bare script's CPU time. *verdict*: seconds until the faulty file's verdict is
printed, over the bare script's seconds. Medians of rounds, in each of which all of these run once.

| model | cases | bare script | correct | again | faulty | verdict |
|---|---|---|---|---|---|---|"""
FAMILY_HEAD = """## The second model of a family

Seconds (not a ratio: a limit that was asked for) in which every piece is put on trial, of a small GPT-2 with an empty cache, and of three with other weights
after it. What is left is to record both sides and to find the pieces.

| layers | pieces | first | others |
|---|---|---|---|"""
LARGE_HEAD = """## Large models

Encoders of transformers' own configuration with random weights. *time*: the whole command, over one bare forward of PyTorch for each compared case; *memory*:
the peak of the largest process over the size of the file. In the wrong file the largest number of one weight in the middle is doubled.

| model | file | cases | verdict | exactness, or culprit | time | memory |
|---|---|---|---|---|---|---|"""
BARE = """
import json, sys, torch, onnxruntime
import numpy as np
sys.path[:0] = [{root!r}]
from benchmarks.speed import {name}
module, inputs = {name}()
file = {file!r}
torch.onnx.export(module, inputs, file, dynamo=True, dynamic_shapes=({{0: "batch"}},))
session = onnxruntime.InferenceSession(file)
name = session.get_inputs()[0].name
for shape, dtype in json.load(open({cases!r})):
    values = np.random.randn(*shape).astype(dtype) if "float" in dtype else np.random.randint(0, 9, shape).astype(dtype)
    with torch.no_grad():
        module(torch.from_numpy(values))
    session.run(None, {{name: values}})
"""


def cnn() -> tuple[torch.nn.Module, Any]:
    """Three blocks and a head."""
    from benchmarks.overhead import cnn

    return cnn()


def transformer() -> tuple[torch.nn.Module, Any]:
    """A small encoder with a vocabulary."""
    from benchmarks.overhead import transformer

    return transformer()


def tabular() -> tuple[torch.nn.Module, Any]:
    """Features in, two classes out."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(24, 128), torch.nn.BatchNorm1d(128), torch.nn.SiLU(), torch.nn.Linear(128, 2)]
    return torch.nn.Sequential(*layers, torch.nn.Softmax(-1)).eval(), (torch.randn(4, 24),)


class Attentive(torch.nn.Module):
    """A convolution, attention over places, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 32, 3, stride=2, padding=1), torch.nn.LayerNorm(32)
        self.attention = torch.nn.MultiheadAttention(32, 4, batch_first=True)
        self.head = torch.nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pictures in, classes out."""
        places = torch.nn.functional.gelu(self.conv(x)).flatten(2).transpose(1, 2)
        mixed = self.norm(places + self.attention(places, places, places)[0])
        return torch.softmax(self.head(mixed.mean(1)), -1)


def attentive() -> tuple[torch.nn.Module, Any]:
    """A small picture, looked at."""
    torch.manual_seed(0)
    return Attentive().eval(), (torch.randn(2, 3, 16, 16),)


def convolutional() -> tuple[torch.nn.Module, Any]:
    """Two blocks on small pictures."""
    torch.manual_seed(0)
    blocks = [torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    return torch.nn.Sequential(*blocks, torch.nn.Flatten(), torch.nn.Linear(8 * 49, 5)).eval(), (
        torch.randn(2, 3, 16, 16),
    )


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    cpu: float
    wall: float
    first: float
    """Seconds until its first line."""


def cost(command: Sequence[str], paths: str = "", folder: Path = ROOT) -> Cost:
    """Run a command to its end, whatever it says."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [paths, str(ROOT)]))}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env, cwd=folder
    )
    assert process.stdout is not None  # it is a pipe
    process.stdout.readline()
    first = time.perf_counter() - began
    process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu, time.perf_counter() - began, first)


def prove(target: str, *options: str, source: str = "") -> Cost:
    """The command line, of this version or of another one."""
    return cost([sys.executable, "-m", "onnxproof", "prove", target, *options], source)


# --- one small model, right and wrong -----------------------------------------------------------------------------------


def measure_small(name: str, folder: Path) -> dict[str, float]:
    """A correct and a faulty proof over the bare script of the same round; the median of several rounds, since the machine drifts."""
    target, out = f"benchmarks.speed:{name}", folder / name
    prove(target, "--out", str(out))
    proof = json.loads((out / "proof.json").read_text())
    shapes = [next(iter(case["inputs"].values())) for case in proof["cases"]]
    (out / "cases.json").write_text(json.dumps([(shape["shape"], shape["dtype"]) for shape in shapes]))
    script = out / "bare.py"
    script.write_text(
        BARE.format(root=str(ROOT), name=name, file=str(out / "bare.onnx"), cases=str(out / "cases.json"))
    )
    wrong = spoiled(out / "model.onnx", out / "wrong.onnx")
    rounds = [
        (
            cost([sys.executable, str(script)]),
            prove(target, "--out", str(folder / f"{name}-right-{i}")),
            prove(target, "--out", str(folder / f"{name}-right-{i}")),
            prove(target, "--onnx", str(wrong), "--out", str(folder / f"{name}-wrong-{i}")),
        )
        for i in range(ROUNDS)
    ]
    return {
        "cases": len(shapes),
        "bare_cpu_s": median(bare.cpu for bare, *_ in rounds),
        "correct": median(right.cpu / bare.cpu for bare, right, _, _ in rounds),
        "again": median(again.cpu / bare.cpu for bare, _, again, _ in rounds),
        "faulty": median(faulty.cpu / bare.cpu for bare, _, _, faulty in rounds),
        "verdict": median(faulty.first / bare.wall for bare, _, _, faulty in rounds),
    }


def spoiled(file: Path, wrong: Path) -> Path:
    """The same file with one weight in the middle changed by a twentieth."""
    model = onnx.load(file)
    floats = [t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT and len(t.dims) > 1]
    tensor = floats[len(floats) // 2]
    values = onnx.numpy_helper.to_array(tensor).copy()
    values.flat[np.abs(values).argmax()] *= 1.05
    tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    onnx.save(model, wrong)
    return wrong


# --- the corpus through the command line --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planted:
    """Where a fault is: the node, and the line of the module that it stands for."""

    node: str
    line: int


def measure_corpus(revision: str, folder: Path) -> None:
    """Every fault as a subject of a repository, `prove --all` by this version and by another one; each part is kept when it is done."""
    from benchmarks.faults import FAULTS

    names = [name for name, fault in FAULTS.items() if not set(fault.options) - {"dynamic"}]
    done = read_parts()
    with (
        checked_out("HEAD", folder / "now") as here,
        checked_out(revision, folder / "before") as there,
        ThreadPoolExecutor(PARALLEL) as pool,
    ):
        sources = {"now": here, "before": there}

        def measure(part: Sequence[str]) -> None:
            missing = {side: source for side, source in sources.items() if side not in done.get(part[0], {})}
            for side, measured in measure_part(part, folder / part[0], here, missing):
                done.setdefault(part[0], {})[side] = measured
                keep_parts(done)
                print(part[0], side, round(measured["cpu_s"]), flush=True)

        list(pool.map(measure, _cut(names)))


def read_parts() -> dict[str, Any]:
    """What was measured of the corpus: the first fault of a part → what came of it."""
    return dict(json.loads(CORPUS.read_text())) if CORPUS.is_file() else {}


def keep_parts(parts: dict[str, Any]) -> None:
    """A line for each part."""
    lines = ",\n".join(f"{json.dumps(first)}: {json.dumps(part)}" for first, part in parts.items())
    CORPUS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def measure_part(
    names: Sequence[str], folder: Path, builder: str, sources: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Some faults as the subjects of one repository, by each version one after the other: side, CPU time and answers."""
    if not sources:
        return
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([builder, str(ROOT)])}
    command = [sys.executable, "-m", "benchmarks.speed", "--write", str(folder), *names]
    subprocess.run(command, check=True, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    built = {one.name: json.loads((one / "planted.json").read_text()) for one in folder.glob("*") if _is_written(one)}
    for side, source in sources.items():
        spent = prove_all(list(built), side, folder, source)
        rows = {
            name: read_answer(folder / f"proved-{side}" / name, Planted(**planted)) for name, planted in built.items()
        }
        yield side, {"cpu_s": spent, "rows": rows}


def _is_written(place: Path) -> bool:
    return (place / "planted.json").is_file()


def _cut(names: list[str]) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(names), TOGETHER):
        yield tuple(names[start : start + TOGETHER])


def write_subject(name: str, folder: Path) -> None:
    """One fault as a subject of a configuration, and where it is planted; nothing where no file shows it."""
    from benchmarks.faults import FAULTS
    from benchmarks.faults.build import build, dynamic_of
    from onnxproof.graph import sourcemap

    built, place = build(FAULTS[name], folder / name), folder / name
    if built.onnx_path is None:
        return
    torch.save((built.target_module, built.inputs), place / "subject.pt")
    (place / "target.py").write_text(
        f"import torch\n\n\ndef make():\n    return torch.load({str(place / 'subject.pt')!r}, weights_only=False)\n"
    )
    dims = dynamic_of(FAULTS[name]) or {}
    dynamic = [f"{key}:{dim}={size}" for key, sizes in dims.items() for dim, size in sizes.items()]
    told = {
        "target": f"{place / 'target.py'}:make",
        "onnx": str(built.onnx_path),
        **({"dynamic": dynamic} if dynamic else {}),
    }
    lines = [f"[subjects.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in told.items())]
    (place / "subject.toml").write_text("\n".join(lines) + "\n")
    origin = sourcemap.read(built.onnx_path.with_suffix(".sourcemap.json")).get(built.culprit or "")
    planted = Planted(built.culprit or "", (origin.line if origin is not None else None) or 0)
    (place / "planted.json").write_text(json.dumps(asdict(planted)))


def prove_all(names: Sequence[str], side: str, folder: Path, source: str) -> float:
    """CPU seconds of `prove --all` over some subjects, with all its children, and with nothing remembered of others."""
    here = folder / f"repository-{side}"
    here.mkdir(exist_ok=True)
    (here / "onnxproof.toml").write_text("\n".join((folder / name / "subject.toml").read_text() for name in names))
    command = [sys.executable, "-m", "onnxproof", "prove", "--all", "--out", str(folder / f"proved-{side}")]
    script = "import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
    script += "used = resource.getrusage(resource.RUSAGE_CHILDREN)\nprint(used.ru_utime + used.ru_stime)\n"
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([source, str(ROOT)]),
        "OMP_NUM_THREADS": "1",
        "XDG_CACHE_HOME": str(here / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", script, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        env=env,
        cwd=here,
    )
    return float(done.stdout)


def read_answer(out: Path, planted: Planted) -> tuple[str, bool | None]:
    """The verdict, and whether the fault is among the first three that are named: its node, one of its piece, one that was put in, or
    one that stands for the same line. None where there is no node to name."""
    if not (out / "proof.json").is_file():
        return "error", False
    proof = json.loads((out / "proof.json").read_text())
    named = [one for blame in proof["blame"].values() for one in blame["culprits"]]

    def is_planted(one: dict[str, Any]) -> bool:
        nodes = [one["node"], *one.get("piece", ())]
        return planted.node in nodes or nodes[0].startswith("fault_") or planted.line == (one.get("line") or -1)

    return proof["verdict"], any(map(is_planted, named[:3])) if planted.node else None


@contextmanager
def checked_out(revision: str, tree: Path) -> Iterator[str]:
    """The sources of a version."""
    subprocess.run(
        ["git", "worktree", "add", "--detach", str(tree), revision], cwd=ROOT, check=True, capture_output=True
    )
    try:
        yield str(tree / "src")
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


# --- the same proof, whatever the load ----------------------------------------------------------------------------------


def measure_steady(runs: int, folder: Path) -> dict[str, Any]:
    """Different proofs of a right and a wrong model, idle and with every core loaded; one of each is what is wanted."""
    prove("benchmarks.speed:cnn", "--out", str(folder / "steady"))
    wrong = spoiled(folder / "steady" / "model.onnx", folder / "wrong.onnx")
    seen: dict[str, list[str]] = {"right": [], "wrong": []}
    for loaded in (False, True):
        with busy(loaded):
            for i in range(runs):
                for kind, options in (("right", ()), ("wrong", ("--onnx", str(wrong)))):
                    out = folder / f"{kind}-{loaded}-{i}"
                    prove("benchmarks.speed:cnn", *options, "--out", str(out))
                    seen[kind].append(without_times((out / "proof.json").read_text(), out))
    return {kind: {"runs": len(texts), "different": len(set(texts))} for kind, texts in seen.items()}


@contextmanager
def busy(loaded: bool) -> Iterator[None]:
    """An endless loop for every core, or none."""
    loops = (os.cpu_count() or 1) if loaded else 0
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def without_times(text: str, out: Path) -> str:
    """A proof without how long anything took, when it was made, and where it was written."""

    def cleaned(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: cleaned(v) for k, v in value.items() if k not in ("seconds", "timing", "created", "command")}
        return [cleaned(one) for one in value] if isinstance(value, list) else value

    return json.dumps(cleaned(json.loads(text.replace(str(out), "OUT"))), sort_keys=True)


# --- the second model of a family ---------------------------------------------------------------------------------------


def decoder() -> tuple[torch.nn.Module, Any]:
    """GPT-2 of transformers, small, as deep and with such weights as the environment says."""
    from transformers import GPT2Config, GPT2Model

    class Hidden(torch.nn.Module):
        def __init__(self, model: torch.nn.Module) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.model(ids).last_hidden_state  # type: ignore[no-any-return]  # modules return Any

    torch.manual_seed(int(os.environ["SEED"]))
    layers = int(os.environ["LAYERS"])
    config = GPT2Config(n_layer=layers, n_embd=64, n_head=4, vocab_size=500, n_positions=64)
    return Hidden(GPT2Model(config)).eval(), (torch.randint(0, 500, (2, 16)),)


def measure_family(folder: Path) -> dict[str, Any]:
    """Layers → seconds of the trials of the first model, in an empty cache, and of three others with other weights."""
    found: dict[str, Any] = {}
    for layers in (4, 12):
        cache, spent = folder / f"cache-{layers}", list[float]()
        for seed in range(4):
            out = folder / f"family-{layers}-{seed}"
            told = {"XDG_CACHE_HOME": str(cache), "LAYERS": str(layers), "SEED": str(seed)}
            with patch.dict(os.environ, told):
                prove("benchmarks.speed:decoder", "--out", str(out))
            proof = json.loads((out / "proof.json").read_text())
            spent.append(proof["timing"]["stages"]["trial"])
        found[str(layers)] = {"pieces": proof["trials"]["pieces"], "first_s": spent[0], "others_s": spent[1:]}
    return found


# --- the page -------------------------------------------------------------------------------------------------------------


def main() -> None:
    """Measure what is asked for, keep it beside what was measured before, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", action="store_true")
    parser.add_argument("--against", default="829fda7", metavar="REV")
    parser.add_argument("--steady", type=int, default=0, metavar="RUNS")
    parser.add_argument("--family", action="store_true")
    parser.add_argument("--write", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.write:
        for name in asked.write[1:]:
            write_subject(name, Path(asked.write[0]))
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.corpus:
            measure_corpus(asked.against, folder)
        elif asked.family:
            results["family"] = measure_family(folder)
        elif asked.steady:
            results["steady"] = measure_steady(asked.steady, folder)
        else:
            results["small"] = {one: measure_small(one, folder) for one in SMALL}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    large = RESULTS.with_name("large.json")
    PAGE.write_text(
        page(results, read_parts(), json.loads(large.read_text()) if large.is_file() else {}), encoding="utf-8"
    )


def page(results: dict[str, Any], corpus: dict[str, Any], large: dict[str, Any]) -> str:
    """What was measured, as a page."""
    parts = [HEAD]
    if "small" in results:
        rows = [
            f"| {name} | {one['cases']} | {one['bare_cpu_s']:.1f} s | {one['correct']:.2f} | {one['again']:.2f} | {one['faulty']:.2f} | {one['verdict']:.2f} |"
            for name, one in results["small"].items()
        ]
        parts.append("\n".join([SMALL_HEAD, *rows]))
    if corpus:
        parts.append(_tell_corpus(list(corpus.values())))
    if "steady" in results:
        told = "; ".join(
            f"{kind}: {one['runs']} runs, {'all the same' if one['different'] == 1 else str(one['different']) + ' different proofs'}"
            for kind, one in results["steady"].items()
        )
        parts.append(
            f"## The same proof, however busy the machine\n\nProofs of a right and a wrong file, half of them on an idle machine and half with an endless loop on "
            f"every core, compared byte for byte without times: {told}."
        )
    if "family" in results:
        rows = [
            f"| {layers} | {one['pieces']} | {one['first_s']:.2f} s | {', '.join(f'{s:.2f}' for s in one['others_s'])} s |"
            for layers, one in results["family"].items()
        ]
        parts.append("\n".join([FAMILY_HEAD, *rows]))
    if large:
        sizes = sorted(large.items(), key=lambda item: int(item[0]))
        rows = [_large_row(size, one, kind) for size, one in sizes for kind in ("right", "wrong")]
        parts.append("\n".join([LARGE_HEAD, *rows]))
    return "\n\n".join(parts) + "\n"


def _tell_corpus(measured: list[dict[str, Any]]) -> str:
    both = [part for part in measured if part.keys() >= {"now", "before"}]
    now, before = (sum(part[side]["cpu_s"] for part in both) for side in ("now", "before"))
    rows = {side: {n: row for part in both for n, row in part[side]["rows"].items()} for side in ("now", "before")}
    caught = {side: sum(verdict != "ship" for verdict, _ in one.values()) for side, one in rows.items()}
    planted = [name for name, (_, named) in rows["now"].items() if named is not None]
    named = {side: sum(one[name][1] for name in planted) for side, one in rows.items()}
    return (
        f"## The corpus of faults through the command line\n\n{len(rows['now'])} faults of `benchmarks/faults` as the subjects of repositories of up to {TOGETHER}, "
        f"proved by `prove --all` with culprit, smallest input and reproductions, one thread each: {now:.0f} s of CPU time in all, {now / before:.2f} of the "
        f"{before:.0f} s of release 0.1.0 in the same run. Caught: {caught['now']} (before {caught['before']}); of the {len(planted)} that have a node to "
        f"name, it or one that stands for the same line is among the first three that are named: {named['now']} (before {named['before']})."
    )


def _large_row(size: str, one: dict[str, Any], kind: str) -> str:
    side = one[kind]
    named = f"named {side['named'][:1]}, planted `{side['culprit']}`" if kind == "wrong" else side["exactness"]
    return (
        f"| {size} M, {kind} | {one['file_bytes'] / 1e9:.2f} GB | {one['cases']} of {one['planned']} | {side['verdict'].upper()} | {named} | "
        f"{side['time_over_forwards']:.1f} | {side['peak_over_file']:.2f} |"
    )


if __name__ == "__main__":
    main()
