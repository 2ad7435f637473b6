"""Which precision a file has chosen: integers in the place of floats, or half floats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import onnx_ir as ir

from onnxproof.graph.view import Graph
from onnxproof.proof.artifact import Precision

# Operators with weights worth a lower precision.
PRODUCTS = frozenset("MatMul Gemm Conv ConvTranspose LSTM GRU RNN Attention Gather".split())
# Quantised ones: what they compute, and how their activations get their scale.
QUANTISED = {
    "QLinearMatMul": ("MatMul", "static"),
    "QLinearConv": ("Conv", "static"),
    "QGemm": ("Gemm", "static"),
    "QLinearConvTranspose": ("ConvTranspose", "static"),
    "MatMulInteger": ("MatMul", "dynamic"),
    "ConvInteger": ("Conv", "dynamic"),
    "MatMulIntegerToFloat": ("MatMul", "dynamic"),
    "DynamicQuantizeMatMul": ("MatMul", "dynamic"),
    "DynamicQuantizeLSTM": ("LSTM", "dynamic"),
    "QAttention": ("Attention", "dynamic"),
    "MatMulNBits": ("MatMul", "weights"),
    "MatMulBnb4": ("MatMul", "weights"),
    "GatherBlockQuantized": ("Gather", "weights"),
}
HALVES = {ir.DataType.FLOAT16: "float16", ir.DataType.BFLOAT16: "bfloat16"}
WHOLE = {
    ir.DataType.INT8: "int8",
    ir.DataType.UINT8: "int8",
    ir.DataType.INT4: "int4",
    ir.DataType.UINT4: "int4",
    ir.DataType.INT16: "int16",
    ir.DataType.UINT16: "int16",
}
MOVES = frozenset({"Transpose", "Reshape", "Identity", "Cast"})
# The strongest of several ways that a file uses gives it its name.
ORDER = ("static", "dynamic", "weights")


def recognise_precision(graph: Graph) -> Precision | None:
    """The precision of the products in a file, where it is a lower one than float32."""
    products = [node for node in graph.all_nodes if node.op_type in PRODUCTS or node.op_type in QUANTISED]
    lowered = [(node, how) for node in products if (how := _find_lowering(node)) is not None]
    if lowered:
        return _describe(products, lowered, _tell_ends(graph))
    halves = Counter(HALVES[dtype] for value in _list_stored(graph) if (dtype := value.dtype) in HALVES)
    floats = sum(1 for value in _list_stored(graph) if value.dtype == ir.DataType.FLOAT and _large(value))
    if not halves:
        return None
    kind = halves.most_common(1)[0][0]
    share = f"{sum(halves.values())} of {sum(halves.values()) + floats} weights"
    return Precision(kind=kind, text=f"{kind}, {share}{_tell_ends(graph)}")


def _tell_ends(graph: Graph) -> str:
    """Whether the file takes and gives half floats: whoever calls it has to, too."""
    sides = {"inputs": graph.inputs, "outputs": graph.outputs}
    halves = {name: {HALVES[v.dtype] for v in values if v.dtype in HALVES} for name, values in sides.items()}
    kinds = sorted(set().union(*halves.values()))
    told = " and ".join(name for name, found in halves.items() if found)
    return f"; {told} in {' and '.join(kinds)}" if kinds else ""


def _describe(products: list[ir.Node], lowered: list[tuple[ir.Node, tuple[str, str]]], ends: str) -> Precision:
    ways = {way for _, (_, way) in lowered}
    way = next(one for one in ORDER if one in ways)
    bits = Counter(bits for _, (bits, _) in lowered).most_common(1)[0][0]
    every, low = Counter(map(_name_base, products)), Counter(_name_base(node) for node, _ in lowered)
    counts = {op: (count, every[op]) for op, count in low.most_common()}
    channels = any(_is_per_channel(node) for node, _ in lowered)
    told = ", ".join(f"{count} of {total} {op}{'s' * (total > 1)}" for op, (count, total) in counts.items())
    kind = f"{bits} {way}"
    text = f"{kind}, {told}; weights per {'channel' if channels else 'tensor'}{ends}"
    return Precision(kind, text, counts, channels)


def _name_base(node: ir.Node) -> str:
    return QUANTISED[node.op_type][0] if node.op_type in QUANTISED else node.op_type


def _find_lowering(node: ir.Node) -> tuple[str, str] | None:
    """(bits, way) of a product with quantised weights or activations."""
    if node.op_type in QUANTISED:
        bits = next(
            (bits for value in node.inputs if value is not None and (bits := WHOLE.get(_read_dtype(value)))), "int8"
        )
        packed = node.attributes.get("bits")
        return (f"int{packed.as_int()}" if packed is not None else bits), QUANTISED[node.op_type][1]
    ends = [_find_dequantised(value) for value in node.inputs if value is not None]
    known = [end for end in ends if end is not None]
    if not known or (node.op_type == "Gather" and ends[0] is None):
        return None
    stored = [bits for bits, is_stored in known if is_stored]
    moving = [bits for bits, is_stored in known if not is_stored]
    return (stored or moving)[0], "static" if moving else "weights"


def _find_dequantised(value: ir.Value) -> tuple[str, bool] | None:
    """The bits of a value that comes out of a DequantizeLinear, and whether it was stored: as it is, turned, or as a table."""
    node = _trace(value, MOVES).producer()
    if node is None or node.op_type != "DequantizeLinear" or node.inputs[0] is None:
        return None
    source = _trace(node.inputs[0], {*MOVES, "Gather"})
    return WHOLE.get(_read_dtype(source), "int8"), source.const_value is not None


def _trace(value: ir.Value, moves: Collection[str]) -> ir.Value:
    """What a value was before it was only moved."""
    while (node := value.producer()) is not None and node.op_type in moves and node.inputs[0] is not None:
        value = node.inputs[0]
    return value


def _read_dtype(value: ir.Value) -> ir.DataType:
    tensor = value.const_value
    return (tensor.dtype if tensor is not None else value.dtype) or ir.DataType.UNDEFINED


def _is_per_channel(node: ir.Node) -> bool:
    scales = [scale for value in node.inputs if value is not None for scale in _find_scales(value)]
    return any(scale.const_value is not None and scale.const_value.size > 1 for scale in scales)


def _find_scales(value: ir.Value) -> Iterable[ir.Value]:
    """What may be a scale: of a DequantizeLinear, or, for an operator that takes them itself, a scale or a zero point by its name."""
    node = value.producer()
    if node is not None and node.op_type == "DequantizeLinear" and node.inputs[1] is not None:
        yield node.inputs[1]
    elif any(word in (value.name or "") for word in ("scale", "zero_point")):
        yield value


def _list_stored(graph: Graph) -> Iterable[ir.Value]:
    return (value for value in graph.main.initializers.values() if value.const_value is not None)


def _large(value: ir.Value) -> bool:
    return value.const_value is not None and value.const_value.size > 1
