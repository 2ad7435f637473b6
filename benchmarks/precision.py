"""Right and wrong conversions to a lower precision, judged: `python -m benchmarks.precision` writes docs/precision.md.

Every model is converted as people do it (onnxruntime's own converters, two formats of int8, float16, four bits). Nothing of a right
conversion may block: without data the answer is REVIEW. Then a fault is planted in the int8 files, one at a time.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

import onnxproof

ENDLESS = ": the converter took the mask's −∞ for a range, and the scale is infinite"
PAGE = Path(__file__).parents[1] / "docs" / "precision.md"
HEAD = """# Lower precision

Made by `make precision`, one run. A right conversion is computed right (the file's exact meaning is what the runtime is held against) and never
blocks; what it costs stands beside it in decibels, the worst output on ordinary inputs. Without data the verdict is REVIEW: nothing tells
what the cost means on a task. A planted fault has to block, and the tensor or range that is wrong has to be named.
"""


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
        self.head = nn.Linear(32, 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.words(ids)).mean(1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.cells(x)[0][:, -1])


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(50, 16), nn.Embedding(80, 16)
        self.rate = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.rate(torch.cat([self.users(ids[:, 0] % 50), self.items(ids[:, 1] % 80)], -1))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(64, 32)
        self.mix, self.out, self.head = nn.Linear(32, 96), nn.Linear(32, 32), nn.Linear(32, 64)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        q, k, v = self.mix(x).chunk(3, -1)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(x + self.out(attended))


def dense() -> nn.Module:
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10))


def convolutional() -> nn.Module:
    first = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(32, 10))


def regression() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "dense": (dense, (8, 20), 0),
    "convolutional": (convolutional, (4, 3, 16, 16), 0),
    "encoder": (Encoder, (2, 7), 100),
    "decoder": (Decoder, (2, 9), 64),
    "recurrent": (Recurrent, (2, 6, 8), 0),
    "recommender": (Recommender, (4, 2), 50),
    "regression": (regression, (8, 12), 0),
}


def make(name: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A model with its example."""
    torch.manual_seed(0)
    build, shape, ids = MODELS[name]
    return build().eval(), (draw(shape, ids),)


def draw(shape: tuple[int, ...], ids: int) -> torch.Tensor:
    """Ordinary inputs."""
    return torch.randint(0, ids, shape) if ids else torch.randn(shape)


def convert(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Every precision in which the model can be had."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    from onnxruntime.transformers.float16 import convert_float_to_float16

    class Rows(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
        def __init__(self) -> None:
            _, shape, ids = MODELS[name]
            self._rows = iter([{port: draw(shape, ids).numpy()} for _ in range(16)])

        def get_next(self) -> Any:
            return next(self._rows, None)

    made = onnxproof.export(*make(name), out=folder)
    assert made.artifact is not None
    model = onnx.load(made.artifact.path)
    del model.graph.value_info[:]
    port, plain = model.graph.input[0].name, folder / "float.onnx"
    onnx.save(model, plain)
    quantize_dynamic(plain, folder / "dynamic.onnx", per_channel=True)
    yield "int8 dynamic", folder / "dynamic.onnx"
    for label, form in (("int8 QDQ", QuantFormat.QDQ), ("int8 QOperator", QuantFormat.QOperator)):
        path = folder / f"{form.name}.onnx"
        quantize_static(plain, path, Rows(), quant_format=form, per_channel=form == QuantFormat.QDQ)
        yield label, path
    onnx.save(convert_float_to_float16(onnx.load(plain), keep_io_types=True), folder / "half.onnx")
    yield "float16", folder / "half.onnx"
    four = MatMulNBitsQuantizer(onnx.load(plain), block_size=16)
    four.process()
    four.model.save_model_to_file(str(folder / "four.onnx"))
    if any(node.op_type == "MatMulNBits" for node in onnx.load(folder / "four.onnx").graph.node):
        yield "int4 weights", folder / "four.onnx"


Change = Callable[[np.ndarray[Any, Any]], Any]
# Which stored tensors of a QDQ file a fault is planted in, and how: the first of them that there is.
FAULTS: dict[str, tuple[str, Change]] = {
    "scale of a weight": ("weight_scale", lambda a: a * 1.4),
    "scales of another channel": ("weight_scale", lambda a: np.roll(a, 1)),
    "zero point of a weight": ("weight_zero_point", lambda a: a + 20),
    "weights of another row": ("weight_quantized", lambda a: np.roll(a, 1, axis=0)),
    "saturated weights": ("weight_quantized", lambda a: np.clip(a.astype(int), -25, 25)),
    "scale of a bias": ("bias_quantized_scale", lambda a: a * 8),
    "clipped range": ("activation_scale", lambda a: a * 0.1),
    "range far too wide": ("activation_scale", lambda a: a * 100),
    "unsigned where signed": ("activation_zero_point", lambda a: np.full_like(a, np.iinfo(a.dtype).min)),
}


def plant(path: Path, fault: str, folder: Path) -> tuple[Path, str] | None:
    """The file with a fault, and the tensor that has it."""
    kind, change = FAULTS[fault]
    model = onnx.load(path)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    name = next((name for name in targets(model, kind, stored) if numpy_helper.to_array(stored[name]).size), None)
    if name is None or ("channel" in fault and numpy_helper.to_array(stored[name]).size < 2):
        return None
    array = numpy_helper.to_array(stored[name])
    stored[name].CopyFrom(numpy_helper.from_array(np.asarray(change(array)).astype(array.dtype), name))
    onnx.save(model, folder / "faulty.onnx")
    return folder / "faulty.onnx", name


def targets(model: onnx.ModelProto, kind: str, stored: dict[str, Any]) -> Iterator[str]:
    """Tensors of a kind, those of the products first."""
    part = {"scale": 1, "zero_point": 2, "quantized": 0}[kind.partition("_")[2].removeprefix("quantized_")]
    for node in model.graph.node:
        if len(node.input) <= part:
            continue
        first = stored.get(node.input[0])
        if kind.startswith("activation"):
            fits = node.op_type == "QuantizeLinear" and first is None and not node.input[0].startswith("output")
        else:
            rank = 1 if kind.startswith("bias") else 2
            fits = node.op_type == "DequantizeLinear" and first is not None and len(first.dims) >= rank
            fits = fits and (rank == 2 or first.data_type == onnx.TensorProto.INT32)
        if fits:
            yield node.input[part]


def judge(name: str, path: Path, folder: Path) -> Any:
    """The proof of a file."""
    return onnxproof.verify(*make(name), onnx=str(path), out=folder, fast=True, in_process=True, budget=30.0)


def main() -> None:
    """Convert, judge, write the page."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    right, wrong = list[str](), list[str]()
    blocked = caught = located = 0
    for name in MODELS:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            files = dict(convert(name, folder))
            for label, path in files.items():
                proof = judge(name, path, folder / "out")
                cost = [f.evidence["decibels"] for f in proof.findings if f.code == "OX227"]
                endless = any("is no number" in f.message for f in proof.findings)
                blocked += proof.verdict == "block" and not endless
                told = f"{cost[0]:.0f} dB" if cost else "–"
                right.append(
                    f"| {name} | {label} | {proof.artifact.precision.text} | {told} | {proof.verdict.upper()}{ENDLESS * endless} |"
                )
                print(right[-1], flush=True)
            for fault in FAULTS:
                planted = plant(files["int8 QDQ"], fault, folder)
                if planted is None:
                    continue
                proof = judge(name, planted[0], folder / "out")
                named = [f for f in proof.findings if f.code == "OX229"]
                hit = any(planted[1].split("_")[0].split(".")[0] in f"{f.where.node} {f.message}" for f in named)
                caught, located = caught + (proof.verdict == "block"), located + hit
                message = named[0].message if named else ""
                wrong.append(f"| {name} | {fault} | `{planted[1]}` | {proof.verdict.upper()} | {message} |")
                print(wrong[-1], flush=True)
    lines = [HEAD, f"## Conversions: {blocked} of {len(right)} right ones block", ""]
    lines += ["| model | precision | what is said of the file | cost | verdict |", "|---|---|---|---|---|", *right, ""]
    lines += [f"## Planted faults: {caught} of {len(wrong)} block, {located} are located", ""]
    lines += ["| model | fault | tensor | verdict | what is said |", "|---|---|---|---|---|", *wrong, ""]
    PAGE.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
