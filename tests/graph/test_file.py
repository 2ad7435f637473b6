"""A file on disk, and every way in which it can be broken."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxproof.errors import FindingError, InputError
from onnxproof.graph.file import escapes, find_complaint, hold_against, list_external_files, load_model


def written(folder, location: str = "w.bin", length: int | str | None = None):
    """A model whose weight, 64 bytes long, lies in another file."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[16] x) => (float[16] y) { y = Add(x, w) }'
    )
    tensor = numpy_helper.from_array(np.ones(16, np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    if length is not None:
        tensor.external_data.add(key="length", value=str(length))
    model.graph.initializer.append(tensor)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


def code_of(path) -> str:
    with pytest.raises(FindingError) as raised:
        load_model(path)
    return raised.value.finding.code


def test_weights_beside_the_file_stay_there(tmp_path):
    path = written(tmp_path)
    (tmp_path / "w.bin").write_bytes(np.full(16, 3, np.float32).tobytes())
    light = load_model(path)
    assert light.graph.initializer[0].external_data
    assert list_external_files(path, light) == [tmp_path / "w.bin"]


@pytest.mark.parametrize("length", [None, 64])
def test_weights_that_are_missing_or_cut_off(tmp_path, length):
    path = written(tmp_path, length=length)
    assert code_of(path) == "OX302"
    (tmp_path / "w.bin").write_bytes(b"\0" * 63)
    assert code_of(path) == "OX302"


def test_what_is_no_model(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        load_model(tmp_path / "m.onnx")
    for content in (b"not a model at all", onnx.ModelProto(ir_version=8).SerializeToString()):
        (tmp_path / "m.onnx").write_bytes(content)
        assert code_of(tmp_path / "m.onnx") == "OX301"


@pytest.mark.parametrize("location", ["../w.bin", "/etc/w.bin", "C:\\w.bin", "a\\..\\..\\w.bin"])
def test_weights_outside_the_folder(tmp_path, location):
    assert escapes(location)
    assert code_of(written(tmp_path, location)) == "OX323"


def test_a_path_inside_does_not_escape():
    assert not escapes("sub/w..bin")


def test_the_checker_complains_of_what_is_wrong_and_not_of_what_it_does_not_know(tmp_path):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    for op, told in (("Relu", False), ("NoSuchOperator", False), ("Concat", True)):
        graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", ends[:1], ends[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), tmp_path / "m.onnx")
        assert (find_complaint(tmp_path / "m.onnx") is not None) == told, op


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "many", "٣"])
def test_a_length_that_is_no_number_of_bytes(tmp_path, length):
    (tmp_path / "w.bin").write_bytes(bytes(64))
    with pytest.raises(
        FindingError, match=r"m.onnx: the length of the external data of 'w' begins with .*; expected a number"
    ) as e:
        load_model(written(tmp_path, length=length))
    assert e.value.finding.code == "OX302"
    assert len(str(e.value)) < 200


def test_an_error_that_nobody_foresaw_is_the_fault_of_a_file_that_the_checker_rejects(tmp_path):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    for op, raised in (("Relu", KeyError), ("Concat", FindingError)):
        graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", ends[:1], ends[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), tmp_path / "m.onnx")
        with pytest.raises(raised), hold_against(tmp_path / "m.onnx"):
            {}["axis"]
    with (
        pytest.raises(FindingError, match=r"m\.onnx: a name or text in it is not UTF-8"),
        hold_against(tmp_path / "m.onnx"),
    ):
        b"\xff".decode()
