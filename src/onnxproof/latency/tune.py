"""Looks for a faster session: many settings in short rounds, the slower half dropped each time, the best one verified."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace

import numpy as np

from onnxproof.errors import FindingError, Rejected, UserError
from onnxproof.findings import Finding, decide_verdict
from onnxproof.latency.bench import Bench
from onnxproof.latency.contenders import SessionContender, Unavailable
from onnxproof.latency.harness import Harness, Need, Timed
from onnxproof.latency.points import Point
from onnxproof.latency.statistics import TRIMS, bound_ratio, trim_mean
from onnxproof.parity.listener import Listener
from onnxproof.parity.verification import verify
from onnxproof.parity.verifier import Verifier
from onnxproof.policy.judgement import judge
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.latency import Tuned
from onnxproof.request.benchmark import EXECUTIONS, Variant, list_levels
from onnxproof.request.request import VerifySettings
from onnxproof.request.session import LEVELS, SessionSettings
from onnxproof.request.thresholds import LatencyPolicy, Policy
from onnxproof.system import count_cores

FIRST_ROUNDS = 8
# Bytes of an artifact up to which a session of every combination is held at once.
MANY_SESSIONS_UP_TO = 100_000_000
# How many of the best are verified until one passes.
TRIED = 3
OURS = Variant()

# Verdict and number of compared cases of a verification under some settings.
Verify = Callable[[SessionSettings], tuple[str, int]]


def list_settings(bytes: int, cores: int) -> list[Variant]:
    """Every combination; for a large file only thread counts and binding."""
    small = bytes <= MANY_SESSIONS_UP_TO
    optimizations = LEVELS[::-1] if small else LEVELS[-1:]
    executions = EXECUTIONS if small else EXECUTIONS[:1]
    return [
        Variant(threads=threads, optimization=level, execution=execution, binding=binding)
        for threads, level, execution, binding in itertools.product(
            list_levels(cores), optimizations, executions, (False, True)
        )
    ]


def tune(bench: Bench, point: Point, check: Verify, seconds: float) -> list[Tuned]:
    """The best settings at one size, best first; nothing where none is surely faster than the session that ships."""
    made = _make(bench, point)
    if OURS not in made:
        return []
    alive, rounds = list(made), FIRST_ROUNDS
    while len(alive) > TRIED + 1:
        measured = Harness(_prepare_timed({v: made[v] for v in alive}, point), Need(0.0, 0, rounds, seconds / 8)).run()
        ranked = sorted(
            (v for v in alive if v != OURS),
            key=lambda v: float(trim_mean(np.asarray(measured[v.name].blocks), TRIMS[0])),
        )
        alive, rounds = [OURS, *ranked[: max(TRIED, len(alive) // 2 - 1)]], 2 * rounds
    return _finish(bench, point, {v: made[v] for v in alive}, check, seconds)


def _finish(
    bench: Bench, point: Point, made: Mapping[Variant, SessionContender], check: Verify, seconds: float
) -> list[Tuned]:
    """The few that are left against the session that ships, with intervals; the best is verified, then the next."""
    # Measured anew: the fastest of many is in part the luckiest.
    measured = Harness(_prepare_timed(made, point), bench.need(seconds / 4), seed=1).run()
    ours = measured[OURS.name].blocks
    ratios = {variant: bound_ratio(ours, measured[variant.name].blocks) for variant in made if variant != OURS}
    intervals = {variant: ratio for variant, ratio in ratios.items() if ratio is not None and ratio.low > 1.0}
    tuned: list[Tuned] = []
    for variant in sorted(intervals, key=lambda v: -intervals[v].value):
        verdict, cases = check(variant.applied(bench.session))
        settings = {key: value for key, value in asdict(variant).items() if key != "provider"}
        tuned.append(Tuned(settings, point.batch, *intervals[variant], verdict, cases))
        if verdict == "ship":
            break
    return tuned


def _make(bench: Bench, point: Point) -> dict[Variant, SessionContender]:
    made: dict[Variant, SessionContender] = {}
    for variant in (OURS, *list_settings(bench.artifact.bytes, count_cores())):
        with suppress(Unavailable, Rejected, UserError):  # a setting that does not run is not the best one
            contender = bench.field.session(variant)
            contender.prepare(point.inputs)
            made[variant] = contender
    return made


def _prepare_timed(made: Mapping[Variant, SessionContender], point: Point) -> list[Timed]:
    return [
        Timed(variant.name, contender.prepare(point.inputs), threads=contender.threads or 1)
        for variant, contender in made.items()
    ]


def make_verifier(bench: Bench, settings: VerifySettings, policy: Policy, stateful: bool) -> Verify:
    """Verification of the artifact under other session settings, judged by the policy."""

    def check(session: SessionSettings) -> tuple[str, int]:
        findings: list[Finding] = []
        cases: list[CaseResult] = []
        listener = Listener(
            findings.append,
            lambda planned, coverage: None,
            lambda case, stage: None,
            lambda case, _: cases.append(case),
        )
        try:
            verifier = Verifier(
                bench.verifier.subject,
                bench.artifact,
                replace(settings, session=session),
                listener,
                candidate=bench.candidate,
                stateful=stateful,
            )
            verify(verifier, listener, budget=settings.budget)
        except FindingError as error:
            findings.append(error.finding)
        compared = sum(1 for case in cases if case.outputs)
        judged = judge(findings, cases, replace(policy, latency=LatencyPolicy()))
        return decide_verdict(judged) if compared else "block", compared

    return check
