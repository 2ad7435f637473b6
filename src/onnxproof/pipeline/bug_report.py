"""A bundle for a bug report: what somebody else needs to see a failure that the catalogue does not explain."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxproof.errors import FindingError, NotWritten, show_line, show_text
from onnxproof.files import write_file
from onnxproof.findings import Finding
from onnxproof.proof.codec import to_plain
from onnxproof.proof.environment import Environment

FOLDER = "bug-report"


def write_bundle(
    out: Path, *, message: str, trace: str, environment: Mapping[str, Any], program: str | None = None
) -> Path:
    """Write the parts as files that can be attached; nothing of the weights, nothing of the user's data."""
    folder = out / FOLDER
    files = {"error.txt: the whole chain of exceptions": trace}
    files["environment.json: versions and machine"] = json.dumps(dict(environment), indent=1)
    if program is not None:
        files["program.txt: the captured program, without weights"] = program
    listed = "\n".join(f"- {file}" for file in files)
    files["README.md"] = f"# Not explained\n\n    {show_line(message)}\n\n{listed}\n\nRead them before you send them.\n"
    for file, text in files.items():
        write_file(folder / file.partition(":")[0], show_text(text))
    return folder


def add_bundle(error: FindingError, out: Path, subject: Any, environment: Environment) -> Finding:
    """The finding; where it is not explained, with the folder that holds the evidence."""
    finding = error.finding
    if finding.entry.explained:
        return finding
    try:
        folder = write_bundle(
            out,
            message=finding.message,
            trace="".join(traceback.format_exception(error)),
            environment=to_plain(environment),
            program=_capture_program(subject),
        )
    except NotWritten:  # an extra: a full disk must not cost the finding
        return finding
    evidence = {**finding.evidence, "bundle": str(folder)}
    return replace(finding, evidence=evidence, help=f"{finding.help} A bundle for a bug report is in {folder}.")


def _capture_program(subject: Any) -> str | None:
    """The captured program as text, where it can be captured at all."""
    import torch

    from onnxproof.artifact.wrapper import FlatModule

    try:
        program = torch.export.export(FlatModule(subject), tuple(subject.inputs.tensors.values()))
    except Exception:
        return None
    return str(program.graph_module.print_readable(print_output=False))
