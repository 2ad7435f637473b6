"""One model in several precisions, each made, proved from scratch and timed; the best is named.

The rows that calibrate are never the rows that judge.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from onnxproof.data.parts import SEED
from onnxproof.errors import OnnxproofError, UserError, list_names
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
# Metrics whose loss is shown where no goal names others: the first that there is.
LEADING = ("accuracy", "hamming_accuracy", "mae", "rmse")
ROWS = "give --data with rows such as production sees"


@dataclass(frozen=True)
class Trial:
    """A file in a lower precision and its proof; None where there is no file."""

    made: Quantized
    proof: Proof | None = None

    @property
    def losses(self) -> dict[str, float]:
        """Goal → what the file loses of it, as measured."""
        changed = {CHANGED: self.made.changed.value} if self.made.changed is not None else {}
        return {metric: drop.value for metric, drop in self.made.drops.items()} | changed

    @property
    def order(self) -> Nodes:
        """Nodes of the float file, the worst first."""
        record = self.proof.quantization if self.proof is not None else None
        return tuple(dict.fromkeys(cost.node for cost in record.ranking)) if record is not None else ()

    @property
    def time(self) -> float:
        """Against the float file's."""
        return self.made.time.value if self.made.time is not None else 1.0

    def excess(self, goals: Mapping[str, float]) -> float:
        """How far it is beyond the goals, in units of them: met at 1 and below."""
        losses = self.losses
        ratios = [
            losses.get(goal, inf) / limit if limit else 1 + losses.get(goal, inf) for goal, limit in goals.items()
        ]
        return max(ratios, default=0.0)

    def stand(self, goals: Mapping[str, float]) -> tuple[bool, int]:
        """The goal, then the verdict; less is better."""
        return self.excess(goals) > 1, VERDICTS.index(self.made.verdict or "block")


def quantize(request: Request, policy: Policy, *, progress: Progress | None = None) -> Proof:
    """The proof of the best file, with what was tried; of the export, where that fails."""
    settings = request.quantize
    assert settings is not None  # the verb has it
    check_data(request, settings)
    export_only = replace(request, steps=replace(request.steps, cases=False), evaluate=None, quantize=None)
    plain = conduct(export_only, policy, progress=progress)
    if plain.artifact is None:
        return plain
    trials = _Trials(request, settings, policy, plain.artifact.path, progress)
    tried = [trials.run(Lowering(kind)) for kind in KINDS[settings.to]]
    if not any(one.proof for one in tried):
        reasons = dict.fromkeys(str(one.made.reason) for one in tried)
        raise UserError(f"no file in a lower precision could be made: {'; '.join(reasons)}")
    best, search = choose(tried, settings.keep_within), None
    if best.excess(settings.keep_within) > 1:
        mended, search = trials.keep_floats(tried)
        tried, best = ([*tried, mended], mended) if mended is not None else (tried, best)
    return _settle(request, tried, best, search)


def check_data(request: Request, settings: QuantizeSettings) -> None:
    """Refuse what cannot be done, before the work."""
    data, labels = request.verify.data, request.verify.labels
    if data is None and settings.to == "int8-static":
        raise UserError(f"--to int8-static takes its ranges from data: {ROWS}")
    if data is None and settings.keep_within:
        raise UserError(f"--keep-within is judged on data: {ROWS}, with labels for a metric")
    if data is not None and labels is not None and Path(labels).is_file():
        raise UserError(
            f"--labels {labels} is a file: the rows of --data are split, so the labels must be a field of it"
        )


def choose(tried: Sequence[Trial], goals: Mapping[str, float]) -> Trial:
    """The best stand, then the fastest; as far as its interval reaches, others are as fast, and the smallest is best."""
    made = [one for one in tried if one.proof is not None]
    best = [one for one in made if one.stand(goals) == min(other.stand(goals) for other in made)]
    fastest = min(best, key=lambda one: one.time)
    reach = fastest.made.time.high if fastest.made.time is not None else fastest.time
    return min((one for one in best if one.time <= reach), key=lambda one: one.made.bytes or 0)


@dataclass(frozen=True)
class _Trials:
    """Makes and proves files of one float file."""

    request: Request
    settings: QuantizeSettings
    policy: Policy
    source: str
    progress: Progress | None

    def run(self, how: Lowering, name: str | None = None, *, cases: bool = True) -> Trial:
        """One file, made and proved."""
        request, name = self.request, name or how.kind
        asked = replace(
            request,
            onnx=self.source,
            out=str(Path(request.out) / "quantize" / name.replace(" ", "-")),
            quantize=replace(self.settings, making=how),
            verify=replace(request.verify, part="judging"),
            evaluate=replace(request.evaluate, part="judging") if request.evaluate is not None else None,
            steps=replace(request.steps, cases=cases, fast=True),
        )
        try:
            proof = conduct(asked, self.policy, progress=self.progress)
        except OnnxproofError as error:
            return Trial(Quantized(name, how, reason=str(error).splitlines()[0][:300].removeprefix(f"{how.kind}: ")))
        if proof.quantization is None:
            return Trial(Quantized(name, how, reason=proof.findings[0].message[:300] if proof.findings else "it died"))
        proof = judge_proof(proof, self._bind(proof))
        return Trial(self._describe(name, proof), proof)

    def keep_floats(self, tried: Sequence[Trial]) -> tuple[Trial | None, KeptInFloat]:
        """The file that came nearest to the goals, with as few nodes in float as meet them."""
        goals = self.settings.keep_within
        base = min(tried, key=lambda one: (not one.order, one.excess(goals)))
        how, kind = base.made.settings, base.made.settings.kind

        def lower(nodes: Nodes) -> Lowering:
            return replace(how, kept=(*how.kept, *nodes))

        def holds(nodes: Nodes) -> bool:
            # Without labels the cases on the data are what judges.
            trial = self.run(lower(nodes), f"{kind} trial", cases=base.proof is None or base.proof.quality is None)
            return trial.excess(goals) <= 1

        kept = find_kept(base.order, holds)
        search = KeptInFloat(goals, kept.nodes or (), kept.evaluations, kept.minimal, len(base.order))
        if kept.nodes is None:
            return None, search
        trial = self.run(lower(kept.nodes), f"{kind}, {len(kept.nodes)} in float")
        return (trial if trial.proof is not None else None), search

    def _bind(self, proof: Proof) -> Policy:
        """The policy with the goals as promises."""
        goals, quality, policy = self.settings.keep_within, proof.quality, self.policy.quality
        metrics = {name: limit for name, limit in goals.items() if name != CHANGED}
        unknown = [name for name in metrics if quality is None or quality.value(name) is None]
        if unknown:
            there = f"there are {list_names(quality.candidate)}" if quality is not None else "the data have no labels"
            raise UserError(f"--keep-within {unknown[0]} was not measured: {there}; {CHANGED}=0.01 needs none")
        drops, changed = {**policy.max_drop, **metrics}, goals.get(CHANGED, policy.max_changed)
        return replace(self.policy, quality=replace(policy, max_drop=drops, max_changed=changed))

    def _describe(self, name: str, proof: Proof) -> Quantized:
        """What came of a file."""
        assert proof.quantization is not None  # it was made
        quality, counted = proof.quality, count_changed(proof)
        asked = [goal for goal in self.settings.keep_within if goal != CHANGED]
        measured = {m: measure_drop(quality, m) for m in asked or LEADING} if quality is not None else {}
        drops = {metric: Bounded(*drop) for metric, drop in measured.items() if drop is not None}
        gating = next((f"{one.code}: {one.message[:300]}" for one in proof.findings if one.weight), None)
        return replace(
            proof.quantization.candidates[0],
            name=name,
            drops=drops,
            changed=None if counted is None else Bounded(*counted),
            verdict=proof.verdict,
            reason=gating,
        )


def _settle(request: Request, tried: Sequence[Trial], best: Trial, search: KeptInFloat | None) -> Proof:
    """The winner's proof, its file where the user looks for it, and the record of all."""
    proof, name = best.proof, best.made.name
    assert proof is not None  # it won
    made, record = proof.artifact, proof.quantization
    assert made is not None  # as it did
    assert record is not None
    place = Path(request.out) / Path(made.path).name
    for file in Path(made.path).parent.glob(f"{place.name}*"):
        shutil.copy2(file, place.with_name(file.name))
    candidates = tuple(replace(one.made, path=str(place)) if one is best else one.made for one in tried)
    record = replace(record, candidates=candidates, winner=name, search=search, seed=SEED)
    return replace(proof, artifact=replace(made, path=str(place)), quantization=record)
