"""Proof → rows for charts, tables and frames: plain data, bounded in number, the worst always among them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from onnxproof.policy.judgement import judge_case
from onnxproof.policy.merging import group_by
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison
from onnxproof.proof.latency import Latency, Run
from onnxproof.proof.proof import Proof
from onnxproof.report.wording import BORN, shorten
from onnxproof.request.thresholds import Policy

Row = Mapping[str, Any]
# What a case says, from the best to the worst; `rejected`: the baseline itself refuses it, so it says nothing.
STATES = ("agrees", "note", "review", "block", "rejected")
# Characters of a name in a chart's tooltip.
NAMED = 120
# Where a logarithmic axis puts a difference of zero, at most.
FAINT = 1e-12


@dataclass(frozen=True)
class Judged:
    """A comparison and what the policy says about it."""

    case: CaseResult
    comparison: Comparison | None
    state: str

    @property
    def weight(self) -> tuple[int, float, float]:
        """What sorts the worst first."""
        c = self.comparison
        ratio, error = (_drop_nonfinite(value) or 0.0 for value in ((c.noise_ratio, c.max_abs) if c else (None, None)))
        return (-_RANK[self.state], -ratio, -error)


_RANK = {"agrees": 1, "rejected": 0, "note": 2, "review": 3, "block": 4}


def list_judged(proof: Proof) -> list[Judged]:
    """Every output of every case with what the policy says about it, in the order of the proof."""
    return [one for case in proof.cases for one in _judge_case(case, proof.policy)]


def _judge_case(case: CaseResult, policy: Policy) -> Iterator[Judged]:
    if not case.outputs:
        state = "rejected" if case.status == "rejected" else "block" if case.fair else "note"
        yield Judged(case, None, state)
        return
    states: dict[str | None, str] = {}
    for finding in judge_case(case, policy):
        output = finding.where.output
        states[output] = max(states.get(output, "agrees"), finding.severity, key=_RANK.__getitem__)
    for comparison in case.outputs:
        yield Judged(case, comparison, states.get(comparison.output, "agrees"))


def _drop_nonfinite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def collect_error_points(rows: Sequence[Judged], limit: int = 800) -> list[Row]:
    """Errors against magnitudes: the pairs that decide the tolerance, one for each cell of a fine grid, worst first.

    Inputs that are not fair stay out: values of 1e30 would leave no room for the others.
    """
    cells: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one, c in _select_fair(sorted(rows, key=lambda row: row.weight)):
        for magnitude, error in _select_pairs(c):
            cell = (one.state, _bin_value(magnitude), _bin_value(error))
            if cell in cells:
                cells[cell]["count"] += 1
            elif len(cells) < limit:
                cells[cell] = {
                    "case": shorten(one.case.name, NAMED),
                    "output": shorten(c.output, NAMED),
                    "state": one.state,
                    "magnitude": magnitude,
                    "error": error,
                    "noise_ratio": _drop_nonfinite(c.noise_ratio),
                    "count": 1,
                }
    return list(cells.values())


def _select_fair(rows: Iterable[Judged]) -> Iterator[tuple[Judged, Comparison]]:
    return ((one, one.comparison) for one in rows if one.case.fair and one.comparison is not None)


def _select_pairs(c: Comparison) -> Iterable[tuple[float, float]]:
    """(|baseline|, |difference|) pairs of a comparison that can be drawn."""
    return ((a, b) for a, b in c.envelope if a < BORN and b < BORN) if c.kind == "float" else ()


def _bin_value(value: float) -> int | None:
    return round(math.log10(value) * 16) if value > 0 else None


def draw_noise_band(rows: Sequence[Judged], times: float, bins: int = 24) -> list[Row]:
    """What rounding costs at a magnitude: from PyTorch's own distance from the truth to so many times it."""
    seen = [
        (math.log10(magnitude), c.noise.baseline_rms)
        for _, c in _select_fair(rows)
        if c.noise is not None and c.noise.baseline_rms > 0
        for magnitude, _ in _select_pairs(c)
        if magnitude > 0
    ]
    low, high = min(seen, default=(0.0, 0.0))[0], max(seen, default=(0.0, 0.0))[0]
    width = max((high - low) / bins, 1e-9)
    groups = group_by(seen, lambda pair: min(int((pair[0] - low) / width), bins - 1))
    return [
        {
            "magnitude": 10 ** (low + (index + 0.5) * width),
            "low": min(noise for _, noise in group),
            "high": times * max(noise for _, noise in group),
        }
        for index, group in sorted(groups.items())
    ]


def draw_contract_line(proof: Proof, low: float, high: float, steps: int = 40) -> list[Row]:
    """The largest difference that the tolerance allows at a magnitude: one line for all outputs, one for each with its own."""
    outputs = {"tolerance": proof.policy.tolerance}
    outputs |= {f"tolerance of {name}": t for name, t in list(proof.policy.outputs.items())[:4]}
    step = (high / low) ** (1 / (steps - 1))
    magnitudes = [low * step**i for i in range(steps)]
    return [
        {"line": name, "magnitude": m, "limit": limit}
        for name, t in outputs.items()
        for m in magnitudes
        if 0 < (limit := min(t.atol + t.rtol * m, t.max_abs)) < BORN
    ]


def collect_heat_cells(rows: Sequence[Judged], limit: int = 32) -> list[Row]:
    """Sizes × value profiles: the worst of each pair. Where there are too many sizes or profiles, those with the worst stay."""
    cells = group_by(rows, lambda one: (one.case.group, one.case.profile))
    # The worst come first, so a name's first place is that of its worst.
    worst = [(one.case.group, one.case.profile) for one in sorted(rows, key=lambda one: one.weight)]
    sizes, profiles = (set(list(dict.fromkeys(pair[i] for pair in worst))[:limit]) for i in (0, 1))
    return [_make_cell(*key, group) for key, group in cells.items() if key[0] in sizes and key[1] in profiles]


def _make_cell(sizes: str, profile: str, group: Sequence[Judged]) -> Row:
    numbers = [one.comparison for one in group if one.comparison is not None]
    return {
        "sizes": sizes,
        "profile": profile,
        "state": max((one.state for one in group), key=_RANK.__getitem__),
        "max_abs": find_top(c.max_abs for c in numbers),
        "noise_ratio": find_top(c.noise_ratio for c in numbers),
        "cases": len({one.case.name for one in group}),
        "nonfinite": any(c.pattern.differing for c in numbers),
    }


def find_top(values: Iterable[float | None]) -> float | None:
    """The largest of the values that are there and finite."""
    return max((value for value in values if value is not None and math.isfinite(value)), default=None)


def collect_path_steps(proof: Proof, case: str | None = None) -> list[Row]:
    """Every node on the error's way, in order: the error it inherits, the error it introduces, whether it is a culprit."""
    if not proof.blame:
        return []
    blame = proof.blame[case] if case is not None else max(proof.blame.values(), key=lambda b: len(b.path))
    culprits = {culprit.node: f"{culprit.file}:{culprit.line}" if culprit.file else "" for culprit in blame.culprits}
    return [
        {"step": i, **asdict(step), "culprit": step.node in culprits, "source": culprits.get(step.node, "")}
        for i, step in enumerate(blame.path)
    ]


def thin_steps(steps: Sequence[Row], limit: int = 300) -> list[Row]:
    """At most about so many steps, in order: all culprits (up to the limit) and the worst of each stretch."""
    if len(steps) <= limit:
        return list(steps)
    stretch = math.ceil(len(steps) / limit)
    kept = {
        max(range(i, min(i + stretch, len(steps))), key=lambda j: steps[j]["introduced"])
        for i in range(0, len(steps), stretch)
    }
    kept |= set([i for i, step in enumerate(steps) if step["culprit"]][:limit])
    return [steps[i] for i in sorted(kept)]


def read_measured(proof: Proof) -> Latency:
    """What the clock said; nothing where latency was not asked for."""
    return proof.latency or Latency((), ())


def choose_timed(proof: Proof) -> list[Run]:
    """The runs with a median."""
    return [run for run in read_measured(proof).runs if run.p50_ms]


def list_timed_batches(proof: Proof) -> list[int]:
    """The batches of which the proof keeps single times."""
    return list(dict.fromkeys(run.batch for run in read_measured(proof).runs if len(run.samples) > 1))


def collect_distributions(proof: Proof, batch: int | None = None, bins: int = 48) -> list[Row]:
    """Histograms of the times of each contender at one batch (the first where none is named), as shares."""
    chosen = next(iter(list_timed_batches(proof)), None) if batch is None else batch
    rows: list[Row] = []
    for run in read_measured(proof).runs:
        times = sorted(sample / 1e6 for sample in run.samples)
        if len(times) < 2 or run.batch != chosen:
            continue
        low, high = times[0], times[min(len(times) - 1, math.ceil(0.995 * len(times)))]
        width = (high - low) / bins or max(high, 1e-9) / bins
        for index, count in sorted(Counter(min(int((time - low) / width), bins) for time in times).items()):
            ends = {"start": low + index * width, "end": low + index * width + width, "floor": 0}
            rows.append({"contender": run.contender, **ends, "share": count / len(times), "count": count})
    return rows


SIDES = ("baseline", "candidate")


def collect_confusion_cells(proof: Proof, side: str) -> list[Row]:
    """The confusion matrix of one side as rows, with the share of each true class."""
    if proof.quality is None or proof.quality.confusion is None:
        return []
    labels = proof.quality.confusion.labels
    return [
        {"true": true, "predicted": other, "count": count, "share": count / (sum(row) or 1), "right": i == j}
        for i, (true, row) in enumerate(zip(labels, getattr(proof.quality.confusion, side), strict=False))
        for j, (other, count) in enumerate(zip(labels, row, strict=False))
    ]


def collect_curve_points(proof: Proof) -> list[Row]:
    """Counts and rates of both sides over all thresholds, in ascending order."""
    thresholds = proof.quality.thresholds if proof.quality is not None else None
    columns = {side: asdict(getattr(thresholds, side)) for side in SIDES} if thresholds is not None else {}
    rows = [
        {"side": side, **dict(zip(curve, values, strict=True))}
        for side, curve in columns.items()
        for values in zip(*curve.values(), strict=False)
    ]
    return sorted(rows, key=lambda row: (row["side"], row["threshold"]))


def choose_threshold(proof: Proof, curves: Sequence[Row]) -> float:
    """Where a slider over the curves starts: at the threshold that decisions were made with."""
    limits: list[float] = [row["threshold"] for row in curves]
    thresholds = proof.quality.thresholds if proof.quality is not None else None
    chosen = thresholds.chosen.threshold if thresholds is not None else limits[0]
    return min(max(chosen, min(limits)), max(limits))


def collect_calibration_bins(proof: Proof) -> list[Row]:
    """How often a side is right when it is so sure."""
    calibration = (proof.quality.calibration if proof.quality is not None else None) or {}
    return [{"side": side, **asdict(one)} for side in SIDES for one in calibration.get(side, ())]
