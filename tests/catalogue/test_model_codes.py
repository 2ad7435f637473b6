"""OX1xx: for each code a module that triggers it and one that looks alike and is right. Exports happen in this process."""

from __future__ import annotations

import pytest
import torch
from benchmarks.failures import models as failing
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name

import onnxproof
from onnxproof.lints.module import lint_module
from onnxproof.subject.assembly import make_subject


class Forward(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def of(function, *shape):
    return Forward(function).eval(), (torch.randn(*(shape or (3, 8))),)


class Scaled(nn.Module):
    def forward(self, x, scale):
        return x * scale


class Adds(nn.Module):
    def forward(self, x):
        return x.add_(1)


class NewWeights(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.linear = nn.Linear(8, 8).to(dtype)

    def forward(self, x):
        return self.linear(x)


def fft_gradient():
    return of(lambda x: torch.func.grad(lambda t: (t**3).sum())(x))


EXPORTED = [
    ("OX103", lambda: of(lambda x: F.dropout(x, 0.5)), lambda: of(lambda x: F.dropout(x, 0.5, False)), {}),
    ("OX104", failing.hard_coded_batch, failing.hard_coded_batch_remedied, {}),
    (
        "OX106",
        lambda: (Scaled(), (torch.randn(3, 8), 2.0)),
        lambda: (Scaled(), (torch.randn(3, 8), torch.tensor(2.0))),
        {},
    ),
    ("OX107", failing.masked_select, failing.masked_select_remedied, {}),
    ("OX108", failing.median, failing.median_remedied, {}),
    ("OX109", failing.compares_tensors, failing.compares_tensors_remedied, {}),
    ("OX110", failing.number_among_outputs, failing.single_dict, {}),
    ("OX112", failing.chunk_of_a_dynamic_dim, lambda: of(lambda x: sum(x.chunk(2, 1))), {}),
    ("OX113", lambda: (Adds(), (torch.randn(3, 8),)), lambda: of(lambda x: x + 1), {}),
    ("OX115", failing.opaque_output, failing.dataclass_input, {}),
    ("OX116", failing.complex_output, failing.complex_output_remedied, {}),
    ("OX117", failing.custom_operator, failing.custom_operator_remedied, {}),
    ("OX120", failing.meta_weights, failing.meta_weights_remedied, {}),
    ("OX122", failing.quantized, failing.quantized_remedied, {}),
    ("OX123", failing.packed_sequence, failing.packed_sequence_remedied, {"exporter": "dynamo"}),
    ("OX124", failing.cond_returns_its_input, failing.cond_returns_its_input_remedied, {}),
    ("OX126", fft_gradient, lambda: of(lambda x: 3 * x**2), {"exporter": "dynamo"}),
    ("OX128", failing.unique, lambda: of(lambda x: x.round()), {"exporter": "dynamo"}),
    (
        "OX130",
        lambda: (NewWeights(torch.float64), (torch.randn(3, 8),)),
        lambda: (NewWeights(torch.float64), (torch.randn(3, 8).double(),)),
        {},
    ),
]


def codes(proof):
    return {finding.code for finding in proof.findings}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "trigger", "near_miss", "options"), EXPORTED, ids=[row[0] for row in EXPORTED])
def test_an_export_triggers_its_code_and_the_near_miss_does_not(code, trigger, near_miss, options, tmp_path):
    found = onnxproof.export(*trigger(), out=tmp_path, **options)
    assert code in codes(found)
    assert code not in codes(onnxproof.export(*near_miss(), out=tmp_path / "near", **options))


def test_ox121_and_ox127_depend_on_what_is_asked_for(tmp_path):
    scripted = failing.scripted()
    assert "OX121" in codes(onnxproof.export(*scripted, exporter="dynamo", out=tmp_path))
    assert "OX121" not in codes(onnxproof.export(*scripted, exporter="auto", out=tmp_path))


def test_ox129_a_constant_that_the_forward_changes(tmp_path):
    proof = onnxproof.export(*failing.data_in_place(), exporter="dynamo", out=tmp_path)
    assert "OX129" in codes(proof)
    assert "OX129" not in codes(onnxproof.export(*failing.data_in_place_remedied(), exporter="dynamo", out=tmp_path))


def test_the_finding_names_the_users_line_and_the_nearest_form(tmp_path):
    finding = next(f for f in onnxproof.export(*failing.cumprod(), out=tmp_path).findings if f.code == "OX108")
    assert finding.where.file is not None
    assert finding.where.file.endswith("models.py"), "prims.prod is a decomposition: the line is still the user's"
    assert "cumsum" in finding.help
    assert [one["exporter"] for one in finding.evidence["tried"]] == ["dynamo", "torchscript"]


def test_an_unknown_failure_gives_a_bundle_without_a_bare_traceback(tmp_path):
    class Odd(nn.Module):
        def forward(self, x):
            if torch.compiler.is_exporting() or torch.jit.is_tracing():
                raise ZeroDivisionError("only while exporting")
            return x

    finding = onnxproof.export(Odd(), (torch.randn(3, 8),), out=tmp_path).findings[0]
    assert finding.code == "OX101"
    assert "only while exporting" in finding.message
    assert "Traceback" not in finding.message
    bundle = tmp_path / "bug-report"
    assert "ZeroDivisionError" in (bundle / "error.txt").read_text()
    assert "torch" in (bundle / "environment.json").read_text()
    assert str(bundle) in finding.help


def test_the_line_of_a_random_operator_is_named(tmp_path):
    finding = next(
        f for f in onnxproof.export(*of(lambda x: F.dropout(x, 0.5)), out=tmp_path).findings if f.code == "OX103"
    )
    assert finding.where.file is not None
    assert finding.where.file.endswith("test_model_codes.py")


# --- the lint of a module -------------------------------------------------------------------------------------------------


def linted(module, inputs=None, target=None):
    return {finding.code for finding in lint_module(make_subject(module, inputs or (torch.randn(4, 8),)), target)}


class Tied(nn.Module):
    def __init__(self, tied):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        if tied:
            self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


class Cached(nn.Module):
    def __init__(self, caches):
        super().__init__()
        self.caches, self.seen = caches, []

    def forward(self, x):
        if self.caches:
            self.seen.append(x)
        return x * 2


class Items(nn.Module):
    def forward(self, x):
        return x * x.max().item()


class Ints(nn.Module):
    def forward(self, x):
        return x.view(int(x.shape[0]) * 2, -1)


class Lens(nn.Module):
    def forward(self, x):
        return x / len(x)


class Views(nn.Module):
    def forward(self, x):
        return x.view(4, 2, 4)


class Shapes(nn.Module):
    def forward(self, x):
        return x.view(x.shape[0], 2, -1) * float("3")


class Buffered(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("scale", torch.ones(8, dtype=dtype))

    def forward(self, x):
        return self.linear(x) * self.scale


class Split(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("unused", torch.ones(8, device=device))

    def forward(self, x):
        return self.linear(x)


class Padded(nn.Module):
    def __init__(self, nested):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=nested)

    def forward(self, x):
        return self.encoder(x[None], src_key_padding_mask=(x.sum(-1) > 100)[None])


LINTED = [
    ("OX147", Padded(True), Padded(False)),
    ("OX125", Split("meta"), Split("cpu")),
    ("OX141", nn.BatchNorm1d(8, track_running_stats=False), nn.BatchNorm1d(8)),
    ("OX142", Buffered(torch.float64), Buffered(torch.float32)),
    ("OX143", Tied(True), Tied(False)),
    ("OX144", Cached(True), Cached(False)),
    ("OX145", Items(), Shapes()),
    ("OX145", Ints(), Shapes()),
    ("OX145", Lens(), Shapes()),
    ("OX145", Views(), Shapes()),
]


@pytest.mark.parametrize(
    ("code", "trigger", "near_miss"), LINTED, ids=[f"{row[0]}-{type(row[1]).__name__}" for row in LINTED]
)
def test_a_module_is_linted(code, trigger, near_miss):
    assert code in linted(trigger.eval())
    assert code not in linted(near_miss.eval())


def test_ox144_leaves_the_module_as_it_was():
    module = Cached(True).eval()
    before = dict(module.__dict__)
    linted(module)
    assert module.__dict__.keys() == before.keys()


def test_ox146_preprocessing_beside_the_module(tmp_path):
    beside, inside = tmp_path / "beside.py", tmp_path / "inside.py"
    beside.write_text("def preprocess(image):\n    return image / 255\n")
    inside.write_text("def build():\n    return None\n")
    assert "OX146" in linted(nn.Linear(8, 8), target=f"{beside}:build")
    assert "OX146" not in linted(nn.Linear(8, 8), target=f"{inside}:build")


def test_lint_of_a_module_through_the_command_line(cli, tmp_path):
    (tmp_path / "m.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class M(nn.Module):\n    def forward(self, x):\n        return x * x.max().item()\n"
        "def build():\n    return M().eval(), (torch.ones(2, 3),)\n"
    )
    result = cli("lint", "m.py:build")
    assert result.returncode == 0, result.stderr
    assert "OX145" in result.stdout
    assert "m.py:5" in result.stdout
    assert result.stdout.startswith("CLEAN"), "notes do not gate, and nothing was compared: it never says SHIP"
