"""The policy that a request asks for."""

from __future__ import annotations

from dataclasses import replace

from onnxproof.request.judgement import Judgement
from onnxproof.request.request import Limits
from onnxproof.request.thresholds import Policy, Tolerance

NAMES = ("atol", "rtol", "max_abs")


def make_policy(asked: Judgement, base: Policy | None = None) -> Policy:
    """The thresholds of a policy with those in their place that the user gave."""
    start = base or Policy()
    tolerance = _tolerance(asked, start.tolerance)
    return replace(
        start,
        tolerance=tolerance,
        outputs=_outputs(asked, start, tolerance),
        noise=start.noise if asked.noise is None else asked.noise,
        accept={**start.accept, **asked.accept},
        latency=replace(
            start.latency,
            max_latency=asked.max_latency or start.latency.max_latency,
            min_speedup=start.latency.min_speedup if asked.min_speedup is None else asked.min_speedup,
            max_memory=start.latency.max_memory if asked.max_memory is None else asked.max_memory,
        ),
        quality=replace(
            start.quality,
            minimum={**start.quality.minimum, **asked.min},
            maximum={**start.quality.maximum, **asked.max},
            max_drop={**start.quality.max_drop, **asked.max_drop},
        ),
    )


def _tolerance(asked: Judgement, start: Tolerance) -> Tolerance:
    given = {name: one for name in NAMES if (one := getattr(asked, name).general) is not None}
    tolerance = replace(start, **given, promised=True) if given else start
    if given.keys() & {"atol", "rtol"} and "max_abs" not in given and not start.promised:
        # Who promises a tolerance does not also promise the default's absolute limit.
        return replace(tolerance, max_abs=float("inf"))
    return tolerance


def _outputs(asked: Judgement, start: Policy, tolerance: Tolerance) -> dict[str, Tolerance]:
    outputs = dict(start.outputs)
    for name in NAMES:
        for output, number in getattr(asked, name).outputs.items():
            base = outputs.get(output, replace(tolerance, max_abs=float("inf")))
            outputs[output] = replace(base, promised=True, **{name: number})
    return outputs


def limits_of(policy: Policy) -> Limits:
    """The tightest thresholds of a policy: what is beyond them is looked at more closely."""
    tolerances: list[Tolerance] = [policy.tolerance, *policy.outputs.values()]
    return Limits(
        policy.noise,
        min(t.atol for t in tolerances),
        min(t.rtol for t in tolerances),
        min(t.max_abs for t in tolerances),
    )
