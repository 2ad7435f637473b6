"""A disk that is full: at every single write of a run, and for real, on file systems of a few kilobytes."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from benchmarks.reliability.kills import SMALL, list_broken
from benchmarks.reliability.subjects import write_subjects
from onnxproof import files
from onnxproof.files import PARTIAL
from onnxproof.pipeline import journal

COMMANDS = {
    "export": ("prove", "m.py:right", *SMALL, "--markdown", "onnxproof-out/m.md", "--junit", "onnxproof-out/j.xml"),
    "wrong file": ("prove", "m.py:scaled", "--onnx", "wrong.onnx", *SMALL, "--json", "onnxproof-out/again.json"),
    "evaluate": ("evaluate", "m.py:scaled", "--onnx", "right.onnx", "--data", "d.npz"),
}
EXITS = {0, 1, 2}


@dataclass(frozen=True)
class Full:
    """A run on a full disk."""

    command: str
    where: str
    code: int
    verdict: bool
    """Whether the verdict was said all the same."""
    told: bool
    """Whether a sentence says what could not be written."""
    broken: tuple[str, ...]
    called_a_bug: bool


@contextmanager
def _fail_at(number: int, seen: list[str]) -> Iterator[None]:
    """The disk is full from the given write on; all are counted."""

    def full(where: str) -> None:
        seen.append(where)
        if len(seen) > number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    settle, write = files.settle, journal.write_all

    def settle_or_fail(half: Path, place: Path, *, lasting: bool = True) -> None:
        full(place.name)
        settle(half, place, lasting=lasting)

    def write_or_fail(descriptor: int, data: bytes) -> None:
        full("journal")
        write(descriptor, data)

    with patch.object(files, "settle", settle_or_fail), patch.object(journal, "write_all", write_or_fail):
        yield


def _run_here(folder: Path, command: str, number: int, seen: list[str]) -> Full:
    from onnxproof.cli import main, proving

    out, err, code = io.StringIO(), io.StringIO(), 0
    before = Path.cwd()
    os.chdir(folder)
    words = ["onnxproof", *COMMANDS[command], "--in-process"]
    try:
        with (
            _fail_at(number, seen),
            redirect_stdout(out),
            redirect_stderr(err),
            patch.object(sys, "argv", words),
            patch.object(proving, "watch", lambda request: None),
        ):
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 2
    finally:
        os.chdir(before)
    return _look(folder, command, seen[number] if number < len(seen) else "", code, out.getvalue(), err.getvalue())


def _look(folder: Path, command: str, where: str, code: int, out: str, err: str) -> Full:
    broken = [*list_broken(folder), *(str(file.name) for file in folder.rglob(f".*{PARTIAL}"))]
    verdict = out.startswith(("SHIP", "REVIEW", "BLOCK"))
    told = "cannot be written" in out + err or "No space left" in out + err
    return Full(command, where, code, verdict, told, tuple(broken), "bug in onnxproof" in err)


def fill_every_write(command: str, step: int = 1) -> list[Full]:
    """One run for each write, on a disk that is full from there on."""
    results: list[Full] = []
    writes: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_subjects(folder)
        _run_here(folder, command, 10**9, writes)
    # The journal is written for every case: the first, the last and one between are as good as all.
    numbers = [i for i, where in enumerate(writes) if where != "journal"]
    numbers += [i for i, where in enumerate(writes) if where == "journal"][:: max(1, len(writes) // 3)]
    for number in sorted(numbers)[::step]:
        with tempfile.TemporaryDirectory() as name:
            write_subjects(Path(name))
            results.append(_run_here(Path(name), command, number, []))
    return results


def fill_for_real(command: str, kilobytes: int) -> Full:
    """A run into a file system of this size; needs the right to mount one."""
    with tempfile.TemporaryDirectory() as name:
        folder, out = Path(name), Path(name) / "onnxproof-out"
        write_subjects(folder)
        out.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", out], check=True)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "onnxproof", *COMMANDS[command]],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            return _look(folder, command, f"{kilobytes} kB", done.returncode, done.stdout, done.stderr)
        finally:
            subprocess.run(["umount", out], check=True)
