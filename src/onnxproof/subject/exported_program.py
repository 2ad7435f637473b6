"""file.pt2 → the exported program. torch unpickles parts of the archive as they come; here no pickle runs unless it is trusted."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from onnxproof.errors import TargetError, condense

# Where an archive keeps tensors and example inputs, and what may lie there without being a pickle.
DATA = ("data/weights/", "data/constants/", "data/sample_inputs/")
RAW = ("weight_", "tensor_")


def load_program(path: Path, *, trust: bool) -> ExportedProgram:
    """The program; without trust, raises a `TargetError` where reading the archive would run code that lies in it."""
    if trust:
        return torch.export.load(path)
    from torch.export.pt2_archive._package import load_pt2

    for name, told in _find_code(torch._C.PyTorchFileReader(str(path))):
        raise TargetError(f"{path}: its member {name} {told}. If you know who made this file, --trust loads it")
    # Not torch.export.load: where this fails, it goes on with another reading of the file, and unpickles that.
    return load_pt2(str(path)).exported_programs["model"]


def _find_code(reader: Any) -> Iterator[tuple[str, str]]:
    """Members that would run, and why."""
    names = reader.get_all_records()
    if compiled := [name for name in names if name.startswith("data/aotinductor/")]:
        yield compiled[0], "is compiled code, which would be run"
    for name in _list_pickles(reader, names):
        content = reader.get_record(name)
        try:
            torch.load(io.BytesIO(content), map_location="cpu", weights_only=True) if content else None
        except Exception as error:
            yield name, f"holds pickled Python objects, which would be run; expected tensors ({condense(error, 160)})"


def _list_pickles(reader: Any, names: list[str]) -> Iterator[str]:
    """The members that torch would unpickle."""
    for name in (name for name in names if name.startswith(DATA)):
        if name.endswith(".pt"):
            yield name
        if name.endswith("_config.json"):
            for payload in json.loads(reader.get_record(name))["config"].values():
                if payload["use_pickle"] or not payload["path_name"].startswith(RAW):
                    yield f"{name.rpartition('/')[0]}/{payload['path_name']}"
