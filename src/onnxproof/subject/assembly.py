"""A module and inputs → Subject: every name, dimension and range checked against the module's inputs."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from onnxproof.errors import InputError, TargetError, condense, list_names
from onnxproof.request.specs import InputSpec, Range
from onnxproof.subject.completion import complete
from onnxproof.subject.dynamic import choose_default, read_asked, take_along
from onnxproof.subject.module_copy import copy_module
from onnxproof.subject.subject import Dims, Subject, name_positional, read_parameters, read_script_names
from onnxproof.subject.target import split_inputs


def make_subject(
    module: nn.Module,
    inputs: Any,
    *,
    name: str = "model",
    specs: Sequence[InputSpec] = (),
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    ranges: Mapping[str, Range] | None = None,
    asked: Dims = MappingProxyType({}),
) -> Subject:
    """Put a subject together and check every name against the module's inputs, and against those that a given file asks for
    (with the names that it has for their sizes)."""
    foreign: dict[str, torch.Tensor] = {}
    if specs:
        fixed = {spec.name: Range(spec.value, spec.value) for spec in specs if spec.value is not None}
        ranges = {**fixed, **(ranges or {})}
        made, foreign = _make_inputs(module, specs, ranges, asked)
        args, kwargs = _arrange_call(module, {**_name_given(module, inputs), **made})
    elif inputs is None:
        raise InputError(
            f"{name} comes without example inputs: return (module, example_inputs), or give each input with "
            "--input name:4x3x224x224:float32"
        )
    else:
        args, kwargs = split_inputs(inputs, module)
    subject = complete(Subject(module, args, kwargs, name=name, foreign=foreign), asked)
    known = subject.inputs.tensors
    if not known:
        raise InputError(f"{name} has no tensor among its example inputs: there is nothing to feed")
    _check_dense(known)
    _check_shaped(module, name)
    subject = _cast(subject)
    if dynamic is None:
        # What the module is called without has no size that follows its inputs'.
        subject = replace(choose_default(replace(subject, foreign={})), foreign=subject.foreign)
    else:
        wished = replace(subject, asked_dynamic=True, dynamic=read_asked(dynamic, known))
        subject, tied = take_along(wished)
        subject = replace(subject, tied=tuple(tied))
    return _add_ranges(*_follow_file(subject, ranges or {}, asked))


NESTED = "nested", "it padded, with a mask or the lengths"
QUANTISED = "quantised", "its float values, `tensor.dequantize()`"


def _check_dense(inputs: Mapping[str, torch.Tensor]) -> None:
    """A graph takes arrays: what has no shape of its own cannot be fed."""
    for name, tensor in inputs.items():
        if tensor.is_nested or tensor.is_quantized:
            kind, instead = NESTED if tensor.is_nested else QUANTISED
            message = f"the example input {name} is a {kind} tensor, which an ONNX graph cannot take: give {instead}"
            raise InputError(message)


def _check_shaped(module: nn.Module, name: str) -> None:
    """Lazy modules have no weights before their first call."""
    lazy = [path for path, p in module.named_parameters() if isinstance(p, UninitializedParameter)]
    if lazy:
        raise TargetError(
            f"{name} has parameters without a shape, {list_names(lazy[:3])} (a lazy module): call it once with the example inputs, "
            "then load its weights, before it is handed over"
        )


def _follow_file(subject: Subject, ranges: Mapping[str, Range], asked: Dims) -> tuple[Subject, Mapping[str, Range]]:
    """Where a range names a size that only the given file knows: that size is dynamic, or has another name here."""
    tensors, known, sizes = subject.inputs.tensors, subject.dynamic, subject.sizes()
    renamed, added = dict(ranges), {name: dict(dims) for name, dims in known.items()}
    for name in tensors:
        for dim, size in asked.get(name, {}).items():
            if size not in ranges or size in tensors or size in sizes:
                continue
            own = added.setdefault(name, {}).setdefault(dim, size)
            if own != size:
                renamed[own] = renamed.pop(size, ranges[size])
    if added == known:
        return subject, renamed
    subject, tied = take_along(replace(subject, dynamic=added))
    return replace(subject, tied=(*subject.tied, *tied)), renamed


def _add_ranges(subject: Subject, ranges: Mapping[str, Range]) -> Subject:
    """A range is one of an input's values or, where it has the name of a dynamic dimension, one of sizes."""
    inputs, sizes = subject.inputs.tensors, subject.sizes()
    unknown = sorted(set(ranges) - set(inputs) - set(sizes))
    if unknown:
        also = f", its dynamic dimensions {list_names(sizes)}" if sizes else ""
        raise InputError(
            f"--range: the model has no input {list_names(unknown)}; its inputs are {list_names(inputs)}{also}"
        )
    limits = {name: (_to_size(r.low), _to_size(r.high)) for name, r in ranges.items() if name not in inputs}
    for name, (low, high) in limits.items():
        if not 0 <= low <= sizes[name] <= high:
            raise InputError(
                f"--range {name}:{low},{high}: expected sizes around the example's, whose {name} is {sizes[name]}"
            )
    ranges = {**subject.ranges, **{name: r for name, r in ranges.items() if name in inputs}}
    return replace(subject, ranges=ranges, limits=limits)


def _to_size(end: float) -> int:
    """A whole number; what no tensor can have is cut to what can be written down."""
    return int(max(-(2.0**62), min(end, 2.0**62)))


def _cast(subject: Subject) -> Subject:
    """Float inputs in the dtype of the weights, where the module rejects the example's dtype and takes that one."""
    weights = {p.dtype for p in subject.module.parameters() if p.is_floating_point()}
    leaves = list(subject.inputs.tensors.values())
    given = {leaf.dtype for leaf in leaves if leaf.is_floating_point()}
    if len(weights) != 1 or not given or given == weights or isinstance(subject.module, torch.jit.ScriptModule):
        return subject
    dtype = next(iter(weights))
    fitting = [leaf.to(dtype) if leaf.is_floating_point() else leaf for leaf in leaves]
    # Copies: a forward may change whatever hangs on a module.
    as_given, as_fitting = (subject.accepts(some, copy_module(subject.module)) for some in (leaves, fitting))
    if as_given or not as_fitting:
        return subject
    args, kwargs = subject.inputs.rebuild(fitting)
    return replace(subject, args=args, kwargs=kwargs, cast=str(dtype).removeprefix("torch."))


def _arrange_call(module: nn.Module, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Named inputs as a call: a scripted module takes them by position, in the order of its schema."""
    order = read_script_names(module)
    if order and set(values) == set(order[: len(values)]):
        return tuple(values[name] for name in order[: len(values)]), {}
    return (), values


def _name_given(module: nn.Module, inputs: Any) -> dict[str, Any]:
    """The example that a target comes with, by name."""
    args, kwargs = split_inputs(inputs, module) if inputs is not None else ((), {})
    return {**dict(zip(name_positional(module, len(args)), args, strict=True)), **kwargs}


def _make_inputs(
    module: nn.Module, specs: Sequence[InputSpec], ranges: Mapping[str, Range], asked: Collection[str]
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The module's inputs, and those that only a file has."""
    accepted = _list_keywords(module)
    generator = torch.Generator().manual_seed(0)
    values: dict[str, Any] = {}
    for spec in specs:
        if accepted is not None and spec.name not in (*accepted, *asked):
            raise InputError(f"--input: the model has no input {spec.name!r}; its inputs are {list_names(accepted)}")
        try:
            values[spec.name] = _draw_example(spec, ranges.get(spec.name), generator)
        except RuntimeError as error:  # torch's, where memory does not hold it or the dtype not its range
            shape = "x".join(map(str, spec.shape))
            raise InputError(f"--input {spec.name}:{shape}:{spec.dtype} cannot be made: {condense(error)}") from None
    foreign = {name: values.pop(name) for name in [*values] if accepted is not None and name not in accepted}
    return values, foreign


def _list_keywords(module: nn.Module) -> list[str] | None:
    if isinstance(module, torch.jit.ScriptModule):
        return read_script_names(module)
    known = read_parameters(module)
    return None if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known) else [p.name for p in known]


def _draw_example(spec: InputSpec, valid: Range | None, generator: torch.Generator) -> torch.Tensor:
    dtype = getattr(torch, spec.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise InputError(f"--input {spec.name}: {spec.dtype!r} is not a dtype; expected float32, int64, bool, …")
    if not dtype.is_floating_point and not dtype.is_complex:  # 0 or 1 of a bool
        low, high = (int(valid.low), int(valid.high)) if valid else (0, 1)
        return torch.randint(low, high + 1, spec.shape, generator=generator).to(dtype)
    if valid:
        unit = torch.rand(spec.shape, generator=generator, dtype=torch.float64)
        return (valid.low + unit * (valid.high - valid.low)).to(dtype)
    return torch.randn(spec.shape, generator=generator).to(dtype)
