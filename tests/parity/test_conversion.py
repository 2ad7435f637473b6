"""A conversion that went wrong is located; a right one is not accused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from lowered import KINDS, change, lower, lower_uneven, net
from onnxproof.artifact.file import read_artifact
from onnxproof.parity.conversion import Suspect, find_faults
from onnxproof.parity.declared import declare_subject, list_originals
from onnxproof.parity.eager import EagerRunner
from onnxproof.request.lowering import Lowering
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
    "bias of another": ("float16", "last.bias", lambda a: a + 100, "last"),
    "four bits": ("int4 weights", "first.weight.T_scales", lambda a: a * 1.6, "first"),
}


def faults(path, *, real=True, by=1.0, sign=1, of=None):
    module, inputs = of or net()
    subject, artifact = make_subject(module, inputs), read_artifact(path)
    meaning = declare_subject(subject, artifact).module
    arrays = {name: np.float32(by) * tensor.numpy() for name, tensor in subject.inputs.tensors.items()}
    runner, names = EagerRunner(subject), [artifact.outputs[0].name]
    found = find_faults(
        meaning,
        list_originals(subject.module),
        arrays,
        lambda given: [sign * answer for answer in runner.run(given).values()],
        names,
        real=real,
    )
    return list(found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_conversion_is_not_accused(kind):
    assert faults(lower(kind)) == []


def test_a_range_whose_steps_are_coarse_for_most_channels_is_not_accused_of_its_ends(tmp_path):
    """What a ReLU is folded into has no negative numbers; a channel with most of the range makes the others coarse."""
    module, x, path = lower_uneven(Lowering("int8 static"), tmp_path)
    assert faults(path, of=(module, (x,))) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_one_is_located(fault, tmp_path):
    kind, tensor, by, module = FAULTS[fault]
    found = faults(change(lower(kind), tensor, by, tmp_path))
    assert [one.code for one in found][:1] == ["OX229"]
    assert (found[0].severity, found[0].where.module) == ("block", module)
    place = tensor.removesuffix("_scale").removesuffix("_zero_point").split("_quantized")[0]
    assert place.split(".")[0] in f"{found[0].where.node} {found[0].message}"
    assert found[0].evidence["gain_db"] >= 1


def test_the_range_of_an_input_is_wrong_for_sure_only_on_the_users_data(tmp_path):
    # Right for whatever has no negative numbers, as pictures have none; the example has.
    positive = change(lower("int8 static"), "x_zero_point", lambda a: np.full_like(a, -128), tmp_path)
    (doubt,) = faults(positive, real=False)
    assert doubt.severity == "review"
    assert "or the example is unlike the data it was made for" in doubt.message
    assert faults(positive, real=True)[0].severity == "block"


def test_a_stored_tensor_is_wrong_whatever_the_inputs_are(tmp_path):
    broken = change(lower("int8 static"), "first.weight_scale", lambda a: a * 1.4, tmp_path)
    assert "block" in {one.severity for one in faults(broken, real=False, by=5.0) if one.where.module == "first"}


@pytest.mark.parametrize("scale", [np.inf, 1.3e36])
def test_a_scale_that_a_mask_made_is_named(scale, tmp_path):
    broken = change(lower("int8 static"), "tanh_scale", lambda a: np.full_like(a, scale), tmp_path)
    found = faults(broken)
    assert "the scale tanh_scale comes of a mask" in found[-1].message
    assert found[-1].severity == "block"


def test_one_fault_does_not_hide_another(tmp_path):
    # Clipped to almost nothing: what the weight does is hardly seen before that is mended.
    clipped = change(lower("int8 static"), "relu_scale", lambda a: a * 0.02, tmp_path)
    found = faults(change(clipped, "second.weight_scale", lambda a: np.roll(a, 1), tmp_path))
    assert {one.where.node for one in found} == {"relu_QuantizeLinear", "second.weight_DequantizeLinear"}


def test_ranges_that_are_all_wrong_are_told_together(tmp_path):
    path = lower("int8 static")
    for name in ("x_scale", "relu_scale", "tanh_scale"):
        path = change(path, name, lambda a: a * 500, tmp_path)
    (found,) = faults(path)
    assert (found.severity, found.where.node) == ("block", "x_QuantizeLinear")
    assert "(and 2 ranges more)" in found.message


def test_values_that_are_quantised_twice_are_told(tmp_path):
    model = onnx.load(lower("int8 static"))
    back = next(node for node in model.graph.node if node.name == "relu_DequantizeLinear")
    (scale,) = [tensor for tensor in model.graph.initializer if tensor.name == "relu_scale"]
    coarse = numpy_helper.from_array(np.asarray(8 * numpy_helper.to_array(scale)), "coarse")
    model.graph.initializer.append(coarse)
    for node in model.graph.node:
        node.input[:] = ["again" if value == back.output[0] else value for value in node.input]
    place = list(model.graph.node).index(back) + 1
    names = (back.output[0], "whole", "again")
    for op, taken, given in zip(("DequantizeLinear", "QuantizeLinear"), names[1::-1], names[:0:-1], strict=True):
        model.graph.node.insert(place, helper.make_node(op, [taken, "coarse", back.input[2]], [given], f"second_{op}"))
    onnx.save(model, tmp_path / "twice.onnx")
    (found,) = faults(tmp_path / "twice.onnx")
    assert found.where.node == "second_QuantizeLinear"
    assert "quantised already, and in steps 8 times as fine" in found.message


def test_a_range_that_is_hardly_used_is_wrong_on_the_users_data():
    one = Suspect("n", "s", "", (), 8.0, idle=True)
    assert [one.weigh(30.0, real=real) for real in (True, False)] == ["block", "review"]


def test_outputs_that_say_nothing_are_for_a_gate_to_judge():
    (found,) = faults(lower("float16"), sign=-1)
    assert found.severity == "review"
    assert "nearer to nothing" in found.message


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
