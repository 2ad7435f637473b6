"""The atlas: what it may share between combinations without judging less, and how its rows are kept."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from benchmarks.atlas import run
from benchmarks.atlas.differences import compare_opsets, tell_opsets
from benchmarks.atlas.measure import Combination, _read_bits, compare_plainly, list_samples, measure
from benchmarks.atlas.rows import read_rows, write_rows
from benchmarks.atlas.run import DEFAULT, list_combinations, measure_all
from benchmarks.atlas.samples import fill_values, load_operations, make_values
from benchmarks.atlas.sharing import share_capture

from onnxproof.tensors.conversion import to_numpy


def ask(op: str, dtype: str, *ways: tuple[str, int | None]):
    return list(measure(load_operations()[op], [Combination(op, dtype, *way) for way in ways]))


def test_one_capture_for_all_opsets_gives_the_files_of_one_export_each():
    assert compare_plainly("nn.functional.gelu", "float32", [18, 23]) == [True, True]


def test_a_module_is_captured_once_for_all_of_its_opsets(monkeypatch):
    captured = []
    capture = torch.export.export
    monkeypatch.setattr(torch.export, "export", lambda *a, **k: captured.append(a) or capture(*a, **k))
    known = {}
    for opset in (18, 21):
        with share_capture(known):
            torch.onnx.export(torch.nn.ReLU().eval(), (torch.ones(2),), dynamo=True, opset_version=opset, verbose=False)
    assert len(captured) == 1
    torch.onnx.export(torch.nn.ReLU().eval(), (torch.ones(2),), dynamo=True, verbose=False)
    assert len(captured) == 2


def test_answers_that_are_the_same_to_the_bit_are_judged_once_and_told_each_time():
    first, again, other = ask("logaddexp", "float32", ("dynamo", None), ("dynamo", 21), ("torchscript", None))
    assert first["status"] == again["status"] == "differs"
    assert first["judged"] > 0
    assert (again["judged"], again["cases"], again["found"]) == (0, first["cases"], first["found"])
    assert other["status"] != "our error"


@pytest.mark.parametrize(
    "other", [np.array([-0.0, 1]), np.array([0, 1]), np.array([[0.0, 1]]), np.array([0.0, 1 + 2**-52])]
)
def test_answers_are_not_the_same_by_one_bit_a_dtype_or_a_shape(other):
    assert _read_bits({"y": np.array([0.0, 1])}) == _read_bits({"y": np.array([0.0, 1])})
    assert _read_bits({"y": np.array([0.0, 1])}) != _read_bits({"y": other})


def test_what_is_random_is_said_at_the_default_opset_only():
    rows = ask("bernoulli", "float32", ("dynamo", None), ("dynamo", 18))
    assert [(row["opset"], row["status"]) for row in rows] == [(None, "random")]
    key = Combination("bernoulli", "float32", "dynamo", None).key
    known = {key: {"status": "random"}}
    assert "bernoulli" not in {one.op for one in list_combinations("float32 opsets", known)}
    assert "bernoulli" in {one.op for one in list_combinations("float32 opsets", {})}


def test_the_default_opset_is_measured_once():
    opsets = {one.opset for one in list_combinations("float32 opsets", {})}
    assert opsets == {*run.OPSETS["dynamo"]} - {DEFAULT}
    assert {one.opset for one in list_combinations("older more", {})} == {None}


def test_inputs_are_made_again_from_what_a_row_says():
    (row,) = ask("logaddexp", "float32", ("dynamo", None))
    found = next(one for one in row["found"] if one["profile"] == "large" and len(one["given"]) == 2)
    sample = list_samples(load_operations()["logaddexp"], torch.float32)[found["sample"]]
    tensors = fill_values(sample, "large", found["varied"])
    made = [make_values("large", to_numpy(tensor), place) for place, tensor in enumerate(sample.tensors)]
    assert all(np.array_equal(to_numpy(a), b) for a, b in zip(tensors, made, strict=True))
    assert any(float(found["given"][0]) == value for value in made[0].ravel())


def test_rows_are_read_as_they_were_written(tmp_path):
    difference = {"sample": 0, "expected": float("inf"), "aten": ["aten.exp.default"]}
    row = {
        "op": "exp",
        "dtype": "float32",
        "exporter": "dynamo",
        "opset": None,
        "status": "differs",
        "found": [difference],
    }
    rows = [row, {**row, "opset": 18}, {**row, "opset": 19, "status": "not exported"}]
    del rows[2]["found"]
    write_rows(rows, tmp_path / "rows.xz")
    back = read_rows(tmp_path / "rows.xz")
    assert [{name: value for name, value in one.items() if name != "key"} for one in back.values()] == rows
    assert list(back) == ["exp|float32|dynamo|default", "exp|float32|dynamo|18", "exp|float32|dynamo|19"]
    write_rows(back.values(), tmp_path / "again.xz")
    assert read_rows(tmp_path / "again.xz") == back


def test_the_combination_that_kills_its_process_is_named_and_the_others_are_measured(monkeypatch):
    def answer(asked):
        if any(one.opset == 19 for one in asked):
            os._exit(3)
        return [f'{{"opset": {one.opset}}}' for one in asked]

    monkeypatch.setattr(run, "_measure_here", answer)
    group = [Combination("exp", "float32", "dynamo", opset) for opset in (18, 19, 21)]
    (rows,) = measure_all([group])
    assert [row["opset"] for row in rows] == [18, 19, 21]
    assert [row.get("status") for row in rows] == [None, "crash", None]


def test_opsets_are_told_in_short():
    assert tell_opsets([21, 18, None, 19, 25]) == "default, 18 to 19, 21, 25"


def test_an_opset_is_held_against_the_default_one_where_both_ran():
    found = [{"aten": ["aten.exp.default"], "profile": "halves"}]
    row = {"op": "exp", "dtype": "float32", "exporter": "dynamo", "opset": None, "status": "differs", "found": found}
    rows = [row, {**row, "opset": 18, "status": "agrees", "found": []}, {**row, "opset": 19, "status": "not loaded"}]
    agrees, refused = compare_opsets(rows).values()
    assert (agrees["only here"], agrees["not here"]) == ({}, {"aten.exp.default": ["float32"]})
    assert (refused["only here"], refused["not here"]) == ({}, {})
