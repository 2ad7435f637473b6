"""The truth: the same module run in float64, and its legal roundings.

`.double()` alone is not enough: modules cast to float32 by name, ask for `x.dtype`, build constants. Two modes around the
copy make every float a float64 while the module still believes to be in its own dtype. A third injects, after every
operation, the rounding error that a kernel in the module's own dtype may make there (see `rounding.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from onnxproof.graph.widening import widen_array
from onnxproof.parity.amplitudes import count_operations
from onnxproof.parity.narrow_weights import take_narrow
from onnxproof.parity.rounding import Injector
from onnxproof.parity.work import UNKNOWN, Work
from onnxproof.subject.mode import Rest, enter_eval, forget_compiled
from onnxproof.subject.module_copy import copy_module
from onnxproof.subject.onnx_module import GraphModule
from onnxproof.subject.structure import flatten
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays
from onnxproof.tensors.conversion import to_numpy, to_torch

WIDE = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}


# Who carries out an operation: the function, its arguments by place and by name.
See = Callable[[Any, list[Any], dict[str, Any]], Any]
T = TypeVar("T")
# Bytes of weights up to which there is a copy of them in float64.
COPIED = 200_000_000


class Unavailable(Exception):
    """The module cannot be run in float64."""


class DoubleRunner:
    """A float64 copy of the module."""

    def __init__(self, subject: Subject) -> None:
        self._names = list(subject.inputs.tensors)
        self.believed = find_believed_dtype(subject)
        self._module = self._copy_wide(subject.module)
        self._subject = subject
        self.rest = Rest(self._module)
        self.called: set[str] = set()
        """Operations the module calls, as seen while it ran under the modes."""
        self._plain: bool | None = False if self._module is subject.module else None
        """Whether the copy gives the same without the modes: then they are left away, they cost time on every operation."""
        self._rounds = False
        """Whether the module holds tensors against numbers that its dtype rounds: without the modes the copy does not."""
        self._asks = False
        """Whether the module asks a tensor for its dtype: only then it must be made to believe, which costs time on every call."""
        self.work = UNKNOWN
        """What a forward costs, counted in the first one."""
        self.narrowest = self.believed
        """The narrowest float dtype the module asked for, seen while it ran: the unit of its rounding."""

    @staticmethod
    def _copy_wide(module: torch.nn.Module) -> torch.nn.Module:
        """A copy in float64; of a large module itself, whose weights are widened one by one when an operation takes them."""
        if sum(p.numel() * p.element_size() for p in module.parameters() if p.dtype in WIDE) > COPIED:
            return module
        try:
            copied = copy_module(module)
            # Not `.double()`: it leaves complex tensors and those that are plain attributes as they are.
            _widen_module(copied)
            if isinstance(copied, GraphModule):
                copied.exactly = True
        except Exception as error:
            raise Unavailable(f"{type(error).__name__}: {error}") from error
        return copied

    @property
    def unit(self) -> float:
        """The unit roundoff of the narrowest dtype the module computes in."""
        return torch.finfo(self.narrowest).eps / 2

    def run(self, inputs: Arrays) -> dict[str, Array]:
        if self._plain:
            return self._run(self._widen_inputs(inputs), nullcontext())
        outputs = self._run_widened(self._widen_inputs(inputs))
        if self._plain is None:
            usual = self.narrowest in (torch.float32, torch.float64) and not self._rounds
            self._plain = usual and self._same_without_modes(inputs, outputs)
        return outputs

    def widen_inputs(self, inputs: Arrays) -> dict[str, torch.Tensor]:
        """The inputs as they go in."""
        return {name: _widen(to_torch(inputs[name])) for name in self._names}

    def _widen_inputs(self, inputs: Arrays) -> list[torch.Tensor]:
        return list(self.widen_inputs(inputs).values())

    def _overflow(self, array: Array) -> Array:
        """What the module's own dtype cannot hold is infinite there."""
        if array.dtype != np.float64:
            return array
        largest, flat = torch.finfo(self.believed).max, array.reshape(-1)
        # Without a copy where nothing is as large, which is nearly always; these two pass over NaN.
        if np.fmax.reduce(flat, initial=0.0) <= largest and np.fmin.reduce(flat, initial=0.0) >= -largest:
            return array
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(array) > largest, np.copysign(np.inf, array), array)

    def _same_without_modes(self, inputs: Arrays, outputs: Arrays) -> bool:
        try:
            plain = self._run(self._widen_inputs(inputs), nullcontext())
        except Unavailable:
            return False
        return plain.keys() == outputs.keys() and all(_agree(value, outputs[name]) for name, value in plain.items())

    def watch(self, inputs: Arrays, see: See) -> dict[str, torch.Tensor]:
        """Run once and show every operation to `see`, which carries it out; the inputs as they go in."""
        leaves = self.widen_inputs(inputs)
        self._watch(list(leaves.values()), see, lambda tensor: None)
        return leaves

    def ask_outputs(self, inputs: Arrays, see: See, ask: Callable[[torch.Tensor], T]) -> dict[str, T]:
        """The same; what is asked of every output when it is there."""
        return self._watch(self._widen_inputs(inputs), see, ask)

    def _watch(self, leaves: list[torch.Tensor], see: See, read: Callable[[torch.Tensor], T]) -> dict[str, T]:
        return self._call(leaves, _enter_widening(self._make_belief(), _Widening(self.believed, see=see)), read)

    def sample(
        self, inputs: Arrays, seed: int, *, constants_only: bool = False, unit: float | None = None
    ) -> dict[str, Array] | None:
        """The truth with legal rounding errors; None if `constants_only` and the module computes no constants."""
        unit = self.unit if unit is None else unit
        if isinstance(self._module, GraphModule):
            wide = {n: widen_array(a) for n, a in inputs.items()}
            return None if constants_only else self._module.rounded(wide, seed, unit)
        leaves = self._widen_inputs(inputs)
        injector = Injector(unit, self.narrowest, seed, tainted=leaves if constants_only else None)
        outputs = self._run_widened(leaves, injector)
        return None if constants_only and not injector.injected else outputs

    def _run_widened(self, leaves: list[torch.Tensor], injector: Injector | None = None) -> dict[str, Array]:
        belief = self._make_belief()
        widening = _Widening(self.believed, injector, counts=not self.called)
        try:
            outputs = self._run(leaves, _enter_widening(belief, widening))
        except Unavailable:
            forget_compiled()
            raise
        if not self.called:
            self.work = Work(widening.calls, widening.operations, sum(leaf.numel() for leaf in leaves))
        self._asks |= belief is not None and belief.asked
        self._rounds |= widening.rounds
        self.called |= widening.called
        self.narrowest = max([self.narrowest, *widening.asked], key=lambda dtype: torch.finfo(dtype).eps)
        return outputs

    def _make_belief(self) -> _Belief | None:
        """None where a run has shown that the module does not ask for dtypes."""
        return _Belief(self.believed) if self._asks or not self.called else None

    def _run(self, leaves: list[torch.Tensor], modes: AbstractContextManager[Any]) -> dict[str, Array]:
        outputs = self._call(leaves, modes, lambda tensor: to_numpy(_widen(tensor)))
        return {name: self._overflow(array) for name, array in outputs.items()}

    def _call(
        self, leaves: list[torch.Tensor], modes: AbstractContextManager[Any], read: Callable[[torch.Tensor], T]
    ) -> dict[str, T]:
        """What is read of every output, before what the module keeps is put back: an output may be a part of that."""
        try:
            with enter_eval(self._module), self.rest.after_run(), torch.no_grad():
                with modes:
                    flat = flatten(self._subject.call(leaves, self._module)).tensors
                return {name: read(tensor) for name, tensor in flat.items()}
        except MemoryError:
            raise
        except Exception as error:
            raise Unavailable(f"{type(error).__name__}: {error}") from error


def _agree(a: Array, b: Array) -> bool:
    """Equal up to float64's own rounding: torch may choose another kernel without the modes."""
    if a.shape != b.shape or a.dtype != b.dtype or a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
    return np.allclose(a, b, rtol=1e-12, atol=1e-13 * scale, equal_nan=True)


def find_believed_dtype(subject: Subject) -> torch.dtype:
    """The float dtype of the module: of its parameters, else of its inputs, else float32."""
    tensors = [*subject.module.parameters(), *subject.module.buffers(), *subject.inputs.tensors.values()]
    floats = [t.dtype for t in tensors if t.is_floating_point()]
    return max(floats, key=lambda dtype: torch.finfo(dtype).eps) if floats else torch.float32


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(WIDE.get(tensor.dtype, tensor.dtype))


def _widen_module(module: torch.nn.Module) -> None:
    for child in module.modules():
        for name, parameter in child._parameters.items():
            if parameter is not None and parameter.dtype in WIDE:
                child._parameters[name] = torch.nn.Parameter(_widen(parameter.detach()), requires_grad=False)
        for name, buffer in child._buffers.items():
            if buffer is not None:
                child._buffers[name] = _widen(buffer)
        for name, value in list(vars(child).items()):
            if isinstance(value, torch.Tensor):  # constants kept as plain attributes
                setattr(child, name, _widen(value))


# Operations that hold a tensor against numbers, which PyTorch rounds to the tensor's dtype first.
LIMITING = frozenset(
    "clamp clamp_ clamp_min clamp_min_ clamp_max clamp_max_ hardtanh hardtanh_ threshold threshold_ gt ge lt le eq ne".split()
)
NORMS_OF_ROOTS = (torch.rms_norm, torch.nn.functional.rms_norm)


class _Belief(TorchFunctionMode):
    """Tensors say they have the module's own dtype, so that code which asks takes the same branches."""

    def __init__(self, believed: torch.dtype) -> None:
        super().__init__()
        self._believed = believed
        self.asked = False

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in NORMS_OF_ROOTS:
            args, kwargs = (), self._state_epsilon(args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        if result is torch.float64 and func == torch.Tensor.dtype.__get__:  # type: ignore[attr-defined]  # a getset descriptor
            self.asked = True
            return self._believed
        return result

    def _state_epsilon(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """The arguments with an epsilon: one that is left out is that of the tensor's dtype, which torch takes without asking."""
        given: dict[str, Any] = {
            **dict(zip(("input", "normalized_shape", "weight", "eps"), args, strict=False)),
            **kwargs,
        }
        if given.get("eps") is not None:
            return given
        self.asked = True
        return given | {"eps": torch.finfo(self._believed).eps}


class _Widening(TorchDispatchMode):
    """Every request for a narrow float dtype gets float64; optionally each result its legal rounding error."""

    def __init__(
        self, believed: torch.dtype, injector: Injector | None = None, *, counts: bool = False, see: See | None = None
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's mode has no types
        self._believed = believed
        self.rounds = False
        """Whether a limit was met that the module's dtype rounds."""
        self._see = see
        self._injector = injector
        self._counts = counts
        self.calls, self.operations = 0, 0.0
        self.asked: set[torch.dtype] = set()
        self.called: set[str] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Not shielded from torch's compiler: the shield costs more than the rest of the mode, and imports the compiler. What the
        compiler makes of these frames is the same."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Exported programs assert the dtypes they were captured with, which are not those of this run.
        if func is torch.ops.aten._assert_tensor_metadata.default:
            return None
        self.called.add(func.overloadpacket.__name__)
        narrow = take_narrow(func, args, kwargs or {}) if self._see is None else None
        if narrow is not None:
            return self._carry_out(narrow, list(args), kwargs or {})
        args = [self._widen_value(value) for value in args]
        kwargs = {name: self._widen_value(value) for name, value in kwargs.items()} if kwargs else {}
        if func.overloadpacket.__name__ in LIMITING:
            args = [self._round_limit(value) for value in args]
            kwargs = {name: self._round_limit(value) for name, value in kwargs.items()}
        return self._carry_out(func, args, kwargs)

    def _carry_out(self, func: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if self._injector is not None:
            return self._injector.call(func, args, kwargs)
        out = func(*args, **kwargs) if self._see is None else self._see(func, args, kwargs)
        if self._counts:
            self.calls += 1
            self.operations += count_operations(func, args, out)
        return out

    def _round_limit(self, value: Any) -> Any:
        """The limit that the module has: one that lies between two of its numbers decides otherwise than either of them."""
        if not isinstance(value, float):
            return value
        limit = torch.tensor(value, dtype=torch.float64).to(self._believed).item()
        if limit == value or not math.isfinite(limit):
            return value
        self.rounds = True
        return limit

    def _widen_value(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            # A narrow one was built from Python data or is kept outside the module.
            return value if value.dtype not in WIDE else value.to(WIDE[value.dtype])
        if isinstance(value, torch.dtype):
            if value in WIDE and value.is_floating_point:
                self.asked.add(value)
            return WIDE.get(value, value)
        return [self._widen_value(one) for one in value] if isinstance(value, (list, tuple)) else value


@contextmanager
def _enter_widening(belief: _Belief | None, widening: _Widening) -> Iterator[None]:
    before = torch.get_default_dtype()
    # Factories without a dtype (`torch.zeros(3)`) ask for the default, and no argument shows it.
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), belief or nullcontext(), widening:
            yield
    finally:
        torch.set_default_dtype(before)


def widen_inside(believed: torch.dtype) -> AbstractContextManager[None]:
    """Everything inside computes in float64 while it believes to be in its own dtype."""
    return _enter_widening(_Belief(believed), _Widening(believed))


def nudge_inputs(inputs: Arrays, seed: int) -> dict[str, Array]:
    """Inputs moved by up to two ulp: the stand-in for rounding noise where there is no float64 truth."""
    generator = np.random.default_rng(seed)
    moved = dict(inputs)
    for name, array in inputs.items():
        if array.dtype.kind == "f":
            step = generator.integers(-2, 3, array.shape).astype(array.dtype)
            with np.errstate(over="ignore", invalid="ignore"):
                moved[name] = (array + step * np.finfo(array.dtype).eps * np.abs(array)).astype(array.dtype)
    return moved
