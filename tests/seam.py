"""A fake in the place of the candidate: right by default, and wrong in ways that a real one rarely is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fake import FakeCandidate
from onnxproof.artifact.file import read_artifact
from onnxproof.cases.plan import Case
from onnxproof.findings import Finding
from onnxproof.parity.listener import Listener
from onnxproof.parity.verifier import Verifier
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.case_result import CaseResult
from onnxproof.request.request import VerifySettings
from onnxproof.request.session import SessionSettings
from onnxproof.subject.assembly import make_subject
from onnxproof.subject.subject import Subject


@dataclass
class Heard:
    """Everything that a verification told."""

    findings: list[Finding] = field(default_factory=list)
    stages: list[tuple[str, str]] = field(default_factory=list)
    cases: list[CaseResult] = field(default_factory=list)

    def listener(self) -> Listener:
        return Listener(
            self.findings.append,
            lambda cases, coverage: None,
            lambda case, stage: self.stages.append((case, stage)),
            lambda result, ledger: self.cases.append(result),
        )


class Mlp:
    """The model `mlp` of `models.py`, its file, and what the file answers."""

    def __init__(self, path: Path) -> None:
        import models

        self.module, self.inputs = models.mlp()
        self.subject: Subject = make_subject(self.module, self.inputs)
        self.artifact: Artifact = read_artifact(path)

    def right(self, inputs: Mapping[str, Any], settings: SessionSettings) -> dict[str, Any]:
        with torch.no_grad():
            return {"output": self.module(torch.from_numpy(inputs["input"])).numpy()}

    def wrong_where(self, condition: Callable[[SessionSettings], bool]) -> Callable[..., dict[str, Any]]:
        """Right, but for sessions of some settings."""

        def answer(inputs: Mapping[str, Any], settings: SessionSettings) -> dict[str, Any]:
            output = self.right(inputs, settings)["output"]
            return {"output": output + np.float32(0.5) if condition(settings) else output}

        return answer

    def example(self) -> dict[str, Any]:
        name = next(iter(self.subject.inputs.tensors))
        return {name: self.inputs[0].numpy()}

    def verifier(self, candidate: FakeCandidate, heard: Heard) -> Verifier:
        verify = VerifySettings(batch_sizes=(1, 2))
        return Verifier(self.subject, self.artifact, verify, heard.listener(), candidate=candidate)


CASE = Case("batch=3/example/seed=0", {"batch": 3}, "example")
