"""What users write, as values."""

from __future__ import annotations

import pytest

from onnxproof.errors import UserError
from onnxproof.request import specs


def test_inputs():
    assert specs.parse_input("x:4x3:float16") == specs.InputSpec("x", (4, 3), "float16")
    assert specs.parse_input("x:4").dtype == "float32"
    assert specs.parse_input("s:scalar:int64").shape == ()


def test_ranges_include_both_ends():
    assert specs.parse_range("ids:0,30521") == ("ids", specs.Range(0, 30521))
    assert specs.parse_range("state.a:0:-1,1") == ("state.a:0", specs.Range(-1, 1))


def test_dynamic_dims():
    assert specs.parse_dynamic(["x:0=batch,1=seq", "m:0=batch"]) == {"x": {0: "batch", 1: "seq"}, "m": {0: "batch"}}
    assert specs.parse_dynamic(["none"]) == {}
    assert specs.parse_dynamic([]) is None


def test_providers():
    assert specs.parse_provider("OpenVINO:device_type=CPU") == specs.ProviderSpec(
        "OpenVINOExecutionProvider", (("device_type", "CPU"),)
    )
    assert specs.parse_provider("CPUExecutionProvider").name == "CPUExecutionProvider"


def test_thresholds():
    assert specs.parse_threshold(["1e-3", "logits=1e-2"], "atol") == (1e-3, {"logits": 1e-2})


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("30s", 30), ("2m", 120), ("500ms", 0.5), ("1h", 3600)])
def test_seconds(text, seconds):
    assert specs.parse_seconds(text) == seconds


@pytest.mark.parametrize(
    "call",
    [
        lambda: specs.parse_input("x"),
        lambda: specs.parse_range("x:1"),
        lambda: specs.parse_dynamic(["x"]),
        lambda: specs.parse_threshold(["-1"], "atol"),
        lambda: specs.parse_seconds("soon"),
        lambda: specs.parse_sizes("-1"),
    ],
)
def test_nonsense_is_refused(call):
    with pytest.raises(UserError, match="expected"):
        call()


def test_options_from_python_may_be_spelled_as_the_flags(tmp_path):
    import torch

    import onnxproof

    model, example = torch.nn.Linear(4, 2).eval(), (torch.randn(2, 4),)
    proof = onnxproof.prove(model, example, batch_sizes="1,3", budget="5s", case_timeout="1m", out=tmp_path)
    assert {case.inputs["input"]["shape"][0] for case in proof.cases if case.fair} <= {0, 1, 2, 3}
    for options, message in (
        ({"atol": "1e-3"}, "atol: expected a number"),
        ({"accept": "OX201"}, "accept: expected a mapping"),
        ({"min": ["recall=0.8"]}, "min: expected a mapping"),
        ({"budget": "soon"}, "expected a time such as 30s"),
    ):
        with pytest.raises(UserError, match=message):
            onnxproof.prove(model, example, out=tmp_path, **options)
