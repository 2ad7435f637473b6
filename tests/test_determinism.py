"""The same command, the same proof, byte for byte but for times: whatever the hash seed, locale, time zone, terminal and folder are."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from benchmarks.reliability.kills import normalise
from benchmarks.reliability.subjects import write_subjects

FLAGS = ("--batch-sizes", "2,3", "--budget", "5s")
COMMANDS = {
    "right": ("verify", "m.py:right", *FLAGS),
    "wrong": ("verify", "m.py:scaled", "--onnx", "wrong.onnx", *FLAGS),
    "evaluate": ("evaluate", "m.py:scaled", "--onnx", "right.onnx", "--data", "d.npz"),
}
ELSEWHERE = {
    "PYTHONHASHSEED": "12345",
    "LANG": "de_DE.UTF-8",
    "LC_ALL": "C",
    "TZ": "Asia/Kathmandu",
    "COLUMNS": "37",
    "TERM": "dumb",
    "PYTHONUTF8": "1",
}
# What says in how many processes it was done.
SHARED = ("workers", "where")


def run(folder, cwd, words, environment):
    """The summary and the proof of a command whose paths are absolute."""
    absolute = [str(folder / word) if (folder / word.partition(":")[0]).is_file() else word for word in words]
    command = [sys.executable, "-m", "onnxproof", *absolute, "--out", str(folder / "out")]
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    text = (folder / "out" / "proof.json").read_text()
    proof = normalise(json.loads(text))
    if proof.get("quality"):
        proof["quality"] = {key: value for key, value in proof["quality"].items() if key not in SHARED}
    return done.stdout, json.dumps(proof)


def list_words(summary):
    """The lines that tell no times, and not in how many processes it was done."""
    return [line.removesuffix(", 2 processes") for line in summary.splitlines() if " s" not in line]


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n == "wrong" else pytest.mark.slow) for n in COMMANDS])
def test_the_same_command_gives_the_same_proof(name, tmp_path):
    write_subjects(tmp_path)
    (tmp_path / "away").mkdir()
    workers = ("--workers", "2") if name == "evaluate" else ()
    here = run(tmp_path, tmp_path, COMMANDS[name], {"PYTHONHASHSEED": "0"})
    for file in (tmp_path / "out").rglob("*.npz"):  # a kept counterexample would be tried first, as it should
        file.unlink()
    away = run(tmp_path, tmp_path / "away", (*COMMANDS[name], *workers), ELSEWHERE)
    assert away[1] == here[1]
    assert list_words(away[0]) == list_words(here[0])


def test_what_times_decide_is_left_out_with_the_times():
    """How busy the machine is decides whether a speed-up can be told, and that the verdict: a resumed `bench` may meet another load."""
    slow = {"code": "OX404", "severity": "review"}
    other = {"code": "OX201", "severity": "block"}
    busy = {"code": "OX412", "severity": "note"}
    calm, loaded = {"verdict": "review", "findings": [slow]}, {"verdict": "ship", "findings": [busy]}
    assert normalise(calm) == normalise(loaded) == {"verdict": "ship", "findings": []}
    assert normalise({"verdict": "block", "findings": [slow, other]}) == {"verdict": "block", "findings": [other]}
