"""What users write, as values."""

from __future__ import annotations

import pytest

from onnxproof.request import specs
from onnxproof.request.option import Expected


def test_inputs():
    assert specs.parse_input("x:4x3:float16") == specs.InputSpec("x", (4, 3), "float16")
    assert specs.parse_input("x:4").dtype == "float32"
    assert specs.parse_input("s:scalar:int64").shape == ()


def test_ranges_include_both_ends():
    assert specs.parse_range("ids:0,30521") == ("ids", specs.Range(0, 30521))
    assert specs.parse_range("state.a:0:-1,1") == ("state.a:0", specs.Range(-1, 1))


def test_dynamic_dims():
    assert specs.read_dynamic(["x:0=batch,1=seq", "m:0=batch"]) == {"x": {0: "batch", 1: "seq"}, "m": {0: "batch"}}
    assert specs.read_dynamic({"x": {0: "batch"}}) == {"x": {0: "batch"}}
    assert specs.read_dynamic("none") == specs.read_dynamic(["none"]) == {}


def test_providers():
    assert specs.parse_provider("OpenVINO:device_type=CPU") == specs.ProviderSpec(
        "OpenVINOExecutionProvider", (("device_type", "CPU"),)
    )
    assert specs.parse_provider("CPUExecutionProvider").name == "CPUExecutionProvider"


@pytest.mark.parametrize(
    "call",
    [
        lambda: specs.parse_input("x"),
        lambda: specs.parse_input("x:-2x3"),
        lambda: specs.parse_input("x:999999999999x3"),
        lambda: specs.parse_input("sr=NaN"),
        lambda: specs.parse_input("sr=1e999"),
        lambda: specs.parse_input(f"sr={10**400}"),
        lambda: specs.parse_range("x:1"),
        lambda: specs.parse_role("x:colour"),
        lambda: specs.to_range((2, 1)),
        lambda: specs.read_dynamic(["x"]),
    ],
)
def test_nonsense_is_refused(call):
    with pytest.raises(Expected):
        call()
