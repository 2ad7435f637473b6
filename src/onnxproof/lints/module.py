"""The module before its export: what will surprise, though it may export well."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from onnxproof.findings import Finding, Where, found
from onnxproof.findings.frames import find_running_line
from onnxproof.lints.source import Spot, find_fixed_spots, find_preprocessing_spots
from onnxproof.subject.mode import hold_at_rest
from onnxproof.subject.onnx_module import GraphModule
from onnxproof.subject.structure import join_path
from onnxproof.subject.subject import Subject

# Attributes that every module has; what else is there is the user's.
OWN_STATE = frozenset(nn.Module().__dict__)
SHOWN = 5


def lint_module(subject: Subject, target: str | None = None) -> list[Finding]:
    """What is remarkable about the module."""
    checks: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
        _lint_devices,
        _lint_python_state,  # before anything else calls the module: a cache that is filled does not change again
        _lint_batch_statistics,
        _lint_wide_weights,
        _lint_tied_weights,
        _lint_fast_path,
        _lint_fixed_numbers,
    )
    kinds = {type(module).__name__ for module in subject.module.modules()}
    path = Path((target or "").rpartition(":")[0])
    beside = _tell_spots("OX146", find_preprocessing_spots(path, kinds) if path.suffix == ".py" else [])
    with _hold_attributes(subject.module):  # what is asked next is to be the first call again
        return [*(finding for check in checks for finding in check(subject)), *beside]


@contextmanager
def _hold_attributes(module: nn.Module) -> Iterator[None]:
    """What a forward sets is as it was after the block. A script has no attributes of its own."""
    kept = {child: dict(child.__dict__) for child in module.modules() if not isinstance(child, torch.jit.ScriptModule)}
    try:
        yield
    finally:
        for child, attributes in kept.items():
            child.__dict__.clear()
            child.__dict__.update(attributes)


def _collect_tensors(module: nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _lint_devices(subject: Subject) -> Iterator[Finding]:
    places: dict[str, list[str]] = {}
    for name, tensor in _collect_tensors(subject.module).items():
        places.setdefault(str(tensor.device), []).append(name)
    if len(places) > 1:
        told = "; ".join(f"{device}: {', '.join(names[:3])}" for device, names in sorted(places.items()))
        yield found("OX125", f"the module's tensors are on several devices ({told})", evidence={"devices": places})


def _lint_batch_statistics(subject: Subject) -> Iterator[Finding]:
    named = [
        name
        for name, module in subject.module.named_modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is None
    ]
    if named:
        message = f"batch normalisation without running statistics in {', '.join(named[:SHOWN])}: each answer depends on the rest of its batch"
        yield found("OX141", message, where=Where(module=named[0]), evidence={"modules": named})
    elif lines := _find_normalising(subject):
        message = "batch normalisation with `training=True` in eval mode: each answer depends on the rest of its batch"
        yield found("OX141", message, where=lines[0])


def _find_normalising(subject: Subject) -> list[Where]:
    """The lines that normalise by the statistics of the batch in eval mode."""
    lines: list[Where] = []
    plain = torch.batch_norm

    def noted(input: torch.Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, *rest: Any) -> Any:
        if training:
            lines.append(find_running_line())
        return plain(input, weight, bias, mean, var, training, *rest)

    # A dispatch mode would see more, and torch.cond does not run under one.
    with patch.object(torch, "batch_norm", noted):
        # A module that rejects its example says so itself when it is exported.
        return lines if subject.accepts(subject.copies()) else []


def _lint_wide_weights(subject: Subject) -> Iterator[Finding]:
    floats = {n: t for n, t in _collect_tensors(subject.module).items() if t.is_floating_point()}
    wide = [name for name, tensor in floats.items() if tensor.dtype == torch.float64]
    if 0 < len(wide) < len(floats):
        message = f"{len(wide)} of {len(floats)} float tensors are float64: {', '.join(wide[:SHOWN])}"
        yield found("OX142", message, evidence={"tensors": wide})


def _lint_tied_weights(subject: Subject) -> Iterator[Finding]:
    names: dict[int, list[str]] = {}
    for name, parameter in subject.module.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    tied = [group for group in names.values() if len(group) > 1]
    if tied:
        message = f"weights are shared: {'; '.join(' = '.join(group[:3]) for group in tied[:SHOWN])}"
        yield found("OX143", message, evidence={"tied": tied})


def _lint_fast_path(subject: Subject) -> Iterator[Finding]:
    """Encoders that leave padded positions out in eval mode, and are given some."""
    encoders: dict[nn.Module, str] = {
        module: name
        for name, module in subject.module.named_modules()
        if isinstance(module, nn.TransformerEncoder) and getattr(module, "use_nested_tensor", False)
    }
    if not encoders or not torch.backends.mha.get_fastpath_enabled():
        return
    padded: list[str] = []

    def noted(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if kwargs.get("src_key_padding_mask", args[2] if len(args) > 2 else None) is not None:
            padded.append(encoders[module])

    with ExitStack() as hooks:
        for module in encoders:
            hooks.enter_context(module.register_forward_pre_hook(noted, with_kwargs=True))
        runs = subject.accepts(subject.copies())
    if runs and padded:
        message = f"the transformer encoder {padded[0] or '(the module itself)'} leaves padded positions out in eval mode and answers zeros there; the graph computes them"
        yield found("OX147", message, where=Where(module=padded[0] or None), evidence={"modules": padded})


def _lint_python_state(subject: Subject) -> Iterator[Finding]:
    """Attributes that a forward changes. The graph holds what they were when it was captured."""
    # A script has none, and a file that stands in for a module only keeps what it has opened.
    if isinstance(subject.module, (torch.jit.ScriptModule, GraphModule)):
        return
    try:
        with _hold_attributes(subject.module), hold_at_rest(subject.module):
            before = _read_attributes(subject.module)
            subject.call(subject.copies())
            after = _read_attributes(subject.module)
    except Exception:
        return  # a module that rejects its example says so itself when it is exported
    differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    changed = sorted((differing | _find_filled(subject.module)) - _list_hooked(subject.module))
    if changed:
        message = f"a forward changes Python attributes: {', '.join(changed[:SHOWN])}"
        yield found("OX144", message, evidence={"attributes": changed})


# Where a forward writes into what the module, under the name that it has there, holds.
FILLED = r"\b{}\.(\w+)(?:\[[^\]\n]+\]\s*=(?!=)|\.(?:append|extend|add|update|setdefault)\()"


def _list_hooked(module: nn.Module) -> set[str]:
    """Attributes that PyTorch's own hooks set anew before each forward: a weight that is normalised or pruned."""
    names = [
        (path, getattr(hook, "name", getattr(hook, "_tensor_name", None)))
        for path, child in module.named_modules()
        for hook in getattr(child, "_forward_pre_hooks", {}).values()
        if type(hook).__module__.startswith("torch.nn.utils")
    ]
    return {join_path(path, name) for path, name in names if name}


def _find_filled(module: nn.Module) -> set[str]:
    """Lists and dicts that a forward writes to by its source: a cache that an earlier call filled does not change again."""
    found = set()
    for path, child in module.named_modules():
        try:
            source = inspect.getsource(type(child).forward)
            me = next(iter(inspect.signature(type(child).forward).parameters))
        except (OSError, TypeError, ValueError, StopIteration):
            continue
        held = {name: value for name, value in child.__dict__.items() if isinstance(value, (dict, list, set)) and value}
        names = [name for name in re.findall(FILLED.format(re.escape(me)), source) if name in held]
        found |= {join_path(path, name) for name in names}
    return found


def _read_attributes(module: nn.Module) -> dict[str, Any]:
    return {
        join_path(path, name): _digest(value)
        for path, child in module.named_modules()
        for name, value in child.__dict__.items()
        if name not in OWN_STATE
    }


def _digest(value: Any, depth: int = 0) -> Any:
    """What changes when a value changes; deep enough for caches, shallow enough to be cheap."""
    if isinstance(value, torch.Tensor):
        return ("tensor", id(value), tuple(value.shape), value._version)
    if isinstance(value, (int, float, str, bool, type(None))):
        return value
    if isinstance(value, Mapping) and depth < 3:
        return {str(key): _digest(item, depth + 1) for key, item in list(value.items())[:50]} | {"": len(value)}
    if isinstance(value, (list, tuple)) and depth < 3:
        return (len(value), [_digest(item, depth + 1) for item in list(value)[:50]])
    return id(value)


def _lint_fixed_numbers(subject: Subject) -> Iterator[Finding]:
    batch = subject.sizes().get(subject.batch or "")
    owners = {
        type(module): module
        for module in reversed(list(subject.module.modules()))  # the outermost of a type stays
        if not type(module).__module__.startswith(("torch.", "onnxproof."))
    }
    spots = [
        spot
        for kind, owner in reversed(owners.items())
        for spot in find_fixed_spots(
            kind.forward, owner, batch, subject.inputs.tensors if owner is subject.module else ()
        )
    ]
    yield from _tell_spots("OX145", list(dict.fromkeys(spots)))  # what several modules call is told once


def _tell_spots(code: str, spots: Sequence[Spot]) -> Iterator[Finding]:
    for first in spots[:1]:
        message = f"{first.what}: `{first.text[:100]}`" + f" (and {len(spots) - 1} more lines)" * (len(spots) > 1)
        evidence = {"lines": [f"{spot.file}:{spot.line}: {spot.text}  ({spot.what})" for spot in spots[:50]]}
        yield found(code, message, where=Where(file=first.file, line=first.line), evidence=evidence)
