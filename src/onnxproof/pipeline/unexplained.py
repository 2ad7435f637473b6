"""Findings that the catalogue does not explain get a bundle for a bug report."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxproof.errors import FindingError
from onnxproof.findings import Finding
from onnxproof.pipeline.bug_report import write_bundle

UNEXPLAINED = frozenset({"OX101", "OX128", "OX303"})


def bundled(error: FindingError, out: Path, subject: Any, environment: Mapping[str, Any]) -> Finding:
    """The finding; where it is not explained, with the folder that holds the evidence."""
    finding = error.finding
    if finding.code not in UNEXPLAINED:
        return finding
    folder = write_bundle(
        out,
        message=finding.message,
        trace="".join(traceback.format_exception(error)),
        environment=environment,
        program=_program(subject),
    )
    evidence = {**finding.evidence, "bundle": str(folder)}
    return replace(finding, evidence=evidence, help=f"{finding.help} A bundle for a bug report is in {folder}.")


def _program(subject: Any) -> str | None:
    """The captured program as text, where it can be captured at all."""
    import torch

    from onnxproof.artifact.wrapper import FlatModule

    try:
        program = torch.export.export(FlatModule(subject), tuple(subject.inputs.tensors.values()))
    except Exception:
        return None
    return str(program.graph_module.print_readable(print_output=False))
