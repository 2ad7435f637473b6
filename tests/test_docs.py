"""Every code block of the documentation is run, page by page, in a folder of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onnxproof.cli import reference
from onnxproof.findings import pages

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"(?:^<!-- exit (\d) -->\n)?^```(\w+)([^\n]*)\n(.*?)^```", re.M | re.S)
"""The exit code of the first line where it is not 0, the language, what else the fence says, the code."""
RUN = [str(path.relative_to(DOCS)) for path in sorted(DOCS.rglob("*.md")) if BLOCK.search(path.read_text("utf-8"))]

QUICK = ("howto/lengths.md",)
"""Pages that are run with every change; `make test-all` runs the others too."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with the examples, and `onnxproof` and `python` on the path."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    tools = tmp_path / ".bin"
    tools.mkdir()
    for name, arguments in (("python", ""), ("onnxproof", "-m onnxproof ")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        (tools / name).chmod(0o755)
    return tmp_path


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page", [page if page in QUICK else pytest.param(page, marks=pytest.mark.slow) for page in RUN]
)
def test_the_commands_of_a_page_do_what_it_says(page, folder):
    environment = {**os.environ, "PATH": f"{folder / '.bin'}{os.pathsep}{os.environ['PATH']}"}
    ran = 0
    for expected, language, header, code in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        title = re.search(r'title="([^"]+)"', header)
        if title:
            (folder / title.group(1)).write_text(code)
            continue
        lines = [code] if language == "python" else code.splitlines()
        for number, line in enumerate(lines):
            command = [sys.executable, "-c", line] if language == "python" else ["sh", "-c", line]
            result = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
            wanted = int(expected or 0) if number == 0 else 0
            assert result.returncode == wanted, f"{line}\n{result.stdout}\n{result.stderr}"
            ran += 1
    assert ran


def test_the_generated_pages_are_up_to_date():
    assert (DOCS / "findings.md").read_text() == pages.render_page(), "run `make reference`"
    assert (DOCS / "reference.md").read_text() == reference.render_reference(), "run `make reference`"


def test_links_lead_somewhere():
    for path in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / link).exists(), f"{path.name}: {link}"


def test_the_site_lists_every_page():
    listed = set(re.findall(r": ([\w/.-]+\.md)", (ROOT / "mkdocs.yml").read_text()))
    assert listed == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
