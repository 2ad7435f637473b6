"""The JSON Schema of a proof, made from the records: `python -m onnxproof.proof.schema > src/onnxproof/proof/proof.schema.json`."""

from __future__ import annotations

import ast
import inspect
import json
from dataclasses import fields, is_dataclass
from importlib import resources
from typing import Any, get_args, get_type_hints

import msgspec

from onnxproof.proof.codec import read_layout
from onnxproof.proof.proof import SCHEMA, Proof

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def read_schema() -> Schema:
    """The schema that the package publishes."""
    text = resources.files("onnxproof.proof").joinpath("proof.schema.json").read_text(encoding="utf-8")
    data: Schema = json.loads(text)
    return data


def make_schema() -> Schema:
    """The schema as the records are now."""
    kinds = sorted(_collect_records(Proof, set()), key=lambda kind: kind.__name__)
    _, parts = _make_components(kinds)
    described = {kind.__name__: _describe_record(kind, parts[kind.__name__]) for kind in kinds}
    proof = described.pop(Proof.__name__)
    return {"$schema": DRAFT, **proof, "title": SCHEMA, "$defs": described}


def _collect_records(kind: Any, seen: set[type]) -> set[type]:
    """A record and all that it is made of."""
    if isinstance(kind, type) and is_dataclass(kind) and kind not in seen:
        seen.add(kind)
        hints = get_type_hints(kind)
        for field in fields(kind):
            _collect_records(hints[field.name], seen)
    for part in get_args(kind):
        _collect_records(part, seen)
    return seen


def _make_components(kinds: list[Any]) -> tuple[tuple[Schema, ...], Schema]:
    return msgspec.json.schema_components(
        kinds, schema_hook=lambda kind: {"type": ["number", "null"]}, ref_template="#/$defs/{name}"
    )


def _describe_record(kind: Any, part: Schema) -> Schema:
    """The part of one record with what it publishes, what is always there, and what its docstrings say."""
    texts, added = _read_texts(kind), getattr(kind, "ADDED", ())
    properties, required = {}, []
    for key, name, omitted in read_layout(kind):
        form = dict(part["properties"][name] if name in part["properties"] else _derive_form(kind, name))
        form.pop("default", None)
        properties[key] = {"description": texts[name], **form} if name in texts else form
        if not omitted and name not in added:
            required.append(key)
    about = inspect.cleandoc(kind.__doc__)
    return {"description": about, "type": "object", "required": required, "properties": properties}


def _derive_form(kind: Any, name: str) -> Schema:
    """The form of a published property."""
    (form,), _ = _make_components([get_type_hints(getattr(kind, name).fget)["return"]])
    return form


def _read_texts(kind: Any) -> dict[str, str]:
    """Attribute → the docstring below it."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)  # the source of a class
    texts = {node.name: ast.get_docstring(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(after, ast.Expr):
            texts[node.target.id] = ast.literal_eval(after.value)
    return {name: text for name, text in texts.items() if text}


def write_schema(made: Schema) -> str:
    """As text, one record a line: a change shows in the lines of its records."""
    head = {key: value for key, value in made.items() if key != "$defs"}
    lines = [f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False)}" for name, part in made["$defs"].items()]
    return f'{json.dumps(head, ensure_ascii=False)[:-1]}, "$defs": {{\n' + ",\n".join(lines) + "\n}}"


if __name__ == "__main__":
    print(write_schema(make_schema()))
