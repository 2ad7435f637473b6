"""One culprit alone: a model of one node, its true inputs, and a script that shows what it should say and what it says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

SCRIPT = '''"""{title}

Needs numpy and onnxruntime: python {name}
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime

HERE = Path(__file__).resolve().parent
with np.load(HERE / "values.npz") as archive:
    values = {{name: archive[name] for name in archive.files}}
session = onnxruntime.InferenceSession(str(HERE / "node.onnx"), providers=["CPUExecutionProvider"])
(got,) = session.run(["result"], {{i.name: values[i.name] for i in session.get_inputs()}})
expected = values["expected"]
print("expected    ", expected.dtype, list(expected.shape), expected.ravel()[:8])
print("onnxruntime ", got.dtype, list(got.shape), got.ravel()[:8])
if got.shape != expected.shape:
    sys.exit("the shapes differ")
with np.errstate(all="ignore"):
    distance = np.abs(got.astype(np.float64) - expected.astype(np.float64))
worst = np.unravel_index(int(np.nan_to_num(distance, nan=np.inf).argmax()), distance.shape) if distance.size else ()
print("worst at", tuple(int(i) for i in worst), "expected", expected[worst], "got", got[worst])
'''


class NotAlone(Exception):
    """The node cannot stand alone."""


def reproduce(
    model: onnx.ModelProto,
    node_name: str,
    value: str,
    known: Mapping[str, NDArray[Any]],
    expected: NDArray[Any],
    folder: Path,
) -> Path:
    """Write node.onnx, values.npz and reproduce.py into a folder of the node's own; raises `NotAlone`."""
    node = next((n for n in model.graph.node if (n.name or n.output[0]) == node_name and value in n.output), None)
    if node is None or any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute):
        raise NotAlone(f"{node_name} is no node of the main graph, or holds a subgraph")
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    dtypes = _dtypes(model)
    alone = onnx.NodeProto()
    alone.CopyFrom(node)
    feeds: dict[str, NDArray[Any]] = {}
    held: list[onnx.TensorProto] = []
    for i, name in enumerate(node.input):
        if not name:
            continue
        alone.input[i] = f"input_{i}"
        if name in weights:
            held.append(_renamed(weights[name], f"input_{i}"))
        elif name in known:
            feeds[f"input_{i}"] = _narrowed(known[name], dtypes.get(name))
        else:
            raise NotAlone(f"the value {name} is not known")
    place = list(node.output).index(value)
    for i, name in enumerate(node.output):
        alone.output[i] = "result" if i == place else f"other_{i}" if name else ""
    answer = _narrowed(expected, dtypes.get(value))
    target = folder / (re.sub(r"[^A-Za-z0-9_.-]+", "_", node_name).strip("_.") or "node")
    target.mkdir(parents=True, exist_ok=True)
    onnx.save(_model(model, alone, feeds, held, answer), target / "node.onnx")
    np.savez(target / "values.npz", allow_pickle=False, **feeds, expected=answer)
    title = f"{node.op_type} node {node_name}, fed the true inputs"
    (target / "reproduce.py").write_text(SCRIPT.format(title=title, name="reproduce.py"), encoding="utf-8")
    return target


def _renamed(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy


def _dtypes(model: onnx.ModelProto) -> dict[str, int]:
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except Exception:
        inferred = model  # shapes are a convenience here: what is unknown is taken for float32
    graph = inferred.graph
    return {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.value_info, *graph.output)}


def _narrowed(array: NDArray[Any], dtype: int | None) -> NDArray[Any]:
    """A float64 truth in the dtype that the graph has there."""
    if dtype:
        return array.astype(onnx.helper.tensor_dtype_to_np_dtype(dtype))
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _model(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    feeds: Mapping[str, NDArray[Any]],
    held: list[onnx.TensorProto],
    answer: NDArray[Any],
) -> onnx.ModelProto:
    def info(name: str, array: NDArray[Any], shape: list[int] | None) -> onnx.ValueInfoProto:
        return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), shape)

    graph = onnx.helper.make_graph(
        [node],
        "one_node",
        [info(name, array, list(array.shape)) for name, array in feeds.items()],
        [info("result", answer, None)],
        held,
    )
    alone = onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    alone.functions.extend(model.functions)
    return alone
