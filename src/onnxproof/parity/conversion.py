"""Where a conversion to a lower precision went wrong: stored numbers that do not stand for the original's, ranges that clip.

A place is suspected by its own numbers, and accused only if the outputs come much nearer to the original's once it is mended: what
another tool folded or scaled on purpose does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.graph.evaluator import Stop
from onnxproof.parity.declared import SPOTLESS, Meaning, to_decibels
from onnxproof.tensors.arrays import Array, Arrays

# Steps by which a value may be off after quantising it: half a step, and a little for float32.
HALF = 0.52
# Steps by which a stored number may be off the one it stands for: converters that look at data round some the other way on purpose.
FAR = 1.6
# Share of numbers that are farther off from which a tensor is suspected.
WRONG = 0.005
# Share of values outside a range, and steps of it that are used, from which a range is suspected.
CLIPPED, USED = 0.01, 24
# Steps below which a range was made for other numbers altogether.
IDLE = 4
# Times that the steps of a second quantising may be as large as those of the first.
AGAIN = 2.0
# Share from which on a range is wrong whatever the inputs were that it was made for, if it is a share of several values; and
# from which on it is even if it is one of few.
SURELY, SEVERAL, MOST = 0.05, 20, 0.5
# Decibels that mending must bring: of a stored tensor, of a range.
GAIN, RANGE_GAIN, TURNED_GAIN = 0.5, 8.0, 6.0
# Decibels above which the outputs are not spoilt.
FAIR = 25.0
# Decibels below which a weight may be turned the wrong way.
POOR = 15.0
# Decibels below which an output says nothing any more.
NOISE = 0.0
# Places that are mended one at a time.
MENDED = 8
# How alike an original and what stands for it are at least.
ALIKE = 0.5
# From here on a number stands for a mask.
MASKED = 1e30
# What is multiplied is another thing than what was given.
PRODUCTS = frozenset({"Conv", "ConvTranspose", "MatMul", "Gemm", "ConvInteger", "MatMulInteger", "LSTM", "GRU", "RNN"})
# What only moves numbers.
MOVES = frozenset({"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast", "QuantizeLinear"})
# What takes stored scales and zero points beside its first argument.
SCALED = frozenset({"QuantizeLinear", "DequantizeLinear", "UnpackBits"})
# What settles a doubt about ranges.
BRING = " (`--data` tells)"

Live = Mapping[str, Array]
# A node's results as they are meant, given the node and what was quantised on the way to it in this run.
Mend = Callable[[Stop, Live], Sequence[Any]]
Mends = Mapping[str, Mend | Array]


@dataclass(frozen=True)
class Suspect:
    """A place, what is odd about it, and the node's result as it should be."""

    node: str
    scale: str
    """The stored scale; places that share it go wrong together."""
    text: str
    mends: Sequence[Mends]
    """Value → how it is made right, or what a stored one should be; several ways, where several may be meant."""
    needed: float
    parameter: str | None = None
    share: float = 0.0
    """Of the numbers there that are wrong."""
    clipped: int = 0
    """Values outside a range."""
    shared: str | None = None
    """The scale of a stored tensor, which ranges may have too."""
    given: bool = False
    """Whether it is the range of an input, before any product."""
    idle: bool = False
    """Whether almost nothing of a range is used."""
    coarse: bool = False
    """Whether the steps of a range are what is odd about it, and not its ends."""

    def weigh(self, decibels: float, strange: bool = False, real: bool = False) -> Severity:
        """A stored tensor is wrong whatever the inputs are; a range may be right for others, unless it spoils the outputs.

        Strange inputs are such as nobody says to be like those that the ranges were made for; real ones are the user's data.
        """
        few = self.clipped > 0 and self.share < MOST and (self.share < SURELY or self.clipped < SEVERAL)
        return (
            "review"
            if self.parameter is None and (few or strange or (decibels > FAIR and not (real and self.idle)))
            else "block"
        )


@dataclass
class _Seen:
    """What one exact run shows of stored tensors and ranges."""

    originals: Mapping[str, Array]
    suspects: list[Suspect] = field(default_factory=list)
    turned: list[Suspect] = field(default_factory=list)
    """Square ones, which fit both ways: looked at where nothing else is found."""
    endless: dict[str, str] = field(default_factory=dict)
    """Scales that a mask made, and a node that takes each."""
    scales: set[str] = field(default_factory=set)
    """What is stored to scale other things: it stands for nothing that the original has."""
    ranges: dict[str, dict[str, bool]] = field(default_factory=dict)
    """Scale → the values that come back from integers with it, and whether none can be negative."""
    before: dict[str, tuple[str, str, Array]] = field(default_factory=dict)
    """Quantised value → the node that made it, and of which value and real numbers."""
    steps: dict[str, float] = field(default_factory=dict)
    """Value that comes back from integers → its step."""
    stored: Mapping[str, Any] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    """Inputs of real numbers and what becomes of them before any product → the input, where it is only moved; else nothing."""
    ends: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Input → the ends of the range that is too small for it."""

    def look(self, stop: Stop, results: Sequence[Any]) -> Sequence[Any]:
        """Note what is odd about a node."""
        self.scales.update(stop.taken[1:] if stop.op in SCALED else ())
        if stop.op == "QuantizeLinear" and _holds_mask(*stop.arguments[:2]):
            self.endless[stop.taken[1]] = stop.node
        if (name := next((one for one in stop.taken if one in self.given), None)) and stop.op not in PRODUCTS:
            self.given |= dict.fromkeys(stop.values, self.given[name] if stop.op in MOVES else "")
        if stop.op == "QuantizeLinear":
            self.before[stop.values[0]] = stop.node, stop.taken[0], stop.arguments[0]
        elif stop.op == "DequantizeLinear" and stop.taken[0] in self.before:
            self._look_at_range(stop, *self.before.pop(stop.taken[0]), results[0])
        elif stop.op == "DequantizeLinear" and stop.taken[0] in self.stored:
            scale = np.broadcast_to(_align_scale(stop.arguments[1], results[0], stop), np.shape(results[0]))
            self._look_at_tensor(stop, results[0], scale, stop.taken[0], lambda right: lambda _, live: [right])
        elif stop.op == "UnpackBits":
            blocks = np.abs(stop.arguments[1]).reshape(results[0].shape[1], -1)
            steps = np.repeat(blocks, -(-results[0].shape[0] // blocks.shape[1]), axis=1).T[: results[0].shape[0]]
            self._look_at_tensor(stop, results[0], steps, stop.taken[0], lambda right: lambda _, live: [right])
        elif stop.op == "Whole" and stop.taken[0] in self.stored:
            self._look_at_integers(stop, results[0])
        return results

    def look_at_floats(self, narrow: float) -> None:
        """Stored floats that are not those of the original, but for the rounding of the dtype that they have now."""
        for name, real in self.stored.items():
            if name in self.scales or getattr(real, "dtype", None) != np.float64 or real.size < 2:
                continue
            matched = match_original(name, real, self.originals)
            if matched is None or (matched[0] != name and _measure_likeness(matched[1], real) < ALIKE):
                continue
            wrong = float(np.mean(np.abs(real - matched[1]) > narrow * np.abs(matched[1]) + 1e-7))
            if wrong > WRONG:
                text = f"{wrong:.1%} of its numbers are not those of {matched[0]}"
                self.suspects.append(Suspect(name, name, text, [{name: matched[1]}], GAIN, matched[0], wrong))

    def _look_at_range(self, stop: Stop, node: str, source: str, real: Array, back: Array) -> None:
        # A range that begins at zero may stand for a ReLU that was there.
        folded = begins_at_zero(stop)
        self.ranges.setdefault(stop.taken[1], {})[stop.values[0]] = folded
        scale = self.steps[stop.values[0]] = float(np.max(stop.arguments[1]))
        if not real.size or not scale:
            return
        outside = np.abs(back - (np.maximum(real, 0.0) if folded else real)) > HALF * scale
        clipped = float(np.mean(outside))
        used = float(np.ptp(real)) / scale
        finer = self.steps.get(source, scale)
        again = scale > AGAIN * finer
        if again:
            text = f"its values are quantised already, and in steps {scale / finer:.0f} times as fine"
        elif clipped > CLIPPED:
            text = f"{clipped:.1%} of the values are outside its range"
        elif used < USED:
            text = f"the values use {used:.0f} steps of its range"
        elif folded and np.min(real) < -HALF * scale:
            text = "it has no negative numbers, and the values have"
        else:
            return
        name = self.given.get(stop.taken[0])
        if name:
            self.ends[name] = float(np.min(back)), float(np.max(back))
        self.suspects.append(
            Suspect(
                node,
                stop.taken[1],
                text,
                (),
                GAIN if again else RANGE_GAIN,
                idle=again or (clipped <= CLIPPED and used < IDLE),
                coarse=again or (clipped <= CLIPPED and used < USED),
                share=clipped,
                clipped=int(outside.sum()),
                given=name is not None,
            )
        )

    def _look_at_integers(self, stop: Stop, whole: Array) -> None:
        """A weight whose scale is applied to the product: its name tells which it is."""
        scale = find_scale(stop.taken[0], whole, self.stored)
        if scale is not None:
            steps = np.broadcast_to(scale, whole.shape)
            self._look_at_tensor(
                stop, whole * scale, steps, stop.taken[0], lambda right: lambda _, live: [right / scale]
            )

    def _look_at_tensor(self, stop: Stop, real: Array, step: Array, name: str, mend: Callable[[Array], Mend]) -> None:
        matched = match_original(name, real, self.originals)
        if matched is None:
            return
        parameter, right = matched
        wrong = float(np.mean(np.abs(real - right) > FAR * step + 1e-6 * np.abs(right)))
        if wrong > WRONG:
            text = f"{wrong:.1%} of the numbers in {name} are not those of {parameter}"
            # A square one fits both ways.
            ways = [right, right.T] if right.shape == right.T.shape else [right]
            mends: list[Mends] = [{stop.values[0]: mend(way)} for way in ways]
            shared = stop.taken[1] if stop.op == "DequantizeLinear" else None
            self.suspects.append(Suspect(stop.node, name, text, mends, GAIN, parameter, wrong, shared=shared))
        elif right.ndim == 2 and right.shape == right.T.shape:
            text = f"{name} may be {parameter} turned the wrong way"
            mends = [{stop.values[0]: mend(right.T)}]
            self.turned.append(Suspect(stop.node, name, text, mends, TURNED_GAIN, parameter))


def begins_at_zero(stop: Stop) -> bool:
    """Whether a range has no negative numbers: its zero is the least of its integers."""
    zero = stop.arguments[2] if len(stop.arguments) > 2 else None
    return bool(np.max(0 if zero is None else zero) <= np.iinfo(stop.arguments[0].dtype).min)


def _holds_mask(real: Array, scale: Array) -> bool:
    """Whether a range has an end that is no number, such as a mask's: all others are the same in it."""
    numbers = real[np.abs(real) < MASKED]
    return not np.all(scale < MASKED) or (np.max(scale) > MASKED / 256 and bool(numbers.size and np.ptp(numbers)))


def find_scale(name: str, whole: Array, stored: Mapping[str, Any]) -> Array | None:
    """The scale of stored integers that are multiplied as they are, shaped to go with them: converters name both alike."""
    scale = stored.get(f"{name.removesuffix('_quantized')}_scale")
    if scale is None or np.size(scale) == 1 or whole.ndim == 2:
        return scale
    return np.asarray(scale).reshape([-1, *[1] * (whole.ndim - 1)])


def _align_scale(scale: Array, shape: Array, stop: Stop) -> Array:
    """A scale for each channel, where it is one: along the axis that fits."""
    scale = np.asarray(scale, np.float64)
    if scale.ndim != 1 or scale.size == 1:
        return scale if scale.ndim == 0 or scale.size == 1 or scale.ndim == shape.ndim else np.max(scale)
    axes = [axis for axis, size in enumerate(shape.shape) if size == scale.size]
    axis = axes[0] if axes else 0
    return scale.reshape([-1 if i == axis else 1 for i in range(shape.ndim)])


def match_original(name: str, real: Array, originals: Mapping[str, Array]) -> tuple[str, Array] | None:
    """The original that a stored tensor stands for, turned as it is: the one most like it, else its namesake, else the only one of
    its shape."""
    fitting = [
        (parameter, turned)
        for parameter, array in originals.items()
        for turned in ((array, array.T) if array.ndim == 2 else (array,))
        if turned.shape == real.shape
    ]
    best = max(fitting, key=lambda one: _measure_likeness(one[1], real), default=None)
    if best is None or _measure_likeness(best[1], real) > ALIKE:
        return best
    namesakes = [one for one in fitting if name.startswith(one[0])]
    alone = [one for one in fitting if one[0] == fitting[0][0]]
    return namesakes[0] if namesakes else fitting[0] if len(alone) == len(fitting) else None


def _measure_likeness(a: Array, b: Array) -> float:
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return abs(float(np.vdot(a, b))) / norm if norm else 0.0


def find_faults(
    meaning: Meaning,
    originals: Mapping[str, Array],
    inputs: Arrays,
    ask: Callable[[Arrays], Sequence[Array]],
    outputs: Sequence[str],
    *,
    real: bool = False,
) -> Iterator[Finding]:
    """What went wrong in a conversion, on these inputs and what the original answers; `real`: they are the user's data."""
    trial = _Trial(meaning, originals, inputs, ask(inputs), outputs)
    # Inputs that do not fit the file's own range for them say nothing sure about its other ranges either.
    strange = not real and any(one.given for one in trial.seen.suspects)
    if strange:
        yield from trial.tell([one for one in trial.list_guilty(real=real) if one.given], strange, real)
        ends = trial.seen.ends
        inputs = {n: np.clip(a, *ends[n]).astype(a.dtype) if n in ends else a for n, a in inputs.items()}
        trial = _Trial(meaning, originals, inputs, ask(inputs), outputs)
    guilty = [one for one in trial.list_guilty(real=real) if not (strange and one.given)]
    yield from trial.tell(guilty, strange, real)
    for scale, node in trial.seen.endless.items():
        message = f"{node}: the scale {scale} comes of a mask: its infinity, or the least float, was taken for a number"
        yield found("OX229", message, where=Where(node=node), evidence={"decibels": trial.now, "scale": scale})
    if not guilty and not trial.seen.endless and -SPOTLESS < trial.now < NOISE:
        # Nothing is wrong in it that could be named: whether it is too bad is for a gate to say. Overflows are told by their cases.
        message = f"the outputs are nearer to nothing than to the original's: {trial.now:.1f} dB{'' if real else BRING}"
        yield found("OX229", message, severity="review", evidence={"decibels": trial.now})


class _Trial:
    """One exact run on some inputs, and those suspects that are guilty."""

    def __init__(
        self,
        meaning: Meaning,
        originals: Mapping[str, Array],
        inputs: Arrays,
        wanted: Sequence[Array],
        outputs: Sequence[str],
    ) -> None:
        self._meaning, self._inputs, self._wanted, self._outputs = meaning, inputs, wanted, outputs
        given = {name: name for name, array in inputs.items() if array.dtype.kind == "f"}
        self.seen = _Seen(originals, stored=meaning.stored, given=given)
        answer = meaning.evaluate(inputs, self.seen.look)
        self.seen.look_at_floats(4 * meaning.unit)
        self.now = _measure_decibels(answer, wanted, outputs)
        self._gains: dict[str, float] = {}

    def list_guilty(self, *, real: bool) -> list[Suspect]:
        """Those whose mending brings the outputs nearer, the most first."""
        suspects = sorted(_group_suspects(self.seen), key=lambda one: -one.share)[:MENDED]
        turned = self.seen.turned[:MENDED] if self.now < POOR else []
        return self._accuse(suspects) or self._accuse([*self._join(suspects)] if real else []) or self._accuse(turned)

    def _accuse(self, suspects: Sequence[Suspect]) -> list[Suspect]:
        """One after the other, with those found before it mended: what one spoils may hide the next."""
        guilty, mended, now = list[Suspect](), dict[str, Mend | Array](), self.now
        while left := [one for one in suspects if one not in guilty]:
            tried = [(one, *self._mend(one, mended)) for one in left]
            helping = [(one, way, reached - now) for one, way, reached in tried if reached - now >= one.needed]
            if not helping:
                break
            worst, way, gain = max(helping, key=lambda one: one[2])
            self._gains[worst.scale] = gain
            guilty, mended, now = [*guilty, worst], {**mended, **way}, now + gain
        return guilty

    def _join(self, suspects: Sequence[Suspect]) -> Iterator[Suspect]:
        """Ranges that are all wrong, as calibrating with other data makes them: one that is mended shows how the next clips."""
        ranges = [one for one in suspects if one.parameter is None]
        if not ranges or self.now >= FAIR:
            return
        opened = {value: folded for values in self.seen.ranges.values() for value, folded in values.items()}
        every = _open_ranges(opened, coarse=any(one.coarse for one in ranges))
        odd = {value for one in ranges for value in self.seen.ranges[one.scale]}
        others = [{value: mend for value, mend in way.items() if value not in odd} for way in every]
        # They alone must spoil the outputs: all ranges together cost something in a right file too.
        if self._mend(replace(ranges[0], mends=others), {})[1] < FAIR:
            more = f" (and {len(ranges) - 1} ranges more)" * (len(ranges) > 1)
            yield replace(ranges[0], text=f"{ranges[0].text}{more}", mends=every)

    def _mend(self, one: Suspect, mended: Mends) -> tuple[Mends, float]:
        """How this place is best mended where others are, and the decibels that are reached then."""
        runs = ((way, _run_mended(self._meaning, self._inputs, {**mended, **way})) for way in one.mends)
        reached = ((way, _measure_decibels(run, self._wanted, self._outputs)) for way, run in runs)
        return max(reached, key=lambda one: one[1])

    def tell(self, guilty: Sequence[Suspect], strange: bool, real: bool) -> Iterator[Finding]:
        """A finding for each."""
        for one in guilty:
            module = one.parameter.rpartition(".")[0] if one.parameter else None
            doubt = f", or the example is unlike the data it was made for{BRING}" if strange and one.given else ""
            nearer = f"mended, the outputs are {self._gains[one.scale]:.1f} dB nearer to the original's"
            evidence: dict[str, Any] = {"gain_db": self._gains[one.scale], "decibels": self.now}
            evidence |= {"parameter": one.parameter, "share": one.share}
            where, severity = Where(node=one.node, module=module), one.weigh(self.now, strange, real)
            yield found(
                "OX229", f"{one.node}: {one.text}{doubt}; {nearer}", where=where, severity=severity, evidence=evidence
            )


def _group_suspects(seen: _Seen) -> list[Suspect]:
    """One for each scale: mending one place alone changes nothing where the next clips the same."""
    groups = {one.scale: one for one in sorted(seen.suspects, key=lambda one: one.share)}
    return [replace(one, mends=[*_list_ways(one, seen.ranges)]) for one in groups.values()]


def _list_ways(one: Suspect, ranges: Mapping[str, Mapping[str, bool]]) -> Iterator[Mends]:
    """How it may be mended: a tensor alone, and with the ranges that have its scale, which would clip what is mended."""
    yield from one.mends
    values = ranges.get((one.shared if one.mends else one.scale) or "", {})
    for way in _open_ranges(values, coarse=one.coarse) if values else ():
        yield from ({**mend, **way} for mend in one.mends or ({},))


def _open_ranges(values: Mapping[str, bool], *, coarse: bool) -> tuple[Mends, Mends]:
    """Ranges without an end, or with none but the zero that some begin at; their steps stay, unless they are `coarse`."""

    def let(stop: Stop, live: Live) -> Sequence[Any]:
        real, step = live[stop.taken[0]], stop.arguments[1]
        return [real if coarse or np.size(step) != 1 else np.rint(real / step) * step]

    def let_positive(stop: Stop, live: Live) -> Sequence[Any]:
        return [np.maximum(real, 0.0) for real in let(stop, live)]

    return dict.fromkeys(values, let), {name: let_positive if folded else let for name, folded in values.items()}


def _run_mended(meaning: Meaning, inputs: Arrays, mends: Mends) -> dict[str, Array]:
    live: dict[str, Array] = {}

    def mend(stop: Stop, results: Sequence[Any]) -> Sequence[Any]:
        if stop.op == "QuantizeLinear":
            live[stop.values[0]] = stop.arguments[0]
        way = mends.get(stop.values[0])
        return results if way is None or isinstance(way, np.ndarray) else way(stop, live)

    # What is fed comes before what is stored.
    stored = {name: way for name, way in mends.items() if isinstance(way, np.ndarray)}
    return meaning.evaluate({**inputs, **stored}, mend)


def _measure_decibels(answer: Arrays, wanted: Sequence[Array], outputs: Sequence[str]) -> float:
    """The worst output's signal to noise."""
    pairs = [(answer[name], right) for name, right in zip(outputs, wanted, strict=True) if name in answer]
    fitting = [(a, w.astype(np.float64)) for a, w in pairs if a.shape == w.shape and w.dtype.kind == "f" and w.size]
    return min((to_decibels(float(np.sum(w**2)), float(np.sum((a - w) ** 2))) for a, w in fitting), default=300.0)
