"""From the text of a failure to a finding: what happened, where, and what helps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from onnxproof.diagnosis import export, general, pasted, runtime
from onnxproof.diagnosis.chain import called, chain, errors_only, location, shortest
from onnxproof.diagnosis.operators import nearest
from onnxproof.diagnosis.record import Pattern
from onnxproof.findings import CATALOGUE, Finding, Where, found

RUNTIME: tuple[Pattern, ...] = (*runtime.LOADING, *runtime.RUNNING)
EXPORT: tuple[Pattern, ...] = (*export.SPECIFIC, *pasted.PATTERNS)
LAST: tuple[Pattern, ...] = (*export.WIDE, *runtime.WIDE, *pasted.WIDE, *general.PATTERNS)


def recognise(text: str, patterns: Sequence[Pattern] | None = None, where: Where | None = None) -> Finding | None:
    """The finding for a failure's text; None where nothing of the catalogue fits."""
    if patterns is None:
        errors = errors_only(text)
        return _first(errors, _spoken(errors), where) or _first(text, _spoken(text), where)
    return _first(text, patterns, where)


def _spoken(text: str) -> tuple[Pattern, ...]:
    """All patterns: whoever speaks is asked first."""
    speaks = re.search(r"onnxruntime|\bOrtException|Can't create a session|ERROR_CODE: ?\d", text, re.I) is not None
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
                help=_help(pattern, [group for group in match.groups() if group]),
            )
    return None


def diagnose(error: BaseException) -> Finding:
    """The finding for an export that failed."""
    text, where = chain(error), location(error)
    known = recognise(text, export.PATTERNS, where)
    whole = called(error)
    if known is not None and whole is not None:
        form = nearest(whole)
        help = f"Instead: {form}. {CATALOGUE[known.code].fix}" if form else known.help
        return replace(known, message=f"{known.message}, a part of {whole}", help=help)
    if known is not None:
        return known
    return found("OX101", f"the export failed: {shortest(text, 1)}", where=where, evidence={"error": shortest(text)})


def _help(pattern: Pattern, caught: Sequence[str]) -> str | None:
    if pattern.help is not None:
        return pattern.help
    form = nearest(caught[0]) if pattern.code == "OX108" and caught else None
    return f"Instead: {form}. {CATALOGUE[pattern.code].fix}" if form else None
