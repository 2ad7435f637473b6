"""Words and choices that all reports share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from onnxproof.errors import show_line
from onnxproof.findings import Finding
from onnxproof.policy.precision import count_unlabelled
from onnxproof.proof.latency import Speedup
from onnxproof.proof.proof import Proof
from onnxproof.proof.rollout import Rollout
from onnxproof.proof.trials import Trials
from onnxproof.report import quality

# The share of rejected cases from which on the first line tells of them.
MANY = 0.2
WORDS = {"ship": "SHIP", "review": "REVIEW", "block": "BLOCK"}
# Errors from here on stand for NaN or infinity on one side only.
BORN = 1e299
# Characters of one text in a table.
CELLS = 240
# Pairs of a state that are named.
SHOWN_PAIRS = 2


def choose_grave(proof: Proof) -> list[Finding]:
    """What gates; a consequence goes without saying where its reason is there too."""
    gating = [f for f in proof.findings if f.weight]
    return [f for f in gating if not f.entry.consequence] or gating


def tell_headline(proof: Proof) -> str:
    """The verdict and its first reason, in one line."""
    return show_line(f"{name_verdict(proof)}  {name_subject(proof)}{tell_reason(proof)}")


def name_verdict(proof: Proof) -> str:
    """SHIP, REVIEW, BLOCK; EXPORTED where nothing was asked but an export."""
    asked = proof.cases or proof.latency is not None or proof.quality is not None
    only_exported = not asked and proof.artifact is not None and not choose_grave(proof)
    return "EXPORTED" if only_exported else WORDS[proof.verdict]


def tell_reason(proof: Proof) -> str:
    """Why the verdict is what it is, with its colon; empty after an export only."""
    reasons = choose_grave(proof)
    if reasons:
        more = f" (+{len(reasons) - 1} more)" if len(reasons) > 1 else ""
        return f": {reasons[0].message}{more}"
    if name_verdict(proof) == "EXPORTED":
        return ""
    told = [_tell_compared(proof)] if proof.cases else []
    cause = proof.chosen.kind if proof.chosen is not None else "rounding"
    told += [quality.tell_headline(proof.quality, cause)] if proof.quality is not None else []
    return f": {'; '.join(told) or 'nothing gates'}"


def _tell_compared(proof: Proof) -> str:
    """What the cases say where nothing gates."""
    healed = f", healed by {proof.healing.change}" if proof.healing is not None and proof.healing.healed else ""
    silenced = _tell_silenced(proof)
    what = f"nothing but {silenced}" if silenced else _tell_right(proof)
    left_out = {*proof.planned} - {case.name for case in proof.cases}
    of = f" of {len(proof.planned)}" if left_out else ""
    rejected = sum(case.status == "rejected" for case in proof.cases)
    # A few are edges of what the module takes; many, and what was compared is not what was planned.
    but = f" ({rejected} rejected by {proof.subject.baseline})" if rejected > MANY * len(proof.cases) else ""
    return f"{proof.compared}{of} cases compared{but}, {what}{healed}"


def _tell_right(proof: Proof) -> str:
    """Of a lower precision: whether it was held against exact arithmetic, and what it changes on data that have no labels."""
    if proof.chosen is None:
        return "every difference is rounding"
    held = any(c.noise is not None or c.max_abs is not None for case in proof.cases for c in case.outputs)
    changed, rows = count_unlabelled(proof)
    told = [f"{proof.chosen.kind} computed right"] * held
    told += [f"{changed} of {rows} decisions on your data changed"] * (rows > 0 and proof.quality is None)
    return ", ".join(told) or "nothing gates"


def _tell_silenced(proof: Proof) -> str:
    """What would gate if it were not known or accepted."""
    quiet = [f for f in proof.findings if f.severity != "note" and not f.weight]
    known = sum(1 for f in quiet if f.known is not None)
    accepted = len(quiet) - known
    parts = [f"{known} known from the baseline"] * bool(known) + [f"{accepted} accepted"] * bool(accepted)
    return " and ".join(parts)


def name_subject(proof: Proof) -> str:
    """The subject's name, or a stand-in."""
    return proof.subject.name or "the model"


def tell_place(finding: Finding) -> str:
    """Where, in one line."""
    where = finding.where
    named = {name: getattr(where, name) for name in ("output", "case", "node", "module")}
    parts = [f"{name} {value}" for name, value in named.items() if value]
    parts += [f"{where.file}:{where.line}"] if where.file else []
    count = finding.evidence.get("case_count", 1)
    more = [f"and {count - 1} more cases"] if count > 1 else []
    stage = [f"stage {finding.stage}"] if finding.stage else []
    return ", ".join(parts + more + stage)


def list_details(finding: Finding, elements: Iterable[str] = ()) -> list[str]:
    """What stands below a message, a line each: where, the worst elements, what to do."""
    where = tell_place(finding)
    return [*[f"where: {where}"] * bool(where), *elements, f"help: {finding.help}"]


def list_worst_elements(finding: Finding, baseline: str) -> list[str]:
    """The worst elements with both values, a line each."""
    rows = []
    for element in (finding.evidence.get("worst") or ())[:3]:
        b, c = element["baseline"], element["candidate"]
        difference = f"  difference {c - b:.3g}" if is_number(b) and is_number(c) else ""
        rows.append(f"{tuple(element['index'])}: {baseline} {show_value(b)}  onnxruntime {show_value(c)}{difference}")
    return rows


def is_number(value: Any) -> bool:
    """Whether it can be subtracted; true and false cannot."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def show_value(value: Any) -> str:
    """A tensor's element as text."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def shorten(text: str, limit: int) -> str:
    """One line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def show_size(count: float) -> str:
    """Bytes as text."""
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def show_number(value: float | None) -> str:
    """A measured number with three digits; – where there is none, ∞ where a side is not finite."""
    if value is None or math.isnan(value):
        return "–"
    if abs(value) >= BORN:
        return "∞"
    if 1000 <= abs(value) < 1e6:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.1e}" if value and not 0.001 <= abs(value) < 1e6 else f"{value:.3g}"


def show_cell(value: Any) -> str:
    """What a table shows: a measured number, or – where there is none, or the text itself."""
    return show_number(value) if value is None or isinstance(value, float) else str(value)


def show_gain(speedup: Speedup) -> str:
    """How many times faster, with the interval."""
    return f"{speedup.ratio:.2f}× [{show_number(speedup.low)}, {show_number(speedup.high)}]"


def show_mark(finding: Finding) -> str:
    """Why a finding does not gate although it was found: ' [accepted: …]' or ' [known: …]'."""
    word = name_standing(finding)
    return f" [{word}: {getattr(finding, word)}]" if word != finding.severity else ""


def name_standing(finding: Finding) -> str:
    """The word for a finding's weight: its severity, `accepted` or `known`."""
    if finding.accepted is not None:
        return "accepted"
    return "known" if finding.known is not None else finding.severity


def tell_state(rollout: Rollout) -> str:
    """What goes round, and how far both sides went with it."""
    pairs = [into if out == into else f"{out} → {into}" for out, into in rollout.state.items()]
    more = f" and {len(pairs) - SHOWN_PAIRS} more" if len(pairs) > SHOWN_PAIRS else ""
    how = "guessed by names and shapes, --state none turns it off" if rollout.guessed else "as asked"
    ran = f"{len(rollout.steps)} of {rollout.planned} steps in free run, noise ratio up to {rollout.worst:.2g}"
    return f"  state: {', '.join(pairs[:SHOWN_PAIRS])}{more} ({how}); {ran}"


def tell_trials(t: Trials) -> str:
    """How much of the graph was tried by itself, and whether all of it agreed."""
    shown = [" ".join(f"{name}={size}" for name, size in sizes.items()) for sizes in t.sizes]
    at = f", at {', '.join(shown)} too" if shown else ""
    agreed = f"; every one agreed on its own edges{at}" if not t.latent and t.tried == t.pieces else ""
    return f"{t.tried} of {t.pieces} pieces tried by themselves on {t.values} inputs of their own{agreed}"
