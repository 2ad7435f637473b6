"""The original of a file in a lower precision: what the precision costs, and what went wrong in the conversion."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from onnxproof.artifact.pairing import Pairing, pair_outputs
from onnxproof.cases.plan import Inputs
from onnxproof.errors import Rejected
from onnxproof.findings import Finding, Where
from onnxproof.findings.frames import find_user_frame, locate_frame
from onnxproof.graph.sourcemap import read
from onnxproof.parity import eager
from onnxproof.parity.conversion import find_faults
from onnxproof.parity.declared import Meaning, list_originals, measure_cost
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.ranking import Ranking, place_cost, tell_costs
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.comparison import Comparison
from onnxproof.subject.onnx_module import GraphModule
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays


class Original:
    """What the file was made of; the file is held against its own meaning, and that is compared with this by the way."""

    def __init__(self, subject: Subject, artifact: Artifact, *, stateful: bool) -> None:
        self._runner = EagerRunner(subject, stateful=stateful)
        self._module, self._stored = subject.module, list_originals(subject.module)
        self._artifact = artifact
        self.overflowing: Inputs | None = None
        """The first inputs that only the lower precision makes infinite."""

    def run(self, inputs: Inputs) -> Arrays:
        """What it answers."""
        return self._runner.run(inputs)

    def attach_cost(
        self, answers: Arrays, meaning: Arrays, comparisons: list[Comparison], repeated: int
    ) -> list[Comparison]:
        """The comparisons, with what the precision changes in each output; of decisions, those after the `repeated` rows."""
        names = self._pair(answers, self._artifact.promised_outputs).reverse
        known = {c.output: answers[names[c.output]] for c in comparisons if names.get(c.output) in answers}
        return [
            replace(c, cost=measure_cost(known[c.output], meaning[c.output], repeated)) if c.output in known else c
            for c in comparisons
        ]

    def find_faults(
        self, meaning: Meaning, inputs: Inputs, pairs: Mapping[str, str], *, real: bool
    ) -> Iterator[Finding]:
        """What went wrong in the conversion, and the nodes that cost most; `pairs`: module's input → graph's input, `real`: the
        inputs are the user's data."""
        try:
            outputs, names = self._pair(self.run(inputs)).pairs, {graph: name for name, graph in pairs.items()}
            fed = {pairs.get(name, name): array for name, array in inputs.items()}

            def ask(given: Arrays) -> list[Array]:
                answers = self.run({names.get(name, name): array for name, array in given.items()})
                return [answers[name] for name in outputs]

            lines = self._list_lines(inputs)
            for fault in find_faults(meaning, self._stored, fed, ask, list(outputs.values()), real=real):
                line = lines.get(fault.where.module or "", Where())
                yield replace(fault, where=replace(fault.where, file=line.file, line=line.line))
            ranked = inputs if self.overflowing is None else self.overflowing
            costs = Ranking(meaning, self._stored, {pairs.get(name, name): a for name, a in ranked.items()}).rank()
            told = tell_costs([place_cost(cost, self._artifact.sourcemap, lines) for cost in costs])
            if told is not None:
                yield told
        except (Rejected, MemoryError):
            return  # the example itself is refused: its case says so

    def _list_lines(self, inputs: Inputs) -> dict[str, Where]:
        """Module → the user's line that calls it; by the source map beside it where the original is a file."""
        if isinstance(self._module, GraphModule):
            origins = read(Path(self._module.path).with_suffix(".sourcemap.json")).values()
            return {one.module: Where(file=one.file, line=one.line) for one in origins if one.module and one.file}
        names, lines = {part: name for name, part in self._module.named_modules()}, dict[str, Where]()

        def note(part: torch.nn.Module, _: object) -> None:
            if part in names and names[part] not in lines:
                # Whoever calls us is no part of the model.
                inside = "".join(traceback.format_stack()).rpartition(eager.__file__)[2]
                lines[names[part]] = locate_frame(find_user_frame(inside))

        hook = register_module_forward_pre_hook(note)
        try:
            self.run(inputs)
        finally:
            hook.remove()
        return lines

    def _pair(self, answers: Arrays, promised: tuple[str, ...] | None = None) -> Pairing:
        return pair_outputs(list(answers), self._artifact.outputs, promised, named=self._runner.named)
