"""The captured program, and every value it computes in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from onnxproof.artifact.exporter_output import catch_output
from onnxproof.artifact.exporters import export_captured
from onnxproof.artifact.wrapper import FlatModule
from onnxproof.findings.frames import find_user_frame, unwrap_scope
from onnxproof.graph.sourcemap import Origin
from onnxproof.graph.view import Graph
from onnxproof.parity.float64 import Unavailable, widen_inside
from onnxproof.subject.dynamic import resize_examples
from onnxproof.subject.mode import enter_eval, preserve_buffers
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays
from onnxproof.tensors.conversion import to_numpy, to_torch
from onnxproof.tensors.products import LARGE

Values = MutableMapping[str, Array]


@dataclass(frozen=True)
class Captured:
    """A fresh export: the program that torch.export captured, and the graph before and after the exporter's optimiser."""

    program: torch.export.ExportedProgram
    translated: Graph
    simplified: Graph | None
    outputs: tuple[str, ...]
    """Names of the program's values that are its outputs, in order."""
    origins: Mapping[str, Origin]


def capture(subject: Subject) -> Captured:
    """Export again, in memory, keeping every step."""
    tensors = subject.inputs.tensors
    dims = tuple(dict(subject.dynamic.get(name, {})) or None for name in tensors)
    # torch.export takes sizes 0 and 1 for constants.
    leaves = tuple(resize_examples(subject, {name: max(size, 2) for name, size in subject.sizes().items()}))
    with catch_output(), enter_eval(subject.module), preserve_buffers(subject.module), torch.no_grad():
        try:
            program = _export(subject, leaves, (dims,))
        except Exception:
            program = _export(subject, tuple(tensors.values()), None)
        translated = Graph.of(program.model)
        try:
            program.optimize()
            simplified = Graph.of(program.model)
        except Exception:
            simplified = None  # the exporter's optimiser crashes on this graph
    exported = program.exported_program
    assert exported is not None  # a dynamo export keeps its program
    outputs = tuple(
        str(spec.arg.name) for spec in exported.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"
    )
    return Captured(exported, translated, simplified, outputs, _collect_origins(exported))


def _export(subject: Subject, leaves: tuple[torch.Tensor, ...], dims: Any) -> Any:
    return export_captured(FlatModule(subject), leaves, dims, optimize=False)


def _collect_origins(program: torch.export.ExportedProgram) -> dict[str, Origin]:
    origins = {}
    for node in program.graph.nodes:
        if node.op == "call_function":
            frame = find_user_frame(node.meta.get("stack_trace") or "")
            scopes = list((node.meta.get("nn_module_stack") or {}).values())
            origin = Origin(op=str(node.target))
            if scopes:
                origin = replace(origin, module=unwrap_scope(scopes[-1][0]), cls=_name_class(scopes[-1][1]))
            if frame:
                text = frame["text"].strip() or None
                origin = replace(origin, file=frame["file"], line=int(frame["line"]), text=text)
            origins[node.name] = origin
    return origins


def _name_class(cls: Any) -> str:
    return cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}"


class _Watched(torch.fx.Interpreter):
    """Runs the program and shows the result of every node."""

    def __init__(self, program: torch.export.ExportedProgram, see: Callable[[torch.fx.Node, Any], None]) -> None:
        super().__init__(program.graph_module)
        self._see = see

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        self._see(n, result)
        return result


def _read(tensor: torch.Tensor) -> Array:
    """As the graph has it: a complex value is its two parts there, in a last dimension."""
    return to_numpy(torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor)


def compute_truth(
    captured: Captured, subject: Subject, inputs: Arrays, believed: torch.dtype, values: Values
) -> Values:
    """Every value of the captured program, in float64, put into `values`."""

    arguments = _collect_arguments(captured.program, subject, inputs)
    # A weight that is only turned is one still: no node has computed it.
    weights = {a.untyped_storage().data_ptr() for a in arguments if a.numel() >= LARGE}

    def keep(node: torch.fx.Node, result: Any) -> None:
        if isinstance(result, torch.Tensor):
            if result.untyped_storage().data_ptr() not in weights:
                values[node.name] = _read(result)
        elif isinstance(result, (int, float, bool)):
            values[node.name] = np.asarray(result)
        elif isinstance(result, (tuple, list)):
            for i, value in enumerate(result):
                if isinstance(value, torch.Tensor):
                    # As the exporter names the results of such a node, so that they are found by name.
                    values[f"{node.name}__{i}"] = _read(value)

    try:
        with widen_inside(believed):
            # Large ones are widened when an operation takes them.
            floats = [a.is_floating_point() and a.numel() < LARGE for a in arguments]
            given = [a.to(torch.float64) if wide else a for a, wide in zip(arguments, floats, strict=True)]
            _Watched(captured.program, keep).run(*given)
    except Exception as error:
        raise Unavailable(f"{type(error).__name__}: {error}") from error
    return values


def find_nonfinite_call(captured: Captured, subject: Subject, inputs: Arrays) -> str | None:
    """The value of the captured program in which the first NaN or infinity appears in its own dtypes, if one does."""
    found: list[str] = []

    def look(node: torch.fx.Node, result: Any) -> None:
        floats = node.op == "call_function" and isinstance(result, torch.Tensor) and result.is_floating_point()
        if not found and floats and not bool(result.isfinite().all()):
            found.append(node.name)

    # Where it refuses these sizes, what was seen until then counts.
    with suppress(Exception), torch.no_grad(), _check_sizes():
        _Watched(captured.program, look).run(*_collect_arguments(captured.program, subject, inputs))
    return found[0] if found else None


@contextmanager
def _check_sizes() -> Iterator[None]:
    """Kernels that refuse what does not fit: a program that is fixed to other sizes holds states of those, and oneDNN's LSTM would
    write beyond them."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def trace_outputs(subject: Subject, inputs: Arrays) -> list[Array] | None:
    """What the module says after it was traced on its example, as the TorchScript exporter does; None where it cannot be."""
    try:
        with catch_output(), enter_eval(subject.module), preserve_buffers(subject.module), torch.no_grad():
            # The exporter does without the check, which would trace the module once more.
            traced = torch.jit.trace(FlatModule(subject), tuple(subject.inputs.tensors.values()), check_trace=False)
            with _check_sizes():
                outputs = traced(*[to_torch(inputs[name]) for name in subject.inputs.tensors])
    except Exception:
        return None
    return [to_numpy(output) for output in (outputs if isinstance(outputs, tuple) else (outputs,))]


def _collect_arguments(program: torch.export.ExportedProgram, subject: Subject, inputs: Arrays) -> list[torch.Tensor]:
    """What the program takes: weights and constants that it holds, and the inputs."""
    leaves = iter([to_torch(inputs[name]) for name in subject.inputs.tensors])
    held: Any = {**program.constants, **program.state_dict}
    specs = program.graph_signature.input_specs
    return [next(leaves) if spec.kind.name == "USER_INPUT" else held[spec.target].detach() for spec in specs]
