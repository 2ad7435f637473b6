"""A bundle for a bug report: what somebody else needs to see a failure that the catalogue does not explain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = "bug-report"


def write_bundle(
    out: Path, *, message: str, trace: str, environment: Mapping[str, Any], program: str | None = None
) -> Path:
    """Write the parts as files that can be attached; nothing of the weights, nothing of the user's data."""
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "error.txt").write_text(trace, encoding="utf-8")
    (folder / "environment.json").write_text(json.dumps(dict(environment), indent=1), encoding="utf-8")
    if program is not None:
        (folder / "program.txt").write_text(program, encoding="utf-8")
    parts = ["error.txt: the whole chain of exceptions", "environment.json: versions and machine"]
    parts += ["program.txt: the captured program, without weights"] * (program is not None)
    listed = "\n".join(f"- {part}" for part in parts)
    (folder / "README.md").write_text(
        f"# {message}\n\n{listed}\n\nRead the files before you send them.\n", encoding="utf-8"
    )
    return folder
