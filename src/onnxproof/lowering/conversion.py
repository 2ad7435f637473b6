"""A float file → the same in a lower precision, by onnxruntime's own converters."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from onnxproof.graph.precision import recognise_precision
from onnxproof.graph.view import Graph
from onnxproof.request.lowering import Lowering
from onnxproof.tensors.arrays import Arrays

# Attempts to keep nodes in float whose ranges are endless.
ATTEMPTS = 3
# A scale from which on a mask's number is an end of its range.
ENDLESS = 1e27
# How the converters call the product that they make of a Gemm.
OF_GEMM = "_MatMul"


class Unsuitable(Exception):
    """The file cannot be had in this precision; the message says why."""


def convert(source: Path, target: Path, how: Lowering, rows: Sequence[Arrays] = ()) -> tuple[str, ...]:
    """Write the file; the nodes that stay in float, those included whose ranges have no end."""
    kept = how.kept
    with _quietly():
        for _ in range(ATTEMPTS):
            model = prepare(source, products=how.kind in ("int8 dynamic", "int4"))
            excluded = [*kept, *(f"{name}{OF_GEMM}" for name in kept)]
            try:
                CONVERTERS[how.kind](_Order(model, target, how, excluded, rows))
            except Exception as error:
                reason = str(error).strip().splitlines() or [type(error).__name__]
                raise Unsuitable(f"onnxruntime's converter fails: {type(error).__name__}: {reason[0][:200]}") from error
            endless = [name for name in _find_endless(target, model) if name not in kept]
            if not endless:
                break
            kept = (*kept, *endless)
    if recognise_precision(Graph.read(target)) is None:
        raise Unsuitable("nothing in it can have this precision: no product with stored weights")
    return kept


def prepare(source: Path, *, products: bool) -> onnx.ModelProto:
    """The file as converters take it: every node has a name of its own, and `products` are MatMuls where they were Gemms."""
    from onnxruntime.quantization.onnx_model import ONNXModel

    model = onnx.load(source)
    # What an exporter noted of shapes contradicts the weights that converters turn around.
    del model.graph.value_info[:]
    seen: set[str] = set()
    for node in model.graph.node:
        node.name = node.name if node.name and node.name not in seen else f"{node.op_type}/{node.output[0]}"
        seen.add(node.name)
    if products:
        ONNXModel(model).replace_gemm_with_matmul()
    return model


def list_places(source: Path) -> dict[str, str]:
    """Values and nodes of a float file → the node, by the name that it has for the converters."""
    nodes = prepare(source, products=False).graph.node
    return {**{node.name: node.name for node in nodes}, **{value: node.name for node in nodes for value in node.output}}


@dataclass(frozen=True)
class _Order:
    """What a converter is told."""

    model: onnx.ModelProto
    target: Path
    how: Lowering
    excluded: list[str]
    rows: Sequence[Arrays]


def _make_half(order: _Order) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(order.model, keep_io_types=True, node_block_list=order.excluded), order.target)


def _make_dynamic(order: _Order) -> None:
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(order.model, order.target, **_list_options(order))


def _make_static(order: _Order) -> None:
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
        def __init__(self) -> None:
            self._rows = iter(order.rows)

        def get_next(self) -> Any:
            return next(self._rows, None)

    method, types = CalibrationMethod[order.how.method or "MinMax"], {"activation_type": QuantType.QUInt8}
    options = {**_list_options(order), **types, "calibrate_method": method, "extra_options": {"WeightSymmetric": True}}
    # As a file: of a model in memory onnxruntime 1.20 loses the weights.
    with TemporaryDirectory(prefix="onnxproof-float-") as folder:
        source = Path(folder) / "model.onnx"
        onnx.save(order.model, source, save_as_external_data=True)
        quantize_static(source, order.target, Reader(), **options)


def _list_options(order: _Order) -> dict[str, Any]:
    """What both kinds of int8 are told."""
    how = order.how
    return {"per_channel": how.per_channel, "reduce_range": how.reduce_range, "nodes_to_exclude": order.excluded}


def _make_four(order: _Order) -> None:
    try:
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer as Maker
    except ImportError:  # before onnxruntime 1.22
        from onnxruntime.quantization.matmul_4bits_quantizer import MatMul4BitsQuantizer as Maker
    maker = Maker(order.model, block_size=order.how.block, is_symmetric=True, nodes_to_exclude=order.excluded)
    maker.process()
    maker.model.save_model_to_file(str(order.target))


CONVERTERS = {"fp16": _make_half, "int8 dynamic": _make_dynamic, "int8 static": _make_static, "int4": _make_four}


def _find_endless(target: Path, source: onnx.ModelProto) -> Iterator[str]:
    """Nodes of the float file at a value whose range came out endless: a mask's −∞, or the least float, was taken for a number."""
    stored = onnx.load(target).graph.initializer
    scales = (tensor for tensor in stored if tensor.name.endswith("_scale"))
    values = {t.name.removesuffix("_scale") for t in scales if not np.all(numpy_helper.to_array(t) < ENDLESS)}
    for node in source.graph.node:
        if values & {*node.input, *node.output}:
            yield node.name


@contextmanager
def _quietly() -> Iterator[None]:
    """Converters advise, warn and print where whoever calls them does."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        # What an endless range makes of them is looked for in the file.
        with np.errstate(all="ignore"), redirect_stdout(StringIO()):
            yield
    finally:
        logging.disable(before)
