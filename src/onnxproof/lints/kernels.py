"""Which nodes a provider has a kernel for, from onnxruntime's own registry: no session is built."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import onnx
import onnx_ir as ir

from onnxproof.candidates.serve import EXTENSIONS
from onnxproof.findings import Finding, found
from onnxproof.graph.bodies import inline
from onnxproof.graph.view import Graph, list_names, read_name

CPU = "CPUExecutionProvider"
# The last version of a kernel for which none is set: a later one of the operator may mean something else.
OPEN = 2**31 - 1


@dataclass(frozen=True)
class Kernel:
    """One registered implementation."""

    first: int
    last: int
    types: Mapping[str, frozenset[str]]

    def fits(self, version: int, bound: Mapping[str, str]) -> bool:
        """Whether it takes an operator of this version with these types. One without an end is for its first version only."""
        last = self.first if self.last == OPEN else self.last
        return self.first <= version <= last and all(
            bound[name] in allowed for name, allowed in self.types.items() if name in bound
        )


@cache
def load_registry() -> Mapping[tuple[str, str, str], tuple[Kernel, ...]]:
    """(provider, domain, operator) → kernels. Providers that compile whole subgraphs have none in it."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

    kernels: dict[tuple[str, str, str], list[Kernel]] = defaultdict(list)
    for one in get_all_opkernel_def():
        first, last = one.version_range
        types = {name: frozenset(allowed) for name, allowed in one.type_constraints.items()}
        domain = "" if one.domain == "ai.onnx" else one.domain
        kernels[one.provider, domain, one.op_name].append(Kernel(first, last, types))
    return {key: tuple(found) for key, found in kernels.items()}


def find_missing_kernels(graph: Graph, providers: Sequence[str]) -> Iterator[Finding]:
    """Nodes that no provider can run, and nodes that the first provider leaves to another."""
    known = {provider for provider, _, _ in load_registry()}
    order = [*providers, *([] if CPU in providers else [CPU])]
    if not known.issuperset(order):
        return  # a provider that compiles subgraphs tells only when a session is built
    nowhere: dict[str, list[ir.Node]] = {}
    elsewhere: dict[str, list[ir.Node]] = {}
    for node in graph.running:
        first, *others = (_find_lack(graph, node, provider) for provider in order)
        if first is not None:
            (elsewhere if None in others else nowhere).setdefault(first, []).append(node)
    if nowhere:
        node = next(iter(nowhere.values()))[0]
        message = f"no kernel in {', '.join(order)} for {'; '.join(list(nowhere)[:3])} (node {node.name})"
        yield found("OX308", message, where=graph.where(node), evidence=_name_nodes(nowhere))
    if elsewhere:
        count = sum(map(len, elsewhere.values()))
        message = (
            f"{order[0]} has no kernel for {count} nodes, which would run elsewhere: {'; '.join(list(elsewhere)[:3])}"
        )
        yield found("OX309", message, evidence=_name_nodes(elsewhere))


def _name_nodes(groups: Mapping[str, Sequence[ir.Node]]) -> dict[str, dict[str, list[str | None]]]:
    return {"nodes": {told: [node.name for node in nodes[:20]] for told, nodes in groups.items()}}


@cache
def load_schemas() -> Mapping[tuple[str, str], Mapping[int, frozenset[str]]]:
    """(domain, operator) → the versions that onnxruntime knows with their attributes, oldest first; its own operators included."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    versions: dict[tuple[str, str], dict[int, frozenset[str]]] = defaultdict(dict)
    for schema in sorted(get_all_operator_schema(), key=lambda one: int(one.since_version)):
        domain = "" if schema.domain == "ai.onnx" else schema.domain
        versions[domain, schema.name][int(schema.since_version)] = frozenset(schema.attributes)
    return versions


def find_unknown_operators(graph: Graph) -> Iterator[Finding]:
    """Operators that onnxruntime does not have at all, or not in the opset of the file, or not with an attribute."""
    unknown: dict[str, list[ir.Node]] = {}
    added = {EXTENSIONS} if find_spec("onnxruntime_extensions") else set[str]()
    for node in (node for node in graph.all_nodes if graph.function(node) is None and node.domain not in added):
        name = f"{node.domain}:{node.op_type}" if node.domain else node.op_type
        lack = _tell_unknown(node, load_schemas().get((node.domain, node.op_type), {}), graph.opsets.get(node.domain))
        if lack is not None:
            unknown.setdefault(f"{name}{lack}", []).append(node)
    if unknown:
        where = graph.where(next(iter(unknown.values()))[0])
        message = f"onnxruntime does not know {'; '.join(list(unknown)[:3])}"
        yield found("OX311", message, where=where, evidence=_name_nodes(unknown))


def find_ill_typed(graph: Graph) -> list[Finding]:
    """Nodes that are given a type which the standard does not allow there: onnxruntime loads no such file."""
    for node in graph.running:
        schema = _find_schema(node.op_type, graph.opsets.get(node.domain, 1), node.domain)
        if schema is None:
            continue
        allowed = _list_allowed(node.op_type, graph.opsets.get(node.domain, 1), node.domain)
        for value, formal in zip(node.inputs, schema.inputs, strict=False):
            kind, types = _read_kind(graph, value), allowed.get(formal.type_str)
            if kind and types and f"tensor({kind})" not in types:
                message = f"node {node.name or '?'}: {node.op_type} does not take tensor({kind}) as {formal.name}"
                evidence = {"value": read_name(value), "allowed": sorted(types)}
                return [found("OX307", message, where=graph.where(node), evidence=evidence)]
    return []


@cache
def _find_schema(op: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    """What the standard says of an operator in an opset; None where it says nothing."""
    try:
        return onnx.defs.get_schema(op, version, domain)
    except Exception:
        return None  # not of the standard, or not in this opset: another check tells


@cache
def _list_allowed(op: str, version: int, domain: str) -> Mapping[str, frozenset[str]]:
    """Type variables of an operator of the standard → the types that each may be."""
    schema = onnx.defs.get_schema(op, version, domain)
    return {one.type_param_str: frozenset(one.allowed_type_strs) for one in schema.type_constraints}


def _tell_unknown(node: ir.Node, known: Mapping[int, frozenset[str]], version: int | None) -> str | None:
    """What onnxruntime does not know about an operator; nothing to add where it does not know it at all."""
    if not known:
        return ""
    if version is None:
        return None
    since = max((one for one in known if one <= version), default=None)
    if since is None:
        return f" in opset {version} (it is there from {min(known)} on)"
    strange = [name for name in node.attributes if name not in known[since]]
    return f" with the attribute {strange[0]!r}" if strange else None


def _read_kind(graph: Graph, value: ir.Value | None) -> str:
    """The type of a value's elements; empty where nobody knows."""
    return _name_kind(graph.types.get(read_name(value), 0))


@cache
def _name_kind(kind: int) -> str:
    known = onnx.TensorProto.DataType.values()
    return "" if not kind else onnx.TensorProto.DataType.Name(kind).lower() if kind in known else f"type {kind}"


def _find_lack(graph: Graph, node: ir.Node, provider: str) -> str | None:
    """The operator and types that a provider has no kernel for: the node's own, or one that onnxruntime runs in its place."""
    if _runs(graph, node, provider):
        return None
    kinds = dict.fromkeys(_read_kind(graph, value) for value in node.inputs)
    told = f"{node.op_type} with {', '.join(filter(None, kinds)) or 'these types'}"
    if not all(graph.types.get(name) for name in list_names(node.inputs)):
        return None  # without its types nobody can say
    body = inline(graph, node)
    if body is None:
        return told
    lack = next(filter(None, (_find_lack(body, inner, provider) for inner in body.running)), None)
    return f"{told} (it runs as other operators: {lack})" if lack else None


def _runs(graph: Graph, node: ir.Node, provider: str) -> bool:
    """Whether a kernel fits; in doubt (unknown types or operators) the answer is yes."""
    if node.op_type == "Constant":
        return True  # it becomes a stored tensor before kernels are looked for
    if graph.function(node) is not None:
        return False
    schema = _find_schema(node.op_type, graph.opsets.get(node.domain, 1), node.domain)
    if schema is None:
        return True
    bound = _bind_types(graph, node, schema)
    kernels = load_registry().get((provider, node.domain, node.op_type), ())
    if any(kernel.fits(schema.since_version, bound) for kernel in kernels):
        return True
    # onnxruntime puts casts around operators that the CPU has for float32 only.
    widened = {name: "tensor(float)" if kind == "tensor(float16)" else kind for name, kind in bound.items()}
    return provider == CPU and widened != bound and any(k.fits(schema.since_version, widened) for k in kernels)


def _bind_types(graph: Graph, node: ir.Node, schema: onnx.defs.OpSchema) -> dict[str, str]:
    """Type variables of the operator (and names of its arguments, which kernels use too) → the types here."""
    bound: dict[str, str] = {}
    for values, formals in ((node.inputs, schema.inputs), (node.outputs, schema.outputs)):
        for position, value in enumerate(values):
            kind = _read_kind(graph, value)
            if kind and formals:
                formal = formals[min(position, len(formals) - 1)]
                for name in (formal.type_str, formal.name):
                    bound.setdefault(name, f"tensor({kind})")
    return bound
