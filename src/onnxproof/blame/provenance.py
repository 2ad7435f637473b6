"""Where nodes come from: the module, the file and the line of what is blamed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir

from onnxproof.blame.capture import Captured, find_nonfinite_call
from onnxproof.blame.nodes import WORTH_TELLING, Introduced
from onnxproof.candidates.roles import BASELINE, CANDIDATE, name_stage
from onnxproof.graph.sourcemap import Origin
from onnxproof.graph.view import Graph, label_node, list_graphs, list_names, list_subgraphs, read_name
from onnxproof.proof.blame import Birth, Culprit
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Arrays

SHOWN = 20


@dataclass(frozen=True)
class Provenance:
    """An artifact's graph, the program that was captured again (None where it cannot be), and the source map."""

    subject: Subject
    graph: Graph
    captured: Captured | None
    sources: Mapping[str, Origin]

    @property
    def _origins(self) -> Mapping[str, Origin]:
        return self.captured.origins if self.captured is not None else {}

    def _find_origin(self, node: str, value: str) -> Origin:
        return self.sources.get(node) or self._origins.get(value) or Origin()

    def modules(self) -> dict[str, str | None]:
        """Node → the module it comes from."""
        modules = {name: origin.module for name, origin in self.sources.items()}
        for node in self.graph.nodes:
            for value in list_names(node.outputs):
                if value in self._origins:
                    modules.setdefault(label_node(node), self._origins[value].module)
        return modules

    def suspects(self, found: Iterable[Introduced], least: float = WORTH_TELLING) -> list[Culprit]:
        """Nodes that introduce more than float32 constants explain; the largest first, the earlier one among equals."""
        worst: dict[str, Introduced] = {}
        for one in sorted((f for f in found if f.error > least), key=lambda f: -f.error):
            worst.setdefault(one.node, one)
        nodes = {label_node(node): node for node in self.graph.nodes}
        told = [self._own_node(one, nodes) for one in list(worst.values())[:SHOWN]]
        return [self._make_culprit(one, nodes.get(one.node)) for one in told]

    def _own_node(self, one: Introduced, nodes: Container[str]) -> Introduced:
        """As the file names it: the evaluator writes some operators out (HardSwish), and has nodes of its own then."""
        writer = self.graph.writer(one.value) if one.node not in nodes else None
        return one if writer is None else replace(one, node=label_node(writer), op=writer.op_type)

    def _make_culprit(self, one: Introduced, node: ir.Node | None) -> Culprit:
        origin = self._find_origin(one.node, one.value)
        border = node is not None and (self.graph.function(node) is not None or any(True for _ in list_subgraphs(node)))
        return Culprit(
            one.node,
            one.op,
            min(one.error, 1e300),
            origin.module,
            origin.file,
            origin.line,
            origin.text,
            origin.cls,
            one.value,
            attributes=_read_attributes(node) if node is not None else {},
            expected=one.expected,
            got=one.got,
            rule=origin.rule,
            border=border,
        )

    def births(self, inputs: Arrays, node: ir.Node | None) -> tuple[Birth, ...]:
        """Where the first NaN or infinity is born in the program, and in this node of the graph."""
        births = []
        call = find_nonfinite_call(self.captured, self.subject, inputs) if self.captured is not None else None
        if call is not None:
            origin = self._origins.get(call, Origin())
            births.append(Birth(name_stage(BASELINE), call, origin.op or "", origin.file, origin.line))
        if node is not None:
            origin = self._find_origin(label_node(node), read_name(node.outputs[0]))
            births.append(Birth(name_stage(CANDIDATE), label_node(node), node.op_type, origin.file, origin.line))
        return tuple(births)

    def dependents(self, outputs: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """Node → the module's outputs that are computed from it."""
        reached: dict[str, tuple[str, ...]] = {}
        for output, end in outputs.items():
            for node in self.graph.before(self.graph.values[end]) if end in self.graph.values else ():
                reached[label_node(node)] = (*reached.get(label_node(node), ()), output)
        return reached


def _read_attributes(node: ir.Node) -> dict[str, Any]:
    """The attributes of a node as plain data, without its subgraphs."""
    return {name: _simplify(attribute) for name, attribute in node.attributes.items() if not list_graphs(attribute)}


def _simplify(attribute: ir.Attr) -> Any:
    if attribute.type == ir.AttributeType.TENSOR:
        return f"tensor of shape {list(attribute.as_tensor().shape)}"
    return list(attribute.value) if isinstance(attribute.value, tuple) else attribute.value
