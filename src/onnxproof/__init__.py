"""onnxproof: may this ONNX model replace its PyTorch original in production?

The public names are loaded when they are used: importing onnxproof imports neither torch nor onnxruntime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxproof.version import __version__

if TYPE_CHECKING:
    from onnxproof.api import bench, evaluate, export, lint, locate, prove, quantize, runtimes, verify
    from onnxproof.findings import Finding
    from onnxproof.proved import Proof
    from onnxproof.request.thresholds import Policy, Tolerance

# Where names live that are no verbs.
_HOMES = {
    "Proof": "onnxproof.proved",
    "Finding": "onnxproof.findings",
    "Policy": "onnxproof.request.thresholds",
    "Tolerance": "onnxproof.request.thresholds",
}

__all__ = [
    "Finding",
    "Policy",
    "Proof",
    "Tolerance",
    "__version__",
    "bench",
    "evaluate",
    "export",
    "lint",
    "locate",
    "prove",
    "quantize",
    "runtimes",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from importlib import import_module

        return getattr(import_module(_HOMES.get(name, "onnxproof.api")), name)
    raise AttributeError(f"module 'onnxproof' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
