"""Sizes to try for the dynamic dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BATCHES = (1, 2, 3, 7, 32, 128)
Sizes = dict[str, int]


def sweep(exported: Mapping[str, int], batch_sizes: Sequence[int] | None, batch: str = "batch") -> list[Sizes]:
    """Combinations of sizes: the exported ones first, then each dimension alone, then all small and all large together."""
    if not exported:
        return [{}]
    choices = {name: _choices(name == batch, size, batch_sizes) for name, size in exported.items()}
    base = {name: size if size in choices[name] else choices[name][0] for name, size in exported.items()}
    wanted = [base]
    for name, sizes in choices.items():
        wanted += [{**base, name: size} for size in sizes]
    if len(choices) > 1:
        wanted.append({name: sizes[0] for name, sizes in choices.items()})
        wanted.append({name: sizes[len(sizes) // 2] for name, sizes in choices.items()})
        # Every pair of neighbours in one combination, so that sizes that only work when equal are seen apart.
        wanted.append({name: sizes[(i + 1) % len(sizes)] for i, (name, sizes) in enumerate(choices.items())})
    return list({tuple(sizes.items()): sizes for sizes in wanted}.values())


def _choices(is_batch: bool, exported: int, batch_sizes: Sequence[int] | None) -> list[int]:
    if is_batch:
        return sorted(set(batch_sizes)) if batch_sizes is not None else sorted({*BATCHES, exported})
    return sorted({1, 2, 3, max(exported - 1, 1), exported, exported + 1, 2 * exported + 1})


def small(exported: Mapping[str, int], batch_sizes: Sequence[int] | None, batch: str = "batch") -> Sizes:
    """The exported sizes with a small batch: where value profiles are tried."""
    if batch not in exported:
        return dict(exported)
    allowed = sorted(set(batch_sizes)) if batch_sizes is not None else [3]
    chosen = next((size for size in allowed if size >= 2), allowed[-1])
    return {**exported, batch: chosen}
