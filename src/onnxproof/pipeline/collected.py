"""What the stages report, as it comes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onnxproof.errors import OnnxproofError
from onnxproof.findings import Finding
from onnxproof.pipeline.latency_parts import Clockwork
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.blame import Blame
from onnxproof.proof.case_result import CaseResult


class NotPortable(OnnxproofError):
    """A module in memory that cannot be sent to a child."""


class InternalError(OnnxproofError):
    """Our own bug, with the traceback of the process it happened in."""


@dataclass
class Progress:
    """Who wants to know how far it is."""

    stage: Callable[[str], None] = lambda text: None
    case: Callable[[int, int, str], None] = lambda done, total, name: None
    search: Callable[[Mapping[str, Any]], None] = lambda outcome: None
    rows: Callable[[Mapping[str, Any]], None] = lambda done: None


@dataclass
class Record:
    """What the stages reported so far."""

    progress: Progress
    subject: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    artifact: Artifact | None = None
    findings: list[Finding] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
    cases: dict[str, CaseResult] = field(default_factory=dict)
    unfair: frozenset[str] = frozenset()
    lost: set[str] = field(default_factory=set)
    """Cases in which a child died."""
    at: tuple[str | None, str] = (None, "start")
    error: Mapping[str, Any] | None = None
    finished: bool = False
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Module's output → graph's output."""
    blames: dict[str, Blame] = field(default_factory=dict)
    search: Mapping[str, Any] | None = None
    coverage: Mapping[str, Any] = field(default_factory=dict)
    counterexamples: list[Mapping[str, Any]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Cases that a search found → where their inputs are."""
    clock: Clockwork = field(default_factory=Clockwork)
    """What a benchmark reported."""
    quality: Mapping[str, Any] | None = None

    def receive(self, event: Mapping[str, Any]) -> None:
        """Take in one event."""
        handler = getattr(self, f"_on_{event['event']}")
        handler(event)

    def _on_stage(self, event: Mapping[str, Any]) -> None:
        self.at = (event["case"], event["stage"])
        if event["case"] is None:
            self.progress.stage(event["stage"])
        elif self.planned and not event["case"].startswith("search/"):
            self.progress.case(len(self.cases), len(self.planned), event["case"])

    def _on_subject(self, event: Mapping[str, Any]) -> None:
        self.subject, self.environment = event["subject"], event["environment"]

    def _on_finding(self, event: Mapping[str, Any]) -> None:
        finding = Finding.from_json(event["finding"])
        if finding not in self.findings:
            self.findings.append(finding)

    def _on_artifact(self, event: Mapping[str, Any]) -> None:
        self.artifact = Artifact.from_json(event["artifact"])

    def _on_plan(self, event: Mapping[str, Any]) -> None:
        self.planned, self.unfair, self.coverage = event["cases"], frozenset(event["unfair"]), event["coverage"]

    def _on_case(self, event: Mapping[str, Any]) -> None:
        result = CaseResult.from_json(event["case"])
        self.cases[result.name] = result
        self.progress.case(len(self.cases), len(self.planned), result.name)

    def _on_outputs(self, event: Mapping[str, Any]) -> None:
        self.outputs = event["pairs"]

    def _on_blame(self, event: Mapping[str, Any]) -> None:
        self.blames[event["case"]] = Blame.from_json(event["blame"])

    def _on_searched(self, event: Mapping[str, Any]) -> None:
        self.search = event["search"]
        self.progress.search(event["search"])

    def _on_found(self, event: Mapping[str, Any]) -> None:
        for earlier in self.files:  # a graver find takes the place of one to be reviewed
            self.cases.pop(earlier, None)
        self.files = {event["case"]: event["file"]}

    def _on_counterexample(self, event: Mapping[str, Any]) -> None:
        self.counterexamples.append(event["counterexample"])

    def _on_latency(self, event: Mapping[str, Any]) -> None:
        self.clock.latency = event["latency"]

    def _on_weigh(self, event: Mapping[str, Any]) -> None:
        self.clock.to_weigh = event

    def _on_weighed(self, event: Mapping[str, Any]) -> None:
        self.clock.weighed[event["contender"]] = event["bytes"]

    def _on_evaluated(self, event: Mapping[str, Any]) -> None:
        self.progress.rows(event)

    def _on_quality(self, event: Mapping[str, Any]) -> None:
        self.quality = event["quality"]

    def _on_trouble(self, event: Mapping[str, Any]) -> None:
        self.progress.stage(f"{event['stage']}: {event['message']}")

    def _on_error(self, event: Mapping[str, Any]) -> None:
        self.error = event

    def _on_done(self, event: Mapping[str, Any]) -> None:
        self.finished = True

    @property
    def stateful(self) -> bool:
        """Whether a forward changes the module's buffers, so that they must be put back."""
        return any(f.code == "OX113" for f in self.findings)
