"""Export done right."""

from __future__ import annotations

import linecache

import onnx
import pytest
import torch
from benchmarks.failures import models as failing

import models
import onnxproof
from conftest import codes
from onnxproof.heal.healing import list_settings
from onnxproof.request.request import ExportOptions, Request


def ports(path):
    model = onnx.load(path)
    return [i.name for i in model.graph.input], [o.name for o in model.graph.output]


def test_names_are_parameters_and_paths(exported):
    inputs, outputs = ports(exported("structured"))
    assert inputs == ["x", "state.bias", "state.more[0]"]
    assert outputs == ["result.logits", "result.hidden[0]", "result.hidden[1]", "past[0].key", "past[0].value"]


def test_a_python_input_is_baked_in_and_said(tmp_path):
    proof = onnxproof.export(*models.structured(), out=tmp_path)
    note = next(f for f in proof.findings if f.code == "OX106")
    assert "scale = 3.0" in note.message
    assert proof.verdict == "ship"


class Namesakes(torch.nn.Module):
    """Inputs, outputs and a parameter that are called as the exporters call results of operators."""

    def __init__(self):
        super().__init__()
        self.table, self.weight = torch.nn.Embedding(10, 4), torch.nn.Parameter(torch.ones(4))

    def forward(self, embedding, weight):
        rows = self.table(embedding) * weight + self.weight
        return {"add": torch.relu(rows), "mul": rows, "embedding": rows.softmax(-1)}


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_inner_values_leave_the_names_of_inputs_and_outputs_to_them(tmp_path, exporter):
    inputs = (torch.randint(0, 10, (3, 5)), torch.rand(3, 5, 4))
    proof = onnxproof.prove(Namesakes().eval(), inputs, out=tmp_path, exporter=exporter)
    assert proof.verdict == "ship"
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)
    assert ports(tmp_path / "model.onnx") == (["embedding", "weight"], ["add", "mul", "embedding_out"])


def test_initializers_have_the_users_names(exported):
    names = {t.name for t in onnx.load(exported("tutorial")).graph.initializer}
    assert "0.weight" in names


def test_a_batch_of_one_still_exports_a_dynamic_batch(tmp_path):
    module, _ = models.tutorial()
    onnxproof.export(module, (torch.randn(1, 10),), out=tmp_path)
    shape = onnx.load(tmp_path / "model.onnx").graph.input[0].type.tensor_type.shape
    assert shape.dim[0].dim_param == "batch"


def test_a_baked_batch_is_found_and_named(tmp_path):
    proof = onnxproof.prove(*models.baked_batch(), out=tmp_path)
    finding = next(f for f in proof.findings if f.code == "OX104")
    assert proof.verdict == "block"
    assert "'batch'" in finding.message
    assert "x[0] = 4" in finding.message


def test_train_mode_is_a_finding_where_it_matters(tmp_path):
    proof = onnxproof.prove(*models.train_mode(), out=tmp_path)
    finding = next(f for f in proof.findings if f.code == "OX102")
    assert (finding.severity, finding.stage) == ("review", "model")
    assert "drop" in finding.evidence["submodules"]


def test_train_mode_is_a_note_where_it_does_not(tmp_path):
    proof = onnxproof.prove(torch.nn.Linear(3, 2), (torch.randn(2, 3),), out=tmp_path)
    assert codes(proof, "note") == {"OX102"}
    assert proof.verdict == "ship"


def test_a_random_module_blocks(tmp_path):
    proof = onnxproof.prove(*models.random(), out=tmp_path)
    assert "OX103" in codes(proof, "block")
    assert not codes(proof) & {"OX201", "OX202"}


@pytest.mark.parametrize("opset", [18, 21, 23])
def test_an_opset_on_request(opset, tmp_path):
    proof = onnxproof.prove(*models.tutorial(), out=tmp_path, opset=opset)
    assert proof.artifact.opset == opset
    assert proof.verdict == "ship"


def test_an_opset_that_did_not_happen_is_a_finding(tmp_path):
    proof = onnxproof.export(*models.cnn(), out=tmp_path, opset=17)
    written = proof.artifact.opset
    assert ("OX105" in codes(proof, "review")) == (written != 17)


def test_torchscript_on_request(tmp_path):
    proof = onnxproof.prove(*models.cnn(), out=tmp_path, exporter="torchscript")
    assert proof.artifact.exporter == "torchscript"
    assert proof.verdict == "ship"
    inputs, outputs = ports(tmp_path / "model.onnx")
    assert (inputs, outputs) == (["input"], ["output"])


def test_a_scripted_module_goes_through_torchscript(tmp_path):
    module, inputs = models.tutorial()
    proof = onnxproof.prove(torch.jit.script(module), inputs, out=tmp_path)
    assert proof.verdict == "ship", [(f.code, f.message) for f in proof.findings]
    assert proof.artifact.exporter == "torchscript"


def test_saved_targets(tmp_path):
    module, inputs = models.tutorial()
    torch.jit.save(torch.jit.script(module), tmp_path / "m.pt")
    torch.export.save(
        torch.export.export(module, inputs, dynamic_shapes=({0: torch.export.Dim("batch")},)), tmp_path / "m.pt2"
    )
    from onnxproof.subject.assembly import make_subject
    from onnxproof.subject.target import load_target, resolve

    loaded, inputs_again = resolve(*load_target(str(tmp_path / "m.pt2")))
    assert make_subject(loaded, inputs_again).inputs.tensors["input"].shape == (4, 10)
    proof = onnxproof.prove(str(tmp_path / "m.pt2"), out=tmp_path)
    assert proof.verdict == "ship", [(f.code, f.message) for f in proof.findings]


def test_an_operator_without_translation_names_it_and_the_line(tmp_path):
    proof = onnxproof.prove(*models.median(), out=tmp_path, exporter="dynamo")
    finding = next(f for f in proof.findings if f.code == "OX108")
    assert "median" in finding.message
    assert finding.where.file.endswith("models.py")
    assert proof.verdict == "block"


def test_control_flow_on_values(tmp_path):
    proof = onnxproof.prove(*models.by_value(), out=tmp_path, exporter="dynamo")
    finding = next(f for f in proof.findings if f.code == "OX109")
    assert finding.where.file.endswith("models.py")
    assert finding.where.line


def test_torchscript_freezes_control_flow_and_verification_notices(tmp_path):
    proof = onnxproof.prove(*models.by_value(), out=tmp_path)
    assert {"OX107", "OX201"} <= codes(proof)
    assert proof.verdict == "block"


def test_ox138_strict_capture_is_tried_and_said_and_fix_writes_it(tmp_path):
    proof = onnxproof.prove(*failing.through_numpy(), out=tmp_path)
    assert proof.verdict == "ship", [(f.code, f.message) for f in proof.findings]
    finding = next(f for f in proof.findings if f.code == "OX138")
    assert "numpy() is not supported" in finding.message
    assert "detach().numpy()" in linecache.getline(finding.where.file, finding.where.line)
    assert proof.artifact.exporter == "dynamo"
    assert list_settings(proof, Request()) == {"strict": True}
    asked = onnxproof.export(*failing.through_numpy(), strict=True, out=tmp_path)
    assert codes(asked).isdisjoint({"OX101", "OX138"})
    assert list_settings(asked, Request(export=ExportOptions(strict=True))) == {}
    assert "OX138" not in codes(onnxproof.export(*failing.through_numpy_remedied(), out=tmp_path))


def test_the_exporters_chatter_is_in_the_proof(tmp_path, capfd):
    proof = onnxproof.export(*models.tutorial(), out=tmp_path)
    assert capfd.readouterr() == ("", "")
    assert isinstance(proof.artifact.log, str)


def test_float_dtypes_are_kept(exported):
    for name, dtype in (("half", onnx.TensorProto.FLOAT16), ("double", onnx.TensorProto.DOUBLE)):
        graph = onnx.load(exported(name)).graph
        assert graph.input[0].type.tensor_type.elem_type == dtype
        assert graph.output[0].type.tensor_type.elem_type == dtype


class Streaming(torch.nn.Module):
    """A state that goes round under one name, and a buffer called like an operation's result."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.full((3,), 0.5))

    def forward(self, x, state):
        state = state * 0.9 + x
        return {"y": (state - self.mean).mean(-1), "state": state}


def test_names_that_are_taken_twice(tmp_path):
    proof = onnxproof.prove(Streaming().eval(), (torch.randn(2, 3), torch.randn(2, 3)), out=tmp_path)
    assert proof.verdict == "ship", [(f.code, f.message) for f in proof.findings]
    assert ports(tmp_path / "model.onnx") == (["x", "state"], ["y", "state_out"])


def test_large_weights_go_to_external_data_and_ship(tmp_path, monkeypatch):
    from onnxproof.artifact import exporters

    monkeypatch.setattr(exporters, "EXTERNAL_ABOVE", 0)
    proof = onnxproof.prove(*models.mlp(), out=tmp_path)
    assert (tmp_path / "model.onnx.data").is_file()
    assert proof.artifact.bytes > (tmp_path / "model.onnx").stat().st_size
    assert proof.verdict == "ship", [(f.code, f.message) for f in proof.findings]


def test_ox135_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "taken").write_text("a file where a folder is asked for")
    with pytest.raises(onnxproof.errors.UserError, match=r"taken: .*OX135"):
        onnxproof.export(*models.tutorial(), out=tmp_path / "taken")
    assert onnxproof.export(*models.tutorial(), out=tmp_path / "free").artifact is not None


class OnTwoDevices(torch.nn.Module):
    """Fails in every exporter with a message whose code is no reason to block by itself, and in eager mode not at all."""

    def forward(self, x):
        if torch.compiler.is_exporting() or torch.jit.is_tracing():
            raise RuntimeError("Expected all tensors to be on the same device, but found cuda:0 and cpu!")
        return x * 2


def test_a_failed_export_blocks_whatever_its_code_weighs(tmp_path):
    proof = onnxproof.export(OnTwoDevices().eval(), (torch.randn(2, 3),), out=tmp_path)
    finding = next(f for f in proof.findings if f.code == "OX125")
    assert (finding.severity, proof.verdict) == ("block", "block")
    assert "cuda:0 and cpu" in finding.message


class Later(torch.nn.Module):
    """Of a batch of two, all but the first is one, which attention takes for a promise."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x[1:])


def test_a_size_that_only_the_example_makes_special_stays_dynamic(tmp_path):
    proof = onnxproof.export(Later().eval(), (torch.randn(2, 5, 6),), out=tmp_path)
    assert proof.artifact is not None
    assert proof.artifact.inputs[0].shape[0] == "batch"
    assert "OX104" not in {finding.code for finding in proof.findings}
