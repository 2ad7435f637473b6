"""The source map: node → module path, class, file, line, ATen operator.

The exporter writes absolute paths and the user's source text into every node's metadata. The shipped file is stripped of
them; this map, kept beside it, is what locating needs.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from onnxproof.errors import InputError
from onnxproof.files import write_file
from onnxproof.findings import Where
from onnxproof.findings.frames import find_traced_frame, find_user_frame, unwrap_scope

TARGET = re.compile(r"target=(?:torch\.ops\.)?([\w.]+)")


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


@dataclass(frozen=True)
class _File:
    nodes: dict[str, Origin]


def read_origin(metadata: Mapping[str, str]) -> Origin:
    """Read what the exporter wrote on a node."""
    frame = find_user_frame(metadata.get("pkg.torch.onnx.stack_trace", ""))
    scopes = _parse_list(metadata.get("pkg.torch.onnx.name_scopes"))
    classes = _parse_list(metadata.get("pkg.torch.onnx.class_hierarchy"))
    target = TARGET.search(metadata.get("pkg.torch.onnx.fx_node", ""))
    return Origin(
        # The exporter's lists end with the node itself.
        module=unwrap_scope(scopes[-2]) if len(scopes) > 1 else None,
        cls=classes[-2] if len(classes) > 1 else None,
        **_read_line(frame),
        op=target.group(1) if target else None,
        rule=metadata.get("pkg.onnxscript.rewriter.rule_name"),
    )


def read_scope(name: str, modules: Collection[str] = (), trace: str | None = None) -> Origin:
    """TorchScript keeps scopes in node names: `/model/fc1/Gemm`, and `/model/fc1_2/Gemm` where a module is called again.

    `trace`: the calls that led to the node, as tracing notes them.
    """
    place = Origin(**_read_line(find_traced_frame(trace or "")))
    parts = [part for part in name.split("/") if part]
    if len(parts) < 2:
        return place
    path = unwrap_scope(parts[-2] if "." in parts[-2] else ".".join(parts[:-1]))
    again = re.sub(r"_\d+(?=\.|$)", "", path or "")
    return replace(place, module=again if path not in modules and again in modules else path)


def _read_line(frame: Mapping[str, str] | None) -> dict[str, Any]:
    return {"file": frame["file"], "line": int(frame["line"]), "text": frame["text"].strip() or None} if frame else {}


def _parse_list(text: str | None) -> list[str]:
    try:
        value = ast.literal_eval(text) if text else []
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):  # what `literal_eval` may raise
        return []
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []


def place_node(node: str | None, sourcemap: str | None) -> Where:
    """A node by its name, and the module and line that the source map knows of it."""
    return place_in(read(Path(sourcemap)) if sourcemap else {}, node)


def place_in(origins: Mapping[str, Origin], node: str | None) -> Where:
    """A node by its name, and the module and line that are known of it."""
    origin = origins.get(node or "", Origin())
    return Where(node=node, module=origin.module, file=origin.file, line=origin.line)


def write(path: Path, origins: Mapping[str, Origin]) -> None:
    """Write the side file."""
    nodes = {name: {k: v for k, v in asdict(origin).items() if v is not None} for name, origin in origins.items()}
    write_file(path, json.dumps({"schema": "onnxproof.sourcemap/1", "nodes": nodes}, indent=1))


def read(path: Path) -> dict[str, Origin]:
    """Read the side file; nothing where there is none."""
    if not path.is_file():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File).nodes
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not the source map of a model: {error}. Delete it, or export again") from None
