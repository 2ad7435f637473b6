"""From a failing case to the step, the node, the module and the line."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from numpy.typing import NDArray

from onnxproof.blame import session_values as runtime
from onnxproof.blame.align import ENOUGH, SOME, by_structure, share_by_name, values_of
from onnxproof.blame.capture import Captured, capture, first_nonfinite_call, traced_outputs, true_values
from onnxproof.blame.nodes import WORTH_TELLING, Introduced, dependents, distance, follow, suspects
from onnxproof.blame.reproduce import NotAlone, reproduce
from onnxproof.blame.rewrites import healing_rewrite
from onnxproof.blame.store import Store
from onnxproof.candidates.candidate import Candidate
from onnxproof.candidates.roles import BASELINE, CANDIDATE, told
from onnxproof.errors import Rejected
from onnxproof.findings import Stage
from onnxproof.graph import sourcemap
from onnxproof.graph.evaluator import Evaluator
from onnxproof.graph.operators import FAITHFUL_OPS
from onnxproof.graph.sourcemap import Origin
from onnxproof.graph.view import Graph, label, name_of, names
from onnxproof.graph.widening import in_float64
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner, Unavailable
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.blame import Birth, Blame, Culprit
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.subject.onnx_module import GraphModule
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Arrays

PARTED = 1e-4
"""Relative difference that counts as the same fault when steps of the ladder are compared."""
MEMORY = 2_000_000_000
"""Bytes for inner values, unless the user says otherwise; what does not fit goes to disk."""
WAY = 200
"""Steps of the error's way that are kept."""
REPRODUCED = 3
MENDED, MENDED_UP_TO = 5, 3000
"""Culprits that are mended one at a time to see what each contributes, in graphs of up to so many nodes."""


@dataclass(frozen=True)
class Aligned:
    """True values by the names of the artifact's values, how they were paired, and what a fresh export introduces itself."""

    values: Mapping[str, NDArray[Any]]
    how: str | None = None
    fresh: tuple[Introduced, ...] = ()


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
        memory: int = MEMORY,
        out: Path | None = None,
    ) -> None:
        self._subject = subject
        self._candidate, self._settings = candidate, settings
        self._renamed = {graph: module for module, graph in inputs.items()}
        self._outputs = dict(outputs)
        self._path = Path(artifact.path)
        self._graph = Graph.read(self._path, weights=True)
        self._double = DoubleRunner(subject)
        self._eager = EagerRunner(subject)
        self._sources = sourcemap.read(Path(artifact.sourcemap)) if artifact.sourcemap else {}
        self._memory = memory
        self._out = out
        self._evaluators: dict[Graph, Evaluator] = {}
        """Of the case at hand: they hold the weights in float64."""
        self._given: Mapping[str, NDArray[Any]] = {}
        """The inputs at hand, by the graph's names."""
        module = subject.module
        self._other = Graph.read(Path(module.path), weights=True) if isinstance(module, GraphModule) else None
        """The graph that the artifact is held against, where the subject is a file too."""
        self._captured: Captured | None = self._capture()

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

    @property
    def _origins(self) -> Mapping[str, Origin]:
        return self._captured.origins if self._captured is not None else {}

    def _store(self) -> Store:
        """There are four of them at most, and values in flight."""
        return Store(self._memory // 8)

    def locate(self, inputs: Arrays, *, explained: bool = False) -> Blame:
        """The blame for what happens on these inputs; where rounding explains it, what magnifies the rounding."""
        blame = self._located(inputs, explained)
        self._evaluators.clear()
        reached = dependents(self._graph, self._outputs)
        culprits = tuple(replace(one, outputs=reached.get(one.node, ())) for one in blame.culprits)
        return replace(blame, culprits=culprits)

    def _located(self, inputs: Arrays, explained: bool) -> Blame:
        truth, least = self._truth(inputs)
        form = self._form(inputs)
        if form is not None:
            return Blame(form)
        feed = self._given = self._feed(self._graph, inputs)
        aligned = self._aligned(inputs, feed)
        known = _Layered(
            {graph: truth[module] for module, graph in self._outputs.items() if module in truth}, aligned.values
        )
        values = self._store()
        found = follow(self._exact(self._graph), feed, known, values)
        culprits = suspects(found, self._graph, self._origins, self._sources, least)
        if explained or not culprits:
            self._evaluators.clear()
            runtime_blame = self._magnified if explained else self._runtime
            return replace(runtime_blame(inputs, _Layered(known, values)), aligned=aligned.how)
        stage = self._step(inputs, truth, culprits, aligned)
        culprits = self._ranked(culprits, feed, known)
        return Blame(
            stage,
            self._reproduced(culprits, known, values),
            removed=self._removed(culprits[0]) if stage == "simplify" else (),
            path=self._way(feed, known, found),
            births=self._births(inputs, known),
            aligned=aligned.how,
        )

    def _exact(self, graph: Graph) -> Evaluator:
        if graph not in self._evaluators:
            self._evaluators[graph] = Evaluator.exact(graph.proto, keep_lossy_casts=self._lossy)
        return self._evaluators[graph]

    def _truth(self, inputs: Arrays) -> tuple[Mapping[str, NDArray[Any]], float]:
        """The outputs in float64 (or as PyTorch gives them, where it cannot do that), and the error that counts then."""
        try:
            return self._double.run(inputs), WORTH_TELLING
        except Unavailable:
            return {name: in_float64(array) for name, array in self._eager.run(inputs).items()}, PARTED

    def _feed(self, graph: Graph, inputs: Arrays) -> dict[str, NDArray[Any]]:
        return {name: in_float64(array) for name, array in self._own(graph, inputs).items()}

    def _own(self, graph: Graph, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """Inputs by the names that the graph has for them."""
        return {name: inputs[self._renamed.get(name, name)] for name in names(graph.inputs)}

    def _fresh_feed(self, graph: Graph, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """The same for a fresh export, which names its inputs as it likes."""
        own = (in_float64(inputs[name]) for name in self._subject.inputs.tensors)
        return dict(zip(names(graph.inputs), own, strict=False))

    # --- before the runtime

    def _form(self, inputs: Arrays) -> Stage | None:
        """The step that changes an output's dtype, where one is changed."""
        if self._captured is None:
            return None
        eager = self._eager.run(inputs)
        ports = {name_of(output): output.dtype for output in self._graph.outputs}
        changed = [
            (i, ir.DataType.from_numpy(array.dtype))
            for i, (module, array) in enumerate(eager.items())
            if (graph := self._outputs.get(module, "")) in ports and ports[graph] != ir.DataType.from_numpy(array.dtype)
        ]
        if not changed:
            return None
        place, wanted = changed[0]
        translated = self._captured.translated.outputs[place].dtype
        simplified = (self._captured.simplified or self._captured.translated).outputs[place].dtype
        return "simplify" if translated == wanted != simplified else "translate"

    def _aligned(self, inputs: Arrays, feed: Mapping[str, NDArray[Any]]) -> Aligned:
        """True values for as many values of the artifact as possible."""
        if self._other is not None:
            return self._aligned_with(self._other, self._feed(self._other, inputs), {}, feed)
        if self._captured is None:
            return Aligned({})
        try:
            program = true_values(self._captured, self._subject, inputs, self._double.believed, self._store())
        except Unavailable:
            return Aligned({})
        self._program = program
        fresh = self._captured.simplified or self._captured.translated
        return self._aligned_with(fresh, self._fresh_feed(fresh, inputs), program, feed)

    def _aligned_with(
        self,
        fresh: Graph,
        own: Mapping[str, NDArray[Any]],
        program: Mapping[str, NDArray[Any]],
        feed: Mapping[str, NDArray[Any]],
    ) -> Aligned:
        """Values of a right graph, paired with the artifact's by name or by structure."""
        between = self._store()
        introduced = tuple(follow(self._exact(fresh), own, program, between))
        true = _Layered(program, between)
        share = share_by_name(self._graph, true)
        if share >= ENOUGH:
            return Aligned(true, "name", introduced)
        pairs = by_structure(self._graph, self._shapes(feed), fresh, true)
        if share >= SOME:  # the same exporter, with other settings: what it names alike is alike
            pairs |= {name: name for name in values_of(self._graph) if name in true}
        return Aligned(_Renamed(true, pairs), "structure" if pairs else None, introduced)

    def _shapes(self, feed: Mapping[str, NDArray[Any]]) -> dict[str, tuple[int, ...]]:
        """Shapes of the artifact's own values on this input."""
        values = self._store()
        follow(self._exact(self._graph), feed, {}, values)
        return {name: values[name].shape for name in values}

    def _step(self, inputs: Arrays, truth: Arrays, culprits: list[Culprit], aligned: Aligned) -> Stage | None:
        """The first rung of the ladder that parts: capture, translate or simplify."""
        if self._other is not None:
            return "simplify"
        if aligned.how != "name":
            return self._traced_step(inputs)
        assert self._captured is not None  # names come from it
        pairs = zip(self._captured.outputs, list(truth), strict=False)
        if any(
            distance(self._program[value], truth[name]) > 1e-9
            for value, name in pairs
            if value in self._program and name in self._outputs
        ):
            return "capture"
        if self._captured.simplified is None:
            return "translate"
        translated = self._captured.translated
        before = follow(self._exact(translated), self._fresh_feed(translated, inputs), self._program)
        share = culprits[0].introduced / 10
        if _worst(before) > share:
            return "translate"
        # Where a fresh export is right, the file was made or changed by something else than this exporter.
        return "simplify" if _worst(aligned.fresh) > share else "translate"

    def _traced_step(self, inputs: Arrays) -> Stage | None:
        """A file that another exporter made: did tracing, as that exporter does it, already lose the meaning?"""
        traced = traced_outputs(self._subject, inputs)
        if traced is None:
            return None if self._captured is None else "translate"
        eager = list(self._eager.run(inputs).values())
        apart = any(distance(a, b) > PARTED for a, b in zip(traced, eager, strict=False))
        return "capture" if apart else "translate"

    def _ranked(
        self, culprits: list[Culprit], feed: Mapping[str, NDArray[Any]], known: Mapping[str, NDArray[Any]]
    ) -> list[Culprit]:
        """Several culprits by what they contribute to the error of the outputs: how much of it goes when one alone is mended."""
        if len(culprits) < 2 or len(self._graph.nodes) > MENDED_UP_TO:
            return culprits
        outputs = {name: known[name] for name in names(self._graph.outputs) if name in known}

        def left(mended: str | None) -> float:
            truth = {**outputs, **({mended: known[mended]} if mended is not None else {})}
            found = follow(self._exact(self._graph), feed, truth, replace=mended is not None, keep=outputs)
            return min(_worst([one for one in found if one.value in outputs and one.value != mended]), 1e300)

        total = left(None)
        first = [replace(c, contributes=max(0.0, total - left(c.value))) for c in culprits[:MENDED]]
        return sorted(first, key=lambda c: -(c.contributes or 0.0)) + culprits[MENDED:]

    def _removed(self, culprit: Culprit) -> tuple[str, ...]:
        """Nodes right before the culprit that the exporter's optimiser took out."""
        captured = self._captured
        if captured is None or captured.simplified is None:
            return ()
        before = captured.translated
        named = (node for node in before.nodes if node.name and node.name == culprit.node)
        start = next(named, None) or before.writer(culprit.value or "")
        makers = [before.writer(name) for name in names(start.inputs)] if start is not None else []
        gone = [node for node in makers if node and captured.simplified.writer(name_of(node.outputs[0])) is None]
        return tuple(f"{node.op_type} {label(node)}" for node in gone)

    def _way(
        self, feed: Mapping[str, NDArray[Any]], known: Mapping[str, NDArray[Any]], found: list[Introduced]
    ) -> tuple[Any, ...]:
        """The error's way through the graph when it is left to travel."""
        free = follow(self._exact(self._graph), feed, known, replace=False)
        errors = {one.value: one.error for one in free if one.error > 1e-12}
        own = {one.node: one.error for one in found}
        steps = runtime.way(self._graph, errors, self._modules())
        steps = [replace(step, introduced=min(own.get(step.node, step.introduced), 1e300)) for step in steps]
        worst = sorted(steps, key=lambda step: -max(step.introduced, step.inherited))[:WAY]
        return tuple(step for step in steps if step in worst)

    def _modules(self) -> dict[str, str | None]:
        modules = {name: origin.module for name, origin in self._sources.items()}
        for node in self._graph.nodes:
            for value in names(node.outputs):
                if value in self._origins:
                    modules.setdefault(label(node), self._origins[value].module)
        return modules

    def _reproduced(
        self, culprits: list[Culprit], known: Mapping[str, NDArray[Any]], values: Mapping[str, NDArray[Any]]
    ) -> tuple[Culprit, ...]:
        """The first culprits with a model of one node each, ready to be attached to a report."""
        if self._out is None:
            return tuple(culprits)
        done = []
        for i, culprit in enumerate(culprits):
            place = None
            if i < REPRODUCED and culprit.value is not None and culprit.value in known:
                fed = _Layered(known, values, self._given)
                with contextlib.suppress(NotAlone, OSError, ValueError, TypeError):
                    place = reproduce(self._graph, culprit.node, culprit.value, fed, known[culprit.value], self._out)
            done.append(replace(culprit, reproduction=str(place)) if place is not None else culprit)
        return tuple(done)

    # --- in the runtime

    def _runtime(self, inputs: Arrays, truth: _Layered) -> Blame:
        if not self._far(self._settings, inputs, truth):
            return replace(self._magnified(inputs, truth), stage=None)
        if self._has_cpu and not self._far(replace(self._settings, providers=(CPU,)), inputs, truth):
            return Blame("provider")
        if not self._candidate.abilities.rewrites or self._far(self._plain, inputs, truth):
            return self._kernel(inputs, truth)
        rewrite = healing_rewrite(
            lambda off: not self._far(replace(self._settings, disabled_optimizers=off), inputs, truth)
        )
        if not self._candidate.abilities.inner_values:
            return Blame("optimize", rewrite=rewrite, unseen=True)
        seen = self._watched(self._settings, inputs, truth)
        outputs = names(self._graph.outputs)
        gone = all(seen.errors.get(name, 0.0) <= PARTED for name in outputs)
        return Blame("optimize", rewrite=rewrite, vanishes=gone)

    @property
    def _has_cpu(self) -> bool:
        """Whether the same can be asked of the CPU, and is not already."""
        return self._settings.providers[0] != CPU and CPU.name in self._candidate.providers()

    @property
    def _plain(self) -> SessionSettings:
        """The session without rewrites, where there are any."""
        return replace(self._settings, optimization="disable", disabled_optimizers=())

    def _magnified(self, inputs: Arrays, truth: _Layered) -> Blame:
        """Nothing is wrong but the conditioning: which nodes make small errors large."""
        seen = self._watched(self._plain, inputs, truth)
        return Blame("precision", amplifiers=tuple(runtime.amplifiers(self._graph, seen, self._modules(), 6e-8)))

    def _kernel(self, inputs: Arrays, truth: _Layered) -> Blame:
        """The runtime departs without any rewrite: by a kernel of its own, or because the graph is so written that float32 loses it."""
        seen = self._watched(self._plain, inputs, truth)
        found = runtime.departures(self._graph, seen)
        culprits = suspects(found[:1], self._graph, self._origins, self._sources)
        stage: Stage = "translate" if self._written_so(inputs, truth, found) else "kernel"
        born = runtime.first_nonfinite(self._graph, seen)
        return Blame(
            stage,
            self._reproduced(culprits, truth, truth),
            path=tuple(runtime.way(self._graph, seen.errors, self._modules())[:WAY]),
            births=self._births(inputs, truth, born),
            unseen=not self._candidate.abilities.inner_values,
        )

    def _written_so(self, inputs: Arrays, truth: _Layered, found: list[Introduced]) -> bool:
        """Whether an evaluator that rounds each operation as IEEE asks departs as well: then no kernel is wrong."""
        values = self._store()
        try:
            follow(Evaluator(self._graph.proto, FAITHFUL_OPS), self._own(self._graph, inputs), {}, values)
        except Exception:
            return False  # the evaluator has no such operator in this dtype
        places = [one.value for one in found[:1]] or names(self._graph.outputs)
        return any(distance(values[name], truth[name]) > PARTED for name in places if name in values and name in truth)

    def _watched(self, settings: SessionSettings, inputs: Arrays, truth: _Layered) -> runtime.Seen:
        if not self._candidate.abilities.inner_values:
            return runtime.Seen()
        budget = self._memory // 4
        try:
            return runtime.watch(
                self._graph, self._candidate, settings, self._renamed, inputs, truth, truth.bytes_of, budget
            )
        except (Rejected, MemoryError, ValueError):
            return runtime.Seen()

    def _far(self, settings: SessionSettings, inputs: Arrays, truth: Mapping[str, NDArray[Any]]) -> bool:
        with contextlib.closing(self._candidate.open(self._path, settings, self._renamed)) as session:
            got = session.run(inputs)
        return any(distance(value, truth[name]) > PARTED for name, value in got.items() if name in truth)

    def _births(
        self, inputs: Arrays, known: Mapping[str, NDArray[Any]], node: ir.Node | None = None
    ) -> tuple[Birth, ...]:
        """Where the first NaN or infinity is born on either side, if the inputs have none."""
        if any(a.dtype.kind == "f" and not np.isfinite(a).all() for a in inputs.values()):
            return ()
        births = []
        if self._captured is not None:
            call = first_nonfinite_call(self._captured, self._subject, inputs)
            if call is not None:
                origin = self._origins.get(call, Origin())
                births.append(Birth(told(BASELINE), call, origin.op or "", origin.file, origin.line))
        node = node or self._first_nonfinite(inputs)
        if node is not None:
            origin = self._sources.get(label(node)) or self._origins.get(name_of(node.outputs[0])) or Origin()
            births.append(Birth(told(CANDIDATE), label(node), node.op_type, origin.file, origin.line))
        return tuple(births)

    def _first_nonfinite(self, inputs: Arrays) -> ir.Node | None:
        """The same for the graph as it is, in its own dtypes."""
        values, seen = self._store(), runtime.Seen()
        with contextlib.suppress(Exception):  # what was evaluated until then counts
            follow(Evaluator(self._graph.proto, FAITHFUL_OPS), self._own(self._graph, inputs), {}, values)
        for name in values:
            if values[name].dtype.kind == "f" and not np.isfinite(values[name]).all():
                seen.nonfinite.add(name)
        return runtime.first_nonfinite(self._graph, seen)


class _Layered(Mapping[str, NDArray[Any]]):
    """Several mappings, the first one that has a name wins; nothing is copied."""

    def __init__(self, *layers: Mapping[str, NDArray[Any]]) -> None:
        self._layers = layers

    def __getitem__(self, name: str) -> NDArray[Any]:
        for layer in self._layers:
            if name in layer:
                return layer[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(name in layer for layer in self._layers)

    def bytes_of(self, name: str) -> int:
        """The size of a value, without fetching it where that would be dear."""
        for layer in self._layers:
            if name in layer:
                return layer.bytes_of(name) if isinstance(layer, (Store, _Layered)) else layer[name].nbytes
        raise KeyError(name)

    def __iter__(self) -> Any:
        return iter(dict.fromkeys(name for layer in self._layers for name in layer))

    def __len__(self) -> int:
        return len(list(iter(self)))


class _Renamed(Mapping[str, NDArray[Any]]):
    """A mapping seen through other names."""

    def __init__(self, values: Mapping[str, NDArray[Any]], names: Mapping[str, str]) -> None:
        self._values = values
        self._names = names

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._values[self._names[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _worst(found: Any) -> float:
    return max((one.error for one in found), default=0.0)
