"""Files in a lower precision, from end to end: what is right never blocks, what is broken does, located."""

from __future__ import annotations

import linecache

import numpy as np
import onnx
import pytest
import torch
from onnxruntime.transformers.float16 import convert_float_to_float16

import onnxproof
from lowered import KINDS, change, lower, net
from onnxproof.report.html import render_html
from onnxproof.report.text import render


def prove(path, tmp_path, **options):
    return onnxproof.prove(*net(), onnx=str(path), out=tmp_path, fast=True, in_process=True, budget=10.0, **options)


def codes(proof):
    return {finding.code: finding for finding in proof.findings}


@pytest.mark.parametrize("kind", KINDS)
def test_ox227_ox228_a_right_conversion_is_reviewed_and_not_blocked(kind, tmp_path):
    proof = prove(lower(kind), tmp_path)
    assert proof.verdict == "review"
    assert [one.code for one in proof.findings if one.weight] == ["OX228"]
    assert codes(proof)["OX227"].evidence["decibels"] > 10
    assert proof.artifact is not None
    assert proof.artifact.precision is not None
    assert proof.artifact.precision.text in render(proof)


def test_the_page_says_what_it_is_held_against(tmp_path):
    page = render_html(prove(lower("int8 static"), tmp_path))
    assert "answer as exact arithmetic does" in page
    assert "as PyTorch does" not in page
    assert "int8 static, 3 of 3 Gemms; weights per channel" in page


def test_a_file_in_float32_gives_up_nothing(tmp_path):
    assert not {"OX227", "OX228"} & {*codes(prove(lower("float32"), tmp_path))}


def test_it_is_judged_as_any_other_file_if_that_is_asked_for(tmp_path):
    proof = prove(lower("int8 static"), tmp_path, precision="exact")
    assert proof.verdict == "block"
    assert "OX228" not in codes(proof)


def test_ox229_a_broken_conversion_blocks_and_is_located(tmp_path):
    broken = change(lower("int8 static"), "second.weight_scale", lambda a: np.roll(a, 1), tmp_path)
    proof = prove(broken, tmp_path / "out")
    assert proof.verdict == "block"
    told = codes(proof)["OX229"].where
    assert told.module == "second"
    assert "self.second(" in linecache.getline(told.file, told.line)
    assert "computed right" not in codes(proof)["OX228"].message
    assert "OX229" not in codes(prove(lower("int8 static"), tmp_path / "near"))


def test_ox232_the_nodes_that_cost_most_are_told(tmp_path):
    def coarse(stored):
        return np.sign(stored) * 64 * np.round(np.abs(stored.astype(float)) / 64).clip(0, 1)

    proof = prove(change(lower("int8 static"), "second.weight_quantized", coarse, tmp_path), tmp_path / "out")
    told = codes(proof)["OX232"]
    assert told.severity == "note"
    assert "linear_1" in told.where.node
    # The file has no source map: its weights tell which module it is, and a call of that tells the line.
    assert told.where.module == "second"
    assert "self.second(" in linecache.getline(told.where.file, told.where.line)
    assert f"(second, lowered.py:{told.where.line}) introduces most" in told.message
    assert len(told.evidence["nodes"]) == 4
    assert "OX232" not in codes(prove(lower("float32"), tmp_path / "near"))


def test_ox219_a_file_in_half_floats_throughout_is_judged_by_its_data(tmp_path):
    x = torch.randn(1000, 20, generator=torch.Generator().manual_seed(3)).numpy()
    np.savez(tmp_path / "rows.npz", x=x)
    proof = prove(lower("float16 throughout"), tmp_path, data=str(tmp_path / "rows.npz"))
    assert proof.verdict == "ship"
    assert "callers cast what they feed" in codes(proof)["OX219"].message
    assert "float16 computed right, 0 of 512 decisions on your data changed" in render(proof)
    assert labelled(tmp_path, lower("float16 throughout")).verdict == "ship"
    exact = prove(lower("float16 throughout"), tmp_path, precision="exact")
    assert {one.code for one in exact.findings if one.severity == "block"} == {"OX214"}
    assert codes(exact)["OX219"].severity == "review"


def test_ox230_an_input_that_half_floats_do_not_hold(tmp_path):
    module, (x,) = net()
    scaled = torch.nn.Sequential(Scaled(), module)
    made = onnxproof.export(scaled, (x * 1e5,), out=tmp_path)
    path = tmp_path / "half.onnx"
    onnx.save(convert_float_to_float16(onnx.load(made.artifact.path), keep_io_types=False), path)
    how = {"out": tmp_path / "out", "fast": True, "in_process": True, "budget": 10.0}
    proof = onnxproof.prove(scaled, (x * 1e5,), onnx=str(path), **how)
    assert proof.verdict == "block"
    assert "an input is beyond what the file takes" in codes(proof)["OX230"].message


class Scaled(torch.nn.Module):
    def forward(self, x):
        return x * 1e-3


class Step(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(4, 8)

    def forward(self, x, state):
        return self.cell(x, state)


def test_a_state_in_half_floats_is_carried(tmp_path):
    torch.manual_seed(0)
    step, inputs = Step().eval(), (torch.randn(2, 4), torch.zeros(2, 8))
    made = onnxproof.export(step, inputs, out=tmp_path)
    path = tmp_path / "half.onnx"
    onnx.save(convert_float_to_float16(onnx.load(made.artifact.path), keep_io_types=False), path)
    how = {"out": tmp_path / "out", "fast": True, "in_process": True, "budget": 10.0}
    proof = onnxproof.prove(step, inputs, onnx=str(path), **how)
    assert [one.code for one in proof.findings if one.weight] == ["OX228"]
    assert proof.rollout is not None
    assert proof.rollout.planned == len(proof.rollout.steps) == 12


class Scores(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return (x * self.factor) @ (x * self.factor).T / self.factor**2


@pytest.mark.parametrize(("factor", "overflows"), [(1000.0, True), (4.0, False)])
def test_ox230_an_overflow_that_this_cpu_hides(factor, overflows, tmp_path):
    made = onnxproof.export(Scores(factor), (torch.randn(3, 8),), dynamic="none", out=tmp_path)
    path = tmp_path / "half.onnx"
    onnx.save(convert_float_to_float16(onnx.load(made.artifact.path), keep_io_types=True), path)
    proof = onnxproof.prove(
        Scores(factor),
        (torch.randn(3, 8),),
        onnx=str(path),
        dynamic="none",
        out=tmp_path / "out",
        fast=True,
        in_process=True,
    )
    assert ("OX230" in codes(proof)) == overflows
    if overflows:
        assert codes(proof)["OX230"].where.node in [node.name for node in onnx.load(path).graph.node]
        assert "OX229" not in codes(proof)
    assert proof.verdict == ("block" if overflows else "review")


def labelled(tmp_path, precision_of):
    module, _ = net()
    x = torch.randn(400, 20, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        labels = module(x).argmax(1).numpy()
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=labels)
    return onnxproof.evaluate(*net(), onnx=str(precision_of), data=str(tmp_path / "data.npz"), out=tmp_path)


def test_ox519_changed_decisions_are_the_price_and_the_metrics_judge_it(tmp_path):
    proof = labelled(tmp_path, lower("int8 static"))
    assert "OX502" not in codes(proof)
    assert "OX517" not in codes(proof)
    assert codes(proof)["OX519"].severity == "note"
    assert proof.quality is not None
    assert proof.quality.candidate["accuracy"] > 0.9
    same = labelled(tmp_path, lower("float32"))
    assert "OX519" not in codes(same)


def unlabelled(tmp_path, path, x):
    np.savez(tmp_path / "bare.npz", x=x)
    return onnxproof.evaluate(*net(), onnx=str(path), data=str(tmp_path / "bare.npz"), out=tmp_path)


def test_ox228_without_labels_the_changed_decisions_are_counted_on_all_rows(tmp_path):
    x = torch.randn(3000, 20, generator=torch.Generator().manual_seed(3)).numpy()
    proof = unlabelled(tmp_path, lower("int4 weights"), x)
    told = codes(proof)["OX228"]
    assert told.severity == proof.verdict == "review"
    assert told.evidence["rows"] == 3000
    assert told.evidence["low"] < told.evidence["changed"] / 3000 < told.evidence["high"]
    assert "most where the original says" in told.message
    half = unlabelled(tmp_path, lower("float16"), x)
    assert half.verdict == "ship"
    # Nobody held it against exact arithmetic here.
    assert "computed right" not in render(half)
    assert "of 3000 decisions on your data changed" in render(half)


def test_a_conversion_that_is_worse_for_sure_blocks(tmp_path):
    ruined = change(lower("int8 static"), "first.weight_scale", lambda a: a * 8, tmp_path)
    proof = labelled(tmp_path, ruined)
    assert proof.verdict == "block"
    assert "OX507" in codes(proof) or "OX506" in codes(proof)


class Careful(torch.nn.Module):
    """Refuses what is large."""

    def __init__(self):
        super().__init__()
        self.net, _ = net()

    def forward(self, x):
        if not torch.compiler.is_exporting() and float(x.abs().max()) > 50:
            raise ValueError("too large")
        return self.net(x)


def test_what_the_original_refuses_need_not_be_answered(tmp_path):
    path = str(lower("int8 static"))
    proof = onnxproof.prove(
        Careful().eval(), (torch.randn(16, 20),), onnx=path, out=tmp_path, fast=True, in_process=True, budget=10.0
    )
    refused = [case for case in proof.cases if case.status == "rejected"]
    assert any("too large" in case.message for case in refused)
    assert proof.verdict == "review"
