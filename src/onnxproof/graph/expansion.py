"""Quantised operators written out: what they mean is dequantising, an operator on real numbers, and quantising again.

Their kernels do it in integers; in exact arithmetic that is the same, so the written-out graph is what a kernel is held against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnxproof.tensors.arrays import Array

CONTRIB = "com.microsoft"
# Operators of one or several quantised inputs (value, scale, zero point, each) whose own scale and zero point come last.
PLAIN = {"QLinearAdd": "Add", "QLinearMul": "Mul", "QLinearMatMul": "MatMul"}
# The same for one input; attributes stay.
UNARY = {
    "QLinearSigmoid": "Sigmoid",
    "QLinearLeakyRelu": "LeakyRelu",
    "QLinearSoftmax": "Softmax",
    "QLinearAveragePool": "AveragePool",
    "QLinearGlobalAveragePool": "GlobalAveragePool",
    "QLinearReduceMean": "ReduceMean",
}
# Of integers, into integers; the scales are applied later.
INTEGERS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
# The domain of operators that only the evaluator knows.
OURS = "onnxproof"
# Attributes that only the quantised operators have.
OWN = {"opset", "channels_last"}


class _Writer:
    """Nodes that stand for one, under its name."""

    def __init__(self, node: NodeProto, constants: list[TensorProto]) -> None:
        self.node, self._constants = node, constants
        self.nodes: list[NodeProto] = []

    def add(self, op: str, inputs: Sequence[str], output: str | None = None, **attributes: Any) -> str:
        """One node; the name of its result."""
        result = output or f"{self.node.output[0]}/{op}{len(self.nodes)}"
        name = f"{self.node.name or self.node.output[0]}"
        self.nodes.append(helper.make_node(op, list(inputs), [result], name=name, **attributes))
        return result

    def constant(self, array: Array) -> str:
        """A stored tensor; its name."""
        name = f"{self.node.output[0]}/constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def dequantize(self, at: int, **attributes: Any) -> str:
        """The real numbers of the value, scale and zero point from this input on."""
        return self.add("DequantizeLinear", [name for name in self.node.input[at : at + 3] if name], **attributes)

    def quantize(self, value: str, at: int) -> None:
        """The result in the scale and zero point from this input on."""
        self.add("QuantizeLinear", [value, *self.node.input[at : at + 2]], self.node.output[0])

    def kept(self) -> dict[str, Any]:
        """The attributes that the operator on real numbers has too."""
        return {a.name: helper.get_attribute_value(a) for a in self.node.attribute if a.name not in OWN}


def _write_plain(writer: _Writer) -> None:
    op = PLAIN[writer.node.op_type]
    at = {} if op != "MatMul" else {"axis": -1}
    value = writer.add(op, [writer.dequantize(0), writer.dequantize(3, **at)])
    writer.quantize(value, 6)


def _write_unary(writer: _Writer) -> None:
    value = writer.add(UNARY[writer.node.op_type], [writer.dequantize(0)], **writer.kept())
    writer.quantize(value, 3)


def _write_concat(writer: _Writer) -> None:
    """Its scale and zero point come first."""
    node = writer.node
    value = writer.add("Concat", [writer.dequantize(at) for at in range(2, len(node.input), 3)], **writer.kept())
    writer.quantize(value, 0)


def _write_convolution(writer: _Writer) -> None:
    node = writer.node
    inputs = [writer.dequantize(0), writer.dequantize(3, axis=0)]
    inputs += (
        [_write_bias(writer, node.input[8], node.input[1], node.input[4])]
        if len(node.input) > 8 and node.input[8]
        else []
    )
    writer.quantize(writer.add("Conv", inputs, **writer.kept()), 6)


def _write_gemm(writer: _Writer) -> None:
    """Without a scale of its own the result stays a real number."""
    node, kept = writer.node, writer.kept()
    axis = 0 if kept.get("transB") else 1
    inputs = [writer.dequantize(0), writer.dequantize(3, axis=axis)]
    if len(node.input) > 6 and node.input[6]:
        factor = writer.constant(np.float32(kept.get("alpha", 1.0)))
        inputs.append(_write_bias(writer, node.input[6], writer.add("Mul", [node.input[1], factor]), node.input[4]))
    quantised = len(node.input) > 7 and bool(node.input[7])
    value = writer.add("Gemm", inputs, None if quantised else node.output[0], **kept)
    if quantised:
        writer.quantize(value, 7)


def _write_bias(writer: _Writer, bias: str, first: str, second: str) -> str:
    """A bias is stored in the product of the scales."""
    real = writer.add("Cast", [bias], to=TensorProto.FLOAT)
    return writer.add("Mul", [real, writer.add("Mul", [first, second])])


def _write_bits(writer: _Writer) -> None:
    """Weights in blocks; an order of their own is nothing that the evaluator knows."""
    node, kept = writer.node, writer.kept()
    if any(node.input[4:5]):
        raise NotImplementedError("MatMulNBits with an order of its own")
    wanted = {name: kept.get(name, 4) for name in ("N", "K", "bits", "block_size")}
    weights = writer.add("UnpackBits", [name for name in node.input[1:4] if name], domain=OURS, **wanted)
    bias = node.input[5] if len(node.input) > 5 else ""
    product = writer.add("MatMul", [node.input[0], weights], None if bias else node.output[0])
    if bias:
        writer.add("Add", [product, bias], node.output[0])


def _write_integers(writer: _Writer) -> None:
    """Integers less their zero points are real numbers, and their products are exact."""
    node = writer.node
    zeros = [*node.input[2:], "", ""]
    inputs = [
        writer.add("Whole", [name, *([zero] if zero else [])], domain=OURS, axis=axis)
        for name, zero, axis in zip(
            node.input[:2], zeros, (0, 0 if node.op_type == "ConvInteger" else -1), strict=False
        )
    ]
    writer.add(INTEGERS[node.op_type], inputs, node.output[0], **writer.kept())


WRITERS: dict[str, Callable[[_Writer], None]] = {
    **dict.fromkeys(PLAIN, _write_plain),
    **dict.fromkeys(UNARY, _write_unary),
    "QLinearConcat": _write_concat,
    "QLinearConv": _write_convolution,
    "QGemm": _write_gemm,
    "MatMulNBits": _write_bits,
    **dict.fromkeys(INTEGERS, _write_integers),
}


def expand(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model without these operators; itself where it has none."""
    if not any(node.op_type in WRITERS for node in model.graph.node):
        return model
    written = deepcopy(model)
    constants: list[TensorProto] = []
    nodes = [one for node in model.graph.node for one in _expand_node(node, constants)]
    del written.graph.node[:]
    written.graph.node.extend(nodes)
    written.graph.initializer.extend(constants)
    written.opset_import.append(helper.make_opsetid(OURS, 1))
    return written


def _expand_node(node: NodeProto, constants: list[TensorProto]) -> Iterable[NodeProto]:
    if node.op_type not in WRITERS:
        return [node]
    writer = _Writer(node, constants)
    WRITERS[node.op_type](writer)
    return writer.nodes
