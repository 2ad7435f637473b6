"""Names in a file are data: whatever they hold, nothing of it runs, moves the cursor, forges a line or becomes markup."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import onnxproof
from onnxproof.errors import show_line, show_text
from onnxproof.testing import describe

PLANT = "import pathlib; pathlib.Path('PWNED').touch()"
NAMES = {
    "code": f'n"""\n{PLANT}\nx = """ it\'s \\\' \\" \'\'\'\n{PLANT}\n#',
    "terminal": "\x1b[2J\x1b]0;owned\x07\r\x9b1m\x08\x7f\u202e\u2028\nSHIP  model: all is well\n::add-mask::x\n##[stop-commands]y",
    "markup": "</script><script>window.pwned=1</script><img src=x onerror=alert(1)> ]]> | `x` $(touch PWNED) ${title}",
    "long": "x" * 400,
}


def write_pair(folder: Path, name: str) -> tuple[Path, Path]:
    """Two files that say the same but for a weight; every name in them is hostile."""
    files = folder / "first.onnx", folder / "second.onnx"
    for file, scale in zip(files, (2.0, 2.5), strict=True):
        ports = [helper.make_tensor_value_info(f"{name} {end}", TensorProto.FLOAT, [name, 3]) for end in ("in", "out")]
        nodes = [
            helper.make_node("Mul", [f"{name} in", "w"], [f"{name} inner"], name=f"{name} product"),
            helper.make_node("Sin", [f"{name} inner"], [f"{name} out"], name=f"{name} sine"),
        ]
        weight = numpy_helper.from_array(np.full(3, scale, np.float32), "w")
        graph = helper.make_graph(nodes, name, ports[:1], ports[1:], [weight], doc_string=name)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), file)
    return files


def is_calm(text: str) -> bool:
    """Whether it moves no cursor, forges no line and holds no command that GitHub obeys."""
    lines = text.split("\n")
    commands = [
        line for line in lines if line.lstrip().startswith("::") and not line.startswith(("::error t", "::notice t"))
    ]
    return all(map(str.isprintable, lines)) and not commands and "##[" not in text and "\nSHIP" not in text


def run_script(file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, file], cwd=file.parent, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "kind", ["code", "terminal", *(pytest.param(k, marks=pytest.mark.slow) for k in ("markup", "long"))]
)
def test_names_stay_data_in_everything_that_is_written(kind, cli, tmp_path):
    name = NAMES[kind]
    write_pair(tmp_path, name)
    reports = {"--html": "r.html", "--junit": "r.xml", "--markdown": "r.md"}
    flags = [part for pair in reports.items() for part in pair]
    result = cli("diff", "first.onnx", "second.onnx", "--out", "out", "--github", "--verbose", *flags)
    assert result.returncode == 1, result.stderr
    assert is_calm(result.stdout)
    assert is_calm(result.stderr)
    assert result.stdout.count("BLOCK") == 1
    ElementTree.parse(tmp_path / "r.xml")
    assert "<script>window.pwned" not in (tmp_path / "r.html").read_text()
    assert "<img src=x" not in (tmp_path / "r.html").read_text()
    assert "<script" not in (tmp_path / "r.md").read_text()
    assert is_calm((tmp_path / "r.md").read_text().replace("\u200b", ""))
    scripts = [*tmp_path.glob("out/culprits/*/reproduce.py"), *tmp_path.glob("out/counterexamples/*.py")]
    assert len(scripts) == 2
    for script in scripts:
        done = run_script(script)
        assert "onnxruntime" in done.stdout, done.stderr
        assert all(map(str.isprintable, done.stdout.split("\n")))
    again = cli("report", "out/proof.json")
    assert is_calm(again.stdout)
    assert not [*tmp_path.rglob("PWNED")]


class Nasty(torch.nn.Module):
    """Its submodule, its inputs and its outputs have hostile names."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.add_module(name.replace(".", " "), torch.nn.Linear(3, 2))

    def forward(self, values):
        (inner,) = self.children()
        return {f"{self.name} out": torch.asin(inner(values[f"{self.name} in"]))}


@pytest.mark.slow
def test_names_of_a_module_stay_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = NAMES["code"] + NAMES["terminal"]
    torch.manual_seed(0)
    module = Nasty(name)
    exported = onnxproof.export(module, ({f"{name} in": torch.rand(2, 3)},), out=tmp_path / "made")
    model = onnx.load(tmp_path / "made" / "model.onnx")
    next(node for node in model.graph.node if node.op_type == "Asin").op_type = "Sin"
    onnx.save(model, tmp_path / "wrong.onnx")
    assert exported.artifact is not None
    inputs = ({f"{name} in": torch.rand(2, 3)},)
    proof = onnxproof.prove(module, inputs, onnx=tmp_path / "wrong.onnx", out=tmp_path / "out")
    assert proof.verdict == "block"
    assert is_calm(describe(proof))
    scripts = [*tmp_path.glob("out/culprits/*/reproduce.py"), *tmp_path.glob("out/counterexamples/*.py")]
    assert scripts
    for script in scripts:
        run_script(script)
    assert not [*tmp_path.rglob("PWNED")]


def test_what_cannot_be_seen_is_escaped_and_the_rest_is_left_alone():
    assert show_line("é × 漢 a\\b") == "é × 漢 a\\b"
    assert show_line("a\x1b[1m\n\t\u202e\ud800") == "a\\x1b[1m\\n\\t\\u202e\\ud800"
    assert show_line("  ::error::x") == "  \\::error::x"
    assert show_line("a::b ##[x]") == "a::b #\\#[x]"
    assert show_text("a\nb\r") == "a\nb\\r"
