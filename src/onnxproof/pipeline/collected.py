"""What the stages reported, as it comes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from onnxproof.findings import Finding
from onnxproof.pipeline import events
from onnxproof.pipeline.latency_parts import LatencyParts
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.blame import Blame
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.environment import Environment
from onnxproof.proof.proof import Proof
from onnxproof.proof.quality import Quality
from onnxproof.proof.search import Counterexample, Coverage, Search
from onnxproof.proof.subject import SubjectFacts


@dataclass
class Progress:
    """Who wants to know how far it is."""

    stage: Callable[[str], None] = lambda text: None
    case: Callable[[int, int, str], None] = lambda done, total, name: None
    search: Callable[[Search], None] = lambda outcome: None
    rows: Callable[[events.Evaluated], None] = lambda done: None
    verdict: Callable[[Proof], None] = lambda proof: None
    """Hears the verdict as soon as it is certain, where something is still to be found out: the cause, the smallest input."""


@dataclass
class Collected:
    """What the stages reported so far."""

    progress: Progress = field(default_factory=Progress)
    subject: SubjectFacts = SubjectFacts()
    environment: Environment = Environment()
    artifact: Artifact | None = None
    findings: list[Finding] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
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
    blames: dict[str, Blame] = field(default_factory=dict)
    search: Search | None = None
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    counterexamples: list[Counterexample] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Cases that a search found → where their inputs are."""
    times: LatencyParts = field(default_factory=LatencyParts)
    quality: Quality | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each stage took."""

    @property
    def results(self) -> list[CaseResult]:
        """Every case that was run."""
        return list(self.cases.values())

    @property
    def stateful(self) -> bool:
        """Whether a forward changes the module's buffers, so that they must be put back."""
        return any(finding.entry.stateful for finding in self.findings)

    def receive(self, event: events.Event) -> None:
        """Take in one event."""
        match event:
            case events.Entered(stage, case):
                self._enter(stage, case)
            case events.SubjectRead(subject, environment):
                self.subject, self.environment = subject, environment
            case events.Observed(finding):
                self.observe(finding)
            case events.Exported(artifact):
                self.artifact = artifact
            case events.Planned(cases, unfair, coverage):
                self.planned, self.unfair, self.coverage = list(cases), frozenset(unfair), coverage
            case events.Compared(result):
                self.cases[result.name] = result
                self.progress.case(len(self.cases), len(self.planned), result.name)
            case events.Paired(outputs):
                self.outputs = outputs
            case events.Blamed(case, blame):
                self.blames[case] = blame
            case events.Searched(search):
                self.search = search
                self.progress.search(search)
            case events.Hit(case, file):
                self._hit(case, file)
            case events.Shrunk(counterexample):
                self.counterexamples.append(counterexample)
            case events.Timed(latency):
                self.times.latency = latency
            case events.ToWeigh():
                self.times.to_weigh = event
            case events.Weighed(contender, count):
                self.times.weighed[contender] = count
            case events.Evaluated():
                self.progress.rows(event)
            case events.Measured(quality):
                self.quality = quality
            case events.Troubled(stage, message):
                self.progress.stage(f"{stage}: {message}")

    def observe(self, finding: Finding) -> None:
        """A finding, once."""
        if finding not in self.findings:
            self.findings.append(finding)

    def _enter(self, stage: str, case: str | None) -> None:
        self.at = (case, stage)
        if case is None:
            self.progress.stage(stage)
        elif self.planned and not case.startswith("search/"):
            self.progress.case(len(self.cases), len(self.planned), case)

    def _hit(self, case: str, file: str) -> None:
        for earlier in self.files:  # a graver find takes the place of one to be reviewed
            self.cases.pop(earlier, None)
        self.files = {case: file}
