"""All pieces of a graph on trial: what is recorded, cut, tried and told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from onnxproof.cases import shapes
from onnxproof.cases.domain import Domain
from onnxproof.cases.plan import Inputs, make_case
from onnxproof.cases.values import FAIR_LIMIT
from onnxproof.errors import Rejected
from onnxproof.graph.evaluator import Evaluator
from onnxproof.graph.widening import widen_array
from onnxproof.parity.float64 import DoubleRunner, Unavailable
from onnxproof.parity.verifier import Verifier
from onnxproof.parity.work import RATE
from onnxproof.proof.trials import Latent, ModuleTrials, Trials
from onnxproof.request.specs import Range
from onnxproof.tensors.arrays import Array
from onnxproof.trials.calls import Program, TooLarge, record, repeat
from onnxproof.trials.kernels import Kernels
from onnxproof.trials.likeness import describe_piece
from onnxproof.trials.pieces import Cut, Piece, find_common, find_largest, keep_common, list_rivals, show_values
from onnxproof.trials.ranges import bound_values
from onnxproof.trials.remembered import Remembered
from onnxproof.trials.sizes import AtSizes, Elsewhere, list_others, pair_alike
from onnxproof.trials.tables import find_changed_rows
from onnxproof.trials.trial import EDGES, Difference, Trial, is_smooth

# What floats of an input may be that declares no range.
FAIR = Range(-FAIR_LIMIT, FAIR_LIMIT)
ANY_INTEGER = Range(-(2.0**31), 2.0**31)
# The two kinds of inputs that are recorded: what is the same on both is the same.
RECORDED = ("normal", "mixed")
# Seconds of work that trials always have, and their share of the work of the planned cases.
GRACE = 0.15
SHARE = 0.1
# Seconds that a node or a call takes in a trial, and each element that goes in or comes out.
STEP, ELEMENT = 3e-5, 2e-8
# How many times its operations cost on both sides together: in float64, and in the evaluator.
DOUBLED = 16.0
# Values below which a trial says too little to begin it.
FEWEST = 2
# The share that the runtime has besides, to compute pieces alone; the seconds of opening one, and how many times a trial its answers cost.
SHARE_ALONE = 0.02
OPENED, ANSWERED = 3e-3, 4
# Differences that are told.
TOLD = 8


@dataclass(frozen=True)
class Recorded:
    """Both sides on the recorded inputs: where they are cut, and what can arise there and did."""

    cut: Cut
    ranges: Mapping[str, Range]
    show_others: Callable[[], Mapping[str, Array]]
    unit: float
    """Of the narrowest float that the module computes in."""
    _likenesses: dict[Piece, str] = field(default_factory=dict)

    @cached_property
    def others(self) -> Mapping[str, Array]:
        """The values of the graph on the other input."""
        return self.show_others()

    @cached_property
    def pieces(self) -> Mapping[str, Piece | None]:
        """See `Cut.pieces`."""
        return self.cut.pieces()

    def describe(self, piece: Piece) -> str:
        """What tells whether another piece is like this one."""
        if piece not in self._likenesses:
            self._likenesses[piece] = describe_piece(self.cut, piece, self.ranges)
        return self._likenesses[piece]

    def is_remembered(self, remembered: Remembered, marks: Collection[str]) -> bool:
        """Whether pieces like these all agreed before, on values of their own: then no pair is one by chance."""
        return all(
            piece is not None and any(remembered.recall(self.describe(piece) + mark) is not None for mark in marks)
            for piece in self.pieces.values()
        )


@dataclass(frozen=True)
class Tried:
    """What came of the pieces at the recorded sizes."""

    recorded: Recorded
    mended: Cut
    """As values are paired where no piece seems to differ that is none."""
    counts: Mapping[str, int]
    """Value → on how many values its piece was tried."""
    differences: list[Difference]
    likenesses: list[str]
    remembered: Remembered
    left: float
    """Seconds of work."""

    @property
    def cuttable(self) -> int:
        return sum(one is not None for one in self.recorded.pieces.values())


class Asked:
    """Which pieces the runtime is asked to compute alone: those that its share of the work pays for."""

    def __init__(self, kernels: Kernels | None, left: float) -> None:
        self._kernels, self._left, self._alike = kernels, left, set[str]()

    def take(self, cut: Cut, piece: Piece, likeness: str) -> Kernels | None:
        """The runtime, where it is asked; pieces that are alike cost once."""
        # What is smooth inside is asked of it by the cases.
        if likeness in self._alike or self._kernels is None or is_smooth(cut, piece):
            return self._kernels if likeness in self._alike else None
        taken = len(piece.frontier)
        values = len(EDGES) * (1 + (taken if taken > 1 else 0))
        cost = OPENED + ANSWERED * values * _cost(cut, piece)
        if cost > self._left:
            return None
        self._left -= cost
        self._alike.add(likeness)
        return self._kernels


def try_pieces(
    verifier: Verifier,
    spent: float,
    find_module: Callable[[str], str | None] = lambda node: None,
    kernels: Kernels | None = None,
) -> Trials:
    """Put every piece on trial, as many as the work allows; `spent` is that of the planned cases, in seconds."""
    double, evaluator = verifier.double, verifier.evaluator
    if double is None or evaluator is None:
        return Trials(reason="there is no float64 truth")
    inputs = _make_inputs(verifier)
    left = GRACE + SHARE * spent
    left -= len(inputs) * _cost_recording(verifier, inputs[0])
    if left < 0:
        return Trials(reason="recording the module costs too much")
    # Infinities are taken from each other wherever values are held against others.
    with verifier.work.threads(_count(inputs[0])), np.errstate(invalid="ignore"):
        try:
            remembered = Remembered()
            recorded = _record(verifier, double, evaluator, inputs, remembered, kernels)
            tried = _try_all(recorded, left, Asked(kernels, GRACE + SHARE_ALONE * spent), remembered)
            elsewhere = _try_sizes(verifier, double, evaluator, tried)
        except TooLarge:
            return Trials(reason="the values of the module are too large to be recorded")
        except (Unavailable, Rejected) as error:
            return Trials(reason=str(error)[:200])
        rows = tuple(find_changed_rows(evaluator, verifier.subject.module))
        return _tell_all(tried, elsewhere, rows, find_module)


def _cost_recording(verifier: Verifier, inputs: Inputs) -> float:
    elements = _count(inputs)
    return verifier.work.sample(elements) / 4 + verifier.work.evaluation(elements)


def _count(inputs: Inputs) -> int:
    return sum(array.size for array in inputs.values())


def _choose_sizes(verifier: Verifier) -> shapes.Sizes:
    supply, subject = verifier.supply, verifier.subject
    batch = subject.batch or "batch"
    return shapes.clamp_sizes(shapes.shrink_batch(subject.sizes(), supply.settings.batch_sizes, batch), subject.limits)


def _make_inputs(verifier: Verifier) -> list[Inputs]:
    sizes, supply = _choose_sizes(verifier), verifier.supply
    return [supply.make_inputs(make_case(sizes, profile, supply.settings.seed)) for profile in RECORDED]


def _name_inputs(verifier: Verifier) -> dict[str, str]:
    """An input of the graph → the module's."""
    return {graph: module for module, graph in verifier.input_pairs.items()}


def _run_both(
    verifier: Verifier, double: DoubleRunner, evaluator: Evaluator, inputs: Inputs
) -> tuple[Program, dict[str, Array]]:
    """The calls of the module and the values of the graph."""
    return record(double, inputs), _show_graph(verifier, evaluator, inputs)


def _show_graph(verifier: Verifier, evaluator: Evaluator, inputs: Inputs) -> dict[str, Array]:
    names = _name_inputs(verifier)
    return show_values(evaluator, {name: widen_array(inputs[names.get(name, name)]) for name in evaluator.inputs})


def _record(
    verifier: Verifier,
    double: DoubleRunner,
    evaluator: Evaluator,
    inputs: list[Inputs],
    remembered: Remembered,
    kernels: Kernels | None,
) -> Recorded:
    program, values = _run_both(verifier, double, evaluator, inputs[0])
    graph_names = _name_inputs(verifier)
    domains = {d.name: d for d in verifier.supply.domains}
    given = {name: _bound_input(domains[graph_names.get(name, name)]) for name in evaluator.inputs}
    bounds = bound_values(evaluator, given, values)

    def record(common: Mapping[str, int]) -> Recorded:
        cut = Cut(evaluator, program, values, common)
        return Recorded(cut, bounds, lambda: _show_graph(verifier, evaluator, inputs[1]), double.unit)

    recorded = record(find_common(evaluator, values, program, graph_names))
    if recorded.is_remembered(remembered, ("",) if kernels is None else ("", kernels.mark)):
        return recorded
    common = _keep_elsewhere(recorded, double, inputs[1])
    return recorded if len(common) == len(recorded.cut.common) else record(common)


def _keep_elsewhere(recorded: Recorded, double: DoubleRunner, inputs: Inputs) -> Mapping[str, int]:
    """What is the same on the other input too.

    The recorded calls are made again, which costs a part of a forward of the module. Where something is not the same by them, the
    module is asked: it may have taken another way, or told Python a number.
    """
    program, common, others = recorded.cut.program, recorded.cut.common, recorded.others
    again = repeat(program, double, inputs)
    if again is not None and len(keep_common(common, others, again)) == len(common):
        return common
    other = record(double, inputs)
    if [call.func for call in program.calls] != [call.func for call in other.calls]:
        return common
    return keep_common(common, others, dict(enumerate(other.values)))


def _bound_input(domain: Domain) -> Range:
    """What an input may be: integers that nobody declared are any that the module takes, and not those that cases draw."""
    free = domain.role == "integer" and domain.extremes and not domain.declared
    return ANY_INTEGER if free else domain.valid or FAIR


def _try_all(recorded: Recorded, left: float, asked: Asked, remembered: Remembered) -> Tried:
    cut = recorded.cut
    # Those that turn somewhere come first.
    pieces = sorted((one for one in recorded.pieces.values() if one is not None), key=lambda one: is_smooth(cut, one))
    trial, differences, tried = _make_trial(recorded, cut), list[Difference](), dict[str, int]()
    likenesses, here, mended = list[str](), set[str](), cut
    for piece in pieces:
        most = int(left / _cost(cut, piece))
        if most < FEWEST:
            continue
        likeness = recorded.describe(piece)
        likenesses.append(likeness)
        kernels = asked.take(cut, piece, likeness)
        likeness += kernels.mark if kernels is not None else ""
        known, before, found = remembered.recall(likeness), trial.tried, None
        if known is None:
            found = trial.try_piece(piece, most)
        other = _find_agreeing(recorded, mended, piece) if found is not None else None
        if other is not None:
            found, mended = None, other  # the piece is none: nobody is asked to compute it alone
        elif known is None and found is None and kernels is not None:
            found = trial.try_kernels(piece, kernels.open(cut, piece))
        # What an earlier run tried counts and costs as if it were tried now: a proof does not depend on what is remembered.
        tried[piece.value] = trial.tried - before if known is None else min(known, most)
        left -= 0 if likeness in here else tried[piece.value] * _cost(cut, piece)
        if found is not None:
            differences.append(found)
        elif other is None and tried[piece.value] < most:  # else the work ended it, and there is more to try
            remembered.keep(likeness, tried[piece.value])
            here.add(likeness)
    if mended is not cut:
        differences = [one for one in differences if one.kernel or _find_agreeing(recorded, mended, one.piece) is None]
    return Tried(recorded, mended, tried, differences, likenesses, remembered, left)


def _try_sizes(verifier: Verifier, double: DoubleRunner, evaluator: Evaluator, tried: Tried) -> list[AtSizes]:
    """The pieces that agreed, at other sizes of the model."""
    subject, supply, recorded = verifier.subject, verifier.supply, tried.recorded
    differing = {one.piece.value for one in tried.differences}
    cuts = recorded.pieces if tried.mended is recorded.cut else tried.mended.pieces()
    pieces = [one for one in cuts.values() if one is not None and one.value not in differing]
    elsewhere = Elsewhere(tried.mended, pieces, tried.likenesses, tried.left)

    def make_inputs(sizes: shapes.Sizes) -> Inputs:
        return supply.make_inputs(make_case(sizes, RECORDED[0], supply.settings.seed))

    def record_there(sizes: shapes.Sizes) -> tuple[Cut, Trial] | None:
        try:
            program, values = _run_both(verifier, double, evaluator, make_inputs(sizes))
        except (TooLarge, Unavailable, Rejected):
            return None
        common = pair_alike(tried.mended, Cut(evaluator, program, values, {}))
        cut = Cut(evaluator, program, values, common or {})
        return cut, _make_trial(recorded, cut)

    found = list[AtSizes]()
    settings, batch = supply.settings, subject.batch or "batch"
    empty = settings.isolated and settings.batch_sizes is None
    others = list_others(_choose_sizes(verifier), batch, subject.limits, settings.batch_sizes, empty=empty)
    # Where there was no work for some of them, there is none for this.
    for sizes in others if len(tried.counts) == tried.cuttable else ():
        opening = _cost_recording(verifier, make_inputs(sizes))
        one = elsewhere.try_sizes(sizes, opening, record_there, _cost, tried.remembered)
        found += [one] if one is not None else []
    return found


def _tell_all(
    tried: Tried, elsewhere: list[AtSizes], rows: tuple[Latent, ...], find_module: Callable[[str], str | None]
) -> Trials:
    """The record of it; what is new is remembered."""
    tried.remembered.write()
    cut, cuts, counts = tried.recorded.cut, tried.recorded.pieces, tried.counts
    untried = "no clean cut" if len(counts) == tried.cuttable else "no work was left for them"
    differences = [*tried.differences, *(one for there in elsewhere for one in there.differences)]
    trial = _make_trial(tried.recorded, cut)
    told = tuple(
        _tell(cut, one, swallowed=one.near and not one.kernel and not one.sizes and trial.is_swallowed(one.piece))
        for one in differences[:TOLD]
    )
    return Trials(
        len(cuts),
        len(counts),
        sum(counts.values()),
        untried if len(counts) < len(cuts) else None,
        (*told, *rows)[:TOLD],
        tuple(_sum_up(cut, cuts, counts, find_module)),
        tuple(one.sizes for one in elsewhere),
    )


def _sum_up(
    cut: Cut, cuts: Mapping[str, Piece | None], tried: Mapping[str, int], find_module: Callable[[str], str | None]
) -> Iterator[ModuleTrials]:
    groups = defaultdict[str, list[str]](list)
    for value in cuts:
        groups[find_module(cut.name_node(value)) or ""].append(value)
    for module, values in groups.items():
        counts = [tried[value] for value in values if value in tried]
        yield ModuleTrials(module, len(values), len(counts), sum(counts), sum(cuts[value] is None for value in values))


def _make_trial(recorded: Recorded, cut: Cut) -> Trial:
    def measure_seen(name: str) -> float:
        arrays = (cut.values[name], recorded.others.get(name))
        return max(find_largest(array) for array in arrays if array is not None)

    return Trial(cut, recorded.ranges, measure_seen, recorded.unit)


def _find_agreeing(recorded: Recorded, cut: Cut, piece: Piece) -> Cut | None:
    """Where values that look alike are paired otherwise and the piece agrees: that pairing."""
    again = cut.cut(piece.value) if piece.value in cut.common else None
    now = [(cut, [again])] if again is not None and again != piece else []
    for other, pieces in chain(now, list_rivals(cut, again or piece)):
        trial = _make_trial(recorded, other)
        if all(trial.try_piece(one) is None for one in pieces):
            return other
    return None


def _cost(cut: Cut, piece: Piece) -> float:
    """Seconds that one value takes: both sides in float64."""
    elements = sum(cut.values[name].size for name, _ in piece.frontier) + cut.values[piece.value].size
    operations = sum(cut.program.calls[place].operations for place in piece.calls)
    return (len(piece.nodes) + len(piece.calls)) * STEP + ELEMENT * elements + DOUBLED * operations / RATE


def _tell(cut: Cut, one: Difference, *, swallowed: bool) -> Latent:
    first, last = (cut.steps[one.piece.nodes[place]] for place in (0, -1))
    return Latent(
        cut.name_node(first.gives[0]),
        cut.name_node(last.gives[0]),
        last.op,
        one.piece.value,
        one.profile,
        one.near,
        one.expected,
        one.got,
        one.given,
        kernel=one.kernel,
        swallowed=swallowed,
        sizes=one.sizes,
    )
