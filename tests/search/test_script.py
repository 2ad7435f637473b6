"""A counterexample as a script: what gets into it, and as what."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import namedtuple
from enum import Enum
from pathlib import Path

import pytest
import torch

from onnxproof.request.python_objects import load_object
from onnxproof.request.session import SessionSettings
from onnxproof.request.specs import ProviderSpec
from onnxproof.search.script import NoScript, Sides, write_script
from onnxproof.subject.assembly import make_subject

EVIL = "n\"\"\"\n'''\nimport pathlib; pathlib.Path('harmed').touch()\n#"
CALM = "open('harmed', 'w')"


class Named(torch.nn.Module):
    def forward(self, **inputs):
        return {name: value["a"] * 2 for name, value in inputs.items()}


class Colour(str, Enum):
    RED = "red"


Pair = namedtuple("Pair", ["first", "second"])


class Paired(torch.nn.Module):
    def forward(self, pair, options):
        return pair.first + options[0][1] if options[1] is None else pair.second


def written(folder: Path, subject, target: str | None, stem: str = "case", title: str = "OX201: y") -> str:
    session = SessionSettings(providers=(ProviderSpec(EVIL, ((EVIL, EVIL),)),), disabled_optimizers=(EVIL,))
    sides = Sides(target, folder / f"{CALM}.onnx", session, {EVIL: EVIL}, {EVIL: EVIL})
    file = folder / f"{stem}.py"
    write_script(file, title, subject, sides, f"{CALM}.module.pt")
    return file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "target",
    [None, f"{CALM}'.onnx", f'{CALM}".pt2', f"{CALM}'.pt", f"{EVIL}.py:{EVIL}", f"{EVIL}:{EVIL}"],
    ids=["pickled", "graph", "program", "torchscript", "file", "import"],
)
def test_no_name_becomes_code(target, tmp_path):
    subject = make_subject(Named(), {CALM: {"a": torch.ones(2), EVIL: EVIL}})
    text = written(tmp_path, subject, target, f'"); {CALM}; ("', f"OX201: {EVIL}")
    tree = ast.parse(text)
    assert f"OX201: {EVIL}" in [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert EVIL not in ast.get_docstring(tree, clean=False)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"open", "pathlib", "harmed"}
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0  # there is nothing to load
    assert not (tmp_path / "harmed").exists()


def test_the_call_is_written_with_its_structure(tmp_path):
    inputs = (Pair(torch.ones(2), torch.zeros(2)), [(1, torch.tensor(3.0)), None])
    text = written(tmp_path, make_subject(Paired(), inputs), "m.py:model")
    call = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and ast.unparse(n.func) == "module")
    values = make_subject(Paired(), inputs).inputs.tensors
    assert len(values) == 3
    assert eval(ast.unparse(call), {"module": Paired(), "inputs": values}).tolist() == [4, 4]


def test_what_code_cannot_build_has_no_script(tmp_path):
    subject = make_subject(Named(), {"x": {"a": torch.ones(2), "colour": Colour.RED}})
    with pytest.raises(NoScript, match="Colour"):
        written(tmp_path, subject, None)


def test_a_file_of_a_package_is_imported_as_a_part_of_it(tmp_path, monkeypatch):
    package = tmp_path / "shelf"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "parts.py").write_text("import torch\n\n\nclass Half(torch.nn.Identity):\n    pass\n")
    (package / "model.py").write_text("from .parts import Half\n\n\ndef make():\n    return Half()\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    target = f"{package / 'model.py'}:make"
    subject = make_subject(load_object(target)[0](), (torch.ones(2),))
    text = written(tmp_path, subject, target)
    only = text.partition("def main")[0] + "print(type(load_module()).__name__)"
    (tmp_path / "only.py").write_text(only)
    done = subprocess.run([sys.executable, "only.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "Half\n", done.stderr
