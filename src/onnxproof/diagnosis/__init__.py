"""From the text of a failure to a finding: what happened, where, and what helps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from onnxproof.diagnosis import export, general, pasted, prose, runtime
from onnxproof.diagnosis.chain import called, chain, errors_only, location, shortest
from onnxproof.diagnosis.operators import nearest
from onnxproof.diagnosis.pattern import Pattern
from onnxproof.findings import Finding, Where, entry_of, found

OPERATOR = re.compile(r"\b(?:aten|prims)(?:\.|::)\w+")
RUNTIME: tuple[Pattern, ...] = (*runtime.LOADING, *runtime.RUNNING)
EXPORT: tuple[Pattern, ...] = (*export.SPECIFIC, *pasted.PATTERNS)
LAST: tuple[Pattern, ...] = (*export.WIDE, *pasted.ELSEWHERE, *runtime.WIDE, *pasted.WIDE, *general.PATTERNS)
BAKED = (
    "A parametrization computes the weight in every forward: bake it before the export, "
    "`torch.nn.utils.parametrize.remove_parametrizations(layer, 'weight')`."
)
QUOTES = str.maketrans("‘’“”´", "''\"\"'")
"""Issue trackers and editors turn the quotes of a message into others."""


def recognise(text: str, patterns: Sequence[Pattern] | None = None, where: Where | None = None) -> Finding | None:
    """The finding for a failure's text; None where nothing of the catalogue fits."""
    return _pasted(text.translate(QUOTES), where) if patterns is None else _first(text, patterns, where)


def _pasted(text: str, where: Where | None) -> Finding | None:
    """What a text from elsewhere says: a message, a whole log, or somebody's own words."""
    errors = errors_only(text)
    known = _first(text, pasted.FRAMES, where) or _first(errors, _spoken(errors), where)
    known = known or _first(text, _spoken(text), where)
    if known is not None and known.entry.around:
        return _first(text, pasted.RAISED_IN, where) or known
    if known is None or known.entry.vague:
        return _first(errors, prose.PATTERNS, where) or known
    return known


def _spoken(text: str) -> tuple[Pattern, ...]:
    """All patterns: whoever speaks is asked first."""
    speaks = (
        re.search(
            r"onnxruntime|no available backend found|\bOrtException|Can't create a session|ERROR_CODE: ?\d", text, re.I
        )
        is not None
    )
    return (*RUNTIME, *EXPORT, *LAST) if speaks else (*EXPORT, *RUNTIME, *LAST)


def _first(text: str, patterns: Sequence[Pattern], where: Where | None) -> Finding | None:
    for pattern in patterns:
        match = pattern.fragment.search(text)
        if match:
            return found(
                pattern.code,
                pattern.message(match).replace(" (?)", ""),
                where=where,
                evidence={"error": shortest(text)},
                help=_help(pattern, [group for group in match.groups() if group], text),
            )
    return None


def diagnose(error: BaseException) -> Finding:
    """The finding for an export that failed."""
    text, where = chain(error), location(error)
    known = recognise(text, export.PATTERNS, where)
    if known is not None and ".parametrizations." in f".{where.module}.":
        return replace(known, help=BAKED)
    whole = called(error)
    if known is not None and whole is not None:
        form = nearest(whole)
        help = f"Instead: {form}. {known.entry.fix}" if form else known.help
        message = known.message if whole in known.message else f"{known.message}{known.entry.link} {whole}"
        return replace(known, message=message, help=help)
    if known is not None:
        return known
    failed = found("OX101", f"the export failed: {shortest(text, 1)}", where=where, evidence={"error": shortest(text)})
    form = _mentioned(text)
    return replace(failed, help=f"Instead: {form}. {failed.help}") if form else failed


def _help(pattern: Pattern, caught: Sequence[str], text: str) -> str | None:
    entry, form = entry_of(pattern.code), None
    if entry.operator == "caught" and caught:
        form = nearest(caught[0])
    elif entry.operator == "mentioned":  # an operator without a fake implementation may be PyTorch's own
        form = _mentioned(text)
    return f"Instead: {form}. {entry.fix}" if form else pattern.help


def _mentioned(text: str) -> str | None:
    """What to write instead of the first operator in a text for which there is a form."""
    return next(filter(None, map(nearest, OPERATOR.findall(text))), None)
