"""An archive of torch.export: what is planted in it does not run, and what is harmless loads."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import pytest
import torch

import onnxproof
from onnxproof.errors import TargetError
from onnxproof.subject.target import load_target

CONSTANTS = "data/constants/model_constants_config.json"


class Planted:
    """What runs when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("PWNED",)


class Made:
    """A tensor that is computed when it is unpickled."""

    def __reduce__(self):
        return torch.full, ((3,), 2.0)


class Scaled(torch.nn.Module):
    """Parameters, buffers, a plain tensor, a dict among the inputs."""

    def __init__(self, persistent: bool = False) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.plain = torch.full((3,), 2.0)
        self.register_buffer("shift", torch.zeros(3), persistent=persistent)

    def forward(self, x, more):
        return x * self.weight * self.plain + self.shift + more["a"]


def save(file: Path, persistent: bool = False) -> Path:
    batch = torch.export.Dim("batch")
    inputs = (torch.rand(2, 3), {"a": torch.rand(3)})
    torch.export.save(torch.export.export(Scaled(persistent), inputs, dynamic_shapes=({0: batch}, {"a": None})), file)
    return file


def saved(value: object) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def pickled(path: str, content: bytes) -> dict[str, bytes]:
    """The archive's plain tensor as a pickle."""
    payload = {"path_name": path, "is_param": False, "use_pickle": True, "tensor_meta": None}
    return {CONSTANTS: json.dumps({"config": {"plain": payload}}).encode(), f"data/constants/{path}": content}


PLANTS = {
    "inputs": {"data/sample_inputs/model.pt": saved((Planted(),))},
    "weights": {"data/weights/model.pt": saved({"weight": Planted()})},
    "constant": pickled("tensor_9", saved(Planted())),
    "object": pickled("opaque_obj_0", pickle.dumps(Planted())),
}


def plant(file: Path, members: dict[str, bytes]) -> Path:
    """The archive with some members replaced or added."""
    with zipfile.ZipFile(file) as archive:
        root = archive.namelist()[0].partition("/")[0]
        content = {name: archive.read(name) for name in archive.namelist()}
    content |= {f"{root}/{name}": value for name, value in members.items()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, value in content.items():
            archive.writestr(name, value)
    return file


def test_an_honest_archive_loads_without_trust(tmp_path):
    module, inputs = load_target(str(save(tmp_path / "m.pt2")))[0]
    assert torch.equal(module(*inputs), Scaled()(*inputs))


@pytest.mark.parametrize("kind", PLANTS)
def test_what_is_pickled_runs_only_where_it_is_trusted(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = plant(save(tmp_path / "m.pt2"), PLANTS[kind])
    with pytest.raises(TargetError, match=r"m.pt2: its member data/\S+ holds pickled Python objects.*--trust"):
        load_target(str(file))
    assert not (tmp_path / "PWNED").exists()
    with pytest.raises(TargetError, match="cannot be loaded"):
        load_target(str(file), trust=True)
    assert (tmp_path / "PWNED").exists()  # it was a plant


def test_compiled_code_is_refused(tmp_path):
    file = plant(save(tmp_path / "m.pt2"), {"data/aotinductor/model/code.so": b"\x7fELF"})
    with pytest.raises(TargetError, match=r"data/aotinductor/model/code.so is compiled code.*--trust"):
        load_target(str(file))


def test_a_file_in_the_format_of_old_is_not_read_in_another_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile(tmp_path / "m.pt2", "w") as archive:
        archive.writestr("version", "8.8")
        archive.writestr("serialized_exported_program.json", "{}")
        for part in ("state_dict", "constants", "example_inputs"):
            archive.writestr(f"serialized_{part}.pt", saved(Planted()))
    with pytest.raises(TargetError, match="cannot be loaded as an exported program"):
        load_target(str(tmp_path / "m.pt2"))
    assert not (tmp_path / "PWNED").exists()


def test_trust_is_asked_for_from_python(tmp_path):
    file = plant(save(tmp_path / "m.pt2", persistent=True), pickled("tensor_9", saved(Made())))
    with pytest.raises(TargetError, match="--trust"):
        onnxproof.prove(str(file), out=tmp_path)
    assert onnxproof.prove(str(file), out=tmp_path, trust=True).verdict == "ship"
