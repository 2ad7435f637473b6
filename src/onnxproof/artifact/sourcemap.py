"""The source map: node → module path, class, file, line, ATen operator.

The exporter writes absolute paths and the user's source text into every node's metadata. The shipped file is stripped of
them; this map, kept beside it, is what locating needs.
"""

from __future__ import annotations

import ast
import json
import linecache
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from onnxproof.findings import Where

PREFIX = "model"
"""Name of the wrapped module inside the wrapper of an export: the first part of every scope, removed here."""
FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)\n?(?P<text>[^\n]*)')
TRACED = re.compile(r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?P<function>\S+)", re.M)
WRAPPER = "/onnxproof/artifact/wrapper.py"
"""What calls the user's module in an export."""
TARGET = re.compile(r"target=(?:torch\.ops\.)?([\w.]+)")
FOREIGN = (
    "/torch/",
    "torch/",
    "/onnxscript/",
    "/onnx_ir/",
    "/onnx/",
    "/sympy/",
    "/contextlib.py",
    "/logging/__init__.py",
    "/copy.py",
    "/onnxproof/artifact/",
    "/onnxproof/worker/",
    "/onnxproof/chance.py",
    "/onnxproof/examination.py",
    "/onnxproof/lints/",
    "/onnxproof/structure.py",
    "/onnxproof/subject.py",
    "<",
)


@dataclass(frozen=True)
class Origin:
    """Where a node of the graph comes from."""

    module: str | None = None
    cls: str | None = None
    file: str | None = None
    line: int | None = None
    text: str | None = None
    op: str | None = None
    rule: str | None = None
    """The exporter's rewrite rule that made the node, if one did."""


def origin_of(metadata: Mapping[str, str]) -> Origin:
    """Read what the exporter wrote on a node."""
    frame = user_frame(metadata.get("pkg.torch.onnx.stack_trace", ""))
    scopes = _list(metadata.get("pkg.torch.onnx.name_scopes"))
    classes = _list(metadata.get("pkg.torch.onnx.class_hierarchy"))
    target = TARGET.search(metadata.get("pkg.torch.onnx.fx_node", ""))
    return Origin(
        module=unwrapped(scopes[-2]) if len(scopes) > 1 else None,
        cls=classes[-2] if len(classes) > 1 else None,
        file=frame["file"] if frame else None,
        line=int(frame["line"]) if frame else None,
        text=(frame["text"].strip() or None) if frame else None,
        op=target.group(1) if target else None,
        rule=metadata.get("pkg.onnxscript.rewriter.rule_name"),
    )


def user_frame(trace: str) -> Mapping[str, str] | None:
    """The innermost frame that is the user's code rather than torch's or ours."""
    frames = [match.groupdict() for match in FRAME.finditer(trace)]
    mine = [frame for frame in frames if not _foreign(frame["file"])]
    return mine[-1] if mine else None


def _foreign(file: str) -> bool:
    return any(part in file if part.startswith("/") else file.startswith(part) for part in FOREIGN)


def origin_of_scope(name: str, modules: Collection[str] = (), trace: str | None = None) -> Origin:
    """TorchScript keeps scopes in node names: `/model/fc1/Gemm`, and `/model/fc1_2/Gemm` where a module is called again.

    `trace`: the calls that led to the node, as tracing notes them.
    """
    frame = traced_frame(trace or "")
    place = Origin(
        file=frame["file"] if frame else None,
        line=int(frame["line"]) if frame else None,
        text=(frame["text"] or None) if frame else None,
    )
    parts = [part for part in name.split("/") if part]
    if len(parts) < 2:
        return place
    path = unwrapped(parts[-2] if "." in parts[-2] else ".".join(parts[:-1]))
    again = re.sub(r"_\d+(?=\.|$)", "", path or "")
    return replace(place, module=again if path not in modules and again in modules else path)


def traced_frame(trace: str) -> Mapping[str, str] | None:
    """The innermost frame of the user's in `file.py(12): forward` lines, which come innermost first and end in who called the model."""
    for match in TRACED.finditer(trace):
        if match["file"].endswith(WRAPPER):
            return None
        if not _foreign(match["file"]):
            return {**match.groupdict(), "text": linecache.getline(match["file"], int(match["line"])).strip()}
    return None


def unwrapped(path: str) -> str | None:
    """A scope without the wrapper's part of it."""
    if path.startswith("_empty_nn_module_stack"):
        return None
    stripped = path.removeprefix(PREFIX).removeprefix(".") if path == PREFIX or path.startswith(PREFIX + ".") else path
    return stripped


def _list(text: str | None) -> list[str]:
    try:
        value = ast.literal_eval(text) if text else []
    except (ValueError, SyntaxError):
        return []
    return [str(item) for item in value]


def placed(node: str | None, sourcemap: str | None) -> Where:
    """A node by its name, and the module and line that the source map knows of it."""
    origin = read(Path(sourcemap)).get(node or "", Origin()) if sourcemap else Origin()
    return Where(node=node, module=origin.module, file=origin.file, line=origin.line)


def write(path: Path, origins: Mapping[str, Origin]) -> None:
    """Write the side file."""
    nodes = {name: {k: v for k, v in asdict(origin).items() if v is not None} for name, origin in origins.items()}
    path.write_text(json.dumps({"schema": "onnxproof.sourcemap/1", "nodes": nodes}, indent=1), encoding="utf-8")


def read(path: Path) -> dict[str, Origin]:
    """Read the side file; nothing where there is none."""
    if not path.is_file():
        return {}
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    known = Origin.__dataclass_fields__
    return {name: Origin(**{k: v for k, v in o.items() if k in known}) for name, o in data["nodes"].items()}
