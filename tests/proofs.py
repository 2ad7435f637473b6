"""Proofs made from data, for tests of reports: every number is computed, and names are what a test wants them to be."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from onnxproof.findings import Finding, found
from onnxproof.parity.comparison import compare, measure_noise, unit_roundoff
from onnxproof.policy.judgement import judge
from onnxproof.policy.thresholds import Policy
from onnxproof.proof.blame import Blame, Culprit, Step
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison, Noise
from onnxproof.proof.proof import Proof

PROFILES = ("normal", "uniform", "zeros", "ones", "tiny", "large", "negative", "mixed")


def compared(output: str, error: float, seed: int) -> Comparison:
    """A float output whose candidate is off by so much, beside a baseline with float32's own error."""
    return replace(_compared(error, seed % 50), output=output)


@cache
def _compared(error: float, seed: int, size: int = 64) -> Comparison:
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=size)
    baseline = truth.astype(np.float32)
    candidate = (truth + generator.normal(size=size) * error).astype(np.float32)
    return replace(compare("", baseline, candidate), noise=noise(baseline, candidate, truth))


def noise(baseline: Any, candidate: Any, truth: Any) -> Noise:
    """The noise of three arrays."""
    measured = measure_noise(baseline, candidate, truth, "float64", unit_roundoff(baseline.dtype))
    assert measured is not None
    return measured


def make_case(name: str, error: float, seed: int, outputs: tuple[str, ...] = ("output",)) -> CaseResult:
    results = tuple(compared(output, error, seed + i) for i, output in enumerate(outputs))
    return CaseResult(
        name, name.split("/")[1], True, "compared", {"x": {"shape": [4, 16], "dtype": "float32"}}, results
    )


def make_proof(
    *,
    cases: int = 24,
    wrong: int = 0,
    error: float = 3e-2,
    nodes: int = 0,
    name: str = "fixture",
    input: str = "x",
    outputs: tuple[str, ...] = ("output",),
    node: str = "node_{}",
    file: str = "model.py",
    observed: tuple[Finding, ...] = (),
    policy: Policy | None = None,
    **parts: Any,
) -> Proof:
    """A proof of so many cases, the last `wrong` of which are off by `error`, with an error path of so many nodes."""
    policy = policy or Policy()
    made = tuple(
        make_case(
            f"batch={1 + i // len(PROFILES) % 12}/{PROFILES[i % len(PROFILES)]}/seed={i // 96}",
            error if i >= cases - wrong else 3e-8,
            i,
            outputs,
        )
        for i in range(cases)
    )
    blames = {made[-1].name: make_blame(nodes, node, file)} if nodes else {}
    port = {"dtype": "float32", "shape": ["batch", 16]}
    return Proof(
        subject={
            "name": name,
            "target": f"{file}:{name}",
            "class": "model.Fixture",
            "parameters": 1234,
            "inputs": {input: {"shape": [4, 16], "dtype": "float32"}},
        },
        artifact={
            "path": f"{name}.onnx",
            "exporter": "dynamo",
            "opset": 20,
            "sha256": "0" * 64,
            "bytes": 54321,
            "nodes": max(nodes, 3),
            "operators": {"Gemm": 2, "Relu": 1},
            "inputs": [{"name": input, **port}],
            "outputs": [{"name": output, **port} for output in outputs],
        },
        environment={"onnxproof": "0", "torch": "0", "onnxruntime": "0", "providers": ["CPUExecutionProvider"]},
        cases=made,
        findings=tuple(judge(observed, made, policy, blames)),
        policy=policy,
        blame=blames,
        **parts,
    )


def make_blame(nodes: int, node: str, file: str) -> Blame:
    """A path on which the node in the middle goes wrong."""
    generator = np.random.default_rng(0)
    middle = nodes // 2
    path = tuple(
        Step(
            node.format(i),
            "MatMul" if i % 3 else "Add",
            float(0.02 if i == middle else abs(generator.normal()) * 1e-8),
            float(0.0 if i <= middle else 0.02 + i * 1e-7),
            f"encoder.layers.{i // 50}",
        )
        for i in range(nodes)
    )
    culprit = Culprit(node.format(middle), "MatMul", 0.02, f"encoder.layers.{middle // 50}", file, 42, "return x @ w")
    return Blame("translate", (culprit,), path=path)


def make_latency(batches: tuple[int, ...] = (1, 8, 32)) -> dict[str, Any]:
    """Measured times as DESIGN lays them down, drawn at random."""
    generator = np.random.default_rng(0)
    runs, speedup = [], []
    for batch in batches:
        medians = {}
        for contender, scale in (("pytorch", 2.0), ("onnxruntime", 1.0)):
            times = np.sort(scale * batch**0.7 * (1 + 0.1 * generator.gamma(2, size=700)))
            medians[contender] = float(np.median(times))
            quantiles = {f"p{q}_ms": float(np.quantile(times, q / 100)) for q in (50, 90, 95, 99)}
            run = {"contender": contender, "batch": batch, "samples": (times * 1e6).round().tolist(), "load_ms": 12.0}
            runs.append(
                {**run, "first_ms": float(times[-1] * 2), **quantiles, "throughput": batch * 1e3 / medians[contender]}
            )
        ratio = medians["pytorch"] / medians["onnxruntime"]
        speedup.append({"batch": batch, "ratio": ratio, "low": ratio * 0.95, "high": ratio * 1.05})
    return {"runs": runs, "speedup": speedup}


def make_quality(n: int = 4000) -> dict[str, Any]:
    """A binary task with rare positives: both sides' counts over all thresholds, confusion, flips."""
    generator = np.random.default_rng(1)
    labels = generator.random(n) < 0.1
    scores = {"baseline": 1 / (1 + np.exp(-(generator.normal(size=n) * 1.2 - 2 + 3 * labels)))}
    scores["candidate"] = np.clip(scores["baseline"] + generator.normal(size=n) * 2e-3, 0, 1)
    decided = {side: values >= 0.5 for side, values in scores.items()}
    flipped = np.flatnonzero(decided["baseline"] != decided["candidate"])
    return {
        "task": "binary",
        "n": n,
        "baseline": {"accuracy": float((decided["baseline"] == labels).mean())},
        "candidate": {"accuracy": float((decided["candidate"] == labels).mean())},
        "confusion": {"labels": ["genuine", "fraud"], **{side: _matrix(labels, d) for side, d in decided.items()}},
        "flips": [
            {
                "id": int(i),
                "baseline": bool(decided["baseline"][i]),
                "candidate": bool(decided["candidate"][i]),
                "margin": float(abs(scores["baseline"][i] - 0.5)),
                "explained": False,
            }
            for i in flipped
        ],
        "flip_rate": {"value": len(flipped) / n, "low": 0.0, "high": 0.01},
        "thresholds": {
            **{side: curve(labels, values) for side, values in scores.items()},
            "chosen": {"threshold": 0.5},
        },
        "calibration": {side: _calibration(labels, values) for side, values in scores.items()},
    }


def _matrix(labels: Any, decided: Any) -> list[list[int]]:
    return [[int(((labels == t) & (decided == p)).sum()) for p in (False, True)] for t in (False, True)]


def curve(labels: Any, scores: Any, steps: int = 200) -> dict[str, list[float]]:
    """Counts where a score at or above the threshold is positive."""
    columns: dict[str, list[float]] = {key: [] for key in ("threshold", "tp", "fp", "fn", "tn", "precision", "recall")}
    for threshold in np.quantile(scores, np.linspace(0, 1, steps)):
        positive = scores >= threshold
        (tn, fp), (fn, tp) = _matrix(labels, positive)
        row = {"threshold": float(threshold), "tp": tp, "fp": fp, "fn": fn, "tn": tn}
        row |= {"precision": tp / max(tp + fp, 1), "recall": tp / max(tp + fn, 1)}
        for key, value in row.items():
            columns[key].append(value)
    return columns


def _calibration(labels: Any, scores: Any) -> dict[str, list[float]]:
    bins = np.minimum((scores * 10).astype(int), 9)
    used = [b for b in range(10) if (bins == b).any()]
    return {
        "confidence": [float(scores[bins == b].mean()) for b in used],
        "accuracy": [float(labels[bins == b].mean()) for b in used],
        "count": [int((bins == b).sum()) for b in used],
    }


def full_proof(**options: Any) -> Proof:
    """Everything a page can show."""
    observed = (found("OX102", "the module was handed over in train mode", severity="review"),)
    options = {
        "wrong": 3,
        "nodes": 40,
        "observed": observed,
        "latency": make_latency(),
        "quality": make_quality(),
        **options,
    }
    return make_proof(**options)
