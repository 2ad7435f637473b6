"""The types and shapes of a model's values: onnx's own inference, which takes and returns protobufs."""

from __future__ import annotations

import onnx

from onnxproof.graph.file import list_subgraphs
from onnxproof.graph.lightening import strip_initializers

# Bytes above which a weight takes no part in inference.
HEAVY = 4096


def infer(model: onnx.ModelProto) -> onnx.GraphProto:
    """The graph with what inference tells, without its heavy weights; a graph that inference rejects is the checker's to tell."""
    light = _drop_weights(model)
    try:
        return onnx.shape_inference.infer_shapes(light, data_prop=True).graph
    except Exception:
        return light.graph


def _drop_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which heavy weights are inputs: neither they nor anything of their size is copied."""
    light = strip_initializers(model)
    listed = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        # Small ones stay: shapes, axes and repeats are what inference computes with.
        if not tensor.external_data and tensor.ByteSize() <= HEAVY:
            light.graph.initializer.append(tensor)
        elif tensor.name not in listed:
            light.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return light


def infer_types(graph: onnx.GraphProto) -> dict[str, int]:
    """Value → element type, of subgraphs too: a name of the outer graph wins."""
    types = {
        name: kind for node in graph.node for inner in list_subgraphs(node) for name, kind in infer_types(inner).items()
    }
    values = [*graph.input, *graph.output, *graph.value_info]
    types |= {v.name: int(v.type.tensor_type.elem_type) for v in values if v.type.HasField("tensor_type")}
    return types | {t.name: int(t.data_type) for t in graph.initializer}


def infer_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int | str | None, ...]]:
    """Value → shape."""
    values = [*graph.value_info, *graph.input, *graph.output]
    dims = {v.name: v.type.tensor_type.shape.dim for v in values if v.type.tensor_type.HasField("shape")}
    return {
        # A name that is no UTF-8 comes as bytes.
        name: tuple(int(d.dim_value) if d.HasField("dim_value") else str(d.dim_param) or None for d in shape)
        for name, shape in dims.items()
    }
