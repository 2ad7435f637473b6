"""What this version reads differently from how an earlier release wrote it: the one place that knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from onnxproof.proof.codec import rename
from onnxproof.proof.subject import SubjectFacts

SIZES = re.compile(r"(\w[^=,]*)=(\d+)")


def upgrade(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a proof as this version's fields want them; what has another form is left for the reader to refuse."""
    changed = {**data, "subject": rename(data.get("subject"), SubjectFacts)}
    if isinstance(data.get("cases"), list):
        changed["cases"] = [_add_sizes(case) for case in data["cases"]]
    return changed


def _add_sizes(case: Any) -> Any:
    """Version 0.1.0 wrote sizes into the name only: `batch=7,seq=16/normal/seed=0`."""
    if not isinstance(case, Mapping) or "sizes" in case or not isinstance(case.get("name"), str):
        return case
    first = case["name"].split("/")[0]
    parts = [SIZES.fullmatch(part) for part in first.split(",")]
    return {**case, "sizes": {part[1]: int(part[2]) for part in parts if part is not None}}
