"""The module's decisions, seen while it runs, with gradients from each of them back to the inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from onnxproof.search.goals import Numbers, leave_half, leave_integer, list_goals, split, steer
from onnxproof.subject.mode import enter_eval, preserve_buffers
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Arrays, Floats
from onnxproof.tensors.conversion import to_numpy, to_torch

# An argument of a call, by its position, its name and its default.
Given = Callable[[int, str, Any], Any]
# The first argument and all of them → pairs of a value and the place where the function changes its behaviour.
Levels = Callable[[Any, Given], list[tuple[Any, Any]]]
Note = Callable[[str, torch.Tensor], None]
# Who hears of a decision, by its name, and of a call's result, by its number.
Result = Callable[[int, torch.Tensor], None]
NEAR_ZERO = 1e-6
# Elements of a value beyond which it is not watched.
TOO_LARGE = 50_000_000


def _read_argument(args: tuple[Any, ...], kwargs: Mapping[str, Any], index: int, name: str, default: Any) -> Any:
    return args[index] if len(args) > index else kwargs.get(name, default)


def _watch_at(*places: float) -> Levels:
    return lambda x, given: [(x, place) for place in places]


def _watch_given(*limits: tuple[int, str, float | None]) -> Levels:
    """Places that the call itself names: their position, name and default."""
    return lambda x, given: [(x, place) for limit in limits if (place := given(*limit)) is not None]


def _watch_near_zero(index: int) -> Levels:
    """Poles: whether the size of an argument comes down to nothing."""

    def levels(x: Any, given: Given) -> list[tuple[Any, Any]]:
        value = given(index, "other", None)
        return [(value.abs(), NEAR_ZERO)] if isinstance(value, torch.Tensor) else []

    return levels


PAIR = _watch_given((1, "other", None))
# Functions of PyTorch that change their behaviour somewhere, and where.
DECISIONS: dict[str, Levels] = {
    **dict.fromkeys(
        ("relu", "leaky_relu", "elu", "selu", "celu", "prelu", "abs", "sign", "floor", "trunc"), _watch_at(0.0)
    ),
    **dict.fromkeys(("round", "ceil", "frac"), _watch_at(0.0)),
    "relu6": _watch_at(0.0, 6.0),
    **dict.fromkeys(("hardswish", "hardsigmoid"), _watch_at(-3.0, 3.0)),
    "hardtanh": _watch_given((1, "min_val", -1.0), (2, "max_val", 1.0)),
    **dict.fromkeys(("clamp", "clip"), _watch_given((1, "min", None), (2, "max", None))),
    **dict.fromkeys(("clamp_min", "clamp_max", "threshold"), PAIR),
    "softplus": lambda x, given: [(x, given(2, "threshold", 20.0) / given(1, "beta", 1.0))],
    **dict.fromkeys(("hardshrink", "softshrink"), lambda x, given: [(x, width := given(1, "lambd", 0.5)), (x, -width)]),
    **dict.fromkeys(("gt", "lt", "ge", "le", "eq", "ne", "greater", "less"), PAIR),
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), PAIR),
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal"), _watch_near_zero(0)),
    **dict.fromkeys(("div", "truediv", "true_divide", "divide"), _watch_near_zero(1)),
    **dict.fromkeys(("norm", "normalize", "vector_norm"), _watch_near_zero(0)),  # nothing where a whole row is
    **dict.fromkeys(("exp", "expm1", "exp2"), _watch_at(88.8, -104.0)),
    **dict.fromkeys(("softmax", "log_softmax", "logsumexp", "sigmoid", "logsigmoid"), _watch_at(17.0, -17.0)),
    **dict.fromkeys(("tanh", "gelu", "silu"), _watch_at(17.0, -17.0)),
}


# Functions that jump, and where they do: places to be hit exactly.
HITS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "round": leave_half,
    **dict.fromkeys(("floor", "ceil", "trunc", "floor_divide", "floordiv"), leave_integer),
}


class _Watch(TorchFunctionMode):
    """Tells every decision and the result of every call."""

    def __init__(self, note: Note, result: Result) -> None:
        super().__init__()
        self._note = note
        self._result = result
        self._counts: dict[str, int] = {}
        self._calls = 0

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "").strip("_")
        levels = DECISIONS.get(name)
        if levels is not None and args and isinstance(args[0], torch.Tensor):
            index = self._counts[name] = self._counts.get(name, -1) + 1
            for i, (value, place) in enumerate(levels(args[0], partial(_read_argument, args, kwargs or {}))):
                if _watchable(value, place):
                    self._note(f"{name}#{index}.{i}", value - place)
            hit = HITS.get(name)
            if hit is not None and args[0].is_floating_point() and args[0].numel():
                self._note(f"{name}#{index}=", hit(args[0]))
        out = func(*args, **(kwargs or {}))
        # Reading an attribute (`x.T`) comes here as `__get__`, and is no call.
        if isinstance(out, torch.Tensor) and name != "get":
            self._calls += 1
            self._result(self._calls, out)
        return out


def _watchable(value: Any, place: Any) -> bool:
    numeric = isinstance(value, torch.Tensor) and value.dtype != torch.bool and not value.is_complex()
    fits = isinstance(place, (int, float)) or (isinstance(place, torch.Tensor) and place.dtype != torch.bool)
    return bool(numeric and fits and 0 < value.numel() < TOO_LARGE)


def _ignore(one: Any, tensor: torch.Tensor) -> None:
    """Nobody listens."""


class ModuleWatcher:
    """Runs the module and tells its decisions."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def observe(self, inputs: Arrays) -> Numbers:
        """The numbers of all goals on these inputs; nothing where the module rejects them."""
        seen: Numbers = {}

        def note(decision: str, difference: torch.Tensor) -> None:
            seen.update(list_goals(f"module {decision}", difference.detach().double().cpu().numpy()))

        with torch.no_grad():
            self._run(self._make_leaves(inputs), note=note)
        return seen

    def results(self, inputs: Arrays) -> dict[int, Floats]:
        """The float results of all calls, by their order."""
        kept: dict[int, Floats] = {}
        room = TOO_LARGE

        def result(call: int, out: torch.Tensor) -> None:
            nonlocal room
            if out.is_floating_point() and out.numel() < room:
                kept[call] = to_numpy(out.detach()).astype(np.float64)
                room -= out.numel()

        with torch.no_grad():
            self._run(self._make_leaves(inputs), result=result)
        return kept

    def slope(self, inputs: Arrays, goal: str, at_call: tuple[int, float] | None = None) -> dict[str, Floats] | None:
        """The gradient towards a goal for every float input; None where nothing can be differentiated.

        `at_call` gives the goal of a graph's node: the result of that call minus that place.
        """
        decision, side = split(goal)
        wanted: list[torch.Tensor] = []

        def note(name: str, difference: torch.Tensor) -> None:
            if at_call is None and f"module {name}" == decision:
                wanted.append(steer(difference, side))

        def result(call: int, out: torch.Tensor) -> None:
            if at_call is not None and call == at_call[0]:
                wanted.append(steer(out - at_call[1], side))

        leaves = self._make_leaves(inputs)
        floats = {name: leaf.requires_grad_() for name, leaf in leaves.items() if leaf.is_floating_point()}
        with torch.enable_grad():
            self._run(leaves, note, result)
            if not wanted or not wanted[0].requires_grad or not floats:
                return None
            try:
                gradients = torch.autograd.grad(wanted[0], list(floats.values()), allow_unused=True)
            except RuntimeError:
                return None  # something on the way was changed in place
        found = {name: gradient for name, gradient in zip(floats, gradients, strict=True) if gradient is not None}
        return {name: gradient.double().cpu().numpy() for name, gradient in found.items()}

    def _make_leaves(self, inputs: Arrays) -> dict[str, torch.Tensor]:
        return {name: to_torch(inputs[name]) for name in self._subject.inputs.tensors}

    def _run(self, leaves: Mapping[str, torch.Tensor], note: Note = _ignore, result: Result = _ignore) -> None:
        module = self._subject.module
        try:
            with enter_eval(module), preserve_buffers(module), _Watch(note, result):
                # A copy, so that a module which changes its inputs in place does not change the leaves.
                self._subject.call([leaf.clone() for leaf in leaves.values()])
        except MemoryError:
            raise
        except Exception:
            return  # it rejects this input, or cannot be watched: what was seen until then counts
