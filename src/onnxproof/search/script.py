"""A counterexample as a script of its own: it needs torch, onnxruntime and numpy, and shows both answers."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import torch

from onnxproof.candidates.serve import LEVELS
from onnxproof.request.session import SessionSettings
from onnxproof.subject.subject import Subject

PIECE = Template('''"""$title

Run it where the model's own imports work: python $file
It needs torch, onnxruntime and numpy.
"""

import importlib.util
import random
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import torch

HERE = Path(__file__).resolve().parent
OUTPUTS = $outputs  # the module's outputs in order, and their names in the artifact


def load_module():
    """The PyTorch original."""
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
$loading


def tensors(value):
    """The tensors of a nested value, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, dict):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for item in value for tensor in tensors(item)] if isinstance(value, (list, tuple)) else []


def main():
    """Run both and compare."""
    with np.load(HERE / "$stem.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    inputs = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    module = load_module().eval()
    with torch.no_grad():
        expected = [tensor.detach().numpy() for tensor in tensors($call)]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.$level
    session = onnxruntime.InferenceSession(str(HERE / $onnx), options, providers=$providers, disabled_optimizers=$disabled)
    feed = {graph: arrays[name] for name, graph in $feeds.items()}
    try:
        answers = dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))
    except Exception as error:
        sys.exit(f"PyTorch answers and onnxruntime does not: {error}")
    differs = False
    for (name, graph), value in zip(OUTPUTS, expected):
        got = answers[graph]
        print(f"{name}\\n  PyTorch      {value.dtype} {list(value.shape)} {value.ravel()[:8]}")
        print(f"  onnxruntime  {got.dtype} {list(got.shape)} {got.ravel()[:8]}")
        same_form = value.shape == got.shape and value.dtype == got.dtype
        if same_form and np.array_equal(value, got, equal_nan=value.dtype.kind in "fc"):
            continue
        differs = True
        if same_form and value.dtype != bool:
            distance = np.abs(value.astype(np.float64) - got.astype(np.float64))
            print(f"  they differ by up to {np.nanmax(distance):.6g}")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
''')

GRAPH = """\
    session = onnxruntime.InferenceSession(str(HERE / {path!r}), providers=["CPUExecutionProvider"])

    class Graph(torch.nn.Module):
        def forward(self, **inputs):
            arrays = {{name: tensor.numpy() for name, tensor in inputs.items()}}
            names = [output.name for output in session.get_outputs()]
            return {{name: torch.from_numpy(value) for name, value in zip(names, session.run(names, arrays))}}

    return Graph()"""
"""Loads an ONNX file as the original."""


@dataclass(frozen=True)
class Sides:
    """What the script has to load, and how names pair up."""

    target: str | None
    """TARGET, or None where the module is in a file beside the script."""
    onnx: Path
    session: SessionSettings
    inputs: Mapping[str, str]
    """Module's input → graph's input."""
    outputs: Mapping[str, str]
    """Module's output → graph's output, in the module's order."""


class NoScript(Exception):
    """The call cannot be written down as code."""


def write_script(file: Path, title: str, subject: Subject, sides: Sides, module_file: str | None) -> None:
    """Write the script beside its npz; raises `NoScript` where the module's inputs are of a type that code cannot build."""
    providers = [(p.name, dict(p.options)) for p in sides.session.providers]
    file.write_text(
        PIECE.substitute(
            title=title.replace("\\", "/").replace('"""', "'''"),
            file=file.name,
            stem=file.stem,
            outputs=repr(list(sides.outputs.items())),
            loading=_loading(sides.target, file.parent, module_file),
            call=_call(subject),
            level=LEVELS[sides.session.optimization],
            onnx=repr(_relative(sides.onnx, file.parent)),
            providers=repr(providers),
            disabled=repr(list(sides.session.disabled_optimizers) or None),
            feeds=repr(dict(sides.inputs)),
        ),
        encoding="utf-8",
    )


def _relative(path: Path, folder: Path) -> str:
    return os.path.relpath(path.resolve(), folder.resolve())


def _loading(target: str | None, folder: Path, module_file: str | None) -> str:
    if target is None:
        return f'    return torch.load(HERE / {module_file!r}, weights_only=False, map_location="cpu")'
    if target.endswith(".onnx"):
        return GRAPH.format(path=_relative(Path(target), folder))
    if target.endswith(".pt2"):
        return f"    return torch.export.load(HERE / {_relative(Path(target), folder)!r}).module()"
    if target.endswith((".pt", ".pth", ".ts")):
        return f'    return torch.jit.load(str(HERE / {_relative(Path(target), folder)!r}), map_location="cpu")'
    path, _, name = target.rpartition(":")
    built = [
        "    value = module",
        f"    for part in {name!r}.split('.'):",
        "        value = getattr(value, part)",
        "    if not isinstance(value, torch.nn.Module) and callable(value):",
        "        value = value()",
        "    return value if isinstance(value, torch.nn.Module) else value[0]",
    ]
    if path.endswith(".py"):
        opened = [
            f"    path = HERE / {_relative(Path(path), folder)!r}",
            "    sys.path.insert(0, str(path.parent))",
            "    spec = importlib.util.spec_from_file_location(path.stem, path)",
            "    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)",
            "    spec.loader.exec_module(module)",
        ]
    else:
        opened = ['    sys.path.insert(0, "")', f"    module = importlib.import_module({path!r})"]
    return "\n".join([*opened, *built])


# --- the call as code -----------------------------------------------------------------------------------------------


def _call(subject: Subject) -> str:
    names = iter(subject.inputs.tensors)
    parts = [_expression(value, names) for value in subject.args]
    named = ", ".join(f"{key!r}: {_expression(value, names)}" for key, value in subject.kwargs.items())
    parts += [f"**{{{named}}}"] if named else []
    return f"module({', '.join(parts)})"


def _expression(value: Any, names: Any) -> str:
    """The value as code, with `inputs[…]` for its tensors; they come in the order in which inputs are flattened."""
    if hasattr(value, "__array__"):  # tensors and arrays
        return f"inputs[{next(names)!r}]"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, torch.dtype)):
        return repr(value)
    if type(value) is dict:
        return "{" + ", ".join(f"{k!r}: {_expression(v, names)}" for k, v in value.items()) + "}"
    if type(value) in (list, tuple):
        return _sequence(value, names)
    kind = type(value)
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        fields = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else list(value._fields)
        inner = ", ".join(f"{name}={_expression(getattr(value, name), names)}" for name in fields)
        return f"getattr(__import__({kind.__module__!r}, fromlist=['_']), {kind.__qualname__!r})({inner})"
    raise NoScript(f"an input is a {kind.__module__}.{kind.__qualname__}")


def _sequence(value: Sequence[Any], names: Any) -> str:
    inner = ", ".join(_expression(item, names) for item in value)
    if isinstance(value, list):
        return f"[{inner}]"
    return f"({inner},)" if value else "()"
