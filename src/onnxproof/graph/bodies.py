"""The operators that onnxruntime runs in place of one that it has no kernel for: the body of a function, its types inferred.

The bodies of the standard's operators are protobufs, and so is what onnx's inliner takes.
"""

from __future__ import annotations

import onnx
import onnx.inliner
import onnx_ir as ir

from onnxproof.graph.view import Graph, list_names

# Where a body is put to be inlined: a name that no file uses.
DOMAIN = "body"


def inline(graph: Graph, node: ir.Node) -> Graph | None:
    """The nodes that a node with known types stands for; None where it is no function here."""
    call = ir.to_proto(node)
    own = [f for f in graph.proto.functions if (f.domain, f.name) == (node.domain, node.op_type)]
    # A copy: its domain is about to change, and the file's own function stays as it is.
    function = onnx.FunctionProto.FromString(own[0].SerializeToString()) if own else _find_standard(graph, call)
    if function is None:
        return None
    call.domain, function.domain = DOMAIN, DOMAIN
    inputs = [_make_value(graph, name) for name in dict.fromkeys(list_names(node.inputs))]
    made = onnx.helper.make_graph([call], DOMAIN, inputs, [onnx.ValueInfoProto(name=name) for name in call.output])
    imports = [*function.opset_import, onnx.helper.make_opsetid(DOMAIN, 1)]
    others = [f for f in graph.proto.functions if (f.domain, f.name) != (node.domain, node.op_type)]
    model = onnx.helper.make_model(made, functions=[function, *others], opset_imports=imports)
    try:
        model = onnx.inliner.inline_local_functions(model)
    except Exception:
        return None  # a body that onnx itself cannot take apart
    return Graph(model)


def _make_value(graph: Graph, name: str) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, graph.types[name], graph.shapes.get(name))


def _find_standard(graph: Graph, node: onnx.NodeProto) -> onnx.FunctionProto | None:
    """The body that the standard gives an operator, as onnxruntime picks it."""
    if node.domain or not onnx.defs.has(node.op_type, graph.opset):
        return None
    schema = onnx.defs.get_schema(node.op_type, graph.opset)
    plain = [version for version in schema.function_opset_versions if version <= graph.opset]
    built = [version for version in schema.context_dependent_function_opset_versions if version <= graph.opset]
    if plain:
        function = onnx.FunctionProto.FromString(schema.get_function_with_opset_version(max(plain)))
        if not _current(function, graph.opset):
            return None
        for imported in function.opset_import:  # what it calls is looked for in the opset of the file
            imported.version = graph.opset if imported.domain == "" else imported.version
        return function
    if not built:
        return None
    types = [_make_value(graph, name).type.SerializeToString() if name else b"" for name in node.input]
    text = schema.get_context_dependent_function_with_opset_version(max(built), node.SerializeToString(), types)
    return onnx.FunctionProto.FromString(text) if text else None


def _current(function: onnx.FunctionProto, opset: int) -> bool:
    """Whether the operators of a body still mean in this opset what they meant in the body's: onnxruntime uses it only then."""
    written = next((int(o.version) for o in function.opset_import if o.domain == ""), opset)
    return all(
        onnx.defs.has(node.op_type, opset)
        and onnx.defs.get_schema(node.op_type, written).since_version
        == onnx.defs.get_schema(node.op_type, opset).since_version
        for node in function.node
        if node.domain in ("", "ai.onnx")
    )
