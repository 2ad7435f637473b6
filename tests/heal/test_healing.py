"""Healing: a silent fault goes away with another setting, verified from scratch; what nothing heals is said with its line."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnxruntime
import pytest
import torch
from benchmarks.failures import silent
from torch import nn

import onnxproof
from fake import FakeCandidate
from onnxproof.candidates.candidate import Abilities
from onnxproof.candidates.onnxruntime import Onnxruntime
from onnxproof.heal.healing import list_settings
from onnxproof.heal.remedies import list_remedies
from onnxproof.request.request import Request
from onnxproof.request.specs import Range

SILENT = Path(__file__).parents[2] / "benchmarks" / "failures" / "silent.py"


def heal(name, out, **options):
    return onnxproof.prove(*getattr(silent, name)(), heal=True, budget=2.0, out=out, **options)


def test_a_deleted_epsilon_is_healed_by_leaving_the_exporters_optimiser_out(tmp_path):
    proof = heal("epsilon_of_a_norm", tmp_path)
    assert proof.verdict == "ship"
    assert proof.healing.change == "the exporter's optimiser off"
    assert proof.healing.before.code == "OX205"
    note = next(f for f in proof.findings if f.code == "OX008")
    assert "--no-optimize" in note.help
    assert proof.healing.cost.size_ratio > 0.5
    assert proof.healing.cost.latency_ratio > 0
    zeros = torch.zeros(2, 8).numpy()
    shipped = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"inputs_0": zeros})[0]
    assert (shipped == 0).all(), "the artifact in place is the healed one"
    assert (tmp_path / "heal" / "before" / "model.onnx").is_file()


def test_a_wrong_rewrite_is_healed_by_switching_it_off(tmp_path):
    proof = heal("padding_before_max_pool", tmp_path)
    assert proof.verdict == "ship"
    assert proof.healing.session == {"disabled_optimizers": ("Pad_Fusion",)}
    assert list_settings(proof, Request()) == {"disable": ["Pad_Fusion"]}
    assert "disabled_optimizers" in next(f for f in proof.findings if f.code == "OX008").help


class OfTwoLengths(nn.Module):
    """Another layer for long inputs: the exporter keeps the one of the example's length."""

    def __init__(self):
        super().__init__()
        self.short, self.long = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.long(x) if x.shape[1] > 20 else self.short(x)


@pytest.mark.slow
def test_a_branch_on_a_length_is_healed_by_limiting_it_to_what_was_captured(tmp_path):
    torch.manual_seed(0)
    dynamic = {"x": {0: "batch", 1: "seq"}}
    proof = onnxproof.prove(
        OfTwoLengths().eval(), (torch.randn(2, 10, 4),), dynamic=dynamic, heal=True, budget=2.0, out=tmp_path
    )
    assert proof.verdict == "ship"
    assert proof.healing.limits == {"seq": (1, 20)}
    lengths = {case.inputs["x"].shape[1] for case in proof.cases}
    assert max(lengths) == 20
    note = next(f for f in proof.findings if f.code == "OX008")
    assert "--range seq:1,20" in note.help
    assert list_settings(proof, Request(ranges={"x": Range(-1, 1)})) == {"range": ["x:-1,1", "seq:1,20"]}


@pytest.mark.slow
def test_what_nothing_heals_is_said_with_the_line_and_the_verdict_stays(tmp_path):
    proof = heal("divisor_override", tmp_path)
    assert proof.verdict == "block"
    note = next(f for f in proof.findings if f.code == "OX009")
    assert "silent.py" in note.message
    assert "kernel area" in note.message
    assert not any(one.passed for one in proof.healing.tried)
    assert len(proof.healing.tried) >= 6


def test_a_correct_export_is_not_treated(tmp_path):
    proof = onnxproof.prove(nn.Linear(4, 2).eval(), (torch.randn(3, 4),), heal=True, budget=2.0, out=tmp_path)
    assert proof.verdict == "ship"
    assert proof.healing is None
    assert not {"OX008", "OX009"} & {f.code for f in proof.findings}


def test_a_given_file_is_treated_with_session_settings_only(tmp_path, exported):
    module, inputs = nn.Linear(4, 2).eval(), (torch.randn(3, 4),)
    proof = onnxproof.prove(module, inputs, budget=2.0, out=tmp_path)
    request = Request(held=(module, inputs), onnx=str(tmp_path / "model.onnx"))
    offered = list_remedies(request, proof, Onnxruntime())
    assert offered
    assert all(remedy.session and not remedy.export for remedy in offered)
    # Of a runtime without rewrites, only other providers are worth a try; those are its own.
    plain = FakeCandidate(lambda inputs, settings: {}, available=("CPUExecutionProvider", "NpuExecutionProvider"))
    assert [remedy.what for remedy in list_remedies(request, proof, plain)] == ["the Npu provider"]
    plain.abilities = Abilities(rewrites=True)
    assert "optimization disable" in [remedy.what for remedy in list_remedies(request, proof, plain)]


@pytest.mark.slow
def test_fix_writes_what_worked_and_the_next_run_uses_it(cli, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"  # kept\n')
    target = f"{SILENT}:epsilon_of_a_norm"
    first = cli("prove", target, "--heal", "--fix", "--budget", "2s")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "healed by the exporter's optimiser off" in first.stdout.splitlines()[0]
    written = (tmp_path / "pyproject.toml").read_text()
    assert "# kept" in written
    assert "no-optimize = true" in written
    again = cli("prove", "epsilon_of_a_norm", "--budget", "2s", "--json", "-")
    assert again.returncode == 0, again.stdout + again.stderr
    proof = json.loads(again.stdout)
    assert proof["artifact"]["optimized"] is False
    assert proof["healing"] is None


@pytest.mark.slow
@pytest.mark.parametrize("flag", [["--no-optimize"], ["--strict"], ["--disable", "Pad_Fusion"]])
def test_the_flags_that_healing_names_exist(flag, cli, tmp_path):
    (tmp_path / "m.py").write_text(
        "import torch\ndef build():\n    return torch.nn.Linear(4, 2).eval(), (torch.ones(2, 4),)\n"
    )
    result = cli("prove", "m.py:build", "--budget", "2s", *flag)
    assert result.returncode == 0, result.stdout + result.stderr
    assert onnx.load(tmp_path / "onnxproof-out" / "model.onnx").graph.node
