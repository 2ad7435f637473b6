"""The cause is named, and not what it happens to break: chance, state, caches, what tracing froze."""

from __future__ import annotations

import inspect
import math
import random

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

import onnxproof
from onnxproof.artifact.pairing import pair_inputs
from onnxproof.diagnosis.failures import diagnose_text
from onnxproof.errors import InputError, Rejected, TargetError
from onnxproof.graph import sourcemap
from onnxproof.graph.evaluator import ReferenceRunner
from onnxproof.graph.sourcemap import read_scope
from onnxproof.lints.module import lint_module
from onnxproof.proof.artifact import Port
from onnxproof.subject.assembly import make_subject
from onnxproof.subject.examination import examine

X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))


class Of(nn.Module):
    """A module of one function."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("var", torch.ones(8))

    def forward(self, x):
        return self.function(self, x)


def examined(function, x=X):
    return {f.code: f for f in examine(make_subject(Of(function).eval(), (x,)))}


def linted(function, x=X):
    return {f.code: f for f in lint_module(make_subject(Of(function).eval(), (x,)))}


# --- chance ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        (lambda: random.random() > 0.001, "random.random"),
        (lambda: random.uniform(0, 1) > 0.001, "random.uniform"),
        (lambda: np.random.rand() > 0.001, "numpy.random.rand"),
        (lambda: bool(torch.rand(()) > 0.001), "aten.rand"),
    ],
)
def test_a_branch_that_is_taken_once_in_a_thousand_is_random(drawn, said):
    finding = examined(lambda _, x: x * 2 if drawn() else x)["OX103"]
    assert said in finding.message
    assert finding.where.file == __file__


def test_numbers_that_are_drawn_and_not_used_are_no_chance():
    assert "OX103" not in examined(lambda me, x: x * 2 if torch.rand(()) < 0.5 and me.training else x)
    assert "OX103" not in examined(lambda me, x: x * 2 if random.uniform(0, 1) < 0.5 and me.training else x)


def test_generators_are_as_they_were():
    before = random.random, random.uniform, np.random.rand
    examined(lambda _, x: x * random.random())
    assert before == (random.random, random.uniform, np.random.rand)


def test_a_counter_is_state_and_not_chance():
    def counted(me, x):
        me.calls = getattr(me, "calls", 0) + 1
        return x * me.calls

    finding = examined(counted)["OX103"]
    assert "keeps state from call to call" in finding.message
    assert "an input and an output" in finding.help


# --- what a forward changes -------------------------------------------------------------------------------------------------


def test_a_write_into_an_input_or_a_buffer_has_its_line():
    for function in (lambda _, x: x.mul_(2), lambda me, x: x + me.mean.add_(1)):
        finding = examined(function)["OX113"]
        assert (finding.where.file, finding.where.line) == (__file__, function.__code__.co_firstlineno)


class Cached(nn.Module):
    def __init__(this):  # noqa: N805  # any name is allowed
        super().__init__()
        this.cache = {}

    def forward(this, x):  # noqa: N805  # as above
        if x.shape[0] not in this.cache:
            this.cache[x.shape[0]] = torch.arange(x.shape[0])
        return x + this.cache[x.shape[0]][:, None]


def test_a_cache_is_seen_whatever_the_module_is_called(tmp_path):
    proof = onnxproof.prove(Cached().eval(), (X,), out=tmp_path, budget=5)
    assert "cache" in next(f for f in proof.findings if f.code == "OX144").message


def test_a_weight_under_normalisation_is_no_cache():
    with pytest.warns(FutureWarning):
        layer = nn.utils.weight_norm(nn.Linear(8, 4))
    assert "OX144" not in {f.code for f in lint_module(make_subject(layer.eval(), (X,)))}


def test_batch_statistics_of_a_function():
    finding = linted(lambda me, x: F.batch_norm(x, me.mean, me.var, training=True))["OX141"]
    assert finding.where.file == __file__
    assert "OX141" not in linted(lambda me, x: F.batch_norm(x, me.mean, me.var))
    assert "OX141" not in linted(lambda _, x: F.instance_norm(x[None]))


class Trained(nn.Module):
    def forward(self, x):
        if self.training:
            print(x.mean().item())
        return x * 2


class Rooted(nn.Module):
    def forward(self, x):
        return x / math.sqrt(x.shape[0])


class Scaled(nn.Module):
    def forward(self, x):
        return x / math.sqrt(x.shape[-1])


def test_numbers_from_sizes_and_values():
    found = {kind: lint_module(make_subject(kind().eval(), (X,))) for kind in (Trained, Rooted, Scaled)}
    assert "OX145" not in {f.code for f in found[Trained]}
    assert "math.sqrt()" in next(f for f in found[Rooted] if f.code == "OX145").message
    assert "OX145" not in {f.code for f in found[Scaled]}


# --- what tracing froze -----------------------------------------------------------------------------------------------------


def test_what_the_default_exporter_could_not_capture_is_told_with_its_line(tmp_path):
    proof = onnxproof.prove(Rooted().eval(), (X,), out=tmp_path, budget=20)
    worst = proof.findings[0]
    assert proof.verdict == "block"
    assert worst.code == "OX201"
    assert worst.where.file == __file__
    assert "tracing froze what stands there: Instead: `x.shape[0] ** 0.5`" in worst.help


class Encoded(nn.Module):
    def __init__(self, nested):
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=nested)

    def forward(self, x, pad):
        return self.encoder(x, src_key_padding_mask=pad)


@pytest.mark.slow
def test_padded_positions_that_only_the_fast_path_leaves_out(tmp_path):
    example = (torch.randn(2, 4, 8), torch.tensor([[False] * 4, [False, False, True, True]]))
    proof = onnxproof.prove(Encoded(True).eval(), example, out=tmp_path / "a", budget=20)
    worst = proof.findings[0]
    assert (proof.verdict, worst.code, worst.where.module) == ("block", "OX201", "encoder")
    assert "enable_nested_tensor=False" in worst.help
    assert onnxproof.prove(Encoded(False).eval(), example, out=tmp_path / "b", budget=20).verdict == "ship"


def test_a_module_that_is_called_again_keeps_its_name():
    assert read_scope("/model/conv_2/Add", {"conv"}).module == "conv"
    assert read_scope("/model/conv_2/Add", {"conv", "conv_2"}).module == "conv_2"


class Positioned(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(4, 8))

    def forward(self, x):
        doubled = x * 2
        return doubled + self.table


def line_of(model, text):
    lines, first = inspect.getsourcelines(type(model).forward)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_a_dimension_that_is_baked_in_has_the_line_that_does_it(tmp_path):
    model = Positioned().eval()
    found = onnxproof.export(model, (X[None],), dynamic={"x": {0: "batch", 1: "length"}}, out=tmp_path).findings
    finding = next(f for f in found if f.code == "OX104")
    assert (finding.where.file, finding.where.line) == (__file__, line_of(model, "self.table"))


class Middle(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(8, 2)

    def forward(self, x):
        centred = x - x.median(-1, keepdim=True).values
        return self.last(centred)


def test_an_operator_that_tracing_refuses_has_its_line(tmp_path, capfd):
    model = Middle().eval()
    finding = onnxproof.export(model, (X,), exporter="torchscript", out=tmp_path).findings[0]
    assert (finding.code, finding.where.line) == ("OX108", line_of(model, "median"))
    pooled = nn.Sequential(nn.Conv3d(1, 2, 3), nn.AdaptiveAvgPool3d(2)).eval()
    finding = onnxproof.export(pooled, (torch.randn(1, 1, 7, 7, 7),), exporter="torchscript", out=tmp_path).findings[0]
    assert (finding.code, finding.where.module, finding.where.file) == ("OX128", "1", None)


def test_a_traced_file_has_lines_in_its_source_map_and_none_in_itself(tmp_path, capfd):
    model = Scaled().eval()
    torch._C._jit_set_onnx_log_enabled(True)  # as torch leaves it after a verbose export
    made = onnxproof.export(model, (X,), exporter="torchscript", out=tmp_path)
    assert torch._C._jit_is_onnx_log_enabled()
    torch._C._jit_set_onnx_log_enabled(False)
    origins = sourcemap.read(tmp_path / "model.sourcemap.json")
    assert {origin.line for origin in origins.values()} == {line_of(model, "math.sqrt")}
    assert __file__.encode() not in (tmp_path / "model.onnx").read_bytes()
    assert not made.findings
    assert "graph(" not in capfd.readouterr().out


class Cut(nn.Module):
    def forward(self, x):
        return torch.div(x, 3, rounding_mode="trunc")


def test_a_node_that_the_exporter_says_nothing_of_comes_from_where_its_input_does(tmp_path):
    onnxproof.export(Cut().eval(), (torch.arange(8).reshape(4, 2),), out=tmp_path)
    origins = sourcemap.read(tmp_path / "model.sourcemap.json")
    assert {origin.line for origin in origins.values()} == {line_of(Cut(), "trunc")}


def test_an_evaluator_that_ignores_sequence_lengths_is_not_asked():
    sizes = {"x": (5, 3, 8), "w": (1, 12, 8), "r": (1, 12, 4), "b": (1, 24)}
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, size) for name, size in sizes.items()]
    ends.append(onnx.helper.make_tensor_value_info("lengths", onnx.TensorProto.INT32, (3,)))
    out = [onnx.helper.make_tensor_value_info("h", onnx.TensorProto.DOUBLE, None)]

    def model(*more):
        node = onnx.helper.make_node("GRU", ["x", "w", "r", "b", *more], ["", "h"], hidden_size=4)
        return onnx.helper.make_model(onnx.helper.make_graph([node], "g", ends, out))

    ReferenceRunner(model())
    with pytest.raises(Rejected, match="sequence lengths"):
        ReferenceRunner(model("lengths"))


def test_batch_normalisation_folded_in_half_precision_ships(tmp_path):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).half().eval()
    assert onnxproof.prove(model, (torch.randn(2, 3, 16, 16).half(),), out=tmp_path, budget=20).verdict == "ship"


# --- what is handed over ------------------------------------------------------------------------------------------------------


def test_what_cannot_be_handed_over_is_refused_plainly():
    with pytest.raises(TargetError, match="lazy module"):
        make_subject(nn.LazyLinear(4).eval(), (X,))
    nested = torch.nested.nested_tensor([torch.randn(3, 8), torch.randn(5, 8)])
    with pytest.raises(InputError, match="is a nested tensor"):
        make_subject(nn.Linear(8, 4).eval(), (nested,))


class Chosen(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t.sum(1), lambda t: t * 2, (x,))


def exported(model, tmp_path):
    return onnxproof.export(model, (X,), out=tmp_path).findings[0]


def test_branches_that_return_other_shapes(tmp_path):
    finding = exported(Chosen().eval(), tmp_path)
    assert (finding.code, finding.where.file) == ("OX124", __file__)


def test_a_product_of_complex_numbers(tmp_path):
    finding = exported(Of(lambda _, x: (torch.fft.rfft(x) * torch.exp(1j * torch.fft.rfft(x).angle())).abs()), tmp_path)
    assert finding.code == "OX116"


def test_a_weight_that_is_computed_is_baked(tmp_path):
    layer = nn.utils.parametrizations.orthogonal(nn.Linear(8, 8))
    finding = exported(nn.Sequential(layer).eval(), tmp_path)
    assert "remove_parametrizations(layer, 'weight')" in finding.help
    nn.utils.parametrize.remove_parametrizations(layer, "weight")
    assert onnxproof.prove(nn.Sequential(layer).eval(), (X,), out=tmp_path, budget=10).verdict == "ship"


@torch.library.custom_op("causes::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_an_operator_without_a_fake_is_named(tmp_path):
    finding = exported(Of(lambda _, x: doubled(x)), tmp_path)
    assert (finding.code, "causes::doubled" in finding.message) == ("OX117", True)


# --- somebody else's file -----------------------------------------------------------------------------------------------------


def test_inputs_in_another_order_are_paired_by_their_shapes():
    ports = [Port("a", "float32", ("n", 1)), Port("b", "float32", ("n", 8))]
    dtypes = {"x": "float32", "mask": "float32"}
    pairing = pair_inputs(dtypes, ports, {"x": (None, 8), "mask": (None, 1)})
    assert pairing.pairs == {"x": "b", "mask": "a"}
    assert "paired by shape" in pairing.findings[0].message
    alike = pair_inputs(dtypes, ports, {"x": (None, None), "mask": (None, None)})
    assert alike.pairs == {"x": "a", "mask": "b"}
    assert "paired by position" in alike.findings[0].message


def test_the_file_of_another_model_is_told_so(tmp_path):
    made = onnxproof.export(nn.Linear(8, 4).eval(), (X,), out=tmp_path / "other")
    proof = onnxproof.prove(nn.Linear(6, 4).eval(), (X[:, :6],), onnx=made.artifact.path, out=tmp_path, budget=5)
    finding = proof.findings[0]
    assert finding.code == "OX222"
    assert "the file of another model" in finding.help


def test_an_unknown_operator_is_named(tmp_path):
    made = onnxproof.export(nn.Linear(8, 4).eval(), (X,), out=tmp_path / "other")
    model = onnx.load(made.artifact.path)
    model.graph.node[-1].op_type, model.graph.node[-1].domain = "Fancy", "acme"
    model.opset_import.append(onnx.helper.make_opsetid("acme", 1))
    onnx.save(model, tmp_path / "m.onnx")
    proof = onnxproof.prove(nn.Linear(8, 4).eval(), (X,), onnx=tmp_path / "m.onnx", out=tmp_path, budget=5)
    assert "acme:Fancy" in next(f for f in proof.findings if f.code == "OX311").message


# --- people's own words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The exported model returns NaN for some inputs", "OX205"),
        ("After conversion the onnx outputs are different from the PyTorch outputs", "OX201"),
        ("InferenceSession hangs without any error", "OX002"),
        ("the process exits when yolov5 is exported", "OX001"),
        ("dynamic batch does not work, the exported batch size is fixed", "OX104"),
        ("onnxruntime is much slower than pytorch", "OX404"),
        ("RuntimeError: ONNX export failed: Couldn’t export Python operator qfn", "OX117"),
        ("the model was exported yesterday and all is well", None),
    ],
)
def test_words_where_nothing_was_printed(text, code):
    finding = diagnose_text(text)
    assert (finding.code if finding else None) == code
