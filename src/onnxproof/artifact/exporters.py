"""The two exporters of torch, and what is made of the graphs that they return."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import onnx_ir as ir
import torch
from torch.export import _unlift

from onnxproof.artifact.file import SIGNATURE
from onnxproof.artifact.registry import share_tables
from onnxproof.artifact.wrapper import FlatModule
from onnxproof.files import replacing
from onnxproof.findings.frames import PREFIX
from onnxproof.graph import sourcemap
from onnxproof.graph.view import label_node
from onnxproof.graph.weights import write_model
from onnxproof.subject.mode import keep_surroundings
from onnxproof.subject.subject import Subject

# Bytes of weights above which they go to a file of their own (a protobuf holds 2 GB at most).
EXTERNAL_ABOVE = 1_500_000_000


@dataclass(frozen=True)
class Attempt:
    """One way to call the exporter."""

    exporter: str
    static: frozenset[str] = frozenset()
    """Dimensions that the model turned out to fix: they are exported as constants, and reported."""
    optimize: bool = True
    strict: bool = False
    opset: int | None = None
    grown: bool = False
    """On larger examples: a part of the example may have a size that is special, which torch takes for a promise."""


@dataclass(frozen=True)
class Order:
    """What is to be exported, and where to."""

    subject: Subject
    leaves: tuple[torch.Tensor, ...]
    outputs: list[str]
    """Their names."""
    path: Path
    keep_metadata: bool


def run(attempt: Attempt, order: Order) -> Attempt:
    """Write the artifact; what is returned says how it was captured in the end."""
    order = replace(order, path=order.path.absolute())  # what is traced may leave the current folder
    with keep_surroundings(), _leave_fast_path():
        return _run_torchscript(attempt, order) if attempt.exporter == "torchscript" else _run_dynamo(attempt, order)


@contextmanager
def _leave_fast_path() -> Iterator[None]:
    """Attention layers as they are written: their fast path is one operation that no exporter translates, and strict tracing takes it."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def explain_capture(attempt: Attempt, order: Order) -> Exception | None:
    """Why the model cannot be captured by running it: the exporter then traces strictly and keeps the reason to itself."""
    dims = _unname_dims(_collect_dims(order.subject, attempt))
    try:
        torch.export.export(FlatModule(order.subject), order.leaves, dynamic_shapes=(dims,), strict=False)
    except Exception as error:
        return error
    return None


def _run_dynamo(attempt: Attempt, order: Order) -> Attempt:
    names = list(order.subject.inputs.tensors)
    dims = _collect_dims(order.subject, attempt)
    source: Any = FlatModule(order.subject)
    if attempt.strict:
        source = torch.export.export(source, order.leaves, dynamic_shapes=(_unname_dims(dims),), strict=True)
    program = export_captured(
        source,
        order.leaves,
        None if attempt.strict else (dims,),
        input_names=names,
        output_names=order.outputs,
        opset_version=attempt.opset,
        optimize=attempt.optimize,
    )
    bounds = _read_bounds(program.exported_program, dims) if program.exported_program is not None else {}
    _save(program.model, order, bounds)
    # Where running the model fails, torch.onnx.export traces it strictly; only this attribute tells.
    by_itself = getattr(program, "_capture_strategy", None) == "TorchExportStrictStrategy"
    return replace(attempt, strict=attempt.strict or by_itself)


def export_captured(module: Any, leaves: tuple[torch.Tensor, ...], dims: Any, **settings: Any) -> Any:
    """torch.onnx.export by capture, as if it were the first of this process.

    An export with dynamic dimensions has the recurrent operators captured as loops, but torch remembers whom it asked for them
    after an earlier one, and fixes the sequence's length then.
    """
    for operator in (torch.ops.aten.lstm.input, torch.ops.aten.gru.input):
        operator._dispatch_cache.clear()
    with _leave_guards(), share_tables():
        return torch.onnx.export(module, leaves, None, dynamo=True, dynamic_shapes=dims, verbose=False, **settings)


def _leave_guards() -> AbstractContextManager[Any]:
    """Without the checks of sizes that torch 2.9 writes and cannot run where a forward takes any number of inputs, as the wrapper's does."""
    if hasattr(_unlift, "_force_gm_signature_match"):
        return nullcontext()
    return patch.object(_unlift, "_convert_guards_code_to_fn", lambda code, paths: _unlift.GuardsFn())


def _unname_dims(dims: Sequence[Mapping[int, str] | None]) -> tuple[Any, ...]:
    """The same wish in the words of torch.export, which takes no names."""
    return tuple(dict.fromkeys(wished, torch.export.Dim.DYNAMIC) if wished else None for wished in dims)


def _read_bounds(
    program: torch.export.ExportedProgram, dims: Sequence[Mapping[int, str] | None]
) -> dict[str, tuple[int, int | None]]:
    """The sizes of each dynamic dimension that the captured program says it is good for (None: no upper end)."""
    inputs = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    ranges = {str(symbol): limits for symbol, limits in program.range_constraints.items()}
    bounds: dict[str, tuple[int, int | None]] = {}
    for name, wished in zip(program.graph_signature.user_inputs, dims, strict=False):
        value: Any = inputs.get(str(name))
        for dim, size in (wished or {}).items() if isinstance(value, torch.Tensor) else ():
            limits = ranges.get(str(value.shape[dim]))
            if limits is not None:
                bounds[size] = (int(limits.lower), int(limits.upper) if limits.upper < 2**31 else None)
    return bounds


def _collect_dims(subject: Subject, attempt: Attempt) -> tuple[dict[int, str] | None, ...]:
    """Names fail loudly where a dimension cannot be dynamic; torch's own Dim objects would silently become static."""
    return tuple(
        {dim: size for dim, size in subject.dynamic.get(name, {}).items() if size not in attempt.static} or None
        for name in subject.inputs.tensors
    )


def _run_torchscript(attempt: Attempt, order: Order) -> Attempt:
    subject = order.subject
    # A scripted module cannot be traced inside another one; it takes flat tensors as it is.
    scripted = isinstance(subject.module, torch.jit.ScriptModule) and not subject.kwargs
    with _silence_graphs(), tempfile.TemporaryDirectory(prefix="onnxproof-traced-") as folder:
        traced = Path(folder) / "model.onnx"
        torch.onnx.export(
            subject.module if scripted else FlatModule(subject),
            order.leaves,
            str(traced),
            dynamo=False,
            verbose=True,  # notes on each node the calls that led to it
            input_names=list(subject.inputs.tensors),
            output_names=order.outputs,
            dynamic_axes={name: dict(dims) for name, dims in subject.dynamic.items()},
            opset_version=attempt.opset,
        )
        model = ir.external_data.load_to_model(ir.load(traced))  # read now: the file is about to go
    _save(model, order, {})
    return attempt


@contextmanager
def _silence_graphs() -> Iterator[None]:
    """Without the graphs that a verbose export writes to the terminal behind Python's back, also where an earlier one left that switched on."""
    switch, before = torch._C._jit_set_onnx_log_enabled, torch._C._jit_is_onnx_log_enabled()
    switch(False)
    try:
        with patch.object(torch._C, "_jit_set_onnx_log_enabled"):
            yield
    finally:
        switch(before)


def _save(model: ir.Model, order: Order, bounds: Mapping[str, tuple[int, int | None]]) -> None:
    origins = _name_and_map(model, {name for name, _ in order.subject.module.named_modules()})
    _unwrap_names(model)
    _part_names(model)
    if not order.keep_metadata:
        _strip(model)
    promised = {"inputs": list(order.subject.inputs.tensors), "outputs": order.outputs, "bounds": bounds}
    model.metadata_props[SIGNATURE] = json.dumps(promised)
    path = order.path
    weights = sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None)
    side = path.with_suffix(".sourcemap.json")
    side.unlink(missing_ok=True)  # that of another file must not lie beside this one, whatever happens now
    with replacing(path) as half:
        write_model(model, half, f"{path.name}.data" if weights > EXTERNAL_ABOVE else None)
    sourcemap.write(side, origins)


def _name_and_map(model: ir.Model, modules: Collection[str]) -> dict[str, sourcemap.Origin]:
    """Give every node a unique name and note where it comes from."""
    origins: dict[str, sourcemap.Origin] = {}
    for i, node in enumerate(model.graph.all_nodes()):
        if not node.name or node.name in origins:
            node.name = f"{node.name or node.op_type}_{i}"
        if any(key.startswith("pkg.torch.onnx") for key in node.metadata_props):
            origins[node.name] = sourcemap.read_origin(node.metadata_props)
        else:
            origins[node.name] = sourcemap.read_scope(node.name, modules, node.doc_string)
    for node in model.graph.all_nodes():
        if origins[label_node(node)] == sourcemap.Origin():
            origins[label_node(node)] = _inherit_origin(node, origins)
    return origins


def _inherit_origin(node: ir.Node, origins: Mapping[str, sourcemap.Origin]) -> sourcemap.Origin:
    """Where a node comes from that the exporter wrote nothing on: the last one of an operator's translation, after the others."""
    makers = [value.producer() for value in node.inputs if value is not None]
    known = (origins.get(label_node(maker)) for maker in makers if maker is not None)
    return next((origin for origin in known if origin is not None and origin.file is not None), sourcemap.Origin())


def _unwrap_names(model: ir.Model) -> None:
    """`model.fc1.weight` is the wrapper's name for the user's `fc1.weight`."""
    graph = model.graph
    taken = {value.name for value in graph.inputs} | set(graph.initializers)
    taken |= {value.name for node in graph.all_nodes() for value in node.outputs}
    for given, value in list(graph.initializers.items()):
        name = given.removeprefix(PREFIX + ".")
        # A name that is taken would make one value of two.
        if name != given and name not in taken:
            taken.add(name)
            value.name = name


def _part_names(model: ir.Model) -> None:
    """Inner values that are called like an input or an output get another name: ONNX has one namespace.

    An output that its user calls `embedding` is what the exporter calls the result of an embedding.
    """
    graph = model.graph
    outer = {id(value): value for value in (*graph.inputs, *graph.outputs)}
    taken = {value.name for value in outer.values()}
    inner = [*graph.initializers.values(), *(value for node in graph.all_nodes() for value in node.outputs)]
    everywhere = taken | {value.name for value in inner}
    for value in inner:
        if value.name in taken and id(value) not in outer:
            value.name = next(name for i in count(1) if (name := f"{value.name}_{i}") not in everywhere)
            everywhere.add(value.name)


def _strip(model: ir.Model) -> None:
    model.metadata_props.clear()
    outer = [model.graph, *(function.graph for function in model.functions.values())]
    for graph in [*outer, *(inner for one in outer for inner in one.subgraphs())]:
        results = [value for node in graph for value in node.outputs]
        parts: list[Any] = [graph, *graph, *graph.inputs, *graph.outputs, *graph.initializers.values(), *results]
        for part in parts:
            part.metadata_props.clear()
            part.doc_string = None
