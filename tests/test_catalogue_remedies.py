"""Each remedy that the catalogue offers is applied: the finding is gone afterwards, and the verdict is not worse."""

from __future__ import annotations

import ast
import io
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from benchmarks.failures import models as failing
from benchmarks.failures import silent
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

import models
import onnxproof
from conftest import codes
from onnxproof import rewrites
from onnxproof.diagnosis.failures import diagnose_text
from onnxproof.findings import CATALOGUE, decide_verdict
from onnxproof.lints.module import lint_module
from onnxproof.proof.proof import Proof
from onnxproof.subject.assembly import make_subject

HERE = Path(__file__).parent
VERDICTS = ("ship", "review", "block")
Found = tuple[set[str], str]
"""Codes and a verdict."""


def seen(proof: Proof) -> Found:
    return codes(proof), proof.verdict


def proved(made: Callable[[], tuple[Any, Any]], **options: Any) -> Callable[[Path], Found]:
    """A proof of a model."""
    return lambda out: seen(onnxproof.prove(*made(), out=out, **{"budget": 1.0, **options}))


def linted(made: Callable[[], onnx.ModelProto], **options: Any) -> Callable[[Path], Found]:
    """The lint of a file."""

    def run(out: Path) -> Found:
        onnx.save(made(), out / "linted.onnx")
        return seen(onnxproof.lint(out / "linted.onnx", **options))

    return run


class Encoder(nn.Module):
    def __init__(self, nested: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=nested)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x[None], src_key_padding_mask=(x.sum(-1) > 100)[None])


def looked_at(module: Callable[[], nn.Module], target: Callable[[Path], str] | None = None) -> Callable[[Path], Found]:
    """The lint of a module."""

    def run(out: Path) -> Found:
        subject = make_subject(module().eval(), (torch.randn(4, 8),))
        findings = lint_module(subject, target(out) if target else None)
        return {finding.code for finding in findings}, decide_verdict(findings)

    return run


def told(attempt: Callable[[], object]) -> Callable[[Path], Found]:
    """What an attempt of the user's own says, recognised."""

    def run(out: Path) -> Found:
        try:
            attempt()
        except Exception as error:
            finding = diagnose_text(f"{type(error).__name__}: {error}")
            return ({finding.code} if finding else set()), "block"
        return set(), "ship"

    return run


def verified(
    made: Callable[[], tuple[Any, Any]], edit: Callable[[onnx.ModelProto], object] | None, **options: Any
) -> Callable[[Path], Found]:
    """A file of onnxproof's, edited, against its model."""

    def run(out: Path) -> Found:
        onnxproof.export(*made(), out=out)
        model = onnx.load(out / "model.onnx")
        if edit is not None:
            edit(model)
        onnx.save(model, out / "edited.onnx")
        return seen(onnxproof.verify(*made(), onnx=out / "edited.onnx", out=out, **{"budget": 1.0, **options}))

    return run


# --- models -----------------------------------------------------------------------------------------------------------


class Apply(nn.Module):
    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def of(function: Callable[..., Any], *shape: int) -> Callable[[], tuple[Any, Any]]:
    def make():
        torch.manual_seed(0)
        return Apply(function).eval(), (torch.randn(*(shape or (3, 8))),)

    return make


def odd_while_exported(x: torch.Tensor) -> torch.Tensor:
    if torch.compiler.is_exporting() or torch.jit.is_tracing():
        raise RuntimeError("something that nobody has seen before")
    return x * 2


def linear(dtype: torch.dtype = torch.float32, inputs: torch.dtype = torch.float32) -> tuple[Any, Any]:
    torch.manual_seed(0)
    return nn.Linear(8, 4).to(dtype).eval(), (torch.randn(3, 8).to(inputs),)


class Scaled(nn.Module):
    def forward(self, x, scale):
        return x * scale


class Counts(nn.Module):
    """State inside, and state passed in and out."""

    def __init__(self, inside):
        super().__init__()
        self.inside = inside
        if inside:
            self.register_buffer("count", torch.zeros(8))

    def forward(self, x, count=None):
        if self.inside:
            self.count += 1
            return x + self.count
        return x + count + 1, count + 1


def counting(inside: bool) -> tuple[Any, Any]:
    return Counts(inside).eval(), (torch.randn(3, 8), *(() if inside else (torch.zeros(3, 8),)))


class Tail(nn.Module):
    """Rejects what is below its range."""

    def forward(self, x):
        if not torch.compiler.is_exporting() and not torch.jit.is_tracing() and bool((x < 0).any()):
            raise ValueError("negative")
        return x.sqrt()


def tail() -> tuple[Any, Any]:
    return Tail().eval(), (torch.rand(3, 8),)


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Parameter(torch.randn(10, 4))

    def forward(self, ids):
        return F.embedding(ids, self.table)


def table(rows: int = 10) -> tuple[Any, Any]:
    return Table().eval(), (torch.arange(15).view(3, 5) % rows,)


def pooled() -> tuple[Any, Any]:
    return nn.MaxPool1d(2).eval(), (torch.randn(2, 3, 8),)


class Unused(nn.Module):
    def forward(self, x, extra=None):
        return x * 2


class Both(nn.Module):
    def __init__(self, where):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("scale", torch.ones(8, device=where))

    def forward(self, x):
        return self.linear(x)


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("scale", torch.ones(8, dtype=torch.float64))

    def forward(self, x):
        return self.linear(x) * self.scale


class Caches(nn.Module):
    def __init__(self, in_forward):
        super().__init__()
        self.in_forward, self.cache = in_forward, torch.ones(8)

    def forward(self, x):
        if self.in_forward:
            self.cache = torch.ones(x.shape[-1])
        return x * self.cache


class Numbers(nn.Module):
    def forward(self, x):
        return x * x.max().item()


class Tensors(nn.Module):
    def forward(self, x):
        return x * x.max()


class Divisor(nn.Module):
    """What `divisor_override=2` means, written out: the average of nine, multiplied by nine and divided by two."""

    def forward(self, x):
        return F.avg_pool2d(x, 3, 2, 1) * (9 / 2)


def floors() -> tuple[Any, Any]:
    _, inputs = silent.floor_divide()
    return Apply(lambda x: rewrites.floor_divide(x, 0.1)).eval(), inputs


def half_sum() -> tuple[Any, Any]:
    _, inputs = silent.half_precision_sum()
    return Apply(lambda x: x.sum(-1, dtype=x.dtype)).eval(), inputs


def magnified(dtype: torch.dtype) -> tuple[Any, Any]:
    """Rounding of float32 is magnified a thousandfold; that of float64 is, too, and stays small."""
    torch.manual_seed(0)
    return Apply(lambda x: torch.sin(torch.exp(x) * 1000)).eval(), ((torch.rand(3, 4) + 2).to(dtype),)


class Product(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return torch.tanh(x @ self.weight)


def product() -> tuple[Any, Any]:
    return Product().eval(), (torch.randn(3, 8),)


def sampled(opset: int) -> Callable[[], object]:
    """The TorchScript exporter by hand."""
    module = Apply(lambda x: F.grid_sample(x, torch.zeros(2, 3, 3, 2), align_corners=False)).eval()
    return lambda: torch.onnx.export(
        module, (torch.randn(2, 3, 4, 4),), io.BytesIO(), dynamo=False, opset_version=opset
    )


# --- files ------------------------------------------------------------------------------------------------------------


def value(name: str, shape: Any = ("batch", 4), kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def graph(
    nodes: list[onnx.NodeProto], stored: dict[str, Any] | None = None, opset: int = 18, ir: int = 9, **shapes: Any
) -> onnx.ModelProto:
    """A graph from x to y."""
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (stored or {}).items()]
    kind = shapes.get("kind", TensorProto.FLOAT)
    ends = [value("x", shapes.get("x", ("batch", 4)), kind)], [value("y", shapes.get("y", ("batch", 4)), kind)]
    made = helper.make_model(
        helper.make_graph(nodes, "g", *ends, tensors), opset_imports=[helper.make_opsetid("", opset)], ir_version=ir
    )
    return made


def node(operator: str, inputs: list[str], output: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, [output], name=f"node_{output}", **attributes)


def relu(**more: Any) -> onnx.ModelProto:
    return graph([node("Relu", ["x"])], **more)


def weighted(array: np.ndarray) -> onnx.ModelProto:
    return graph([node("Add", ["x", "w"])], {"w": array}, x=(None,), y=(None,))


def twice_stored() -> onnx.ModelProto:
    array = np.arange(2048, dtype=np.float32)
    return graph(
        [node("Add", ["x", "a"], "z"), node("Mul", ["z", "b"])], {"a": array, "b": array.copy()}, x=("n",), y=(None,)
    )


def unread() -> onnx.ModelProto:
    nodes = [node("Add", ["x", "w"]), node("Exp", ["x"], "nowhere")]
    return graph(nodes, {"w": np.ones(4, np.float32), "lost": np.ones(4, np.float32)})


def optimised(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxscript.optimizer

    return onnxscript.optimizer.optimize(model)


def shared(model: onnx.ModelProto) -> onnx.ModelProto:
    """One initialiser for equal ones."""
    import onnx_ir
    from onnx_ir.passes.common import DeduplicateInitializersPass

    read = onnx_ir.from_proto(model)
    DeduplicateInitializersPass(size_limit=1 << 30)(read)
    return onnx_ir.to_proto(read)


NOISY = np.r_[np.random.default_rng(0).normal(size=2047), np.nan].astype(np.float32)
TINY = np.r_[np.random.default_rng(0).normal(size=1024), np.full(1024, 1e-40)].astype(np.float32)


class Masked(nn.Module):
    """A mask that is expanded: stored as a weight, or made in the forward."""

    def __init__(self, stored):
        super().__init__()
        self.register_buffer("mask", torch.full((1, 1), 0.5).expand(1024, 512).contiguous() if stored else None)

    def forward(self, x):
        mask = self.mask if self.mask is not None else torch.full((1, 1), 0.5).expand(1024, 512)
        return x * mask[: x.shape[1], : x.shape[2]]


def exported(made: Callable[[], tuple[Any, Any]], by_hand: bool = False) -> Callable[[Path], Found]:
    """The lint of an exported file: by onnxproof, or by `torch.onnx.export` as it is."""

    def run(out: Path) -> Found:
        module, inputs = made()
        if by_hand:
            torch.onnx.export(module, inputs, out / "model.onnx", dynamo=True, verbose=False)
        else:
            onnxproof.export(module, inputs, out=out)
        return seen(onnxproof.lint(out / "model.onnx"))

    return run


def cut(whole: bool) -> Callable[[Path], Found]:
    def run(out: Path) -> Found:
        data = relu().SerializeToString()
        (out / "m.onnx").write_bytes(data if whole else data[: len(data) // 2])
        return seen(onnxproof.lint(out / "m.onnx"))

    return run


def beside(location: str | None) -> Callable[[Path], Found]:
    """A file whose weights are not there or elsewhere (`location`), or beside it, under their name."""

    def run(out: Path) -> Found:
        where = out / "there"
        where.mkdir()
        onnx.save(
            weighted(NOISY[:2047]), where / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0
        )
        model = onnx.load(where / "m.onnx", load_external_data=False)
        if location:
            next(e for e in model.graph.initializer[0].external_data if e.key == "location").value = location
        (out / "m.onnx").write_bytes(model.SerializeToString())
        if location is None:
            shutil.copy(where / "m.data", out / "m.data")
        return seen(onnxproof.lint(out / "m.onnx"))

    return run


def session(made: Callable[[], onnx.ModelProto], **feed: np.ndarray) -> Callable[[Path], Found]:
    """A session, built and run by hand."""

    def attempt() -> object:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        built = onnxruntime.InferenceSession(made().SerializeToString(), options, providers=["CPUExecutionProvider"])
        return built.run(None, feed) if feed else None

    return told(attempt)


def fixed_batch(model: onnx.ModelProto) -> None:
    for end in (*model.graph.input, *model.graph.output):
        end.type.tensor_type.shape.dim[0].dim_value = 3


def scaled(model: onnx.ModelProto, by: float) -> None:
    """Weights that are a little larger."""
    for place, stored in enumerate(model.graph.initializer):
        if len(stored.dims) == 2:
            larger = numpy_helper.to_array(stored) * np.float32(1 + by)
            model.graph.initializer[place].CopyFrom(numpy_helper.from_array(larger, stored.name))


def foreign(model: onnx.ModelProto) -> None:
    """A product as an operator of onnxruntime's own, which the reference cannot evaluate in float64."""
    one = next(one for one in model.graph.node if one.op_type == "MatMul")
    one.op_type, one.domain = "FusedMatMul", "com.microsoft"
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def rename(model: onnx.ModelProto, old: str, new: str) -> None:
    for one in model.graph.node:
        one.input[:] = [new if name == old else name for name in one.input]
        one.output[:] = [new if name == old else name for name in one.output]
    for end in (*model.graph.output, *model.graph.input):
        if end.name == old:
            end.name = new


def first_output_dropped(model: onnx.ModelProto) -> None:
    del model.graph.output[1]


def output_added(model: onnx.ModelProto) -> None:
    model.graph.node.append(node("Identity", [model.graph.output[0].name], "extra"))
    model.graph.output.append(value("extra", None))


def outputs_reversed(model: onnx.ModelProto) -> None:
    ends = [onnx.ValueInfoProto.FromString(end.SerializeToString()) for end in reversed(model.graph.output)]
    del model.graph.output[:]
    model.graph.output.extend(ends)


def outputs_swapped(model: onnx.ModelProto) -> None:
    rename(model, "first", "other")
    rename(model, "second", "first")
    rename(model, "other", "second")
    outputs_reversed(model)


def transposed(model: onnx.ModelProto) -> None:
    name = model.graph.output[0].name
    rename(model, name, "inner")
    model.graph.node.append(node("Transpose", ["inner"], name, perm=[1, 0]))
    model.graph.output[0].CopyFrom(value(name, None))


def inputs_renamed(model: onnx.ModelProto) -> None:
    rename(model, "a", "left")
    rename(model, "b", "right")


def input_added(model: onnx.ModelProto) -> None:
    model.graph.input.append(value("surprise", [1]))


def input_widened(model: onnx.ModelProto) -> None:
    name = model.graph.input[0].name
    rename(model, name, "narrow")
    model.graph.input[0].CopyFrom(value(name, ("batch", 8), TensorProto.DOUBLE))
    model.graph.node.insert(0, node("Cast", [name], "narrow", to=TensorProto.FLOAT))


def input_dropped(model: onnx.ModelProto) -> None:
    for place, end in enumerate(model.graph.input):
        if end.name == "extra":
            del model.graph.input[place]


def rows_cut(model: onnx.ModelProto) -> None:
    for place, stored in enumerate(model.graph.initializer):
        if stored.dims[:1] == [10]:
            model.graph.initializer[place].CopyFrom(
                numpy_helper.from_array(numpy_helper.to_array(stored)[:8], stored.name)
            )


def shifted(model: onnx.ModelProto) -> None:
    """Integers that are one more."""
    name = model.graph.output[0].name
    rename(model, name, "inner")
    model.graph.initializer.append(numpy_helper.from_array(np.int64(1), "one"))
    model.graph.node.append(node("Add", ["inner", "one"], name))
    model.graph.output[0].name = name


def ranked() -> tuple[Any, Any]:
    torch.manual_seed(0)
    return Apply(lambda x: x.argmax(-1)).eval(), (torch.randn(3, 8),)


def with_value(*made: Any) -> Callable[[], tuple[Any, Any]]:
    return lambda: made


ROWS = np.ones((2, 4), np.float32)


def checkpoint(features: int) -> Callable[[], object]:
    """Weights of eight features, loaded into a module of so many."""
    saved = nn.Linear(8, 4).state_dict()
    return lambda: nn.Linear(features, 4).load_state_dict(saved)


def script(text: str) -> Callable[[Path], str]:
    def write(out: Path) -> str:
        (out / "m.py").write_text(text)
        return f"{out / 'm.py'}:build"

    return write


# --- the table --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remedy:
    """Something with a finding, and the same with the remedy applied."""

    before: Callable[[Path], Found]
    after: Callable[[Path], Found]
    ships: bool = True
    """Whether it ships afterwards; where only the note is gone, other findings may stay."""


def rewritten(name: str, before: dict[str, Any] | None = None, after: dict[str, Any] | None = None) -> Remedy:
    """A model of the corpus of failures, and the one that replaces it."""
    return Remedy(
        proved(getattr(failing, name), **(before or {})),
        proved(getattr(failing, f"{name}_remedied"), **(after if after is not None else before or {})),
    )


TWO, PAIR = models.two_outputs, models.two_inputs

REMEDIES: dict[str, Remedy] = {
    # the run
    "OX004": rewritten("median"),
    "OX006": Remedy(proved(tail), proved(tail, range={"x": (0.0, 1.0)})),
    "OX009": Remedy(
        proved(silent.divisor_override, heal=True),
        proved(lambda: (Divisor().eval(), (torch.randn(2, 3, 9, 9),)), heal=True),
    ),
    # the model and its export
    "OX101": Remedy(proved(of(odd_while_exported)), proved(of(lambda x: x * 2))),
    "OX102": Remedy(proved(models.train_mode), proved(lambda: (models.train_mode()[0].eval(), models.train_mode()[1]))),
    "OX103": Remedy(proved(of(lambda x: F.dropout(x, 0.5))), proved(of(lambda x: F.dropout(x, 0.5, training=False)))),
    "OX104": rewritten("hard_coded_batch"),
    "OX105": Remedy(proved(models.cnn, opset=17), proved(models.cnn, opset=18)),
    "OX106": Remedy(
        proved(with_value(Scaled().eval(), (torch.randn(3, 8), 2.0))),
        proved(with_value(Scaled().eval(), (torch.randn(3, 8), torch.tensor(2.0)))),
    ),
    "OX107": rewritten("masked_select"),
    "OX108": rewritten("median"),
    "OX109": rewritten("compares_tensors"),
    "OX110": Remedy(proved(failing.number_among_outputs), proved(of(lambda x: (x * 2, torch.full((x.shape[0],), 7))))),
    "OX113": Remedy(proved(lambda: counting(True)), proved(lambda: counting(False))),
    "OX115": rewritten("opaque_output"),
    "OX116": rewritten("complex_output"),
    "OX117": rewritten("custom_operator"),
    "OX120": rewritten("meta_weights"),
    "OX121": Remedy(proved(failing.scripted, exporter="dynamo"), proved(failing.scripted, exporter="auto")),
    "OX122": rewritten("quantized"),
    "OX123": rewritten("packed_sequence", {"exporter": "dynamo"}),
    "OX124": rewritten("cond_returns_its_input"),
    "OX125": Remedy(looked_at(lambda: Both("meta")), looked_at(lambda: Both("cpu"))),
    "OX126": Remedy(
        proved(of(lambda x: torch.func.grad(lambda t: (t**3).sum())(x)), exporter="dynamo"),
        proved(of(lambda x: 3 * x**2), exporter="dynamo"),
    ),
    "OX127": Remedy(told(sampled(15)), told(sampled(17))),
    "OX128": rewritten("unique"),
    "OX129": rewritten("data_in_place", {"exporter": "dynamo"}),
    "OX130": Remedy(proved(lambda: linear(torch.float64)), proved(lambda: linear(torch.float64, torch.float64))),
    "OX138": rewritten("through_numpy"),
    "OX132": Remedy(told(checkpoint(9)), told(checkpoint(8))),
    "OX141": Remedy(
        looked_at(lambda: nn.BatchNorm1d(8, track_running_stats=False)), looked_at(lambda: nn.LayerNorm(8))
    ),
    "OX142": Remedy(looked_at(Wide), looked_at(lambda: Wide().float())),
    "OX144": Remedy(looked_at(lambda: Caches(True)), looked_at(lambda: Caches(False))),
    "OX145": Remedy(looked_at(Numbers), looked_at(Tensors)),
    "OX147": Remedy(looked_at(lambda: Encoder(True)), looked_at(lambda: Encoder(False))),
    "OX146": Remedy(
        looked_at(lambda: nn.Linear(8, 8), script("def preprocess(image):\n    return image / 255\n")),
        looked_at(
            lambda: nn.Linear(8, 8), script("class Net:\n    def forward(self, image):\n        return image / 255\n")
        ),
    ),
    # parity
    "OX201": Remedy(proved(silent.floor_divide), proved(floors)),
    "OX202": Remedy(verified(product, lambda m: (foreign(m), scaled(m, 1e-4))), verified(product, foreign)),
    "OX203": Remedy(verified(models.mlp, lambda m: scaled(m, 1e-5)), verified(models.mlp, None)),
    "OX204": Remedy(
        proved(lambda: magnified(torch.float32), range={"x": (2, 6)}, atol=1e-7, rtol=0.0),
        proved(lambda: magnified(torch.float64), range={"x": (2, 6)}, atol=1e-7, rtol=0.0),
    ),
    "OX205": Remedy(proved(silent.epsilon_of_a_norm), proved(silent.epsilon_of_a_norm, heal=True)),
    "OX206": Remedy(proved(models.always_nan), proved(of(lambda x: x * 2.0))),
    "OX207": Remedy(verified(ranked, shifted), verified(ranked, None)),
    "OX209": Remedy(proved(pooled, budget=3.0), proved(pooled, budget=3.0, range={"input": (-3.0, 3.0)})),
    "OX210": Remedy(verified(TWO, first_output_dropped), verified(TWO, None)),
    "OX211": Remedy(verified(TWO, output_added), verified(TWO, None)),
    "OX212": Remedy(verified(TWO, lambda m: rename(m, "second", "renamed")), verified(TWO, None)),
    "OX213": Remedy(verified(TWO, outputs_reversed), verified(TWO, None)),
    "OX214": Remedy(proved(silent.half_precision_sum), proved(half_sum)),
    "OX215": Remedy(verified(lambda: linear(), transposed), verified(lambda: linear(), None)),
    "OX216": Remedy(proved(models.no_tensor), proved(of(lambda x: x * 2))),
    "OX217": Remedy(verified(PAIR, inputs_renamed), verified(PAIR, None)),
    "OX218": Remedy(verified(PAIR, input_added), verified(PAIR, None)),
    "OX219": Remedy(verified(lambda: linear(), input_widened), verified(lambda: linear(), None)),
    "OX220": Remedy(verified(TWO, outputs_swapped), verified(TWO, None)),
    "OX222": Remedy(verified(lambda: linear(), fixed_batch), verified(lambda: linear(), fixed_batch, batch_sizes=[3])),
    "OX223": rewritten("squeezes_the_batch"),
    "OX224": Remedy(
        session(relu, x=ROWS.astype(np.float64)), session(relu, x=ROWS.astype(np.float64).astype(np.float32))
    ),
    "OX225": Remedy(verified(table, rows_cut), verified(lambda: table(8), rows_cut, range={"ids": (0, 7)})),
    "OX226": Remedy(
        verified(with_value(Unused().eval(), (torch.randn(3, 8), torch.randn(3, 8))), input_dropped),
        verified(with_value(Unused().eval(), (torch.randn(3, 8),)), None),
    ),
    # the file, the graph, the session
    "OX301": Remedy(cut(False), cut(True)),
    "OX302": Remedy(beside("elsewhere.data"), beside(None)),
    "OX304": Remedy(proved(linear, provider="Azure"), proved(linear, provider="CPU")),
    "OX306": Remedy(linted(lambda: graph([node("Relu", ["x"]), node("Neg", ["x"])])), linted(relu)),
    "OX307": rewritten("adds_booleans"),
    "OX308": rewritten("erf_in_float64"),
    "OX310": Remedy(linted(lambda: relu(opset=23), runtime="1.20"), linted(lambda: relu(opset=18), runtime="1.20")),
    "OX311": Remedy(session(lambda: graph([node("Magic", ["x"])])), session(relu)),
    "OX312": Remedy(
        linted(lambda: relu(x=(1, 4), y=(1, 4))), exported(lambda: (nn.ReLU().eval(), (torch.randn(1, 4),)))
    ),
    "OX313": Remedy(
        linted(
            lambda: graph([node("Reshape", ["x", "s"])], {"s": np.array([4, 16])}, x=("batch", 4, 4), y=(None, None))
        ),
        linted(
            lambda: graph([node("Reshape", ["x", "s"])], {"s": np.array([-1, 16])}, x=("batch", 4, 4), y=(None, None))
        ),
    ),
    "OX314": Remedy(linted(twice_stored), linted(lambda: shared(twice_stored()))),
    "OX315": Remedy(
        exported(lambda: (Masked(True).eval(), (torch.randn(2, 8, 8),))),
        exported(lambda: (Masked(False).eval(), (torch.randn(2, 8, 8),))),
    ),
    "OX316": Remedy(
        linted(lambda: graph([node("Cast", ["w"], "z", to=1), node("Add", ["x", "z"])], {"w": np.ones(4)})),
        linted(lambda: graph([node("Add", ["x", "w"])], {"w": np.ones(4, np.float32)})),
    ),
    "OX317": Remedy(linted(unread), linted(lambda: optimised(unread()))),
    "OX318": Remedy(linted(lambda: graph([node("RandomNormalLike", ["x"])])), linted(relu)),
    "OX319": Remedy(
        linted(lambda: graph([node("Gather", ["x", "i"])], {"i": np.array([0, 2**40])}, x=("n",), y=(None,))),
        linted(lambda: graph([node("Gather", ["x", "i"])], {"i": np.array([0, 2**30])}, x=("n",), y=(None,))),
    ),
    "OX320": Remedy(
        linted(lambda: weighted(TINY)), linted(lambda: weighted(np.where(np.abs(TINY) < 1.2e-38, 0, TINY)))
    ),
    "OX322": Remedy(exported(models.mlp, by_hand=True), exported(models.mlp)),
    "OX323": Remedy(beside("/data/weights.bin"), beside(None)),
}

NOT_HERE = {
    "OX133": "updates another tool, or hands the module itself to onnxproof",
    "OX137": "is about a script; onnxproof itself takes a function that returns the module",
    "OX326": "takes an accelerator whose library fails",
    "OX003": "takes a machine with more memory, or one that is small enough to run out of it",
    "OX007": "asks for a report: no module is known with which a search fails",
    "OX111": "says that nothing needs to be done",
    "OX112": "says that nothing needs to be done: the artifact was made without the optimiser and is verified",
    "OX114": "says that nothing needs to be done",
    "OX118": "installs a package",
    "OX131": "takes a device on which PyTorch has the kernel, or the conversion of the file by another package",
    "OX143": "says that nothing needs to be done",
    "OX208": "says that there is nothing to fix in the export",
    "OX221": "is for refusals whose cause is not known; the known ones have codes of their own (OX222 to OX225)",
    "OX303": "is for causes that the catalogue does not know; the known ones have codes of their own",
    "OX305": "takes a second provider",
    "OX309": "takes a second provider",
    "OX324": "takes a reduced build of onnxruntime",
    "OX325": "takes a graph that this release of onnxruntime rewrites wrongly while loading; none is known",
    "OX409": "takes a second machine",
    "OX412": "takes a quieter machine",
    "OX413": "takes a clock that is coarser than this one",
    "OX415": "takes a machine that is throttled",
    "OX502": "says where to look; the cause has a code of its own",
    "OX503": "says that nothing needs to be done",
    "OX507": "says where to look; the cause has a code of its own",
    "OX510": "names a threshold, which is set where the model is served",
    "OX512": "says what to gate on; the classes stay as they are",
    "OX514": "says how to see the process die; the cause has a code of its own",
}
"""Remedies that cannot be applied here, and why."""

JUDGED_TIMES = "tests/test_latency.py::test_each_code_has_its_trigger_and_its_near_miss"
ELSEWHERE = {
    "OX001": "tests/test_supervision.py::test_an_export_that_dies_is_a_finding_and_torchscript_is_tried",
    "OX005": "tests/catalogue/test_parity_codes.py::test_a_proof_triggers_its_code_and_the_near_miss_does_not",
    "OX008": "tests/heal/test_healing.py::test_fix_writes_what_worked_and_the_next_run_uses_it",
    "OX119": "tests/artifact/test_export.py::test_large_weights_go_to_external_data_and_ship",
    **{f"OX{number}": JUDGED_TIMES for number in (*range(401, 409), 410, 411, 414, 416, 417, 419, 420)},
    "OX418": "tests/latency/test_bench.py::test_a_wrong_second_file_is_noted_and_does_not_gate",
    "OX601": "tests/test_traps.py::test_no_leakage_is_reported_on_clean_data",
    "OX602": "tests/test_traps.py::test_no_leakage_is_reported_on_clean_data",
}
"""Tests of other files that apply the remedy and do not have the code in their name."""

SLOW = frozenset(
    "OX004 OX009 OX101 OX102 OX103 OX104 OX105 OX106 OX107 OX109 OX113 OX116 OX123 OX124 OX128 OX130 OX138 OX201 OX202 OX203 OX204 OX205 OX207 OX213 OX214 "
    "OX006 OX108 OX110 OX212 OX215 OX217 OX218 OX219 OX220 OX223 OX225 OX315 "
    "OX206 OX209 OX210 OX211 OX222 OX226 OX304 OX307 OX308 OX312 OX322".split()
)
"""More than five seconds."""


@pytest.mark.parametrize(
    "code", [pytest.param(code, marks=pytest.mark.slow) if code in SLOW else code for code in REMEDIES]
)
def test_the_remedy_removes_the_finding(code, tmp_path):
    remedy = REMEDIES[code]
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    before, verdict = remedy.before(tmp_path / "before")
    assert code in before, before
    after, new_verdict = remedy.after(tmp_path / "after")
    assert code not in after
    assert VERDICTS.index(new_verdict) <= VERDICTS.index(verdict)
    assert new_verdict == "ship" or not remedy.ships, after


@pytest.mark.slow
def test_ox002_a_longer_timeout(tmp_path):
    slow = (
        "import time, torch\nfrom torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n"
        "        if not torch.compiler.is_exporting() and x.shape[0] == 7:\n            time.sleep(4)\n        return x * 2\n"
        "def make():\n    return Net().eval(), (torch.randn(2, 3),)\n"
    )
    (tmp_path / "m.py").write_text(slow)
    options = {"isolate": True, "batch_sizes": [1, 2, 7], "budget": 5.0}
    before = onnxproof.prove(f"{tmp_path / 'm.py'}:make", out=tmp_path / "b", case_timeout=3.0, **options)
    after = onnxproof.prove(f"{tmp_path / 'm.py'}:make", out=tmp_path / "a", case_timeout=60.0, **options)
    assert "OX002" in codes(before)
    assert (after.verdict, "OX002" in codes(after)) == ("ship", False)


def test_every_code_has_its_remedy_tested_or_says_why_not():
    tables = [set(REMEDIES), set(NOT_HERE), set(ELSEWHERE)]
    assert sum(map(len, tables)) == len(set().union(*tables)), "a code is in one table only"
    assert set().union(*tables, named()) == set(CATALOGUE)


def named() -> set[str]:
    """Codes in the names of tests: `test_ox135_…`."""
    texts = [path.read_text() for path in HERE.rglob("test_*.py")]
    names = [name for text in texts for name in re.findall(r"def test_(\w+)", text)]
    return {code.upper() for name in names for code in re.findall(r"ox\d{3}", name)}


@pytest.mark.parametrize("test", sorted(set(ELSEWHERE.values())))
def test_the_tests_elsewhere_exist(test):
    file, _, name = test.partition("::")
    tree = ast.parse((HERE.parent / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
