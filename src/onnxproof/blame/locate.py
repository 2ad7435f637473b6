"""From a failing case to the step, the node, the module and the line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray

from onnxproof.artifact import sourcemap
from onnxproof.artifact.file import load_model
from onnxproof.artifact.record import Artifact
from onnxproof.blame.capture import Captured, Values, capture, true_values
from onnxproof.blame.nodes import Introduced, distance, exposed, first_departure, follow, suspects
from onnxproof.blame.record import Blame, Culprit
from onnxproof.blame.rewrites import healing_rewrite
from onnxproof.findings import Stage
from onnxproof.job import SessionSettings
from onnxproof.runners.base import Arrays
from onnxproof.runners.double import DoubleRunner
from onnxproof.runners.session import SessionRunner
from onnxproof.subject import Subject

PARTED = 1e-4
"""Relative difference that counts as the same fault when steps of the ladder are compared."""


class Locator:
    """Everything known about one subject and artifact; asked case by case."""

    def __init__(
        self,
        subject: Subject,
        artifact: Artifact,
        settings: SessionSettings,
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
    ) -> None:
        self._subject = subject
        self._settings = settings
        self._renamed = {graph: module for module, graph in inputs.items()}
        self._outputs = dict(outputs)
        self._path = Path(artifact.path)
        self._model = load_model(self._path)
        self._double = DoubleRunner(subject)
        self._sources = sourcemap.read(Path(artifact.sourcemap)) if artifact.sourcemap else {}
        self._captured: Captured | None = self._capture()

    def _capture(self) -> Captured | None:
        try:
            return capture(self._subject)
        except Exception:
            return None  # torch.export cannot capture it; steps and nodes before the graph stay unknown

    @property
    def _lossy(self) -> bool:
        return torch.finfo(self._double.narrowest).eps <= torch.finfo(torch.float32).eps

    def locate(self, inputs: Arrays) -> Blame:
        """The blame for what happens on these inputs."""
        truth = self._double.run(inputs)
        feed = {name: _wide(inputs[self._renamed.get(name, name)]) for name in self._feeds(self._model)}
        aligned = self._aligned(inputs, truth) if self._captured is not None else {}
        known = {**aligned, **{graph: truth[module] for module, graph in self._outputs.items() if module in truth}}
        found, values = follow(self._model, feed, known, self._lossy)
        origins = self._captured.origins if self._captured is not None else {}
        culprits = suspects(found, origins, self._sources)
        if culprits:
            return Blame(self._step(inputs, truth, culprits), tuple(culprits))
        return self._runtime(inputs, values)

    def _feeds(self, model: onnx.ModelProto) -> list[str]:
        weights = {tensor.name for tensor in model.graph.initializer}
        return [value.name for value in model.graph.input if value.name not in weights]

    # --- before the runtime

    def _aligned(self, inputs: Arrays, truth: Arrays) -> Values:
        """True values by the names a fresh export gives them: those of the captured program, and those in between."""
        assert self._captured is not None
        program = true_values(self._captured, self._subject, inputs, self._double.believed)
        self._program_values = program
        fresh = self._captured.simplified or self._captured.translated
        feed = dict(zip(self._feeds(fresh), (_wide(inputs[n]) for n in self._subject.inputs.tensors), strict=False))
        self._fresh, between = follow(fresh, feed, program, self._lossy)
        renamed = {name: value for name, value in between.items() if name not in feed}
        return {**renamed, **program}

    def _step(self, inputs: Arrays, truth: Arrays, culprits: list[Culprit]) -> Stage | None:
        """The first rung of the ladder that parts: capture, translate or simplify."""
        if self._captured is None:
            return None
        names = [n for n in self._outputs if n in truth]
        pairs = list(zip(self._captured.outputs, list(truth), strict=False))
        if any(
            distance(self._program_values[value], truth[name]) > 1e-9
            for value, name in pairs
            if value in self._program_values and name in names
        ):
            return "capture"
        if self._captured.simplified is None:
            return "translate"
        feed = dict(
            zip(
                self._feeds(self._captured.translated),
                (_wide(inputs[n]) for n in self._subject.inputs.tensors),
                strict=False,
            )
        )
        before, _ = follow(self._captured.translated, feed, self._program_values, self._lossy)
        share = culprits[0].introduced / 10
        if _worst(before) > share:
            return "translate"
        # Where a fresh export is right, the file was made or changed by something else than this exporter.
        return "simplify" if _worst(self._fresh) > share else "translate"

    # --- in the runtime

    def _runtime(self, inputs: Arrays, truth: Mapping[str, NDArray[Any]]) -> Blame:
        plain = replace(self._settings, optimization="disable")
        if self._far(plain, inputs, truth):
            return Blame("kernel", tuple(self._departures(inputs, truth)))
        if not self._far(self._settings, inputs, truth):
            return Blame(None)
        rewrite = healing_rewrite(
            lambda off: not self._far(replace(self._settings, disabled_optimizers=off), inputs, truth)
        )
        return Blame("optimize", rewrite=rewrite)

    def _far(self, settings: SessionSettings, inputs: Arrays, truth: Mapping[str, NDArray[Any]]) -> bool:
        got = SessionRunner(str(self._path), settings, self._renamed).run(inputs)
        return any(distance(value, truth[name]) > PARTED for name, value in got.items() if name in truth)

    def _departures(self, inputs: Arrays, truth: Mapping[str, NDArray[Any]]) -> list[Culprit]:
        watched = exposed(self._model)
        runner = SessionRunner(
            watched.SerializeToString(), replace(self._settings, optimization="disable"), self._renamed
        )
        origins = self._captured.origins if self._captured is not None else {}
        found: list[Introduced] = first_departure(self._model, runner.run(inputs), truth)
        return suspects(found[:1], origins, self._sources)


def _worst(found: list[Introduced]) -> float:
    return max((one.error for one in found), default=0.0)


def _wide(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float64) if array.dtype.kind == "f" or "float" in array.dtype.name else array
