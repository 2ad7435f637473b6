"""Files in a lower precision, made as people make them: by onnxruntime's own converters."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static
from onnxruntime.transformers.float16 import convert_float_to_float16
from torch import nn

import onnxproof
from onnxproof.lowering.conversion import convert
from onnxproof.request.lowering import Lowering

try:
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
except ImportError:  # before onnxruntime 1.22
    from onnxruntime.quantization.matmul_4bits_quantizer import MatMul4BitsQuantizer as MatMulNBitsQuantizer

KINDS = ("int8 dynamic", "int8 static", "int8 operators", "float16", "float16 throughout", "int4 weights")


class Net(nn.Module):
    """Three products; the second is square."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.last = nn.Linear(20, 64), nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.relu(self.first(x)))))


def net() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(1)
    return Net().eval(), (torch.randn(16, 20),)


class Uneven(nn.Module):
    """One channel of the second product is two hundred times as large, and the third takes it back."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.last = nn.Linear(20, 64), nn.Linear(64, 64), nn.Linear(64, 10)
        with torch.no_grad():
            self.second.weight[7] *= 200
            self.last.weight[:, 7] /= 200

    def forward(self, x):
        return self.last(torch.relu(self.second(torch.relu(self.first(x)))))


def lower_uneven(how: Lowering, folder: Path) -> tuple[nn.Module, torch.Tensor, Path]:
    """A net with such a channel, the rows that calibrated it, and its file in a lower precision."""
    module, x = Uneven().eval(), torch.randn(64, 20, generator=torch.Generator().manual_seed(1))
    plain = Path(onnxproof.export(module, (x,), out=folder).artifact.path)
    convert(plain, folder / "uneven.onnx", how, [{"x": x.numpy()}])
    return module, x, folder / "uneven.onnx"


class Rows(CalibrationDataReader):
    def __init__(self) -> None:
        generator = np.random.default_rng(2)
        self._rows = iter([{"x": generator.standard_normal((16, 20)).astype("f4")} for _ in range(8)])

    def get_next(self):
        return next(self._rows, None)


@cache
def lower(kind: str) -> Path:
    """The net's file in this precision."""
    folder = Path(mkdtemp())
    made = onnxproof.export(*net(), out=folder)
    model = onnx.load(made.artifact.path)
    del model.graph.value_info[:]
    onnx.save(model, folder / "float.onnx")
    path = folder / "lower.onnx"
    if kind == "float32":
        return folder / "float.onnx"
    if kind == "int8 dynamic":
        quantize_dynamic(folder / "float.onnx", path, per_channel=True)
    elif kind in ("int8 static", "int8 operators"):
        form = QuantFormat.QDQ if kind == "int8 static" else QuantFormat.QOperator
        quantize_static(folder / "float.onnx", path, Rows(), quant_format=form, per_channel=kind == "int8 static")
    elif kind in ("float16", "float16 throughout"):
        onnx.save(convert_float_to_float16(model, keep_io_types=kind == "float16"), path)
    else:
        maker = MatMulNBitsQuantizer(_with_products(model), block_size=16, is_symmetric=False)
        maker.process()
        maker.model.save_model_to_file(str(path))
    return path


def _with_products(model: onnx.ModelProto) -> onnx.ModelProto:
    """Each Gemm as a MatMul and an Add: the converter to four bits knows no Gemm."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type != "Gemm":
            nodes.append(node)
            continue
        turned = numpy_helper.from_array(numpy_helper.to_array(stored[node.input[1]]).T.copy(), f"{node.input[1]}.T")
        model.graph.initializer.append(turned)
        product = onnx.helper.make_node("MatMul", [node.input[0], turned.name], [f"{node.output[0]}/product"])
        nodes += [product, onnx.helper.make_node("Add", [product.output[0], node.input[2]], node.output)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def change(path: Path, name: str, by, folder: Path) -> Path:
    """The file with one stored tensor changed."""
    model = onnx.load(path)
    (tensor,) = (tensor for tensor in model.graph.initializer if tensor.name == name)
    array = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(np.asarray(by(array)).astype(array.dtype), name))
    onnx.save(model, folder / "changed.onnx")
    return folder / "changed.onnx"
