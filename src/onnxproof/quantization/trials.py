"""One model in several precisions, each made, proved from scratch and timed; the best is named.

The rows that calibrate are never the rows that judge.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path

from onnxproof.data.parts import SEED
from onnxproof.errors import OnnxproofError, UserError
from onnxproof.pipeline.collected import Progress
from onnxproof.pipeline.conduct import conduct
from onnxproof.policy.judgement import judge_proof
from onnxproof.policy.precision import count_changed
from onnxproof.policy.quality import measure_drop
from onnxproof.proof.proof import Proof
from onnxproof.proof.quantization import Bounded, KeptInFloat, Quantized
from onnxproof.quantization.floats import Nodes, find_kept
from onnxproof.request.lowering import KINDS, Lowering, QuantizeSettings
from onnxproof.request.request import Request
from onnxproof.request.thresholds import Policy

# The goal that needs no labels: the share of decisions that are others.
CHANGED = "changed"
VERDICTS = ("ship", "review", "block")
# Metrics whose loss is shown where no goal names others.
LEADING = ("accuracy", "hamming_accuracy", "mae", "rmse")


def quantize(request: Request, policy: Policy, *, progress: Progress | None = None) -> Proof:
    """The proof of the best file, with what was tried; of the float file, where there is nothing to make it of."""
    settings = request.quantize
    assert settings is not None  # the verb has it
    check_data(request, settings)
    plain = conduct(_export_only(request), policy, progress=progress)
    if plain.artifact is None:
        return plain
    trials = [_try(request, policy, plain, Lowering(kind), progress) for kind in KINDS[settings.to]]
    proofs = {one.name: proof for one, proof in trials if proof is not None}
    if not proofs:
        reasons = "; ".join(f"{one.name}: {one.reason}" for one, _ in trials)
        raise UserError(f"no file in a lower precision could be made: {reasons}")
    candidates = [one for one, _ in trials]
    name, search = _choose(candidates, settings.keep_within).name, None
    if settings.keep_within and not _meets(next(o for o in candidates if o.name == name), settings.keep_within):
        candidate, proof, search = _keep_floats(request, policy, plain, candidates, proofs, progress)
        if proof is not None:
            candidates, proofs, name = [*candidates, candidate], {**proofs, candidate.name: proof}, candidate.name
    return _settle(request, candidates, proofs[name], name, search)


def check_data(request: Request, settings: QuantizeSettings) -> None:
    """Refuse what cannot be done, before the work."""
    labels = request.verify.labels
    if settings.to == "int8-static" and request.verify.data is None:
        raise UserError("--to int8-static takes its ranges from data: give --data with rows such as production sees")
    if settings.keep_within and request.verify.data is None:
        raise UserError(
            "--keep-within is judged on data: give --data with rows such as production sees, with labels for a metric"
        )
    if request.verify.data is not None and labels is not None and Path(labels).is_file():
        raise UserError(
            f"--labels {labels} is a file: quantize splits the rows of --data, so the labels must be a field of it"
        )


def _export_only(request: Request) -> Request:
    return replace(request, steps=replace(request.steps, cases=False), evaluate=None, quantize=None)


def _try(
    request: Request,
    policy: Policy,
    plain: Proof,
    how: Lowering,
    progress: Progress | None,
    *,
    name: str | None = None,
    cases: bool = True,
) -> tuple[Quantized, Proof | None]:
    """One file, made and proved; without one, why."""
    settings, name = request.quantize, name or how.kind
    assert settings is not None  # the caller has both
    assert plain.artifact is not None
    if progress is not None:
        progress.stage(f"quantize: {name}")
    asked = replace(
        request,
        onnx=plain.artifact.path,
        out=str(Path(request.out) / "quantize" / name.replace(" ", "-")),
        quantize=replace(settings, making=how),
        verify=replace(request.verify, part="judging"),
        evaluate=replace(request.evaluate, part="judging") if request.evaluate is not None else None,
        steps=replace(request.steps, cases=cases, fast=True),
    )
    try:
        proof = conduct(asked, policy, progress=progress)
    except OnnxproofError as error:
        return Quantized(name, how, reason=str(error).splitlines()[0][:300].removeprefix(f"{how.kind}: ")), None
    if proof.quantization is None:
        return Quantized(name, how, reason=proof.findings[0].message[:300] if proof.findings else "it died"), None
    proof = judge_proof(proof, _bind(policy, settings.keep_within, proof))
    return _describe(name, proof, settings.keep_within), proof


def _bind(policy: Policy, goals: Mapping[str, float], proof: Proof) -> Policy:
    """The policy with the goals as promises."""
    metrics = {name: limit for name, limit in goals.items() if name != CHANGED}
    if metrics and proof.quality is None:
        raise UserError(
            f"--keep-within {next(iter(metrics))} needs labels in --data; without them, give --keep-within changed=0.01"
        )
    unknown = [name for name in metrics if proof.quality is not None and proof.quality.value(name) is None]
    if unknown and proof.quality is not None:
        raise UserError(
            f"--keep-within {unknown[0]}: no such metric was measured; there are {', '.join(proof.quality.candidate)}"
        )
    quality = replace(policy.quality, max_drop={**policy.quality.max_drop, **metrics})
    if CHANGED in goals:
        quality = replace(quality, max_changed=goals[CHANGED])
    return replace(policy, quality=quality)


def _describe(name: str, proof: Proof, goals: Mapping[str, float]) -> Quantized:
    """What came of a file."""
    assert proof.quantization is not None  # it was made
    quality, counted = proof.quality, count_changed(proof)
    shown = [goal for goal in goals if goal != CHANGED] or [
        m for m in LEADING if quality is not None and quality.value(m) is not None
    ][:1]
    drops = {
        metric: drop for metric in shown if quality is not None and (drop := measure_drop(quality, metric)) is not None
    }
    gating = [finding for finding in proof.findings if finding.weight]
    return replace(
        proof.quantization.candidates[0],
        name=name,
        drops={metric: Bounded(*drop) for metric, drop in drops.items()},
        changed=None if counted is None else Bounded(*counted),
        verdict=proof.verdict,
        reason=f"{gating[0].code}: {gating[0].message[:300]}" if gating else None,
    )


def _losses(one: Quantized) -> dict[str, float]:
    """Goal → what the file loses of it, as measured."""
    changed = {CHANGED: one.changed.value} if one.changed is not None else {}
    return {metric: drop.value for metric, drop in one.drops.items()} | changed


def _meets(one: Quantized, goals: Mapping[str, float]) -> bool:
    """Whether every goal is met."""
    losses = _losses(one)
    return one.verdict is not None and all(losses.get(goal, inf) <= limit for goal, limit in goals.items())


def _choose(candidates: list[Quantized], goals: Mapping[str, float]) -> Quantized:
    """The goal, then the verdict, then the time, then the size."""
    made = [one for one in candidates if one.verdict is not None]

    def stand(one: Quantized) -> tuple[bool, int]:
        return not _meets(one, goals), VERDICTS.index(one.verdict or "block")

    best = [one for one in made if stand(one) == min(map(stand, made))]
    fastest = min(best, key=_time)
    reach = fastest.time.high if fastest.time is not None else _time(fastest)
    # As far as its interval reaches, others are as fast.
    return min((one for one in best if _time(one) <= reach), key=lambda one: one.bytes or 0)


def _time(one: Quantized) -> float:
    return one.time.value if one.time is not None else 1.0


def _keep_floats(
    request: Request,
    policy: Policy,
    plain: Proof,
    candidates: list[Quantized],
    proofs: Mapping[str, Proof],
    progress: Progress | None,
) -> tuple[Quantized, Proof | None, KeptInFloat]:
    """The file that came nearest, with as few nodes in float as meet the goal."""
    assert request.quantize is not None  # the verb has it
    goals = request.quantize.keep_within
    ranked = [one for one in candidates if one.name in proofs and _ranking(proofs[one.name])]
    base = min(ranked or candidates, key=lambda one: _excess(one, goals))
    order = _ranking(proofs[base.name]) if base.name in proofs else ()

    def make(nodes: Nodes) -> Lowering:
        return replace(base.settings, kept=(*base.settings.kept, *nodes))

    def holds(nodes: Nodes) -> bool:
        one, _ = _try(request, policy, plain, make(nodes), progress, name=f"{base.settings.kind} trial", cases=False)
        return _meets(one, goals)

    kept = find_kept(order, holds)
    search = KeptInFloat(goals, kept.nodes or (), kept.evaluations, kept.minimal, len(order))
    if kept.nodes is None:
        return base, None, search
    name = f"{base.settings.kind}, {len(kept.nodes)} in float"
    candidate, proof = _try(request, policy, plain, make(kept.nodes), progress, name=name)
    return candidate, proof, search


def _ranking(proof: Proof) -> Nodes:
    """Nodes of the float file, the worst first."""
    return (
        tuple(dict.fromkeys(cost.node for cost in proof.quantization.ranking)) if proof.quantization is not None else ()
    )


def _excess(one: Quantized, goals: Mapping[str, float]) -> float:
    """How far it is from the goals, in units of them."""
    losses = _losses(one)
    return max((losses.get(goal, inf) / max(limit, 1e-9) for goal, limit in goals.items()), default=0.0)


def _settle(
    request: Request, candidates: list[Quantized], proof: Proof, name: str, search: KeptInFloat | None
) -> Proof:
    """The winner's proof, its file where the user looks for it, and the record of all."""
    made, record = proof.artifact, proof.quantization
    assert made is not None  # it won
    assert record is not None
    place = Path(request.out) / Path(made.path).name
    for old in Path(made.path).parent.glob(f"{Path(made.path).name}*"):
        shutil.copy2(old, place.with_name(old.name))
    kept = [replace(one, path=str(place)) if one.name == name else one for one in candidates]
    record = replace(record, candidates=tuple(kept), winner=name, search=search, seed=SEED)
    return replace(proof, artifact=replace(made, path=str(place)), quantization=record)
