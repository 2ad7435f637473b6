"""Cases × runners → comparisons, one case after the other."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from onnxproof.artifact.pairing import Pairing, begin_hidden, hide_state, pair_inputs, pair_outputs
from onnxproof.candidates import choose_candidate
from onnxproof.candidates.candidate import Candidate, Session
from onnxproof.candidates.roles import BASELINE, CANDIDATE, TRUTH, name_stage
from onnxproof.cases.plan import Case, Inputs
from onnxproof.cases.rollout import Rollouts
from onnxproof.cases.supply import Supply
from onnxproof.diagnosis.failures import find_named_node
from onnxproof.errors import FindingError, Rejected, list_names
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.graph.evaluator import Evaluator
from onnxproof.graph.sourcemap import place_node
from onnxproof.graph.view import Graph
from onnxproof.parity.boxes import find_boxes
from onnxproof.parity.comparison import compare
from onnxproof.parity.conversion import find_faults
from onnxproof.parity.declared import Meaning, declare_subject, list_originals, measure_cost
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner, Unavailable
from onnxproof.parity.ledger import Ledger
from onnxproof.parity.memo import Memo
from onnxproof.parity.ranking import Ranking, place_cost, tell_costs
from onnxproof.parity.rollout import FreeRun, Sides, is_beyond, name_answers
from onnxproof.parity.sets import match_sets
from onnxproof.parity.truth import PLANNED, Effort, GraphInFloat64, Outputs, Truth
from onnxproof.parity.work import PATIENCE, Work
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison, Exactness
from onnxproof.proof.rollout import Rollout
from onnxproof.proof.search import Coverage
from onnxproof.proof.subject import TensorFacts
from onnxproof.request.request import VerifySettings
from onnxproof.subject.mode import read_kept
from onnxproof.subject.state import guess_state, is_kept, read_state
from onnxproof.subject.subject import Subject
from onnxproof.system import read_available, read_peak
from onnxproof.tensors.arrays import Array, Arrays
from onnxproof.tensors.conversion import to_numpy

T = TypeVar("T")
# How many times the budget the core of the plan may take: without it there is no answer.
CORE = 4.0
# The share of the budget that a free run of steps may take.
FREE = 0.25


@dataclass(frozen=True)
class Listener:
    """Where results go while the work is under way."""

    finding: Callable[[Finding], None]
    plan: Callable[[Sequence[Case], Mapping[str, Coverage]], None]
    """The cases, and how much of the user's data they cover."""
    stage: Callable[[str, str], None]
    """A case and the stage it enters, a role where one of the sides computes: what to blame if the process dies."""
    case: Callable[[CaseResult, Ledger | None], None]
    """A result, and the account after it, where others go on from there."""
    rollout: Callable[[Rollout], None] = lambda rollout: None
    outputs: Callable[[Mapping[str, str]], None] = lambda pairs: None
    """Module's output → graph's output, as soon as it is known."""


# Hears nothing.
SILENT = Listener(
    lambda finding: None, lambda cases, coverage: None, lambda case, stage: None, lambda result, ledger: None
)


class Memory:
    """What cases cost in memory, learnt from the peak of the process: a larger one must fit into half of what is free."""

    def __init__(self) -> None:
        self._peak = read_peak()
        self._rate = 0.0

    def learn(self, elements: int) -> None:
        """Note by how much a case of this size raised the peak."""
        peak = read_peak()
        # What a small case adds is caches and code, not its elements.
        if elements > 1000:
            self._rate = max(self._rate, (peak - self._peak) / elements)
        self._peak = peak

    def room_for(self, elements: int) -> bool:
        """Whether a case of this size is likely to fit."""
        return self._rate * elements <= (read_available() or math.inf) / 2


class Verifier:
    """Everything needed to run a case: built once, used for all of them."""

    def __init__(
        self,
        subject: Subject,
        artifact: Artifact,
        settings: VerifySettings,
        listener: Listener,
        *,
        candidate: Candidate | None = None,
        stateful: bool = False,
        effort: Effort = PLANNED,
        memo: Memo | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.candidate = candidate or choose_candidate(settings.session)
        self._effort = effort
        self._ports = artifact.inputs
        artifact, self._hidden = hide_state(artifact, list(subject.inputs.tensors))
        """What the module keeps inside and the file takes and gives: output → input."""
        self._kept = [to_numpy(tensor) for tensor in read_kept(subject.module).values()] if self._hidden else []
        precision = artifact.precision
        self._original = EagerRunner(subject, stateful=stateful) if precision and precision.declared else None
        """What the file in a lower precision was made of; held against its own meaning, it is compared with this by the way."""
        self._originals = list_originals(subject.module) if self._original is not None else {}
        subject = declare_subject(subject, artifact) if self._original is not None else subject
        self.subject = add_symbols(subject, artifact)
        self._artifact = artifact
        self._settings = settings
        self._listener = listener
        self._memo = memo
        self._remarks: list[Finding] = []
        """What was found while this was built."""
        self.eager = EagerRunner(subject, stateful=stateful)
        self.supply = Supply(self.subject, artifact, settings)
        self._inputs = self._pair_inputs()
        self.session: Session = self._open()
        self.double = self._make_double()
        self.ledger = ledger or Ledger()
        self._truth = Truth(self.eager, self.double, settings.limits, effort, self.ledger)
        self.work = self.double.work if self.double is not None else expect_work(subject)
        self._outputs: Pairing | None = None
        self._memory = Memory()
        self.stage = "start"

    @property
    def input_pairs(self) -> Mapping[str, str]:
        """Module's input → graph's input."""
        return self._inputs.pairs

    @property
    def output_pairs(self) -> Mapping[str, str]:
        """Module's output → graph's output, once a case was run."""
        return self._outputs.pairs if self._outputs is not None else {}

    def again(self, listener: Listener, effort: Effort, ledger: Ledger) -> Verifier:
        """The same session and the same truth, for another purpose."""
        other = copy.copy(self)
        other._listener, other._effort, other.ledger = listener, effort, ledger
        other._truth = Truth(self.eager, self.double, self._settings.limits, effort, ledger)
        other._memo = None  # inputs that are searched for or shrunk have the names of planned ones
        return other

    def elsewhere(self, settings: VerifySettings, listener: Listener, memo: Memo) -> Verifier:
        """The same module, truth and cases on another runtime."""
        other = copy.copy(self)
        other._settings, other._listener, other._memo = settings, listener, memo
        other._effort, other.ledger, other._outputs = PLANNED, Ledger(), None
        other._truth = Truth(self.eager, self.double, settings.limits, PLANNED, other.ledger)
        other.candidate = choose_candidate(settings.session)
        for finding in self._remarks:
            listener.finding(finding)
        other.session = other._open()
        return other

    def _open(self) -> Session:
        # Without spinning: idle threads of the session would take the cores that PyTorch's forward needs next.
        session = self.candidate.open(
            Path(self._artifact.path), replace(self._settings.session, spinning=False), self._inputs.reverse
        )
        if (placement := session.placement()) is not None:
            self._listener.finding(placement)
        return session

    def _remark(self, finding: Finding) -> None:
        self._remarks.append(finding)
        self._listener.finding(finding)

    def _ask_once(self, case: Case, what: str, answer: Callable[[], T]) -> T:
        """What does not depend on the candidate."""
        return answer() if self._memo is None else self._memo.once((case.name, what), answer)

    def _pair_inputs(self) -> Pairing:
        dtypes = {d.name: d.dtype.name for d in self.supply.domains}
        pairing = pair_inputs(dtypes, self._artifact.inputs, self.subject.shapes())
        promised = self._artifact.promised_inputs
        broken = promised is not None and {*promised} != {port.name for port in self._artifact.inputs}
        for finding in pairing.findings:
            # Names that the file itself says it has are what its callers use, whatever the answers are.
            told = {**finding.evidence, "promised": list(promised or ())}
            self._remark(replace(finding, evidence=told) if broken else finding)
        if pairing.blocking is not None:
            raise FindingError(pairing.blocking)
        return pairing

    def _make_double(self) -> DoubleRunner | None:
        try:
            double = DoubleRunner(self.subject)
            with expect_work(self.subject).threads(0):
                double.run(self.supply.example())
        except Unavailable as error:
            self._remark(
                found(
                    "OX111",
                    "the module cannot run in float64; its noise is estimated by moving inputs by an ulp",
                    evidence={"reason": str(error)[:500]},
                )
            )
            return None
        return double

    def calibrate(self) -> None:
        """Ask PyTorch which integers it accepts where nothing else tells."""
        self.supply.calibrate(self._accepts)

    def _accepts(self, inputs: Inputs) -> bool:
        try:
            (self._original or self.eager).run(inputs)
        except Rejected:
            return False
        return True

    def plan(self) -> list[Case]:
        """Cases in the order they are run."""
        # Whether the module itself deals with NaN: a file that lost the guard must not be the judge of it.
        names = {"isnan", "isinf", "isfinite", "nan_to_num", "nanmean", "nansum"}
        self.supply.rollouts = self._find_rollouts()
        return self.supply.plan(asks_for_nan=bool(self.double is not None and self.double.called & names))

    def _find_rollouts(self) -> Rollouts | None:
        """The steps of the module, where it carries state from one to the next."""
        asked, inputs = self._settings.state, self.supply.example()
        settings = self._settings
        how: dict[str, Any] = {"batch": self.subject.batch, "batch_sizes": settings.batch_sizes, "seed": settings.seed}
        if self._hidden:
            return Rollouts(self.supply.domains, {}, self.eager.run, {}, **how)
        if asked == ("none",) or not (asked or any(map(is_kept, inputs))):
            return None
        try:
            outputs = self.eager.run(inputs)
        except (Rejected, MemoryError):
            return None  # its case says so
        others = self._pair_outputs(outputs).reverse
        state = read_state(asked, inputs, outputs, others) if asked else guess_state(inputs, outputs)
        if not state:
            return None
        return Rollouts(self.supply.domains, state, self.eager.run, outputs, **how)

    def roll_out(self, done: Collection[str] = ()) -> Rollout | None:
        """Both sides in free run, as many steps as a part of the budget has work for."""
        rollouts = self.supply.rollouts
        walk = rollouts.walks[0] if rollouts is not None and rollouts.walks else None
        if rollouts is None or walk is None or walk.name in done or not self.output_pairs:
            return None
        cost = self.work.case(_count_elements({**rollouts.begin(walk), **rollouts.drive(walk)[0]}))
        steps = min(rollouts.count(walk), int(FREE * self._settings.budget / cost))
        free = FreeRun(rollouts, walk, steps, self._truth, self._settings.limits)
        self._listener.stage(walk.name, CANDIDATE)
        answers = name_answers(self.session.run, self.output_pairs, self._hidden)
        sides, begin = Sides(self.eager, self.double), self._begin_hidden(rollouts.drive(walk)[0])
        with self.work.threads(0):
            return free.run(sides, answers, self._hidden, begin, guessed=not self._settings.state)

    def _begin_hidden(self, inputs: Inputs) -> Inputs:
        return begin_hidden(self._ports, self._hidden.values(), inputs, self._kept) if self._hidden else {}

    def run(self, case: Case) -> CaseResult | None:
        """Run a case on both sides and compare; None where it would not fit into the budget."""
        self._listener.stage(case.name, "inputs")
        self.stage = "inputs"
        inputs = self._ask_once(case, "inputs", lambda: self.supply.make_inputs(case))
        elements = _count_elements(inputs)
        allowed = self._settings.budget * (CORE if case.core else 1)
        if self.ledger.forwards + self.work.case(elements) > allowed or not self._memory.room_for(elements):
            return None
        return self.evaluate(case, inputs)

    def evaluate(
        self, case: Case, inputs: Inputs, answer: Callable[[], dict[str, Array]] | None = None, *, glance: bool = False
    ) -> CaseResult:
        """Run some inputs on both sides and compare; `answer` has the session's outputs where they are there already.

        A glance leaves open what rounding explains.
        """
        with self.work.threads(_count_elements(inputs)):
            return self._evaluate(case, inputs, answer, glance)

    def _evaluate(
        self, case: Case, inputs: Inputs, answer: Callable[[], dict[str, Array]] | None, glance: bool
    ) -> CaseResult:
        elements, seconds = _count_elements(inputs), dict[str, float]()
        fed = {**inputs, **self._begin_hidden(inputs)}
        facts = {name: TensorFacts(array.shape, array.dtype.name) for name, array in inputs.items()}
        result = CaseResult(case.name, case.profile, case.fair, "rejected", facts, seconds=seconds, sizes=case.sizes)
        try:
            # What the original refuses is nothing that a file made of it has to answer.
            original = self._original.run(inputs) if self._original is not None else {}
            baseline = self._time(
                BASELINE, case, seconds, lambda: self._ask_once(case, "baseline", lambda: self.eager.run(inputs))
            )
        except Rejected as error:
            return replace(result, message=str(error)[:500])
        if not baseline:
            return replace(result, message="the module returned no tensor")
        # The truth before the candidate: onnxruntime's threads spin for a while and would slow down what comes next.
        truth = self._time(TRUTH, case, seconds, lambda: self._ask_once(case, "truth", lambda: self._truth.of(inputs)))
        try:
            raw = self._time(CANDIDATE, case, seconds, answer or (lambda: self.session.run(fed)))
        except Rejected as error:
            where = place_node(find_named_node(str(error)), self._artifact.sourcemap)
            return replace(result, status="failed", message=str(error)[:1000], where=where)
        outputs = self._pair_outputs(baseline)
        missing = [graph for graph in outputs.pairs.values() if graph not in raw]
        # Another contender's answer may lack outputs: it is compared in those that it has.
        if missing and answer is None:
            message = f"{self.candidate.name} does not answer {list_names(missing)}; it answers {list_names(raw)}"
            return replace(result, status="failed", message=message)
        candidate = {name: raw[graph] for name, graph in outputs.pairs.items() if graph in raw}
        limits = self._settings.limits
        comparisons = [
            compare(name, baseline[name], candidate[name], atol=limits.atol, rtol=limits.rtol)
            for name in candidate
            if name in baseline
        ]

        def sample(seed: int, doubled: bool) -> Outputs | None:
            return self._ask_once(case, f"sample {seed} {doubled}", lambda: self._truth.sample(inputs, seed, doubled))

        # Differences on denormal inputs weigh less: what they show must not settle it for ordinary ones.
        group = "denormal" if case.profile == "denormal" else str(case.fair)
        comparisons, truth = self._time(
            "noise",
            case,
            seconds,
            lambda: self._truth.judge_case(
                inputs, truth, baseline, candidate, comparisons, group, glance=glance, sample=sample
            ),
        )
        comparisons = (
            self._match_boxes(inputs, truth, baseline, candidate, comparisons, group) if not glance else comparisons
        )
        self._memory.learn(elements)
        self.ledger.forwards += self.work.case(elements)
        if truth is not None and case.fair:
            comparisons = self._time(
                "reference",
                case,
                seconds,
                lambda: self._attach_exactness(case, fed, truth, outputs.pairs, comparisons, glance),
            )
        comparisons = [_mark_swap(c, baseline, candidate) for c in comparisons]
        if self._original is not None and case.fair:
            comparisons = self._attach_cost(original, baseline if truth is None else truth, comparisons)
        return replace(result, status="compared", outputs=tuple(comparisons))

    def _match_boxes(
        self,
        inputs: Inputs,
        truth: Outputs | None,
        baseline: Outputs,
        candidate: Outputs,
        comparisons: list[Comparison],
        group: str,
    ) -> list[Comparison]:
        """Sets of boxes that differ in order, or in a box that rounding adds or takes away, are compared box by box."""
        doubtful = {c.output for c in comparisons if self._truth.leaves_open(c)}
        names = find_boxes(baseline, next((len(a) for a in inputs.values() if a.ndim), None)) if doubtful else None
        alike = names is not None and doubtful & {*names.members}
        matched = match_sets(baseline, candidate, names) if names is not None and alike else None
        if matched is None:
            return comparisons
        match = matched.judge(self._truth.wide_samples(inputs, truth))
        if match.unexplained or not match.pairs:
            return comparisons
        limits, (own, theirs) = self._settings.limits, matched.both(candidate)
        aligned = [compare(name, own[name], theirs[name], atol=limits.atol, rtol=limits.rtol) for name in own]

        def sample(seed: int, doubled: bool) -> Outputs | None:
            answer = self._truth.sample(inputs, seed, doubled)
            return None if answer is None else matched.align(answer)

        known = None if truth is None else matched.align(truth)
        judged, _ = self._truth.judge_case(inputs, known, own, theirs, aligned, f"{group} boxes", sample=sample)
        boxes = {c.output: replace(c, matched=match) for c in judged}
        return [boxes.get(c.output, c) for c in comparisons]

    def _time(self, stage: str, case: Case, seconds: dict[str, float], work: Callable[[], Any]) -> Any:
        self._listener.stage(case.name, stage)
        self.stage = stage
        began = time.perf_counter()
        try:
            return work()
        finally:
            seconds[name_stage(stage)] = time.perf_counter() - began

    def _pair_outputs(self, baseline: Arrays) -> Pairing:
        if self._outputs is None:
            ports, promised = self._artifact.outputs, self._artifact.promised_outputs
            self._outputs = pair_outputs(list(baseline), ports, promised, named=self.eager.named)
            for finding in self._outputs.findings:
                self._listener.finding(finding)
            self._listener.outputs(self._outputs.pairs)
        return self._outputs

    def _attach_exactness(
        self,
        case: Case,
        inputs: Arrays,
        truth: Arrays,
        outputs: Mapping[str, str],
        comparisons: list[Comparison],
        glance: bool,
    ) -> list[Comparison]:
        def measure() -> Mapping[str, Exactness] | None:
            graph = self._exact
            if graph is None or not (self._effort.unhurried or graph.affords(self.ledger, _count_elements(inputs))):
                return None
            return graph.measure(inputs, truth, outputs, self.ledger, glance=glance)

        try:
            measured = self._ask_once(case, "exactness", measure)
        except Rejected:
            return comparisons  # the evaluator cannot run this graph or this input: exactness stays unknown
        if measured is None:
            return comparisons
        # Boxes that were matched have an order of their own, which the evaluator's answer has not.
        whole = [c.same_form and c.matched is None for c in comparisons]
        return [
            replace(c, exactness=measured.get(c.output)) if w else c for c, w in zip(comparisons, whole, strict=True)
        ]

    def find_faults(self) -> Iterator[Finding]:
        """What went wrong in a conversion to a lower precision."""
        meaning = self.subject.module
        if self._original is None or not isinstance(meaning, Meaning) or not meaning.evaluable:
            return
        inputs = self.supply.example()
        try:
            answers = self._original.run(inputs)
            pairs = pair_outputs(list(answers), self._artifact.outputs, None, named=self._original.named).pairs
            fed = {self.input_pairs.get(name, name): array for name, array in inputs.items()}
            wanted = [answers[name] for name in pairs]
            yield from find_faults(meaning, self._originals, fed, wanted, list(pairs.values()))
            ranked = [
                place_cost(cost, self._artifact.sourcemap) for cost in Ranking(meaning, self._originals, fed).rank()
            ]
            told = tell_costs(ranked)
            if told is not None:
                yield told
        except (Rejected, MemoryError):
            return  # the example itself is refused: its case says so

    def _attach_cost(self, original: Arrays, meaning: Arrays, comparisons: list[Comparison]) -> list[Comparison]:
        assert self._original is not None  # it was asked
        ports, promised = self._artifact.outputs, self._artifact.promised_outputs
        names = pair_outputs(list(original), ports, promised, named=self._original.named).reverse
        known = {c.output: original[names[c.output]] for c in comparisons if names.get(c.output) in original}
        return [
            replace(c, cost=measure_cost(known[c.output], meaning[c.output])) if c.output in known else c
            for c in comparisons
        ]

    @property
    def evaluator(self) -> Evaluator | None:
        """What evaluates the graph in float64, where that can be done."""
        return self._exact.evaluator if self._exact is not None else None

    @cached_property
    def _exact(self) -> GraphInFloat64 | None:
        """The graph in float64; None without a truth."""
        if self.double is None or self._original is not None:  # the graph itself is the truth then
            return None
        try:
            graph = Graph.read(Path(self._artifact.path))
            return GraphInFloat64(graph, self._inputs.reverse, self.subject.module, self.double)
        except Exception as error:
            # An auxiliary check on a graph that the evaluator cannot take apart: the others go on without it.
            evidence = {"reason": f"{type(error).__name__}: {error}"[:300]}
            self._listener.finding(found("OX114", "the graph cannot be evaluated in float64", evidence=evidence))
            return None


def verify(
    verifier: Verifier,
    listener: Listener,
    done: frozenset[str] = frozenset(),
    budget: float = 120.0,
    planned: Sequence[str] = (),
) -> None:
    """Run the planned cases that are not done yet, as many as the budget has work for; those that were `planned` before, where some were."""
    verifier.calibrate()
    cases = [case for case in verifier.plan() if not planned or case.name in planned]
    listener.plan(cases, verifier.supply.coverage(cases))
    for finding in verifier.supply.remarks():
        listener.finding(finding)
    began, left_out, cut = time.perf_counter(), list[str](), list[str]()
    for case in cases:
        if case.name in done:
            continue
        if time.perf_counter() - began > PATIENCE * budget:
            cut.append(case.name)
            continue
        try:
            result = verifier.run(case)
        except MemoryError as error:
            # Only the candidate's own lack of memory is held against it.
            severity: Severity = "block" if verifier.stage == CANDIDATE else "note"
            message = f"out of memory in case {case.name}, stage {name_stage(verifier.stage)}"
            evidence = {"error": str(error)[:300], "stage": name_stage(verifier.stage)}
            listener.finding(found("OX003", message, where=Where(case=case.name), severity=severity, evidence=evidence))
            continue
        if result is None:
            left_out.append(case.name)
            continue
        listener.case(result, verifier.ledger)
        if result.status == "rejected" and case.profile == "normal":
            _try_example(verifier, case, listener, done)
    _walk_freely(verifier, listener, {*done, *(case.name for case in cases)})
    for finding in (*verifier.find_faults(), *_tell_left_out(cases, left_out, cut, budget)):
        listener.finding(finding)


def _walk_freely(verifier: Verifier, listener: Listener, known: set[str]) -> None:
    """Both sides in free run; the step that goes wrong first is also run with the state that the module has there."""
    rollout = verifier.roll_out(known)
    if rollout is None:
        return
    listener.rollout(rollout)
    last = len(rollout.steps) - (not rollout.message)
    case = Case(f"{rollout.name}/step={last}", profile="rollout")
    parted = bool(rollout.message) or (bool(rollout.steps) and is_beyond(rollout.steps[-1]))
    rollouts = verifier.supply.rollouts
    feedable = rollouts is not None and bool(rollouts.state)
    result = verifier.run(case) if parted and feedable and case.name not in known else None
    if result is not None:
        listener.case(result, verifier.ledger)


def _tell_left_out(
    cases: Sequence[Case], unaffordable: Sequence[str], cut: Sequence[str], budget: float
) -> Iterator[Finding]:
    """What a reader must know who takes the plan for what was run."""
    missing = {*unaffordable, *cut}
    severity: Severity = "review" if any(case.core and case.name in missing for case in cases) else "note"
    told = (
        (unaffordable, f"they would not fit into the budget of {budget:g} s or into memory"),
        (cut, f"the clock cut after {PATIENCE * budget:g} s, {PATIENCE:g} times the budget"),
    )
    for names, why in told:
        if names:
            message = f"{len(names)} of {len(cases)} cases were left out: {why}"
            yield found("OX005", message, severity=severity, evidence={"cases": list(names)})


def _try_example(verifier: Verifier, case: Case, listener: Listener, done: frozenset[str]) -> None:
    """Where the module refuses random values at some sizes, its own example at those sizes may do."""
    again = replace(case, name=case.name.replace("/normal/", "/example/"), profile="example")
    result = verifier.run(again) if again.name not in done else None
    if result is not None and result.status != "rejected":
        listener.case(result, verifier.ledger)


def add_symbols(subject: Subject, artifact: Artifact) -> Subject:
    """Dims that the artifact leaves open join the sweep, under the artifact's names."""
    pairs = pair_inputs(dict.fromkeys(subject.inputs.tensors, ""), artifact.inputs).pairs
    ports = {port.name: port for port in artifact.inputs}
    dynamic = {name: dict(dims) for name, dims in subject.dynamic.items()}
    known = {size for dims in dynamic.values() for size in dims.values()}
    for name, graph in pairs.items():
        shape = ports[graph].shape or ()
        tensor = subject.inputs.tensors[name]
        for dim, size in enumerate(shape):
            if isinstance(size, str) and dim not in dynamic.get(name, {}) and dim < tensor.ndim and size not in known:
                dynamic.setdefault(name, {})[dim] = size
    return replace(subject, dynamic=dynamic)


def expect_work(subject: Subject) -> Work:
    """A first guess, before a forward was counted: every weight is used once for each row."""
    tensors = subject.inputs.tensors.values()
    rows = max((tensor.shape[0] for tensor in tensors if tensor.ndim), default=1)
    products = 2.0 * rows * sum(parameter.numel() for parameter in subject.module.parameters())
    return Work(100, products, sum(tensor.numel() for tensor in tensors))


def _count_elements(inputs: Arrays) -> int:
    return sum(array.size for array in inputs.values())


def _mark_swap(c: Comparison, baseline: Arrays, candidate: Arrays) -> Comparison:
    """Note another output of the module that this output of the artifact equals, where its own it does not."""
    value = candidate[c.output]
    if (
        not c.same_form
        or c.matched is not None
        or not c.size
        or value.dtype.kind not in "fiub"
        or _alike(value, baseline[c.output])
    ):
        return c
    twin = next((n for n, other in baseline.items() if n != c.output and _alike(value, other)), None)
    return replace(c, swapped_with=twin)


def _alike(a: Array, b: Array) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or not a.size:
        return False
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True))
