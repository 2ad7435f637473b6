"""One file on every runtime, for models whose export is correct; writes docs/runtimes.md.

    python -m benchmarks.runtimes                 the models of the page
    python -m benchmarks.runtimes gru t5          some models of the zoo: what came is printed, nothing is written
    python -m benchmarks.runtimes regressions     the answers that a release got wrong, again

Every release of onnxruntime that the index has for this Python, Node and the browser; runtimes are installed before the clock starts.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch.nn import functional

import onnxproof
from benchmarks.regressions import measure, render, write_scripts
from benchmarks.zoo import ZOO
from onnxproof.candidates import choose_candidate, expand_runtimes
from onnxproof.findings import Finding
from onnxproof.proof.codec import decode, to_plain
from onnxproof.proof.runtimes import RuntimeResult, find_changes, group_results, name_group
from onnxproof.request.session import SessionSettings
from onnxproof.subject.onnx_module import GraphModule, make_examples

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "runtimes.md"
RUNTIMES = (
    *("onnxruntime", "onnxruntime>=1.15", "node==1.17.3", "node"),
    *("browser:nosimd==1.18.0", "browser==1.18.0", "browser", "browser:webgpu"),
)
MODELS = (
    *("residual_stack", "mobile_blocks", "unet_bilinear", "bert", "minilm_sentence_encoder", "vit", "t5"),
    *("lstm", "gru_bidirectional", "digits_cnn", "wide_and_deep", "fake_quantised", "float16_mlp"),
)
# The opset that every release reads, in the file of the exporter that writes the oldest IR version for it.
OLD = {"exporter": "torchscript", "opset": 17}
HEAD = """# Where it runs

One file on {count} runtimes: every stable release of onnxruntime that the index has for this Python (from {oldest} to {newest}), npm's onnxruntime-node
(the newest and 1.17.3), and onnxruntime-web in a headless Chromium: wasm of the newest release and of 1.18.0 with and without SIMD, and WebGPU, here on a software adapter.
The models' exports are correct, so every REVIEW or BLOCK is a false alarm, or a difference of that runtime. Files are
exported with opset 17 by the older exporter, which every release reads; the quantised one is a static QDQ quantisation of `residual_stack` by onnxruntime,
held against itself without optimisations. *Noise ratio* is the worst over all runtimes, *seconds* the whole command's work with everything installed: export, one truth, and every
runtime. Two refusals are those of the runtime: onnxruntime-node 1.17.3 has no float16 tensors, and the software adapter no float16 arithmetic. `make runtimes` writes this page;
the machine is a shared one with two cores, busy with other work while this was measured.

| model | cases | ships on | otherwise | noise ratio | p50 in ms: releases | Node | browser | WebGPU | seconds |
|---|---|---|---|---|---|---|---|---|---|"""
BICUBIC: dict[str, Any] = {"mode": "bicubic", "padding_mode": "border", "align_corners": True}
# Operators that some release answered otherwise than others, found by asking every operator's usual forms, and shapes of their input.
PARTING: dict[str, tuple[Any, tuple[int, ...]]] = {
    "remainder": (lambda x: torch.remainder(x, 0.7), (4, 6)),
    "maximum": (lambda x: torch.maximum(x, x.flip(0)), (4, 6)),
    "minimum": (lambda x: torch.minimum(x, x.flip(0)), (4, 6)),
    "erf": (torch.erf, (4, 6)),
    "log": (torch.log, (4, 6)),
    "prelu": (lambda x: functional.prelu(x, torch.tensor([0.25])), (4, 6)),
    "floor": (torch.floor, (4, 6)),
    "grid_sample_bicubic": (
        lambda x: functional.grid_sample(x, x[:, :2].permute(0, 2, 3, 1).tanh(), **BICUBIC),
        (2, 3, 8, 8),
    ),
    "avg_pool_ceil": (lambda x: functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (2, 3, 8, 8)),
}
PARTED = """## Where releases part

Single operators, exported as above and compared on NaN and infinite inputs too (`--nonfinite`), with the node that `locate` names.
What BLOCKs there is another answer than PyTorch's; most were mended by the later release, one came with it:"""
REGRESSED = """## Where a release got worse: {count} nodes

An answer that was right in one release and is wrong in the next. Found by asking several thousand files of 17 releases, with optimisations and without: onnx's own tests
of its operators in several opsets, torch's samples of its operators, layers and fused patterns, on ordinary, large, tied, NaN, infinite and denormal
values and empty dimensions; then made as small as it gets and asked of every release. Nodes that went wrong in the same release often have one cause. Not listed:
`MatMul` over an empty dimension, whose answer in some releases is whatever the memory held, and `TopK` with a scalar for k (as TorchScript exports
`torch.sort`), which loads until 1.23 and no more. A script says by its exit code whether the onnxruntime that is installed is right."""
DEFAULT = """## The default export

`torch.onnx`'s newer exporter writes IR version 10, whatever the opset, which onnxruntime reads from 1.18 on:

| model | ships on | otherwise |
|---|---|---|"""


def prove(name: str, out: Path, **options: Any) -> tuple[onnxproof.Proof, float]:
    """A model on every runtime, and how long that took."""
    began = time.perf_counter()
    if name == "quantised":
        path = quantise(out)
        model, inputs, chosen = GraphModule(str(path)), make_examples(str(path)), {"onnx": path}
    elif name in PARTING:
        model, inputs, chosen = make_operator(name), (torch.randn(PARTING[name][1]),), options
    else:
        (model, inputs), chosen = ZOO[name].make(), {**ZOO[name].options, **options}
    proof = onnxproof.runtimes(model, inputs, runtime=RUNTIMES, out=out, **{"fast": True, **chosen})
    return proof, time.perf_counter() - began


def make_operator(name: str) -> torch.nn.Module:
    """One operator as a module."""

    class Operator(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return PARTING[name][0](x)

    return Operator().eval()


def quantise(out: Path) -> Path:
    """A convolutional model in integers, calibrated on random inputs."""
    from onnxruntime.quantization import CalibrationDataReader, quantize_static

    model, inputs = ZOO["residual_stack"].make()
    made = onnxproof.export(model, inputs, out=out, **OLD).artifact
    assert made is not None

    class Random(CalibrationDataReader):
        rows = iter(range(8))

        def get_next(self) -> dict[str, np.ndarray] | None:
            ports = {port.name: tensor for port, tensor in zip(made.inputs, inputs, strict=True)}
            return None if next(self.rows, None) is None else {n: torch.randn_like(t).numpy() for n, t in ports.items()}

    path = out / "quantised.onnx"
    quantize_static(made.path, path, Random())
    return path


def record(name: str, **options: Any) -> dict[str, Any]:
    """What came of a model, as plain data."""
    with tempfile.TemporaryDirectory() as folder:
        proof, seconds = prove(name, Path(folder), **options)
    print(
        f"{name}: {proof.verdict} in {seconds:.0f} s; {tell_groups(proof.runtimes, ship=False) or 'ships everywhere'}",
        flush=True,
    )
    return {"model": name, "cases": proof.compared, "seconds": seconds, "runtimes": [slim(r) for r in proof.runtimes]}


def slim(result: RuntimeResult) -> dict[str, Any]:
    """A result without the evidence of its findings: numbers that are kept in a repository are few."""
    bare = tuple(
        Finding(code=f.code, severity=f.severity, message=f.message, where=f.where) for f in result.findings[:1]
    )
    return to_plain(replace(result, findings=bare))


def tell_groups(results: Any, *, ship: bool) -> str:
    """The runtimes on which the file ships, or does not and why."""
    groups = [group for group in group_results(results) if (group[0].verdict == "ship") == ship]
    reasons = ["" if ship else f": {group[0].verdict.upper()} {group[0].findings[0].code}" for group in groups]
    return "; ".join(name_group(group) + reason for group, reason in zip(groups, reasons, strict=True))


def span(values: list[float]) -> str:
    """The least and the largest of some numbers."""
    return "–".join(dict.fromkeys(f"{value:.2g}" for value in (min(values), max(values)))) if values else "–"


def read_result(plain: Any) -> RuntimeResult:
    """What `slim` wrote."""
    return decode(plain, RuntimeResult)


def write_page(
    old: list[dict[str, Any]],
    new: list[dict[str, Any]],
    parted: list[dict[str, Any]],
    regressions: list[dict[str, Any]],
) -> None:
    """The page from the numbers."""
    read = {id(one): list(map(read_result, one["runtimes"])) for one in (*old, *new)}
    versions = sorted(r.release for r in read[id(old[0])] if r.release is not None)
    ends = {"oldest": ".".join(map(str, versions[0])), "newest": ".".join(map(str, versions[-1]))}
    lines = [HEAD.format(count=len(read[id(old[0])]), **ends)]
    for one in old:
        results = read[id(one)]
        times = [span([r.p50_ms for r in results if r.p50_ms is not None and fits(r)]) for fits in KINDS]
        worst = max((r.worst_noise_ratio for r in results if r.worst_noise_ratio is not None), default=float("nan"))
        cells = [
            one["model"],
            one["cases"],
            tell_groups(results, ship=True),
            tell_groups(results, ship=False) or "–",
            f"{worst:.2g}",
        ]
        lines.append("| " + " | ".join(map(str, [*cells, *times, f"{one['seconds']:.0f}"])) + " |")
    lines += ["", DEFAULT]
    for one in new:
        cells = [one["model"], tell_groups(read[id(one)], ship=True), tell_groups(read[id(one)], ship=False) or "–"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", PARTED, "", *(tell_changes(one["model"], list(map(read_result, one["runtimes"]))) for one in parted)]
    lines += ["", REGRESSED.format(count=len(regressions)), "", *render(regressions)]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


KINDS = (
    lambda result: result.release is not None,
    lambda result: result.runtime == "node",
    lambda result: result.runtime == "browser",
    lambda result: result.runtime == "browser:webgpu",
)


def tell_changes(model: str, results: list[RuntimeResult]) -> str:
    """Each pair of neighbours with different verdicts, and what is wrong on the worse side."""
    parts = []
    for before, after in find_changes(results):
        worse = (after.findings or before.findings)[0]
        ends = f"{before.version} {before.verdict.upper()} → {after.version} {after.verdict.upper()}"
        parts.append(f"{ends} ({worse.code}, {worse.where.node or 'no node'}: {worse.message})")
    return f"- `{model}`: " + ("; ".join(parts) or "no change")


def main(names: list[str]) -> None:
    """Measure, and write."""
    for runtime in expand_runtimes(RUNTIMES)[1:]:
        choose_candidate(SessionSettings(runtime=runtime)).install()
    print(f"onnxruntime {onnxruntime.__version__}, torch {torch.__version__}", flush=True)
    record_file = PAGE.with_suffix(".json")
    if names == ["regressions"]:
        measured = {**json.loads(record_file.read_text(encoding="utf-8")), "regressions": measure()}
    elif names:
        for name in names:
            record(name, **OLD)
        return
    else:
        measured = {
            "old": [record(name, **OLD) for name in (*MODELS, "quantised")],
            "new": [record(name) for name in MODELS[:4]],
            "parted": [record(name, **OLD, nonfinite=True, fast=False, budget=10.0) for name in PARTING],
            "regressions": measure(),
        }
    record_file.write_text(json.dumps(measured) + "\n", encoding="utf-8")
    write_scripts(measured["regressions"])
    write_page(**measured)


if __name__ == "__main__":
    main(sys.argv[1:])
