"""Forwards that attack the process they run in, beside a wrong file: none may get it shipped."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))


@dataclass(frozen=True)
class Deed:
    """What a forward did, and how the command ended."""

    name: str
    in_process: bool
    code: int
    verdict: str
    called_a_bug: bool


def run_all() -> Iterator[Deed]:
    """Every deed of the tests, in children and in the command's own process."""
    from test_never_a_wrong_ship import DEEDS, FLAGS, write_pair

    for name, deed in DEEDS.items():
        for flags in ((), ("--in-process",)):
            with tempfile.TemporaryDirectory() as folder:
                write_pair(Path(folder), deed)
                command = [sys.executable, "-m", "onnxproof", "prove", "m.py:make", "--onnx", "wrong.onnx", *FLAGS]
                done = subprocess.run([*command, *flags], cwd=folder, capture_output=True, text=True, check=False)
                verdict = done.stdout.partition(" ")[0] if done.stdout else ""
                yield Deed(name, bool(flags), done.returncode, verdict, "bug in onnxproof" in done.stderr)
