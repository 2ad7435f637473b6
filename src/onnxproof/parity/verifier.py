"""Inputs → one result: both sides run, and what parts them is held against what rounding explains."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from onnxproof.artifact.pairing import Pairing, pair_inputs, pair_outputs
from onnxproof.candidates import choose_candidate
from onnxproof.candidates.candidate import Candidate, Session
from onnxproof.candidates.roles import BASELINE, CANDIDATE, TRUTH
from onnxproof.cases.plan import Case, Inputs
from onnxproof.cases.supply import Supply
from onnxproof.diagnosis.failures import find_named_node
from onnxproof.errors import FindingError, Rejected, list_names
from onnxproof.findings import Finding, found
from onnxproof.graph.evaluator import Evaluator
from onnxproof.graph.sourcemap import place_node
from onnxproof.graph.view import Graph
from onnxproof.parity.boxes import count_rows, find_boxes
from onnxproof.parity.carried import HiddenState, find_rollouts
from onnxproof.parity.case_run import Answers, CaseRun
from onnxproof.parity.comparison import compare
from onnxproof.parity.declared import Meaning, declare_subject
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.exactness import GraphInFloat64
from onnxproof.parity.float64 import DoubleRunner, Unavailable
from onnxproof.parity.headroom import Headroom
from onnxproof.parity.ledger import Ledger
from onnxproof.parity.listener import Listener
from onnxproof.parity.lowered import Original
from onnxproof.parity.memo import Memo
from onnxproof.parity.nonfinite import leave_unasked
from onnxproof.parity.ports import add_symbols, find_passed, mark_swap
from onnxproof.parity.rollout import FreeRun, Sides, name_answers
from onnxproof.parity.rows import Part, Rows
from onnxproof.parity.saturation import EXAMINED, choose_saturating, find_saturating, find_saturation
from onnxproof.parity.sets import judge_sets, tell_sets
from onnxproof.parity.truth import HOPELESS, PLANNED, Effort, Outputs, Truth
from onnxproof.parity.work import expect_work
from onnxproof.proof.artifact import Artifact, Port
from onnxproof.proof.case_result import ORDINARY, CaseResult
from onnxproof.proof.comparison import Comparison, Exactness
from onnxproof.proof.rollout import Rollout
from onnxproof.request.request import VerifySettings
from onnxproof.subject.completion import BRANCH
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays

T = TypeVar("T")
# How many times the budget the core of the plan may take: without it there is no answer.
CORE = 4.0
# The share of the budget that a free run of steps may take.
FREE = 0.25
# Seconds of work from which on the legal roundings of a case are asked for only where nothing else tells.
DEAR = 30.0
# What an output of the session is asked for where it is there already.
Answer = Callable[[], dict[str, Array]]


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
        self._hidden = HiddenState(subject, artifact)
        artifact, precision = self._hidden.artifact, artifact.precision
        lowered = precision is not None and precision.declared
        self._original = Original(subject, artifact, stateful=stateful) if lowered else None
        self._saturating = find_saturating(precision, settings.session, self.candidate)
        # A chosen precision is held against the file's own meaning, which stands in the module's place.
        subject = declare_subject(subject, artifact, self._saturating) if lowered else subject
        self.subject = add_symbols(subject, artifact)
        self._artifact, self._settings, self._listener, self._effort = artifact, settings, listener, effort
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
        # A file in a lower precision is held against its original too, row by row.
        self._rows = Rows(self.supply, self.double) if self.double is not None and self._original is None else None
        self._outputs: Pairing | None = None
        self._headroom = Headroom()
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

    def suits(self, settings: VerifySettings) -> bool:
        """Whether what is known of the truth holds for another runtime: one that adds bytes as this one does."""
        there = choose_candidate(settings.session)
        return find_saturating(self._artifact.precision, settings.session, there) == self._saturating

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

    def _pair_inputs(self) -> Pairing:
        dtypes = {d.name: d.dtype.name for d in self.supply.domains}
        named = not self.subject.args
        lowered, shapes = self._original is not None, self.subject.shapes()
        pairing = pair_inputs(dtypes, self._artifact.inputs, shapes, named=named, lowered=lowered)
        promised, names = self._artifact.promised_inputs, [port.name for port in self._artifact.inputs]
        broken = promised is not None and {*promised} != {*names}
        moved = promised is not None and not broken and [*promised] != names
        for finding in pairing.findings:
            # An order that the file itself promises is one that callers may go by.
            finding = replace(finding, severity=finding.entry.severity) if moved else finding
            # Names that the file itself says it has are what its callers use, whatever the answers are.
            told = {**finding.evidence, "promised": list(promised or ())}
            self._remark(replace(finding, evidence=told) if broken else finding)
        if pairing.blocking is not None:
            raise FindingError(pairing.blocking)
        return pairing

    def _pair_outputs(self, baseline: Arrays, inputs: Inputs) -> Pairing:
        if self._outputs is None:
            ports, promised = self._list_answered(inputs), self._artifact.promised_outputs
            passed = find_passed(inputs, baseline)
            self._outputs = pair_outputs(list(baseline), ports, promised, named=self.eager.named, passed=passed)
            for finding in filter(None, [*self._outputs.findings, tell_sets(baseline, count_rows(inputs))]):
                self._listener.finding(finding)
            self._listener.outputs(self._outputs.pairs)
        return self._outputs

    def _list_answered(self, inputs: Inputs) -> Sequence[Port]:
        """The outputs of the file; one of two branches answers what does not change in the other one only."""
        ports = self._artifact.outputs
        if BRANCH not in self.subject.foreign:
            return ports
        raw = self.session.run(inputs)
        return [port for port in ports if raw[port.name].size]

    def _make_double(self) -> DoubleRunner | None:
        try:
            double = DoubleRunner(self.subject)
            with expect_work(self.subject).threads(0):
                double.run(self.supply.example())
        except Unavailable as error:
            message = "the module cannot run in float64; its noise is estimated by moving inputs by an ulp"
            self._remark(found("OX111", message, evidence={"reason": str(error)[:500]}))
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
        hidden = self._hidden.pairs
        self.supply.rollouts = find_rollouts(
            self.supply, self.eager, hidden, lambda outputs: self._pair_outputs(outputs, self.supply.example()).reverse
        )
        return self.supply.plan(self.double.called if self.double is not None else ())

    def roll_out(self, done: Collection[str] = ()) -> Rollout | None:
        """Both sides in free run, as many steps as a part of the budget has work for."""
        rollouts, hidden = self.supply.rollouts, self._hidden.pairs
        walk = rollouts.walks[0] if rollouts is not None and rollouts.walks else None
        if rollouts is None or walk is None or walk.name in done or not self.output_pairs:
            return None
        cost = self.work.case(_count_elements({**rollouts.begin(walk), **rollouts.drive(walk)[0]}))
        steps = min(rollouts.count(walk), int(FREE * self._settings.budget / cost))
        free = FreeRun(rollouts, walk, steps, self._truth, self._settings.limits)
        self._listener.stage(walk.name, CANDIDATE)
        handed = self._outputs.handed if self._outputs is not None else {}
        answers = name_answers(self.session.run, self.output_pairs, hidden, handed)
        sides, begin = Sides(self.eager, self.double), self._hidden.begin(rollouts.drive(walk)[0])
        with self.work.threads(0):
            return free.run(sides, answers, hidden, begin, guessed=not self._settings.state)

    def find_faults(self) -> Iterator[Finding]:
        """What went wrong in a conversion to a lower precision."""
        meaning = self.subject.module
        if self._original is not None and isinstance(meaning, Meaning) and meaning.evaluable:
            data = self.supply.first_rows()
            inputs = self.supply.example() if data is None else data
            yield from self._original.find_faults(meaning, inputs, self.input_pairs, real=data is not None)

    def find_saturation(self, cases: Sequence[Case]) -> Iterator[Finding]:
        """What a CPU without VNNI makes of ordinary inputs, the user's first."""
        how = choose_saturating(self._artifact.precision, self._settings.session)
        module = self.subject.module
        meaning = module if isinstance(module, Meaning) else Meaning(self._artifact.path, self.input_pairs)
        if how is None or not meaning.evaluable:
            return
        chosen = sorted((case for case in cases if case.profile in ORDINARY), key=lambda case: case.profile != "data")
        batches = [("example", self.supply.example())]
        batches += [(case.name, self.supply.make_inputs(case)) for case in chosen[:EXAMINED]]
        fed = [(name, {self.input_pairs.get(n, n): array for n, array in one.items()}) for name, one in batches]
        yield from find_saturation(meaning, fed, how, self._artifact, here=self._saturating is not None)

    def run(self, case: Case) -> CaseResult | None:
        """Run a case on both sides and compare; None where it would not fit into the budget."""
        self._enter(case.name, "inputs")
        inputs = self._ask_once(case, "inputs", lambda: self.supply.make_inputs(case))
        elements = _count_elements(inputs)
        allowed = self._settings.budget * (CORE if case.core else 1)
        if self.ledger.forwards + self.work.case(elements) > allowed or not self._headroom.fits(elements):
            return None
        return self.evaluate(case, inputs)

    def evaluate(
        self, case: Case, inputs: Inputs, answer: Answer | None = None, *, glance: bool = False, inside: bool = True
    ) -> CaseResult:
        """Run some inputs on both sides and compare; `answer` has the session's outputs where they are there already.

        A glance leaves open what rounding explains, and what the graph means in float64 unless it is to look inside.
        """
        run = CaseRun(case, inputs, self._enter)
        with self.work.threads(run.elements):
            try:
                baseline, original = self._ask_module(run)
            except Rejected as error:
                return replace(run.begin(), message=str(error)[:500])
            try:
                candidate = self._ask_candidate(run, baseline, answer)
            except Rejected as error:
                where = place_node(find_named_node(str(error)), self._artifact.sourcemap)
                return replace(run.begin(), status="failed", message=str(error)[:1000], where=where)
            if not self._settings.nonfinite and run.asks_for_nonfinite:
                run, candidate = leave_unasked(run, baseline, candidate, self.double)
            limits = self._settings.limits
            apart = [
                compare(name, baseline[name], candidate[name], atol=limits.atol, rtol=limits.rtol)
                for name in candidate
                if name in baseline
            ]
            decided = None if glance else self._decide_by_rows(run, baseline, candidate, apart)
            if decided is None:
                answers = Answers(run.inputs, original, baseline, self._ask_truth(run, run.inputs))
                decided = self._compare(run, answers, candidate, apart, glance, inside)
            self._headroom.learn(run.elements)
            self.ledger.forwards += self.work.case(run.elements)
        return replace(run.begin(), status="compared", outputs=tuple(decided))

    def choose_rows(self, inputs: Inputs, baseline: Outputs, candidate: Outputs) -> Part | None:
        """The rows of a large batch that decide for all of them; None where all are to be asked."""
        return self._rows.choose(inputs, baseline, candidate) if self._rows is not None else None

    def leaves_open(self, c: Comparison) -> bool:
        """Whether an output differs in a way that no rounding was found to explain."""
        return self._truth.leaves_open(c)

    def _enter(self, case: str, stage: str) -> None:
        self._listener.stage(case, stage)
        self.stage = stage

    def _ask_once(self, case: Case, what: str, answer: Callable[[], T]) -> T:
        """What does not depend on the candidate."""
        return answer() if self._memo is None else self._memo.once((case.name, what), answer)

    def _ask_module(self, run: CaseRun) -> tuple[Outputs, Outputs]:
        """What the module says, and what it was made of."""
        case, inputs = run.case, run.inputs
        # What the original refuses is nothing that a file made of it has to answer.
        original = self._original.run(inputs) if self._original is not None else {}
        baseline = run.time(BASELINE, lambda: self._ask_once(case, "baseline", lambda: self.eager.run(inputs)))
        if not baseline:
            raise Rejected("the module returned no tensor")
        return baseline, original

    def _ask_truth(self, run: CaseRun, inputs: Inputs, rows: Sequence[int] = ()) -> Outputs | None:
        """What the module means in float64, of all rows or of some."""
        return run.time(TRUTH, lambda: self._ask_once(run.case, f"truth {rows}", lambda: self._truth.of(inputs)))

    def _ask_candidate(self, run: CaseRun, baseline: Outputs, answer: Answer | None) -> Outputs:
        """What the candidate says, under the module's names."""
        raw = run.time(CANDIDATE, answer or (lambda: self.session.run(self._feed(run.inputs))))
        outputs = self._pair_outputs(baseline, run.inputs)
        pairs = outputs.pairs
        missing = [graph for graph in pairs.values() if graph not in raw]
        # Another contender's answer may lack outputs: it is compared in those that it has.
        if missing and answer is None:
            raise Rejected(f"{self.candidate.name} does not answer {list_names(missing)}; it answers {list_names(raw)}")
        answered = {name: raw[graph] for name, graph in pairs.items() if graph in raw}
        return {**answered, **{name: run.inputs[into] for name, into in outputs.handed.items()}}

    def _feed(self, inputs: Inputs) -> Inputs:
        return {**inputs, **self._hidden.begin(inputs)}

    def _decide_by_rows(
        self, run: CaseRun, baseline: Outputs, candidate: Outputs, comparisons: list[Comparison]
    ) -> list[Comparison] | None:
        """What explains the differences, where some rows of a large batch tell; None where they leave something open."""
        # Who looks closer does so at inputs that differ: there all rows are asked in the end.
        part = self.choose_rows(run.inputs, baseline, candidate) if self._effort.settles else None
        truth = self._ask_truth(run, part.inputs, part.rows) if part is not None else None
        if part is None or truth is None:
            return None
        answers = Answers(part.inputs, {}, part.baseline, truth)
        # What few rows leave open is asked of all, and counts there.
        judge = Truth(self.eager, self.double, self._settings.limits, self._effort, self.ledger.copy())
        judged, known = run.time(
            "noise", lambda: self._judge(run, answers, part.candidate, comparisons, False, judge, part.rows)
        )
        # What was shown by enough cases is not asked any more: a few rows have the numbers that are left to tell, where there are any.
        boxes = find_boxes(baseline, count_rows(run.inputs)) is not None
        asked = [c for c in judged if self.leaves_open(c) and (boxes or c.asked)]
        untold = [c for c in judged if c.noise is None and c.max_abs]
        if known is None or asked or untold:
            return None
        return self._look_inside(run, known, judged, part.inputs, glance=False)

    def _compare(
        self,
        run: CaseRun,
        answers: Answers,
        candidate: Outputs,
        comparisons: list[Comparison],
        glance: bool,
        inside: bool,
    ) -> list[Comparison]:
        """Output by output: what explains that they are so far apart."""
        baseline, limits = answers.baseline, self._settings.limits
        judged = self._judge_plainly(run, answers, candidate, comparisons) if not glance and inside else None
        early, spared = judged is not None and any(map(self.leaves_open, judged[0])), set[str]()
        if early and answers.truth is not None:
            # One evaluation that shows another meaning spares dozens of legal roundings, which cannot explain it.
            comparisons, judged = self._look_inside(run, answers.truth, comparisons, run.inputs, glance=False), None
            changed = {c.output for c in comparisons if c.exactness is not None and c.exactness.ratio > HOPELESS}
            spared = self._truth.note_changed(changed, settled=self._is_dear(run))
        comparisons, truth = judged or run.time(
            "noise", lambda: self._judge(run, answers, candidate, comparisons, glance, spared=spared)
        )
        if not glance:
            known = replace(answers, truth=truth)
            comparisons = judge_sets(self._truth, limits, known, candidate, comparisons, run.group)
        if truth is None:
            self._truth.forget_changed(c.output for c in comparisons)
            comparisons = [replace(c, exactness=None) for c in comparisons]
        elif not early and inside:
            comparisons = self._look_inside(run, truth, comparisons, run.inputs, glance=glance)
        comparisons = [mark_swap(c, baseline, candidate) for c in comparisons]
        if self._original is None or not run.case.fair:
            return comparisons
        exact, repeated = baseline if truth is None else truth, run.case.repeated
        costed = self._original.attach_cost(answers.original, exact, comparisons, repeated)
        if run.case.profile in ORDINARY and any(c.cost is not None and c.cost.lost for c in costed):
            self._original.overflowing = self._original.overflowing or run.inputs
        return costed

    def _judge_plainly(
        self, run: CaseRun, answers: Answers, candidate: Outputs, comparisons: list[Comparison]
    ) -> tuple[list[Comparison], Outputs | None] | None:
        """The comparisons without legal roundings, which is all where they leave nothing open; None where there is no truth."""
        if answers.truth is None:
            return None
        return run.time("noise", lambda: self._judge(run, answers, candidate, comparisons, True))

    def _is_dear(self, run: CaseRun) -> bool:
        """Whether all legal roundings of a case would take long."""
        return self.work.sample(run.elements) * self._effort.samples[-1] > DEAR

    def _judge(
        self,
        run: CaseRun,
        answers: Answers,
        candidate: Outputs,
        comparisons: list[Comparison],
        glance: bool,
        judge: Truth | None = None,
        rows: Sequence[int] = (),
        spared: Collection[str] = (),
    ) -> tuple[list[Comparison], Outputs | None]:
        """The comparisons with what rounding explains of each, and the truth where it deserves the name."""
        inputs, baseline, truth = answers.inputs, answers.baseline, answers.truth

        def sample(seed: int, doubled: bool) -> Outputs | None:
            question = f"sample {seed} {doubled} {rows}"
            return self._ask_once(run.case, question, lambda: self._truth.sample(inputs, seed, doubled))

        return (judge or self._truth).judge_case(
            inputs, truth, baseline, candidate, comparisons, run.group, glance=glance, sample=sample, spared=spared
        )

    def _look_inside(
        self, run: CaseRun, truth: Arrays, comparisons: list[Comparison], inputs: Inputs, *, glance: bool
    ) -> list[Comparison]:
        """The comparisons with what the graph means in float64, on inputs that are fair."""
        if not run.case.fair:
            return comparisons
        fed = self._feed(inputs)
        return run.time("reference", lambda: self._attach_exactness(run, truth, comparisons, fed, glance))

    def _attach_exactness(
        self, run: CaseRun, truth: Arrays, comparisons: list[Comparison], inputs: Inputs, glance: bool
    ) -> list[Comparison]:
        def measure() -> Mapping[str, Exactness] | None:
            graph = self._exact
            free = run.case.profile == "example"
            if graph is None or not (
                self._effort.unhurried or graph.affords(self.ledger, _count_elements(inputs), free=free)
            ):
                return None
            return graph.measure(inputs, truth, self.output_pairs, self.ledger, glance=glance)

        try:
            measured = self._ask_once(run.case, "exactness", measure)
        except Rejected as error:
            if run.case.profile == "example":  # what it refuses there it hardly takes elsewhere
                self._tell_inexact(error)
            return comparisons
        if measured is None:
            return comparisons
        # Boxes that were matched have an order of their own, which the evaluator's answer has not.
        whole = [c.same_form and c.matched is None for c in comparisons]
        return [
            replace(c, exactness=measured.get(c.output)) if w else c for c, w in zip(comparisons, whole, strict=True)
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
            self._tell_inexact(error)
            return None

    def _tell_inexact(self, error: Exception) -> None:
        evidence = {"reason": f"{type(error).__name__}: {error}"[:300]}
        self._listener.finding(found("OX114", "the graph cannot be evaluated in float64", evidence=evidence))


def _count_elements(inputs: Arrays) -> int:
    return sum(array.size for array in inputs.values())
