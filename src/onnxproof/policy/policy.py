"""Policy and judge(): the only place where numbers become opinions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from onnxproof.diagnosis.operators import rewritten
from onnxproof.findings import JUDGED, Finding, Severity, Stage, Where, found
from onnxproof.policy.baseline_findings import Known, recognise
from onnxproof.policy.latency import LatencyPolicy, judge_latency
from onnxproof.policy.quality import QualityPolicy, judge_quality
from onnxproof.policy.refusals import refusals
from onnxproof.proof.blame import Blame
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison

Verdict = Literal["ship", "review", "block"]
VERDICTS: tuple[Verdict, ...] = ("ship", "review", "block")


@dataclass(frozen=True)
class Tolerance:
    """The contract for one output: |difference| ≤ atol + rtol·|baseline|, and ≤ max_abs."""

    atol: float = 1e-4
    rtol: float = 1e-3
    max_abs: float = 1e-3
    promised: bool = False
    """Whether the user gave it. A promise binds; the defaults yield to rounding."""


@dataclass(frozen=True)
class Policy:
    """The thresholds."""

    tolerance: Tolerance = Tolerance()
    outputs: Mapping[str, Tolerance] = field(default_factory=dict)
    noise: float = 10.0
    """How many times farther from the truth than PyTorch onnxruntime may be."""
    accept: Mapping[str, str] = field(default_factory=dict)
    """Code → the reason why findings of that code are accepted."""
    latency: LatencyPolicy = LatencyPolicy()
    known: tuple[Known, ...] = ()
    """What a baseline found: it gates only where it got worse."""
    quality: QualityPolicy = QualityPolicy()

    def for_output(self, output: str) -> Tolerance:
        """The contract for one output."""
        return self.outputs.get(output, self.tolerance)

    def to_json(self) -> dict[str, Any]:
        """The policy as plain data."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Policy:
        """Read a policy back."""
        return Policy(
            tolerance=Tolerance(**data["tolerance"]),
            outputs={name: Tolerance(**values) for name, values in data["outputs"].items()},
            noise=data["noise"],
            accept=dict(data["accept"]),
            latency=LatencyPolicy.from_json(data.get("latency") or {}),
            known=tuple(Known.from_json(one) for one in data.get("known") or ()),
            quality=QualityPolicy(**data.get("quality", {})),
        )


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """The worst finding that is not accepted decides."""
    return VERDICTS[max((finding.weight for finding in findings), default=0)]


def judge(
    observed: Sequence[Finding],
    cases: Sequence[CaseResult],
    policy: Policy,
    blames: Mapping[str, Blame] | None = None,
    counterexamples: Sequence[Mapping[str, Any]] = (),
    *,
    latency: Mapping[str, Any] | None = None,
    quality: Mapping[str, Any] | None = None,
) -> list[Finding]:
    """What the stages observed, and what the comparisons say under this policy; the gravest first."""
    findings = [finding for finding in observed if finding.code not in JUDGED]
    random_outputs = {f.where.output for f in findings if f.code == "OX103"}
    findings += _merged(
        remark
        for case in cases
        for comparison in case.outputs
        if comparison.output not in random_outputs
        for remark in _remarks(case, comparison, policy)
    )
    findings += [*refusals(cases), *_nothing_finite(cases)]
    findings += judge_latency(latency, policy.latency, lambda c: _gates(c, policy))
    findings += judge_quality(quality, policy.quality) if quality is not None else []
    traced = next((f for f in findings if f.code == "OX107" and f.evidence.get("code")), None)
    skipped = next((f for f in findings if f.code == "OX147"), None)
    findings = [_blamed(finding, blames or {}) for finding in findings]
    findings = [_shown(_skipped(_frozen(f, traced), skipped), counterexamples) for f in findings]
    accepted = [
        f.accept(policy.accept[f.code]) if f.code in policy.accept else replace(f, accepted=None) for f in findings
    ]
    accepted = [recognise(replace(f, known=None), policy.known) for f in accepted]
    return sorted(accepted, key=lambda finding: -finding.weight)


def _gates(comparison: Mapping[str, Any], policy: Policy) -> str | None:
    """What is wrong with an output, if it would gate the verdict in a case of its own."""
    remarks = _of_output(Comparison.from_json(dict(comparison)), policy)
    return next((remark.finding.message for remark in remarks if remark.finding.weight), None)


LOCATABLE = frozenset(
    {"OX201", "OX202", "OX203", "OX204", "OX205", "OX207", "OX214", "OX215", "OX221", "OX223", "OX225"}
)
"""Findings whose cause can be looked for: the two sides answer differently, or one does not answer."""


def to_locate(findings: Iterable[Finding], limit: int = 2) -> list[Finding]:
    """Findings whose case is worth a closer look: the gravest about parity, one per case."""
    worth = [f for f in findings if f.weight and f.code in LOCATABLE and f.where.case]
    return list({f.where.case: f for f in reversed(worth)}.values())[::-1][:limit]


def _shown(finding: Finding, counterexamples: Sequence[Mapping[str, Any]]) -> Finding:
    """The finding with the smallest input that shows it."""
    for one in counterexamples:
        if (one["code"], one["output"]) == (finding.code, finding.where.output):
            return replace(finding, evidence={**finding.evidence, "counterexample": dict(one)})
    return finding


def _blamed(finding: Finding, blames: Mapping[str, Blame]) -> Finding:
    """The finding with what is known about its cause; the first blame speaks for findings of other cases too."""
    blame = blames.get(finding.where.case or "") or next(iter(blames.values()), None)
    if blame is not None and finding.where.output is not None and blame.culprits:
        mine = tuple(c for c in blame.culprits if not c.outputs or finding.where.output in c.outputs)
        blame = replace(blame, culprits=mine) if mine else None  # found for another output of the same case
    if finding.code not in LOCATABLE or blame is None:
        return finding
    evidence = {**finding.evidence, "culprits": [asdict(c) for c in blame.culprits], "rewrite": blame.rewrite}
    where, help = finding.where, finding.help
    if blame.culprits:
        top = blame.culprits[0]
        where = replace(where, node=top.node, module=top.module, file=top.file, line=top.line)
        form = rewritten(top.text or "", finding.code)
        help = f"the error is born in {top.op} node {top.node}. {f'Instead: {form}. ' if form else ''}{help}"
    if blame.rewrite:
        help = f'switch the onnxruntime optimisation off: InferenceSession(…, disabled_optimizers=["{blame.rewrite}"]). {help}'
    return replace(finding, where=where, stage=blame.stage or finding.stage, evidence=evidence, help=help)


def _frozen(finding: Finding, traced: Finding | None) -> Finding:
    """The finding with what the default exporter could not capture, and tracing froze."""
    if traced is None or finding.code not in LOCATABLE or not finding.weight:
        return finding
    where, place = finding.where, f" at {traced.where.file}:{traced.where.line}" if traced.where.file else ""
    if where.file is None:
        where = replace(where, file=traced.where.file, line=traced.where.line)
    cause = f"The default exporter failed{place} ({traced.evidence['reason']}) and tracing froze what stands there: {traced.evidence['help']}"
    return replace(finding, where=where, help=f"{cause} {finding.help}")


def _skipped(finding: Finding, skipped: Finding | None) -> Finding:
    """The finding with the fast path that is not exported, where no node is to blame."""
    if skipped is None or finding.code not in LOCATABLE or not finding.weight or finding.where.node is not None:
        return finding
    where = replace(finding.where, module=skipped.where.module)
    return replace(finding, where=where, help=f"Most likely {skipped.message}. {skipped.help} {finding.help}")


@dataclass(frozen=True)
class Remark:
    """One finding about one output in one case, before findings about the same thing are merged."""

    finding: Finding
    weight: float


def _remarks(case: CaseResult, c: Comparison, policy: Policy) -> Iterable[Remark]:
    for remark in _of_output(c, policy):
        yield from _of_case(case, c, remark)


def _of_output(c: Comparison, policy: Policy) -> Iterable[Remark]:
    """What is to be said about the form, else about NaN and infinities, and then about the values."""
    form, pattern = _form(c), _pattern(c)
    if form is not None:
        return [form]
    if pattern is not None and pattern.finding.severity != "note":
        return [pattern]
    values = _discrete(c) if c.kind == "discrete" else _float(c, policy)
    return [remark for remark in (pattern, values) if remark is not None]


def _of_case(case: CaseResult, c: Comparison, remark: Remark) -> Iterable[Remark]:
    finding = replace(remark.finding, where=Where(output=c.output, case=case.name))
    if not case.fair and finding.severity == "note":
        return  # explained differences on inputs that are not fair interest nobody
    if not case.fair:
        message = f"on {_outside(case)}: {finding.message}"
        finding = replace(finding, code="OX209", severity="note", message=message, help=found("OX209", "").help)
    elif case.profile == "denormal" and finding.severity == "block":
        finding = replace(finding, severity="review", message=f"{finding.message}, on inputs near 1e-40 only")
    yield Remark(finding, remark.weight)


def _outside(case: CaseResult) -> str:
    """Why a case does not gate."""
    if any(part.endswith("=0") for part in case.name.split("/")[0].split(",")):
        return "an empty batch, which gates only if --batch-sizes asks for it"
    return f"{case.profile} inputs, which are outside the fair range"


def _form(c: Comparison) -> Remark | None:
    if c.baseline_dtype != c.candidate_dtype:
        message = f"{c.output} is {c.baseline_dtype} in PyTorch and {c.candidate_dtype} in the artifact"
        return _remark("OX214", message, c, 1.0)
    if c.baseline_shape != c.candidate_shape:
        message = (
            f"{c.output} has shape {list(c.baseline_shape)} in PyTorch and {list(c.candidate_shape)} in onnxruntime"
        )
        return _remark("OX215", message, c, 1.0)
    return None


def _pattern(c: Comparison) -> Remark | None:
    if not c.pattern.differing:
        return None
    evidence = {
        "baseline_nonfinite": c.pattern.baseline,
        "candidate_nonfinite": c.pattern.candidate,
        "differing": c.pattern.differing,
    }
    if c.pattern.unexplained == 0:
        return _remark("OX208", f"{c.output}: NaN or infinity appears where rounding decides", c, 0.0, evidence)
    message = (
        f"{c.output}: {c.pattern.differing} of {c.size} elements are NaN or infinite on one side only "
        f"(PyTorch has {c.pattern.baseline}, onnxruntime {c.pattern.candidate})"
    )
    return _remark("OX205", message, c, float(c.pattern.differing), evidence, stage=_side(c))


def _discrete(c: Comparison) -> Remark | None:
    if not c.mismatched:
        return None
    evidence = {"mismatched": c.mismatched, "of": c.size, "unexplained": c.unexplained_mismatches}
    if c.unexplained_mismatches == 0:
        return _remark(
            "OX208",
            f"{c.output}: {c.mismatched} of {c.size} values differ where the margin is below the rounding noise",
            c,
            0.0,
            evidence,
        )
    return _swapped(c) or _remark(
        "OX207", f"{c.output}: {c.mismatched} of {c.size} values differ", c, float(c.mismatched), evidence
    )


FLUSHED = 4 * 1.1754944e-38
"""Differences of this size are denormal numbers, which kernels may take for zero."""


def _float(c: Comparison, policy: Policy) -> Remark | None:
    tolerance = policy.for_output(c.output)
    evidence = _evidence(c, tolerance)
    broken = c.max_abs is not None and (c.excess(tolerance.atol, tolerance.rtol) > 0 or c.max_abs > tolerance.max_abs)
    noisy = beyond_noise(c, policy.noise) and (c.max_abs is None or c.max_abs > FLUSHED)
    if broken and noisy:
        message = (
            f"{c.output} differs by up to {c.max_abs:.3g} ({_times(c)}): more than the tolerance, and not rounding"
        )
        return _swapped(c) or _remark("OX201", message, c, c.max_abs or 0.0, evidence, stage=_side(c))
    inexact = c.exactness is not None and c.exactness.ratio > 1
    if inexact:
        assert c.exactness is not None
        message = (
            f"{c.output}: in float64, where rounding cannot hide, graph and module differ by {c.exactness.error:.2g} of the output's "
            f"scale; {c.exactness.allowance:.2g} is explained"
        )
        return _remark("OX203", message, c, c.exactness.ratio, evidence)
    if noisy:
        message = (
            f"{c.output} is within the tolerance (max {c.max_abs:.3g}) but {_times(c)}: a silent change, not rounding"
        )
        return _remark("OX202", message, c, _noise(c), evidence, stage=_side(c))
    return _explained(c, tolerance, evidence) if broken else None


def _explained(c: Comparison, tolerance: Tolerance, evidence: Mapping[str, Any]) -> Remark:
    own = c.noise.baseline_rms if c.noise else 0.0
    # Where there is no float64 truth the module's own answer stands for it, and its distance from that says nothing.
    why = (
        f"PyTorch itself is {own:.2g} (rms) from the float64 truth"
        if own
        else "legal roundings of the module move it as far"
    )
    message = f"{c.output} differs by up to {c.max_abs:.3g}, more than the tolerance, and rounding explains it: {why}"
    return _remark("OX204", message, c, c.max_abs or 0.0, evidence, severity="review" if tolerance.promised else "note")


def beyond_noise(c: Comparison, threshold: float) -> bool:
    """Whether the candidate is farther from the truth than rounding explains; unknown noise explains nothing."""
    if c.noise is None:
        return bool(c.max_abs)
    if c.noise.unexplained is not None:
        return c.noise.unexplained > 1
    return max(c.noise.ratio, c.noise.worst_ratio) > threshold


def _swapped(c: Comparison) -> Remark | None:
    if c.swapped_with is None:
        return None
    return _remark(
        "OX220", f"the artifact's {c.output} equals PyTorch's {c.swapped_with}: the outputs look swapped", c, 1.0
    )


def _side(c: Comparison) -> Stage | None:
    """Exact in float64 puts the blame behind the graph, inexact puts it before."""
    if c.exactness is None:
        return None
    return "translate" if c.exactness.ratio > 1 else "kernel"


def _noise(c: Comparison) -> float:
    return max(c.noise.ratio, c.noise.worst_ratio) if c.noise else 0.0


def _times(c: Comparison) -> str:
    return f"{_noise(c):.3g} times PyTorch's own rounding error" if c.noise else "no rounding noise known"


def _evidence(c: Comparison, tolerance: Tolerance) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "max_abs": c.max_abs,
        "max_rel": c.max_rel,
        "atol": tolerance.atol,
        "rtol": tolerance.rtol,
        "outside": c.outside,
        "of": c.size,
        "noise_ratio": c.noise_ratio,
    }
    if c.noise is not None:
        evidence |= {"worst_ratio": c.noise.worst_ratio, "unexplained": c.noise.unexplained, "truth": c.noise.method}
    if c.exactness is not None:
        evidence["exactness"] = asdict(c.exactness)
    return evidence


def _remark(
    code: str,
    message: str,
    c: Comparison,
    weight: float,
    evidence: Mapping[str, Any] | None = None,
    *,
    severity: Severity | None = None,
    stage: Stage | None = None,
) -> Remark:
    shown = {**(evidence or {}), "worst": [asdict(element) for element in c.worst]}
    return Remark(found(code, message, severity=severity, stage=stage, evidence=shown), weight)


def _merged(remarks: Iterable[Remark]) -> list[Finding]:
    """One finding per code and output: the worst case speaks, the others are counted."""
    groups: dict[tuple[str, str | None], list[Remark]] = {}
    for remark in remarks:
        groups.setdefault((remark.finding.code, remark.finding.where.output), []).append(remark)
    blocked = {output for code, output in groups if code in ("OX201", "OX205", "OX207", "OX214", "OX215", "OX220")}
    return [
        _speaker(group)
        for (code, output), group in groups.items()
        if not (code in ("OX202", "OX203", "OX204", "OX208") and output in blocked)
        and not (code == "OX202" and ("OX203", output) in groups)
    ]


def _speaker(group: Sequence[Remark]) -> Finding:
    worst = max(group, key=lambda remark: (remark.finding.weight, remark.weight)).finding
    cases = list(dict.fromkeys(str(remark.finding.where.case) for remark in group))
    return replace(worst, evidence={**worst.evidence, "cases": cases, "case_count": len(cases)})


def _nothing_finite(cases: Sequence[CaseResult]) -> list[Finding]:
    seen: dict[str, tuple[int, int]] = {}
    for case in cases:
        for c in case.outputs:
            if case.fair and c.same_form and not c.pattern.differing:
                compared, size = seen.get(c.output, (0, 0))
                seen[c.output] = (compared + c.compared, size + c.size)
    findings = []
    for output, (compared, size) in seen.items():
        if not compared and size:
            message = f"{output} held no finite value in any case: nothing was compared"
            findings.append(found("OX206", message, where=Where(output=output)))
        elif not size:
            message = f"{output} is empty in every case: its shape and dtype were compared, and there is nothing else"
            findings.append(found("OX206", message, severity="note", where=Where(output=output)))
    return findings
