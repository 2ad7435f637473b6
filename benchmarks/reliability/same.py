"""The same command under other circumstances: the same proof, byte for byte but for times.

Each run gets a mixture of its own of hash seed, locale, time zone, terminal, folder and number of processes; every second one runs beside an
endless loop on every core. Nothing that a run writes may differ but times, and how the command was called.
"""

from __future__ import annotations

import hashlib
import json
import os
import pty
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability.kills import normalise
from benchmarks.reliability.subjects import write_subjects
from benchmarks.speed import busy
from onnxproof.files import JOURNAL

FLAGS = ("--batch-sizes", "2,3", "--budget", "20s")
COMMANDS = {
    "export": ("verify", "m.py:right", *FLAGS),
    "right file": ("verify", "m.py:scaled", "--onnx", "right.onnx", *FLAGS),
    "wrong file": ("verify", "m.py:scaled", "--onnx", "wrong.onnx", *FLAGS),
    "evaluate": ("evaluate", "m.py:scaled", "--onnx", "right.onnx", "--data", "d.npz"),
}
SETTINGS: dict[str, tuple[str, ...]] = {
    "PYTHONHASHSEED": ("0", "1", "77", "12345", "4294967295"),
    "LC_ALL": ("C", "POSIX", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8"),
    "LANG": ("C", "fr_FR.ISO-8859-1", "en_US.UTF-8"),
    "TZ": ("UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati"),
    "COLUMNS": ("20", "80", "300"),
    "TERM": ("dumb", "xterm-256color", ""),
    "NO_COLOR": ("", "1"),
    "PYTHONUTF8": ("0", "1"),
}
# The folder it is called from: its own, the one above it, or one that has nothing to do with it.
PLACES = ("its own", "above", "elsewhere")
# What says in how many processes it was done.
SHARED = ("workers", "where")
# What tells times in its own words, or is another view of the proof.
TIMED = ("proof.json", "report.html", JOURNAL)


@dataclass(frozen=True)
class Same:
    """One run, how it ended, and where what it wrote differs from the first of its kind."""

    command: str
    settings: dict[str, str]
    loaded: bool
    seconds: float
    code: int
    different: tuple[str, ...]
    """Places in the proof, and files."""


def run_all(count: int, seed: int, names: list[str]) -> Iterator[Same]:
    """So many runs of each command."""
    for name in names:
        first: dict[str, Any] = {}
        for number in range(count):
            generator = random.Random(f"{seed} {name} {number}")
            settings = {key: generator.choice(values) for key, values in SETTINGS.items()}
            settings |= {"place": PLACES[number % 3], "terminal": generator.choice(("yes", "no"))}
            settings |= {"workers": str(1 + number % 3)} if name == "evaluate" else {}
            loaded = number % 2 == 1
            with busy(loaded), tempfile.TemporaryDirectory(prefix=f"same-{generator.randrange(10**9)}-") as folder:
                began = time.monotonic()
                code, written = _run(Path(folder).resolve(), COMMANDS[name], settings)
                seconds = time.monotonic() - began
            first = first or written
            different = tuple(list_differences(first, written))
            yield Same(name, settings, loaded, seconds, code, different)


def _run(folder: Path, words: tuple[str, ...], settings: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """The exit code, and everything that the run wrote."""
    own = folder / "own"
    own.mkdir()
    write_subjects(own)
    place = {"its own": own, "above": folder, "elsewhere": Path("/")}[settings["place"]]
    shown = "" if place == own else f"{os.path.relpath(own, place)}/"
    called = [f"{shown}{word}" if (own / word.partition(":")[0]).is_file() else word for word in words]
    workers = ("--workers", settings["workers"]) if "workers" in settings else ()
    command = [sys.executable, "-m", "onnxproof", *called, *workers, "--out", f"{shown}out"]
    environment = {**os.environ, **{key: value for key, value in settings.items() if key.isupper()}}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    code = _call(command, place, environment, terminal=settings["terminal"] == "yes")
    return code, _read(own / "out", [f"{own}/", shown])


def _call(command: list[str], place: Path, environment: dict[str, str], *, terminal: bool) -> int:
    """The exit code of a command whose output goes to a terminal, or to a pipe."""
    if not terminal:
        return subprocess.run(command, cwd=place, env=environment, capture_output=True, check=False).returncode
    main, side = pty.openpty()
    run = subprocess.Popen(command, cwd=place, env=environment, stdin=side, stdout=side, stderr=side)
    os.close(side)
    reader = threading.Thread(target=_drain, args=(main,), daemon=True)
    reader.start()
    code = run.wait()
    reader.join(10)
    os.close(main)
    return code


def _drain(main: int) -> None:
    with suppress(OSError):  # the other end is closed
        while os.read(main, 4096):
            pass


def _read(out: Path, prefixes: list[str]) -> dict[str, Any]:
    """The proof without times, and a digest of every file that tells none; the folder's own name is left out."""
    text = (out / "proof.json").read_text(encoding="utf-8")
    files = {str(file.relative_to(out)): file for file in sorted(out.rglob("*")) if file.is_file()}
    contents = {name: _read_plain(file) for name, file in files.items() if file.name not in TIMED}
    for prefix in filter(None, prefixes):
        text = text.replace(prefix, "")
        contents = {name: data.replace(prefix.encode(), b"") for name, data in contents.items()}
    proof = normalise(json.loads(text))
    if proof.get("quality"):
        proof["quality"] = {key: value for key, value in proof["quality"].items() if key not in SHARED}
    return {"proof": proof, "files": {name: hashlib.sha256(contents.get(name, b"")).hexdigest() for name in files}}


def _read_plain(file: Path) -> bytes:
    """The bytes of a file; of a shard of an evaluation those of its arrays, without how long each stage took."""
    if not file.name.startswith("shard-"):
        return file.read_bytes()
    with np.load(file) as archive:
        arrays = {name: archive[name] for name in archive.files}
    told = normalise(json.loads(str(arrays.pop("meta"))))
    told.pop("fingerprint")  # it has the paths and the times of the data's files in it
    return json.dumps(told).encode() + b"".join(name.encode() + array.tobytes() for name, array in arrays.items())


def list_differences(first: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two values differ."""
    if isinstance(first, dict) and isinstance(other, dict):
        for key in {**first, **other}:
            yield from list_differences(first.get(key, "nothing"), other.get(key, "nothing"), f"{path}/{key}")
    elif isinstance(first, list) and isinstance(other, list) and len(first) == len(other):
        for number, pair in enumerate(zip(first, other, strict=True)):
            yield from list_differences(*pair, f"{path}/{number}")
    elif first != other or type(first) is not type(other):
        yield f"{path}: {str(first)[:60]} ≠ {str(other)[:60]}"
