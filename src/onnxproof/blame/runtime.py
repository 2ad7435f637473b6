"""The steps in the runtime: its provider, its rewrites, its kernels. Which one it is shows by running the candidate again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import onnx_ir as ir

from onnxproof.blame import session_values as session
from onnxproof.blame.nodes import Introduced, follow, measure_distance
from onnxproof.blame.provenance import Provenance
from onnxproof.blame.reproduce import reproduce_culprits
from onnxproof.blame.rewrites import find_healing_rewrite
from onnxproof.blame.store import Layered, Store, Values
from onnxproof.candidates.candidate import Candidate
from onnxproof.candidates.releases import spell_install
from onnxproof.errors import Rejected
from onnxproof.findings import Stage
from onnxproof.graph.evaluator import Evaluator
from onnxproof.graph.operators import FAITHFUL_OPS
from onnxproof.graph.view import Graph, list_names
from onnxproof.proof.blame import Birth, Blame
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.tensors.arrays import Array, Arrays

# Relative difference that counts as the same fault when steps of the ladder are compared.
PARTED = 1e-4
# The share of a runtime's error that an evaluator has too where both lose it the same way; what is infinite counts as so large.
SHARE, LARGE = 0.1, 1e300
# Steps of the error's way that are kept.
WAY = 200


@dataclass(frozen=True)
class Runtime:
    """A candidate that runs an artifact; asked case by case. `truth` holds true values by the graph's names."""

    path: Path
    provenance: Provenance
    candidate: Candidate
    settings: SessionSettings
    renamed: Mapping[str, str]
    """Graph's input → module's input."""
    memory: int
    out: Path | None

    @property
    def _graph(self) -> Graph:
        return self.provenance.graph

    def store(self) -> Store:
        """There are four of them at most, and values in flight."""
        return Store(self.memory // 8)

    def own(self, graph: Graph, inputs: Arrays) -> dict[str, Array]:
        """Inputs by the names that a graph has for them."""
        return {name: inputs[self.renamed.get(name, name)] for name in list_names(graph.inputs)}

    def blame(self, inputs: Arrays, truth: Layered) -> Blame:
        """The graph is right: what of the runtime is not."""
        if not self._far(self.settings, inputs, truth):
            return replace(self.magnified(inputs, truth), stage=None)
        if self._has_cpu and not self._far(replace(self.settings, providers=(CPU,)), inputs, truth):
            return Blame("provider")
        if not self.candidate.abilities.rewrites or self._far(self._plain, inputs, truth):
            return self._blame_kernel(inputs, truth)
        rewrite = find_healing_rewrite(
            lambda off: not self._far(replace(self.settings, disabled_optimizers=off), inputs, truth)
        )
        if not self.candidate.abilities.inner_values:
            return Blame("optimize", rewrite=rewrite, unseen=True)
        # Showing inner values forbids some fusions: where the fault vanishes with them, the proof says so.
        seen = self._watch(self.settings, inputs, truth)
        gone = all(seen.errors.get(name, 0.0) <= PARTED for name in list_names(self._graph.outputs))
        return Blame("optimize", rewrite=rewrite, vanishes=gone)

    def _spell_needs(self) -> str:
        """How to install what was wrong."""
        return spell_install(self.candidate.versions()["onnxruntime"])

    @property
    def _has_cpu(self) -> bool:
        """Whether the same can be asked of the CPU, and is not already."""
        return self.settings.providers[0] != CPU and CPU.name in self.candidate.providers()

    @property
    def _plain(self) -> SessionSettings:
        """The session without rewrites, where there are any."""
        return replace(self.settings, optimization="disable", disabled_optimizers=())

    def magnified(self, inputs: Arrays, truth: Layered) -> Blame:
        """Nothing is wrong but the conditioning: which nodes make small errors large."""
        seen = self._watch(self._plain, inputs, truth)
        found = session.find_amplifiers(self._graph, seen, self.provenance.modules(), 6e-8)
        return Blame("precision", amplifiers=tuple(found))

    def _blame_kernel(self, inputs: Arrays, truth: Layered) -> Blame:
        """The runtime departs without any rewrite: by a kernel of its own, or because the graph is so written that float32 loses it."""
        seen = self._watch(self._plain, inputs, truth)
        found = session.find_departures(self._graph, seen)[:1]
        stage: Stage = "translate" if self._is_written_so(inputs, truth, found) else "kernel"
        return Blame(
            stage,
            reproduce_culprits(
                self._graph, self.provenance.suspects(found), truth, truth, self.out, self._spell_needs()
            ),
            path=tuple(session.trace_way(self._graph, seen.errors, self.provenance.modules())[:WAY]),
            births=self.births(inputs, session.find_nonfinite(self._graph, seen.nonfinite)),
            unseen=not self.candidate.abilities.inner_values,
        )

    def _is_written_so(self, inputs: Arrays, truth: Values, found: Sequence[Introduced]) -> bool:
        """Whether an evaluator that rounds each operation as IEEE asks departs as well: then no kernel is wrong."""
        values = self.store()
        try:
            self._evaluate(inputs, values)
        except Exception:
            return False  # the evaluator has no such operator in this dtype
        # As far as the runtime, or nearly: half floats depart a little by themselves.
        places = {one.value: min(one.error, LARGE) * SHARE for one in found} or dict.fromkeys(
            list_names(self._graph.outputs), 0.0
        )
        known = [(name, least) for name, least in places.items() if name in values and name in truth]
        return any(measure_distance(values[name], truth[name]) > max(PARTED, least) for name, least in known)

    def _evaluate(self, inputs: Arrays, values: Store) -> None:
        """The graph as it is, in its own dtypes."""
        model, weights = self._graph.separated
        follow(Evaluator(model, FAITHFUL_OPS, weights), self.own(self._graph, inputs), {}, values)

    def _watch(self, settings: SessionSettings, inputs: Arrays, truth: Layered) -> session.Seen:
        if not self.candidate.abilities.inner_values:
            return session.Seen()
        with suppress(Rejected, MemoryError, ValueError):
            budget = self.memory // 4
            return session.watch(self._graph, self.candidate, settings, self.renamed, inputs, truth, budget)
        return session.Seen()

    def _far(self, settings: SessionSettings, inputs: Arrays, truth: Values) -> bool:
        with closing(self.candidate.open(self.path, settings, self.renamed)) as opened:
            try:
                got = opened.run(inputs)
            except Rejected:
                return True  # it answers nothing
        return any(measure_distance(value, truth[name]) > PARTED for name, value in got.items() if name in truth)

    def births(self, inputs: Arrays, node: ir.Node | None = None) -> tuple[Birth, ...]:
        """Where the first NaN or infinity is born on either side, if the inputs have none."""
        if any(map(session.has_nonfinite, inputs.values())):
            return ()
        return self.provenance.births(inputs, node or self._find_nonfinite(inputs))

    def _find_nonfinite(self, inputs: Arrays) -> ir.Node | None:
        values = self.store()
        with suppress(Exception):  # what was evaluated until then counts
            self._evaluate(inputs, values)
        return session.find_nonfinite(self._graph, [name for name in values if session.has_nonfinite(values[name])])
