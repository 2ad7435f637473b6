"""Proof: everything found out about a subject, as one record. Every report is a pure function of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

import msgspec

from onnxproof.errors import UserError
from onnxproof.files import write_file
from onnxproof.findings import Finding, Verdict, decide_verdict
from onnxproof.findings.finding import SharedEvidence
from onnxproof.proof import codec
from onnxproof.proof.artifact import Artifact, Precision
from onnxproof.proof.blame import Blame
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.environment import Environment, Timing
from onnxproof.proof.healing import Healing
from onnxproof.proof.latency import Latency
from onnxproof.proof.quality import Quality
from onnxproof.proof.quantization import Quantization
from onnxproof.proof.released import upgrade
from onnxproof.proof.rollout import Rollout
from onnxproof.proof.runtimes import RuntimeResult
from onnxproof.proof.search import Counterexample, Coverage, Search
from onnxproof.proof.subject import SubjectFacts
from onnxproof.proof.trials import Trials
from onnxproof.request.thresholds import Policy

SCHEMA: Literal["onnxproof/1"] = "onnxproof/1"
P = TypeVar("P", bound="Proof")


@dataclass(frozen=True)
class Proof:
    """What was found out about an ONNX model that is to replace a PyTorch model."""

    PUBLISHED: ClassVar = ("schema", "verdict")
    ADDED: ClassVar = ("runtimes", "rollout", "quantization", "trials")

    subject: SubjectFacts
    artifact: Artifact | None
    environment: Environment
    cases: tuple[CaseResult, ...]
    findings: tuple[Finding, ...]
    """What the stages observed, and what the policy says about the cases."""
    policy: Policy = Policy()
    planned: tuple[str, ...] = ()
    latency: Latency | None = None
    quality: Quality | None = None
    timing: Timing = Timing()
    blame: Mapping[str, Blame] = field(default_factory=dict)
    """Case → who is to blame for what happened in it."""
    search: Search | None = None
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    """Per input: how much of the user's data lies where generated cases have been."""
    counterexamples: tuple[Counterexample, ...] = ()
    """The smallest failing inputs, and where they are kept."""
    healing: Healing | None = None
    """What `--heal` tried, and what passed."""
    runtimes: tuple[RuntimeResult, ...] = ()
    """The same file on each of several runtimes, this proof's own among them."""
    trials: Trials | None = None
    """The pieces of the graph, each on values of its own."""
    quantization: Quantization | None = None
    """What `quantize` tried; the rest of this proof is about the file that won."""
    rollout: Rollout | None = None
    """Both sides in free run, where the model carries state."""

    @property
    def schema(self) -> Literal["onnxproof/1"]:
        """The form of this record."""
        return SCHEMA

    @property
    def counterpart(self) -> str:
        """What the candidate's answers are held against, as messages call it: a file in a lower precision is against its own meaning."""
        return "exact arithmetic" if self.chosen is not None else self.subject.baseline

    @property
    def chosen(self) -> Precision | None:
        """The lower precision that the file is judged by."""
        precision = self.artifact.precision if self.artifact is not None else None
        return precision if precision is not None and precision.declared else None

    @property
    def verdict(self) -> Verdict:
        """SHIP, REVIEW or BLOCK, in lower case."""
        return decide_verdict(self.findings)

    @property
    def compared(self) -> int:
        """Cases in which outputs of both sides were compared."""
        return sum(1 for case in self.cases if case.outputs)

    @property
    def worst_noise_ratio(self) -> float | None:
        """The farthest from rounding on fair inputs."""
        ratios = [c.noise_ratio for case in self.cases if case.fair for c in case.outputs]
        return max((ratio for ratio in ratios if ratio is not None), default=None)

    def dumps(self) -> str:
        """The proof as JSON text, every number finite."""
        return codec.encode(self)

    def save(self, path: str | Path) -> None:
        """Write the proof."""
        write_file(path, self.dumps())

    @classmethod
    def loads(cls: type[P], text: str | bytes, source: str = "this text") -> P:
        """Read a proof back; fields of a later version are ignored, and `source` names it where it cannot be read."""
        try:
            data = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UserError(f"{source} is not JSON: {error}") from None
        came = data.get("schema") if isinstance(data, dict) else type(data).__name__
        if not isinstance(data, dict) or not str(came).startswith("onnxproof/"):
            raise UserError(f"{source} is not a proof: expected an object with schema {SCHEMA!r}, got {came!r}")
        if came != SCHEMA:
            raise UserError(
                f"{source} is a proof with schema {came!r}, and this version reads {SCHEMA!r}: read it with the onnxproof that wrote it"
            )
        try:
            codec.check_integers(data)
            proof = codec.decode(upgrade(data), cls)
            msgspec.convert([finding.evidence for finding in proof.findings], list[SharedEvidence])
            return proof
        except (msgspec.ValidationError, RecursionError) as error:
            raise UserError(f"{source} is not a proof as {SCHEMA} has it: {error}") from None
        except UserError as error:  # a value that its record does not take
            raise UserError(f"{source}: {error}") from None

    @classmethod
    def load(cls: type[P], path: str | Path) -> P:
        """Read a proof file."""
        file = Path(path)
        if not file.is_file():
            raise UserError(f"there is no proof {file}")
        return cls.loads(file.read_bytes(), str(file))
