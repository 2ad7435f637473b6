"""Healing: other export and session settings, each verified from scratch, until one passes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from timeit import timeit
from typing import Any

from onnxproof.candidates import choose_candidate
from onnxproof.candidates.candidate import open_timed
from onnxproof.diagnosis.forms import suggest_line
from onnxproof.errors import OnnxproofError, first_line
from onnxproof.files import replacing
from onnxproof.findings import Finding, found
from onnxproof.heal.remedies import Remedy, list_options, list_remedies
from onnxproof.pipeline.collected import Progress
from onnxproof.pipeline.conduct import conduct
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.codec import to_plain
from onnxproof.proof.healing import Cost, Healing, Tried
from onnxproof.proof.proof import Proof
from onnxproof.request.request import Request
from onnxproof.request.thresholds import Policy

# Calls of each session that are timed.
ROUNDS = 60


def heal(request: Request, proof: Proof, policy: Policy, *, progress: Progress | None = None) -> Proof:
    """The proof of the first setting that passes; the given one, with what was tried, where none does."""
    if not _list_faults(proof):
        return proof
    tried: list[Tried] = []
    for remedy in list_remedies(request, proof, choose_candidate(request.verify.session)):
        if progress is not None:
            progress.stage(f"heal: {remedy.what}")
        out = Path(request.out) / "heal" / remedy.name
        try:
            attempt = conduct(replace(remedy.apply(request), out=str(out)), policy, progress=progress)
        except OnnxproofError as error:
            tried.append(Tried(remedy.what, False, first_line(error, 200)))
            continue
        reason = _tell_remaining(proof, attempt)
        tried.append(Tried(remedy.what, reason is None, reason or "passes"))
        if reason is None:
            return _conclude_healed(request, proof, attempt, remedy, tried)
    return _conclude_unhealed(proof, tried)


def _list_faults(proof: Proof) -> list[Finding]:
    """What gates and may be otherwise under other settings, the gravest first."""
    return [finding for finding in proof.findings if finding.weight and finding.entry.family.adjustable]


def _tell_remaining(before: Proof, after: Proof) -> str | None:
    """What still gates: anything that settings decide, and whatever was not there before."""
    known = {f.code for f in before.findings if f.weight and not f.entry.family.adjustable}
    left = [finding for finding in after.findings if finding.weight and finding.code not in known]
    return f"{left[0].code}: {left[0].message[:200]}" if left else None


def _conclude_healed(request: Request, before: Proof, after: Proof, remedy: Remedy, tried: Sequence[Tried]) -> Proof:
    """The proof of what passes; its artifact takes the place of the faulty one."""
    cost = _measure_cost(before, after, request, remedy.apply(request))
    artifact = after.artifact
    if request.onnx is None and artifact is not None:
        artifact = _put_in_place(Path(request.out), artifact)
    wrong = _list_faults(before)[0]
    record = remedy.record(Healing(True, tuple(tried), before=wrong, cost=cost))
    ratios = {"latency": cost.latency_ratio, "size": cost.size_ratio}
    parts = [f"{ratio:.2f} times the {what}" for what, ratio in ratios.items() if ratio is not None]
    priced = f" ({', '.join(parts)})" if parts else ""
    message = f"healed by {remedy.what}{priced}; before: {wrong.message}"
    note = found("OX008", message, evidence=to_plain(record), help=remedy.recipe())
    return replace(after, artifact=artifact, findings=(*after.findings, note), healing=record)


def _conclude_unhealed(proof: Proof, tried: Sequence[Tried]) -> Proof:
    worst = _list_faults(proof)[0]
    place = f" at {worst.where.file}:{worst.where.line}" if worst.where.file else ""
    culprits = worst.evidence.get("culprits") or [{}]
    advice = suggest_line(str(culprits[0].get("text") or ""), worst.code)
    instead = f" ({advice})" if advice else ""
    message = f"none of {len(tried)} settings heals it: the model has to change{place}{instead}"
    record = Healing(False, tuple(tried))
    note = found("OX009", message, where=worst.where, stage=worst.stage, evidence=to_plain(record))
    return replace(proof, findings=(*(f.without_offer() for f in proof.findings), note), healing=record)


def _put_in_place(out: Path, artifact: Artifact) -> Artifact:
    """Move the healed files to where the artifact is expected, and the faulty ones aside."""
    source, aside = Path(artifact.path), out / "heal" / "before"
    aside.mkdir(parents=True, exist_ok=True)
    for old in out.glob("model.*"):
        shutil.move(old, aside / old.name)
    for new in source.parent.glob("model.*"):
        with replacing(out / new.name) as half:
            shutil.copy2(new, half)
    side = str(out / Path(artifact.sourcemap).name) if artifact.sourcemap else None
    return replace(artifact, path=str(out / source.name), sourcemap=side)


def list_settings(proof: Proof, request: Request) -> dict[str, Any]:
    """The options with which a run worked, where they are not the ones it was asked for."""
    made, export = proof.artifact, request.export
    changes: dict[str, Any] = {}
    if made is not None:
        torchscript = made.exporter == "torchscript" and export.exporter == "auto"
        changes |= {"exporter": "torchscript"} if torchscript else {}
        changes |= {"no_optimize": True} if made.optimized is False and export.optimize else {}
        changes |= {"strict": True} if made.strict and not export.strict else {}
    changes |= list_options(proof.healing or Healing(False))
    if "range" in changes:  # sizes join the ranges that were given
        given = [f"{name}:{ends.low:g},{ends.high:g}" for name, ends in request.ranges.items()]
        changes["range"] = [*given, *changes["range"]]
    return changes


def _measure_cost(before: Proof, after: Proof, old: Request, new: Request) -> Cost:
    """Latency and size of the healed artifact and session against those before, where there was a session before."""
    old_size, new_size = (proof.artifact.bytes if proof.artifact is not None else 0 for proof in (before, after))
    size = new_size / old_size if old_size else None
    try:
        calls = _prepare_call(before, old), _prepare_call(after, new)
        # Taken in turns, so that drift hits both alike.
        times = [[timeit(call, number=1) for call in calls] for _ in range(ROUNDS)]
        first, second = map(median, zip(*times, strict=True))
        return Cost(size, second / first)
    except Exception:
        return Cost(size)  # one of them has no session, takes other inputs or cannot be timed


def _prepare_call(proof: Proof, request: Request) -> Callable[[], Any]:
    """One run of a session on ones of the example's shapes, which every model accepts."""
    import numpy as np

    assert proof.artifact is not None  # else there is no session to time: the caller goes on without
    settings, path = request.verify.session, Path(proof.artifact.path)
    feed = {name: np.ones(facts.shape, facts.dtype) for name, facts in proof.subject.inputs.items()}
    call = open_timed(choose_candidate(settings), path, settings, {}).prepare(feed).run
    call()
    return call
