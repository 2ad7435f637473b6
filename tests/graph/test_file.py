"""A file on disk, and every way in which it can be broken."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxproof.errors import FindingError, InputError
from onnxproof.graph.file import escapes, find_complaint, list_external_files, load_model


def written(folder, location: str = "w.bin", length: int | None = None):
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
