"""Proofs inside a test suite: `assert_parity`, and the body of the pytest plugin's fixture."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxproof.errors import UserError
from onnxproof.files import write_file
from onnxproof.proved import Proof
from onnxproof.report.text import describe_finding
from onnxproof.report.wording import choose_grave, tell_headline

if TYPE_CHECKING:
    import pytest

# Findings spelled out in one failure.
SHOWN = 40


class ParityError(AssertionError):
    """The candidate may not replace the model; `proof` has everything that is known."""

    def __init__(self, message: str, proof: Proof) -> None:
        super().__init__(message)
        self.proof = proof


def assert_parity(model: Any, inputs: Any = None, **options: Any) -> Proof:
    """Prove the model's export (or `onnx=FILE`), and fail unless the verdict is SHIP.

    `options` are those of `onnxproof.prove`. In a pytest run, the options of `@pytest.mark.onnxproof(...)` come first and are
    overridden by those given here. Returns the proof.
    """
    __tracebackhide__ = True
    options = {**_read_markers(), **options}
    folder = None if "out" in options else Path(tempfile.mkdtemp(prefix="onnxproof-"))
    proof, page = _prove(model, inputs, {"out": folder, **options})
    if proof.verdict != "ship":
        raise ParityError(describe(proof, page), proof)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)  # after a failure it stays: the message names files in it
    return proof


class Prover:
    """The fixture: proofs whose files live in the test's own folder."""

    def __init__(self, folder: Path) -> None:
        self._folders = (folder / f"onnxproof-{number}" for number in count(1))

    def assert_parity(self, model: Any, inputs: Any = None, **options: Any) -> Proof:
        """As `onnxproof.testing.assert_parity`."""
        __tracebackhide__ = True
        return assert_parity(model, inputs, **{"out": next(self._folders), **options})

    __call__ = assert_parity

    def prove(self, model: Any, inputs: Any = None, **options: Any) -> Proof:
        """The proof, whatever its verdict."""
        return _prove(model, inputs, {"out": next(self._folders), **_read_markers(), **options})[0]


def _prove(model: Any, inputs: Any, options: Mapping[str, Any]) -> tuple[Proof, Path | None]:
    """The proof and its page."""
    from onnxproof.api import prove

    proof = prove(model, inputs, **options)
    return proof, _write_page(proof)


def describe(proof: Proof, page: Path | None = None) -> str:
    """A failure as the command line would say it, with every finding that gates and so every failing output."""
    gating = choose_grave(proof)
    lines = [tell_headline(proof)]
    for finding in gating[:SHOWN]:
        lines += ["", *describe_finding(finding, proof.subject.baseline)]
    if len(gating) > SHOWN:
        rest = sorted({str(f.where.output) for f in gating[SHOWN:] if f.where.output})
        lines.append(f"  … and {len(gating) - SHOWN} more, about {', '.join(rest)}")
    if page is not None:
        lines += ["", f"  report: {page}"]
    return "\n".join(lines)


def _find_item() -> pytest.Item | None:
    """The running test, where the plugin is loaded."""
    plugin = sys.modules.get("_onnxproof_pytest")
    running = getattr(plugin, "CURRENT", None)
    return running[-1] if running else None


def _read_markers() -> dict[str, Any]:
    """The options of the test's markers; the nearest wins."""
    item = _find_item()
    options: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers("onnxproof")) if item is not None else []):
        if mark.args:
            raise UserError(f"@pytest.mark.onnxproof takes named options only, got {mark.args!r}")
        options |= mark.kwargs
    return options


def _write_page(proof: Proof) -> Path | None:
    """The HTML page below `--onnxproof-html`, named after the test."""
    item = _find_item()
    folder = item.config.getoption("--onnxproof-html", None) if item is not None else None
    if item is None or not folder:
        return None
    name = re.sub(r"[^\w.=-]+", "-", item.nodeid).strip("-")[-150:]
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    path = next(path for each in names if not (path := Path(folder) / f"{each}.html").exists())
    write_file(path, proof.to_html())
    return path
