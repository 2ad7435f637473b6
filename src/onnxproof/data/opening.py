"""One way from what the user names to a source of rows."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onnxproof.data.arrays import open_npy, open_npz
from onnxproof.data.iterables import open_object
from onnxproof.data.parts import take_part
from onnxproof.data.source import Source, fingerprint_files, refuse_source
from onnxproof.errors import InputError, OnnxproofError, list_names
from onnxproof.request.python_objects import load_object
from onnxproof.request.specs import Part

SUFFIXES = (".npz", ".npy", ".pt", ".safetensors", ".csv", ".parquet")
MEMORY = "memory:"
_held: dict[str, Any] = {}


@contextmanager
def hold(value: Any) -> Iterator[str]:
    """A name under which this process opens an object of the caller's; a text stands for itself."""
    if isinstance(value, str):
        yield value
        return
    name = f"{MEMORY}{type(value).__name__}-{id(value)}"
    _held[name] = value
    try:
        yield name
    finally:
        del _held[name]


def open_source(text: str, flag: str = "--data", part: Part = "all") -> Source:
    """The source that a user means: a file, a saved Hugging Face data set, `file.py:name`, or an object that is held."""
    return take_part(_open(text, flag), part)


def _open(text: str, flag: str) -> Source:
    label = f"{flag} {text}"
    try:
        if text in _held:
            return open_object(_held[text], text, label)
        if text.rpartition(":")[0].endswith(".py"):
            return open_object(load_object(text)[0], text, label)
        if text.startswith(MEMORY):
            told = "an object in memory is read in this process only; give a file or file.py:name instead"
            raise InputError(f"{flag}: {told}")
        return _open_file(Path(text), flag, label)
    except OnnxproofError:
        raise
    except ImportError as error:
        needs = f"reading {Path(text).suffix or 'a data set'} needs the package {str(error.name).partition('.')[0]}"
        raise InputError(f"{label}: {needs}: pip install 'onnxproof[data]'") from None
    except Exception as error:  # a damaged file, or something else under a known name
        raise refuse_source(label, error) from error


def _open_file(file: Path, flag: str, label: str) -> Source:
    if not file.exists():
        raise InputError(f"{flag}: there is no file {file}")
    if file.suffix == ".npz":
        return open_npz(file, label)
    if file.suffix == ".npy":
        return open_npy(file, label)
    if file.suffix in (".pt", ".safetensors"):
        return open_object(_load_tensors(file, label), str(file), label, fingerprint_files(file))
    if file.suffix not in SUFFIXES and not file.is_dir():
        raise InputError(f"{label}: {file.suffix!r} is not known; expected {list_names(SUFFIXES)} or file.py:name")
    from onnxproof.data.tables import open_csv, open_folder, open_parquet  # pyarrow is an extra

    openers = {".csv": open_csv, ".parquet": open_parquet}
    return open_folder(file, label) if file.is_dir() else openers[file.suffix](file, label)


def _load_tensors(file: Path, label: str) -> Any:
    """Tensors that are mapped into memory: their rows are read when they are used."""
    if file.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(file)
    import torch

    try:
        # The format of before torch 1.6 is no zip, and cannot be mapped.
        return torch.load(file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(file))
    except pickle.UnpicklingError:
        raise InputError(
            f"{label} is no file of tensors, or holds other Python objects, which are never unpickled: "
            "save a dict of tensors with torch.save"
        ) from None
