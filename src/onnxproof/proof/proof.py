"""Proof: everything found out about a subject, as one record. Every report is a pure function of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxproof.errors import UserError
from onnxproof.findings import Finding, Verdict, verdict_of
from onnxproof.policy.baseline_findings import known_of
from onnxproof.policy.judgement import judge
from onnxproof.policy.thresholds import Policy
from onnxproof.proof.blame import Blame
from onnxproof.proof.case_result import CaseResult

if TYPE_CHECKING:
    from pandas import DataFrame

    from onnxproof.report.plot import Plot

SCHEMA = "onnxproof/1"


@dataclass(frozen=True)
class Proof:
    """The record. `observed` are findings of the stages; `findings` also has what the policy says about the cases."""

    subject: Mapping[str, Any]
    artifact: Mapping[str, Any] | None
    environment: Mapping[str, Any]
    cases: tuple[CaseResult, ...]
    findings: tuple[Finding, ...]
    policy: Policy = Policy()
    planned: tuple[str, ...] = ()
    latency: Mapping[str, Any] | None = None
    quality: Mapping[str, Any] | None = None
    timing: Mapping[str, float] = field(default_factory=dict)
    blame: Mapping[str, Blame] = field(default_factory=dict)
    """Case → who is to blame for what happened in it."""
    search: Mapping[str, Any] | None = None
    """What a search did: inputs, regimes reached, how near it came."""
    coverage: Mapping[str, Any] = field(default_factory=dict)
    """Per input: how much of the user's data lies where generated cases have been."""
    counterexamples: tuple[Mapping[str, Any], ...] = ()
    """The smallest failing inputs, and where they are kept."""
    healing: Mapping[str, Any] | None = None
    """What `--heal` tried, and what passed."""

    @property
    def verdict(self) -> Verdict:
        """SHIP, REVIEW or BLOCK, in lower case."""
        return verdict_of(self.findings)

    @property
    def compared(self) -> int:
        """Cases in which outputs of both sides were compared."""
        return sum(1 for case in self.cases if case.outputs)

    def judged(self, policy: Policy) -> Proof:
        """The same facts under another policy."""
        return replace(
            self,
            policy=policy,
            findings=tuple(
                judge(
                    self.findings,
                    self.cases,
                    policy,
                    self.blame,
                    self.counterexamples,
                    latency=self.latency,
                    quality=self.quality,
                )
            ),
        )

    def against(self, baseline: Proof) -> Proof:
        """The same facts where only what is worse than in the baseline gates."""
        return self.judged(replace(self.policy, known=known_of(baseline.findings)))

    @property
    def plot(self) -> Plot:
        """Charts for a notebook: `proof.plot.errors()`, `.heatmap()`, `.path()`, `.latency()`, `.confusion()`, …"""
        from onnxproof.report.plot import Plot  # a face of the proof: loaded when it is looked at

        return Plot(self)

    def to_frame(self) -> DataFrame:
        """A pandas data frame with one row per output of a case."""
        from onnxproof.report.frame import to_frame

        return to_frame(self)

    def to_html(self) -> str:
        """The whole report as one self-contained page."""
        from onnxproof.report.html import render_html

        return render_html(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from onnxproof.report.notebook import render_notebook

        return render_notebook(self)

    def to_json(self) -> dict[str, Any]:
        """The proof as plain data, every number finite."""
        data = {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "subject": dict(self.subject),
            "artifact": dict(self.artifact) if self.artifact is not None else None,
            "environment": dict(self.environment),
            "policy": self.policy.to_json(),
            "planned": list(self.planned),
            "cases": [case.to_json() for case in self.cases],
            "findings": [finding.to_json() for finding in self.findings],
            "blame": {case: blame.to_json() for case, blame in self.blame.items()},
            "search": dict(self.search) if self.search is not None else None,
            "coverage": dict(self.coverage),
            "counterexamples": [dict(one) for one in self.counterexamples],
            "healing": dict(self.healing) if self.healing is not None else None,
            "latency": self.latency,
            "quality": self.quality,
            "timing": dict(self.timing),
        }
        cleaned: dict[str, Any] = finite(data)
        return cleaned

    def dumps(self) -> str:
        """The proof as JSON text."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the proof."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(self.dumps(), encoding="utf-8")

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Proof:
        """Read a proof back; fields of a later version are ignored."""
        if not str(data.get("schema", "")).startswith("onnxproof/"):
            raise UserError(f"this is not a proof: expected schema {SCHEMA!r}, got {data.get('schema')!r}")
        return Proof(
            subject=data["subject"],
            artifact=data["artifact"],
            environment=data["environment"],
            cases=tuple(CaseResult.from_json(case) for case in data["cases"]),
            findings=tuple(Finding.from_json(finding) for finding in data["findings"]),
            policy=Policy.from_json(data["policy"]),
            planned=tuple(data.get("planned", ())),
            search=data.get("search"),
            coverage=data.get("coverage") or {},
            counterexamples=tuple(data.get("counterexamples") or ()),
            healing=data.get("healing"),
            latency=data.get("latency"),
            quality=data.get("quality"),
            timing=data.get("timing") or {},
            blame={case: Blame.from_json(blame) for case, blame in (data.get("blame") or {}).items()},
        )

    @staticmethod
    def load(path: str | Path) -> Proof:
        """Read a proof file."""
        file = Path(path)
        if not file.is_file():
            raise UserError(f"there is no proof {file}")
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UserError(f"{file} is not JSON: {error}") from None
        if not isinstance(data, dict):
            raise UserError(f"{file} is not a proof: expected an object with schema {SCHEMA!r}")
        try:
            return Proof.from_json(data)
        except (KeyError, TypeError) as error:
            raise UserError(f"{file} is not a complete proof: {error}") from None


def finite(value: Any) -> Any:
    """The same data with NaN as null and infinities as the largest float: JSON has neither."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return math.copysign(1.7976931348623157e308, value) if math.isinf(value) else value
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [finite(item) for item in value]
    return value


def schema() -> dict[str, Any]:
    """The JSON Schema of a proof."""
    text = resources.files("onnxproof.proof").joinpath("proof.schema.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data
