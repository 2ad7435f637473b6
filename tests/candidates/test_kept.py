"""Folders that are filled on demand: whole or not there, whoever else is at it."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from onnxproof.candidates import kept
from onnxproof.candidates.kept import keep_folder, keep_list, run_installer
from onnxproof.errors import UserError


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "onnxproof" / "runtimes"


def test_a_folder_is_filled_once(cache):
    filled = []

    def fill(folder):
        filled.append(folder)
        (folder / "library").write_text("whole")

    for _ in range(2):
        assert (keep_folder("one", fill) / "library").read_text() == "whole"
    assert len(filled) == 1
    assert os.listdir(cache) == ["one"]


def test_one_that_was_not_finished_is_not_there(cache):
    def fail(folder):
        (folder / "half").write_text("a half")
        raise UserError("no network")

    with pytest.raises(UserError, match="no network"):
        keep_folder("one", fail)
    assert os.listdir(cache) == []
    assert not (keep_folder("one", lambda folder: None) / "half").exists()


def test_two_at_once_do_not_mix(cache):
    meet = threading.Barrier(2)

    def fill(name):
        def work(folder):
            (folder / name).write_text(name)
            meet.wait(10)

        return work

    threads = [threading.Thread(target=keep_folder, args=("one", fill(name))) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert os.listdir(cache) == ["one"]
    assert os.listdir(cache / "one") in (["a"], ["b"])


def test_a_list_is_believed_for_a_day(cache, monkeypatch):
    assert keep_list("releases", lambda: ["1"]) == ["1"]
    assert keep_list("releases", lambda: ["2"]) == ["1"]
    monkeypatch.setattr(kept, "FRESH", -1.0)
    assert keep_list("releases", lambda: ["2"]) == ["2"]


def test_an_installer_that_fails_is_the_users_error_with_its_last_words():
    script = "import sys; print('one\\ntwo\\nthree', file=sys.stderr); sys.exit(3)"
    with pytest.raises(UserError, match=r"a runtime: .* failed: two three"):
        run_installer([sys.executable, "-c", script], "a runtime")
    with pytest.raises(UserError, match="a runtime: expected no-such-installer on the path, came No such file"):
        run_installer(["no-such-installer"], "a runtime")


def test_a_cache_that_cannot_be_made_is_the_users_error(tmp_path, monkeypatch):
    (tmp_path / "onnxproof").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError, match="expected a folder that runtimes can be kept in"):
        keep_folder("one", lambda folder: None)
