"""The onnxruntime of another Python interpreter: another build, in a supervised process of its own."""

from __future__ import annotations

import atexit
import os
from functools import cache
from pathlib import Path

from onnxproof.candidates import serve
from onnxproof.candidates.remote import PATIENCE, RemoteRuntime


def reach_environment(interpreter: str) -> PythonEnvironment:
    """One process for all sessions of an interpreter."""
    # The path is part of the key: a relative one means another interpreter in another folder.
    return _open_environment(interpreter, _make_absolute(interpreter))


@cache
def _open_environment(interpreter: str, path: str) -> PythonEnvironment:
    there = PythonEnvironment(interpreter)
    atexit.register(there.stop)
    return there


def _make_absolute(interpreter: str) -> str:
    """Its path, links not followed: an environment is known by the link to its interpreter."""
    return os.path.abspath(os.path.expanduser(interpreter))


class PythonEnvironment(RemoteRuntime):
    """Another interpreter's onnxruntime."""

    def __init__(self, interpreter: str, *, patience: float = PATIENCE) -> None:
        path = _make_absolute(interpreter)
        super().__init__(
            f"python:{interpreter}",
            lambda: [path, str(Path(serve.__file__).resolve())],
            expected="an interpreter of Python 3.9 or later that has onnxruntime",
            advice=f"install it with `{path} -m pip install onnxruntime numpy`",
            patience=patience,
        )
