"""The README's commands and code are true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_python_blocks_run(tmp_path):
    for code in blocks("python"):
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith("ship")


def test_make_commands_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"make ([a-z]+)", "\n".join(blocks("bash")))) <= targets


def test_flags_exist(cli):
    verbs = ("prove", "report", "evaluate", "bench", "lint", "explain")
    text = "".join(cli(verb, "--help").stdout for verb in verbs)
    for flag in set(re.findall(r"--[a-z][a-z-]+", README)):
        assert flag in text, flag


def test_the_demo_ships(cli):
    result = cli("demo")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("SHIP  digits")
