"""How to see each thing again: commands for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from onnxproof.proof.proof import Proof
from onnxproof.report.wording import choose_grave


def list_commands(proof: Proof) -> list[tuple[str, str]]:
    """(What it shows, the command)."""
    return [(what, command) for what, command in _list_all(proof) if command][:24]


def _list_all(proof: Proof) -> Iterator[tuple[str, str]]:
    yield "this proof", proof.environment.command or _spell_verb(proof, "prove")
    yield "another judgement of the same facts", "onnxproof report proof.json --atol 1e-3 --rtol 1e-2"
    if proof.blame and proof.subject.target:
        yield "who is to blame", _spell_verb(proof, "locate")
    for one in list(proof.counterexamples)[:6]:
        yield f"{one.code} on the smallest input", _spell_script(one.script)
    for culprit in [c for blame in proof.blame.values() for c in blame.culprits][:6]:
        folder = culprit.reproduction
        yield f"{culprit.op} {culprit.node} alone", _spell_script(folder and str(Path(folder) / "reproduce.py"))
    for code in list(dict.fromkeys(finding.code for finding in choose_grave(proof)))[:6]:
        yield f"what {code} means", f"onnxproof explain {code}"


def _spell_script(file: str | None) -> str:
    return shlex.join(["python", file]) if file else ""


def _spell_verb(proof: Proof, verb: str) -> str:
    target, artifact, environment = proof.subject.target, proof.artifact, proof.environment
    if not target:
        return ""
    if proof.subject.is_file:
        named = [environment.original, (environment.runtime or "onnxruntime").partition(" (")[0]]
        sides = [part for name in named for part in ("--runtime", name)] if environment.original is not None else []
        return shlex.join(
            ["onnxproof", "diff", target, artifact.path if artifact is not None else "", *map(str, sides)]
        )
    parts = ["onnxproof", verb, target]
    if artifact is not None and artifact.exporter in ("unknown", "file"):
        parts += ["--onnx", artifact.path]
    for name in environment.providers:
        parts += ["--provider", name] if name != "CPUExecutionProvider" else []
    if environment.optimization not in (None, "all"):
        parts += ["--optimization", str(environment.optimization)]
    return shlex.join(parts)
