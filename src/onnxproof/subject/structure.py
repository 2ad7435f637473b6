"""Nested inputs and outputs as a flat list of named tensors, and back.

Paths read like the code that reaches the value: `past[0].key`. Everything between the module and the rest of onnxproof
goes through here, so exporters, runners and reports only ever see flat, named tensors.
"""

from __future__ import annotations

import copy
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
            "and lists, tuples, dicts, dataclasses or plain objects of them. Wrap the module so that it takes and returns those."
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
    if _is_cache(value):
        return _split_cache(value, path)
    return _split_pytree(value, path) or _split_object(value, path)


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


# The two halves of the cache of an encoder-decoder, and what exporters call them.
HALVES = {"self_attention_cache": "decoder", "cross_attention_cache": "encoder"}


def _is_cache(value: Any) -> bool:
    """A cache as transformers builds it: layers that hold keys and values, or two of those. Known by its form, not by its class."""
    if all(hasattr(value, half) for half in HALVES):
        return all(_is_cache(getattr(value, half)) for half in HALVES)
    layers = getattr(value, "layers", None)
    return isinstance(layers, list) and hasattr(value, "update") and all(_is_layer(layer) for layer in layers)


def _is_layer(layer: Any) -> bool:
    held = getattr(layer, "keys", ""), getattr(layer, "values", "")  # those of a dict are methods
    return all(one is None or isinstance(one, torch.Tensor) for one in held)


def _split_cache(value: Any, path: str) -> Parts:
    """Keys and values of every layer, under the names that exporters of decoders have: `past_key_values.0.key`."""
    halves = {half: getattr(value, half) for half in HALVES if hasattr(value, half)} or {"": value}
    layers = {half: [_unwind(layer) for layer in cache.layers] for half, cache in halves.items()}
    count = max(map(len, layers.values()))
    places = [(half, i) for i in range(count) for half, own in layers.items() if i < len(own)]
    names = {
        (half, i): join_path(join_path(path, str(i)), HALVES[half]) if half else join_path(path, str(i))
        for half, i in places
    }
    children = [
        (f"{names[half, i]}.{kind}", getattr(layers[half][i], f"{kind}s"))
        for half, i in places
        for kind in ("key", "value")
    ]

    def assemble(parts: list[Any]) -> Any:
        # A forward fills the cache that it is given: every call gets its own.
        pairs = iter(zip(parts[::2], parts[1::2], strict=True))
        filled = {half: list[Any]() for half in layers}
        for half, i in places:
            filled[half].append(_fill_layer(layers[half][i], *next(pairs)))
        made = {half: _copy_changed(cache, layers=filled[half]) for half, cache in halves.items()}
        return made[""] if "" in made else _copy_changed(value, is_updated=dict(value.is_updated), **made)

    return children, assemble


def _unwind(layer: Any) -> Any:
    """A layer of a sliding window that has dropped nothing yet holds what a plain one holds, which keeps no count beside it."""
    growing = layer.keys is not None and not getattr(layer, "is_compileable", False)
    if not growing or getattr(layer, "cumulative_length", None) != layer.keys.shape[-2]:
        return layer
    plain = copy.copy(layer)
    plain.__class__ = type(layer).__mro__[1]
    return plain


def _fill_layer(layer: Any, keys: Any, values: Any) -> Any:
    """The layer with other keys and values; one of fixed size is written in place, and must not write into what it was given."""
    own = getattr(layer, "is_compileable", False) and keys is not None
    return _copy_changed(layer, keys=keys.clone() if own else keys, values=values.clone() if own else values)


def _copy_changed(value: Any, **attributes: Any) -> Any:
    """Another object with some attributes of its own."""
    other = copy.copy(value)
    vars(other).update(attributes)
    return other


def _split_object(value: Any, path: str) -> Parts | None:
    """An object of no known kind by its attributes, where tensors are among them (a user's own cache)."""
    if not hasattr(value, "__dict__") or isinstance(value, (type, torch.nn.Module)) or callable(value):
        return None
    holding = [name for name, held in vars(value).items() if _holds(held)]
    children = [(join_path(path, name), vars(value)[name]) for name in holding]
    return (children, lambda parts: _copy_changed(value, **dict(zip(holding, parts, strict=True)))) if holding else None


def _holds(value: Any) -> bool:
    """Whether a tensor is in it, in a list, or in a dict."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return isinstance(value, torch.Tensor) or any(_holds(one) for one in inner)


def _split_pytree(value: Any, path: str) -> Parts | None:
    """Types registered with torch's own pytrees."""
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
