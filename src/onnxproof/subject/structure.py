"""Nested inputs and outputs as a flat list of named tensors, and back.

Paths read like the code that reaches the value: `past[0].key`. Everything between the module and the rest of onnxproof
goes through here, so exporters, runners and reports only ever see flat, named tensors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from onnxproof.errors import InputError

Rebuild = Callable[[Iterator[torch.Tensor]], Any]
CONSTANTS = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device)


@dataclasses.dataclass(frozen=True)
class Flat:
    """Named tensors, the Python values among them, and the way back."""

    tensors: dict[str, torch.Tensor]
    constants: dict[str, Any]
    rebuild: Callable[[Sequence[torch.Tensor]], Any]


def flatten(value: Any, root: str = "") -> Flat:
    """Take a nested value apart. `root` names the value itself (a parameter); outputs have no root."""
    tensors: dict[str, torch.Tensor] = {}
    constants: dict[str, Any] = {}
    rebuild = _walk(value, root, tensors, constants)
    return Flat(tensors, constants, lambda leaves: rebuild(iter(leaves)))


def _walk(value: Any, path: str, tensors: dict[str, torch.Tensor], constants: dict[str, Any]) -> Rebuild:
    if isinstance(value, torch.Tensor):
        tensors[_make_unique(path or "output", tensors)] = value
        return next
    if isinstance(value, (np.ndarray, np.generic)):
        return _walk(torch.as_tensor(value), path, tensors, constants)
    if isinstance(value, CONSTANTS):
        if value is not None:
            constants[path or "output"] = value
        return lambda leaves: value
    parts = _split(value, path)
    if parts is None:
        raise InputError(
            f"{path or 'the output'} is a {type(value).__module__}.{type(value).__qualname__}: expected tensors, numbers, "
            "and lists, tuples, dicts or dataclasses of them. Wrap the module so that it takes and returns those."
        )
    children, assemble = parts
    walked = [_walk(child, name, tensors, constants) for name, child in children]
    return lambda leaves: assemble([part(leaves) for part in walked])


Parts = tuple[list[tuple[str, Any]], Callable[[list[Any]], Any]]


def _split(value: Any, path: str) -> Parts | None:
    if isinstance(value, Mapping):
        return _split_mapping(value, path)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _split_fields(value, path, value._fields)
    if isinstance(value, (list, tuple)):
        names = (f"{path}[{i}]" if path else f"output_{i}" for i in range(len(value)))
        return list(zip(names, value, strict=True)), type(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _split_fields(value, path, [field.name for field in dataclasses.fields(value) if field.init])
    return _split_pytree(value, path)


def _split_mapping(value: Mapping[Any, Any], path: str) -> Parts:
    keys, kind = list(value), type(value)
    named = (join_path(path, key) if isinstance(key, str) else f"{path or 'output'}[{key!r}]" for key in keys)

    def assemble(parts: list[Any]) -> Any:
        pairs = dict(zip(keys, parts, strict=True))
        return pairs if kind is dict else kind(**pairs) if dataclasses.is_dataclass(kind) else kind(pairs)  # type: ignore[call-arg]  # a Mapping made from a dict

    return [(name, value[key]) for name, key in zip(named, keys, strict=True)], assemble


def _split_fields(value: Any, path: str, names: Sequence[str]) -> Parts:
    children = [(join_path(path, name), getattr(value, name)) for name in names]
    return children, lambda parts: type(value)(**dict(zip(names, parts, strict=True)))


def _split_pytree(value: Any, path: str) -> Parts | None:
    """Types registered with torch's own pytrees (caches of transformers, for example)."""
    from torch.utils import _pytree

    leaves, spec = _pytree.tree_flatten_with_path(value)
    if len(leaves) == 1 and leaves[0][1] is value:
        return None
    names = [path + _pytree.keystr(keys).replace("['", ".").replace("']", "") for keys, _ in leaves]
    children = [(name if path else name.lstrip("."), leaf) for name, (_, leaf) in zip(names, leaves, strict=True)]
    return children, lambda parts: _pytree.tree_unflatten(parts, spec)


def join_path(path: str, name: str) -> str:
    """The path of an attribute, or of a value that has a name."""
    return f"{path}.{name}" if path else name


def _make_unique(path: str, taken: Mapping[str, Any]) -> str:
    name, count = path, 2
    while name in taken:
        name, count = f"{path}_{count}", count + 1
    return name


def is_named(value: Any) -> bool:
    """Whether an output's names come from the model (dict keys, fields) rather than from its position."""
    return isinstance(value, Mapping) or hasattr(value, "_fields") or dataclasses.is_dataclass(value)
