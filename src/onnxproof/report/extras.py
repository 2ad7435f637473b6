"""The packages that only reports need, and what to say where they are not installed."""

from __future__ import annotations

from importlib.util import find_spec

from onnxproof.errors import UserError

# What the HTML report is made with.
PAGE = ("altair", "jinja2", "vl_convert")


def find_missing(*modules: str) -> list[str]:
    """Those that cannot be imported."""
    return [module for module in modules if find_spec(module) is None]


def require(*modules: str) -> None:
    """Raise where one is missing, with the command that installs it."""
    absent = find_missing(*modules)
    if absent:
        raise UserError(f"this needs {', '.join(absent)}: pip install 'onnxproof[report]'")
