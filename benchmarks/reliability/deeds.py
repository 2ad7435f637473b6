"""Forwards that attack the process they run in, beside a wrong file: none may get it shipped."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))


@dataclass(frozen=True)
class Deed:
    """What a forward did, and how the command ended."""

    name: str
    file: str
    in_process: bool
    code: int
    verdict: str
    codes: tuple[str, ...]
    """Of the findings that count."""
    told: str
    """The error, where there is no verdict."""
    called_a_bug: bool
    seconds: float


def run_all(names: Sequence[str] = ()) -> Iterator[Deed]:
    """Every deed of the tests, beside a wrong and a right file, in children and in the command's own process."""
    from test_never_a_wrong_ship import DEEDS

    for name in names or DEEDS:
        for file, flags in itertools.product(("wrong", "right"), ((), ("--in-process",))):
            yield _run(name, DEEDS[name], file, flags)


def _run(name: str, deed: str, file: str, flags: tuple[str, ...]) -> Deed:
    from test_never_a_wrong_ship import FLAGS, write_pair

    with tempfile.TemporaryDirectory() as folder:
        write_pair(Path(folder), deed)
        command = [sys.executable, "-m", "onnxproof", "verify", "m.py:make", "--onnx", f"{file}.onnx", *FLAGS, *flags]
        command += ["--json", "said.json"]
        began = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", check=False, timeout=600
        )
        said = Path(folder) / "said.json"
        proof = json.loads(said.read_text()) if said.is_file() else {"verdict": "", "findings": []}
        codes = sorted({f["code"] for f in proof["findings"] if f["severity"] != "note"})
        told = "" if said.is_file() else (done.stderr.strip().splitlines() or [""])[-1][:200]
        bug, took = "bug in onnxproof" in done.stderr, time.perf_counter() - began
        return Deed(name, file, bool(flags), done.returncode, proof["verdict"], tuple(codes), told, bug, took)
