"""Inputs of every size, and inputs that hold every id of every table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from torch import nn

from onnxproof.cases import shapes
from onnxproof.cases.domain import Domain, count_elements
from onnxproof.cases.plan import Inputs
from onnxproof.cases.supply import Supply
from onnxproof.search.mutate import mix
from onnxproof.tensors.arrays import Array

# A generator for numbers that name a try.
Random = Callable[..., np.random.Generator]
ROWS = 16
MANY_ROWS = 128
MOST_ELEMENTS = 2_000_000
MOST_IDS = 400_000
# Lengths of what a module holds for places: as many, and as long ones, as are tried.
LENGTHS, LONGEST = 6, 4096
# Whole numbers in a graph that may be a size: smaller ones are axes and counts, and are tried anyway.
FEWEST, FARTHEST = 33, 65536


class Sweeps:
    """The sizes and ids of one subject."""

    def __init__(self, supply: Supply, rows: int = MANY_ROWS, lengths: Sequence[int] = ()) -> None:
        """`rows`: of inputs that hold ids, where the batch is dynamic and the user did not say its sizes; `lengths`: that are worth a look
        before all others."""
        self._supply, self._domains, self._rows = supply, supply.domains, rows
        self._lengths = [*list_lengths(supply.subject.module), *lengths]
        self._batch = supply.subject.batch
        self.population = self._populate()
        """Many rows where the batch is dynamic: each is an input of its own."""

    def _populate(self) -> dict[str, int]:
        sizes = self._supply.subject.sizes()
        if self._batch is None:
            return sizes
        asked = self._supply.settings.batch_sizes
        rows = ROWS if asked is None else max([size for size in asked if size <= 2 * ROWS], default=min(asked))
        wanted = {**sizes, self._batch: rows if asked is not None else self._fit_rows(sizes, rows)}
        return shapes.clamp_sizes(wanted, self._supply.subject.limits)

    def _fit_rows(self, sizes: dict[str, int], rows: int) -> int:
        """So many rows, or as many as keep the inputs moderate."""
        one = count_elements(self._domains, {**sizes, str(self._batch): 1})
        return max(1, min(rows, MOST_ELEMENTS // max(1, one)))

    def sizes(self) -> Iterator[dict[str, int]]:
        """Sizes that are served, landmarks first."""
        supply, exported = self._supply, self._supply.subject.sizes()
        if not exported:
            return
        wide = shapes.sweep_widely(exported, supply.settings.batch_sizes, self._batch or "batch", supply.bounds)
        # The last row of a table of positions is met at no other size than the table's own; what is served last was declared.
        free = [name for name in exported if name != self._batch]
        last = [{**exported, name: high} for name, (_, high) in supply.subject.limits.items() if name in free]
        full = [{**exported, name: size} for size in self._lengths for name in free]
        for sizes in (*last, *full, *wide):
            served = shapes.is_served(sizes, supply.subject.limits)
            if served and count_elements(self._domains, sizes) <= MOST_ELEMENTS:
                yield sizes

    def ids(self, random: Random) -> Iterator[Inputs]:
        """Every id of every table once, then every two ids of two inputs together."""
        tables = {d.name: ids for d in self._domains if d.role == "id" and len(ids := _list_ids(d))}
        shape = {d.name: d.shape for d in self._domains}
        sizes = dict(self.population)
        if self._batch is not None and self._supply.settings.batch_sizes is None:
            sizes[self._batch] = self._fit_rows(sizes, self._rows)
            sizes = shapes.clamp_sizes(sizes, self._supply.subject.limits)
        g = random(3)
        yield from self._lay({name: g.permutation(ids) for name, ids in tables.items()}, sizes, g)
        for a, b in combinations(tables, 2):
            # Of one shape, so that their values stand beside each other.
            if len(tables[a]) * len(tables[b]) <= MOST_IDS and shape[a] == shape[b]:
                left, right = np.meshgrid(tables[a], tables[b])
                yield from self._lay({a: left.reshape(-1), b: right.reshape(-1)}, sizes, g)

    def _lay(
        self, left: dict[str, NDArray[np.int64]], sizes: dict[str, int], g: np.random.Generator
    ) -> Iterator[Inputs]:
        """Inputs that hold all of these ids, as many at a time as fit."""
        while any(len(ids) for ids in left.values()):
            inputs = mix(self._domains, self._take_rows(left, sizes), self._batch, g)
            for name, ids in left.items():
                fitting = ids[: inputs[name].size]
                np.put(inputs[name], np.arange(len(fitting)), fitting)
                left[name] = ids[len(fitting) :]
            yield inputs

    def _take_rows(self, left: dict[str, NDArray[np.int64]], sizes: dict[str, int]) -> dict[str, int]:
        """As many rows as these ids need, where there would be more."""
        if self._batch is None or self._supply.settings.batch_sizes is not None:
            return sizes
        places = {d.name: int(np.prod(d.sized({**sizes, self._batch: 1}))) for d in self._domains}
        needed = max(-(-len(ids) // max(1, places[name])) for name, ids in left.items())
        few = {**sizes, self._batch: min(sizes[self._batch], max(needed, self.population[self._batch]))}
        return shapes.clamp_sizes(few, self._supply.subject.limits)


def list_lengths(module: nn.Module) -> list[int]:
    """How long what the module holds for places may be: tables, buffers such as masks, weights of one sequence; small ones first."""
    rows = {m.num_embeddings for m in module.modules() if isinstance(m, nn.Embedding)}
    rows |= {size for buffer in module.buffers() for size in buffer.shape}
    rows |= {weight.shape[1] for weight in module.parameters() if weight.ndim == 3 and weight.shape[0] == 1}
    return sorted(size for size in rows if 1 < size <= LONGEST)[:LENGTHS]


def list_cuts(stored: Mapping[str, Array]) -> list[int]:
    """Sizes just beyond the whole numbers that a graph holds: what cuts, pads or counts to one of them has done so there."""
    small = [array for array in map(np.asarray, stored.values()) if array.dtype == np.int64 and 0 < array.size <= 2]
    numbers = {int(number) + 1 for array in small for number in array.flat}
    return sorted(size for size in numbers if FEWEST < size <= FARTHEST)[-LENGTHS:]


def _list_ids(domain: Domain) -> NDArray[np.int64]:
    if domain.valid is None or domain.valid.high - domain.valid.low > MOST_IDS:
        return np.zeros(0, np.int64)
    return np.arange(int(domain.valid.low), int(domain.valid.high) + 1)
