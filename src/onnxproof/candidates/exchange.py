"""What goes into an onnxruntime and what it says back, wherever it runs: arrays, refusals, placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from onnxproof.candidates.candidate import Outputs
from onnxproof.candidates.serve import NARROW
from onnxproof.diagnosis.failures import diagnose_loading
from onnxproof.errors import ProviderError, Rejected, list_names
from onnxproof.findings import Finding, found
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.request.specs import ProviderSpec
from onnxproof.tensors.arrays import Array, Arrays

# Types whose names in onnxruntime are others than in numpy.
NUMPY_NAMES = {
    "float": "float32",
    "double": "float64",
    "string": "object",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
}


def encode_settings(settings: SessionSettings) -> dict[str, Any]:
    """The settings as `serve.py` takes them."""
    return {
        "providers": [[provider.name, dict(provider.options)] for provider in settings.providers],
        "optimization": settings.optimization,
        "threads": settings.threads,
        "disabled_optimizers": list(settings.disabled_optimizers),
        "execution": settings.execution,
        "spinning": settings.spinning,
        "weights": settings.weights,
    }


def read_types(model: Path | bytes) -> dict[str, dict[str, str]]:
    """The types that a file declares, as onnxruntime calls them: for a runtime that does not tell."""
    import onnx  # here: the process that supervises knows this module, and loads no onnx

    from onnxproof.graph.file import load_model

    graph = (onnx.load_from_string(model) if isinstance(model, bytes) else load_model(model)).graph
    stored = {tensor.name for tensor in graph.initializer}
    fed = [port for port in graph.input if port.name not in stored]
    return {
        side: {
            port.name: f"tensor({onnx.TensorProto.DataType.Name(port.type.tensor_type.elem_type).lower()})"
            for port in ports
        }
        for side, ports in (("inputs", fed), ("outputs", graph.output))
    }


def read_dtype(kind: str) -> np.dtype[Any] | None:
    """`tensor(float)` → float32; None for what has no dtype (sequences, optionals)."""
    given = kind.removeprefix("tensor(").removesuffix(")")
    name = NUMPY_NAMES.get(given, given)
    try:
        return np.dtype(getattr(ml_dtypes, name) if kind in NARROW else name)
    except (TypeError, ValueError):
        return None


def choose_carrier(kind: str) -> np.dtype[Any] | None:
    """The dtype in which values of a type cross over: integers of their size for those that numpy does not have."""
    return np.dtype(NARROW[kind][0]) if kind in NARROW else read_dtype(kind)


def feed(inputs: Arrays, declared: Mapping[str, str], renamed: Mapping[str, str]) -> Outputs:
    """What a session is given for these inputs: under the graph's names, in the dtypes it declares."""
    with np.errstate(over="ignore"):  # half floats end soon
        return {name: _cast(inputs[renamed.get(name, name)], kind) for name, kind in declared.items()}


def _cast(array: Array, kind: str) -> Array:
    dtype = read_dtype(kind)
    # ascontiguousarray gives a single number a dimension: the shape is put back.
    cast = np.ascontiguousarray(array if dtype is None else array.astype(dtype, copy=False)).reshape(array.shape)
    return cast.view(NARROW[kind][0]) if kind in NARROW else cast


def name_outputs(values: Sequence[Any], declared: Mapping[str, str]) -> Outputs:
    """What a session returned, under the graph's names."""
    narrow = {
        name: dtype for name, kind in declared.items() if kind in NARROW and (dtype := read_dtype(kind)) is not None
    }
    pairs = zip(declared, map(np.asarray, values), strict=True)
    return {name: array.view(narrow[name]) if name in narrow else array for name, array in pairs}


def check_providers(asked: Sequence[ProviderSpec], available: Sequence[str], runtime: str) -> None:
    """Every provider exists in this build."""
    for provider in asked:
        if provider.name not in available:
            raise ProviderError(
                f"there is no provider {provider.name!r} in {runtime}; available: {list_names(available)}"
            )


def refuse_file(text: str) -> Finding:
    """Why onnxruntime does not load a file."""
    message = f"onnxruntime cannot build a session: {text.splitlines()[0][:400] if text else 'it does not say why'}"
    return diagnose_loading(text) or found("OX303", message, evidence={"error": text[:2000]})


def blame_rewrites(refused: Finding, text: str) -> Finding:
    """The same where the file loads without the runtime's own rewrites: it is valid, and one of these makes something else of it."""
    message = f"without its rewrites onnxruntime loads the file, with them it fails: {text.splitlines()[0][:300]}"
    return found("OX325", message, where=refused.where, evidence={"error": text[:2000]})


def refuse_input(text: str, memory: bool = False) -> Exception:
    """What to raise where a run fails with this text."""
    short = memory or "Failed to allocate memory" in text or "bad_alloc" in text
    return MemoryError(text) if short else Rejected(text)


def judge_placement(
    settings: SessionSettings, used: Sequence[str], assigned: Mapping[str, Sequence[str]]
) -> Finding | None:
    """A finding where onnxruntime does not use the providers that were asked for, or not for every node."""
    asked = [provider.name for provider in settings.providers]
    missing = [name for name in asked if name not in used]
    if missing:
        message = f"{list_names(missing)} was asked for and onnxruntime fell back to {list_names(used)}"
        return found("OX304", message, evidence={"asked": asked, "used": list(used)})
    elsewhere = {name: list(ops) for name, ops in assigned.items() if name != asked[0]}
    if asked[0] == CPU.name or not elsewhere:
        return None
    told = "; ".join(
        f"{len(ops)} nodes on {name} ({', '.join(sorted(set(ops))[:8])})" for name, ops in elsewhere.items()
    )
    if asked[0] not in assigned:
        return found("OX304", f"no node runs on {asked[0]}: {told}", evidence={"asked": asked, "assigned": elsewhere})
    return found("OX305", f"not every node runs on {asked[0]}: {told}", evidence={"assigned": elsewhere})
