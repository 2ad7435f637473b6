"""Which nodes a lower precision costs most at: the error that each introduces itself, and what it inherits.

The original is read from the file in the lower precision itself: quantised values are let through as they were before, and stored
numbers are those of the original that they stand for. A node's own error is what it makes of right values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from onnxproof.findings import Finding, Where, found
from onnxproof.graph.evaluator import Pass, Stop
from onnxproof.graph.sourcemap import place_node
from onnxproof.parity.conversion import CLIPPED, HALF, MASKED, begins_at_zero, find_scale, match_original
from onnxproof.parity.declared import SPOTLESS, Meaning, to_decibels
from onnxproof.proof.codec import to_plain
from onnxproof.proof.quantization import NodeCost
from onnxproof.tensors.arrays import Array, Arrays

# Operators between real numbers and integers: no places of their own.
BETWEEN = frozenset("QuantizeLinear DequantizeLinear DynamicQuantizeLinear Whole UnpackBits Cast".split())
# Nodes whose effect on the outputs is measured, by a run for each.
MEASURED = 128
# Times the typical channel's largest weight from which on one channel ruins the scale that all share.
OUTLIER = 8.0
# Error of a stored tensor, as a share of the original's power, from which on it does not stand for it.
UNLIKE = 0.5
# Nodes that a finding tells of.
TOLD = 5
# How near the end of a range is to 6 where it is a ReLU's with that end.
SIX = 1e-3
# What a converter adds to the name of an output that it quantises.
MOVED = "_QuantizeLinear_Input"
# And to those of nodes.
SUFFIX = re.compile(r"(_MatMul)?(_quant|_Q4|_Add)?$")

# What goes on in the place of a value that is a place: the node, the value's name, and what it is.
Visit = Callable[[Stop, str, Array], Array]


@dataclass
class _Original:
    """The original, as far as the file shows it: a look that lets everything through unquantised."""

    originals: Mapping[str, Array]
    meaning: Meaning
    outliers: dict[str, float] = field(default_factory=dict)
    """Value → how far its largest channel is beyond the typical one, where all share a scale."""
    clipped: dict[str, float] = field(default_factory=dict)
    """Value → the share of it that its range cuts off."""
    modules: dict[str, str] = field(default_factory=dict)
    """Value → the module of the parameter that it stands for."""
    _live: dict[str, Array] = field(default_factory=dict)
    _meant: dict[str, tuple[str, Array] | None] = field(default_factory=dict)

    def look(self, stop: Stop, results: Sequence[Any]) -> Sequence[Any]:
        """What stands in the place of a node's results."""
        source = stop.taken[0] if stop.taken else ""
        if stop.op == "QuantizeLinear":
            self._live[stop.values[0]] = stop.arguments[0]
        elif stop.op == "DynamicQuantizeLinear":
            self._live[stop.values[0]] = stop.arguments[0] / results[1]
        elif stop.op == "DequantizeLinear" and source in self._live:
            right = _unfold(stop, self._live[source])
            far = np.abs(results[0] - right) > HALF * np.max(stop.arguments[1])
            self.clipped[stop.values[0]] = float(np.mean(far)) if far.size else 0.0
            return [right]
        elif stop.op == "Whole" and source in self._live:
            return [self._live[source]]
        elif stop.op in ("DequantizeLinear", "UnpackBits", "Whole") and source in self.meaning.stored:
            return [self._find_meant(stop, results[0])]
        return results

    def list_floats(self) -> dict[str, Array]:
        """Stored half floats, as the original has them."""
        meant = {name: self._match(name, array, name) for name, array in self.meaning.halves.items() if array.size > 1}
        return {name: array for name, array in meant.items() if array is not None}

    def _find_meant(self, stop: Stop, real: Array) -> Array:
        name, scale = stop.taken[0], find_scale(stop.taken[0], real, self.meaning.stored) if stop.op == "Whole" else 1.0
        if scale is None:
            return real
        meant = self._match(name, real * scale, stop.values[0])
        right = real if meant is None else np.asarray(meant / scale)
        if np.size(scale if stop.op == "Whole" else stop.arguments[1]) == 1 and real.ndim > 1:
            self._look_for_outliers(stop.values[0], right)
        return right

    def _match(self, name: str, real: Array, value: str) -> Array | None:
        if name not in self._meant:
            self._meant[name] = match_original(name, real, self.originals)
        if (meant := self._meant[name]) is None:
            return None
        parameter, right = meant
        self.modules[value] = parameter.rpartition(".")[0]
        # What another tool scaled on purpose stands for nothing that the original stores.
        return right if np.sum((real - right) ** 2) < UNLIKE * np.sum(right**2) else None

    def _look_for_outliers(self, name: str, real: Array) -> None:
        """Of what a weight takes, or of what it gives: products have these in either order."""
        for axis in (0, 1):
            largest = np.moveaxis(np.abs(real), axis, 0).reshape(real.shape[axis], -1).max(axis=1)
            typical = float(np.median(largest))
            if typical and float(largest.max()) > OUTLIER * typical:
                self.outliers[name] = max(float(largest.max()) / typical, self.outliers.get(name, 0.0))


def _unfold(stop: Stop, real: Array) -> Array:
    """What a range without negative numbers stands for: a ReLU that was there, or one with an end at 6."""
    if not begins_at_zero(stop):
        return real
    ends = np.iinfo(stop.arguments[0].dtype)
    top = (ends.max - ends.min) * float(np.max(stop.arguments[1]))
    return np.clip(real, 0.0, 6.0 if abs(top - 6.0) < SIX else None)


@dataclass(frozen=True)
class Ranking:
    """One batch through the original and through the file in a lower precision, place by place."""

    meaning: Meaning
    originals: Mapping[str, Array]
    inputs: Arrays
    places: Mapping[str, str] | None = None
    """Value or node → the node of a float file that it stands for; None where there is no such file, and any real number is a place."""

    def rank(self, *, effects: bool = False) -> tuple[NodeCost, ...]:
        """The nodes with an error of their own, the worst first; by what each alone does to the outputs where that is asked for."""
        original = _Original(self.originals, self.meaning)
        fed = {**self.inputs, **original.list_floats()}
        right, own, whole, nodes = dict[str, Array](), dict[str, Array](), dict[str, Array](), dict[str, Stop]()
        answers = self._run(fed, original.look, lambda stop, name, real: right.setdefault(name, real))

        def compare(stop: Stop, name: str, real: Array) -> Array:
            own[name], nodes[name] = real, stop
            return right.get(name, real)

        self._run(self.inputs, self.meaning.narrow, compare)
        taken = self.meaning.take(self.inputs)
        self._run(taken, self.meaning.narrow, lambda stop, name, real: whole.setdefault(name, real))
        costs = [
            _cost(stop, self._name(stop, name) or stop.node, name, (right[name], real, whole[name]), original)
            for (name, stop), real in zip(nodes.items(), own.values(), strict=True)
            if name in right and right[name].shape == real.shape and np.any(right[name] != real)
        ]
        ranked = sorted(costs, key=lambda cost: cost.introduced)
        if not effects:
            return tuple(ranked)

        def measure(cost: NodeCost) -> NodeCost:
            moved = self._run(fed, original.look, lambda _, name, real: own[name] if name == cost.value else real)
            return replace(cost, effect=measure_worst(answers, moved))

        measured = [*map(measure, ranked[:MEASURED])]
        return (
            *sorted(measured, key=lambda cost: SPOTLESS if cost.effect is None else cost.effect),
            *ranked[MEASURED:],
        )

    def _run(self, fed: Arrays, look: Pass, visit: Visit) -> dict[str, Array]:
        """The outputs; what is seen at a place is visited."""

        def onward(stop: Stop, results: Sequence[Any]) -> Sequence[Any]:
            pairs = zip(stop.values, look(stop, results), strict=False)
            return [visit(stop, name, value) if self._is_place(stop, name, value) else value for name, value in pairs]

        return self.meaning.evaluate(fed, onward, narrowed=False)

    def _is_place(self, stop: Stop, name: str, value: Any) -> bool:
        if stop.op in BETWEEN or getattr(value, "dtype", None) != np.float64:
            return False
        return self.places is None or self._name(stop, name) is not None

    def _name(self, stop: Stop, name: str) -> str | None:
        places = self.places or {}
        return places.get(stop.node) or places.get(name.removesuffix(MOVED))


def _cost(stop: Stop, node: str, value: str, seen: tuple[Array, Array, Array], original: _Original) -> NodeCost:
    right, own, whole = seen
    # What a mask puts there is no signal, and an infinity in its place does the same.
    numbers = np.abs(right) < MASKED
    signal, introduced = float(np.sum(right[numbers] ** 2)), float(np.sum((own - right)[numbers] ** 2))
    total = float(np.sum((whole - right)[numbers] ** 2)) if whole.shape == right.shape else introduced
    return NodeCost(
        node=node,
        op=stop.op,
        value=value,
        introduced=to_decibels(signal, introduced),
        inherited=to_decibels(signal, max(total - introduced, 0.0) if np.isfinite(introduced) else 0.0),
        clipped=max((original.clipped.get(one, 0.0) for one in stop.taken), default=0.0),
        outlier=max((original.outliers.get(one, 0.0) for one in stop.taken), default=0.0),
        module=next((original.modules[one] for one in stop.taken if one in original.modules), None) or None,
    )


def place_cost(cost: NodeCost, sourcemap: str | None, lines: Mapping[str, Where] | None = None) -> NodeCost:
    """With the module and the line of the node: by the name that it had before the conversion, else by its weight (`lines`: module →
    where it is called)."""
    where = place_node(SUFFIX.sub("", cost.node), sourcemap)
    module = where.module or cost.module
    line = where if where.line else (lines or {}).get(module or "", where)
    return replace(cost, module=module, file=line.file, line=line.line)


def tell_costs(ranked: Sequence[NodeCost]) -> Finding | None:
    """The nodes that cost most, as a finding; None where no node has an error of its own."""
    if not ranked:
        return None
    first, others = ranked[0], ", ".join(f"{cost.node} {_show(cost.introduced)}" for cost in ranked[1:TOLD])
    told = f"introduces most: {_show(first.introduced)} (inherited: {_show(first.inherited)})"
    told += f"; {first.clipped:.1%} of its inputs clip" * (first.clipped > CLIPPED)
    # Its own output need not show it, because the channel is most of that.
    ruined = max(ranked, key=lambda cost: cost.outlier)
    wide = (
        f"one channel of the weight of {_name_place(ruined)} is {ruined.outlier:.0f} times as wide as the typical one"
    )
    outlier = [f"{wide} and ruins the scale that all share: give each channel its own"] * (ruined.outlier > 0)
    then = [f"then {others}"] * bool(others)
    message = "; ".join([*outlier, f"{_name_place(first)} {told}", *then])
    where = Where(node=first.node, module=first.module, file=first.file, line=first.line)
    shown = [*ranked[:TOLD], *([ruined] if ruined.outlier > 0 and ruined not in ranked[:TOLD] else [])]
    return found("OX232", message, where=where, evidence={"nodes": [to_plain(cost) for cost in shown]})


def _name_place(cost: NodeCost) -> str:
    known = [cost.module or "", f"{Path(cost.file).name}:{cost.line}" if cost.file else ""]
    place = ", ".join(filter(None, known))
    return f"{cost.node}{f' ({place})' * bool(place)}"


def _show(decibels: float) -> str:
    return {SPOTLESS: "nothing", -SPOTLESS: "overflow"}.get(decibels) or f"{decibels:.0f} dB"


def measure_worst(right: Arrays, moved: Arrays) -> float:
    """Decibels of the output that is hit hardest."""
    pairs = [(a.astype(np.float64), moved[name].astype(np.float64)) for name, a in right.items() if a.dtype.kind == "f"]
    return min((to_decibels(float(np.sum(a**2)), float(np.sum((a - b) ** 2))) for a, b in pairs), default=SPOTLESS)
