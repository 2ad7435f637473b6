"""The README's commands and code are true."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_python_blocks_run(tmp_path):
    for code in blocks("python"):
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith("ship")


def test_the_first_two_commands_do_what_they_say():
    demo, test = (line.split("#")[0].strip() for line in blocks("bash")[0].splitlines())
    assert (demo, test) == ("make demo", "make test")
    shown = subprocess.run(demo.split(), capture_output=True, text=True, cwd=ROOT, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "\nSHIP  digits" in f"\n{shown.stdout}"
    # This is one of the tests that the second one runs.
    planned = subprocess.run([*test.split(), "--dry-run"], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "-m pytest" in planned.stdout


@pytest.mark.timeout(300)
def test_installing_and_proving_as_written(tmp_path):
    """In an environment of its own, to which the packages that are installed here are lent."""
    for name in ("src", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        source = ROOT / name
        shutil.copytree(source, tmp_path / name) if source.is_dir() else shutil.copy(source, tmp_path / name)
    (tmp_path / "model.py").write_text(
        "import torch\ndef make():\n    return torch.nn.Linear(4, 2).eval(), (torch.ones(2, 4),)\n"
    )
    venv.create(tmp_path / "env", with_pip=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib"))
    environment = {**os.environ, "PATH": f"{tmp_path / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    for line in blocks("bash")[1].splitlines():
        result = subprocess.run(
            ["sh", "-c", line], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
        )
        assert result.returncode == 0, f"{line}\n{result.stdout}\n{result.stderr}"
    assert result.stdout.startswith("SHIP")
    assert (site / "onnxproof").is_dir()


def test_flags_exist(cli):
    verbs = ("prove", "report", "evaluate", "quantize", "bench", "lint", "explain")
    text = "".join(cli(verb, "--help").stdout for verb in verbs)
    for flag in set(re.findall(r"--[a-z][a-z-]+", README)):
        assert flag in text, flag
