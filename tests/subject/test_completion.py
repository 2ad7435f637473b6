"""Inputs that a file asks for and the example leaves out."""

from __future__ import annotations

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

import onnxproof
from onnxproof.request.specs import InputSpec, parse_input
from onnxproof.subject.assembly import make_subject


class Placed(nn.Module):
    """A decoder that knows the places of its tokens if nobody tells them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.places = nn.Embedding(20, 4), nn.Embedding(16, 4)

    def forward(self, input_ids, attention_mask=None, position_ids=None):
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1]).expand(input_ids.shape)
        made = self.words(input_ids) + self.places(position_ids)
        return {"logits": made if attention_mask is None else made * attention_mask[..., None]}


IDS = torch.randint(1, 20, (2, 5))


def test_parameters_that_follow_from_the_others_are_added():
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    asked = {"input_ids": {}, "position_ids": {}, "attention_mask": {}}
    subject = make_subject(Placed(), {"input_ids": IDS, "attention_mask": mask}, asked=asked)
    assert subject.completed == ("position_ids",)
    assert subject.kwargs["position_ids"].tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]], "padding has no place"
    plain = make_subject(Placed(), {"input_ids": IDS}, asked=asked)
    assert plain.kwargs["position_ids"].tolist() == [[0, 1, 2, 3, 4]] * 2
    assert plain.kwargs["attention_mask"].tolist() == [[1] * 5] * 2
    assert make_subject(Placed(), {"input_ids": IDS}).completed == ()
    assert make_subject(Placed(), {"input_ids": IDS}, asked={"input_ids": {}, "labels": {}}).completed == ()


def test_ox151_a_file_that_takes_positions_is_proved_without_them_in_the_example(tmp_path):
    example = {"input_ids": IDS, "position_ids": torch.arange(5).expand(2, 5).contiguous()}
    file = onnxproof.export(Placed().eval(), example, out=tmp_path).artifact.path
    proof = onnxproof.verify(Placed().eval(), {"input_ids": IDS}, onnx=file, out=tmp_path / "out")
    assert proof.verdict == "ship"
    told = [finding.message for finding in proof.findings if finding.code == "OX151"]
    assert told == ["the example got position_ids, which the file takes and it left out"]


class Remembering(nn.Module):
    """What is past is handed on as it is."""

    def forward(self, x, past):
        return {"y": x + past.sum(-1, keepdim=True), "present": past}


def write_merged(path, factor=1.0):
    """The file of two branches: one of them without the past."""

    def make_branch(name, nodes):
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])

    make = helper.make_node
    first = make_branch("first", [make("Identity", ["x"], ["first"])])
    with_past = [
        make("ReduceSum", ["past", "last"], ["sum"], keepdims=1),
        make("Mul", ["sum", "factor"], ["scaled"]),
        make("Add", ["x", "scaled"], ["later"]),
    ]
    later = make_branch("later", with_past)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [make("If", ["use_cache_branch"], ["y"], name="branches", then_branch=later, else_branch=first)],
        "merged",
        [
            value("x", TensorProto.FLOAT, ["batch", 3]),
            value("past", TensorProto.FLOAT, ["batch", 3]),
            value("use_cache_branch", TensorProto.BOOL, [1]),
        ],
        [value("y", TensorProto.FLOAT, ["batch", 3])],
        [
            helper.make_tensor("last", TensorProto.INT64, [1], [-1]),
            helper.make_tensor("factor", TensorProto.FLOAT, [], [factor]),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "ship"), (1.01, "block")])
def test_a_merged_file_reads_its_cache_and_leaves_out_what_does_not_change(tmp_path, factor, verdict):
    inputs = {"x": torch.randn(1, 3), "past": torch.randn(1, 3)}
    file = write_merged(tmp_path / "merged.onnx", factor)
    proof = onnxproof.verify(Remembering().eval(), inputs, onnx=file, out=tmp_path / "out")
    assert proof.verdict == verdict
    assert "use_cache_branch = [True] goes to the file alone" in "".join(f.message for f in proof.findings)
    handed = [f for f in proof.findings if f.code == "OX210"]
    assert [f.severity for f in handed] == ["note"]
    assert "hands on its input past as it came" in handed[0].message


def test_an_output_that_is_only_like_an_input_in_the_first_case_is_missed(tmp_path):
    class Later(Remembering):
        def forward(self, x, past):
            return {**super().forward(x, past), "present": past.clamp(max=50)}

    inputs = {"x": torch.randn(2, 3), "past": torch.randn(2, 3)}
    proof = onnxproof.verify(Later().eval(), inputs, onnx=write_merged(tmp_path / "merged.onnx"), out=tmp_path / "out")
    assert proof.verdict == "block"


def test_a_number_by_the_command_line_is_always_that():
    assert parse_input("sr=16000") == InputSpec("sr", (), "int64", 16000.0)
    assert parse_input("flag=true") == InputSpec("flag", (), "bool", 1.0)
    assert parse_input("scale=0.5").dtype == "float32"
    linear = nn.Linear(3, 2)
    subject = make_subject(linear, (torch.ones(4, 3),), specs=[parse_input("sr=16000")], asked={"input": {}, "sr": {}})
    assert list(subject.inputs.tensors) == ["input", "sr"], "the example stays"
    assert subject.foreign["sr"].item() == 16000
    assert (subject.ranges["sr"].low, subject.ranges["sr"].high) == (16000, 16000)
    assert subject.call(subject.copies()).shape == (4, 2), "the module is called without it"
    assert make_subject(linear, None, specs=[parse_input("input:5x3")]).inputs.tensors["input"].shape == (5, 3)
