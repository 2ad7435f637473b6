"""The captured program, and every value it computes in float64."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from onnxproof.artifact.exporter_output import caught
from onnxproof.artifact.wrapper import FlatModule, resized
from onnxproof.findings.frames import unwrapped, user_frame
from onnxproof.graph.sourcemap import Origin
from onnxproof.graph.view import Graph
from onnxproof.parity.float64 import Unavailable, widened
from onnxproof.subject.mode import eval_mode, preserved
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Arrays
from onnxproof.tensors.conversion import to_numpy, to_torch

Values = MutableMapping[str, NDArray[Any]]


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
    grown = [{d: max(2, t.shape[d]) for d in subject.dynamic.get(n, {})} for n, t in tensors.items()]
    leaves = tuple(resized(list(tensors.values()), grown))
    with caught(), eval_mode(subject.module), preserved(subject.module), torch.no_grad():
        try:
            program = _export(subject, leaves, (dims,))
        except Exception:
            program = _export(subject, tuple(tensors.values()), None)
        translated = Graph(program.model_proto)
        try:
            program.optimize()
            simplified = Graph(program.model_proto)
        except Exception:
            simplified = None  # the exporter's optimiser crashes on this graph
    exported = program.exported_program
    assert exported is not None  # a dynamo export keeps its program
    outputs = tuple(
        str(spec.arg.name) for spec in exported.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"
    )
    return Captured(exported, translated, simplified, outputs, _origins(exported))


def _export(subject: Subject, leaves: tuple[torch.Tensor, ...], dims: Any) -> Any:
    return torch.onnx.export(
        FlatModule(subject), leaves, None, dynamo=True, dynamic_shapes=dims, optimize=False, verbose=False
    )


def _origins(program: torch.export.ExportedProgram) -> dict[str, Origin]:
    origins = {}
    for node in program.graph.nodes:
        if node.op == "call_function":
            frame = user_frame(node.meta.get("stack_trace") or "")
            scopes = list((node.meta.get("nn_module_stack") or {}).values())
            origins[node.name] = Origin(
                module=unwrapped(scopes[-1][0]) if scopes else None,
                cls=_class_name(scopes[-1][1]) if scopes else None,
                file=frame["file"] if frame else None,
                line=int(frame["line"]) if frame else None,
                text=(frame["text"].strip() or None) if frame else None,
                op=str(node.target),
            )
    return origins


def _class_name(cls: Any) -> str:
    return cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}"


class _Recorder(torch.fx.Interpreter):
    """Runs the program and keeps every tensor under its node's name."""

    def __init__(self, module: torch.nn.Module, values: Values) -> None:
        super().__init__(module)
        self.values = values

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        if isinstance(result, torch.Tensor):
            self.values[n.name] = to_numpy(result)
        elif isinstance(result, (int, float, bool)):
            self.values[n.name] = np.asarray(result)
        elif isinstance(result, (tuple, list)):
            for i, value in enumerate(result):
                if isinstance(value, torch.Tensor):
                    self.values[f"{n.name}__{i}"] = to_numpy(value)
        return result


def true_values(captured: Captured, subject: Subject, inputs: Arrays, believed: torch.dtype, values: Values) -> Values:
    """Every value of the captured program, in float64, put into `values`."""
    program = captured.program
    leaves = iter([to_torch(inputs[name]) for name in subject.inputs.tensors])
    arguments = [_argument(program, spec, leaves) for spec in program.graph_signature.input_specs]
    recorder = _Recorder(program.graph_module, values)
    try:
        with widened(believed):
            recorder.run(*[a.to(torch.float64) if a.is_floating_point() else a for a in arguments])
    except Exception as error:
        raise Unavailable(f"{type(error).__name__}: {error}") from error
    return recorder.values


class _Birth(torch.fx.Interpreter):
    """Runs the program in its own dtypes and notes the first node whose result is not finite."""

    first: str | None = None

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        candidate = self.first is None and n.op == "call_function" and isinstance(result, torch.Tensor)
        if candidate and result.is_floating_point() and not bool(result.isfinite().all()):
            self.first = n.name
        return result


def first_nonfinite_call(captured: Captured, subject: Subject, inputs: Arrays) -> str | None:
    """The value of the captured program in which the first NaN or infinity appears, if one does."""
    program = captured.program
    leaves = iter([to_torch(inputs[name]) for name in subject.inputs.tensors])
    arguments = [_argument(program, spec, leaves) for spec in program.graph_signature.input_specs]
    birth = _Birth(program.graph_module)
    try:
        with torch.no_grad():
            birth.run(*arguments)
    except Exception:
        return birth.first  # it refuses these sizes: what was seen until then counts
    return birth.first


def traced_outputs(subject: Subject, inputs: Arrays) -> list[NDArray[Any]] | None:
    """What the module says after it was traced on its example, as the TorchScript exporter does; None where it cannot be."""
    names = list(subject.inputs.tensors)
    try:
        with caught(), eval_mode(subject.module), preserved(subject.module), torch.no_grad():
            traced = torch.jit.trace(FlatModule(subject), tuple(subject.inputs.tensors.values()), check_trace=False)
            outputs = traced(*[to_torch(inputs[name]) for name in names])
    except Exception:
        return None
    return [to_numpy(output) for output in (outputs if isinstance(outputs, tuple) else (outputs,))]


def _argument(program: torch.export.ExportedProgram, spec: Any, leaves: Any) -> torch.Tensor:
    if spec.kind.name == "USER_INPUT":
        return next(leaves)  # type: ignore[no-any-return]  # an iterator of tensors
    held: Any = program.state_dict if spec.target in program.state_dict else program.constants
    tensor: torch.Tensor = held[spec.target]
    return tensor.detach()
