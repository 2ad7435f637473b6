"""The user's own line among those of torch, the exporter and onnxproof."""

from __future__ import annotations

import pytest

from onnxproof.findings.frames import OWN, find_traced_frame, find_user_frame, unwrap_scope


def frame(file, line, text="x.view(4)"):
    return f'  File "{file}", line {line}, in forward\n    {text}\n'


def test_the_innermost_line_of_the_users():
    trace = (
        frame("/home/me/train.py", 3)
        + frame("/home/me/model.py", 7)
        + frame("/site-packages/torch/nn/modules/module.py", 99)
        + frame("<string>", 1)
        + frame(f"{OWN}/artifact/wrapper.py", 5)
    )
    assert find_user_frame(trace) == {
        "file": "/home/me/model.py",
        "line": "7",
        "function": "forward",
        "text": "    x.view(4)",
    }
    assert find_user_frame(frame("/site-packages/onnx_ir/core.py", 1)) is None


def test_models_of_ours_are_a_users_code():
    assert find_user_frame(frame(f"{OWN}/rewrites.py", 5))["line"] == "5"
    assert find_user_frame(frame(f"{OWN}/api.py", 5)) is None


def test_a_traced_stack_comes_innermost_first_and_ends_where_the_model_is_called(tmp_path):
    model = tmp_path / "model.py"
    model.write_text("def forward(x):\n    return x.view(4)\n")
    lines = ["/lib/torch/nn/functional.py(10): relu", f"{model}(2): forward", f"{tmp_path}/train.py(1): main"]
    assert find_traced_frame("\n".join(lines)) == {
        "file": str(model),
        "line": "2",
        "function": "forward",
        "text": "return x.view(4)",
    }
    wrapped = ["/lib/torch/jit.py(1): trace", "/lib/onnxproof/artifact/wrapper.py(9): forward", f"{model}(2): main"]
    assert find_traced_frame("\n".join(wrapped)) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("model", ""),
        ("model.head.0", "head.0"),
        ("modelling.head", "modelling.head"),
        ("head.model", "head.model"),
        ("", ""),
        ("_empty_nn_module_stack_from_metadata_hook", None),
    ],
)
def test_a_scope_without_the_wrapper(path, expected):
    assert unwrap_scope(path) == expected
