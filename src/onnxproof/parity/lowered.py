"""The original of a file in a lower precision: what the precision costs, and what went wrong in the conversion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from onnxproof.artifact.pairing import Pairing, pair_outputs
from onnxproof.cases.plan import Inputs
from onnxproof.errors import Rejected
from onnxproof.findings import Finding
from onnxproof.parity.conversion import find_faults
from onnxproof.parity.declared import Meaning, list_originals, measure_cost
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.ranking import Ranking, place_cost, tell_costs
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.comparison import Comparison
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays


class Original:
    """What the file was made of; the file is held against its own meaning, and that is compared with this by the way."""

    def __init__(self, subject: Subject, artifact: Artifact, *, stateful: bool) -> None:
        self._runner = EagerRunner(subject, stateful=stateful)
        self._stored = list_originals(subject.module)
        self._artifact = artifact

    def run(self, inputs: Inputs) -> Arrays:
        """What it answers."""
        return self._runner.run(inputs)

    def attach_cost(self, answers: Arrays, meaning: Arrays, comparisons: list[Comparison]) -> list[Comparison]:
        """The comparisons, with what the precision changes in each output."""
        names = self._pair(answers, self._artifact.promised_outputs).reverse
        known = {c.output: answers[names[c.output]] for c in comparisons if names.get(c.output) in answers}
        return [
            replace(c, cost=measure_cost(known[c.output], meaning[c.output])) if c.output in known else c
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

            yield from find_faults(meaning, self._stored, fed, ask, list(outputs.values()), real=real)
            costs = Ranking(meaning, self._stored, fed).rank()
            told = tell_costs([place_cost(cost, self._artifact.sourcemap) for cost in costs])
            if told is not None:
                yield told
        except (Rejected, MemoryError):
            return  # the example itself is refused: its case says so

    def _pair(self, answers: Arrays, promised: tuple[str, ...] | None = None) -> Pairing:
        return pair_outputs(list(answers), self._artifact.outputs, promised, named=self._runner.named)
