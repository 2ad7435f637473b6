"""What a baseline proof found already: such findings stay visible and gate only where they got worse."""

from __future__ import annotations

from collections.abc import Iterable

from onnxproof.findings import Finding, look_up
from onnxproof.findings.finding import WEIGHT
from onnxproof.request.thresholds import Known

# How many times larger a known difference may be before it counts as a worse one: retraining moves it a little.
WORSE = 3.0


def covers(known: Known, finding: Finding) -> bool:
    """Whether a finding of today is the known one, or a milder one of its family at the same place."""
    if WEIGHT[finding.severity] > WEIGHT[known.severity] or not _is_same_place(known, finding):
        return False
    if finding.code != known.code:
        same = finding.entry.family == look_up(known.code).family
        return same and WEIGHT[finding.severity] < WEIGHT[known.severity]
    today = finding.measure
    return today is None or known.measure is None or today <= WORSE * known.measure


def _is_same_place(known: Known, finding: Finding) -> bool:
    where = finding.where
    if where.output != known.output or not _agree(finding.stage, known.stage):
        return False
    if known.module and where.module:  # the empty name is the whole model: its nodes tell more
        return known.module == where.module
    return _agree(where.module, known.module) and _agree(where.node, known.node)


def _agree(one: str | None, other: str | None) -> bool:
    """Equal, or one of them was never found out."""
    return one is None or other is None or one == other


def list_known(findings: Iterable[Finding]) -> tuple[Known, ...]:
    """What a proof's findings say to a later one; what can never be accepted is never known either."""
    return tuple(
        Known(f.code, f.severity, f.where.output, f.where.module, f.where.node, f.stage, f.measure)
        for f in findings
        if f.severity != "note" and f.entry.acceptable
    )


def recognise(finding: Finding, known: Iterable[Known]) -> Finding:
    """The finding, marked where the baseline has it and it is not worse now."""
    earlier = next((one for one in known if covers(one, finding)), None) if finding.severity != "note" else None
    return finding if earlier is None else finding.know(f"the baseline has {earlier.code} there too")
