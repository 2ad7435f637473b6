"""Proof → a pandas data frame: one row per output of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxproof.report.extras import require
from onnxproof.report.points import Judged, judged

if TYPE_CHECKING:
    from pandas import DataFrame

    from onnxproof.proof.proof import Proof

NUMBERS = ("size", "compared", "max_abs", "mean_abs", "max_rel", "mean_rel", "max_ulp", "cosine", "scale", "outside")
COLUMNS = (
    *("case", "sizes", "profile", "fair", "status", "state", "output", "kind", "dtype", "shape"),
    *NUMBERS,
    *("mismatched", "noise_ratio", "worst_ratio", "unexplained", "exactness", "message"),
)


def to_frame(proof: Proof) -> DataFrame:
    """One row per output; a case without outputs (refused, rejected) has one row with its message."""
    require("pandas")
    import pandas

    return pandas.DataFrame([_row(one) for one in judged(proof)], columns=list(COLUMNS))


def _row(one: Judged) -> dict[str, Any]:
    case, c = one.case, one.comparison
    row: dict[str, Any] = {
        "case": case.name,
        "sizes": case.group,
        "profile": case.profile,
        "fair": case.fair,
        "status": case.status,
        "state": one.state,
        "message": case.message,
    }
    if c is None:
        return row
    row |= {"output": c.output, "kind": c.kind, "dtype": c.baseline_dtype, "shape": c.baseline_shape}
    row |= {name: getattr(c, name) for name in NUMBERS}
    row |= {"mismatched": c.mismatched, "noise_ratio": c.noise_ratio}
    if c.noise is not None:
        row |= {"worst_ratio": c.noise.worst_ratio, "unexplained": c.noise.unexplained}
    if c.exactness is not None:
        row["exactness"] = c.exactness.error
    return row
