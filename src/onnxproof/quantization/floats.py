"""The smallest set of nodes that must stay in float: guessed from what each costs, and settled by a few full evaluations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Full evaluations that a search may take.
EVALUATIONS = 10

Nodes = tuple[str, ...]


@dataclass(frozen=True)
class Kept:
    """Nodes with which the goal is met; None where nothing that was tried met it."""

    nodes: Nodes | None
    evaluations: int
    minimal: bool


class _Spent(Exception):
    """There is no evaluation left."""


def find_kept(order: Sequence[str], holds: Callable[[Nodes], bool], budget: int = EVALUATIONS) -> Kept:
    """The worst nodes first until the goal holds, then each of them put back; `order` fails without any of them in float."""
    known: dict[frozenset[str], bool] = {frozenset(): False}
    best: list[Nodes] = []

    def test(nodes: Sequence[str]) -> bool:
        key = frozenset(nodes)
        if key not in known:
            if len(known) > budget:
                raise _Spent
            known[key] = holds(tuple(nodes))
        if known[key]:
            best.append(tuple(nodes))
        return known[key]

    try:
        chosen = _shrink(list(order[: _bisect(order, test)]), test)
    except _Spent:
        return Kept(min(best, key=len, default=None), len(known) - 1, False)
    return Kept(chosen, len(known) - 1, chosen is not None)


def _bisect(order: Sequence[str], test: Callable[[Sequence[str]], bool]) -> int:
    """How many of the worst are needed, as far as one more never hurts: doubled until it is enough, then halved."""
    low, high = 0, 1
    while high < len(order) and not test(order[:high]):
        low, high = high, 2 * high
    high = min(high, len(order))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if test(order[:middle]) else (middle, high)
    return high


def _shrink(nodes: list[str], test: Callable[[Sequence[str]], bool]) -> Nodes | None:
    """Without any node that can be put back; the one that costs least is most likely one."""
    if not test(nodes):
        return None
    for node in reversed(list(nodes)):
        without = [one for one in nodes if one != node]
        if test(without):
            nodes = without
    return tuple(nodes)
