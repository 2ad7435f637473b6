"""Whatever computes the other side, behind one seam."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxproof.errors import UserError
from onnxproof.request.session import SessionSettings

if TYPE_CHECKING:
    from onnxproof.candidates.candidate import Candidate


def choose_candidate(settings: SessionSettings) -> Candidate:
    """The candidate that the settings name: onnxruntime in this process, or another interpreter's. Nothing is started yet."""
    if settings.runtime is None:
        from onnxproof.candidates.onnxruntime import Onnxruntime

        return Onnxruntime()
    kind, _, place = settings.runtime.partition(":")
    if kind == "python" and place:
        from onnxproof.candidates.python_environment import reach_environment

        return reach_environment(place)
    raise UserError(
        f"--runtime {settings.runtime!r}: expected python:PATH, the interpreter of an environment that has onnxruntime, "
        "for instance python:.venv-openvino/bin/python"
    )
