"""`proof.plot`: the report's charts, one at a time, for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxproof.errors import UserError
from onnxproof.report.extras import require

if TYPE_CHECKING:
    from onnxproof.proof.proof import Proof
    from onnxproof.report.charts import Chart


class Plot:
    """Charts of a proof. Each method returns an altair chart; what the proof does not hold is an error that says so."""

    def __init__(self, proof: Proof) -> None:
        require("altair")
        from onnxproof.report import charts, points

        self._proof, self._charts, self._points = proof, charts, points

    def errors(self) -> Chart:
        """Error against magnitude, with the band of rounding and the line of the contract."""
        return self._styled(
            self._charts.errors(self._proof, self._points.judged(self._proof)), "a compared float output"
        )

    def heatmap(self) -> Chart:
        """Sizes × value profiles."""
        return self._styled(self._charts.heatmap(self._points.judged(self._proof)), "a case")

    def path(self, case: str | None = None) -> Chart:
        """The error's way through the graph."""
        if case is not None and case not in self._proof.blame:
            raise UserError(f"case {case!r} was not located; located are {sorted(self._proof.blame)}")
        return self._styled(self._charts.path(self._proof, case), "a located difference")

    def latency(self, batch: int | None = None) -> Chart:
        """The spread of the times at one batch; where only percentiles are known, the median against the batch."""
        spread = self._charts.latency(self._proof, batch)
        return self._styled(spread or self._charts.latency_by_batch(self._proof), "latency: run `bench`")

    def latency_by_batch(self) -> Chart:
        """The median against the batch."""
        return self._styled(self._charts.latency_by_batch(self._proof), "latency: run `bench`")

    def speedup(self) -> Chart:
        """Times faster than PyTorch, with intervals."""
        return self._styled(self._charts.speedup(self._proof), "a speed-up: run `bench`")

    def confusion(self, side: str = "candidate") -> Chart:
        """The confusion matrix of `baseline` or `candidate`."""
        return self._styled(self._charts.confusion(self._proof, side), "a confusion matrix: run `evaluate`")

    def precision_recall(self) -> Chart:
        """Precision against recall, with a slider for the threshold."""
        return self._styled(self._charts.precision_recall(self._proof), "curves over thresholds: run `evaluate`")

    def calibration(self) -> Chart:
        """How often a side is right when it is so sure."""
        return self._styled(self._charts.calibration(self._proof), "a calibration: run `evaluate`")

    def _styled(self, chart: Any, needed: str) -> Chart:
        if chart is None:
            raise UserError(f"there is nothing to draw: this proof does not hold {needed}")
        styled: Chart = chart.configure(**self._charts.theme(dark=False) | {"background": "white"})
        return styled
