"""Settings: flags before the environment, before the configuration, before the defaults."""

from __future__ import annotations

import pytest

from onnxproof.errors import UserError
from onnxproof.request.configuration import Settings, from_environment, merge, write
from onnxproof.request.session import CPU
from onnxproof.request.thresholds import Thresholds
from onnxproof.request.verbs import VERBS

PROVE = VERBS["prove"]


def settings(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    return Settings.find(tmp_path)


def test_a_subject_inherits_what_is_common_and_sets_its_own(tmp_path):
    found = settings(
        tmp_path,
        '[tool.onnxproof]\nopset = 18\natol = 1e-5\n[tool.onnxproof.subjects.net]\ntarget = "m.py:build"\nexporter = "torchscript"\n',
    )
    target, options = merge(PROVE, "m.py:build", {}, found)
    assert (options["exporter"], options["opset"], options["atol"]) == ("torchscript", 18, Thresholds(1e-5))
    assert merge(PROVE, "net", {}, found)[0] == target == "m.py:build"
    assert "exporter" not in merge(PROVE, "other.py:x", {}, found)[1]


def test_flags_go_before_the_environment_before_the_file(tmp_path, monkeypatch):
    found = settings(tmp_path, "[tool.onnxproof]\nopset = 18\n")
    assert merge(PROVE, "m.py:build", {}, found)[1]["opset"] == 18
    monkeypatch.setenv("ONNXPROOF_OPSET", "20")
    assert merge(PROVE, "m.py:build", {}, found)[1]["opset"] == 20
    assert merge(PROVE, "m.py:build", {"opset": 23}, found)[1]["opset"] == 23


def test_an_unknown_key_names_the_nearest(tmp_path):
    with pytest.raises(UserError, match="did you mean 'exporter'"):
        settings(tmp_path, '[tool.onnxproof]\nexporterr = "dynamo"\n')
    with pytest.raises(UserError, match=r"subjects\.net"):
        settings(tmp_path, '[tool.onnxproof.subjects.net]\ntarget = "m.py:x"\nbach-sizes = [1]\n')
    with pytest.raises(UserError, match="needs a target"):
        settings(tmp_path, "[tool.onnxproof.subjects.net]\nopset = 18\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('opset = "x"', "expected a number"),
        ("heal = 1", "expected true or false"),
        ('accept = ["OX202"]', "expected codes and reasons"),
    ],
)
def test_a_wrong_value_says_what_was_expected(text, message, tmp_path):
    with pytest.raises(UserError, match=message):
        settings(tmp_path, f"[tool.onnxproof]\n{text}\n")


def test_a_wrong_number_in_the_environment_is_refused():
    with pytest.raises(UserError, match="ONNXPROOF_OPSET"):
        from_environment({"ONNXPROOF_OPSET": "new"})
    assert from_environment({"ONNXPROOF_HEAL": "1", "ONNXPROOF_PROVIDER": "CPU"}) == {"heal": True, "provider": (CPU,)}


def test_accepted_codes_come_with_their_reasons(tmp_path):
    found = settings(tmp_path, '[tool.onnxproof]\naccept = { OX202 = "known approximation" }\n')
    _, options = merge(PROVE, "m.py:build", {"accept": {"OX204": "mine"}}, found)
    assert options["accept"] == {"OX202": "known approximation", "OX204": "mine"}


def test_writing_keeps_the_rest_of_the_file_and_finds_the_subject_again(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"  # a comment\n')
    file = write(tmp_path, "net", "m.py:build", {"no_optimize": True, "disable": ["Pad_Fusion"]})
    assert "# a comment" in file.read_text()
    write(tmp_path, "another-name", "m.py:build", {"opset": 18})
    subjects = Settings.find(tmp_path).subjects
    assert set(subjects) == {"net"}
    assert subjects["net"].options == {"no_optimize": False, "disable": ("Pad_Fusion",), "opset": 18}


def test_without_a_project_file_a_file_of_its_own_is_written(tmp_path):
    file = write(tmp_path, "net", "m.py:build", {"opset": 18})
    assert file.name == "onnxproof.toml"
    assert Settings.find(tmp_path / "below").for_target("net").options == {"opset": 18}


MODELS = """\
import torch

class Halves(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.avg_pool2d(x, 3, 2, 1, divisor_override=2)

def good():
    torch.manual_seed(0)
    return torch.nn.Linear(4, 2).eval(), (torch.randn(3, 4),)

def bad():
    return Halves().eval(), (torch.randn(2, 3, 9, 9),)
"""


@pytest.mark.slow
def test_init_writes_a_start_that_prove_all_takes(cli, tmp_path):
    (tmp_path / "models.py").write_text(MODELS)
    assert cli("init", "models.py:good").returncode == 0
    assert cli("init").returncode == 2, "a configuration is not overwritten"
    text = (tmp_path / "onnxproof.toml").read_text()
    (tmp_path / "onnxproof.toml").write_text(text + '\n[subjects.worse]\ntarget = "models.py:bad"\n')
    result = cli("prove", "--all", "--budget", "4s")
    assert result.returncode == 1, result.stderr
    first, worst, best = result.stdout.splitlines()[:3]
    assert first == "BLOCK  2 subjects: 1 SHIP, 1 BLOCK"
    assert worst.split()[:2] == ["BLOCK", "worse"]
    assert best.split()[:2] == ["SHIP", "good"]
    assert (tmp_path / "onnxproof-out" / "good" / "proof.json").is_file()


def test_init_adds_to_a_project_file(cli, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    assert cli("init").returncode == 0
    assert Settings.find(tmp_path).subjects["make"].target == "model.py:make"
    assert 'name = "mine"' in (tmp_path / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prove", "--all"], "init"),
        (["prove"], "expected a TARGET"),
        (["prove", "m.py:x", "--all"], "without a TARGET"),
        (["verify", "--all"], "give it to `prove`"),
    ],
)
def test_what_is_to_be_proved_must_be_clear(arguments, message, cli):
    result = cli(*arguments)
    assert result.returncode == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tool = 1", "tool is expected to be a table, got 1"),
        ("[tool]\nonnxproof = []", "onnxproof is expected to be a table"),
        ("[tool.onnxproof]\nsubjects = 3", "subjects is expected to be a table, got 3"),
        ("[tool.onnxproof]\nseed = " + "9" * 5000, "is not TOML"),
        ("[tool.onnxproof]\nbudget = " + "9" * 400, "expected a time"),
        ("x = " + "[" * 5000, "is not TOML"),
    ],
)
def test_what_is_no_configuration_is_told(text, told, tmp_path):
    with pytest.raises(UserError, match=f"pyproject.toml.*{told}"):
        settings(tmp_path, text)
