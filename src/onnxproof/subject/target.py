"""TARGET → the object that it names → a module and its example inputs."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from onnxproof.errors import FindingError, TargetError, condense, list_names
from onnxproof.graph.file import hold_against
from onnxproof.request.python_objects import load_object
from onnxproof.request.specs import SCRIPTS, parse_target
from onnxproof.subject.exported_program import load_program
from onnxproof.subject.subject import read_parameters

SAVED = {".pt2": "an exported program (torch.export.save)"}


class Call(NamedTuple):
    """Positional and keyword inputs that were given apart: never two inputs of a forward that would take such a pair."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def load_target(target: str, *, trust: bool = False) -> tuple[Any, str]:
    """The object TARGET names, and a short name for it; what is pickled in a file runs only where it is trusted."""
    path, attribute = parse_target(target)
    if attribute is None:
        return _load_file(Path(path), trust), Path(path).stem
    if not path.endswith(SCRIPTS):
        return load_object(target)
    module = _load_file(Path(path), trust)
    parts = dict(module.named_modules())
    if attribute not in parts:
        named = [name for name in parts if name and "." not in name]
        raise TargetError(f"{path} has no part {attribute!r}; its parts are {list_names(named[:20])}")
    return parts[attribute], attribute


def _load_file(path: Path, trust: bool) -> Any:
    if path.suffix == ".onnx":
        from onnxproof.subject.onnx_module import GraphModule, make_examples

        try:
            with hold_against(path):
                return GraphModule(str(path)), make_examples(str(path))
        except FindingError as error:
            raise TargetError(f"{path} cannot be read: {error} (`onnxproof explain {error.finding.code}`)") from error
    try:
        if path.suffix != ".pt2":
            # It may have been saved on a device that is not here.
            return torch.jit.load(str(path), map_location="cpu")
        program = load_program(path, trust=trust)
        args, kwargs = program.example_inputs or (None, None)
        # Without keywords the positional ones alone: a module of two inputs would take the pair for them.
        return program.module(), (args, kwargs) if kwargs else args
    except TargetError:
        raise
    except Exception as error:
        kind = SAVED.get(path.suffix, "a TorchScript module (torch.jit.save)")
        raise TargetError(
            f"{path} cannot be loaded as {kind}: {condense(error)}. A file of plain weights needs its code: "
            "use file.py:name with a function that builds the module and loads them"
        ) from error


def resolve(value: Any, name: str) -> tuple[nn.Module, Any]:
    """A module and its example inputs (None when it has none) from a module, a class, a function or a pair."""
    if callable(value) and not isinstance(value, (nn.Module, torch.Tensor)):
        value = _build(value, name)
    if isinstance(value, nn.Module):
        return value, None
    if isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[0], nn.Module):
        return value[0], value[1]
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], nn.Module) and isinstance(value[2], dict):
        return value[0], Call(tuple(value[1]), value[2])
    got = f"a tuple of {len(value)}" if isinstance(value, tuple) else f"a {type(value).__name__}"
    raise TargetError(
        f"{name} gave {got}; expected a torch.nn.Module, (module, example_inputs) where example_inputs is a tuple of "
        "positional inputs or a dict of keyword inputs, or (module, positional, keyword)"
    )


def _build(factory: Callable[[], Any], name: str) -> Any:
    try:
        return factory()
    except (Exception, SystemExit) as error:
        raise TargetError(
            f"{name}() raised {type(error).__name__}: {condense(error)}{_locate_error(error)}. "
            "TARGET is called without arguments and returns a module or (module, example_inputs)"
        ) from error


def _locate_error(error: BaseException) -> str:
    """The innermost line of the user's own code, else of any."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = Path(__file__).parents[1]
    foreign = [f for f in frames if "site-packages" in f.filename or Path(f.filename).is_relative_to(ours)]
    mine = [f for f in frames if f not in foreign] or list(frames)
    return f" ({Path(mine[-1].filename).name}:{mine[-1].lineno})" if mine else ""


def split_inputs(inputs: Any, module: nn.Module) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Example inputs as (positional, keyword): a tuple or list is positional, a dict is keyword, a tensor is the only one.

    A pair (args, kwargs) is understood where forward() does not take such a pair as its two inputs.
    """
    if isinstance(inputs, Call):
        return inputs
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if not isinstance(inputs, (tuple, list)) or hasattr(inputs, "_fields"):
        return (inputs,), {}
    pair = len(inputs) == 2 and isinstance(inputs[0], tuple) and isinstance(inputs[1], dict)
    return (inputs[0], dict(inputs[1])) if pair and not _binds(module, inputs) else (tuple(inputs), {})


def _binds(module: nn.Module, args: Sequence[Any]) -> bool:
    """Whether forward() takes exactly these positional inputs."""
    try:
        inspect.signature(module.forward).bind(*args)
    except (TypeError, ValueError):
        return False
    return all(p.kind is not inspect.Parameter.VAR_POSITIONAL for p in read_parameters(module))
