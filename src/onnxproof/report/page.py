"""What the page says: a proof as the plain data that the template and the page's script show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from onnxproof.findings import CATALOGUE, Finding
from onnxproof.proof.artifact import Port
from onnxproof.proof.codec import plain
from onnxproof.proof.proof import Proof
from onnxproof.proof.subject import SubjectFacts
from onnxproof.report import charts, points, quality_page
from onnxproof.report.figure import Content, Figure
from onnxproof.report.groups import groups
from onnxproof.report.points import Judged, Row, top
from onnxproof.report.reproduce import commands
from onnxproof.report.wording import (
    grave,
    number,
    place,
    reason,
    short,
    size,
    standing,
    subject_name,
    value,
    verdict_word,
)
from onnxproof.version import __version__

SHOWN_FINDINGS = 200
SHOWN_ROWS = 60
"""Rows of a chart's table."""
SHOWN_PORTS = 100
CELLS = 240
"""Characters of one text in a table."""
STEPS_SHARE = 0.25
"""Of the room for data, what the nodes of the error's path may take; the cases get the rest."""
RESERVE = 150_000
"""Bytes kept for markup, findings and the charts' own data."""


def make(proof: Proof, *, room: int = 1_000_000, findings: int = SHOWN_FINDINGS) -> Content:
    """Everything on the page; `room` is how many bytes data and markup may take, `findings` how many are shown."""
    content = Content()
    rows = points.judged(proof)
    order = {id(finding): index for index, finding in enumerate(proof.findings)}
    content.context = {
        "title": f"{verdict_word(proof)} {short(subject_name(proof), 80)}",
        "verdict": proof.verdict,
        "word": verdict_word(proof),
        "name": short(subject_name(proof), CELLS),
        "lead": _lead(proof),
        "reasons": [_reason(finding, order[id(finding)]) for finding in grave(proof)[:5]],
        "more_reasons": max(0, len(grave(proof)) - 5),
        "facts": _facts(proof, rows),
        "baseline": proof.subject.baseline,
        "groups": [asdict(group) for group in groups(proof, rows)[:SHOWN_ROWS]],
        "parity": _parity(proof, rows, content),
        "blames": _blames(proof),
        "latency": _latency(proof, content),
        "quality": quality_page.make(proof, content),
        "model": _model(proof),
        "findings": [_finding(proof, finding) for finding in proof.findings[:findings]],
        "more_findings": max(0, len(proof.findings) - findings),
        "severities": _severities(proof.findings[:findings]),
        "environment": [(name, _plain(item)) for name, item in plain(proof.environment).items()],
        "commands": commands(proof),
        "version": proof.environment.onnxproof or __version__,
    }
    left = max(room - RESERVE - len(_compact(content.specs)), 50_000)
    steps, cases = pack_steps(proof, int(left * STEPS_SHARE)), pack_cases(rows, int(left * (1 - STEPS_SHARE)))
    content.context |= {"total_cases": len(rows), "kept_cases": len(cases["rows"]), "total_steps": steps["total"]}
    content.data |= {"charts": content.specs, "cases": cases, "steps": steps}
    return content


# --- the head ---------------------------------------------------------------------------------------------------------


def _lead(proof: Proof) -> str:
    """What the verdict means, in a sentence; the reasons follow it."""
    gating = grave(proof)
    blocks, reviews = (sum(1 for f in gating if f.severity == name) for name in ("block", "review"))
    if not gating:
        said = reason(proof).removeprefix(": ")
        return short(said[:1].upper() + said[1:], 600) + "." if said else "Exported. Nothing was compared yet."
    looked = f"{reviews} more to look at" if blocks else f"{reviews} thing{'s' * (reviews != 1)} to look at"
    rest = f", and {looked}" * bool(reviews)
    if blocks:
        return f"Do not ship this file: {blocks} finding{'s' * (blocks != 1)} against it{rest}."
    return f"Look before you ship: {looked}."


def _reason(finding: Finding, index: int) -> Row:
    return {
        "index": index,
        "code": finding.code,
        "severity": finding.severity,
        "message": short(finding.message, CELLS),
    }


def _facts(proof: Proof, rows: Sequence[Judged]) -> list[tuple[str, str]]:
    """The few numbers beside the verdict."""
    numbers = [one.comparison for one in rows if one.comparison is not None and one.case.fair]
    facts = [("cases compared", f"{proof.compared:,}")] if proof.cases else []
    if numbers:
        facts.append(("largest difference", number(top(c.max_abs for c in numbers))))
        facts.append(("worst noise ratio", number(top(c.noise_ratio for c in numbers))))
    speed = points.speedups(proof)
    if speed:
        best = max(speed, key=lambda row: row["ratio"])
        facts.append((f"speed-up at batch {best['batch']}", f"{best['ratio']:.2f}×"))
    if proof.quality is not None and proof.quality.flip_rate is not None:
        facts.append(("decisions flipped", f"{proof.quality.flip_rate.value:.2%}"))
    if proof.artifact is not None:
        facts.append(("size", size(proof.artifact.bytes)))
    return facts


# --- parity -----------------------------------------------------------------------------------------------------------


def _parity(proof: Proof, rows: Sequence[Judged], content: Content) -> list[Figure]:
    return [
        *content.draw(charts.errors(proof, rows, width="container"), _errors_figure(proof, rows)),
        *content.draw(charts.heatmap(rows, width="container"), _heat_figure(rows)),
        *content.draw(charts.path(proof, width="container"), _path_figure(proof)),
    ]


def _errors_figure(proof: Proof, rows: Sequence[Judged]) -> Figure:
    shown = sorted(points.error_points(rows), key=lambda row: -row["error"])
    fair = [one for one in rows if one.case.fair]
    agree = sum(1 for one in fair if one.state == "agrees")
    caption = (
        f"Each point is a pair of values that decides the tolerance. The band is what rounding explains: up to {proof.policy.noise:g} times "
        f"{proof.subject.baseline}'s own distance from the float64 truth. The dashed line is the tolerance. On fair inputs {agree} of {len(fair)} comparisons agree"
    )
    caption += f"; the largest difference is {number(shown[0]['error'])} in {shown[0]['case']}." if shown else "."
    head = ("case", "output", "magnitude", "difference", "noise ratio", "verdict")
    table = [
        (r["case"], r["output"], number(r["magnitude"]), number(r["error"]), number(r["noise_ratio"]), r["state"])
        for r in shown[:SHOWN_ROWS]
    ]
    return Figure("errors", "Error against magnitude", caption, head, _short_rows(table), len(shown) - len(table))


def _heat_figure(rows: Sequence[Judged]) -> Figure:
    cells = points.heat_cells(rows)
    profiles = {cell["profile"] for cell in cells}
    bad = [cell for cell in cells if cell["state"] in ("review", "block")]
    sizes, all_sizes = {cell["sizes"] for cell in cells}, {one.case.group for one in rows}
    caption = f"Rows are sizes, columns are kinds of values, the number is the noise ratio (NaN: on one side only). {len(bad)} of {len(cells)} cells do not agree."
    if len(all_sizes) > len(sizes):
        caption += f" Shown are the worst {len(sizes)} of {len(all_sizes)} sizes."
    head = ("sizes", "values", "verdict", "largest difference", "noise ratio", "cases")
    worst = sorted(cells, key=lambda cell: -points.STATES.index(cell["state"]) if cell["state"] != "rejected" else 1)
    table = [
        (c["sizes"], c["profile"], c["state"], number(c["max_abs"]), number(c["noise_ratio"]), str(c["cases"]))
        for c in worst[:SHOWN_ROWS]
    ]
    width = 110 + 30 * len(profiles)
    return Figure("heatmap", "Sizes × values", caption, head, _short_rows(table), len(cells) - len(table), width)


def _path_figure(proof: Proof) -> Figure:
    steps = points.path_steps(proof)
    culprits = [step for step in steps if step["culprit"]]
    born = "introduces" if len(culprits) == 1 else "introduce"
    caption = f"{len(steps)} nodes on the way, {len(culprits)} {born} an error of their own. NaN and infinity are drawn above the rest."
    if culprits:
        first = culprits[0]
        caption += f" The first culprit is {first['op']} {first['node']}" + (
            f", {first['source']}." if first["source"] else "."
        )
    return Figure("path", "The error's path through the layers", caption)


def _blames(proof: Proof) -> list[Row]:
    """Who is to blame in each located case."""
    return [
        {
            "case": case,
            "stage": blame.stage or "unknown",
            "rewrite": blame.rewrite,
            "removed": short(", ".join(blame.removed[:10]), CELLS),
            "vanishes": blame.vanishes,
            "unseen": blame.unseen,
            "culprits": [_culprit(culprit) for culprit in blame.culprits[:8]],
            "more": max(0, len(blame.culprits) - 8),
        }
        for case, blame in list(proof.blame.items())[:8]
    ]


def _culprit(culprit: Any) -> Row:
    return {
        "node": short(culprit.node, CELLS),
        "op": short(culprit.op, CELLS),
        "module": short(culprit.module or "", CELLS) or ("the model itself" if culprit.module == "" else "–"),
        "source": f"{culprit.file}:{culprit.line}" if culprit.file else "",
        "text": short(culprit.text or "", CELLS),
        "introduced": number(culprit.introduced),
        "says": f"should be {value(culprit.expected)}, is {value(culprit.got)}" if culprit.got is not None else "",
    }


# --- latency ----------------------------------------------------------------------------------------------------------


def _latency(proof: Proof, content: Content) -> Row | None:
    if proof.latency is None:
        return None
    rows, speed = points.batch_rows(proof), points.speedups(proof)
    figures = [
        *_distributions(proof, content),
        *content.draw(charts.speedup(proof, width="container"), _speedup_figure(speed, proof.subject.baseline)),
        *content.draw(
            charts.latency_by_batch(proof, width="container"),
            Figure("latency-batch", "Latency against batch", "The median of each contender; the bar reaches to p95."),
        ),
    ]
    keys = ("load_ms", "first_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "throughput")
    table = [
        [row["contender"], _plain(row["batch"]), _plain(row["samples"]), *(number(row[key]) for key in keys)]
        for row in rows
    ]
    return {"figures": figures, "table": _short_rows(table[:100])}


def _distributions(proof: Proof, content: Content) -> list[Figure]:
    """One chart for each batch with single times, up to four."""
    made: list[Figure] = []
    for batch in list(dict.fromkeys(row["batch"] for row in points.distributions(proof)))[:4]:
        figure = Figure(f"latency-{len(made)}", f"Distribution at batch {batch}", _spread(proof, batch))
        made += content.draw(charts.latency(proof, batch, width="container"), figure)
    return made


def _spread(proof: Proof, batch: Any) -> str:
    parts = [
        f"{row['contender']}: median {number(row['p50_ms'])} ms, p95 {number(row['p95_ms'])} ms"
        for row in points.batch_rows(proof)
        if row["batch"] == batch
    ]
    return "; ".join(parts) + ". The slowest 0.5 % are drawn together at the end."


def _speedup_figure(speed: Sequence[Row], baseline: str) -> Figure:
    said = "; ".join(
        f"batch {r['batch']}: {r['ratio']:.2f}× [{number(r['low'])}, {number(r['high'])}]" for r in speed[:12]
    )
    caption = f"{baseline}'s time over the candidate's, with its interval. {said}."
    return Figure("speedup", "Speed-up", caption)


# --- the model --------------------------------------------------------------------------------------------------------


def _model(proof: Proof) -> Row:
    artifact, subject = proof.artifact, proof.subject
    operators = list(artifact.operators.items()) if artifact is not None else []
    most = max((count for _, count in operators), default=1)
    return {
        "facts": [(name, text) for name, text in _model_facts(proof) if text],
        "inputs": [_port(port, subject) for port in (artifact.inputs if artifact is not None else ())[:SHOWN_PORTS]],
        "outputs": [_port(port, None) for port in (artifact.outputs if artifact is not None else ())[:SHOWN_PORTS]],
        "operators": [(name, count, round(100 * count / most)) for name, count in operators[:24]],
        "more_operators": max(0, len(operators) - 24),
    }


def _model_facts(proof: Proof) -> Iterable[tuple[str, str]]:
    artifact, subject, env = proof.artifact, proof.subject, proof.environment
    yield "class", subject.class_ or ""
    yield "target", subject.target or ""
    yield "parameters", f"{subject.parameters:,}" if subject.parameters is not None else ""
    if artifact is not None:
        yield "file", artifact.path
        yield "size", size(artifact.bytes) if artifact.bytes else ""
        yield "nodes", f"{artifact.nodes:,}"
        yield "opset", str(artifact.opset)
        yield "exporter", artifact.exporter
        yield "sha256", artifact.sha256
    yield "providers", ", ".join(env.providers)
    yield "optimization", env.optimization or ""


def _port(port: Port, subject: SubjectFacts | None) -> Row:
    limits = subject.ranges.get(port.name) if subject is not None else None
    example = subject.inputs.get(port.name) if subject is not None else None
    sizes = ["?" if size is None else str(size) for size in port.shape] if port.shape is not None else ["unknown"]
    return {
        "name": short(port.name, CELLS),
        "dtype": port.dtype,
        "shape": " × ".join(sizes),
        "example": " × ".join(map(str, example.shape)) if example is not None else "",
        "range": f"{limits[0]} to {limits[1]}" if limits else "",
    }


# --- findings ---------------------------------------------------------------------------------------------------------


def _finding(proof: Proof, finding: Finding) -> Row:
    entry = CATALOGUE.get(finding.code)
    evidence = finding.evidence
    return {
        "code": finding.code,
        "severity": finding.severity,
        "standing": standing(finding),
        "excuse": finding.accepted or finding.known,
        "title": entry.title if entry else "",
        "message": short(finding.message, 1200),
        "place": short(place(finding), 800),
        "help": short(finding.help, 1200),
        "what": entry.what if entry else "",
        "why": entry.why if entry else "",
        "numbers": [(name, number(item)) for name, item in evidence.items() if _is_number(item)][:12],
        "worst": [_element(element) for element in (evidence.get("worst") or ())[:3]],
        "counterexample": _counterexample(evidence.get("counterexample")),
        "log": short_log(evidence),
    }


def _counterexample(one: Mapping[str, Any] | None) -> str:
    return short(str(one.get("text") or one.get("file") or ""), CELLS) if one else ""


def _element(element: Mapping[str, Any]) -> tuple[str, str, str]:
    index = ", ".join(map(str, element.get("index") or ()))
    return f"[{index}]", value(element.get("baseline")), value(element.get("candidate"))


def short_log(evidence: Mapping[str, Any]) -> str:
    """What a process or a library said, where that is evidence."""
    return next((str(evidence[key])[-1500:] for key in ("log", "error", "traceback") if evidence.get(key)), "")


def _is_number(item: Any) -> bool:
    return isinstance(item, (int, float)) and not isinstance(item, bool)


def _severities(findings: Sequence[Finding]) -> list[tuple[str, int]]:
    counts = {
        name: sum(1 for f in findings if standing(f) == name)
        for name in ("block", "review", "note", "known", "accepted")
    }
    return [(name, count) for name, count in counts.items() if count]


def _plain(item: Any) -> str:
    if isinstance(item, (list, tuple)):
        return ", ".join(map(str, item))
    return "–" if item is None else str(item)


def _short_rows(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    return [[short(cell, CELLS) for cell in row] for row in rows]


# --- tables that the page's script shows ------------------------------------------------------------------------------


class Texts:
    """Texts that repeat, as numbers."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self.bytes = 0

    def __call__(self, text: str) -> int:
        if text not in self.index:
            self.index[text] = len(self.index)
            # Characters that could end a script are written with six.
            self.bytes += len(_compact(text)) + 5 * sum(text.count(character) for character in "<>&")
        return self.index[text]


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b","


def pack_cases(rows: Sequence[Judged], room: int) -> Row:
    """Every output of every case as a short row, the worst first; those that do not fit are left out from the end."""
    texts, packed, used = Texts(), [], 0
    for one in sorted(rows, key=lambda row: row.weight):
        row = _pack_case(one, texts)
        used += len(_compact(row))
        if used + texts.bytes > room:
            break
        packed.append(row)
    return {"texts": list(texts.index), "rows": packed, "total": len(rows)}


def _pack_case(one: Judged, texts: Texts) -> list[Any]:
    c = one.comparison
    name = [texts(short(part, CELLS)) for part in one.case.name.split("/")]
    note = texts(short(one.case.message, 160)) if one.case.message and c is None else None
    numbers = (c.max_abs, c.max_rel, c.noise_ratio, c.exactness.error if c.exactness else None) if c else (None,) * 4
    return [name, texts(c.output) if c else note, points.STATES.index(one.state), *map(_brief, numbers)]


def pack_steps(proof: Proof, room: int) -> Row:
    """The nodes on the error's path as short rows."""
    texts, packed, used = Texts(), [], 0
    steps = points.path_steps(proof)
    for step in sorted(steps, key=lambda s: (not s["culprit"], s["step"])):
        words = (step["node"], step["op"], step["module"] or "", step["source"])
        row = [step["step"], *(texts(short(word, CELLS)) for word in words), int(step["culprit"])]
        row += [_brief(step["introduced"]), _brief(step["inherited"])]
        used += len(_compact(row))
        if used + texts.bytes > room:
            break
        packed.append(row)
    return {"texts": list(texts.index), "rows": sorted(packed), "total": len(steps)}


def _brief(value: float | None) -> float | None:
    """Three digits: more are in the proof."""
    return None if value is None else float(f"{value:.3g}")
