"""What a lint found, as text."""

from __future__ import annotations

from onnxproof.findings import Finding
from onnxproof.proof.proof import Proof

WORDS = {"ship": "CLEAN", "review": "REVIEW", "block": "BLOCK"}
SHOWN = 12


def render_lint(proof: Proof) -> str:
    """The gravest first; a lint compares nothing, so it never says SHIP."""
    name = proof.artifact.path if proof.artifact is not None else proof.subject.target or proof.subject.name
    grave = [finding for finding in proof.findings if finding.weight]
    notes = len(proof.findings) - len(grave)
    counted = f"{len(grave)} to mend, {notes} notes" if proof.findings else "nothing found"
    lines = [f"{WORDS[proof.verdict]}  {name}: {counted} (nothing was run)"]
    for finding in proof.findings[:SHOWN]:
        lines += _described(finding)
    if len(proof.findings) > SHOWN:
        lines.append(f"  … and {len(proof.findings) - SHOWN} more: --json - has them all")
    return "\n".join(lines)


def _described(finding: Finding) -> list[str]:
    where = finding.where
    place = f"  (module {where.module})" if where.module else ""
    if where.file and where.line:
        place = f"  at {where.file}:{where.line}"
    mark = " (accepted)" if finding.accepted is not None else ""
    lines = ["", f"  {finding.code} {finding.severity}{mark}: {finding.message}{place}"]
    return [*lines, f"    {finding.help}"] if finding.weight else lines[1:]
