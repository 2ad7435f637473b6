"""An ONNX file as a PyTorch module, so that two files can be compared by the same machinery.

It runs under onnxruntime without optimisations, or where it is asked to; as the truth it is evaluated in float64, node by node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch

from onnxproof.candidates import choose_candidate
from onnxproof.candidates.candidate import Session
from onnxproof.errors import FindingError, InputError, TargetError
from onnxproof.graph.evaluator import Evaluator, Pass, Stop
from onnxproof.graph.inference import infer, infer_types
from onnxproof.graph.precision import recognise_precision
from onnxproof.graph.view import Graph, read_dims, read_name
from onnxproof.graph.widening import LOSSY, widen_array
from onnxproof.proof.artifact import Precision
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


# Operators whose quantised kernels look their answers up in a table or divide in integers: one step off is a legal answer.
LOOKED_UP = frozenset("Softmax Sigmoid LeakyRelu AveragePool GlobalAveragePool ReduceMean".split())
QUANTIZING = ("QuantizeLinear", "DynamicQuantizeLinear")
# Part of a quotient by which kernels may differ before it is rounded.
BORDER = 2.0**-21
# Share of such answers that are a step off.
STEPPED = 0.3
# Operators whose float kernels are accurate to a part of one, not of their result.
BOUNDED = frozenset("Tanh Sigmoid Erf Gelu Softmax".split())
# Half of the last place of half floats.
UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
# As the file says: no rewrite comes between.
PLAIN = SessionSettings(optimization="disable")


class GraphModule(torch.nn.Module):
    """The file behind the interface of a module: tensors by name in, tensors by name out."""

    def __init__(self, path: str, settings: SessionSettings = PLAIN) -> None:
        """`settings`: the session that answers where it is not the truth."""
        super().__init__()
        self.path, self._settings = path, settings
        self.exactly = False
        """Whether it is the truth: evaluated in float64, else under onnxruntime in its own dtypes."""
        self.eval()

    @property
    def file_name(self) -> str:
        """The file without its folder."""
        return Path(self.path).name

    def __deepcopy__(self, memo: Any) -> GraphModule:
        # A session can neither be copied nor pickled: the other one opens the file anew.
        return GraphModule(self.path, self._settings)

    def __reduce__(self) -> Any:
        return GraphModule, (self.path, self._settings)

    def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """Run it."""
        arrays = {name: to_numpy(tensor) for name, tensor in inputs.items()}
        outputs = self.evaluate(arrays) if self.exactly else self._session.run(arrays)
        return {name: to_torch(np.array(value, order="C")) for name, value in outputs.items()}

    def open(self) -> None:
        """Raise where the runtime that is to answer refuses the file."""
        try:
            self._session.close()
        except FindingError as error:
            runtime = self._settings.runtime or "onnxruntime"
            raise TargetError(
                f"{self.path} does not load on {runtime}, which is to be the original: {error}"
            ) from error
        finally:
            self.__dict__.pop("_session", None)

    @cached_property
    def _session(self) -> Session:
        return choose_candidate(self._settings).open(Path(self.path), self._settings)

    @cached_property
    def _exact(self) -> Evaluator:
        return Evaluator.exact(*Graph.read(Path(self.path)).separated, keep_lossy_casts=True)

    @cached_property
    def precision(self) -> Precision | None:
        """The lower precision that it has chosen."""
        return recognise_precision(Graph.read(Path(self.path)))

    @cached_property
    def _narrow(self) -> dict[str, np.dtype[Any]]:
        """Values that the graph declares to be half floats."""
        types = infer_types(infer(Graph.read(Path(self.path)).proto))
        return {name: onnx.helper.tensor_dtype_to_np_dtype(kind) for name, kind in types.items() if kind in LOSSY}

    def evaluate(
        self, arrays: Arrays, onward: Pass = lambda stop, results: results, *, narrowed: bool = True
    ) -> dict[str, Array]:
        """What the graph means: real numbers, rounded where it declares half floats (by whoever looks on, if not `narrowed` here)."""
        if not narrowed:
            return self._run({name: widen_array(array) for name, array in arrays.items()}, onward)
        return self._run(self.take(arrays), lambda stop, results: self.narrow(stop, onward(stop, results)))

    def take(self, arrays: Arrays) -> dict[str, Array]:
        """What is fed, rounded where the graph declares half floats and widened again."""
        with np.errstate(over="ignore"):
            rounded = {n: a.astype(self._narrow[n]) if n in self._narrow else a for n, a in arrays.items()}
        return {name: widen_array(array) for name, array in rounded.items()}

    def _run(self, feed: Arrays, onward: Pass) -> dict[str, Array]:
        return self._exact.run(feed, onward)

    @property
    def unit(self) -> float:
        """Half of the last place of the narrowest float that it stores or computes."""
        return max((UNITS[dtype.name] for dtype in self._narrow.values()), default=2.0**-24)

    @property
    def halves(self) -> dict[str, Array]:
        """Those of its tensors that are half floats, widened."""
        return {name: self.stored[name] for name in self._narrow if name in self.stored}

    @property
    def stored(self) -> Mapping[str, Any]:
        """Its tensors, widened."""
        return self._exact.stored

    def narrow(self, stop: Stop, results: Sequence[Any]) -> Sequence[Any]:
        """Results as half floats where the graph declares them to be."""
        return [
            result.astype(self._narrow[name]).astype(np.float64)
            if name in self._narrow and getattr(result, "dtype", None) == np.float64
            else result
            for name, result in zip(stop.values, results, strict=False)
        ]

    def rounded(self, arrays: Arrays, seed: int, unit: float) -> dict[str, Array]:
        """The exact run with, after each node, an error that a legal kernel of this unit roundoff may make there."""
        generator, lower = np.random.default_rng(seed), self.precision is not None
        writers: dict[str, str] = {}

        def noise(stop: Stop, results: Sequence[Any]) -> Sequence[Any]:
            writers.update(dict.fromkeys(stop.values, stop.op))
            if stop.op == "QuantizeLinear" and writers.get(stop.taken[0]) in LOOKED_UP:
                return [_vary_steps(result, generator) for result in results]
            if stop.op in QUANTIZING:
                scale = stop.arguments[1] if stop.op == "QuantizeLinear" else results[1]
                return [_vary_borders(stop.arguments[0], scale, results[0], generator), *results[1:]]
            if stop.taken and writers.get(stop.taken[0]) == "Whole":
                return results  # products of integers are exact
            # A rounding to half floats is left out by kernels that compute in more.
            lossy = stop.op == "Cast" and any(name in self._narrow for name in stop.values)
            if stop.op in EXACT_OPS and not lossy:
                return results
            named = zip(results, stop.values, strict=False)
            return [self._nudge(result, unit, stop, self._narrow.get(name), generator, lower) for result, name in named]

        # What is quantised first is divided by its scale first: a value on the border of two integers may go to either.
        taken = self.take(arrays)
        moved = {
            name: array * (1 + unit * generator.uniform(-1, 1, array.shape)) if array.dtype == np.float64 else array
            for name, array in taken.items()
        }
        return self._run(moved if lower else taken, noise)

    @staticmethod
    def _nudge(
        result: Any, unit: float, stop: Stop, narrow: np.dtype[Any] | None, generator: np.random.Generator, lower: bool
    ) -> Any:
        """A result with an error that its kernel may make; half floats are rounded once, after sums that are carried in more."""
        if not isinstance(result, np.ndarray) or result.dtype != np.float64 or not result.size:
            return result
        scale = np.abs(result)
        if stop.op in LONG_SUMS:
            length = max((np.size(a) // max(1, np.shape(a)[0]) for a in stop.arguments if np.ndim(a)), default=1)
            # One infinity would make the error of every other element infinite.
            finite = np.where(np.isfinite(result), result, 0.0)
            # Sums that cancel are off by a part of their terms: in a lower precision ranges are used up, and it happens often.
            scale = scale + np.sqrt(np.mean(np.square(finite))) * np.sqrt(length) * (4 if lower else 1)
        if lower and stop.op in BOUNDED:
            scale = scale + 1.0  # before integers it matters that their accuracy is absolute
        error = 2 * unit * scale + (UNITS[narrow.name] * np.abs(result) if narrow is not None else 0.0)
        return result + generator.uniform(-1, 1, result.shape) * error


def _vary_borders(real: Array, scale: Any, stored: Array, generator: np.random.Generator) -> Array:
    """Integers of which those on the border of two are either: a kernel's last digits decide."""
    if np.size(scale) != 1 or stored.dtype.kind not in "iu":
        return stored
    quotient = real / np.float64(scale)
    over = quotient - np.floor(quotient) - 0.5
    near = (np.abs(over) < BORDER * (np.abs(quotient) + 1)) & (generator.random(stored.shape) < 0.5)
    ends = np.iinfo(stored.dtype)
    # The other side of the border: a rounding up becomes one down.
    other = stored.astype(np.int64) + np.where(np.rint(quotient) > quotient, -1, 1)
    return np.where(near, np.clip(other, ends.min, ends.max), stored).astype(stored.dtype)


def _vary_steps(stored: Array, generator: np.random.Generator) -> Array:
    """Integers of which some are one higher or one lower."""
    if stored.dtype.kind not in "iu":
        return stored
    steps = np.where(generator.random(stored.shape) < STEPPED, generator.choice([-1, 1], stored.shape), 0)
    ends = np.iinfo(stored.dtype)
    return np.clip(stored.astype(np.int64) + steps, ends.min, ends.max).astype(stored.dtype)


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
