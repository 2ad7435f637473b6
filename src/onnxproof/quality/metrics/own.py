"""The user's own metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onnxproof.errors import InputError
from onnxproof.quality.accumulate import Scores
from onnxproof.quality.metrics.measured import Measured
from onnxproof.subject.target import load_target
from onnxproof.tensors.arrays import Array, Floats

CUSTOM_REPLICATES, CUSTOM_ROWS = 200, 20_000


def measure_custom(texts: Sequence[str], scores: Scores, measured: Measured, seed: int = 0) -> None:
    """Metrics of the user: `function(labels, scores) -> float`, on both sides and with a bootstrap where that is cheap."""
    for text in texts:
        function, name = load_target(text)
        if not callable(function):
            raise InputError(
                f"--metric {text} is a {type(function).__name__}; expected a function(labels, scores) -> float"
            )
        for side, answers in scores.sides.items():
            measured.put(side, name, _call(function, text, scores.labels, answers.scores))
        if scores.n <= CUSTOM_ROWS:
            measured.bootstrapped(name, _resample(function, text, scores, seed))


def _call(function: Callable[..., Any], text: str, labels: Array, scores: Array | None) -> float:
    if scores is None:
        raise InputError(f"--metric {text}: too many classes, scores of single examples are not kept")
    try:
        return float(function(labels, scores))
    except Exception as error:
        raise InputError(f"--metric {text} raised {type(error).__name__}: {error}") from error


def _resample(function: Callable[..., Any], text: str, scores: Scores, seed: int) -> dict[str, Floats]:
    generator = np.random.default_rng(seed)
    draws = [generator.integers(0, scores.n, scores.n) for _ in range(CUSTOM_REPLICATES)]
    return {
        side: np.array([_call(function, text, scores.labels[rows], answers.scores[rows]) for rows in draws])
        for side, answers in scores.sides.items()
        if answers.scores is not None  # _call has checked it
    }
