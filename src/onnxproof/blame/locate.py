"""From a failing case to the step, the node, the module and the line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
import torch

from onnxproof.blame import session_values
from onnxproof.blame.align import ENOUGH, SOME, list_values, share_by_name, share_by_structure
from onnxproof.blame.capture import Captured, capture, compute_truth, trace_outputs
from onnxproof.blame.nodes import WORTH_TELLING, Introduced, find_worst, follow, measure_distance
from onnxproof.blame.piece import name_piece
from onnxproof.blame.provenance import Provenance
from onnxproof.blame.reproduce import reproduce_culprits
from onnxproof.blame.runtime import PARTED, WAY, Runtime
from onnxproof.blame.store import Layered, Renamed, Values
from onnxproof.candidates.candidate import Candidate
from onnxproof.findings import Stage
from onnxproof.graph import sourcemap
from onnxproof.graph.evaluator import Evaluator
from onnxproof.graph.view import Graph, label_node, list_names, read_name
from onnxproof.graph.widening import widen_array
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner, Unavailable
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.blame import Blame, Culprit, Step
from onnxproof.request.session import SessionSettings
from onnxproof.subject.onnx_module import GraphModule
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays

# Bytes for inner values, unless the user says otherwise; what does not fit goes to disk.
MEMORY = 2_000_000_000
# Culprits that are mended one at a time to see what each contributes, in graphs of up to so many nodes.
MENDED, MENDED_UP_TO = 5, 3000
# The share of the largest error below which another one is that of rounding.
CLEAR = 1e-3


@dataclass(frozen=True)
class Aligned:
    """True values by the names of the artifact's values, how they were paired, and what a fresh export introduces itself."""

    values: Values
    how: str | None = None
    fresh: tuple[Introduced, ...] = ()


@dataclass(frozen=True)
class Free:
    """A graph that was left to itself: the error of each value that has a true one, and its own values."""

    errors: Mapping[str, float] = field(default_factory=dict)
    values: Values = field(default_factory=dict)

    def is_right(self, outputs: Sequence[str], least: float) -> bool:
        """Whether it gives the true outputs: then none of its nodes is to blame."""
        return all(self.errors.get(name, np.inf) <= least for name in outputs)


class Locator:
    """Everything known about one subject and artifact; asked case by case."""

    def __init__(
        self,
        subject: Subject,
        artifact: Artifact,
        candidate: Candidate,
        settings: SessionSettings,
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
        *,
        double: DoubleRunner | None = None,
        memory: int = MEMORY,
        out: Path | None = None,
    ) -> None:
        self._subject = subject
        self._outputs = dict(outputs)
        path = Path(artifact.path)
        self._graph = Graph.read(path)
        self._double = double or DoubleRunner(subject)
        self._eager = EagerRunner(subject)
        self._evaluators: dict[Graph, Evaluator] = {}
        """Of the case at hand: they hold the weights in float64."""
        module = subject.module
        self._other = Graph.read(Path(module.path)) if isinstance(module, GraphModule) else None
        """The graph that the artifact is held against, where the subject is a file too."""
        self._captured = self._capture()
        sources = sourcemap.read(Path(artifact.sourcemap)) if artifact.sourcemap else {}
        self._provenance = Provenance(subject, self._graph, self._captured, sources)
        renamed = {graph: module for module, graph in inputs.items()}
        self._runtime = Runtime(path, self._provenance, candidate, settings, renamed, memory, out)

    def _capture(self) -> Captured | None:
        if self._other is not None:
            return None
        try:
            return capture(self._subject)
        except Exception:
            return None  # torch.export cannot capture it; steps and nodes before the graph stay unknown

    @property
    def _lossy(self) -> bool:
        return torch.finfo(self._double.narrowest).eps <= torch.finfo(torch.float32).eps

    def locate(self, inputs: Arrays, *, explained: bool = False) -> Blame:
        """The blame for what happens on these inputs; where rounding explains it, what magnifies the rounding."""
        blame = self._find_blame(inputs, explained)
        self._evaluators.clear()
        reached = self._provenance.dependents(self._outputs)
        culprits = tuple(replace(one, outputs=reached.get(one.node, ())) for one in blame.culprits)
        return replace(blame, culprits=culprits)

    def _find_blame(self, inputs: Arrays, explained: bool) -> Blame:
        truth, least = self._find_truth(inputs)
        form = self._find_form_change(inputs)
        if form is not None:
            return Blame(form)
        feed = self._make_feed(self._graph, inputs)
        aligned = self._align(inputs, feed)
        # What the module itself says of its outputs comes first: the captured program may be wrong already.
        known = Layered(
            {graph: truth[module] for module, graph in self._outputs.items() if module in truth}, aligned.values
        )
        values = self._runtime.store()
        found = follow(self._pick_evaluator(self._graph), feed, known, values)
        culprits = self._provenance.suspects(found, least)
        every = Layered(known, values, feed)
        free = self._run_freely(feed, known) if culprits else Free()
        if culprits and free.is_right(list_names(self._graph.outputs), least):
            # Values are paired by what the graphs look like: what is told apart and reaches no output was paired wrongly.
            outputs = {name: known[name] for name in list_names(self._graph.outputs) if name in known}
            culprits, every = [], Layered(outputs, free.values, feed)
        if explained or not culprits:
            # Sessions are opened next, and bring the weights once more.
            self._evaluators.clear()
            blamed = self._runtime.magnified if explained else self._runtime.blame
            return replace(blamed(inputs, every), aligned=aligned.how)
        stage = self._find_step(inputs, truth, culprits, aligned)
        culprits = _put_clear_first(self._rank_culprits(culprits, feed, known))
        fresh = self._fresh if aligned.how == "name" else None
        shown = reproduce_culprits(self._graph, culprits, known, every, self._runtime.out)
        return Blame(
            stage,
            tuple(name_piece(self._graph, one, Layered(known, feed), fresh) for one in shown),
            removed=self._list_removed(culprits[0]) if stage == "simplify" else (),
            path=self._trace_way(free, found),
            births=self._runtime.births(inputs),
            aligned=aligned.how,
        )

    @property
    def _fresh(self) -> Graph | None:
        """A right graph of the same exporter."""
        if self._other is not None or self._captured is None:
            return self._other
        return self._captured.simplified or self._captured.translated

    def _pick_evaluator(self, graph: Graph) -> Evaluator:
        if graph not in self._evaluators:
            self._evaluators[graph] = Evaluator.exact(*graph.separated, keep_lossy_casts=self._lossy)
        return self._evaluators[graph]

    def _find_truth(self, inputs: Arrays) -> tuple[Values, float]:
        """The outputs in float64 (or as PyTorch gives them, where it cannot do that), and the error that counts then."""
        try:
            return self._double.run(inputs), WORTH_TELLING
        except Unavailable:
            return {name: widen_array(array) for name, array in self._eager.run(inputs).items()}, PARTED

    def _make_feed(self, graph: Graph, inputs: Arrays) -> dict[str, Array]:
        return {name: widen_array(array) for name, array in self._runtime.own(graph, inputs).items()}

    def _make_fresh_feed(self, graph: Graph, inputs: Arrays) -> dict[str, Array]:
        """The same for a fresh export, which names its inputs as it likes."""
        own = (widen_array(inputs[name]) for name in self._subject.inputs.tensors)
        return dict(zip(list_names(graph.inputs), own, strict=False))

    def _find_form_change(self, inputs: Arrays) -> Stage | None:
        """The step that changes an output's dtype, where one is changed."""
        if self._captured is None:
            return None
        ports = {read_name(output): output.dtype for output in self._graph.outputs}
        for place, (module, array) in enumerate(self._eager.run(inputs).items()):
            wanted = ir.DataType.from_numpy(array.dtype)
            if ports.get(self._outputs.get(module, ""), wanted) != wanted:
                translated = self._captured.translated.outputs[place].dtype
                simplified = (self._captured.simplified or self._captured.translated).outputs[place].dtype
                return "simplify" if translated == wanted != simplified else "translate"
        return None

    def _align(self, inputs: Arrays, feed: Values) -> Aligned:
        """True values for as many values of the artifact as possible."""
        if self._other is not None:
            return self._align_with(self._other, self._make_feed(self._other, inputs), {}, feed)
        if self._captured is None:
            return Aligned({})
        try:
            program = compute_truth(self._captured, self._subject, inputs, self._double.believed, self._runtime.store())
        except Unavailable:
            return Aligned({})
        self._program = program
        fresh = self._captured.simplified or self._captured.translated
        return self._align_with(fresh, self._make_fresh_feed(fresh, inputs), program, feed)

    def _align_with(self, fresh: Graph, own: Values, program: Values, feed: Values) -> Aligned:
        """Values of a right graph, paired with the artifact's by name or by structure."""
        between = self._runtime.store()
        introduced = tuple(follow(self._pick_evaluator(fresh), own, program, between))
        true = Layered(program, between)
        share = share_by_name(self._graph, true)
        if share >= ENOUGH:
            return Aligned(true, "name", introduced)
        pairs = share_by_structure(self._graph, self._measure_shapes(feed), fresh, true)
        if share >= SOME:  # the same exporter, with other settings: what it names alike is alike
            pairs |= {name: name for name in list_values(self._graph) if name in true}
        return Aligned(Renamed(true, pairs), "structure" if pairs else None, introduced)

    def _measure_shapes(self, feed: Values) -> dict[str, tuple[int, ...]]:
        """Shapes of the artifact's own values on this input."""
        values = self._runtime.store()
        follow(self._pick_evaluator(self._graph), feed, {}, values)
        return {name: values[name].shape for name in values}

    def _find_step(self, inputs: Arrays, truth: Arrays, culprits: list[Culprit], aligned: Aligned) -> Stage | None:
        """The first rung of the ladder that parts: capture, translate or simplify."""
        if self._other is not None:
            return "simplify"
        if aligned.how != "name":
            return self._find_traced_step(inputs)
        assert self._captured is not None  # names come from it
        pairs = zip(self._captured.outputs, list(truth), strict=False)
        both = [(v, name) for v, name in pairs if v in self._program and name in self._outputs]
        if any(measure_distance(self._program[value], truth[name]) > 1e-9 for value, name in both):
            return "capture"
        if self._captured.simplified is None:
            return "translate"
        share = culprits[0].introduced / 10
        if find_worst(aligned.fresh) <= share:
            return "translate"  # a fresh export is right: the file was made or changed by something else than this exporter
        translated = self._captured.translated
        before = follow(self._pick_evaluator(translated), self._make_fresh_feed(translated, inputs), self._program)
        return "translate" if find_worst(before) > share else "simplify"

    def _find_traced_step(self, inputs: Arrays) -> Stage | None:
        """A file that another exporter made: did tracing, as that exporter does it, already lose the meaning?"""
        traced = trace_outputs(self._subject, inputs)
        if traced is None:
            return None if self._captured is None else "translate"
        eager = list(self._eager.run(inputs).values())
        apart = any(measure_distance(a, b) > PARTED for a, b in zip(traced, eager, strict=False))
        return "capture" if apart else "translate"

    def _rank_culprits(self, culprits: list[Culprit], feed: Values, known: Values) -> list[Culprit]:
        """Several culprits by what they contribute to the error of the outputs: how much of it goes when one alone is mended."""
        if len(culprits) < 2 or len(self._graph.nodes) > MENDED_UP_TO:
            return culprits
        outputs = {name: known[name] for name in list_names(self._graph.outputs) if name in known}

        def left(mended: str | None) -> float:
            truth = {**outputs, **({mended: known[mended]} if mended is not None else {})}
            found = follow(self._pick_evaluator(self._graph), feed, truth, replace=mended is not None, keep=outputs)
            # Finite: the difference of two infinite errors would be NaN.
            return min(find_worst([one for one in found if one.value in outputs and one.value != mended]), 1e300)

        total = left(None)
        first = [replace(c, contributes=max(0.0, total - left(c.value))) for c in culprits[:MENDED]]
        # Where none alone mends anything, by what each introduces.
        return sorted(first, key=lambda c: (-(c.contributes or 0.0), -c.introduced)) + culprits[MENDED:]

    def _run_freely(self, feed: Values, known: Values) -> Free:
        """The graph left to itself, as it is run."""
        values = self._runtime.store()
        errors = follow(self._pick_evaluator(self._graph), feed, known, values, replace=False)
        return Free({one.value: one.error for one in errors}, values)

    def _list_removed(self, culprit: Culprit) -> tuple[str, ...]:
        """Nodes right before the culprit that the exporter's optimiser took out."""
        captured = self._captured
        if captured is None or captured.simplified is None:
            return ()
        before = captured.translated
        named = (node for node in before.nodes if node.name and node.name == culprit.node)
        start = next(named, None) or before.writer(culprit.value or "")
        makers = [before.writer(name) for name in list_names(start.inputs)] if start is not None else []
        gone = [node for node in makers if node and captured.simplified.writer(read_name(node.outputs[0])) is None]
        return tuple(f"{node.op_type} {label_node(node)}" for node in gone)

    def _trace_way(self, free: Free, found: list[Introduced]) -> tuple[Step, ...]:
        """The error's way through the graph when it is left to travel."""
        errors = {name: error for name, error in free.errors.items() if error > 1e-12}
        own = {one.node: one.error for one in found}
        steps = session_values.trace_way(self._graph, errors, self._provenance.modules())
        steps = [replace(step, introduced=min(own.get(step.node, step.introduced), 1e300)) for step in steps]
        worst = sorted(steps, key=lambda step: -max(step.introduced, step.inherited))[:WAY]
        return tuple(step for step in steps if step in worst)


def _put_clear_first(culprits: list[Culprit]) -> list[Culprit]:
    """In their order, but for those that err by hardly more than rounding beside one that errs by far."""
    least = CLEAR * min(1.0, max((c.introduced for c in culprits), default=0.0))
    return sorted(culprits, key=lambda c: c.introduced < least)
