"""Where a conversion to a lower precision went wrong: stored numbers that do not stand for the original's, ranges that clip.

A place is suspected by its own numbers, and accused only if the outputs come much nearer to the original's once it is mended: what
another tool folded or scaled on purpose does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxproof.findings import Finding, Where, found
from onnxproof.graph.evaluator import Stop
from onnxproof.parity.declared import Meaning, to_decibels
from onnxproof.tensors.arrays import Array, Arrays

# Steps by which a stored number may be off the one it stands for: half a step, and a little for float32.
HALF = 0.52
# Share of numbers that are farther off from which a tensor is suspected.
WRONG = 0.005
# Share of values outside a range, and steps of it that are used, from which a range is suspected.
CLIPPED, USED = 0.01, 24
# Decibels that mending must bring: of a stored tensor, of a range.
GAIN, RANGE_GAIN = 3.0, 8.0
# Decibels below which an output says nothing any more.
NOISE = 0.0
# Places that are mended one at a time.
MENDED = 8
# How alike an original and what stands for it are at least.
ALIKE = 0.5


@dataclass(frozen=True)
class Suspect:
    """A place, what is odd about it, and the node's result as it should be."""

    node: str
    value: str
    text: str
    mend: Callable[[Stop], Sequence[Any]]
    needed: float
    parameter: str | None = None
    share: float = 0.0
    """Of the numbers there that are wrong."""


@dataclass
class _Seen:
    """What one exact run shows of stored tensors and ranges."""

    originals: Mapping[str, Array]
    suspects: list[Suspect] = field(default_factory=list)
    before: dict[str, Array] = field(default_factory=dict)
    """Quantised value → the real numbers it was made of."""
    stored: Mapping[str, Any] = field(default_factory=dict)

    def look(self, stop: Stop, results: Sequence[Any]) -> Sequence[Any]:
        """Note what is odd about a node."""
        if stop.op == "QuantizeLinear":
            self.before[stop.values[0]] = stop.arguments[0]
        elif stop.op == "DequantizeLinear" and stop.taken[0] in self.before:
            self._look_at_range(stop, self.before.pop(stop.taken[0]), results[0])
        elif stop.op == "DequantizeLinear" and stop.taken[0] in self.stored:
            scale = np.broadcast_to(_along(stop.arguments[1], results[0], stop), np.shape(results[0]))
            self._look_at_tensor(stop, stop.taken[0], results[0], scale, lambda right: lambda _: [right])
        elif stop.op in ("MatMulInteger", "ConvInteger") and stop.taken[1] in self.stored:
            self._look_at_product(stop)
        return results

    def _look_at_range(self, stop: Stop, real: Array, back: Array) -> None:
        scale = float(np.max(stop.arguments[1]))
        if not real.size or not scale:
            return
        clipped = float(np.mean(np.abs(back - real) > HALF * scale))
        used = float(np.ptp(real)) / scale
        if clipped > CLIPPED:
            text = f"{clipped:.1%} of the values are outside its range"
        elif used < USED:
            text = f"the values use {used:.0f} steps of its range"
        else:
            return
        self.suspects.append(Suspect(stop.taken[0], stop.values[0], text, lambda _: [real], RANGE_GAIN, share=clipped))

    def _look_at_product(self, stop: Stop) -> None:
        """A weight whose scale is applied to the product: its name tells which it is."""
        name = stop.taken[1]
        scale = self.stored.get(f"{name.removesuffix('_quantized')}_scale")
        if scale is None or stop.op != "MatMulInteger":
            return
        zero = stop.arguments[3] if len(stop.arguments) > 3 and stop.arguments[3] is not None else 0
        whole = stop.arguments[1].astype(np.float64) - np.asarray(zero, np.float64)
        first = stop.arguments[2] if len(stop.arguments) > 2 and stop.arguments[2] is not None else 0

        def mend(right: Array) -> Callable[[Stop], Sequence[Any]]:
            return lambda now: [(now.arguments[0].astype(np.float64) - np.float64(first)) @ (right / scale)]

        self._look_at_tensor(stop, name, whole * scale, np.broadcast_to(scale, whole.shape), mend)

    def _look_at_tensor(
        self, stop: Stop, name: str, real: Array, step: Array, mend: Callable[[Array], Callable[[Stop], Sequence[Any]]]
    ) -> None:
        matched = _match(real, self.originals)
        if matched is None:
            return
        parameter, right = matched
        wrong = float(np.mean(np.abs(real - right) > HALF * step + 1e-6 * np.abs(right)))
        if wrong > WRONG:
            text = f"{wrong:.1%} of its numbers are not those of {parameter}"
            self.suspects.append(Suspect(name, stop.values[0], text, mend(right), GAIN, parameter, wrong))


def _along(scale: Array, shape: Array, stop: Stop) -> Array:
    """A scale for each channel, where it is one: along the axis that fits."""
    scale = np.asarray(scale, np.float64)
    if scale.ndim != 1 or scale.size == 1:
        return scale if scale.ndim == 0 or scale.size == 1 or scale.ndim == shape.ndim else np.max(scale)
    axes = [axis for axis, size in enumerate(shape.shape) if size == scale.size]
    axis = axes[0] if axes else 0
    return scale.reshape([-1 if i == axis else 1 for i in range(shape.ndim)])


def _match(real: Array, originals: Mapping[str, Array]) -> tuple[str, Array] | None:
    """The original that a stored tensor is most like, turned as it is."""
    best: tuple[float, str, Array] | None = None
    for name, array in originals.items():
        for turned in (array, array.T) if array.ndim == 2 else (array,):
            if turned.shape == real.shape:
                norm = float(np.linalg.norm(turned) * np.linalg.norm(real))
                alike = abs(float(np.vdot(turned, real))) / norm if norm else 0.0
                if alike > ALIKE and (best is None or alike > best[0]):
                    best = alike, name, turned
    return (best[1], best[2]) if best is not None else None


def find_faults(
    meaning: Meaning, originals: Mapping[str, Array], inputs: Arrays, wanted: Sequence[Array], outputs: Sequence[str]
) -> Iterator[Finding]:
    """What went wrong in a conversion, on these inputs, for which the original answers `wanted`."""
    seen = _Seen(originals, stored=meaning.stored)
    answer = meaning.evaluate(inputs, seen.look)
    now = _decibels(answer, wanted, outputs)
    suspects = sorted(seen.suspects, key=lambda one: -one.share)[:MENDED]
    gains = {one.node: _decibels(_mended(meaning, inputs, [one]), wanted, outputs) - now for one in suspects}
    if len(suspects) > 1 and all(gain < GAIN for gain in gains.values()):
        # Two that spoil the same outputs hide each other.
        together = _decibels(_mended(meaning, inputs, suspects), wanted, outputs) - now
        gains = {node: max(gain, together if gain > 0 else 0.0) for node, gain in gains.items()}
    guilty = [one for one in suspects if gains[one.node] >= one.needed and (one.parameter or now < 20)]
    for one in sorted(guilty, key=lambda one: -gains[one.node]):
        module = one.parameter.rpartition(".")[0] if one.parameter else None
        message = f"{one.node}: {one.text}; mended, the outputs are {gains[one.node]:.0f} dB nearer to the original's"
        evidence = {"gain_db": gains[one.node], "decibels": now, "parameter": one.parameter, "share": one.share}
        yield found("OX229", message, where=Where(node=one.node, module=module), evidence=evidence)
    if not guilty and now < NOISE:
        message = f"the outputs are nearer to nothing than to the original's: {now:.1f} dB"
        yield found("OX229", message, evidence={"decibels": now})


def _mended(meaning: Meaning, inputs: Arrays, places: Sequence[Suspect]) -> dict[str, Array]:
    mends = {place.value: place.mend for place in places}

    def mend(stop: Stop, results: Sequence[Any]) -> Sequence[Any]:
        return mends[stop.values[0]](stop) if stop.values[0] in mends else results

    return meaning.evaluate(inputs, mend)


def _decibels(answer: Arrays, wanted: Sequence[Array], outputs: Sequence[str]) -> float:
    """The worst output's signal to noise."""
    pairs = [(answer[name], right) for name, right in zip(outputs, wanted, strict=True) if name in answer]
    fitting = [(a, w.astype(np.float64)) for a, w in pairs if a.shape == w.shape and w.dtype.kind == "f" and w.size]
    return min((to_decibels(float(np.sum(w**2)), float(np.sum((a - w) ** 2))) for a, w in fitting), default=300.0)
