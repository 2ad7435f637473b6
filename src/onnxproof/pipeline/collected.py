"""What the stages reported, as it comes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from onnxproof.candidates.roles import CANDIDATE, name_stage
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.parity.ledger import Ledger
from onnxproof.pipeline import events
from onnxproof.pipeline.journal import Journal
from onnxproof.process.supervisor import End
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.environment import Environment
from onnxproof.proof.latency import Earlier
from onnxproof.proof.proof import Proof
from onnxproof.proof.search import Search
from onnxproof.proof.subject import SubjectFacts


@dataclass
class Progress:
    """Who wants to know how far it is."""

    stage: Callable[[str], None] = lambda text: None
    case: Callable[[int, int, str], None] = lambda done, total, name: None
    search: Callable[[Search], None] = lambda outcome: None
    rows: Callable[[events.Evaluated], None] = lambda done: None
    warning: Callable[[str], None] = lambda text: None
    """Hears of what the answer does not depend on, and whoever waits for it should know."""
    verdict: Callable[[Proof], None] = lambda proof: None
    """Hears the verdict as soon as it is certain, where something is still to be found out: the cause, the smallest input."""


@dataclass
class Collected:
    """What the stages reported so far."""

    progress: Progress = field(default_factory=Progress)
    known: Proof = Proof(SubjectFacts(), None, Environment(), (), ())
    """Everything but the cases; nothing of it is judged yet."""
    cases: dict[str, CaseResult] = field(default_factory=dict)
    unfair: frozenset[str] = frozenset()
    lost: set[str] = field(default_factory=set)
    """Cases in which a child died."""
    at: tuple[str | None, str] = (None, "start")
    """The case and the stage that is being worked at."""
    exporter_death: str | None = None
    """How the default exporter killed its process, if it did."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Module's output → graph's output."""
    files: dict[str, str] = field(default_factory=dict)
    """Cases that a search found → where their inputs are."""
    to_weigh: events.ToWeigh | None = None
    """Contenders and sizes whose memory is asked for."""
    earlier: Earlier | None = None
    """What the proof of `--baseline` measured."""
    version: str | None = None
    """Of the candidate's onnxruntime, where several are asked."""
    p50_ms: float | None = None
    ledger: Ledger | None = None
    """The account of the cases so far."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each stage took."""
    _alike: dict[tuple[str, str], list[Finding]] = field(default_factory=dict)
    """Findings by what they say."""
    journal: Journal = field(default_factory=Journal)
    """Where what comes in is written down."""

    @property
    def proof(self) -> Proof:
        """Everything, not judged yet."""
        place = {name: i for i, name in enumerate(self.known.planned)}
        # As planned, whoever was tried again after a death; a case that became the module's own example stands where it would have.
        last = len(place)
        cases = sorted(self.cases.values(), key=lambda c: place.get(c.name.replace("/example/", "/normal/"), last))
        return replace(self.known, cases=tuple(cases))

    @property
    def stateful(self) -> bool:
        """Whether a forward changes the module's buffers, so that they must be put back."""
        return any(finding.entry.stateful for finding in self.known.findings)

    def receive(self, event: events.Event) -> None:
        """Take in one event, and write it down."""
        self.journal.hear(event)
        self.take_in(event)

    def take_in(self, event: events.Event) -> None:
        """What an event changes."""
        match event:
            case events.Entered(stage, case):
                self._enter(stage, case)
            case events.Observed(finding):
                self.observe(finding)
            case (
                events.SubjectRead()
                | events.Exported()
                | events.Lowered()
                | events.RolledOut()
                | events.Tried()
                | events.Measured()
            ):
                # Their fields are those of the proof.
                self.known = replace(self.known, **msgspec.structs.asdict(event))
            case events.Planned(cases, unfair, coverage):
                self.unfair = frozenset(unfair)
                self.known = replace(self.known, planned=tuple(cases), coverage=coverage)
            case events.Based(mark):
                self.journal.base(mark)
            case events.Compared(result, ledger):
                self.ledger = ledger or self.ledger
                self.cases[result.name] = result
                self.progress.case(len(self.cases), len(self.known.planned), result.name)
            case events.Paired(outputs):
                self.outputs = outputs
            case events.Paced(version, p50_ms):
                self.version, self.p50_ms = version, p50_ms
            case events.Blamed(case, blame):
                self.known = replace(self.known, blame={**self.known.blame, case: blame})
            case events.Searched(search):
                self.known = replace(self.known, search=search)
                self.progress.search(search)
            case events.Hit(case, file):
                for earlier in self.files:  # a graver find takes the place of one to be reviewed
                    self.cases.pop(earlier, None)
                self.files = {case: file}
            case events.Shrunk(counterexample):
                self.known = replace(self.known, counterexamples=(*self.known.counterexamples, counterexample))
            case events.Timed(latency):
                self.known = replace(self.known, latency=replace(latency, baseline=self.earlier))
            case events.ToWeigh():
                self.to_weigh = event
            case events.Weighed(contender, counts) if self.known.latency is not None and self.to_weigh is not None:
                latency = self.known.latency.weighed(contender, self.to_weigh.points, counts)
                self.known = replace(self.known, latency=latency)
            case events.Evaluated():
                self.progress.rows(event)

    def gravity(self) -> Severity:
        """A death of the candidate on a fair input blocks; one of PyTorch or of our own checks is told."""
        case, step = self.at
        return "block" if case is None or (step == CANDIDATE and case not in self.unfair) else "note"

    def death(self, end: End, severity: Severity | None = None) -> Finding:
        """What it means that a child died: a finding about its case, or about the stage."""
        case, stage = self.at[0], name_stage(self.at[1])
        place = f"in case {case}, stage {stage}" if case else f"in stage {stage}"
        evidence = {"signal": end.signal_name, "returncode": end.returncode, "stage": stage, "log": end.log[-2000:]}
        finding = _tell_end(end, place)
        return replace(finding, where=Where(case=case), evidence=evidence, severity=severity or self.gravity())

    def observe(self, finding: Finding) -> None:
        """A finding, once."""
        if not self._alike:
            for one in self.known.findings:
                self._alike.setdefault((one.code, one.message), []).append(one)
        # Only those that say the same are compared: there may be thousands.
        alike = self._alike.setdefault((finding.code, finding.message), [])
        if finding not in alike:
            alike.append(finding)
            self.known = replace(self.known, findings=(*self.known.findings, finding))

    def _enter(self, stage: str, case: str | None) -> None:
        self.at = (case, stage)
        if case is None:
            self.progress.stage(stage)
        elif self.known.planned and not case.startswith("search/"):
            self.progress.case(len(self.cases), len(self.known.planned), case)


def _tell_end(end: End, place: str) -> Finding:
    if end.hung:
        return found("OX002", f"no answer within the time limit {place}; the process was stopped")
    # Linux ends a process that way when memory is short; who hangs is killed by us and told above.
    if end.starved or end.signal_name == "SIGKILL":
        return found("OX003", f"out of memory {place}")
    how = f"killed by {end.signal_name}" if end.signal_name else f"ended with exit code {end.returncode}"
    return found("OX001", f"the process was {how} {place}")
