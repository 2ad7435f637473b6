"""The policy that a request asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from onnxproof.request.option import list_options
from onnxproof.request.request import Limits
from onnxproof.request.thresholds import Judgement, Policy, Tolerance

NAMES = ("atol", "rtol", "max_abs")


def make_policy(asked: Judgement, base: Policy | None = None) -> Policy:
    """The thresholds of a policy with those in their place that the user gave."""
    start = base or Policy()
    tolerance = _merge_tolerance(asked, start.tolerance)
    limits = {name: one for name, one in _read_options(asked.latency).items() if one not in (None, {})}
    gates: dict[str, Any] = {
        name: {**getattr(start.quality, name), **one} for name, one in _read_options(asked.quality).items()
    }
    return replace(
        start,
        tolerance=tolerance,
        outputs=_merge_outputs(asked, start, tolerance),
        accept={**start.accept, **asked.accept},
        noise=start.noise if asked.noise is None else asked.noise,
        latency=replace(start.latency, **limits),
        quality=replace(start.quality, **gates),
    )


def _read_options(group: Any) -> dict[str, Any]:
    """The fields that a user may set, and what stands there."""
    return {name: getattr(group, name) for name in list_options(type(group))}


def _merge_tolerance(asked: Judgement, start: Tolerance) -> Tolerance:
    given = {name: one for name in NAMES if (one := getattr(asked, name).general) is not None}
    tolerance = replace(start, **given, promised=True) if given else start
    if given.keys() & {"atol", "rtol"} and "max_abs" not in given and not start.promised:
        # Who promises a tolerance does not also promise the default's absolute limit.
        return replace(tolerance, max_abs=float("inf"))
    return tolerance


def _merge_outputs(asked: Judgement, start: Policy, tolerance: Tolerance) -> dict[str, Tolerance]:
    outputs = dict(start.outputs)
    for name in NAMES:
        for output, number in getattr(asked, name).outputs.items():
            base = outputs.get(output, replace(tolerance, max_abs=float("inf")))
            outputs[output] = replace(base, promised=True, **{name: number})
    return outputs


def find_limits(policy: Policy) -> Limits:
    """The tightest thresholds of a policy: what is beyond them is looked at more closely."""
    tolerances = [policy.tolerance, *policy.outputs.values()]
    return Limits(policy.noise, *(min(getattr(one, name) for one in tolerances) for name in NAMES))
