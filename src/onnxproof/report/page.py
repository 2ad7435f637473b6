"""What the page says: a proof as the plain data that the template and the page's script show."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from onnxproof.findings import Finding
from onnxproof.proof.codec import to_plain
from onnxproof.proof.proof import Proof
from onnxproof.proof.trials import ModuleTrials, Trials
from onnxproof.report import charts, points, quality_page, quantization, runtimes, wording
from onnxproof.report.charts import Content, Figure
from onnxproof.report.groups import group_cases
from onnxproof.report.points import Judged, Row, find_top
from onnxproof.report.reproduce import list_commands
from onnxproof.version import __version__

T = TypeVar("T")
SHOWN_FINDINGS = 200
# Rows of a chart's table.
SHOWN_ROWS = 60
# Of the room for data, what the nodes of the error's path may take; the cases get the rest.
STEPS_SHARE = 0.25
# Bytes kept for markup, findings and the charts' own data.
RESERVE = 150_000


def make_page(proof: Proof, *, room: int = 1_000_000, findings: int = SHOWN_FINDINGS) -> Content:
    """Everything on the page; `room` is how many bytes data and markup may take, `findings` how many are shown."""
    content = Content()
    rows = points.list_judged(proof)
    gating, order = wording.choose_grave(proof), {id(finding): index for index, finding in enumerate(proof.findings)}
    content.context = {
        "proof": proof,
        "word": wording.name_verdict(proof),
        "name": wording.name_subject(proof),
        "lead": _tell_lead(proof),
        "reasons": [(order[id(finding)], finding) for finding in gating],
        "facts": _list_facts(proof, rows),
        "baseline": proof.subject.baseline,
        "counterpart": proof.counterpart,
        "groups": group_cases(proof, rows)[:SHOWN_ROWS],
        "parity": _draw_parity(proof, rows, content),
        "trials": _list_trials(proof.trials),
        "blames": list(proof.blame.items())[:8],
        "latency": _draw_latency(proof, content),
        "quantization": quantization.make_section(proof.quantization),
        "precisions": _precisions(proof, content),
        "runtimes": runtimes.make_section(proof.runtimes),
        "quality": quality_page.make_section(proof, content),
        "model": [(name, text) for name, text in _list_model_facts(proof) if text],
        "findings": [_prepare_finding(finding) for finding in proof.findings[:findings]],
        "severities": _count_severities(proof.findings[:findings]),
        "environment": [
            (name, ", ".join(item) if isinstance(item, list) else wording.show_cell(item))
            for name, item in to_plain(proof.environment).items()
        ],
        "commands": list_commands(proof),
        "version": proof.environment.onnxproof or __version__,
    }
    left = max(room - RESERVE - len(_compact(content.specs)), 50_000)
    steps, cases = pack_steps(proof, int(left * STEPS_SHARE)), pack_cases(rows, int(left * (1 - STEPS_SHARE)))
    content.context |= {"total_cases": len(rows), "kept_cases": len(cases["rows"]), "total_steps": steps["total"]}
    content.data |= {"charts": content.specs, "cases": cases, "steps": steps}
    return content


def _tell_lead(proof: Proof) -> str:
    """What the verdict means, in a sentence; the reasons follow it."""
    gating = wording.choose_grave(proof)
    blocks, reviews = (sum(1 for f in gating if f.severity == name) for name in ("block", "review"))
    if not gating:
        said = wording.tell_reason(proof).removeprefix(": ")
        return (
            wording.shorten(said[:1].upper() + said[1:], 600) + "." if said else "Exported. Nothing was compared yet."
        )
    looked = f"{reviews} more to look at" if blocks else f"{reviews} thing{'s' * (reviews != 1)} to look at"
    rest = f", and {looked}" * bool(reviews)
    if blocks:
        return f"Do not ship this file: {blocks} finding{'s' * (blocks != 1)} against it{rest}."
    return f"Look before you ship: {looked}."


def _list_trials(trials: Trials | None) -> Row | None:
    """What was tried by itself, module by module; those of which something was not first."""
    if trials is None or not trials.pieces:
        return None
    ordered = sorted(trials.modules, key=lambda one: one.tried - one.pieces)
    rows = [
        (one.module or "the model itself", one.pieces, one.tried, one.values, _tell_untried(one))
        for one in ordered[:SHOWN_ROWS]
    ]
    columns = {
        name: place for place, name in enumerate(("module", "pieces", "tried", "inputs of their own", "not tried"))
    }
    more = f"; {len(ordered) - SHOWN_ROWS} more modules are in the proof" * (len(ordered) > SHOWN_ROWS)
    return {"told": wording.tell_trials(trials) + more, "columns": columns, "rows": rows}


def _tell_untried(one: ModuleTrials) -> str:
    """How many of a module's pieces were not tried, and why."""
    left = one.pieces - one.tried - one.uncut
    told = [f"{one.uncut} without a clean cut"] * bool(one.uncut) + [f"{left} for lack of work"] * bool(left)
    return ", ".join(told) or "–"


def _list_facts(proof: Proof, rows: Sequence[Judged]) -> list[tuple[str, str]]:
    """The few numbers beside the verdict."""
    numbers = [one.comparison for one in rows if one.comparison is not None and one.case.fair]
    facts = [("cases compared", f"{proof.compared:,}")] if proof.cases else []
    if numbers:
        facts.append(("largest difference", wording.show_number(find_top(c.max_abs for c in numbers))))
        facts.append(("worst noise ratio", wording.show_number(find_top(c.noise_ratio for c in numbers))))
    speed = points.read_measured(proof).speedup
    if speed:
        best = max(speed, key=lambda one: one.ratio)
        facts.append((f"speed-up at batch {best.batch}", f"{best.ratio:.2f}×"))
    if proof.quality is not None and proof.quality.flip_rate is not None:
        facts.append(("decisions flipped", f"{proof.quality.flip_rate.value:.2%}"))
    if proof.artifact is not None:
        facts.append(("size", wording.show_size(proof.artifact.bytes)))
    return facts


def _draw_parity(proof: Proof, rows: Sequence[Judged], content: Content) -> list[Figure]:
    shown, cells, steps = (
        points.collect_error_points(rows),
        points.collect_heat_cells(rows),
        points.collect_path_steps(proof),
    )
    return [
        *content.draw(_caption_errors(proof, shown, rows), charts.draw_errors, shown, rows, proof),
        *content.draw(_caption_heatmap(cells, rows), charts.draw_heatmap, cells),
        *content.draw(_caption_path(steps), charts.draw_path, steps),
    ]


def _caption_errors(proof: Proof, shown: Sequence[Row], rows: Sequence[Judged]) -> Figure:
    worst = sorted(shown, key=lambda row: -row["error"])
    fair = [one for one in rows if one.case.fair]
    agree = sum(1 for one in fair if one.state == "agrees")
    caption = (
        f"Each point is a pair of values that decides the tolerance. The band is what rounding explains: up to {proof.policy.noise:g} times "
        f"{proof.counterpart}'s own distance from the float64 truth. The dashed line is the tolerance. On fair inputs {agree} of {len(fair)} comparisons agree"
    )
    largest = [f"; the largest difference is {wording.show_number(row['error'])} in {row['case']}" for row in worst[:1]]
    caption = "".join([caption, *largest, "."])
    columns = {name: name for name in ("case", "output", "magnitude")}
    columns |= {"difference": "error", "noise ratio": "noise_ratio", "verdict": "state"}
    more = len(shown) - SHOWN_ROWS
    return Figure("errors", "Error against magnitude", caption, columns, worst[:SHOWN_ROWS], more)


def _caption_heatmap(cells: Sequence[Row], rows: Sequence[Judged]) -> Figure:
    profiles, sizes = {cell["profile"] for cell in cells}, {cell["sizes"] for cell in cells}
    bad, all_sizes = [cell for cell in cells if cell["state"] in ("review", "block")], {one.case.group for one in rows}
    caption = f"Rows are sizes, columns are kinds of values, the number is the noise ratio (NaN: on one side only). {len(bad)} of {len(cells)} cells do not agree."
    if len(all_sizes) > len(sizes):
        caption += f" Shown are the worst {len(sizes)} of {len(all_sizes)} sizes."
    columns = {"sizes": "sizes", "values": "profile", "verdict": "state"}
    columns |= {"largest difference": "max_abs", "noise ratio": "noise_ratio", "cases": "cases"}
    worst = sorted(cells, key=lambda cell: -points.STATES.index(cell["state"]) if cell["state"] != "rejected" else 1)
    more, width = len(cells) - SHOWN_ROWS, 110 + 30 * len(profiles)
    return Figure("heatmap", "Sizes × values", caption, columns, worst[:SHOWN_ROWS], more, width)


def _caption_path(steps: Sequence[Row]) -> Figure:
    culprits = [step for step in steps if step["culprit"]]
    born = "introduces" if len(culprits) == 1 else "introduce"
    caption = f"{len(steps)} nodes on the way, {len(culprits)} {born} an error of their own. NaN and infinity are drawn above the rest."
    for first in culprits[:1]:
        source = f", {first['source']}" * bool(first["source"])
        caption += f" The first culprit is {first['op']} {first['node']}{source}."
    return Figure("path", "The error's path through the layers", caption)


def _draw_latency(proof: Proof, content: Content) -> list[Figure]:
    batch = Figure("latency-batch", "Latency against batch", "The median of each contender; the bar reaches to p95.")
    return [
        *_draw_distributions(proof, content),
        *content.draw(_caption_speedup(proof), charts.draw_speedup, points.read_measured(proof).speedup),
        *content.draw(batch, charts.draw_latency_by_batch, points.choose_timed(proof)),
    ]


def _draw_distributions(proof: Proof, content: Content) -> list[Figure]:
    """One chart for each batch with single times, up to four."""
    made: list[Figure] = []
    for batch in points.list_timed_batches(proof)[:4]:
        figure = Figure(f"latency-{len(made)}", f"Distribution at batch {batch}", _tell_spread(proof, batch))
        made += content.draw(figure, charts.draw_latency, points.collect_distributions(proof, batch))
    return made


def _tell_spread(proof: Proof, batch: int) -> str:
    parts = [
        f"{run.contender}: median {wording.show_number(run.p50_ms)} ms, p95 {wording.show_number(run.p95_ms)} ms"
        for run in points.read_measured(proof).runs
        if run.batch == batch
    ]
    return "; ".join(parts) + ". The slowest 0.5 % are drawn together at the end."


def _caption_speedup(proof: Proof) -> Figure:
    said = "; ".join(f"batch {one.batch}: {wording.show_gain(one)}" for one in points.read_measured(proof).speedup[:12])
    caption = f"{proof.subject.baseline}'s time over the candidate's, with its interval. {said}."
    return Figure("speedup", "Speed-up", caption)


def _precisions(proof: Proof, content: Content) -> list[Figure]:
    caption = "Left and down is better. The bar is the interval of the time against the float file's; the line is that file's own."
    figure = Figure("precisions", "Size against time", caption)
    return content.draw(
        figure, charts.draw_precisions, quantization.collect_points(proof.quantization), proof.quantization
    )


def _list_model_facts(proof: Proof) -> Iterable[tuple[str, str]]:
    artifact, subject, env = proof.artifact, proof.subject, proof.environment
    yield "class", subject.class_ or ""
    yield "target", subject.target or ""
    yield "parameters", f"{subject.parameters:,}" if subject.parameters is not None else ""
    if artifact is not None:
        yield "file", artifact.path
        yield "size", wording.show_size(artifact.bytes) if artifact.bytes else ""
        yield "precision", artifact.precision.text if artifact.precision is not None else ""
        yield "held against", proof.counterpart if proof.chosen is not None else ""
        yield "nodes", f"{artifact.nodes:,}"
        yield "opset", str(artifact.opset)
        yield "exporter", artifact.exporter
        yield "sha256", artifact.sha256
    yield "providers", ", ".join(env.providers)
    yield "optimization", env.optimization or ""
    yield "took", ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in proof.timing.stages.items())


def _prepare_finding(finding: Finding) -> Row:
    evidence = finding.evidence
    one = evidence.get("counterexample") or {}
    return {
        "about": finding,
        "excuse": finding.accepted or finding.known,
        "numbers": [(name, wording.show_number(item)) for name, item in evidence.items() if wording.is_number(item)][
            :12
        ],
        "worst": (evidence.get("worst") or ())[:3],
        "counterexample": str(one.get("text") or one.get("file") or ""),
        "log": next((str(evidence[key])[-1500:] for key in ("log", "error", "traceback") if evidence.get(key)), ""),
    }


def _count_severities(findings: Sequence[Finding]) -> list[tuple[str, int]]:
    counts = Counter(map(wording.name_standing, findings))
    return [(name, counts[name]) for name in ("block", "review", "note", "known", "accepted") if counts[name]]


class Texts(dict[str, int]):
    """Texts that repeat, as numbers."""

    bytes = 0

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        # Characters that could end a script are written with six.
        self.bytes += len(_compact(text)) + 5 * sum(text.count(character) for character in "<>&")
        return self[text]


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b","


def _pack(items: Iterable[T], pack: Callable[[T, Texts], list[Any]], room: int, total: int) -> Row:
    """Short rows of the items in their order; those that do not fit are left out from the end."""
    texts, packed, used = Texts(), [], 0
    for item in items:
        row = pack(item, texts)
        used += len(_compact(row))
        if used + texts.bytes > room:
            break
        packed.append(row)
    return {"texts": list(texts), "rows": packed, "total": total}


def pack_cases(rows: Sequence[Judged], room: int) -> Row:
    """Every output of every case as a short row, the worst first."""
    return _pack(sorted(rows, key=lambda row: row.weight), _pack_case, room, len(rows))


def _pack_case(one: Judged, texts: Texts) -> list[Any]:
    c = one.comparison
    name = [texts[wording.shorten(part, wording.CELLS)] for part in one.case.name.split("/")]
    note = texts[wording.shorten(one.case.message, 160)] if one.case.message and c is None else None
    numbers = (c.max_abs, c.max_rel, c.noise_ratio, c.exactness.error if c.exactness else None) if c else (None,) * 4
    return [name, texts[c.output] if c else note, points.STATES.index(one.state), *map(_round, numbers)]


def pack_steps(proof: Proof, room: int) -> Row:
    """The nodes on the error's path as short rows in their order; the culprits have the first right to be there."""
    steps = points.collect_path_steps(proof)
    packed = _pack(sorted(steps, key=lambda s: (not s["culprit"], s["step"])), _pack_step, room, len(steps))
    return {**packed, "rows": sorted(packed["rows"])}


def _pack_step(step: Row, texts: Texts) -> list[Any]:
    words = [texts[wording.shorten(step[key] or "", wording.CELLS)] for key in ("node", "op", "module", "source")]
    return [step["step"], *words, int(step["culprit"]), _round(step["introduced"]), _round(step["inherited"])]


def _round(value: float | None) -> float | None:
    """Three digits: more are in the proof."""
    return None if value is None else float(f"{value:.3g}")
