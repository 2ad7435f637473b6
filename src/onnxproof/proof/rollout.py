"""What became of both sides in free run, step by step: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxproof.proof.comparison import Comparison


@dataclass(frozen=True)
class Rollout:
    """Each side with its own state, beside the module in float64 with its own."""

    name: str = ""
    """Its steps are cases of this name, as far as they are cases."""
    state: Mapping[str, str] = field(default_factory=dict)
    """Output → the input that it is in the next step."""
    guessed: bool = True
    """Whether names and shapes said so, and not the user."""
    steps: tuple[Comparison, ...] = ()
    """Of every step the output that is farthest from what rounding explains; the run ends after the first that is beyond it."""
    planned: int = 0
    message: str = ""
    """What the candidate said where it refused a step."""

    @property
    def worst(self) -> float:
        """The largest noise ratio of all steps."""
        return max((c.noise_ratio for c in self.steps if c.noise_ratio is not None), default=0.0)
