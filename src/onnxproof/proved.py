"""A proof in Python's hands: the record, with what one does with it at a prompt and in a notebook."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from onnxproof.policy.judgement import judge_against, judge_proof
from onnxproof.proof import proof as record

if TYPE_CHECKING:
    from pandas import DataFrame

    from onnxproof.report.plot import Plot
    from onnxproof.request.thresholds import Policy


@dataclass(frozen=True)
class Proof(record.Proof):
    """What was found out about a model, with its charts, its page and its judgement under other policies."""

    @classmethod
    def of(cls, proof: record.Proof) -> Proof:
        """The same record."""
        return cls(**{field.name: getattr(proof, field.name) for field in fields(proof)})

    def judged(self, policy: Policy) -> Proof:
        """The same facts under another policy."""
        return judge_proof(self, policy)

    def against(self, baseline: record.Proof) -> Proof:
        """The same facts where only what is worse than in the baseline gates."""
        return judge_against(self, baseline)

    @property
    def plot(self) -> Plot:
        """Charts for a notebook: `proof.plot.errors()`, `.heatmap()`, `.path()`, `.latency()`, `.confusion()`, …"""
        from onnxproof.report.plot import Plot  # what shows a proof is loaded when it is looked at

        return Plot(self)

    def to_frame(self) -> DataFrame:
        """A pandas data frame with one row per output of a case."""
        from onnxproof.report.frame import to_frame

        return to_frame(self)

    def to_html(self) -> str:
        """The whole report as one self-contained page."""
        from onnxproof.report.html import render_html

        return render_html(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from onnxproof.report.notebook import render_notebook

        return render_notebook(self)
