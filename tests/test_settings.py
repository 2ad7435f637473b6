"""Settings: flags before the environment, before the configuration, before the defaults."""

from __future__ import annotations

import pytest

from onnxproof.errors import UserError
from onnxproof.settings import Settings, from_environment, merged, write

OPTIONS = {"target": "m.py:build", "exporter": "auto", "opset": None, "accept": None, "reason": None, "atol": None}


def settings(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    return Settings.find(tmp_path)


def test_a_subject_inherits_what_is_common_and_sets_its_own(tmp_path):
    found = settings(
        tmp_path,
        '[tool.onnxproof]\nopset = 18\natol = 1e-5\n[tool.onnxproof.subjects.net]\ntarget = "m.py:build"\nexporter = "torchscript"\n',
    )
    options = merged(OPTIONS, set(), found)
    assert (options["exporter"], options["opset"], options["atol"]) == ("torchscript", 18, ["1e-05"])
    assert merged({**OPTIONS, "target": "net"}, set(), found)["target"] == "m.py:build"
    assert merged({**OPTIONS, "target": "other.py:x"}, set(), found)["exporter"] == "auto"


def test_flags_go_before_the_environment_before_the_file(tmp_path, monkeypatch):
    found = settings(tmp_path, "[tool.onnxproof]\nopset = 18\n")
    assert merged(OPTIONS, set(), found)["opset"] == 18
    monkeypatch.setenv("ONNXPROOF_OPSET", "20")
    assert merged(OPTIONS, set(), found)["opset"] == 20
    assert merged({**OPTIONS, "opset": 23}, {"opset"}, found)["opset"] == 23


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
    assert from_environment({"ONNXPROOF_HEAL": "1", "ONNXPROOF_PROVIDER": "CPU"}) == {"heal": True, "provider": ["CPU"]}


def test_accepted_codes_come_with_their_reasons(tmp_path):
    found = settings(tmp_path, '[tool.onnxproof]\naccept = { OX202 = "known approximation" }\n')
    options = merged(OPTIONS, set(), found)
    assert (options["accept"], options["reason"]) == (["OX202"], ["known approximation"])


def test_writing_keeps_the_rest_of_the_file_and_finds_the_subject_again(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"  # a comment\n')
    file = write(tmp_path, "net", "m.py:build", {"no_optimize": True, "disable": ["Pad_Fusion"]})
    assert "# a comment" in file.read_text()
    write(tmp_path, "another-name", "m.py:build", {"opset": 18})
    subjects = Settings.find(tmp_path).subjects
    assert set(subjects) == {"net"}
    assert subjects["net"].options == {"no_optimize": True, "disable": ["Pad_Fusion"], "opset": 18}


def test_without_a_project_file_a_file_of_its_own_is_written(tmp_path):
    file = write(tmp_path, "net", "m.py:build", {"opset": 18})
    assert file.name == "onnxproof.toml"
    assert Settings.find(tmp_path / "below").for_target("net").options == {"opset": 18}
