"""Proofs made from data, for tests of reports: every number is computed, and names are what a test wants them to be."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from onnxproof.findings import Finding, found
from onnxproof.parity.comparison import compare, find_roundoff, measure_noise
from onnxproof.policy.judgement import judge_proof
from onnxproof.proof.artifact import Artifact, Port
from onnxproof.proof.blame import Blame, Culprit, Step
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison, Noise
from onnxproof.proof.environment import Environment
from onnxproof.proof.latency import Bound, Latency, Run, Speedup
from onnxproof.proof.quality import Bin, Confusion, Flip, Quality, Rate
from onnxproof.proof.subject import SubjectFacts, TensorFacts
from onnxproof.proof.thresholds import Chosen, Current, Curve, Rates, Thresholds
from onnxproof.proved import Proof
from onnxproof.request.thresholds import Policy

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
    measured = measure_noise(baseline, candidate, truth, "float64", find_roundoff(baseline.dtype))
    assert measured is not None
    return measured


def make_case(name: str, error: float, seed: int, outputs: tuple[str, ...] = ("output",)) -> CaseResult:
    results = tuple(compared(output, error, seed + i) for i, output in enumerate(outputs))
    sizes, profile, _ = name.split("/")
    inputs = {"x": TensorFacts((4, 16), "float32")}
    return CaseResult(
        name, profile, True, "compared", inputs, results, sizes={"batch": int(sizes.removeprefix("batch="))}
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
    form = ("float32", ("batch", 16))
    subject = SubjectFacts(
        name=name,
        target=f"{file}:{name}",
        class_="model.Fixture",
        parameters=1234,
        inputs={input: TensorFacts((4, 16), "float32")},
    )
    facts = Proof(
        subject=subject,
        artifact=Artifact(
            path=f"{name}.onnx",
            exporter="dynamo",
            opset=20,
            sha256="0" * 64,
            bytes=54321,
            nodes=max(nodes, 3),
            operators={"Gemm": 2, "Relu": 1},
            inputs=(Port(input, *form),),
            outputs=tuple(Port(output, *form) for output in outputs),
        ),
        environment=Environment("0", torch="0", onnxruntime="0", providers=("CPUExecutionProvider",)),
        cases=made,
        findings=observed,
        blame=blames,
    )
    return replace(judge_proof(facts, policy), **parts)


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


def make_latency(batches: tuple[int, ...] = (1, 8, 32)) -> Latency:
    """Measured times, drawn at random."""
    generator = np.random.default_rng(0)
    runs, speedup = [], []
    for batch in batches:
        medians = {}
        for contender, scale in (("pytorch", 2.0), ("onnxruntime", 1.0)):
            times = np.sort(scale * batch**0.7 * (1 + 0.1 * generator.gamma(2, size=700)))
            medians[contender] = float(np.median(times))
            quantiles = {f"p{q}": float(np.quantile(times, q / 100)) for q in (50, 90, 95, 99)}
            runs.append(
                Run(
                    contender,
                    batch,
                    samples=tuple((times * 1e6).round().astype(int).tolist()),
                    count=700,
                    percentiles={name: Bound(value, value, value) for name, value in quantiles.items()},
                    load_ms=12.0,
                    first_ms=float(times[-1] * 2),
                    throughput=batch * 1e3 / medians[contender],
                )
            )
        ratio = medians["pytorch"] / medians["onnxruntime"]
        speedup.append(Speedup(batch, "onnxruntime", ratio, ratio * 0.95, ratio * 1.05))
    return Latency(tuple(runs), tuple(speedup))


def make_quality(n: int = 4000) -> Quality:
    """A binary task with rare positives: both sides' counts over all thresholds, confusion, flips."""
    generator = np.random.default_rng(1)
    labels = generator.random(n) < 0.1
    scores = {"baseline": 1 / (1 + np.exp(-(generator.normal(size=n) * 1.2 - 2 + 3 * labels)))}
    scores["candidate"] = np.clip(scores["baseline"] + generator.normal(size=n) * 2e-3, 0, 1)
    decided = {side: values >= 0.5 for side, values in scores.items()}
    flipped = np.flatnonzero(decided["baseline"] != decided["candidate"])
    matrices = {side: _matrix(labels, d) for side, d in decided.items()}
    return Quality(
        task="binary",
        n=n,
        baseline={"accuracy": float((decided["baseline"] == labels).mean())},
        candidate={"accuracy": float((decided["candidate"] == labels).mean())},
        confusion=Confusion(("genuine", "fraud"), **matrices),
        flips=tuple(
            Flip(
                int(i),
                int(i),
                str(labels[i]),
                str(decided["baseline"][i]),
                str(decided["candidate"][i]),
                margin=float(abs(scores["baseline"][i] - 0.5)),
                explained=False,
            )
            for i in flipped
        ),
        flip_count=len(flipped),
        flip_rate=Rate(len(flipped) / n, 0.0, 0.01),
        thresholds=Thresholds(
            "probability",
            Current(0.5, 0.5, *(_rates(matrices[side]) for side in ("baseline", "candidate"))),
            **{side: curve(labels, values) for side, values in scores.items()},
            goals=(),
            chosen=Chosen(0.5),
        ),
        calibration={side: _calibration(labels, values) for side, values in scores.items()},
    )


def _rates(matrix: Any) -> Rates:
    (tn, fp), (fn, tp) = matrix
    recall, precision = tp / (tp + fn), tp / (tp + fp)
    f1 = 2 * tp / (2 * tp + fp + fn)
    return Rates(tp, fp, fn, tn, recall, precision, tn / (tn + fp), f1, (tp + tn) / (tp + fp + fn + tn))


def _matrix(labels: Any, decided: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(((labels == t) & (decided == p)).sum()) for p in (False, True)) for t in (False, True))


def curve(labels: Any, scores: Any, steps: int = 200) -> Curve:
    """Counts where a score at or above the threshold is positive."""
    columns: dict[str, list[float]] = {key: [] for key in ("threshold", "tp", "fp", "fn", "tn", "precision", "recall")}
    for threshold in np.quantile(scores, np.linspace(0, 1, steps)):
        positive = scores >= threshold
        (tn, fp), (fn, tp) = _matrix(labels, positive)
        row = {"threshold": float(threshold), "tp": tp, "fp": fp, "fn": fn, "tn": tn}
        row |= {"precision": tp / max(tp + fp, 1), "recall": tp / max(tp + fn, 1)}
        for key, value in row.items():
            columns[key].append(value)
    return Curve(**{key: tuple(values) for key, values in columns.items()})


def _calibration(labels: Any, scores: Any) -> tuple[Bin, ...]:
    bins = np.minimum((scores * 10).astype(int), 9)
    used = [b for b in range(10) if (bins == b).any()]
    return tuple(
        Bin(int((bins == b).sum()), float(scores[bins == b].mean()), float(labels[bins == b].mean())) for b in used
    )


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
