"""The command line: exit codes, messages, files."""

from __future__ import annotations

import json

import jsonschema
import onnx
import pytest

from conftest import target
from onnxproof.proof.schema import read_schema


@pytest.mark.slow
def test_the_tutorial_model_ships_over_many_batches(cli, tmp_path):
    result = cli("prove", target("tutorial"), "--batch-sizes", "1,2,4,7,32,128", "--json", "proof.json", "-v")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("SHIP")
    proof = json.loads((tmp_path / "proof.json").read_text())
    jsonschema.validate(proof, read_schema())
    assert proof["verdict"] == "ship"
    sizes = {case["name"].split("/")[0] for case in proof["cases"]}
    assert sizes == {f"batch={n}" for n in (1, 2, 4, 7, 32, 128)}
    for case in proof["cases"]:
        for output in case["outputs"]:
            assert {"max_abs", "max_rel", "noise_ratio"} <= output.keys()
    assert "max rel" in result.stdout


@pytest.mark.slow
def test_the_tutorials_fixed_batch_blocks_and_says_how_to_fix_it(cli, tmp_path):
    script = (
        "import sys, torch; sys.path.insert(0, sys.argv[1]); import models\n"
        "module, _ = models.tutorial()\n"
        "torch.onnx.export(module, (torch.randn(1, 10),), 'fixed.onnx', dynamo=True, external_data=False)\n"
    )
    import subprocess
    import sys
    from pathlib import Path

    subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parent)], cwd=tmp_path, check=True, capture_output=True
    )
    result = cli("verify", target("tutorial"), "--onnx", "fixed.onnx")
    assert result.returncode == 1
    assert result.stdout.startswith("BLOCK")
    assert "OX222" in result.stdout
    assert "fixes dimension 0" in result.stdout
    assert "dynamic_shapes" in result.stdout
    only_one = cli(
        "verify",
        target("tutorial"),
        "--onnx",
        "fixed.onnx",
        "--batch-sizes",
        "1",
        "--dynamic",
        "none",
        "--input",
        "input:1x10",
    )
    assert only_one.returncode == 0, only_one.stdout + only_one.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py:model"], "there is no file nowhere.py"),
        (["no-colon"], "expected path/file.py:name"),
        ([target("absent")], "has no 'absent'"),
        ([target("wrong_return")], "wrong_return gave a int; expected a torch.nn.Module"),
        ([target("raises")], "raises() raised RuntimeError: weights are missing"),
        ([target("picky")], "rejects its example inputs at "),
        (["no_such_package.models:x"], "raised while it was imported"),
        ([target("tutorial"), "--range", "x:0,1"], "the model has no input 'x'; its inputs are 'input'"),
        ([target("tutorial"), "--dynamic", "ids:0=batch"], "the model has no input 'ids'; its inputs are 'input'"),
        ([target("tutorial"), "--dynamic", "input:5=batch"], "expected a dimension below 2"),
        ([target("tutorial"), "--input", "y:2x10"], "the model has no input 'y'"),
        ([target("tutorial"), "--input", "input:axb"], "expected sizes such as"),
        ([target("tutorial"), "--range", "input:3,1"], "low ≤ high"),
        ([target("tutorial"), "--provider", "Nonsense"], "there is no provider 'NonsenseExecutionProvider'"),
        ([target("tutorial"), "--onnx", "missing.onnx"], "there is no file missing.onnx"),
        ([target("tutorial"), "--batch-sizes", ""], "no case"),
        ([target("tutorial"), "--batch-sizes", "a"], "expected numbers"),
        ([target("tutorial"), "--atol", "x"], "expected a number"),
        ([target("tutorial"), "--accept", "OX201"], "one reason for each"),
        ([target("tutorial"), "--accept", "OX999", "--reason", "r"], "no such code"),
        ([target("tutorial"), "--exporter", "magic"], "expected one of auto, dynamo, torchscript"),
        ([target("tutorial"), "--data", "missing.npz"], "there is no file missing.npz"),
    ],
)
def test_wrong_usage_exits_2_with_one_clear_message(arguments, message, inside):
    result = inside("prove", *arguments)
    assert result.returncode == 2, result.stdout
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_target_that_raises_while_importing_names_the_line(cli, tmp_path):
    (tmp_path / "broken.py").write_text("import torch\n\nraise ValueError('no licence')\n")
    result = cli("prove", "broken.py:model")
    assert result.returncode == 2
    assert "ValueError: no licence (broken.py:3)" in result.stderr


@pytest.mark.parametrize(
    ("content", "message"), [(b"this is no model", "not an ONNX model"), (b"", "no graph")], ids=["text", "empty"]
)
def test_a_file_that_is_no_onnx_blocks(content, message, inside, tmp_path):
    (tmp_path / "bad.onnx").write_bytes(content)
    result = inside("verify", target("tutorial"), "--onnx", "bad.onnx")
    assert result.returncode == 1
    assert "OX301" in result.stdout
    assert message in result.stdout


def test_a_truncated_file_blocks(inside, tmp_path, exported):
    whole = exported("mlp").read_bytes()
    (tmp_path / "cut.onnx").write_bytes(whole[: len(whole) // 2])
    result = inside("verify", target("mlp"), "--onnx", "cut.onnx")
    assert result.returncode == 1
    assert "OX301" in result.stdout


def test_missing_external_data_blocks(inside, tmp_path, exported):
    model = onnx.load(exported("mlp"))
    onnx.save(model, tmp_path / "split.onnx", save_as_external_data=True, location="weights.data", size_threshold=0)
    (tmp_path / "weights.data").unlink()
    result = inside("verify", target("mlp"), "--onnx", "split.onnx")
    assert result.returncode == 1
    assert "OX302" in result.stdout
    assert "weights.data" in result.stdout


def test_wrong_usage_through_children_reads_the_same(cli):
    result = cli("prove", target("raises"))
    assert result.returncode == 2
    assert "raises() raised RuntimeError: weights are missing" in result.stderr
    assert "Traceback" not in result.stderr


def test_json_on_stdout_is_all_of_stdout(cli):
    result = cli("prove", target("tutorial"), "--json", "-")
    assert result.returncode == 0
    assert json.loads(result.stdout)["schema"] == "onnxproof/1"


@pytest.mark.slow
def test_a_target_that_prints_does_not_spoil_the_output(cli, tmp_path):
    (tmp_path / "loud.py").write_text(
        "import torch\nprint('hello from the model')\nclass Loud(torch.nn.Module):\n"
        "    def forward(self, x):\n        print('forward')\n        return x * 2\n"
        "def make():\n    return Loud(), (torch.randn(2, 3),)\n"
    )
    result = cli("prove", "loud.py:make", "--json", "-")
    assert result.returncode == 0, result.stderr
    json.loads(result.stdout)


def test_a_summary_is_short_verdict_first_and_names_the_next_command(inside):
    result = inside("prove", target("epsilon"))
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("BLOCK")
    assert len(lines) <= 34
    assert "help:" in result.stdout
    assert "PyTorch" in result.stdout
    assert lines[-1].strip().startswith("next: onnxproof")


def test_quiet_prints_one_line(inside):
    result = inside("prove", target("tutorial"), "--quiet")
    assert len(result.stdout.splitlines()) == 1


def test_a_saved_proof_is_judged_again_without_a_run(inside, tmp_path):
    assert inside("prove", target("tutorial"), "--json", "proof.json").returncode == 0
    strict = inside("report", "proof.json", "--atol", "0", "--rtol", "0")
    assert strict.returncode == 1
    assert "OX204" in strict.stdout
    accepted = inside("report", "proof.json", "--atol", "0", "--rtol", "0", "--accept", "OX204", "--reason", "known")
    assert accepted.returncode == 0
    assert "accepted: known" in accepted.stdout


def test_a_report_of_something_else_is_refused(inside, tmp_path):
    (tmp_path / "other.json").write_text('{"schema": "something"}')
    result = inside("report", "other.json")
    assert result.returncode == 2
    assert "not a proof" in result.stderr


def test_accepting_a_finding_keeps_it_visible(inside, tmp_path):
    result = inside(
        "prove", target("train_mode"), "--accept", "OX102", "--reason", "dropout is fine", "--json", "p.json"
    )
    assert result.returncode == 0, result.stdout
    finding = next(f for f in json.loads((tmp_path / "p.json").read_text())["findings"] if f["code"] == "OX102")
    assert finding["accepted"] == "dropout is fine"


def test_export_writes_a_stripped_file_and_its_source_map(inside, tmp_path):
    result = inside("export", target("transformer"), "--out", "made")
    assert result.returncode == 0, result.stdout + result.stderr
    raw = (tmp_path / "made" / "model.onnx").read_bytes()
    assert b"models.py" not in raw
    assert b"site-packages" not in raw
    nodes = json.loads((tmp_path / "made" / "model.sourcemap.json").read_text())["nodes"]
    assert any(node.get("module") == "encoder.layers.0.self_attn" for node in nodes.values())
    assert any(str(node.get("file", "")).endswith("models.py") and node.get("line") for node in nodes.values())
    kept = inside("export", target("tutorial"), "--keep-metadata", "--out", "kept")
    assert kept.returncode == 0
    assert b"stack_trace" in (tmp_path / "kept" / "model.onnx").read_bytes()


def test_explain(inside):
    assert "silent change" in inside("explain", "OX202").stdout
    assert "OX222" in inside("explain", "--all").stdout
    assert inside("explain", "OX999").returncode == 2


def test_version(cli):
    assert cli("--version").stdout.strip().count(".") == 2


@pytest.mark.slow
def test_user_data_joins_the_cases(cli, tmp_path):
    import numpy as np

    np.savez(
        tmp_path / "rows.npz", X=np.random.default_rng(0).normal(size=(50, 10)).astype(np.float32), labels=np.zeros(50)
    )
    result = cli("verify", target("tutorial"), "--data", "rows.npz", "--json", "p.json")
    assert result.returncode == 0, result.stderr
    assert any(case["profile"] == "data" for case in json.loads((tmp_path / "p.json").read_text())["cases"])


@pytest.mark.slow
def test_a_scripted_file_with_input_specs(cli, tmp_path):
    import torch

    import models

    module, _ = models.tutorial()
    torch.jit.save(torch.jit.script(module), tmp_path / "m.pt")
    result = cli("prove", "m.pt", "--input", "input:4x10:float32")
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_target_that_exits_is_a_users_error(cli, tmp_path):
    (tmp_path / "script.py").write_text("import sys\nsys.exit(3)\n")
    result = cli("prove", "script.py:model")
    assert result.returncode == 2
    assert "raised while it was imported: SystemExit" in result.stderr


def test_nothing_compared_cannot_be_accepted(inside):
    result = inside("prove", target("tutorial"), "--accept", "OX004", "--reason", "please")
    assert result.returncode == 2
    assert "cannot be accepted" in result.stderr
