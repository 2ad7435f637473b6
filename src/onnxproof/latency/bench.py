"""Times every contender at every size; what is timed is compared, and what takes the time is looked up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import torch

from onnxproof.candidates.candidate import Candidate
from onnxproof.cases.plan import Case
from onnxproof.errors import ProviderError, Rejected, first_line
from onnxproof.latency import machine
from onnxproof.latency.contender_factory import Field
from onnxproof.latency.contenders import CompiledContender, Contender, Unavailable
from onnxproof.latency.harness import Harness, Measured, Need, Timed
from onnxproof.latency.points import Point, Points
from onnxproof.latency.profile import profile_session
from onnxproof.latency.runs import measure_speedups, run_offline, run_server, run_single
from onnxproof.latency.scenarios import draw_arrivals, make_burst, measure_capacity, serve
from onnxproof.latency.statistics import count_needed
from onnxproof.parity.listener import Listener
from onnxproof.parity.verifier import Verifier
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison
from onnxproof.proof.latency import BASELINE, SHIPPED, Absent, Latency, LatencySettings, Profile, Run, Speedup, Tuned
from onnxproof.request.benchmark import BenchSettings, list_levels
from onnxproof.request.request import Request
from onnxproof.subject.mode import enter_eval, preserve_buffers
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array

# Of what one worker can do: the default rate of arrivals.
SERVER_SHARE = 0.7
# Different outputs of one contender at one size that are looked at.
KEPT_OUTPUTS = 3

Outputs = dict[str, Array]
# Contender → a call of it.
Calls = dict[str, Callable[[], Any]]


@dataclass
class Sampled:
    """Outputs of timed calls: how many were seen, and those that differ bit for bit from the ones before."""

    count: int = 0
    distinct: dict[frozenset[tuple[Any, ...]], Outputs] = field(default_factory=dict)
    """By their bits."""

    def add(self, outputs: Outputs) -> None:
        """Take one in."""
        self.count += 1
        if len(self.distinct) < KEPT_OUTPUTS:
            bits = frozenset((name, a.dtype, a.shape, a.tobytes()) for name, a in outputs.items())
            self.distinct.setdefault(bits, outputs)


class Bench:
    """A benchmark of one subject and its artifact."""

    def __init__(
        self,
        subject: Subject,
        artifact: Artifact,
        request: Request,
        listener: Listener,
        *,
        candidate: Candidate | None = None,
        stateful: bool = False,
        load_ms: float | None = None,
        tell: Callable[[str], None] = lambda text: None,
        partial: Callable[[Latency], None] = lambda latency: None,
    ) -> None:
        self.settings: BenchSettings = request.bench or BenchSettings()
        self.session = machine.set_threads(request.verify.session)
        self._verify = replace(request.verify, session=self.session)
        self.artifact, self._listener = artifact, listener
        self.tell, self._partial = tell, partial
        self._ended = time.perf_counter() + self.settings.budget
        self.verifier = Verifier(subject, artifact, self._verify, listener, candidate=candidate, stateful=stateful)
        self.candidate = self.verifier.candidate
        self.verifier.calibrate()
        self._subject = self.verifier.subject
        self._before = machine.look()
        self._absent: list[Absent] = []
        self._runs: list[Run] = []
        self._speedups: list[Speedup] = []
        self._profile: Profile | None = None
        self.tuned: list[Tuned] = []
        pairs = self.verifier.input_pairs
        self.field = Field(self._subject, artifact, self.candidate, self.session, self.settings, pairs, load_ms)
        self.points = Points(self._subject, artifact, self._verify, self.settings, self.verifier.supply).all()
        self.contenders = self._make_contenders()

    def _make_contenders(self) -> dict[str, Contender]:
        """All that can take part; the session that ships must."""
        contenders: dict[str, Contender] = {}
        for name, make in self.field.makers.items():
            try:
                contenders[name] = make()
            except (Unavailable, ProviderError) as error:
                if name == SHIPPED:
                    raise
                self._absent.append(Absent(name, str(error)))
        return contenders

    def run(self) -> Latency:
        """Time everything that was asked for."""
        module, points = self._subject.module, self.points
        with enter_eval(module), _limit_threads(self.session.threads or 1):
            for i, point in enumerate(points):
                self._time(point, (self._ended - time.perf_counter()) / (len(points) - i))
                self._partial(self.latency())
            self._look_closer(points)
        return self.latency()

    def latency(self) -> Latency:
        """What is known so far."""
        s = self.settings
        facts = LatencySettings(
            threads=self.session.threads,
            scenario=s.scenario,
            min_time=s.min_time,
            min_count=s.min_count,
            concurrency=s.concurrency,
            seed=self._verify.seed,
            providers=tuple(p.name for p in self.session.providers),
            optimization=self.session.optimization,
        )
        return Latency(
            tuple(self._runs),
            tuple(self._speedups),
            machine.describe(self._before, machine.look()),
            tuple(self._absent),
            self._profile,
            tuple(self.tuned),
            None,
            facts,
        )

    def _time(self, point: Point, seconds: float) -> None:
        self.tell(f"timing {point.label}")
        if seconds <= 0:
            self._absent.append(Absent(point.label, "the time budget was spent", point.batch))
            return
        module = self._subject.module
        with preserve_buffers(module):  # a forward may change buffers: what is compared starts from the same ones
            ready = self._prepare(point)
            if ready is None:
                return
            point, calls = ready
            sampled = {name: Sampled() for name in calls}
            measured = self._make_harness(point, calls, sampled, seconds).run()
        compared = self._compare(point, sampled)
        for name, one in measured.items():
            differing = compared.get(name, ())
            self._runs.append(run_single(self.contenders[name], point, one, sampled[name].count, differing))
        self._speedups += measure_speedups(point, measured, self._verify.seed)
        with preserve_buffers(module):
            if self.settings.scenario == "server":
                self._serve(point, calls, measured, seconds)
            elif self.settings.scenario == "offline":
                self._time_offline(point, calls, measured, seconds)

    def _make_harness(self, point: Point, calls: Calls, sampled: Mapping[str, Sampled], seconds: float) -> Harness:
        contenders = self.contenders
        return Harness(
            [
                Timed(name, call, contenders[name].around, threads=contenders[name].threads or 1)
                for name, call in calls.items()
            ],
            self.need(seconds),
            seed=self._verify.seed,
            sampled=lambda name, raw: sampled[name].add(contenders[name].outputs(raw)),
            tell=lambda share: self.tell(f"timing {point.label}: {share:.0%}"),
        )

    def need(self, seconds: float) -> Need:
        """When enough was timed; a percentile that a limit is given for must be supported."""
        counts = [count_needed(share) for share in self.settings.percentiles]
        return Need(self.settings.min_time, max([self.settings.min_count, *counts]), budget=max(seconds, 0.1))

    def _prepare(self, point: Point) -> tuple[Point, Calls] | None:
        """Calls of the contenders that answer; a size that PyTorch refuses is tried with the example's values too."""
        case = Case(f"{point.label}/timed-example/seed={self._verify.seed}", dict(point.sizes), "example")
        for attempt in (point, replace(point, case=case, inputs=self.verifier.supply.make_inputs(case))):
            try:
                calls = {BASELINE: self.contenders[BASELINE].prepare(attempt.inputs)}
            except Rejected as error:
                reason = str(error)
                continue
            for name, contender in self.contenders.items():
                try:
                    calls[name] = calls.get(name) or contender.prepare(attempt.inputs)
                except (Rejected, Unavailable) as error:
                    if name == SHIPPED:
                        self._listener.case(self.verifier.evaluate(attempt.case, attempt.inputs), None)
                    self._absent.append(Absent(name, first_line(error), point.batch))
            return attempt, calls
        why = f"{self._subject.baseline} rejects it: {first_line(reason)}"
        self._absent.append(Absent(point.label, why, point.batch))
        return None

    def _compare(self, point: Point, sampled: Mapping[str, Sampled]) -> dict[str, tuple[Comparison, ...]]:
        """The outputs of timed calls against PyTorch's own, with the noise known; the session's become cases of the proof."""
        found: dict[str, tuple[Comparison, ...]] = {}
        if SHIPPED not in sampled:
            return found
        # The session that ships comes first: how its outputs pair up with PyTorch's is needed for the others.
        for name in (SHIPPED, *(name for name in sampled if name not in (BASELINE, SHIPPED))):
            results = [self._evaluate(point, name, outputs) for outputs in sampled[name].distinct.values()]
            if name != SHIPPED:
                found[name] = tuple(c for result in results for c in result.outputs)
                continue
            for i, result in enumerate(results):  # one case for each different answer
                self._listener.case(replace(result, name=f"{result.name}/answer={i + 1}") if i else result, None)
        return found

    def _evaluate(self, point: Point, name: str, outputs: Outputs) -> CaseResult:
        """A sampled output in the place of the session's, under the names that the session has for it."""
        if name in self.field.others:
            outputs = {ours: outputs[theirs] for ours, theirs in self.field.others[name].items() if theirs in outputs}
        elif name == CompiledContender.name:
            outputs = {graph: outputs[own] for own, graph in self.verifier.output_pairs.items() if own in outputs}
        return self.verifier.evaluate(point.case, point.inputs, lambda: outputs)

    def _serve(self, point: Point, calls: Calls, measured: Mapping[str, Measured], seconds: float) -> None:
        """Requests at one rate for every contender and every number of workers."""
        if SHIPPED not in measured:
            return
        typical = float(np.median(measured[SHIPPED].samples))
        around, need = self.contenders[SHIPPED].around, self.need(seconds)
        rate = self.settings.rate or SERVER_SHARE * measure_capacity(calls[SHIPPED], around, typical)
        count = min(max(need.min_count, int(rate * need.min_time)), max(20, int(rate * seconds)))
        offsets = draw_arrivals(rate, count, self._verify.seed)
        for workers, (name, call) in product(list_levels(self.settings.concurrency), calls.items()):
            self.tell(f"serving {point.label}: {name} with {workers} workers")
            contender = self.contenders[name]
            served = serve(call, offsets, workers=workers, around=contender.around)
            self._runs.append(run_server(contender, point, served, workers, rate=rate, least=need.min_count))

    def _time_offline(self, point: Point, calls: Calls, measured: Mapping[str, Measured], seconds: float) -> None:
        """All workers busy all the time."""
        seed = self._verify.seed
        for workers in list_levels(self.settings.concurrency):
            self.tell(f"offline {point.label} with {workers} workers")
            with ThreadPoolExecutor(workers) as pool:
                timed = [
                    make_burst(pool, workers, n, call, self.contenders[n].around, float(np.median(measured[n].samples)))
                    for n, call in calls.items()
                ]
                results = Harness(timed, Need(self.settings.min_time, 0, budget=seconds), seed=seed).run()
            for one in timed:
                self._runs.append(run_offline(self.contenders[one.name], point, results[one.name], workers, one.calls))
            self._speedups += measure_speedups(point, results, seed, "offline", workers)

    def _look_closer(self, points: Sequence[Point]) -> None:
        """The profile at the size where the session does worst against PyTorch; at the largest where that cannot be told."""
        ours = [one for one in self._speedups if one.contender == SHIPPED]
        worst = min(ours, key=lambda one: one.ratio, default=None)
        point = points[-1]
        if worst is not None:
            point = next(p for p in points if dict(p.sizes) == dict(worst.sizes) and p.batch == worst.batch)
        self.tell("profiling")
        self._profile = profile_session(self.candidate, self.artifact, self.session, self.field.renamed, point)


@contextmanager
def _limit_threads(count: int) -> Iterator[None]:
    """PyTorch with as many threads as the session has; its own number after."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
