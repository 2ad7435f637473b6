"""The search: it reaches what ordinary inputs do not, shrinks what it finds, and keeps it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import onnxproof
import onnxproof.errors
from onnxproof.cases import counterexample_files as keep


class DeadRow(torch.nn.Module):
    """The exporter removes the epsilon: NaN where all inner units of a row are dead."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        # So many units that no planned batch has a row with all of them dead, and so many inputs that such a row exists.
        self.inner, self.outer = torch.nn.Linear(16, 20), torch.nn.Linear(20, 3)

    def forward(self, x):
        h = torch.relu(self.inner(x))
        return self.outer(h / (h.norm(dim=-1, keepdim=True) + 1e-8))


class Lookup(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.head = torch.nn.Embedding(5000, 8), torch.nn.Linear(8, 2)

    def forward(self, ids):
        return self.head(self.table(ids).mean(1))


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4)
        )

    def forward(self, x):
        return torch.sigmoid(self.layers(x))


def exported(module, inputs, folder, **options):
    proof = onnxproof.export(module.eval(), inputs, out=folder, **options)
    return Path(proof.artifact.path)


def change(path, edit):
    model = onnx.load(path)
    edit(model)
    onnx.save(model, path)
    return path


# --- finding --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_row_of_dead_units_is_reached_by_gradient(tmp_path):
    inputs = (torch.randn(4, 16),)
    quick = onnxproof.prove(DeadRow().eval(), inputs, out=tmp_path / "a")
    found = onnxproof.prove(DeadRow().eval(), inputs, out=tmp_path / "b", search=60.0)
    # By default too: the division differs in its trial, which a search then brings about.
    assert "OX205" in {f.code for f in quick.findings}
    block = next(f for f in found.findings if f.code == "OX205")
    assert block.severity == "block"
    assert block.where.case.startswith("search/")
    assert block.where.node == "node_div"
    assert found.search.inputs < 2000


@pytest.mark.slow
def test_the_same_seed_finds_the_same_input(tmp_path):
    paths = []
    for name in ("a", "b"):
        proof = onnxproof.prove(DeadRow().eval(), (torch.randn(4, 16),), out=tmp_path / name, search=60.0)
        paths.append((proof.search.found, tmp_path / name / "counterexamples" / ".found.npz"))
    (first, one), (second, other) = paths
    assert first == second
    assert np.array_equal(keep.read(one)["x"], keep.read(other)["x"])


def test_every_id_of_a_table_is_tried(tmp_path):
    inputs = (torch.randint(0, 5000, (2, 6)),)
    path = exported(Lookup(), inputs, tmp_path)

    def corrupt(model):
        table = next(t for t in model.graph.initializer if list(t.dims) == [5000, 8])
        values = onnx.numpy_helper.to_array(table).copy()
        values[3217] *= 1.5
        table.CopyFrom(onnx.numpy_helper.from_array(values, table.name))

    change(path, corrupt)
    proof = onnxproof.verify(Lookup().eval(), inputs, onnx=path, out=tmp_path / "v", search=60.0)
    assert proof.verdict != "ship"
    kept = keep.read(Path(proof.counterexamples[0].file))["ids"]
    assert kept.tolist() == [[3217] * kept.shape[1]] or 3217 in kept
    assert kept.shape[0] == 1


def test_a_limit_that_is_only_in_the_graph_is_reached(tmp_path):
    inputs = (torch.randn(4, 6),)
    path = exported(Deep(), inputs, tmp_path)

    def limit(model):
        gemm = [n for n in model.graph.node if n.op_type in ("Gemm", "MatMul")][-1]
        last = next(n for n in model.graph.node if gemm.output[0] in n.input)
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(-0.82), "limit"))
        place = list(model.graph.node).index(last)
        model.graph.node.insert(place, onnx.helper.make_node("Clip", [gemm.output[0], "limit"], ["cut"], "cut_node"))
        last.input[list(last.input).index(gemm.output[0])] = "cut"

    change(path, limit)
    quick = onnxproof.verify(Deep().eval(), inputs, onnx=path, out=tmp_path / "q", batch_sizes=(1, 2))
    proof = onnxproof.verify(Deep().eval(), inputs, onnx=path, out=tmp_path / "v", search=60.0, batch_sizes=(1, 2))
    assert quick.verdict == "block"
    assert proof.verdict != "ship"
    assert proof.search.found.startswith("search/")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in ("mlp", "cnn", "transformer")])
def test_a_correct_model_survives_the_search(name, tmp_path):
    import models

    module, inputs = getattr(models, name)()
    proof = onnxproof.prove(module.eval(), inputs, out=tmp_path, search=4.0)
    assert proof.verdict == "ship", proof.findings
    assert proof.search.inputs > 0
    assert proof.search.found is None


@pytest.mark.slow
def test_a_search_never_leaves_the_declared_range(tmp_path):
    seen = []

    class Watched(torch.nn.Module):
        def forward(self, x, ids):
            if not torch.compiler.is_compiling():
                seen.append((float(x.min()), float(x.max()), int(ids.min()), int(ids.max())))
            return torch.relu(x - 0.3) * ids

    module = Watched().eval()
    inputs = (torch.rand(3, 4), torch.randint(2, 7, (3, 4)))
    onnxproof.prove(module, inputs, range={"x": (-0.5, 2.0), "ids": (2, 6)}, out=tmp_path, search=3.0)
    lows, highs, first, last = zip(*seen, strict=True)
    assert min(lows) >= -0.5
    assert max(highs) <= 2.0
    assert min(first) >= 2
    assert max(last) <= 6
    assert len(seen) > 30


@pytest.mark.slow
def test_a_search_never_leaves_the_declared_sizes(tmp_path):
    seen = []

    class Watched(torch.nn.Module):
        def forward(self, x):
            if not torch.compiler.is_compiling():
                seen.append(tuple(x.shape[:2]))
            return torch.relu(x - 0.3)

    dynamic = {"x": {0: "batch", 1: "seq"}}
    sizes = {"batch": (2, 9), "seq": (4, 11)}
    onnxproof.prove(Watched().eval(), (torch.rand(3, 5, 2),), dynamic=dynamic, range=sizes, out=tmp_path, search=3.0)
    batches, lengths = (set(one) for one in zip(*seen, strict=True))
    assert (min(batches), max(batches)) == (2, 9)
    assert (min(lengths), max(lengths)) == (4, 11)


def test_sizes_are_those_of_a_dynamic_dimension_and_around_the_example(tmp_path):
    module, inputs = torch.nn.Linear(3, 2).eval(), (torch.randn(2, 3),)
    with pytest.raises(
        onnxproof.errors.InputError, match=r"no input 'seq'; its inputs are .*dynamic dimensions 'batch'"
    ):
        onnxproof.prove(module, inputs, range={"seq": (1, 5)}, out=tmp_path)
    with pytest.raises(onnxproof.errors.InputError, match="whose batch is 2"):
        onnxproof.prove(module, inputs, range={"batch": (3, 5)}, out=tmp_path)


# --- shrinking ------------------------------------------------------------------------------------------------------


# --- keeping --------------------------------------------------------------------------------------------------------

MODEL = """
import torch
class Scale(torch.nn.Module):
    def forward(self, x, options):
        return {"y": torch.round(x * options["by"]), "n": x.sum()}
def model():
    return Scale(), {"x": torch.randn(3, 4), "options": {"by": torch.tensor(2.0), "twice": True}}
"""


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "onnxproof", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def half_up(tmp_path_factory):
    """A file that rounds halves up, and the run that finds it."""
    folder = tmp_path_factory.mktemp("keep")
    (folder / "m.py").write_text(MODEL)
    assert run("export", "m.py:model", "--out", "good", cwd=folder).returncode == 0

    def edit(model):
        node = next(n for n in model.graph.node if n.op_type == "Round")
        node.op_type = "Floor"
        place = list(model.graph.node).index(node)
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.5), "half"))
        model.graph.node.insert(place, onnx.helper.make_node("Add", [node.input[0], "half"], ["up"], "up_node"))
        node.input[0] = "up"

    model = onnx.load(folder / "good/model.onnx")
    edit(model)
    onnx.save(model, folder / "bad.onnx")
    done = run("verify", "m.py:model", "--onnx", "bad.onnx", "--out", "o", cwd=folder)
    return folder, done


def test_a_failing_case_is_shrunk_shown_and_kept(half_up):
    folder, done = half_up
    assert done.returncode == 1
    assert "smallest input: x = [[0, 0, 0, " in done.stdout or "smallest input: x = [[" in done.stdout
    proof = json.loads((folder / "o/proof.json").read_text())
    (kept,) = proof["counterexamples"]
    finding = next(f for f in proof["findings"] if f["code"] == kept["code"])
    assert finding["evidence"]["counterexample"]["name"] == kept["name"]
    small = keep.read(folder / kept["file"])["x"]
    assert small.shape == (1, 4)
    assert np.count_nonzero(small) == 1


def test_the_script_stands_alone_and_shows_both_answers(half_up):
    folder, _ = half_up
    proof = json.loads((folder / "o/proof.json").read_text())
    script = folder / proof["counterexamples"][0]["script"]
    assert "onnxproof" not in script.read_text()
    done = subprocess.run([sys.executable, str(script)], cwd="/", capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    assert "PyTorch      float32 [1, 4]" in done.stdout
    assert "they differ by up to 1" in done.stdout


@pytest.mark.slow
def test_a_kept_counterexample_is_replayed_first_and_passes_by_name(half_up):
    folder, _ = half_up
    again = run("verify", "m.py:model", "--onnx", "bad.onnx", "--out", "o", cwd=folder)
    proof = json.loads((folder / "o/proof.json").read_text())
    assert again.returncode == 1
    assert proof["cases"][0]["name"] == "kept/model-OX201-y"
    assert sorted(f.name for f in (folder / "o/counterexamples").glob("*.npz")) == ["model-OX201-y.npz"]
    mended = run("verify", "m.py:model", "--onnx", "good/model.onnx", "--out", "o", cwd=folder)
    proof = json.loads((folder / "o/proof.json").read_text())
    assert mended.returncode == 0, mended.stdout
    assert proof["cases"][0]["name"] == "kept/model-OX201-y"
    assert proof["cases"][0]["status"] == "compared"


@pytest.mark.slow
def test_counterexamples_of_another_model_are_left_alone(half_up, tmp_path):
    folder, _ = half_up
    other = tmp_path / "other.py"
    other.write_text("import torch\ndef model():\n    return torch.nn.Linear(3, 2), (torch.randn(2, 3),)\n")
    done = run("prove", str(other) + ":model", "--out", "o", "--json", "p.json", cwd=folder)
    assert done.returncode == 0
    assert not any(c["name"].startswith("kept/") for c in json.loads((folder / "p.json").read_text())["cases"])


def test_an_input_that_kills_the_process_is_kept(tmp_path):
    (tmp_path / "m.py").write_text(
        "import os, torch\n"
        "class Mine(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        if not torch.compiler.is_compiling() and x.shape[0] == 16 and x.abs().max() > 400:\n"
        "            os.abort()\n"
        "        return x * 2\n"
        "def model():\n"
        "    return Mine(), (torch.randn(2, 3),)\n"
    )
    done = run("prove", "m.py:model", "--search", "20s", "--json", "p.json", cwd=tmp_path)
    proof = json.loads((tmp_path / "p.json").read_text())
    death = next(f for f in proof["findings"] if f["code"] == "OX001")
    assert "SIGABRT" in death["message"]
    assert death["where"]["case"].startswith("search/")
    assert death["severity"] == "note"  # PyTorch died, not the candidate
    assert (tmp_path / death["evidence"]["file"]).is_file()
    assert done.returncode == 0


def test_wrong_roles_are_refused(inside, tmp_path):
    (tmp_path / "m.py").write_text(
        "import torch\ndef model():\n    return torch.nn.Linear(3, 2), (torch.randn(2, 3),)\n"
    )
    done = inside("prove", "m.py:model", "--role", "x:image")
    assert done.returncode == 2
    assert "--role: the model has no input 'x'; its inputs are 'input'" in done.stderr
    done = inside("prove", "m.py:model", "--role", "input:picture")
    assert done.returncode == 2
    assert "expected name:role with a role of float, image, additive-mask" in done.stderr


# --- what must not go wrong -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_module_that_works_in_place_is_searched(tmp_path):
    class InPlace(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.fc = torch.nn.Linear(4, 6)

        def forward(self, x):
            h = torch.sigmoid(self.fc(x))
            h.mul_(2)
            return torch.relu(h - 3)

    proof = onnxproof.prove(InPlace().eval(), (torch.randn(3, 4),), out=tmp_path, search=2.0, seed=-1)
    assert proof.verdict == "ship"
    assert "OX007" not in {f.code for f in proof.findings}
    assert proof.search.inputs > 0


def test_a_broken_counterexample_is_left_alone(tmp_path):
    folder = tmp_path / "counterexamples"
    folder.mkdir()
    (folder / "empty.npz").write_bytes(b"")
    (folder / "cut.npz").write_bytes(b"PK\x03\x04 and no more")
    proof = onnxproof.prove(torch.nn.Linear(3, 2).eval(), (torch.randn(2, 3),), out=tmp_path)
    assert proof.verdict == "ship"
    assert not any(case.name.startswith("kept/") for case in proof.cases)


@pytest.mark.slow
def test_a_kept_nan_gates_only_where_nan_does(tmp_path):
    class Top(torch.nn.Module):
        def forward(self, x):
            return x.amax(-1)

    asked = onnxproof.prove(Top().eval(), (torch.randn(3, 8),), out=tmp_path, nonfinite=True)
    assert asked.verdict == "block"
    plain = onnxproof.prove(Top().eval(), (torch.randn(3, 8),), out=tmp_path)
    assert plain.cases[0].name.startswith("kept/")
    assert not plain.cases[0].fair
    assert plain.verdict == "ship"
