"""An export that is still good: where nothing that made it has changed, the file of an earlier run is used again.

What made it: weights, code, everything plain that modules hold, the example, the options, the releases. Should something else
have changed after all, the file is still held against the module of today: it cannot ship by mistake.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import platform
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from types import FunctionType
from typing import Any

import msgspec
import onnx
import torch

from onnxproof.artifact.export import Report, export
from onnxproof.artifact.file import read_artifact
from onnxproof.errors import FindingError, NotWritten
from onnxproof.files import write_file
from onnxproof.findings import Finding
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.codec import decode, encode
from onnxproof.request.request import ExportOptions
from onnxproof.subject.subject import Subject
from onnxproof.version import __version__

PLAIN = (bool, int, float, complex, str, bytes, torch.dtype, torch.device, type(None))
# Where a module holds what its weights' hash and its submodules tell.
TENSORS = ("_parameters", "_buffers", "_modules")
# How far what modules hold is followed.
DEEPEST = 6


@dataclass(frozen=True)
class Written:
    """What stands beside the file: what made it, what it is, and what was found on the way."""

    made_of: str
    artifact: Artifact
    findings: tuple[Finding, ...]


def export_once(subject: Subject, path: Path, options: ExportOptions, weights: str, report: Report) -> Artifact:
    """The export, or the one that is there already where it would come out the same."""
    note = path.with_suffix(".export.json")
    made_of = describe_making(subject, options, weights)
    before = _read(note)
    if before is not None and before.made_of == made_of and _untouched(path, before.artifact):
        for finding in before.findings:
            report(finding)
        return before.artifact
    # Before the export: a run that dies in it must not leave a note about another file.
    note.unlink(missing_ok=True)
    found: list[Finding] = []

    def noted(finding: Finding) -> None:
        found.append(finding)
        report(finding)

    artifact = export(subject, path, options, noted)
    if made_of is not None:
        with suppress(NotWritten):  # then it is exported again
            write_file(note, encode(Written(made_of, artifact, tuple(found))))
    return artifact


def _read(note: Path) -> Written | None:
    try:
        return decode(msgspec.json.decode(note.read_bytes()), Written)
    except (OSError, ValueError, RecursionError):  # none is there, or of another release
        return None


def _untouched(path: Path, artifact: Artifact) -> bool:
    try:
        beside = artifact.sourcemap is None or Path(artifact.sourcemap).is_file()
        return beside and artifact.path == str(path) and read_artifact(path).sha256 == artifact.sha256
    except (OSError, FindingError):
        return False


def describe_making(subject: Subject, options: ExportOptions, weights: str) -> str | None:
    """A hash of everything that makes the file; None where the code cannot be seen (a notebook's, a scripted one)."""
    with suppress(Exception):  # tensors without values, of other layouts: what cannot be written down is exported anew
        return _fingerprint_export(subject, options, weights)
    return None


def _fingerprint_export(subject: Subject, options: ExportOptions, weights: str) -> str | None:
    digest = hashlib.blake2b(digest_size=16)

    def add(*values: object) -> None:
        digest.update(repr(values).encode())

    add(__version__, torch.__version__, onnx.__version__, platform.python_version(), weights)
    add([(one.name, getattr(options, one.name)) for one in fields(options)])
    add(
        subject.name,
        subject.dynamic,
        subject.limits,
        subject.asked_dynamic,
        sorted(subject.inputs.constants.items(), key=str),
    )
    for name, tensor in subject.inputs.tensors.items():
        add(name, tuple(tensor.shape), str(tensor.dtype), hashlib.blake2b(_read_bytes(tensor)).hexdigest())
    for name, module in subject.module.named_modules():
        held = [(key, _describe_value(value)) for key, value in sorted(vars(module).items()) if key not in TENSORS]
        add(name, type(module).__qualname__, module.training, held)
    files = _find_sources(type(module) for module in subject.module.modules())
    if files is None or any(isinstance(module, torch.jit.ScriptModule) for module in subject.module.modules()):
        return None
    for file in sorted(files):
        add(file.name, hashlib.blake2b(file.read_bytes()).hexdigest())
    return digest.hexdigest()


def _read_bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def _describe_value(value: Any, depth: int = DEEPEST) -> str:
    """What a module holds, as far as its text tells what it is."""
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, torch.Tensor):
        return hashlib.blake2b(_read_bytes(value)).hexdigest()
    kind = type(value).__qualname__
    if not depth:
        return kind
    if isinstance(value, (list, tuple)):
        return f"{kind}{[_describe_value(one, depth - 1) for one in value]}"
    if isinstance(value, (set, frozenset)):
        # The order of a set may change from process to process.
        return f"{kind}{sorted(_describe_value(one, depth - 1) for one in value)}"
    if isinstance(value, dict):
        return f"{kind}{[(_describe_value(key, depth - 1), _describe_value(one, depth - 1)) for key, one in value.items()]}"
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        held = _describe_value([cells, value.__defaults__, value.__kwdefaults__], depth - 1)
        # Its repr holds an address, which changes too.
        return f"{marshal.dumps(value.__code__)!r} {held}"
    return f"{kind} {_describe_value(getattr(value, '__dict__', None), depth - 1)}"


def _find_sources(classes: Iterable[type]) -> set[Path] | None:
    """The files of these classes, and every file of the user's own that is loaded: any of them may be called."""
    files = set()
    for cls in set(classes):
        file = _find_file(cls.__module__)
        if file is None:
            return None
        files.add(file)
    installed = {Path(sys.prefix), Path(sys.base_prefix)} | {
        Path(sys.prefix).resolve(),
        Path(sys.base_prefix).resolve(),
    }
    # By their names first: to look for thousands of files takes half a second.
    passed = tuple(f"{folder}{os.sep}" for folder in installed)
    own = (_find_file(name) for name, module in list(sys.modules.items()) if not _lies_in(module, passed))
    return files | {
        file for file in own if file is not None and not installed & {*file.parents} and file.suffix == ".py"
    }


def _lies_in(module: object, folders: tuple[str, ...]) -> bool:
    file = getattr(module, "__file__", None)
    return not isinstance(file, str) or file.startswith(folders)


def _find_file(module: str) -> Path | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).resolve() if isinstance(file, str) and Path(file).is_file() else None
