"""A file that onnxruntime does not load: where in the user's code that comes from."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from onnxproof.candidates.candidate import Candidate
from onnxproof.findings import Finding
from onnxproof.graph.sourcemap import place_node
from onnxproof.graph.view import Graph
from onnxproof.lints.graph import lint_graph
from onnxproof.proof.artifact import Artifact
from onnxproof.request.session import SessionSettings


def explain_refusal(finding: Finding, artifact: Artifact, candidate: Candidate, session: SessionSettings) -> Finding:
    """The finding with its module and line. onnxruntime names no node of the file where it runs others in its place: the lint does."""
    # Whatever the code weighs where the file loads: it does not.
    finding = replace(finding, severity="block")
    where = place_node(finding.where.node, artifact.sourcemap) if finding.where.node is not None else finding.where
    adds = finding.entry.by_lint
    # The lint asks the libraries of this process about kernels and operators.
    enough = where.line is not None if adds == "node" else candidate.abilities.elsewhere
    if adds is None or enough:
        return replace(finding, where=where)
    seen: list[Finding] = []
    with suppress(Exception):  # a file that nobody can read is told by the session
        seen = lint_graph(Graph.read(Path(artifact.path)), [provider.name for provider in session.providers])
    alike = (one for one in seen if one.code == finding.code)
    same = next((one for one in alike if one.where.node is not None or adds == "words"), None)
    if same is None:
        return replace(finding, where=where)
    # That the session refuses it is certain, whatever the lint thinks of it.
    return replace(same, severity=finding.severity, evidence={**same.evidence, **finding.evidence}, help=finding.help)
