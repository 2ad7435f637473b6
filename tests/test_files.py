"""Files appear whole or not at all, and nothing is left of those that did not."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from onnxproof import files
from onnxproof.errors import NotWritten
from onnxproof.files import hold, make_scratch, replacing, sweep, write_file


def list_files(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_file_is_written_with_its_folder(tmp_path):
    write_file(tmp_path / "a" / "b.txt", "ü\ud800")
    assert (tmp_path / "a" / "b.txt").read_bytes() == "ü?".encode()
    assert list_files(tmp_path) == ["a", "b.txt"]


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("before", [None, "old"])
def test_on_a_full_disk_the_old_file_stays_and_no_half_is_left(before, tmp_path, monkeypatch):
    place = tmp_path / "proof.json"
    if before is not None:
        place.write_text(before)
    monkeypatch.setattr(files, "sync", full)
    with pytest.raises(NotWritten, match=r"proof.json cannot be written: No space left on device"):
        write_file(place, "new")
    assert list_files(tmp_path) == ([] if before is None else ["proof.json"])
    assert before is None or place.read_text() == before


def test_a_writer_that_fails_leaves_what_was_there(tmp_path):
    place = tmp_path / "x"
    place.write_text("old")

    def write_half():
        with replacing(place) as half:
            half.write_text("ne")
            raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        write_half()
    assert place.read_text() == "old"
    assert list_files(tmp_path) == ["x"]


def test_devices_and_links_are_not_replaced(tmp_path):
    write_file(os.devnull, "gone")
    assert not os.path.isfile(os.devnull)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_file(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_a_folder_in_its_place_is_told(tmp_path):
    with pytest.raises(NotWritten, match="Is a directory"):
        write_file(tmp_path, "x")


def test_a_file_and_what_belongs_to_it_come_together(tmp_path, monkeypatch):
    place = tmp_path / "model.onnx"
    place.write_text("old")
    with replacing(place) as half:
        half.write_text("new")
        half.with_name("model.onnx.data").write_text("weights")
    assert list_files(tmp_path) == ["model.onnx", "model.onnx.data"]
    monkeypatch.setattr(files, "sync", full)
    with pytest.raises(NotWritten), replacing(place) as half:
        half.write_text("newer")
    assert list_files(tmp_path) == ["model.onnx", "model.onnx.data"]
    assert place.read_text() == "new"


def test_what_killed_writers_left_is_swept_and_nothing_else(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / f".abc{files.PARTIAL}").touch()
    (tmp_path / f".def{files.PARTIAL}").mkdir()
    (tmp_path / f"mine{files.PARTIAL}").touch()
    (tmp_path / "other" / "deeper").mkdir(parents=True)
    (tmp_path / "other" / files.JOURNAL).touch()
    (tmp_path / "other" / "deeper" / f".ghi{files.PARTIAL}").touch()
    sweep(tmp_path)
    assert list_files(tmp_path) == [
        f".ghi{files.PARTIAL}",
        ".journal",
        "deep",
        "deeper",
        f"mine{files.PARTIAL}",
        "other",
    ]


def test_a_file_is_held_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TIDYING", 0.1)
    with hold(tmp_path / "lock") as mine, hold(tmp_path / "lock") as theirs:
        assert mine is not None
        assert theirs is None
    with hold(tmp_path / "lock") as again:
        assert again is not None


def test_a_scratch_folder_goes_and_takes_forgotten_ones_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(files.tempfile, "tempdir", str(tmp_path))
    forgotten, fresh = tmp_path / f"{files.SCRATCH}forgotten", tmp_path / f"{files.SCRATCH}fresh"
    for folder in (forgotten, fresh):
        folder.mkdir()
        (folder / "values.npy").touch()
    long_ago = time.time() - 2 * files.FORGOTTEN
    os.utime(forgotten, (long_ago, long_ago))
    with make_scratch() as held:
        os.utime(held, (long_ago, long_ago))
        with make_scratch() as other:
            assert held.is_dir()
            assert other != held
        assert list_files(tmp_path) == sorted([held.name, fresh.name, "values.npy"])
    assert list_files(tmp_path) == sorted([fresh.name, "values.npy"])


@pytest.mark.parametrize(
    ("place", "found"), [("/a", "/a"), (f"/a/{files.SCRATCH}0", "/a"), ("/a/very/long/name/of/a/folder", "/tmp")]
)
def test_what_needs_a_short_path_gets_one_that_outlives_the_run_s_own(place, found, monkeypatch):
    monkeypatch.setattr(files.tempfile, "gettempdir", lambda: place)
    assert files.find_temporary(20) == Path(found)
