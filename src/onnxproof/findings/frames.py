"""The user's own line in a stack trace, among frames of torch, of the exporter and of onnxproof."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Mapping
from pathlib import Path

from onnxproof.findings.finding import Where

# Name of the wrapped module inside the wrapper of an export: the first part of every scope, removed here.
PREFIX = "model"
FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)\n?(?P<text>[^\n]*)')
TRACED = re.compile(r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?P<function>\S+)", re.M)
# What calls the user's module in an export.
WRAPPER = "/onnxproof/artifact/wrapper.py"
OWN = str(Path(__file__).resolve().parents[1])
# Of our own files, those that are code of models.
MODELS = ("/rewrites.py", "/cli/digits.py")
FOREIGN = "/torch/ torch/ /onnxscript/ /onnx_ir/ /onnx/ /sympy/ /contextlib.py /logging/__init__.py /copy.py <".split()


def find_user_frame(trace: str) -> Mapping[str, str] | None:
    """The innermost frame that is the user's code rather than torch's or ours."""
    frames = [match.groupdict() for match in FRAME.finditer(trace)]
    mine = [frame for frame in frames if not _foreign(frame["file"])]
    return mine[-1] if mine else None


def _foreign(file: str) -> bool:
    if file.startswith(OWN):
        return not file.endswith(MODELS)
    return any(part in file if part.startswith("/") else file.startswith(part) for part in FOREIGN)


def locate_frame(frame: Mapping[str, str] | None) -> Where:
    """The file and line of a frame; nowhere where there is none."""
    return Where(file=frame["file"], line=int(frame["line"])) if frame else Where()


def find_running_line() -> Where:
    """The user's line that is running now."""
    return locate_frame(find_user_frame("".join(traceback.format_stack())))


def find_traced_frame(trace: str) -> Mapping[str, str] | None:
    """The innermost frame of the user's in `file.py(12): forward` lines, which come innermost first and end in who called the model."""
    for match in TRACED.finditer(trace):
        if match["file"].endswith(WRAPPER):
            return None
        if not _foreign(match["file"]):
            return {**match.groupdict(), "text": linecache.getline(match["file"], int(match["line"])).strip()}
    return None


def unwrap_scope(path: str) -> str | None:
    """A scope without the wrapper's part of it."""
    if path.startswith("_empty_nn_module_stack"):
        return None
    first, _, rest = path.partition(".")
    return rest if first == PREFIX else path
