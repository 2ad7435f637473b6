"""A conversion that went wrong is located; a right one is not accused."""

from __future__ import annotations

import numpy as np
import pytest

from lowered import KINDS, change, lower, net
from onnxproof.artifact.file import read_artifact
from onnxproof.parity.conversion import Suspect, find_faults
from onnxproof.parity.declared import declare_subject, list_originals
from onnxproof.parity.eager import EagerRunner
from onnxproof.subject.assembly import make_subject

FAULTS = {
    "scale": ("int8 static", "first.weight_scale", lambda a: a * 1.4, "first"),
    "scales of another channel": ("int8 static", "second.weight_scale", lambda a: np.roll(a, 1), "second"),
    "zero point": ("int8 static", "first.weight_zero_point", lambda a: a + 20, "first"),
    "turned": ("int8 static", "second.weight_quantized", lambda a: a.T, "second"),
    "another weight": ("int8 static", "last.weight_quantized", lambda a: np.roll(a, 1, axis=0), "last"),
    "saturated": ("int8 static", "first.weight_quantized", lambda a: np.clip(a.astype(int), -30, 30), "first"),
    "bias": ("int8 static", "second.bias_quantized", lambda a: a * 4, "second"),
    "clipped": ("int8 static", "relu_scale", lambda a: a * 0.15, None),
    "no negatives": ("int8 static", "x_zero_point", lambda a: np.full_like(a, -128), None),
    "far too wide": ("int8 static", "relu_scale", lambda a: a * 60, None),
    "operators": ("int8 operators", "first.weight_scale", lambda a: a * 1.4, "first"),
    "dynamic": ("int8 dynamic", "second.weight_scale", lambda a: a * 0.6, "second"),
    "float16": ("float16", "second.weight", lambda a: a * 1.1, "second"),
    "four bits": ("int4 weights", "first.weight.T_scales", lambda a: a * 1.6, "first"),
}


def faults(path):
    module, inputs = net()
    subject, artifact = make_subject(module, inputs), read_artifact(path)
    meaning = declare_subject(subject, artifact).module
    arrays = {name: tensor.numpy() for name, tensor in subject.inputs.tensors.items()}
    wanted = list(EagerRunner(subject).run(arrays).values())
    return list(find_faults(meaning, list_originals(subject.module), arrays, wanted, [artifact.outputs[0].name]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_conversion_is_not_accused(kind):
    assert faults(lower(kind)) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_one_is_located(fault, tmp_path):
    kind, tensor, by, module = FAULTS[fault]
    found = faults(change(lower(kind), tensor, by, tmp_path))
    assert [one.code for one in found][:1] == ["OX229"]
    assert (found[0].severity, found[0].where.module) == ("block", module)
    place = tensor.removesuffix("_scale").removesuffix("_zero_point").split("_quantized")[0]
    assert place.split(".")[0] in f"{found[0].where.node} {found[0].message}"
    assert found[0].evidence["gain_db"] >= 1


def test_a_scale_that_is_no_number_is_named(tmp_path):
    broken = change(lower("int8 static"), "tanh_scale", lambda a: a * np.inf, tmp_path)
    found = faults(broken)
    assert "the scale tanh_scale is no number" in found[-1].message
    assert found[-1].severity == "block"


@pytest.mark.parametrize(
    ("share", "clipped", "decibels", "severity"),
    [
        (0.25, 1, 5.0, "review"),
        (0.25, 100, 5.0, "block"),
        (0.02, 100, 5.0, "review"),
        (0.6, 3, 5.0, "block"),
        (0.6, 99, 40.0, "review"),
    ],
)
def test_a_range_is_wrong_for_sure_where_much_is_outside(share, clipped, decibels, severity):
    assert Suspect("n", "s", "", (), 8.0, share=share, clipped=clipped).weigh(decibels) == severity
