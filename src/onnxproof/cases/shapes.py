"""Sizes to try for the dynamic dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, zip_longest
from typing import TypeVar

T = TypeVar("T")

BATCHES = (1, 2, 3, 7, 32, 128)
SMALL = (1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 15, 16, 17, 23, 31, 32, 33)
# Landmarks that a search tries: odd ones, primes, powers of two and their neighbours.
LARGE = (47, 49, 63, 64, 65, 97, 101, 127, 128, 129, 191, 255, 256, 257, 511, 512, 513)
# After the landmarks, a search tries every size up to this one.
EVERY = 320
Sizes = dict[str, int]
# The sizes torch.export says a dimension may have.
Bounds = Mapping[str, tuple[int, int | None]]
# The sizes that the user declared.
Limits = Mapping[str, tuple[int, int]]


def is_served(sizes: Mapping[str, int], limits: Limits) -> bool:
    """Whether sizes are served."""
    return all(low <= sizes[name] <= high for name, (low, high) in limits.items() if name in sizes)


def clamp_sizes(sizes: Mapping[str, int], limits: Limits) -> Sizes:
    """The nearest sizes that are served."""
    served = {name: (size, *limits.get(name, (size, size))) for name, size in sizes.items()}
    return {name: min(max(size, low), high) for name, (size, low, high) in served.items()}


def sweep_sizes(
    exported: Mapping[str, int], batch_sizes: Sequence[int] | None, batch: str = "batch", bounds: Bounds | None = None
) -> list[Sizes]:
    """Combinations of sizes: the exported ones first, then each dimension alone, then every pair of a few sizes of each two."""
    if not exported:
        return [{}]
    choices = _choose_sizes(exported, batch_sizes, batch, bounds or {})
    base = {name: size if size in choices[name] else choices[name][0] for name, size in exported.items()}
    wanted = [base]
    for name, sizes in choices.items():
        wanted += [{**base, name: size} for size in sizes]
    if len(choices) > 1:
        wanted += cover_pairs({name: _pick_few(sizes, base[name], name == batch) for name, sizes in choices.items()})
    return _drop_repeats(wanted)


def sweep_widely(
    exported: Mapping[str, int], batch_sizes: Sequence[int] | None, batch: str = "batch", bounds: Bounds | None = None
) -> list[Sizes]:
    """What a search tries: landmarks of each dimension alone, some large ones together, then pairs and every size in turns."""
    free = [name for name in exported if name != batch or batch_sizes is None]
    narrow = _choose_sizes(exported, batch_sizes, batch, bounds or {})
    landmarks = {name: [*SMALL, *LARGE] if name in free else narrow[name] for name in exported}
    alone = _alternate([[{**exported, name: size} for size in _fan_out(sizes)] for name, sizes in landmarks.items()])
    large = [{**exported, a: x, b: y} for a, b in combinations(free, 2) for x, y in ((129, 257), (257, 129), (65, 65))]
    pairs = cover_pairs({n: sorted({*SMALL, *narrow[n]}) if n in free else narrow[n] for n in exported})
    every = [{**exported, name: size} for size in range(1, EVERY + 1) for name in reversed(free)]
    return _drop_repeats([*alone, *large, *_alternate([pairs, every])])


def _fan_out(sizes: Sequence[int]) -> list[int]:
    """Small and large ones in turns: what only shows at a large size should not wait for all small ones."""
    ordered = sorted(sizes)
    half = len(ordered) // 2
    return _alternate([ordered[:half], ordered[half:]])


def _alternate(lists: Sequence[Sequence[T]]) -> list[T]:
    """One of each, then the next one of each."""
    return [one for group in zip_longest(*lists) for one in group if one is not None]


def _drop_repeats(wanted: Sequence[Sizes]) -> list[Sizes]:
    return list({tuple(sizes.items()): sizes for sizes in wanted}.values())


def _choose_sizes(
    exported: Mapping[str, int], batch_sizes: Sequence[int] | None, batch: str, bounds: Bounds
) -> dict[str, list[int]]:
    """The sizes of each dimension that are tried."""
    choices = {}
    for name, size in exported.items():
        if name == batch and batch_sizes is not None:
            choices[name] = sorted(set(batch_sizes))
            continue
        around = BATCHES if name == batch else (1, 2, 3, max(size - 1, 1), size + 1, 2 * size + 1)
        # The ends that the exporter states, as long as they are no giants.
        ends = [end for end in bounds.get(name, ()) if end is not None and 0 < end <= 4 * size + 1024]
        choices[name] = sorted({size, *around, *ends})
    return choices


def _pick_few(sizes: Sequence[int], exported: int, is_batch: bool) -> list[int]:
    """Three sizes that stand for all: the smallest, one that is not the exported one, and a larger one."""
    small = [size for size in sizes if not is_batch or size <= 8] or list(sizes[:1])
    other = next((size for size in reversed(small) if size != exported), small[-1])
    near = next((size for size in small if size > 1 and size not in (exported, other)), small[0])
    return sorted({small[0], near, other})


def cover_pairs(choices: Mapping[str, Sequence[int]]) -> list[Sizes]:
    """Combinations in which every two sizes of every two dimensions meet: far fewer than all combinations."""
    if len(choices) < 2:
        return [{name: size} for name, sizes in choices.items() for size in sizes]
    open_pairs = {
        frozenset({(a, x), (b, y)}) for a, b in combinations(choices, 2) for x in choices[a] for y in choices[b]
    }
    rows: list[Sizes] = []
    while open_pairs:
        # The order of a set depends on the process; the plan must not.
        row: Sizes = dict(min(open_pairs, key=sorted))
        for name, sizes in choices.items():
            if name not in row:
                closing = {s: sum(frozenset({(name, s), other}) in open_pairs for other in row.items()) for s in sizes}
                row[name] = max(sizes, key=lambda size: (closing[size], -size))
        open_pairs -= {frozenset(pair) for pair in combinations(row.items(), 2)}
        rows.append({name: row[name] for name in choices})
    return rows


def shrink_batch(exported: Mapping[str, int], batch_sizes: Sequence[int] | None, batch: str = "batch") -> Sizes:
    """The exported sizes with a small batch: where value profiles are tried."""
    if batch not in exported:
        return dict(exported)
    allowed = sorted(set(batch_sizes)) if batch_sizes is not None else [3]
    return {**exported, batch: next((size for size in allowed if size >= 2), allowed[-1])}
