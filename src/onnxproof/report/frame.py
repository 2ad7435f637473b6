"""Proof → a pandas data frame: one row per output of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxproof.report.extras import require
from onnxproof.report.points import list_judged

if TYPE_CHECKING:
    from pandas import DataFrame

    from onnxproof.proof.proof import Proof

# Column → the way to its value; a way that ends early leaves its cell empty.
COLUMNS = {
    "case": "case.name",
    "sizes": "case.group",
    **{name: f"case.{name}" for name in ("profile", "fair", "status")},
    "state": "state",
    **{name: f"comparison.{name}" for name in ("output", "kind")},
    **{name: f"comparison.baseline_{name}" for name in ("dtype", "shape")},
    **{name: f"comparison.{name}" for name in ("size", "compared", "max_abs", "mean_abs", "max_rel", "mean_rel")},
    **{name: f"comparison.{name}" for name in ("max_ulp", "cosine", "scale", "outside", "mismatched", "noise_ratio")},
    **{name: f"comparison.noise.{name}" for name in ("worst_ratio", "unexplained")},
    "exactness": "comparison.exactness.error",
    "message": "case.message",
}


def to_frame(proof: Proof) -> DataFrame:
    """One row per output; a case without outputs (refused, rejected) has one row with its message."""
    require("pandas")
    import pandas

    rows = [{name: _follow(one, way) for name, way in COLUMNS.items()} for one in list_judged(proof)]
    return pandas.DataFrame(rows, columns=list(COLUMNS))


def _follow(value: Any, way: str) -> Any:
    for name in way.split("."):
        value = getattr(value, name, None)
    return value
