"""Proof → rows for charts, tables and frames: plain data, bounded in number, the worst always among them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from onnxproof.policy.judgement import judge_case
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison
from onnxproof.proof.latency import Run, Speedup
from onnxproof.proof.proof import Proof
from onnxproof.proof.thresholds import Curve
from onnxproof.report.wording import BORN, short
from onnxproof.request.thresholds import Policy

Row = dict[str, Any]
STATES = ("agrees", "note", "review", "block", "rejected")
"""What a case says, from the best to the worst; `rejected`: the baseline itself refuses it, so it says nothing."""
NAMED = 120
"""Characters of a name in a chart's tooltip."""
FAINT = 1e-12
"""Where a logarithmic axis puts a difference of zero, at most."""


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
        ratio = _finite(c.noise_ratio) if c is not None else None
        error = _finite(c.max_abs) if c is not None else None
        return (-_RANK[self.state], -(ratio or 0.0), -(error or 0.0))


_RANK = {"agrees": 1, "rejected": 0, "note": 2, "review": 3, "block": 4}


def judged(proof: Proof) -> list[Judged]:
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


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


# --- errors against magnitude -----------------------------------------------------------------------------------------


def error_points(rows: Sequence[Judged], limit: int = 800) -> list[Row]:
    """Errors against magnitudes: the pairs that decide the tolerance, one for each cell of a fine grid, worst first.

    Inputs that are not fair stay out: values of 1e30 would leave no room for the others.
    """
    cells: dict[tuple[Any, ...], Row] = {}
    for one in sorted((row for row in rows if row.case.fair), key=lambda row: row.weight):
        for magnitude, error in _pairs(one):
            cell = (one.state, _step(magnitude), _step(error))
            if cell in cells:
                cells[cell]["count"] += 1
            elif len(cells) < limit:
                cells[cell] = _point(one, magnitude, error)
    return list(cells.values())


def _pairs(one: Judged) -> Iterable[tuple[float, float]]:
    """(|baseline|, |difference|) pairs of a comparison that can be drawn."""
    c = one.comparison
    pairs = c.envelope if c is not None and c.kind == "float" else ()
    return ((a, b) for a, b in pairs if math.isfinite(a) and math.isfinite(b) and a < BORN and b < BORN)


def _step(value: float) -> int | None:
    return round(math.log10(value) * 16) if value > 0 else None


def _point(one: Judged, magnitude: float, error: float) -> Row:
    assert one.comparison is not None
    return {
        "case": short(one.case.name, NAMED),
        "output": short(one.comparison.output, NAMED),
        "state": one.state,
        "magnitude": magnitude,
        "error": error,
        "noise_ratio": _finite(one.comparison.noise_ratio),
        "count": 1,
    }


def noise_band(rows: Sequence[Judged], times: float, bins: int = 24) -> list[Row]:
    """What rounding costs at a magnitude: from PyTorch's own distance from the truth to so many times it."""
    seen = [
        (magnitude, one.comparison.noise.baseline_rms)
        for one in rows
        if one.comparison is not None and one.comparison.noise is not None and one.case.fair
        for magnitude, _ in _pairs(one)
        if magnitude > 0 and one.comparison.noise.baseline_rms > 0
    ]
    if not seen:
        return []
    low, high = math.log10(min(seen)[0]), math.log10(max(seen)[0])
    width = max((high - low) / bins, 1e-9)
    groups: dict[int, list[tuple[float, float]]] = {}
    for magnitude, noise in seen:
        groups.setdefault(min(int((math.log10(magnitude) - low) / width), bins - 1), []).append((magnitude, noise))
    return [
        {
            "magnitude": 10 ** (low + (index + 0.5) * width),
            "low": min(noise for _, noise in group),
            "high": times * max(noise for _, noise in group),
        }
        for index, group in sorted(groups.items())
    ]


def contract_line(proof: Proof, low: float, high: float, steps: int = 40) -> list[Row]:
    """The largest difference that the tolerance allows at a magnitude: one line for all outputs, one for each with its own."""
    outputs = {"tolerance": proof.policy.tolerance}
    outputs |= {f"tolerance of {name}": t for name, t in list(proof.policy.outputs.items())[:4]}
    start, end = math.log10(low), math.log10(high)
    magnitudes = [10 ** (start + (end - start) * i / (steps - 1)) for i in range(steps)]
    return [
        {"line": name, "magnitude": m, "limit": limit}
        for name, t in outputs.items()
        for m in magnitudes
        if 0 < (limit := min(t.atol + t.rtol * m, t.max_abs)) < BORN
    ]


# --- shapes × values --------------------------------------------------------------------------------------------------


def heat_cells(rows: Sequence[Judged], limit: int = 32) -> list[Row]:
    """Sizes × value profiles: the worst of each pair. Where there are too many sizes or profiles, those with the worst stay."""
    cells: dict[tuple[str, str], list[Judged]] = {}
    for one in rows:
        cells.setdefault((one.case.group, one.case.profile), []).append(one)
    sizes = _kept([(size, group) for (size, _), group in cells.items()], limit)
    profiles = _kept([(profile, group) for (_, profile), group in cells.items()], limit)
    return [_cell(*key, group) for key, group in cells.items() if key[0] in sizes and key[1] in profiles]


def _kept(named: Sequence[tuple[str, Sequence[Judged]]], limit: int) -> set[str]:
    worst: dict[str, tuple[int, float, float]] = {}
    for name, group in named:
        here = min(one.weight for one in group)
        worst[name] = min(worst.get(name, here), here)
    return set(sorted(worst, key=lambda name: worst[name])[:limit])


def _cell(sizes: str, profile: str, group: Sequence[Judged]) -> Row:
    numbers = [one.comparison for one in group if one.comparison is not None]
    return {
        "sizes": sizes,
        "profile": profile,
        "state": max((one.state for one in group), key=_RANK.__getitem__),
        "max_abs": top(c.max_abs for c in numbers),
        "noise_ratio": top(c.noise_ratio for c in numbers),
        "cases": len({one.case.name for one in group}),
        "nonfinite": any(c.pattern.differing for c in numbers),
    }


def top(values: Iterable[float | None]) -> float | None:
    """The largest of the values that are there and finite."""
    return max((value for value in values if value is not None and math.isfinite(value)), default=None)


# --- the error's way through the graph --------------------------------------------------------------------------------


def path_steps(proof: Proof, case: str | None = None) -> list[Row]:
    """Every node on the error's way, in order: the error it inherits, the error it introduces, whether it is a culprit."""
    if not proof.blame:
        return []
    blame = proof.blame[case] if case is not None else max(proof.blame.values(), key=lambda b: len(b.path))
    culprits = {culprit.node: culprit for culprit in blame.culprits}
    return [
        {
            "step": index,
            "node": step.node,
            "op": step.op,
            "module": step.module,
            "introduced": step.introduced,
            "inherited": step.inherited,
            "culprit": step.node in culprits,
            "source": _source(culprits.get(step.node)),
        }
        for index, step in enumerate(blame.path)
    ]


def _source(culprit: Any) -> str:
    return f"{culprit.file}:{culprit.line}" if culprit is not None and culprit.file else ""


def thinned(steps: Sequence[Row], limit: int = 300) -> list[Row]:
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


# --- latency ----------------------------------------------------------------------------------------------------------


def runs(proof: Proof) -> tuple[Run, ...]:
    """The measured runs; none where latency was not asked for."""
    return proof.latency.runs if proof.latency is not None else ()


def distributions(proof: Proof, bins: int = 48) -> list[Row]:
    """Histograms of the times of each contender at each batch, as shares, where the proof keeps single times."""
    rows: list[Row] = []
    for run in runs(proof):
        times = sorted(sample / 1e6 for sample in run.samples)
        if len(times) < 2:
            continue
        low, high = times[0], times[min(len(times) - 1, math.ceil(0.995 * len(times)))]
        width = (high - low) / bins or max(high, 1e-9) / bins
        counts: dict[int, int] = {}
        for time in times:
            index = min(int((time - low) / width), bins)
            counts[index] = counts.get(index, 0) + 1
        for index, count in sorted(counts.items()):
            start = low + index * width
            rows.append(
                {**_contender(run), "start": start, "end": start + width, "share": count / len(times), "count": count}
            )
    return rows


def _contender(run: Run | Speedup) -> Row:
    return {"contender": run.contender, "batch": run.batch}


def batch_rows(proof: Proof) -> list[Row]:
    """Latency of each contender at each batch."""
    keys = ("load_ms", "first_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "throughput")
    return [
        {**_contender(run), "samples": run.count, **{key: getattr(run, key) for key in keys}} for run in runs(proof)
    ]


def speedups(proof: Proof) -> list[Row]:
    """How many times faster the candidate is, with the interval."""
    measured = proof.latency.speedup if proof.latency is not None else ()
    return [{**_contender(one), "ratio": one.ratio, "low": one.low, "high": one.high} for one in measured]


# --- quality ----------------------------------------------------------------------------------------------------------


SIDES = ("baseline", "candidate")


def confusion_cells(proof: Proof, side: str) -> list[Row]:
    """The confusion matrix of one side as rows, with the share of each true class."""
    if proof.quality is None or proof.quality.confusion is None:
        return []
    confusion = proof.quality.confusion
    labels = confusion.labels
    return [
        {"true": labels[i], "predicted": labels[j], "count": count, "share": count / (sum(row) or 1), "right": i == j}
        for i, row in enumerate(getattr(confusion, side))
        for j, count in enumerate(row)
    ]


def curves(proof: Proof) -> dict[str, list[Row]]:
    """Side → its points over all thresholds, in ascending order."""
    thresholds = proof.quality.thresholds if proof.quality is not None else None
    if thresholds is None:
        return {}
    made = {side: _points(getattr(thresholds, side)) for side in SIDES}
    return {side: rows for side, rows in made.items() if rows}


def _points(curve: Curve) -> list[Row]:
    names = [field.name for field in fields(curve)]
    rows = [dict(zip(names, values, strict=True)) for values in zip(*(getattr(curve, n) for n in names), strict=True)]
    return sorted(rows, key=lambda row: row["threshold"])


def calibration_bins(proof: Proof) -> list[Row]:
    """How often a side is right when it is so sure."""
    calibration = (proof.quality.calibration if proof.quality is not None else None) or {}
    return [
        {"side": side, "confidence": one.confidence, "accuracy": one.accuracy, "count": one.count}
        for side in SIDES
        for one in calibration.get(side, ())
    ]
