"""Keywords of Python's → typed values of options → a request. The one place where options of several groups meet."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from onnxproof.request.option import filled, list_options
from onnxproof.request.request import Delivery, Request
from onnxproof.request.thresholds import SHOWN_PERCENTILES
from onnxproof.request.verbs import EVERYTHING, VERBS, Verb

F = TypeVar("F", bound=Callable[..., Any])
# What only the command line does: it prints, writes and exits.
ONLY_WRITTEN = frozenset(["in_process", "fix", "all", "jobs", *list_options(Delivery)])
# Verbs that look at labels.
EVALUATING = ("prove", "evaluate", "demo", "quantize")


def show_options(verb: str) -> Callable[[F], F]:
    """Show a verb's options in the signature of a function that takes them as `**options`, for `help()`, notebooks and the reference."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        known = {parameter.name for parameter in own} | ONLY_WRITTEN
        shown = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default)
            for name, option in VERBS[verb].options().items()
            if name not in known or (name == "baseline" and verb == "bench")
        ]
        function.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]  # how functions say what they take
        return function

    return decorate


def take_keywords(verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Python's keywords as typed values; None leaves an option as it is."""
    options = VERBS[verb].options()
    unknown = next((name for name in given if name not in options), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, options, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"{verb}() got an unexpected keyword argument {unknown!r}{hint}")
    return {name: options[name].take(value, name) for name, value in given.items() if value is not None}


def build_request(verb: str, values: Mapping[str, Any], *, cases: bool | None = None, **place: Any) -> Request:
    """A request from typed values of the verb's options; `place` says where the subject is."""
    chosen: Verb = VERBS[verb]
    homes = chosen.homes()
    request: Request = filled(EVERYTHING, {homes[name][0]: value for name, value in values.items()})
    labels, ids = (request.evaluate.labels, request.evaluate.ids) if request.evaluate is not None else (None, None)
    kept = str(Path(request.out) / "counterexamples")
    request = replace(
        request,
        verb=verb,
        verify=replace(request.verify, labels=labels, ids=ids, counterexamples=kept),
        steps=replace(request.steps, cases=chosen.cases if cases is None else cases),
        quantize=request.quantize if verb == "quantize" else None,
        **place,
    )
    return _decide_evaluation(_decide_times(request))


def _decide_times(request: Request) -> Request:
    """Times are taken where they are asked for, or where a limit can only be shown to hold by them."""
    asked = request.verb == "bench" or request.steps.bench or request.judgement.latency.promised
    if not asked or request.bench is None:
        return replace(request, bench=None)
    shares = tuple(SHOWN_PERCENTILES[name] for name in request.judgement.latency.max_latency)
    return replace(request, bench=replace(request.bench, percentiles=shares))


def _decide_evaluation(request: Request) -> Request:
    """Labels are looked at by the verbs that judge answers, where there are data."""
    settings, data = request.evaluate, request.verify.data
    if request.verb not in EVALUATING or data is None or not request.steps.evaluate or settings is None:
        return replace(request, evaluate=None)
    required = request.verb == "evaluate" or settings.labels is not None
    return replace(request, evaluate=replace(settings, data=data, seed=request.verify.seed, required=required))
