"""The result of one case: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from onnxproof.findings import Where
from onnxproof.proof.comparison import Comparison
from onnxproof.proof.subject import TensorFacts

Status = Literal["compared", "rejected", "failed"]
# Profiles of inputs that come as they are: nobody chose a size for them.
ORIGINS = ("data", "kept", "search", "rollout")
# Values that a model is made for; others show what the range of a precision is, not whether it fits.
ORDINARY = ("normal", "example", "data")


@dataclass(frozen=True)
class CaseResult:
    """What happened in one case. `rejected`: the baseline itself refused; `failed`: the candidate gave no answer."""

    ADDED: ClassVar = ("sizes",)

    name: str
    profile: str
    fair: bool
    status: Status
    inputs: Mapping[str, TensorFacts] = field(default_factory=dict)
    outputs: tuple[Comparison, ...] = ()
    message: str = ""
    where: Where = Where()
    """Node, module, file and line that a refusal of the candidate names."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Stage → how long it took."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Dynamic dimension → the size that the case was made for."""

    @property
    def group(self) -> str:
        """What cases are told together by: `batch=7,seq=16`, or where inputs without a size come from."""
        sizes = ",".join(f"{name}={size}" for name, size in self.sizes.items())
        return sizes or (self.profile if self.profile in ORIGINS else "static")
