"""What a model carries from step to step: through outputs that are the next inputs, or inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onnxproof.artifact.pairing import begin_hidden, hide_state
from onnxproof.cases.plan import Inputs
from onnxproof.cases.rollout import Rollouts
from onnxproof.cases.supply import Supply
from onnxproof.errors import Rejected
from onnxproof.parity.eager import EagerRunner
from onnxproof.proof.artifact import Artifact
from onnxproof.subject.mode import read_kept
from onnxproof.subject.state import guess_state, is_kept, read_state
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Arrays
from onnxproof.tensors.conversion import to_numpy


class HiddenState:
    """What the module keeps inside and the file takes and gives."""

    def __init__(self, subject: Subject, artifact: Artifact) -> None:
        self.artifact, self.pairs = hide_state(artifact, list(subject.inputs.tensors))
        """The file without it, and output → input."""
        self._ports = artifact.inputs
        self._kept = [to_numpy(tensor) for tensor in read_kept(subject.module).values()] if self.pairs else []

    def begin(self, inputs: Inputs) -> Inputs:
        """What the file is given before the first step."""
        return begin_hidden(self._ports, self.pairs.values(), inputs, self._kept) if self.pairs else {}


def find_rollouts(
    supply: Supply, eager: EagerRunner, hidden: Mapping[str, str], name_outputs: Callable[[Arrays], Mapping[str, str]]
) -> Rollouts | None:
    """The steps of the module, where it carries state from one to the next; `name_outputs`: graph's output → module's."""
    settings, inputs = supply.settings, supply.example()
    asked, sizes = settings.state, settings.batch_sizes
    how: dict[str, Any] = {"batch": supply.subject.batch, "batch_sizes": sizes, "seed": settings.seed}
    if hidden:
        return Rollouts(supply.domains, {}, eager.run, {}, **how)
    if asked == ("none",) or not (asked or any(map(is_kept, inputs))):
        return None
    try:
        outputs = eager.run(inputs)
    except (Rejected, MemoryError):
        return None  # its case says so
    state = read_state(asked, inputs, outputs, name_outputs(outputs)) if asked else guess_state(inputs, outputs)
    rollouts = Rollouts(supply.domains, state, eager.run, outputs, **how) if state else None
    return rollouts if rollouts is not None and (asked or rollouts.moving) else None
