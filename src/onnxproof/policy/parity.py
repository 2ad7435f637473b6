"""What the two sides answer, judged: one output of one case at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnxproof.findings import Finding, Severity, Stage, Where, found
from onnxproof.policy.merging import Remark, group_by
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.codec import to_plain
from onnxproof.proof.comparison import Comparison
from onnxproof.request.thresholds import Policy, Tolerance


def find_objection(comparison: Comparison, policy: Policy, baseline: str) -> str | None:
    """What is wrong with an output, if it would gate the verdict in a case of its own."""
    grave = weigh_output(comparison, policy, baseline)
    return grave.message if grave is not None else None


def weigh_output(comparison: Comparison, policy: Policy, baseline: str) -> Finding | None:
    """What would gate the verdict, if anything would."""
    remarks = _judge_output(comparison, policy, baseline)
    return next((remark.finding for remark in remarks if remark.finding.weight), None)


def list_remarks(case: CaseResult, c: Comparison, policy: Policy, baseline: str) -> Iterable[Remark]:
    """What is to be said about one output in one case."""
    for remark in _judge_output(c, policy, baseline):
        yield from _adapt_to_case(case, c, remark)


def _judge_output(c: Comparison, policy: Policy, baseline: str) -> Iterable[Remark]:
    """What is to be said about the form, else about NaN and infinities, and then about the values."""
    form, pattern = _judge_form(c, baseline), _judge_pattern(c, baseline)
    if form is not None:
        return [form]
    if pattern is not None and pattern.finding.severity != "note":
        return [pattern]
    values = _judge_discrete(c, baseline) if c.kind == "discrete" else _judge_float(c, policy, baseline)
    return [remark for remark in (pattern, values, _judge_boxes(c, baseline)) if remark is not None]


def _judge_boxes(c: Comparison, baseline: str) -> Remark | None:
    """What is different about sets whose boxes agree."""
    m = c.matched
    if m is None:
        return None
    told = [
        f"{m.moved} at other places" if m.moved else "",
        f"{m.missing} only in {baseline} and {m.extra} only in onnxruntime, which rounding decides"
        if m.missing + m.extra
        else "",
    ]
    message = f"{c.output}: both sides have the same {m.pairs} boxes, {' and '.join(filter(None, told)) or 'in the same order'}"
    return _remark("OX240", message, c, float(m.moved + m.missing + m.extra), to_plain(m))


def _adapt_to_case(case: CaseResult, c: Comparison, remark: Remark) -> Iterable[Remark]:
    finding = replace(remark.finding, where=Where(output=c.output, case=case.name))
    if not case.fair and finding.severity == "note":
        return  # explained differences on inputs that are not fair interest nobody
    if not case.fair:
        outside = f"{case.profile} inputs, which are outside the fair range"
        if 0 in case.sizes.values():
            outside = "an empty batch, which gates only if --batch-sizes asks for it"
        message = f"on {outside}: {finding.message}"
        finding = found("OX209", message, where=finding.where, stage=finding.stage, evidence=finding.evidence)
    elif case.profile == "denormal" and finding.severity == "block":
        ends = "at the ends of what their dtype holds: floats near 1e-40, integers above 2⁴⁸"
        finding = replace(finding, severity="review", message=f"{finding.message}, on inputs {ends}")
    yield Remark(finding, remark.weight)


def _judge_form(c: Comparison, baseline: str) -> Remark | None:
    if c.baseline_dtype != c.candidate_dtype:
        message = f"{c.output} is {c.baseline_dtype} in {baseline} and {c.candidate_dtype} in the artifact"
        return _remark("OX214", message, c, 1.0)
    if c.baseline_shape != c.candidate_shape:
        ours, theirs = list(c.candidate_shape), list(c.baseline_shape)
        return _remark("OX215", f"{c.output} has shape {theirs} in {baseline} and {ours} in onnxruntime", c, 1.0)
    return None


def _judge_pattern(c: Comparison, baseline: str) -> Remark | None:
    theirs, ours, differing = c.pattern.baseline, c.pattern.candidate, c.pattern.differing
    if not differing:
        return None
    evidence = {"baseline_nonfinite": theirs, "candidate_nonfinite": ours, "differing": differing}
    if c.pattern.unexplained == 0:
        return _remark("OX208", f"{c.output}: NaN or infinity appears where rounding decides", c, 0.0, evidence)
    sides = f"{baseline} has {theirs}, onnxruntime {ours}"
    message = f"{c.output}: {differing} of {c.size} elements are NaN or infinite on one side only ({sides})"
    return _remark("OX205", message, c, float(differing), evidence, stage=_pick_stage(c))


def _judge_discrete(c: Comparison, baseline: str) -> Remark | None:
    if not c.mismatched:
        return None
    evidence = {"mismatched": c.mismatched, "of": c.size, "unexplained": c.unexplained_mismatches}
    message = f"{c.output}: {c.mismatched} of {c.size} values differ"
    if c.unexplained_mismatches == 0:
        return _remark("OX208", f"{message} where the margin is below the rounding noise", c, 0.0, evidence)
    return _tell_swap(c, baseline) or _remark("OX207", message, c, float(c.mismatched), evidence)


# Times the rounding error from which on a case speaks for itself: one with less may be large and still mostly rounding.
CLEAR = 30.0
# Differences of this size are denormal numbers, which kernels may take for zero.
FLUSHED = 4 * 1.1754944e-38


def _judge_float(c: Comparison, policy: Policy, baseline: str) -> Remark | None:
    tolerance = policy.for_output(c.output)
    evidence = _collect_evidence(c, tolerance)
    broken = c.max_abs is not None and (c.excess(tolerance.atol, tolerance.rtol) > 0 or c.max_abs > tolerance.max_abs)
    noisy = exceeds_noise(c, policy.noise) and (c.max_abs is None or c.max_abs > FLUSHED)
    if broken and noisy:
        message = f"{c.output} differs by up to {c.max_abs:.3g} ({_show_noise(c, baseline)}): more than the tolerance, and not rounding"
        weight = (c.max_abs or 0.0) * (min(1.0, _read_noise(c) / CLEAR) if c.noise else 1.0)
        return _tell_swap(c, baseline) or _remark("OX201", message, c, weight, evidence, stage=_pick_stage(c))
    if c.exactness is not None and c.exactness.ratio > 1:
        message = (
            f"{c.output}: in float64, where rounding cannot hide, graph and module differ by {c.exactness.error:.2g} of the output's "
            f"scale; {c.exactness.allowance:.2g} is explained"
        )
        return _remark("OX203", message, c, c.exactness.ratio, evidence)
    if noisy:
        message = f"{c.output} is within the tolerance (max {c.max_abs:.3g}) but {_show_noise(c, baseline)}: a silent change, not rounding"
        return _remark("OX202", message, c, _read_noise(c), evidence, stage=_pick_stage(c))
    return _tell_explained(c, tolerance, evidence, baseline) if broken else None


def _tell_explained(c: Comparison, tolerance: Tolerance, evidence: Mapping[str, Any], baseline: str) -> Remark:
    own = c.noise.baseline_rms if c.noise else 0.0
    # Where there is no float64 truth the module's own answer stands for it, and its distance from that says nothing.
    truth = f"{baseline} itself is {own:.2g} (rms) from the float64 truth"
    why = truth if own else "legal roundings of the module move it as far"
    message = f"{c.output} differs by up to {c.max_abs:.3g}, more than the tolerance, and rounding explains it: {why}"
    return _remark("OX204", message, c, c.max_abs or 0.0, evidence, severity="review" if tolerance.promised else "note")


def exceeds_noise(c: Comparison, threshold: float) -> bool:
    """Whether the candidate is farther from the truth than rounding explains; unknown noise explains nothing."""
    if c.noise is None:
        return bool(c.max_abs)
    if c.noise.unexplained is not None:
        return c.noise.unexplained > 1
    return _read_noise(c) > threshold


def _tell_swap(c: Comparison, baseline: str) -> Remark | None:
    message = f"the artifact's {c.output} equals {baseline}'s {c.swapped_with}: the outputs look swapped"
    return None if c.swapped_with is None else _remark("OX220", message, c, 1.0)


def _pick_stage(c: Comparison) -> Stage | None:
    """Exact in float64 puts the blame behind the graph, inexact puts it before."""
    return None if c.exactness is None else "translate" if c.exactness.ratio > 1 else "kernel"


def _read_noise(c: Comparison) -> float:
    return max(c.noise.ratio, c.noise.worst_ratio) if c.noise else 0.0


def _show_noise(c: Comparison, baseline: str) -> str:
    return f"{_read_noise(c):.3g} times {baseline}'s own rounding error" if c.noise else "no rounding noise known"


def _collect_evidence(c: Comparison, tolerance: Tolerance) -> dict[str, Any]:
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
        evidence["exactness"] = to_plain(c.exactness)
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
    shown = {**(evidence or {}), "worst": to_plain(c.worst)}
    return Remark(found(code, message, severity=severity, stage=stage, evidence=shown), weight)


def find_nothing_compared(cases: Sequence[CaseResult]) -> list[Finding]:
    """That there is no fair case in which anything was compared: never a pass, whoever wrote the proof."""
    if any(case.fair and (case.outputs or case.status == "failed") for case in cases):
        return []
    return [found("OX004", "no case gave outputs on both sides: nothing was compared")]


def find_nothing_finite(cases: Sequence[CaseResult]) -> list[Finding]:
    """Outputs of which all cases together leave nothing to compare."""
    alike = [c for case in cases if case.fair for c in case.outputs if c.same_form and not c.pattern.differing]
    findings = []
    for output, seen in group_by(alike, lambda c: c.output).items():
        if not any(c.size for c in seen):
            message = f"{output} is empty in every case: its shape and dtype were compared, and there is nothing else"
            # Beside others it is as it should be; where there is nothing else, no value was compared at all.
            severity: Severity | None = "note" if any(c.size for c in alike) else None
            findings.append(found("OX206", message, severity=severity, where=Where(output=output)))
        elif not any(c.compared for c in seen):
            message = f"{output} held no finite value in any case: nothing was compared"
            findings.append(found("OX206", message, where=Where(output=output)))
    return findings
