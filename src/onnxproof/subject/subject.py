"""What is being proved: the module, its example inputs, which dims are dynamic and the valid range of each input."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from onnxproof.errors import InputError, list_names
from onnxproof.request.specs import Range
from onnxproof.subject.mode import hold_at_rest, keep_surroundings
from onnxproof.subject.sizes import list_free
from onnxproof.subject.structure import Flat, flatten

Dims = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True)
class Subject:
    """What is being proved."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    name: str = "model"
    dynamic: Dims = field(default_factory=dict)
    """Per input: dimension → the name of its size. Equal names mean equal sizes."""
    asked_dynamic: bool = False
    """Whether the user asked for these dims; otherwise it is the batch dimension by default."""
    tied: tuple[str, ...] = ()
    """Dimensions that were taken along, because the module refuses the asked ones without them: `mask:1=seq`."""
    ranges: Mapping[str, Range] = field(default_factory=dict)
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Name of a size → the smallest and the largest that is served."""
    cast: str | None = None
    """The dtype that float inputs were cast to, where the module rejects those of the example."""
    foreign: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """Inputs that only the file has: the module is called without them."""
    completed: tuple[str, ...] = ()
    """Parameters that the example leaves out and the file takes."""

    @property
    def inputs(self) -> Flat:
        """The example inputs, flat and named after the parameters."""
        flat = flatten_call(self.module, self.args, self.kwargs)
        if not self.foreign:
            return flat
        count = len(flat.tensors)
        return replace(
            flat, tensors={**flat.tensors, **self.foreign}, rebuild=lambda leaves: flat.rebuild([*leaves][:count])
        )

    def copies(self) -> list[torch.Tensor]:
        """The example inputs as tensors of their own: a forward may change what it is given."""
        return [tensor.clone() for tensor in self.inputs.tensors.values()]

    def call(self, leaves: Sequence[torch.Tensor], module: nn.Module | None = None) -> Any:
        """Run the module (or a copy of it) on flat inputs."""
        args, kwargs = self.inputs.rebuild(leaves)
        with keep_surroundings():
            return (module or self.module)(*args, **kwargs)

    def accepts(self, leaves: Sequence[torch.Tensor], module: nn.Module | None = None) -> bool:
        """Whether the module (or a copy of it) answers flat inputs in eval mode; it and they stay as they are."""
        try:
            with hold_at_rest(module or self.module):
                self.call([leaf.clone() for leaf in leaves], module)
        except Exception:
            return False
        return True

    @property
    def batch(self) -> str | None:
        """The name of the batch: of the first input's first dimension, if that is dynamic."""
        names = [dims[0] for dims in self.dynamic.values() if 0 in dims]
        return "batch" if "batch" in names else names[0] if names else None

    @property
    def baseline(self) -> str:
        """What messages call this side: PyTorch, or the file that stands in its place."""
        return getattr(self.module, "file_name", "PyTorch")

    def shapes(self) -> dict[str, tuple[int | None, ...]]:
        """The sizes of every input, None where they are dynamic."""
        return {
            name: tuple(None if dim in self.dynamic.get(name, {}) else size for dim, size in enumerate(tensor.shape))
            for name, tensor in self.inputs.tensors.items()
        }

    def sizes(self) -> dict[str, int]:
        """The example's size of each dynamic dimension; sums of others follow from them."""
        tensors = self.inputs.tensors
        sizes = {name: tensors[leaf].shape[dim] for leaf, dims in self.dynamic.items() for dim, name in dims.items()}
        return {name: sizes[name] for name in list_free(sizes)}


def flatten_call(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Flat:
    """Flatten positional and keyword inputs, named after the parameters of `forward`."""
    names = [*name_positional(module, len(args)), *kwargs]
    clash = {name for name in names if names.count(name) > 1}
    if clash:
        raise InputError(
            f"two inputs have the same name {list_names(clash)}: give one value per parameter of forward()"
        )
    flat = flatten(dict(zip(names, (*args, *kwargs.values()), strict=True)))

    def rebuild(leaves: Sequence[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        values = list(flat.rebuild(leaves).values())
        return tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :], strict=True))

    return Flat(flat.tensors, flat.constants, rebuild)


def name_positional(module: nn.Module, count: int) -> list[str]:
    """The parameters that so many positional inputs go to."""
    known = read_parameters(module)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = read_script_names(module) or [p.name for p in known if p.kind in positional]
    variadic = next((p.name for p in known if p.kind is inspect.Parameter.VAR_POSITIONAL), "args")
    return [names[i] if i < len(names) else f"{variadic}_{i - len(names)}" for i in range(count)]


def read_parameters(module: nn.Module) -> list[inspect.Parameter]:
    """What forward() takes by its signature; nothing where it has none."""
    try:
        return list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        return []


def read_script_names(module: nn.Module) -> list[str]:
    """A ScriptModule's Python signature is (*args); its schema has the names."""
    if not isinstance(module, torch.jit.ScriptModule):
        return []
    schema = module.forward.schema  # type: ignore[attr-defined]  # a ScriptMethod
    return [argument.name for argument in schema.arguments if argument.name != "self"]
