"""An ONNX file as a PyTorch module, so that two files can be compared by the same machinery.

It runs under onnxruntime without optimisations; as the truth it is evaluated in float64, node by node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from onnxproof.candidates import choose_candidate
from onnxproof.candidates.candidate import Session
from onnxproof.errors import InputError
from onnxproof.graph.evaluator import Evaluator, Stop
from onnxproof.graph.view import Graph, read_dims, read_name
from onnxproof.request.session import SessionSettings
from onnxproof.tensors.arrays import Array, Arrays
from onnxproof.tensors.conversion import to_numpy, to_torch

# Sizes of open dimensions in the example: of first ones, and of others.
BATCH, OTHER = 2, 8
# Bytes of an example.
LARGEST = 1 << 30
# Operators whose results carry no rounding error.
EXACT_OPS = frozenset(
    "Reshape Transpose Gather GatherND GatherElements Slice Concat Split Squeeze Unsqueeze Identity Relu Neg Abs Max Min Clip Where "
    "Expand Tile Pad Flatten Shape Size Cast Not And Or Equal Greater Less GreaterOrEqual LessOrEqual ArgMax ArgMin TopK Floor "
    "Ceil Round Sign MaxPool ReduceMax ReduceMin Constant ConstantOfShape Range ScatterND ScatterElements NonZero OneHot Trilu".split()
)
LONG_SUMS = frozenset(
    "MatMul Gemm Conv ConvTranspose ReduceSum ReduceMean CumSum AveragePool GlobalAveragePool Einsum LSTM GRU RNN".split()
)


class GraphModule(torch.nn.Module):
    """The file behind the interface of a module: tensors by name in, tensors by name out."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.exactly = False
        """Whether it is the truth: evaluated in float64, else under onnxruntime in its own dtypes."""
        self.eval()

    @property
    def file_name(self) -> str:
        """The file without its folder."""
        return Path(self.path).name

    def __deepcopy__(self, memo: Any) -> GraphModule:
        # A session can neither be copied nor pickled: the other one opens the file anew.
        return GraphModule(self.path)

    def __reduce__(self) -> Any:
        return GraphModule, (self.path,)

    def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """Run it."""
        arrays = {name: to_numpy(tensor) for name, tensor in inputs.items()}
        outputs = self._exact.run(arrays) if self.exactly else self._session.run(arrays)
        return {name: to_torch(np.array(value, order="C")) for name, value in outputs.items()}

    @cached_property
    def _session(self) -> Session:
        settings = SessionSettings(optimization="disable")
        return choose_candidate(settings).open(Path(self.path), settings)

    @cached_property
    def _exact(self) -> Evaluator:
        return Evaluator.exact(*Graph.read(Path(self.path)).separated, keep_lossy_casts=True)

    def rounded(self, arrays: Arrays, seed: int, unit: float) -> dict[str, Array]:
        """The exact run with, after each node, an error that a legal kernel of this unit roundoff may make there."""
        generator = np.random.default_rng(seed)

        def noisy(stop: Stop, result: Any) -> Any:
            if not isinstance(result, np.ndarray) or result.dtype != np.float64 or not result.size:
                return result
            scale = np.abs(result)
            if stop.op in LONG_SUMS:
                length = max((np.size(a) // max(1, np.shape(a)[0]) for a in stop.arguments if np.ndim(a)), default=1)
                # One infinity would make the error of every other element infinite.
                finite = np.where(np.isfinite(result), result, 0.0)
                scale = scale + np.sqrt(np.mean(np.square(finite))) * np.sqrt(length)
            return result + unit * generator.uniform(-1, 1, result.shape) * 2 * scale

        def noise(stop: Stop, results: Sequence[Any]) -> Sequence[Any]:
            return results if stop.op in EXACT_OPS else [noisy(stop, result) for result in results]

        return self._exact.run(arrays, noise)


def make_examples(path: str) -> dict[str, torch.Tensor]:
    """Inputs that the file may take: open dimensions of the same name get the same size."""
    generator = np.random.default_rng(0)
    examples: dict[str, torch.Tensor] = {}
    sizes: dict[str, int] = {}
    for value in Graph.read(Path(path)).inputs:
        name, shape = read_name(value), read_dims(value) or ()
        if not isinstance(value.type, ir.TensorType) or value.dtype in (ir.DataType.UNDEFINED, ir.DataType.STRING):
            raise InputError(f"{path}: the input {name} is no tensor of numbers, so there is nothing to feed it")
        fixed = [
            size if isinstance(size, int) else sizes.setdefault(size or f"{name}/{i}", BATCH if i == 0 else OTHER)
            for i, size in enumerate(shape)
        ]
        dtype = value.type.dtype.numpy()
        if min(fixed, default=1) < 0 or math.prod(fixed) * dtype.itemsize > LARGEST:
            raise InputError(f"{path}: the input {name!r} has the shape {fixed}: no example of that size can be made")
        drawn = generator.standard_normal(fixed) if dtype.kind == "f" else generator.integers(0, 2, fixed)
        examples[name] = to_torch(np.asarray(drawn).astype(dtype))
    return examples
