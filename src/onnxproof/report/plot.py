"""`proof.plot`: the report's charts, one at a time, for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from onnxproof.errors import UserError
from onnxproof.report import points
from onnxproof.report.extras import require

if TYPE_CHECKING:
    from onnxproof.proof.proof import Proof
    from onnxproof.report.charts import Chart


class Plot:
    """Charts of a proof. Each method returns an altair chart; what the proof does not hold is an error that says so."""

    def __init__(self, proof: Proof) -> None:
        require("altair")
        from onnxproof.report import charts

        self._proof, self._charts = proof, charts

    def errors(self) -> Chart:
        """Error against magnitude, with the band of rounding and the line of the contract."""
        rows = points.list_judged(self._proof)
        shown = points.collect_error_points(rows)
        return self._draw("a compared float output", self._charts.draw_errors, shown, rows, self._proof)

    def heatmap(self) -> Chart:
        """Sizes × value profiles."""
        return self._draw(
            "a case", self._charts.draw_heatmap, points.collect_heat_cells(points.list_judged(self._proof))
        )

    def path(self, case: str | None = None) -> Chart:
        """The error's way through the graph."""
        if case is not None and case not in self._proof.blame:
            raise UserError(f"case {case!r} was not located; located are {sorted(self._proof.blame)}")
        return self._draw("a located difference", self._charts.draw_path, points.collect_path_steps(self._proof, case))

    def latency(self, batch: int | None = None) -> Chart:
        """The spread of the times at one batch; where only percentiles are known, the median against the batch."""
        spread = points.collect_distributions(self._proof, batch)
        return self._draw("", self._charts.draw_latency, spread) if spread else self.latency_by_batch()

    def latency_by_batch(self) -> Chart:
        """The median against the batch."""
        return self._draw("latency: run `bench`", self._charts.draw_latency_by_batch, points.choose_timed(self._proof))

    def speedup(self) -> Chart:
        """Times faster than PyTorch, with intervals."""
        return self._draw(
            "a speed-up: run `bench`", self._charts.draw_speedup, points.read_measured(self._proof).speedup
        )

    def confusion(self, side: str = "candidate") -> Chart:
        """The confusion matrix of `baseline` or `candidate`."""
        cells = points.collect_confusion_cells(self._proof, side)
        return self._draw("a confusion matrix: run `evaluate`", self._charts.draw_confusion, cells, side)

    def precision_recall(self) -> Chart:
        """Precision against recall, with a slider for the threshold."""
        rows = points.collect_curve_points(self._proof)
        return self._draw(
            "curves over thresholds: run `evaluate`", self._charts.draw_precision_recall, rows, self._proof
        )

    def calibration(self) -> Chart:
        """How often a side is right when it is so sure."""
        bins = points.collect_calibration_bins(self._proof)
        return self._draw("a calibration: run `evaluate`", self._charts.draw_calibration, bins)

    def _draw(self, needed: str, chart: Callable[..., Chart], rows: Sequence[Any], *options: Any) -> Chart:
        if not rows:
            raise UserError(f"there is nothing to draw: this proof does not hold {needed}")
        styled: Chart = chart(rows, *options).configure(**self._charts.make_theme(dark=False) | {"background": "white"})
        return styled
