"""Data are data: what is pickled in a file of them is refused, and none of it runs."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from onnxproof.cases import counterexample_files
from onnxproof.data.opening import open_source
from onnxproof.errors import InputError
from onnxproof.quality.accumulate import Shard


class Planted:
    """What runs when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("PWNED",)


def save_npz(file: Path) -> None:
    np.savez(file, x=np.array([Planted(), 1], dtype=object), meta=np.array(Planted(), dtype=object))


DATA = {
    "x.npz": save_npz,
    "x.npy": lambda file: np.save(file, np.array([Planted()], dtype=object), allow_pickle=True),
    "zip.pt": lambda file: torch.save({"x": Planted()}, file),
    "old.pt": lambda file: torch.save({"x": Planted()}, file, _use_new_zipfile_serialization=False),
    "bare.pt": lambda file: file.write_bytes(pickle.dumps(Planted())),
    "bare.npy": lambda file: file.write_bytes(pickle.dumps(Planted())),
    "bare.npz": lambda file: file.write_bytes(pickle.dumps(Planted())),
    "bare.safetensors": lambda file: file.write_bytes(pickle.dumps(Planted())),
}


@pytest.mark.parametrize("name", DATA)
def test_data_with_a_pickle_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    DATA[name](tmp_path / name)
    with pytest.raises(InputError, match=f"--data {name}"):
        open_source(name)
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("name", ["x.npz", "bare.npz"])
def test_kept_inputs_and_shards_with_a_pickle_are_left_alone(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    DATA[name](tmp_path / name)
    assert counterexample_files.read(tmp_path / name) == {}
    assert Shard.load(tmp_path / name, "mark") is None
    assert not (tmp_path / "PWNED").exists()


def test_a_shard_of_another_form_is_none(tmp_path):
    for meta in ("[]", '{"fingerprint": "mark", "unknown": 1}', "{", "1"):
        np.savez(tmp_path / "s.npz", meta=np.array(meta))
        assert Shard.load(tmp_path / "s.npz", "mark") is None


def test_code_that_lies_beside_the_data_is_not_imported(tmp_path):
    for name in ("first.onnx", "second.onnx"):
        ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, ["n"]) for end in ("x", "y")]
        graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", ends[:1], ends[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / name)
    script = "import sys; sys.path = [p for p in sys.path if p]; from onnxproof.cli import main; main()"  # as installed
    for module in ("numpy", "torch", "onnx", "json"):
        (tmp_path / f"{module}.py").write_text("import os; os.mkdir('PWNED')")
    command = [sys.executable, "-c", script, "diff", "first.onnx", "second.onnx"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "PWNED").exists()
