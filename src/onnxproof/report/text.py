"""Proof → text for a terminal: verdict first, at most about thirty lines, readable without colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from onnxproof.blame.record import Blame
from onnxproof.comparison import Comparison
from onnxproof.findings import Finding
from onnxproof.proof import Proof
from onnxproof.report import quality
from onnxproof.verified import CaseResult

WORDS = {"ship": "SHIP", "review": "REVIEW", "block": "BLOCK"}
SHOWN_FINDINGS = 3
SHOWN_NOTES = 3
SHOWN_GROUPS = 9


def render(proof: Proof) -> str:
    """The summary."""
    lines = [
        _headline(proof),
        *_artifact(proof),
        *_groups(proof.cases),
        *_looked(proof),
        *(quality.lines(proof.quality, short=bool(proof.cases)) if proof.quality is not None else []),
        *_findings(proof),
        *_next(proof),
    ]
    text = "\n".join(lines)
    target = str(proof.subject.get("target") or "")
    # Where two files are compared, the baseline is the first of them.
    return text.replace("PyTorch", Path(target).name) if target.endswith(".onnx") else text


def _headline(proof: Proof) -> str:
    name = proof.subject.get("name") or "the model"
    reasons = _grave(proof)
    if not proof.cases and proof.quality is not None and not reasons:
        return f"{WORDS[proof.verdict]}  {name}: {quality.headline(proof.quality)}"
    if not proof.cases and proof.artifact is not None and not reasons:
        return f"EXPORTED  {name}"
    if not reasons and proof.quality is not None:
        told = quality.headline(proof.quality)
        return f"{WORDS[proof.verdict]}  {name}: {proof.compared} cases compared, every difference is rounding; {told}"
    if not reasons:
        return f"{WORDS[proof.verdict]}  {name}: {proof.compared} cases compared, every difference is rounding"
    more = f" (+{len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{WORDS[proof.verdict]}  {name}: {reasons[0].message}{more}"


def _artifact(proof: Proof) -> list[str]:
    artifact, env = proof.artifact, proof.environment
    if artifact is None:
        return []
    versions = f"torch {env.get('torch')}, onnxruntime {env.get('onnxruntime')}"
    session = f"{', '.join(p.removesuffix('ExecutionProvider') for p in env.get('providers', []))}, optimization {env.get('optimization')}"
    made = f"{artifact['path']}  opset {artifact['opset']}, {artifact['nodes']} nodes, {_size(artifact['bytes'])}, {artifact['exporter']}"
    return [f"  {made}", f"  {versions}, {session}"]


def _size(count: int) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count = count / 1000  # type: ignore[assignment]  # a float from here on
    return ""


# --- cases ----------------------------------------------------------------------------------------------------------


def _groups(cases: Sequence[CaseResult]) -> list[str]:
    """One line per size (with the values tried there), worst numbers of all outputs."""
    groups: dict[str, list[CaseResult]] = {}
    for case in cases:
        groups.setdefault(case.name.split("/")[0], []).append(case)
    if not groups:
        return []
    rows = [_row(name, group) for name, group in groups.items()]
    shown = rows if len(rows) <= SHOWN_GROUPS else rows[: SHOWN_GROUPS - 1]
    width = max(len(row[0]) for row in shown)
    lines = ["", f"  {'cases':<{width}}  values   max abs   max rel   noise ratio  graph in float64"]
    lines += [f"  {name:<{width}}  {count:>6}  {rest}" for name, count, rest in shown]
    if len(rows) > len(shown):
        lines.append(f"  … and {len(rows) - len(shown)} more sizes")
    return lines


def _row(name: str, group: Sequence[CaseResult]) -> tuple[str, str, str]:
    fair = [case for case in group if case.fair]
    outputs = [c for case in fair for c in case.outputs]
    bad = sum(1 for case in group if case.status == "failed")
    rejected = sum(1 for case in group if case.status == "rejected")
    remarks = [f"{bad} refused by onnxruntime"] * bool(bad) + [f"{rejected} rejected by PyTorch"] * bool(rejected)
    numbers = "   ".join(
        (
            _number(_top(c.max_abs for c in outputs)),
            _number(_top(c.max_rel for c in outputs)),
            f"{_number(_top(c.noise_ratio for c in outputs)):>8}",
            f"{_number(_top(c.exactness.error for c in outputs if c.exactness)):>10}",
        )
    )
    return name, str(len(group)), numbers + (f"   ({', '.join(remarks)})" if remarks else "")


def _top(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _number(value: float | None) -> str:
    return (
        "      –" if value is None else f"{value:7.1e}" if value and not 0.01 <= abs(value) < 1000 else f"{value:7.3g}"
    )


def _looked(proof: Proof) -> list[str]:
    """What a search did, and how much of the user's data the generated cases cover."""
    lines = [
        f"  data: {cover['share']:.0%} of {name} lies where generated cases have been too"
        for name, cover in list(proof.coverage.items())[:3]
    ]
    if proof.search is not None:
        s = proof.search
        lines.append(
            f"  search: {s['inputs']} inputs in {s['seconds']:.0f} s, {s['reached']} of {s['regimes']} regimes reached, "
            + (f"found {s['found']}" if s["found"] else f"worst {s['worst']:.2g} of what rounding explains")
        )
    return lines


# --- findings -------------------------------------------------------------------------------------------------------


def _grave(proof: Proof) -> list[Finding]:
    """What gates; that nothing was compared goes without saying where the reason is there too."""
    grave = [f for f in proof.findings if f.weight]
    return [f for f in grave if f.code != "OX004"] or grave


def _findings(proof: Proof) -> list[str]:
    grave = _grave(proof)
    quiet = [f for f in proof.findings if not f.weight]
    lines: list[str] = []
    for finding in grave[:SHOWN_FINDINGS]:
        lines += ["", *_finding(finding)]
    if len(grave) > SHOWN_FINDINGS:
        codes = ", ".join(dict.fromkeys(f.code for f in grave[SHOWN_FINDINGS:]))
        lines.append(f"  … and {len(grave) - SHOWN_FINDINGS} more ({codes}): they are in the proof")
    if quiet:
        lines += ["", *(_note(f) for f in quiet[:SHOWN_NOTES])]
    if len(quiet) > SHOWN_NOTES:
        lines.append(f"  … and {len(quiet) - SHOWN_NOTES} more notes in the proof")
    return lines


def _finding(finding: Finding) -> list[str]:
    lines = [f"  {finding.code} {finding.severity}  {_short(finding.message, 400)}"]
    place = _place(finding)
    if place:
        lines.append(f"    where: {place}")
    lines += [f"    {line}" for line in _worst(finding.evidence.get("worst") or [])]
    lines += _counterexample(finding.evidence.get("counterexample"))
    lines.append(f"    help: {finding.help}")
    return lines


def _counterexample(one: dict[str, Any] | None) -> list[str]:
    if one is None:
        return []
    shapes = ", ".join(f"{name} of shape {shape}" for name, shape in one["shapes"].items())
    return [f"    smallest input: {one['text'] or shapes}", f"    kept: {one['script'] or one['file']}"]


def _note(finding: Finding) -> str:
    accepted = f" [accepted: {finding.accepted}]" if finding.accepted is not None else ""
    return f"  {finding.code} {'accepted' if accepted else 'note'}  {_short(finding.message, 160)}{accepted}"


def _place(finding: Finding) -> str:
    where = finding.where
    parts = [
        f"output {where.output}" if where.output else "",
        f"case {where.case}" if where.case else "",
        f"node {where.node}" if where.node else "",
        f"module {where.module}" if where.module else "",
        f"{where.file}:{where.line}" if where.file else "",
    ]
    count = finding.evidence.get("case_count", 1)
    more = [f"and {count - 1} more cases"] if count > 1 else []
    stage = [f"stage {finding.stage}"] if finding.stage else []
    return ", ".join([part for part in parts if part] + more + stage)


def _worst(elements: Sequence[dict[str, Any]]) -> list[str]:
    rows = []
    for element in elements[:3]:
        b, c = element["baseline"], element["candidate"]
        difference = f"  difference {c - b:.3g}" if _numeric(b) and _numeric(c) else ""
        rows.append(f"{element['index']}: PyTorch {_value(b)}  onnxruntime {_value(c)}{difference}")
    return rows


def _numeric(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _value(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _next(proof: Proof) -> list[str]:
    grave = _grave(proof)
    if not grave:
        return []
    return ["", f"  next: onnxproof explain {grave[0].code}"]


def culprits(proof: Proof) -> str:
    """The worst nodes of every located case: at most twenty lines."""
    if not proof.blame:
        return "\n  nothing to locate"
    lines = []
    for case, blame in proof.blame.items():
        lines += ["", f"  {case}: {_step(blame)}"]
        for culprit in blame.culprits[:8]:
            place = f"{culprit.file}:{culprit.line}  {culprit.text or ''}" if culprit.file else ""
            module = culprit.module if culprit.module else "(top)" if culprit.module == "" else "–"
            lines.append(
                f"    {_introduced(culprit.introduced):>8}  {culprit.op:<14} {culprit.node:<24} {module:<20} {place}".rstrip()
            )
            says = f"should be {_value(culprit.expected)}, is {_value(culprit.got)}" if culprit.got is not None else ""
            rule = f"made by the exporter's rule {culprit.rule}" if culprit.rule and blame.stage == "simplify" else ""
            more = [says, rule, "inside its subgraph" if culprit.border else "", culprit.reproduction or ""]
            if any(more) and culprit in blame.culprits[:3]:
                lines.append(f"              {'; '.join(part for part in more if part)}")
    return "\n".join(lines[:20])


def _step(blame: Blame) -> str:
    """The step, and what is known about it besides the nodes."""
    parts = [f"stage {blame.stage or 'unknown'}"]
    if blame.rewrite:
        parts.append(f"rewrite {blame.rewrite}")
    if blame.vanishes:
        parts.append("it vanishes when inner values are watched: only the fused graph shows it")
    if blame.removed:
        parts.append(f"the exporter's optimiser removed {', '.join(blame.removed)}")
    parts += [f"first NaN or infinity in {b.side}: {b.op} {b.node}" for b in blame.births]
    parts += [f"{a.op} {a.node} magnifies the error {a.introduced:.0f} times" for a in blame.amplifiers[:2]]
    return "; ".join(parts)


def _introduced(error: float) -> str:
    return "nan/inf" if error >= 1e299 else f"{error:.2g}"


def describe_case(case: CaseResult) -> list[str]:
    """One line per output of a case: for `--verbose`."""
    if not case.outputs:
        return [f"  {case.name}: {case.status} {_short(case.message, 120)}"]
    return [f"  {case.name}  {_outputs(c)}" for c in case.outputs]


def _outputs(c: Comparison) -> str:
    return (
        f"{c.output}: max abs {_number(c.max_abs)}  max rel {_number(c.max_rel)}  noise ratio {_number(c.noise_ratio)}"
    )
