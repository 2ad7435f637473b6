"""Files that onnxruntime refuses are told by the lint; what it loads, the lint does not block."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from benchmarks.failures.agreement import compare, models
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

import onnxproof
from conftest import codes
from fake import FakeCandidate
from onnxproof.artifact.file import read_artifact
from onnxproof.candidates.candidate import Abilities
from onnxproof.candidates.onnxruntime import Onnxruntime
from onnxproof.errors import UserError
from onnxproof.findings import found
from onnxproof.lints.module import lint_module
from onnxproof.lints.refusal import explain_refusal
from onnxproof.request.session import SessionSettings
from onnxproof.subject.assembly import make_subject

BF16, DOUBLE, FLOAT = TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.FLOAT


def file(nodes, kind=FLOAT, opset=18, domains=(), stored=(), shape=("batch", 4)):
    ends = [helper.make_tensor_value_info(name, kind, shape) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(a, n) for n, a in stored])
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def node(op, inputs, output="y", **more):
    return helper.make_node(op, inputs, [output], name=f"{op}_{output}", **more)


def strange():
    made = file([node("Add", ["x", "w"])], stored=[("w", np.ones(4, np.float32))])
    made.graph.initializer[0].data_type = 77
    return made


def branches(kind, decided=None):
    """An operator without a kernel for float64, inside a branch."""
    inner = helper.make_graph(
        [node("Erf", ["x"], "inside")], "then", [], [helper.make_tensor_value_info("inside", kind, None)]
    )
    other = helper.make_graph(
        [node("Identity", ["x"], "other")], "else", [], [helper.make_tensor_value_info("other", kind, None)]
    )
    nodes = [
        node("ReduceSum", ["x"], "sum", keepdims=0),
        node("Cast", ["sum"], "yes", to=TensorProto.BOOL),
        node("If", ["yes"], then_branch=inner, else_branch=other),
    ]
    return file(
        nodes if decided is None else nodes[2:], kind, stored=[] if decided is None else [("yes", np.array(decided))]
    )


REFUSED = {
    "a domain without its library": ("OX311", lambda: file([node("Foo", ["x"], domain="my.ops")], domains=["my.ops"])),
    "no such operator": ("OX311", lambda: file([node("Fooo", ["x"])])),
    "no such operator of onnxruntime": (
        "OX311",
        lambda: file([node("NoSuch", ["x"], domain="com.microsoft")], domains=["com.microsoft"]),
    ),
    "an operator of a later opset": ("OX311", lambda: file([node("Gelu", ["x"])])),
    "no kernel for bfloat16": ("OX308", lambda: file([node("Add", ["x", "x"])], BF16)),
    "no kernel in a branch": ("OX308", lambda: branches(DOUBLE)),
    "no kernel in what it runs as": ("OX308", lambda: file([node("Gelu", ["x"])], DOUBLE, opset=20)),
    "a body that the opset has outgrown": ("OX308", lambda: file([node("Softplus", ["x"])], DOUBLE, opset=20)),
    "a kernel of an earlier version only": ("OX308", lambda: aligned(22)),
    "an attribute of a later standard": ("OX311", lambda: file([node("Relu", ["x"], speed=9)])),
    "no kernel in a function of the file": ("OX308", lambda: with_function("Erf", DOUBLE)),
    "a type that the operator does not take": (
        "OX307",
        lambda: file([node("LayerNormalization", ["x", "x"])], TensorProto.INT64),
    ),
    "an attribute is missing": ("OX306", lambda: file([node("Concat", ["x", "x"])])),
    "an attribute of another type": ("OX306", lambda: file([node("LeakyRelu", ["x"], alpha=1)])),
    "an input too many": ("OX306", lambda: file([node("Relu", ["x", "x"])])),
    "nothing writes the output": ("OX306", lambda: file([node("Relu", ["x"], "z")])),
    "weights of no known type": ("OX307", lambda: strange()),
    "a body inside a body": ("OX308", lambda: file([node("Mish", ["x"])], DOUBLE, opset=20)),
    "a circle": ("OX306", lambda: file([node("Add", ["x", "b"], "a"), node("Relu", ["a"], "b"), node("Relu", ["b"])])),
    "nothing writes it": ("OX306", lambda: file([node("Add", ["x", "nowhere"])])),
    "written twice": ("OX306", lambda: file([node("Relu", ["x"]), node("Neg", ["x"])])),
    "shapes that do not fit": (
        "OX306",
        lambda: file([node("MatMul", ["x", "w"])], stored=[("w", np.ones((5, 4), np.float32))]),
    ),
}
ACCEPTED = {
    "a function of the file": lambda: with_function("Erf"),
    "a body without a missing kernel": lambda: file([node("Softplus", ["x"])], DOUBLE, opset=18),
    "a type that another input gives": lambda: file([node("CastLike", ["x", "x"])], DOUBLE),
    "a kernel of this version": lambda: aligned(21),
    "an operator of onnxruntime": lambda: file(
        [node("Gelu", ["x"], domain="com.microsoft")], domains=["com.microsoft"]
    ),
    "an operator of this opset": lambda: file([node("Gelu", ["x"])], opset=20),
    "float16, around which casts are put": lambda: file([node("Erf", ["x"])], TensorProto.FLOAT16),
    "a branch in float32": lambda: branches(FLOAT),
    "a branch that is never taken": lambda: branches(DOUBLE, decided=False),
    "a body whose operators do not fit, and a kernel": lambda: file(
        [node("MeanVarianceNormalization", ["x"])], shape=(1, 2, 4, 4)
    ),
    "unsorted nodes": lambda: file([node("Relu", ["a"]), node("Neg", ["x"], "a")]),
}


def with_function(op, kind=FLOAT):
    made = file([node("Foo", ["x"], domain="my.ops")], kind, domains=["my.ops"])
    imports = [helper.make_opsetid("", 18)]
    made.functions.append(helper.make_function("my.ops", "Foo", ["a"], ["b"], [node(op, ["a"], "b")], imports))
    return made


def aligned(opset):
    """onnxruntime has RoiAlign for opsets 10 to 21."""
    made = file([node("RoiAlign", ["x", "rois", "which"])], opset=opset, shape=(1, 1, 8, 8))
    made.graph.input.append(helper.make_tensor_value_info("rois", FLOAT, (1, 4)))
    made.graph.input.append(helper.make_tensor_value_info("which", TensorProto.INT64, (1,)))
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


def loads(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


def blocks(path):
    return {finding.code for finding in onnxproof.lint(path).findings if finding.severity == "block"}


@pytest.mark.parametrize("name", REFUSED)
def test_what_onnxruntime_refuses_is_told_without_a_session(name, tmp_path):
    code, make = REFUSED[name]
    onnx.save(make(), tmp_path / "m.onnx")
    assert not loads(tmp_path / "m.onnx")
    assert code in blocks(tmp_path / "m.onnx")


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_onnxruntime_loads_is_not_blocked(name, tmp_path):
    onnx.save(ACCEPTED[name](), tmp_path / "m.onnx")
    assert loads(tmp_path / "m.onnx")
    assert blocks(tmp_path / "m.onnx") == set()


def test_the_lint_agrees_with_onnxruntime_on_the_operators_of_the_standard(tmp_path):
    pairs = [compare(model, tmp_path / "m.onnx") for _, model in islice(models(), 0, None, 29)]
    refused = [told for loads_not, told in pairs if loads_not]
    assert len(refused) > 40
    assert sum(refused) >= 0.95 * len(refused)
    assert not any(told for loads_not, told in pairs if not loads_not)


class DoubleGelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.GELU()
        self.last = nn.Linear(8, 4)

    def forward(self, x):
        return self.last(self.act(x))


def test_what_onnxruntime_runs_in_place_of_an_operator_is_traced_to_the_line(tmp_path):
    model, example = DoubleGelu().double().eval(), (torch.randn(2, 8, dtype=torch.float64),)
    proof = onnxproof.prove(model, example, out=tmp_path, budget=10)
    finding = next(f for f in proof.findings if f.code == "OX308")
    assert proof.verdict == "block"
    assert "Gelu with double (it runs as other operators: Erf with double)" in finding.message
    assert "Could not find an implementation for Erf" in finding.evidence["error"]
    assert (finding.where.node, finding.where.module) == ("node_gelu", "act")
    assert finding.where.file == __file__
    assert finding.where.line is not None


def test_what_a_session_refuses_blocks_whatever_the_lint_thinks_of_it(tmp_path):
    made = file([node("Relu", ["x"])])
    made.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 7
    onnx.save(made, tmp_path / "m.onnx")
    noted = next(f for f in onnxproof.lint(tmp_path / "m.onnx").findings if f.code == "OX306")
    assert noted.severity == "note"
    refused = found("OX306", "the session says no", severity="block")
    told = explain_refusal(refused, read_artifact(tmp_path / "m.onnx"), Onnxruntime(), SessionSettings())
    assert (told.severity, told.message) == ("block", "the session says no")


def test_the_lint_is_not_asked_about_the_kernels_of_another_environment(tmp_path):
    onnx.save(file([node("Add", ["x", "x"])], BF16), tmp_path / "m.onnx")
    refused = found("OX308", "no kernel for something")
    artifact, elsewhere = read_artifact(tmp_path / "m.onnx"), FakeCandidate(dict, abilities=Abilities(elsewhere=True))
    assert "Add with bfloat16" in explain_refusal(refused, artifact, Onnxruntime(), SessionSettings()).message
    assert explain_refusal(refused, artifact, elsewhere, SessionSettings()) == refused


def test_a_long_chain_is_sorted_in_no_time(tmp_path):
    names = ["x", *(f"v{i}" for i in range(5000)), "y"]
    chain = [node("Relu", [a], b) for a, b in pairwise(names)]
    onnx.save(file(chain[::-1]), tmp_path / "m.onnx")
    assert "OX306" not in blocks(tmp_path / "m.onnx")


def test_weights_that_are_cut_off_without_a_length(tmp_path):
    made = file([node("Add", ["x", "w"])], shape=("batch", 64), stored=[("w", np.ones(64, np.float32))])
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    onnx.save(made, tmp_path / "m.onnx")
    (tmp_path / "w.bin").write_bytes(b"\0" * 100)
    assert "OX302" in blocks(tmp_path / "m.onnx")
    (tmp_path / "w.bin").write_bytes(b"\0" * 256)
    assert "OX302" not in blocks(tmp_path / "m.onnx")


def test_a_bias_that_is_nan_does_not_ship(tmp_path):
    torch.manual_seed(0)
    linear = nn.Linear(8, 4).eval()
    example = (torch.randn(2, 8),)
    assert onnxproof.prove(linear, example, out=tmp_path, budget=10).verdict == "ship"
    with torch.no_grad():
        linear.bias[0] = float("nan")
    proof = onnxproof.prove(linear, example, out=tmp_path, budget=10)
    assert proof.verdict == "review"
    assert next(f for f in proof.findings if f.code == "OX320").message == "NaN among the weights: bias"


class Sampled(nn.Module):
    def forward(self, x, grid):
        return F.grid_sample(x, grid, mode="bicubic", padding_mode="border", align_corners=True)


class Force(nn.Module):
    """The gradient of an energy, as force fields compute it."""

    def forward(self, x):
        x = x.clone().requires_grad_(True)
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad((x**2).sum(), x)
        return gradient


class Halved(nn.Module):
    """Half of a denormal number: kernels may take it for zero."""

    def forward(self, x):
        return torch.fft.rfft(x).abs()


class Tail(nn.Module):
    def forward(self, x):
        return {"logits": x * 2, "aux": x.new_zeros((x.shape[0], 0))}


@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (Sampled(), (torch.randn(2, 3, 5, 7), torch.rand(2, 4, 4, 2) * 3 - 1.5)),
        (Force(), (torch.randn(2, 8),)),
        (Halved(), (torch.randn(2, 8),)),
        (Tail(), (torch.randn(2, 8),)),
    ],
    ids=["bicubic borders", "a gradient inside", "denormal numbers", "an empty output"],
)
def test_no_false_alarm(module, inputs, tmp_path):
    proof = onnxproof.prove(module.eval(), inputs, out=tmp_path, budget=20)
    assert proof.verdict == "ship", [(f.code, f.message) for f in proof.findings if f.weight]


class Complex(nn.Module):
    def forward(self, z):
        return (z * z.conj()).real


class TwoReals(nn.Module):
    def forward(self, real, imag):
        return Complex()(torch.complex(real, imag))


def test_a_complex_input_is_told_and_two_real_ones_ship(tmp_path):
    proof = onnxproof.prove(Complex().eval(), (torch.randn(2, 8, dtype=torch.complex64),), out=tmp_path)
    assert [f.code for f in proof.findings if f.severity == "block" and f.code != "OX004"] == ["OX116"]
    parts = (torch.randn(2, 8), torch.randn(2, 8))
    assert onnxproof.prove(TwoReals().eval(), parts, out=tmp_path, budget=10).verdict == "ship"


class Holds(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x) + 1


def test_a_scripted_part_is_named(tmp_path):
    torch.manual_seed(0)
    linear = nn.Linear(8, 4)
    proof = onnxproof.export(Holds(torch.jit.script(linear)).eval(), (torch.randn(2, 8),), out=tmp_path)
    assert next(f for f in proof.findings if f.code == "OX121").where.module == "part"
    assert "OX121" not in codes(onnxproof.export(Holds(linear).eval(), (torch.randn(2, 8),), out=tmp_path))


def test_an_opset_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UserError, match="--opset 99: expected 7 to"):
        onnxproof.export(nn.Linear(8, 4).eval(), (torch.randn(2, 8),), opset=99, out=tmp_path)


class TwoFaults(nn.Module):
    """Two outputs that go wrong for different reasons."""

    def forward(self, x):
        return x.logcumsumexp(-1), x.quantile(0.5, dim=-1)


def test_a_culprit_is_blamed_only_for_outputs_that_depend_on_it(tmp_path):
    proof = onnxproof.prove(TwoFaults().eval(), (torch.randn(2, 8),), nonfinite=True, out=tmp_path)
    located = [f for f in proof.findings if f.where.node and f.weight]
    assert located
    assert all("CumSum" not in str(f.where.node) or f.where.output == "output_0" for f in located)


def linted(made, tmp_path):
    onnx.save(made, tmp_path / "m.onnx")
    return {finding.code: finding.message for finding in onnxproof.lint(tmp_path / "m.onnx").findings}


def numbers(**value):
    return helper.make_node("Constant", [], ["c"], **value)


def test_constants_that_are_written_as_numbers_are_read_too(tmp_path):
    shaped = [numbers(value_ints=[4, 4]), node("Reshape", ["x", "c"])]
    assert "beginning with 4" in linted(file(shaped), tmp_path)["OX313"]
    assert "OX313" not in linted(file([numbers(value_ints=[-1, 4]), node("Reshape", ["x", "c"])]), tmp_path)
    grown = [numbers(value_ints=[3, 4]), node("Expand", ["x", "c"])]
    assert "Expand" in linted(file(grown), tmp_path)["OX313"]
    parts = [numbers(value_ints=[4]), node("Identity", ["c"], "d"), node("Concat", ["d", "c"], "e", axis=0)]
    assert "beginning with 4" in linted(file([*parts, node("Reshape", ["x", "e"])]), tmp_path)["OX313"]
    assert "OX313" not in linted(file([numbers(value_ints=[1, 4]), node("Expand", ["x", "c"])]), tmp_path)
    large = [numbers(value_int=2**40), node("Cast", ["c"], "f", to=FLOAT), node("Add", ["x", "f"])]
    assert "OX319" in linted(file(large), tmp_path)


def test_a_branch_that_is_never_taken(tmp_path):
    made = branches(FLOAT)
    assert "OX317" not in linted(made, tmp_path)
    made.graph.node[-1].input[0] = "known"
    del made.graph.node[:2]
    made.graph.initializer.append(numpy_helper.from_array(np.array(True), "known"))
    assert "branches that are never taken" in linted(made, tmp_path)["OX317"]


class Remembers(nn.Module):
    """A cache by size, which the first call fills."""

    def __init__(self):
        super().__init__()
        self.cache = {8: torch.arange(8.0)}

    def forward(self, x):
        size = x.shape[1]
        if size not in self.cache:
            self.cache[size] = torch.arange(float(size))
        return x + self.cache[size]


class Reads(Remembers):
    def forward(self, x):
        return x + self.cache[x.shape[1]]


def test_a_cache_that_is_full_already_is_seen_in_the_source():
    def looked_at(module):
        return {finding.code for finding in lint_module(make_subject(module.eval(), (torch.randn(2, 8),)))}

    assert "OX144" in looked_at(Remembers())
    assert "OX144" not in looked_at(Reads())
