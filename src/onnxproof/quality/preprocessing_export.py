"""Preprocessing and model as one module: `--with-preprocess`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from onnxproof.data.examples import Examples
from onnxproof.data.fields import choose_fields
from onnxproof.data.opening import open_source
from onnxproof.errors import InputError
from onnxproof.quality.preprocessing import load_steps
from onnxproof.request.evaluation import EvaluateSettings

EXAMPLE_ROWS = 4


class Combined(nn.Module):
    """Raw records in, the model's answers out."""

    def __init__(self, preprocess: nn.Module, model: nn.Module) -> None:
        super().__init__()
        self.preprocess = preprocess
        self.model = model

    def forward(self, raw: torch.Tensor) -> Any:
        prepared = self.preprocess(raw)
        if isinstance(prepared, Mapping):
            return self.model(**prepared)
        return self.model(*prepared) if isinstance(prepared, (tuple, list)) else self.model(prepared)


def combine(module: nn.Module, settings: EvaluateSettings) -> tuple[nn.Module, Any]:
    """The combined module, and raw rows of the data as its example."""
    if settings.preprocess is None:
        raise InputError("--with-preprocess exports the module that --preprocess names: give it, as file.py:name")
    _, value = load_steps(settings.preprocess, "--preprocess")
    if not isinstance(value, nn.Module):
        raise InputError(
            f"--with-preprocess: {settings.preprocess} is a {type(value).__name__}; only a torch.nn.Module can be exported"
        )
    return Combined(value.eval(), module).eval(), (_read_example(settings),)


def _read_example(settings: EvaluateSettings) -> torch.Tensor:
    examples = Examples(open_source(settings.data), {}, settings.labels, settings.ids, raw=True)
    table = next(examples.source.read(0, EXAMPLE_ROWS, EXAMPLE_ROWS), None)
    if table is None:
        raise InputError("--data has no rows")
    (fields,) = choose_fields(examples.columns, ["raw"], f"--with-preprocess: {examples.source.label}").values()
    columns = [table[field] for field in fields]
    array = np.ascontiguousarray(columns[0] if len(columns) == 1 else np.stack(columns, axis=1))
    return torch.from_numpy(array.astype(np.float32) if array.dtype == np.float64 else array.copy())
