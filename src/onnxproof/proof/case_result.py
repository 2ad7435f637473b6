"""The result of one case: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from onnxproof.proof.comparison import Comparison

Status = Literal["compared", "rejected", "failed"]


@dataclass(frozen=True)
class CaseResult:
    """What happened in one case. `rejected`: PyTorch itself refused; `failed`: the candidate gave no answer."""

    name: str
    profile: str
    fair: bool
    status: Status
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    outputs: tuple[Comparison, ...] = ()
    message: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Node, module, file and line that a refusal of the candidate names."""
    seconds: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "name": self.name,
            "profile": self.profile,
            "fair": self.fair,
            "status": self.status,
            "inputs": {name: dict(value) for name, value in self.inputs.items()},
            "outputs": [comparison.to_json() for comparison in self.outputs],
            "message": self.message,
            "where": dict(self.where),
            "seconds": dict(self.seconds),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> CaseResult:
        """Read a result back; fields of a later version are ignored."""
        values = {name: data[name] for name in CaseResult.__dataclass_fields__ if name in data}
        values["outputs"] = tuple(Comparison.from_json(c) for c in data["outputs"])
        return CaseResult(**values)
