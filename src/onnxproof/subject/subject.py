"""TARGET → Subject: the module, its example inputs, which dims are dynamic and the valid range of each input."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from onnxproof.errors import InputError, TargetError, condensed, listed
from onnxproof.request.python_objects import load_object
from onnxproof.request.specs import InputSpec, Range, parse_target
from onnxproof.subject.module_copy import twin
from onnxproof.subject.structure import Flat, flatten

Dims = Mapping[str, Mapping[int, str]]
Limits = Mapping[str, tuple[int, int]]


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
    ranges: Mapping[str, Range] = field(default_factory=dict)
    limits: Limits = field(default_factory=dict)
    """Name of a size → the smallest and the largest that is served."""
    cast: str | None = None
    """The dtype that float inputs were cast to, where the module rejects those of the example."""

    @property
    def inputs(self) -> Flat:
        """The example inputs, flat and named after the parameters."""
        return flatten_call(self.module, self.args, self.kwargs)

    def call(self, leaves: Sequence[torch.Tensor], module: nn.Module | None = None) -> Any:
        """Run the module (or a copy of it) on flat inputs."""
        args, kwargs = self.inputs.rebuild(leaves)
        return (module or self.module)(*args, **kwargs)

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
        """The example's size of each dynamic dimension."""
        tensors = self.inputs.tensors
        return {name: tensors[leaf].shape[dim] for leaf, dims in self.dynamic.items() for dim, name in dims.items()}


def flatten_call(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Flat:
    """Flatten positional and keyword inputs, named after the parameters of `forward`."""
    names = _parameter_names(module, len(args))
    parts: list[tuple[Flat, str | None]] = [
        (flatten(value, name), None) for name, value in zip(names, args, strict=True)
    ]
    parts += [(flatten(value, key), key) for key, value in kwargs.items()]
    tensors: dict[str, torch.Tensor] = {}
    constants: dict[str, Any] = {}
    for flat, _ in parts:
        clash = tensors.keys() & flat.tensors.keys()
        if clash:
            raise InputError(
                f"two inputs have the same name {listed(clash)}: give one value per parameter of forward()"
            )
        tensors |= flat.tensors
        constants |= flat.constants

    def rebuild(leaves: Sequence[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        rest = list(leaves)
        values: list[tuple[str | None, Any]] = []
        for flat, key in parts:
            count = len(flat.tensors)
            values.append((key, flat.rebuild(rest[:count])))
            rest = rest[count:]
        return tuple(v for k, v in values if k is None), {k: v for k, v in values if k is not None}

    return Flat(tensors, constants, rebuild)


def _parameter_names(module: nn.Module, count: int) -> list[str]:
    names: list[str] = []
    variadic = "args"
    try:
        parameters = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            variadic = parameter.name
        elif parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names = _script_names(module, names) or names
    return [names[i] if i < len(names) else f"{variadic}_{i - len(names)}" for i in range(count)]


def _script_names(module: nn.Module, names: list[str]) -> list[str]:
    """A ScriptModule's Python signature is (*args); its schema has the names."""
    if isinstance(module, torch.jit.ScriptModule):
        schema = module.forward.schema  # type: ignore[attr-defined]  # a ScriptMethod
        return [argument.name for argument in schema.arguments if argument.name != "self"]
    return names


# --- TARGET ---------------------------------------------------------------------------------------------------------


def load_target(target: str) -> tuple[Any, str]:
    """The object TARGET names, and a short name for it."""
    path, attribute = parse_target(target)
    return load_object(target) if attribute is not None else (_load_file(Path(path)), Path(path).stem)


def _load_file(path: Path) -> Any:
    if path.suffix == ".onnx":
        from onnxproof.subject.onnx_module import GraphModule, example_inputs

        return GraphModule(str(path)), example_inputs(str(path))
    try:
        if path.suffix == ".pt2":
            program = torch.export.load(path)
            return (program.module(), *_program_inputs(program))
        return torch.jit.load(str(path), map_location="cpu")
    except Exception as error:
        kind = (
            "an exported program (torch.export.save)"
            if path.suffix == ".pt2"
            else "a TorchScript module (torch.jit.save)"
        )
        raise TargetError(
            f"{path} cannot be loaded as {kind}: {condensed(error)}. A file of plain weights needs its code: "
            "use file.py:name with a function that builds the module and loads them"
        ) from error


def _program_inputs(program: torch.export.ExportedProgram) -> tuple[Any, ...]:
    example = program.example_inputs
    return (example,) if example is not None else ()


# --- the object behind TARGET → module and inputs --------------------------------------------------------------------


def resolve(value: Any, name: str) -> tuple[nn.Module, Any]:
    """A module and its example inputs (None when it has none) from a module, a class, a function or a pair."""
    if isinstance(value, nn.Module):
        return value, None
    if inspect.isclass(value) or (callable(value) and not isinstance(value, torch.Tensor)):
        return _split(_build(value, name), name)
    return _split(value, name)


def _build(factory: Callable[[], Any], name: str) -> Any:
    try:
        return factory()
    except (Exception, SystemExit) as error:
        raise TargetError(
            f"{name}() raised {type(error).__name__}: {condensed(error)}{_raised_at(error)}. "
            "TARGET is called without arguments and returns a module or (module, example_inputs)"
        ) from error


def _raised_at(error: BaseException) -> str:
    """The innermost line of the user's own code, else of any."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = Path(__file__).parents[1]
    foreign = [f for f in frames if "site-packages" in f.filename or Path(f.filename).is_relative_to(ours)]
    mine = [f for f in frames if f not in foreign] or list(frames)
    return f" ({Path(mine[-1].filename).name}:{mine[-1].lineno})" if mine else ""


def _split(value: Any, name: str) -> tuple[nn.Module, Any]:
    if isinstance(value, nn.Module):
        return value, None
    if isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[0], nn.Module):
        return value[0], value[1]
    got = f"a tuple of {len(value)}" if isinstance(value, tuple) else f"a {type(value).__name__}"
    raise TargetError(
        f"{name} gave {got}; expected a torch.nn.Module, or (module, example_inputs) where example_inputs is a tuple of "
        "positional inputs or a dict of keyword inputs"
    )


def _binds(module: nn.Module, args: Sequence[Any]) -> bool:
    """Whether forward() takes exactly these positional inputs."""
    try:
        inspect.signature(module.forward).bind(*args)
    except (TypeError, ValueError):
        return False
    kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL not in kinds


def split_inputs(inputs: Any, module: nn.Module | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Example inputs as (positional, keyword): a tuple or list is positional, a dict is keyword, a tensor is the only one.

    A pair (args, kwargs) is understood where forward() does not take such a pair as its two inputs.
    """
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, (tuple, list)) and not hasattr(inputs, "_fields"):
        pair = len(inputs) == 2 and isinstance(inputs[0], tuple) and isinstance(inputs[1], dict)
        if pair and not (module is not None and _binds(module, inputs)):
            return tuple(inputs[0]), dict(inputs[1])
        return tuple(inputs), {}
    return (inputs,), {}


def make_subject(
    module: nn.Module,
    inputs: Any,
    *,
    name: str = "model",
    specs: Sequence[InputSpec] = (),
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    ranges: Mapping[str, Range] | None = None,
) -> Subject:
    """Put a subject together and check every name against the module's inputs."""
    if specs:
        args, kwargs = _as_call(module, _inputs_from_specs(module, specs, ranges or {}))
    elif inputs is None:
        raise InputError(
            f"{name} comes without example inputs: return (module, example_inputs), or give each input with "
            "--input name:4x3x224x224:float32"
        )
    else:
        args, kwargs = split_inputs(inputs, module)
    subject = Subject(module, args, kwargs, name=name)
    known = subject.inputs.tensors
    if not known:
        raise InputError(f"{name} has no tensor among its example inputs: there is nothing to feed")
    _check_dense(known)
    _check_shaped(module, name)
    unknown = set(dynamic or {}) - set(known)
    if unknown:
        raise InputError(f"--dynamic: the model has no input {listed(sorted(unknown))}; its inputs are {listed(known)}")
    subject = replace(
        _cast(subject),
        asked_dynamic=dynamic is not None,
        dynamic=_checked(dynamic, known) if dynamic is not None else default_dynamic(known),
    )
    return _ranged(subject, ranges or {})


def _check_dense(inputs: Mapping[str, torch.Tensor]) -> None:
    """A graph takes arrays: what has no shape of its own cannot be fed."""
    for name, tensor in inputs.items():
        kind = "nested" if tensor.is_nested else "quantised" if tensor.is_quantized else None
        if kind is not None:
            raise InputError(
                f"the example input {name} is a {kind} tensor, which an ONNX graph cannot take: give "
                + (
                    "it padded, with a mask or the lengths"
                    if kind == "nested"
                    else "its float values, `tensor.dequantize()`"
                )
            )


def _check_shaped(module: nn.Module, name: str) -> None:
    """Lazy modules have no weights before their first call."""
    lazy = [path for path, p in module.named_parameters() if isinstance(p, UninitializedParameter)]
    if lazy:
        raise TargetError(
            f"{name} has parameters without a shape, {listed(lazy[:3])} (a lazy module): call it once with the example inputs, "
            "then load its weights, before it is handed over"
        )


def _ranged(subject: Subject, ranges: Mapping[str, Range]) -> Subject:
    """A range is one of an input's values or, where it has the name of a dynamic dimension, one of sizes."""
    inputs, sizes = subject.inputs.tensors, subject.sizes()
    unknown = sorted(set(ranges) - set(inputs) - set(sizes))
    if unknown:
        also = f", its dynamic dimensions {listed(sizes)}" if sizes else ""
        raise InputError(f"--range: the model has no input {listed(unknown)}; its inputs are {listed(inputs)}{also}")
    limits = {name: (int(r.low), int(r.high)) for name, r in ranges.items() if name not in inputs}
    for name, (low, high) in limits.items():
        if not 0 <= low <= sizes[name] <= high:
            raise InputError(
                f"--range {name}:{low},{high}: expected sizes around the example's, whose {name} is {sizes[name]}"
            )
    return replace(subject, ranges={name: r for name, r in ranges.items() if name in inputs}, limits=limits)


def _cast(subject: Subject) -> Subject:
    """Float inputs in the dtype of the weights, where the module rejects the example's dtype and takes that one."""
    weights = {p.dtype for p in subject.module.parameters() if p.is_floating_point()}
    leaves = list(subject.inputs.tensors.values())
    given = {leaf.dtype for leaf in leaves if leaf.is_floating_point()}
    if len(weights) != 1 or not given or given == weights or isinstance(subject.module, torch.jit.ScriptModule):
        return subject
    dtype = next(iter(weights))
    fitting = [leaf.to(dtype) if leaf.is_floating_point() else leaf for leaf in leaves]
    if _accepts(subject, leaves) or not _accepts(subject, fitting):
        return subject
    args, kwargs = subject.inputs.rebuild(fitting)
    return replace(subject, args=args, kwargs=kwargs, cast=str(dtype).removeprefix("torch."))


def _accepts(subject: Subject, leaves: Sequence[torch.Tensor]) -> bool:
    try:
        with torch.no_grad():  # on a copy: a forward may change buffers
            subject.call([leaf.clone() for leaf in leaves], twin(subject.module).eval())
    except Exception:
        return False
    return True


def _as_call(module: nn.Module, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Named inputs as a call: a scripted module takes them by position, in the order of its schema."""
    order = _script_names(module, [])
    if order and set(values) == set(order[: len(values)]):
        return tuple(values[name] for name in order[: len(values)]), {}
    return (), values


def _checked(dynamic: Mapping[str, Mapping[int, str]], known: Mapping[str, torch.Tensor]) -> Dims:
    checked: dict[str, dict[int, str]] = {}
    for name, dims in dynamic.items():
        rank = known[name].ndim
        for dim in dims:
            if not -rank <= dim < rank:
                raise InputError(f"--dynamic {name}:{dim}: expected a dimension below {rank}, the rank of {name}")
        checked[name] = {dim % rank: size for dim, size in dims.items()}
    return checked


def default_dynamic(tensors: Mapping[str, torch.Tensor]) -> Dims:
    """The first dimension of every input that shares the first input's size there."""
    sizes = [t.shape[0] for t in tensors.values() if t.ndim]
    if not sizes:
        return {}
    batch = sizes[0]
    return {name: {0: "batch"} for name, t in tensors.items() if t.ndim and t.shape[0] == batch}


def _inputs_from_specs(module: nn.Module, specs: Sequence[InputSpec], ranges: Mapping[str, Range]) -> dict[str, Any]:
    accepted = _keyword_names(module)
    generator = torch.Generator().manual_seed(0)
    values: dict[str, Any] = {}
    for spec in specs:
        if accepted is not None and spec.name not in accepted:
            raise InputError(f"--input: the model has no input {spec.name!r}; its inputs are {listed(accepted)}")
        values[spec.name] = _example(spec, ranges.get(spec.name), generator)
    return values


def _keyword_names(module: nn.Module) -> list[str] | None:
    if isinstance(module, torch.jit.ScriptModule):
        return _script_names(module, [])
    parameters = inspect.signature(module.forward).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return None
    return [p.name for p in parameters]


def _example(spec: InputSpec, valid: Range | None, generator: torch.Generator) -> torch.Tensor:
    dtype = getattr(torch, spec.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise InputError(f"--input {spec.name}: {spec.dtype!r} is not a dtype; expected float32, int64, bool, …")
    if dtype == torch.bool:
        return torch.randint(0, 2, spec.shape, generator=generator).bool()
    if not dtype.is_floating_point and not dtype.is_complex:
        low, high = (int(valid.low), int(valid.high)) if valid else (0, 1)
        return torch.randint(low, high + 1, spec.shape, generator=generator).to(dtype)
    if valid:
        unit = torch.rand(spec.shape, generator=generator, dtype=torch.float64)
        return (valid.low + unit * (valid.high - valid.low)).to(dtype)
    return torch.randn(spec.shape, generator=generator).to(dtype)
