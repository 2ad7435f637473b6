"""A whole repository at once: what is passed on, and the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer import Exit

from onnxproof.cli.repository import Outcome, init, prove_all, render_table
from onnxproof.errors import UserError
from onnxproof.request.configuration import Settings


def test_options_of_this_call_go_to_every_subject_but_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "onnxproof.toml").write_text('[subjects.a]\ntarget = "m.py:f"\n[subjects.b]\ntarget = "m.py:g"\n')
    asked = {}

    def prove(name, values):
        asked[name] = values
        raise UserError("nothing\nmore")

    with pytest.raises(Exit) as ended:
        prove_all({"all": True, "jobs": 2, "out": "x", "budget": 4.0, "quiet": True}, prove)
    assert ended.value.exit_code == 2
    assert asked == {name: {"budget": 4.0, "out": str(Path("x") / name)} for name in "ab"}


def test_the_worst_comes_first():
    outcomes = [
        Outcome("good", 0, "ship", "all well"),
        Outcome("bad", 1, "block", "far\n off"),
        Outcome("gone", 2, "error", "no file"),
    ]
    lines = render_table(outcomes, "out").splitlines()
    assert lines[0] == "ERROR  3 subjects: 1 SHIP, 1 BLOCK, 1 failed"
    assert [line.split()[1] for line in lines[1:4]] == ["gone", "bad", "good"]
    assert "far off" in lines[2]


def test_without_subjects_or_with_one_file_for_all_nothing_is_proved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no configuration lists subjects"):
        prove_all({}, None)
    (tmp_path / "onnxproof.toml").write_text('[subjects.a]\ntarget = "m.py:f"\n')
    with pytest.raises(UserError, match="--json names one file"):
        prove_all({"json": "p.json"}, None)


def test_a_target_does_not_become_keys_of_the_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = 'a"b.py:é\n[tool]\nevil = "x"'
    init(target)
    assert [subject.target for subject in Settings.find(tmp_path).subjects.values()] == [target]
