"""The pieces at other sizes of the model: what both sides make of values of their own there.

Sizes go through a whole forward, so that a piece only meets those that can arise. What is common at the recorded sizes is common here
too where it is the same; a module that calls something else at other sizes is asked by the cases alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from onnxproof.cases import shapes
from onnxproof.cases.shapes import Sizes
from onnxproof.trials.pieces import Cut, Piece, keep_common
from onnxproof.trials.remembered import Remembered
from onnxproof.trials.trial import Difference, Trial, is_smooth

# What pieces that turn somewhere are given at another size, beside what a forward brings there: edges were tried at the recorded one.
PROFILES = ("mixed", "large", "hints", "ties", "zeros")


@dataclass(frozen=True)
class AtSizes:
    """What came of one set of sizes."""

    sizes: Sizes
    values: int
    differences: tuple[Difference, ...] = ()


def list_others(
    recorded: Sizes, batch: str, limits: shapes.Limits, batches: Collection[int] | None = None, *, empty: bool = False
) -> list[Sizes]:
    """Sizes that are not the recorded ones: all of them one, all of them one more, and no row at all; of the batch those that are asked for."""
    more = {name: 2 if name == batch else size + 1 for name, size in recorded.items()}
    wanted = [dict.fromkeys(recorded, 1), more, *([{**recorded, batch: 0}] if empty and batch in recorded else [])]
    asked = [sizes for sizes in wanted if batches is None or sizes.get(batch, 0) in {0, *batches}]
    served = [sizes for sizes in asked if shapes.is_served(sizes, limits) and sizes != recorded]
    return [sizes for place, sizes in enumerate(served) if sizes not in served[:place]]


class Elsewhere:
    """Pieces that agreed at the recorded sizes, tried at others as far as the work goes."""

    def __init__(self, cut: Cut, pieces: Collection[Piece], likenesses: Collection[str], left: float) -> None:
        """`likenesses`: of all pieces, which tell what is remembered of the whole; `left`: seconds of work."""
        self._cut, self._pieces, self._left = cut, {one.value: one for one in pieces}, left
        self._mark = hashlib.blake2b("\n".join(sorted(likenesses)).encode(), digest_size=12).hexdigest()

    def try_sizes(
        self,
        sizes: Sizes,
        opening: float,
        record: Callable[[Sizes], tuple[Cut, Trial] | None],
        cost: Callable[[Cut, Piece], float],
        remembered: Remembered,
    ) -> AtSizes | None:
        """What the pieces give there; None where the work does not reach so far, or either side does not take such sizes.

        `opening`: what it costs to record both sides. What an earlier run tried counts and costs as if it were tried now.
        """
        mark = f"{self._mark}:{','.join(map(str, sizes.values()))}"
        self._left -= opening
        spent, values = remembered.recall(f"{mark}:cost"), remembered.recall(mark)
        if self._left < 0 or (spent is not None and not self._pay(spent)):
            return None
        if spent is not None and values is not None:
            return AtSizes(sizes, values) if values else None
        made = record(sizes)
        if made is None:
            remembered.keep(mark, 0)
            remembered.keep(f"{mark}:cost", 0)
            return None
        (cut, trial), changed = made, list(self._list_changed(made[0]))
        turning = [one for one in changed if not is_smooth(cut, one)]
        needed = sum(round(1e6 * len(PROFILES) * cost(cut, one)) for one in turning)
        remembered.keep(f"{mark}:cost", needed)
        if spent is None and not self._pay(needed):
            return None
        found = [trial.try_piece(one, profiles=PROFILES) for one in turning]
        differences = tuple(replace(one, sizes=sizes) for one in found if one is not None)
        # What is changed is common: both made the same of what the forward brought there.
        values = len(changed) + trial.tried
        if not differences:
            remembered.keep(mark, values)
        return AtSizes(sizes, values, differences) if values else None

    def _pay(self, needed: int) -> bool:
        """Whether the work, in microseconds, is left; then it is spent."""
        enough = needed / 1e6 <= self._left
        self._left -= needed / 1e6 if enough else 0
        return enough

    def _list_changed(self, cut: Cut) -> Iterator[Piece]:
        """The same pieces, where something of them has another size."""
        for value, piece in self._pieces.items():
            here = cut.cut(value) if value in cut.common else None
            same = here is not None and (here.nodes, here.calls) == (piece.nodes, piece.calls)
            if here is not None and same and self._measure(cut, here) != self._measure(self._cut, piece):
                yield here

    def _measure(self, cut: Cut, piece: Piece) -> list[tuple[int, ...]]:
        return [cut.values[name].shape for name in (piece.value, *(name for name, _ in piece.frontier))]


def pair_alike(cut: Cut, other: Cut) -> Mapping[str, int] | None:
    """What is common at other sizes too; None where the module calls something else there."""
    if [call.func for call in cut.program.calls] != [call.func for call in other.program.calls]:
        return None
    return keep_common(cut.common, other.values, dict(enumerate(other.program.values)))
