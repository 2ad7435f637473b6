"""The exporter's table is made once, and each export has its own copy."""

from __future__ import annotations

import sys
from types import ModuleType

import torch
from torch._export import utils
from torch.onnx._internal.exporter import _registration

from onnxproof.artifact import registry
from onnxproof.artifact.exporters import export_captured
from onnxproof.artifact.registry import make_registry, share_tables


def count_made(monkeypatch):
    """Opsets for which torch is asked from now on."""
    made, (_, original) = [], registry._find_original()
    registry._make.cache_clear()

    def ask(opset_version):
        made.append(opset_version)
        return original(opset_version=opset_version)

    monkeypatch.setattr(registry, "_find_original", lambda: (_registration.ONNXRegistry, ask))
    return made


def test_two_exports_make_it_once_and_write_what_torch_writes(monkeypatch):
    made = count_made(monkeypatch)
    module, example = torch.nn.Linear(3, 2).eval(), (torch.ones(2, 3),)
    ours = [export_captured(module, example, ({0: "batch"},)) for _ in range(2)]
    assert made == [20]
    plain = torch.onnx.export(module, example, None, dynamo=True, dynamic_shapes=({0: "batch"},), verbose=False)
    operators = [[node.op_type for node in one.model.graph] for one in (*ours, plain)]
    assert operators[0] == operators[1] == operators[2]


def test_who_changes_it_changes_a_copy():
    first = make_registry()
    first.functions["aten::abs"].clear()
    first.functions.pop("aten::add.Tensor")
    second = make_registry()
    assert "aten::add.Tensor" in second.functions
    assert second.functions["aten::abs"]


def test_torchvision_that_is_imported_later_is_known(monkeypatch):
    made = count_made(monkeypatch)
    make_registry()
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    make_registry()
    assert made == [20, 20]


def test_torch_has_its_own_afterwards():
    before = _registration.ONNXRegistry.from_torchlib
    with share_tables():
        assert _registration.ONNXRegistry.from_torchlib is make_registry
    assert _registration.ONNXRegistry.from_torchlib == before


def test_composite_operators_are_listed_once_for_an_export(monkeypatch):
    listed, original = [], utils._materialize_cpp_cia_ops

    def materialize() -> None:
        listed.append(1)
        original()

    monkeypatch.setattr(utils, "_materialize_cpp_cia_ops", materialize)
    for count in (1, 2):
        export_captured(torch.nn.Linear(3, 2).eval(), (torch.ones(2, 3),), None)
        assert len(listed) == count
    assert utils._materialize_cpp_cia_ops is materialize
