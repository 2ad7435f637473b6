"""Arrays in files: odd layouts and dtypes, and no more memory than a few blocks."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from data.written import X, Y
from onnxproof.data.opening import open_source


@pytest.mark.parametrize(
    "values", [X, np.asfortranarray(X), X.astype(">f8"), X.reshape(257, 2, 2), X > 0, Y.astype(np.uint8), Y.astype(str)]
)
def test_any_layout(values, tmp_path):
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", odd=np.zeros(3, np.uint8), X=values)
    for file in ("x.npy", "x.npz"):
        table = next(open_source(str(tmp_path / file)).select(["X"]).read(5, 9, 4))
        assert np.array_equal(table["X"], values[5:9])
        assert table["X"].flags.writeable
        assert table["X"].flags.aligned


def test_single_values_hold_for_every_row(tmp_path):
    np.savez(tmp_path / "x.npz", X=X, temperature=np.float32(0.5))
    source = open_source(str(tmp_path / "x.npz"))
    assert (tuple(source.fields), source.constants) == (("X",), {"temperature": np.float32(0.5)})
    assert source.select(["X"]).constants == source.constants


def test_other_arrays_beside_the_rows_do_no_harm(tmp_path):
    np.savez(tmp_path / "x.npz", X=X, y=Y, classes=np.array(["a", "b", "c", "d"]))
    source = open_source(str(tmp_path / "x.npz"))
    assert source.rows is None
    assert source.select(["X", "y"]).rows == 257


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int8, torch.bool])
def test_tensors_of_any_dtype(dtype, tmp_path):
    from safetensors.torch import save_file

    values = (torch.tensor(X) * 2).to(dtype)
    torch.save({"X": values}, tmp_path / "x.pt")
    torch.save({"X": values}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    save_file({"X": values}, tmp_path / "x.safetensors")
    for file in ("x.pt", "old.pt", "x.safetensors"):
        source = open_source(str(tmp_path / file))
        assert source.fields == {"X": "vector"}
        assert np.array_equal(next(source.read(3, 9, 6))["X"].astype(np.float64), values[3:9].double().numpy())


SCRIPT = """
import sys, resource
from onnxproof.data.opening import open_source
source = open_source(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert sum(len(table["X"]) for table in source.read(0, None, 1024)) == 400_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("save", [lambda f, x: np.save(f / "x.npy", x), lambda f, x: np.savez(f / "x.npz", X=x)])
def test_a_large_file_takes_little_memory(save, tmp_path):
    save(tmp_path, np.zeros((400_000, 128), np.float32))
    (file,) = tmp_path.iterdir()
    run = subprocess.run([sys.executable, "-c", SCRIPT, str(file)], capture_output=True, text=True, check=True)
    assert int(run.stdout) * 1024 < 60e6, "the file has 205 MB"
