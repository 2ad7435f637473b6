"""onnxruntime with exactly the session that ships."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from onnxproof.diagnosis import recognise
from onnxproof.diagnosis.runtime import LOADING, named_node
from onnxproof.errors import FindingError, ProviderError, Rejected, listed
from onnxproof.findings import Finding, Where, found
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.request.specs import ProviderSpec
from onnxproof.tensors.arrays import Arrays

LEVELS = {
    "disable": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def session_options(settings: SessionSettings) -> onnxruntime.SessionOptions:
    """onnxruntime's own options."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[settings.optimization]
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if settings.threads is not None:
        options.intra_op_num_threads = settings.threads
        options.inter_op_num_threads = 1
    if settings.execution == "parallel":
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
        options.inter_op_num_threads = settings.threads or 0
    return options


def check_providers(providers: Sequence[ProviderSpec]) -> None:
    """Every provider exists in this build of onnxruntime."""
    available = onnxruntime.get_available_providers()
    for provider in providers:
        if provider.name not in available:
            raise ProviderError(
                f"there is no provider {provider.name!r} in this onnxruntime {onnxruntime.__version__}; available: {listed(available)}"
            )


def _no_session(text: str) -> Finding:
    """Why onnxruntime does not load the file."""
    known = recognise(text, LOADING, Where(node=named_node(text)))
    message = f"onnxruntime cannot build a session: {text.splitlines()[0][:400] if text else 'it does not say why'}"
    return known or found("OX303", message, evidence={"error": text[:2000]})


class SessionRunner:
    """An onnxruntime session behind the seam. Arrays go in with the dtype that the graph declares."""

    name = "onnxruntime"

    def __init__(self, model: str | bytes, settings: SessionSettings, renamed: Mapping[str, str] | None = None) -> None:
        check_providers(settings.providers)
        providers = [(p.name, dict(p.options)) for p in settings.providers]
        try:
            self.session = onnxruntime.InferenceSession(
                model,
                session_options(settings),
                providers=providers,
                disabled_optimizers=list(settings.disabled_optimizers) or None,
            )
        except Exception as error:
            raise FindingError(_no_session(str(error).strip())) from error
        self.settings = settings
        self._renamed = dict(renamed or {})
        """Graph input → name in the case, where they differ."""
        self._declared = {i.name: _numpy_dtype(i.type) for i in self.session.get_inputs()}
        self._outputs = [o.name for o in self.session.get_outputs()]

    def placement(self) -> Finding | None:
        """A finding where onnxruntime does not use what was asked for, or not for every node."""
        asked, used = [p.name for p in self.settings.providers], self.session.get_providers()
        missing = [name for name in asked if name not in used]
        if missing:
            message = f"{listed(missing)} was asked for and onnxruntime fell back to {listed(used)}"
            return found("OX304", message, evidence={"asked": asked, "used": used})
        nodes = self._assigned()
        elsewhere = {name: ops for name, ops in nodes.items() if name != asked[0]}
        if asked[0] == CPU.name or not elsewhere:
            return None
        told = "; ".join(
            f"{len(ops)} nodes on {name} ({', '.join(sorted(set(ops))[:8])})" for name, ops in elsewhere.items()
        )
        if asked[0] not in nodes:
            return found(
                "OX304", f"no node runs on {asked[0]}: {told}", evidence={"asked": asked, "assigned": elsewhere}
            )
        return found("OX305", f"not every node runs on {asked[0]}: {told}", evidence={"assigned": elsewhere})

    def _assigned(self) -> dict[str, list[str]]:
        """Provider → operators of the nodes it runs; nothing where this onnxruntime does not tell."""
        nodes: dict[str, list[str]] = {}
        ask = getattr(self.session, "get_provider_graph_assignment_info", None)
        for part in ask() if ask is not None else ():
            nodes.setdefault(part.ep_name, []).extend(node.op_type for node in part.get_nodes())
        return nodes

    def feed(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """What the session is given for these inputs: under the graph's names, in the dtypes it declares."""
        return {
            name: self._cast(inputs[self._renamed.get(name, name)], dtype) for name, dtype in self._declared.items()
        }

    def named(self, values: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """What the session returned, under the graph's names."""
        return {name: np.asarray(value) for name, value in zip(self._outputs, values, strict=True)}

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        feed = self.feed(inputs)
        try:
            values = self.session.run(None, feed)
        except Exception as error:
            text = str(error).strip()
            if "Failed to allocate memory" in text or "bad_alloc" in text:
                raise MemoryError(text) from error
            raise Rejected(text) from error
        return self.named(values)

    @staticmethod
    def _cast(array: NDArray[Any], dtype: np.dtype[Any] | None) -> NDArray[Any]:
        return np.ascontiguousarray(array if dtype is None else array.astype(dtype, copy=False)).reshape(array.shape)


def _numpy_dtype(text: str) -> np.dtype[Any] | None:
    """`tensor(float)` → float32; None for what has no numpy dtype (sequences, optionals)."""
    name = text.removeprefix("tensor(").removesuffix(")")
    names = {"float": "float32", "double": "float64", "string": "object", "bfloat16": None}
    mapped = names.get(name, name)
    try:
        return None if mapped is None else np.dtype(mapped)
    except TypeError:
        return None
