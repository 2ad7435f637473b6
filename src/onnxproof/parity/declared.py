"""A file in a lower precision that was chosen: held against its own meaning, and its meaning against the original.

Two questions, never mixed. Is it computed right? The graph evaluated exactly (integers as integers, half floats rounded where the
graph says so) is the truth for the runtime. What does the precision cost? The exact meaning against what the original answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch

from onnxproof.artifact.pairing import pair_inputs
from onnxproof.graph.byte_pairs import BytePairs, Saturated
from onnxproof.graph.evaluator import Pass
from onnxproof.graph.view import Graph, read_name
from onnxproof.parity.float64 import find_believed_dtype
from onnxproof.proof.artifact import Artifact, Precision
from onnxproof.proof.comparison import PrecisionCost
from onnxproof.subject.onnx_module import GraphModule
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays
from onnxproof.tensors.conversion import to_numpy, to_torch

BatchNorms = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)
PRODUCTS = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d, torch.nn.Linear)
# How a CPU without VNNI computes: nodes in integers alone, or those too that an optimiser fuses into such.
Saturating = Literal["integers", "fused"]
# Decibels that stand for no error at all.
SPOTLESS = 300.0


def declare_precision(artifact: Artifact, subject: Subject, asked: str) -> Artifact:
    """The artifact, with its precision declared where the original has a higher one and nobody insists on sameness."""
    chosen = artifact.precision
    if chosen is None or asked == "exact" or not _is_lower(chosen, subject):
        return artifact
    return replace(artifact, precision=replace(chosen, declared=True))


def _is_lower(chosen: Precision, subject: Subject) -> bool:
    """A module in half precision, or a file that has it already, gives up nothing."""
    module = subject.module
    if isinstance(module, GraphModule):
        own = module.precision
        return own is None or own.kind != chosen.kind
    return chosen.kind not in str(find_believed_dtype(subject))


def declare_subject(subject: Subject, artifact: Artifact, saturating: Saturating | None = None) -> Subject:
    """The file's own meaning in the original's place: the same inputs under the same names."""
    tensors = subject.inputs.tensors
    dtypes = {name: to_numpy(tensor[:0] if tensor.ndim else tensor).dtype.name for name, tensor in tensors.items()}
    pairs = pair_inputs(dtypes, artifact.inputs, subject.shapes()).pairs
    meaning = Meaning(artifact.path, pairs, saturating)
    return replace(subject, module=meaning, args=(), kwargs=dict(tensors))


class Meaning(GraphModule):
    """What a file says, computed exactly; in the dtypes of its outputs it is the baseline, and as it is the truth."""

    def __init__(self, path: str, pairs: Mapping[str, str], saturating: Saturating | None = None) -> None:
        """`saturating`: on a CPU that adds products of bytes in 16 bits."""
        super().__init__(path)
        self._pairs, self._saturating = dict(pairs), saturating
        self.saturated: Mapping[str, Saturated] = {}
        """Nodes that left them in the last run."""

    def __deepcopy__(self, memo: Any) -> Meaning:
        return Meaning(self.path, self._pairs, self._saturating)

    def __reduce__(self) -> Any:
        return Meaning, (self.path, self._pairs, self._saturating)

    def on(self, saturating: Saturating | None) -> Meaning:
        """The same file on another CPU."""
        other = Meaning(self.path, self._pairs, saturating)
        # It holds the weights in float64, and runs do not change it.
        other._exact = self._exact
        return other

    def _run(self, feed: Arrays, onward: Pass) -> dict[str, Array]:
        if self._saturating is None:
            return super()._run(feed, onward)
        pairs = BytePairs(self._exact.steps, self.stored, fused=self._saturating == "fused")
        self.saturated = pairs.found
        return super()._run(feed, lambda stop, results: onward(stop, pairs.look(stop, results)))

    def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """Run it; what the evaluator cannot do onnxruntime does, without optimisations."""
        arrays = {self._pairs.get(name, name): to_numpy(tensor) for name, tensor in inputs.items()}
        if not self.exactly and not self.evaluable:
            return {name: to_torch(np.array(value)) for name, value in self._session.run(arrays).items()}
        exact = self.evaluate(arrays)
        return {n: to_torch(np.array(v if self.exactly else v.astype(self._dtypes[n]))) for n, v in exact.items()}

    def rounded(self, arrays: Arrays, seed: int, unit: float) -> dict[str, Array]:
        return super().rounded({self._pairs.get(name, name): array for name, array in arrays.items()}, seed, unit)

    @cached_property
    def evaluable(self) -> bool:
        """Whether onnx's evaluator knows every operator."""
        try:
            return self._exact is not None
        except Exception:
            return False

    @cached_property
    def _dtypes(self) -> dict[str, Any]:
        outputs = Graph.read(Path(self.path)).outputs
        return {read_name(value): value.dtype.numpy() for value in outputs if value.dtype is not None}


def list_originals(module: torch.nn.Module) -> dict[str, Array]:
    """The float tensors that the original stores, by name."""
    if isinstance(module, GraphModule):
        return {name: array for name, array in module.stored.items() if getattr(array, "dtype", None) == np.float64}
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers()), **dict(_fold_norms(module))}
    return {n: to_numpy(t).astype(np.float64) for n, t in tensors.items() if t.is_floating_point() and t.ndim}


def _fold_norms(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Weights and biases with the normalisation that follows them multiplied in, as exporters store them."""
    before: tuple[str, Any] | None = None
    for name, part in module.named_modules():
        if isinstance(part, BatchNorms) and before is not None and part.running_var is not None:
            owner, product = before
            weight, bias, mean = product.weight, product.bias, cast(torch.Tensor, part.running_mean)
            factor = torch.rsqrt(part.running_var + part.eps) * (1.0 if part.weight is None else part.weight)
            if len(factor) == len(weight):
                yield f"{owner}.folded weight", weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
                start = -mean if bias is None else bias - mean
                yield f"{owner}.folded bias", start * factor + (0.0 if part.bias is None else part.bias)
        before = (name, part) if isinstance(part, PRODUCTS) else None


def measure_cost(original: Array, meaning: Array, repeated: int = 0) -> PrecisionCost | None:
    """What a lower precision changes in one output; None where there is nothing to compare. `repeated` rows were counted before."""
    if original.shape != meaning.shape or original.dtype.kind not in "fc" or not original.size:
        return None
    o, m = original.astype(np.float64), meaning.astype(np.float64)
    finite = np.isfinite(o)
    signal, error = float(np.sum(o[finite] ** 2)), float(np.sum((o - m)[finite] ** 2))
    lost = int(np.count_nonzero(~np.isfinite(m) & finite))
    if o.ndim != 2 or o.shape[1] < 2:
        return PrecisionCost(to_decibels(signal, error), lost)
    decisions = o.argmax(1)[repeated:]
    changed = decisions != m.argmax(1)[repeated:]
    kinds = {
        str(one): (int(np.count_nonzero(changed[decisions == one])), int(np.count_nonzero(decisions == one)))
        for one in np.unique(decisions[changed])
    }
    return PrecisionCost(to_decibels(signal, error), lost, int(np.count_nonzero(changed)), len(changed), kinds)


def to_decibels(signal: float, error: float) -> float:
    """Signal to noise; bounded, so that no error is a number too."""
    if not np.isfinite(error):
        return -SPOTLESS
    if error == 0:
        return SPOTLESS
    return float(np.clip(10 * np.log10(signal / error) if signal else -SPOTLESS, -SPOTLESS, SPOTLESS))
