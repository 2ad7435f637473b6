"""Whatever computes the other side, behind one seam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from onnxproof.errors import UserError
from onnxproof.request.session import SessionSettings

if TYPE_CHECKING:
    from onnxproof.candidates.candidate import Candidate

# The onnxruntime that is installed beside onnxproof, as `--runtime` names it.
INSTALLED = "onnxruntime"


def choose_candidate(settings: SessionSettings) -> Candidate:
    """The candidate that the settings name: onnxruntime in this process, or another one. Nothing is started yet."""
    text = settings.runtime
    if text is None or text == INSTALLED:
        from onnxproof.candidates.onnxruntime import Onnxruntime

        return Onnxruntime()
    kind, _, place = text.partition(":")
    if kind == "python" and place:
        from onnxproof.candidates.python_environment import reach_environment

        return reach_environment(place)
    if is_release(text):
        from onnxproof.candidates.releases import reach_release

        return reach_release(text)
    if kind.partition("==")[0] in ("node", "browser"):
        from onnxproof.candidates.javascript import PACKAGES, reach_javascript

        if text.partition("==")[0] in PACKAGES:
            return reach_javascript(text)
    raise UserError(
        f"--runtime {text!r}: expected a release or a range of them (onnxruntime==1.20.1, 'onnxruntime>=1.18,<1.31'), node, browser, "
        "browser:webgpu, browser:nosimd, or python:PATH, the interpreter of an environment that has onnxruntime, for instance python:.venv-openvino/bin/python"
    )


def is_release(text: str) -> bool:
    """Whether a runtime is named as releases of onnxruntime."""
    return text.startswith(INSTALLED) and text[len(INSTALLED) :].lstrip()[:1] in tuple("<>=!~")


def expand_runtimes(texts: Iterable[str]) -> tuple[str, ...]:
    """The runtimes that are meant, each once: a range of releases is every release in it."""
    found: list[str] = []
    for text in texts:
        if is_release(text):
            from onnxproof.candidates.releases import choose_releases

            found += choose_releases(text)
        else:
            choose_candidate(SessionSettings(runtime=text))  # what it does not know is told before the work
            found.append(text)
    return tuple(dict.fromkeys(found))
