"""Operations of the module that are known to part on some values: measured beforehand (the atlas), noted where the module uses one in that way."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from onnxproof.findings import Finding, Where, found
from onnxproof.findings.frames import find_running_line
from onnxproof.subject.mode import forget_compiled, hold_at_rest
from onnxproof.subject.subject import Subject

ATLAS = Path(__file__).with_name("atlas.json")
# An operation by its name, the manner in which it is called, and the dtype of its first tensor.
Use = tuple[str, str, str]


def lint_operations(subject: Subject, exporter: str) -> Iterator[Finding]:
    """Operations of the module that part by themselves on fair values, as measured with these very versions."""
    known = _read_known(exporter)
    places = _find_places(subject, known) if known else {}
    told = dict[str, tuple[Mapping[str, Any], Where]]()
    for use, where in places.items():
        told.setdefault(known[use]["cause"], (known[use], where))
    for entry, where in told.values():
        yield found("OX148", _tell(entry), where=where, evidence=dict(entry))


def read_manner(func: Any, args: Any, kwargs: Any) -> str:
    """How an operation is called, as far as it takes another way by it: switches, numbers that are not the default, an odd shape."""
    given = dict(zip((one.name for one in func._schema.arguments), args, strict=False)) | dict(kwargs)
    parts = []
    for one in func._schema.arguments:
        value = given.get(one.name, one.default_value if one.has_default_value() else None)
        if value is None or isinstance(value, (bool, str)):
            parts.append(f"{one.name}={value}")
        elif isinstance(value, (int, float)) and one.has_default_value() and value != one.default_value:
            parts.append(f"{one.name} is not {one.default_value}")
    tensors = [one for one in given.values() if isinstance(one, torch.Tensor)]
    odd = {
        "empty" if not one.numel() else "single" for one in tensors if not one.numel() or 1 in one.shape or not one.ndim
    }
    return ", ".join([*parts, *sorted(odd)])


def read_dtype(args: Any, kwargs: Any) -> str:
    """The dtype of the first tensor that an operation takes."""
    tensors = (one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor))
    return next((str(one.dtype).removeprefix("torch.") for one in tensors), "")


def _read_known(exporter: str) -> dict[Use, Mapping[str, Any]]:
    atlas = _load_atlas()
    if any(version(name).partition("+")[0] != atlas[name] for name in ("torch", "onnxruntime")):
        return {}
    return {
        (entry["cause"], entry["manner"], dtype): entry
        for entry in atlas["differences"]
        if entry["exporter"] == exporter
        for dtype in entry["dtypes"]
    }


@cache
def _load_atlas() -> dict[str, Any]:
    atlas: dict[str, Any] = json.loads(ATLAS.read_text(encoding="utf-8"))
    return atlas


class _Watch(TorchDispatchMode):
    """Notes where operations of interest are called first."""

    def __init__(self, wanted: Mapping[Use, Any], path: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self._wanted, self._names, self._path = wanted, {name for name, _, _ in wanted}, path
        self.places: dict[Use, Where] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if str(func) in self._names:
            use = (str(func), read_manner(func, args, kwargs), read_dtype(args, kwargs))
            if use in self._wanted and use not in self.places:
                line = find_running_line()
                self.places[use] = Where(module=self._path[-1] or None, file=line.file, line=line.line)
        return func(*args, **kwargs)


def _find_places(subject: Subject, known: Mapping[Use, Any]) -> Mapping[Use, Where]:
    """Which of the known operations a forward on the example calls, and where."""
    path = [""]
    with ExitStack() as stack:
        for name, module in subject.module.named_modules():
            _follow(stack, module, name, path)
        watch = _Watch(known, path)
        try:
            with hold_at_rest(subject.module), torch.no_grad(), watch:
                subject.call(subject.copies())
        except Exception:
            # What cannot be watched (torch.cond) or rejects its example is told by others, or exports well.
            forget_compiled()
    return watch.places


def _follow(stack: ExitStack, module: nn.Module, name: str, path: list[str]) -> None:
    """Keep the path of the module that runs."""
    if isinstance(module, torch.jit.ScriptModule):
        return
    stack.enter_context(module.register_forward_pre_hook(lambda *_: path.append(name)))
    stack.enter_context(module.register_forward_hook(lambda *_: _leave(path), always_call=True))


def _leave(path: list[str]) -> None:
    path.pop()


def _tell(entry: Mapping[str, Any]) -> str:
    on = " and ".join(map(_shorten, entry["given"]))
    where = f"on {on}" if on else f"on {entry['profile']} values"
    what = f"gives {_shorten(entry['got'])} where PyTorch gives {_shorten(entry['expected'])}" * (
        entry["got"] is not None
    )
    return f"the module uses {entry['cause']}, which {what or 'has ' + entry['kind']} {where} in this onnxruntime"


def _shorten(value: Any) -> str:
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value)
