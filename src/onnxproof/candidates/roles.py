"""Who answers in a case. Inside, a stage of a case is a role; the proof calls it by the name it always had."""

from __future__ import annotations

BASELINE, TRUTH, CANDIDATE = "baseline", "truth", "candidate"
TOLD = {BASELINE: "pytorch", TRUTH: "float64", CANDIDATE: "onnxruntime"}


def name_stage(stage: str) -> str:
    """A stage as the proof and its messages call it."""
    return TOLD.get(stage, stage)
