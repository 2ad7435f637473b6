"""What onnxruntime prints here and now, and the code it gets."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from onnxproof.diagnosis.failures import diagnose_text


def said(text):
    finding = diagnose_text(text)
    return finding.code if finding is not None else None


def unary(op, shape=("n", 4), kind=TensorProto.FLOAT, opset=18, domain="", ir=9):
    io = [helper.make_tensor_value_info(name, kind, shape) for name in ("x", "y")]
    made = helper.make_model(
        helper.make_graph([helper.make_node(op, ["x"], ["y"], name="only", domain=domain)], "g", io[:1], io[1:]),
        opset_imports=[helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])],
    )
    made.ir_version = ir
    return made


def loading(model):
    """What onnxruntime says when it loads a model; nothing where it does."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return str(error)
    return ""


def running(model, **feed):
    """What onnxruntime says when it runs a model."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    try:
        session.run(None, feed)
    except Exception as error:
        return str(error)
    return ""


LOADED = [
    ("OX307", unary("Neg", kind=TensorProto.BOOL), unary("Not", kind=TensorProto.BOOL)),
    ("OX308", unary("Erf", kind=TensorProto.DOUBLE), unary("Erf")),
    ("OX310", unary("Relu", ir=99), unary("Relu")),
    ("OX310", unary("Relu", opset=99), unary("Relu")),
    ("OX311", unary("Magic", domain="my.ops"), unary("Relu")),
]


@pytest.mark.parametrize(("code", "trigger", "near_miss"), LOADED, ids=[row[0] for row in LOADED])
def test_what_onnxruntime_really_says_while_loading(code, trigger, near_miss):
    assert said(loading(trigger)) == code
    assert loading(near_miss) == ""


def table(rows):
    nodes = [helper.make_node("Gather", ["t", "x"], ["y"], name="look")]
    io = [
        helper.make_tensor_value_info("x", TensorProto.INT64, ("n",)),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
    ]
    stored = [onnx.numpy_helper.from_array(np.ones((rows, 2), np.float32), "t")]
    return helper.make_model(
        helper.make_graph(nodes, "g", io[:1], io[1:], stored), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )


ONES = np.ones((2, 4), np.float32)
RUN = [
    ("OX222", lambda: running(unary("Relu", (1, 4)), x=ONES), lambda: running(unary("Relu"), x=ONES)),
    ("OX224", lambda: running(unary("Relu"), x=ONES.astype(np.float64)), lambda: running(unary("Relu"), x=ONES)),
    ("OX224", lambda: running(unary("Relu"), z=ONES), lambda: running(unary("Relu"), x=ONES)),
    ("OX224", lambda: running(unary("Relu"), x=ONES[0]), lambda: running(unary("Relu"), x=ONES)),
    ("OX225", lambda: running(table(3), x=np.array([7])), lambda: running(table(8), x=np.array([7]))),
]


@pytest.mark.parametrize(("code", "trigger", "near_miss"), RUN, ids=[f"{row[0]}-{i}" for i, row in enumerate(RUN)])
def test_what_onnxruntime_really_says_while_running(code, trigger, near_miss):
    assert said(trigger()) == code
    assert near_miss() == ""


def test_the_command_line_explains_a_message(cli, tmp_path):
    (tmp_path / "error.txt").write_text(
        "Traceback …\nRuntimeError: No ONNX function found for <OpOverload(op='aten.median', overload='dim')>."
    )
    result = cli("explain", "--error", "error.txt")
    assert result.returncode == 0
    assert "OX108" in result.stdout
    assert "sort" in result.stdout
    (tmp_path / "other.txt").write_text("it did not work")
    assert cli("explain", "--error", "other.txt").returncode == 1
    assert cli("explain", "--error", "missing.txt").returncode == 2
