"""Why: findings with the node, the line or the rewrite behind them, and with the smallest input that shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnxproof.diagnosis.forms import suggest_line
from onnxproof.findings import Finding
from onnxproof.proof.blame import Blame
from onnxproof.proof.codec import to_plain
from onnxproof.proof.search import Counterexample


def add_causes(
    findings: Sequence[Finding], blames: Mapping[str, Blame], counterexamples: Sequence[Counterexample]
) -> list[Finding]:
    """The findings with what is known about their causes."""
    suspects = {finding.code: finding for finding in reversed(findings) if finding.entry.suspicion}
    told = []
    for finding in findings:
        finding = _add_blame(finding, blames)
        for code in sorted(suspects):
            finding = _add_suspect(finding, suspects[code])
        told.append(_add_counterexample(finding, counterexamples))
    return told


def _add_blame(finding: Finding, blames: Mapping[str, Blame]) -> Finding:
    """The finding with what is known about its cause; the first blame speaks for findings of other cases too."""
    blame = blames.get(finding.where.case or "") or next(iter(blames.values()), None)
    if blame is not None and finding.where.output is not None and blame.culprits:
        mine = tuple(c for c in blame.culprits if not c.outputs or finding.where.output in c.outputs)
        blame = replace(blame, culprits=mine) if mine else None  # found for another output of the same case
    if not finding.entry.locatable or blame is None:
        return finding
    evidence = {**finding.evidence, "culprits": to_plain(blame.culprits), "rewrite": blame.rewrite}
    where, help = finding.where, finding.help
    if blame.culprits:
        top = blame.culprits[0]
        where = replace(where, node=top.node, module=top.module, file=top.file, line=top.line)
        form = suggest_line(top.text or "", finding.code)
        among = f" (one of {top.piece[0]} to {top.piece[-1]}, which stand for one line)" if top.piece else ""
        help = f"the error is born in {top.op} node {top.node}{among}. {f'Instead: {form}. ' if form else ''}{help}"
    if blame.rewrite:
        help = f'switch the onnxruntime optimisation off: InferenceSession(…, disabled_optimizers=["{blame.rewrite}"]). {help}'
    return replace(finding, where=where, stage=blame.stage or finding.stage, evidence=evidence, help=help)


def _add_suspect(finding: Finding, suspect: Finding) -> Finding:
    """The finding with what most likely lies behind it; where a node is to blame, a suspect without a line adds nothing."""
    where, there = finding.where, suspect.where
    if not finding.entry.locatable or not finding.weight or (where.node is not None and there.file is None):
        return finding
    if where.file is None:
        where = replace(where, file=there.file, line=there.line)
    if where.node is None:
        where = replace(where, module=where.module or there.module)
    place = f" at {there.file}:{there.line}" if there.file else ""
    facts = {"message": suspect.message, "help": suspect.help, "place": place, **suspect.evidence}
    try:
        cause = suspect.entry.suspicion.format(**facts)
    except KeyError:
        return finding  # an exporter that died gave no reason
    return replace(finding, where=where, help=f"{cause} {finding.help}")


def _add_counterexample(finding: Finding, counterexamples: Sequence[Counterexample]) -> Finding:
    """The finding with the smallest input that shows it."""
    for one in counterexamples:
        if (one.code, one.output) == (finding.code, finding.where.output):
            return replace(finding, evidence={**finding.evidence, "counterexample": to_plain(one)})
    return finding
