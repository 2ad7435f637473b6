"""Values within a budget of memory: what does not fit goes to disk and comes back when it is asked for."""

from __future__ import annotations

import tempfile
from collections import ChainMap, OrderedDict
from collections.abc import Iterator, Mapping, MutableMapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = Mapping[str, NDArray[Any]]
SMALL = 1 << 16
"""Bytes up to which a value always stays in memory."""


class Store(MutableMapping[str, NDArray[Any]]):
    """A mapping from names to arrays; the ones not used for longest leave memory first."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._folder = tempfile.TemporaryDirectory(prefix="onnxproof-values-")
        self._held: OrderedDict[str, NDArray[Any]] = OrderedDict()
        self._files: dict[str, Path] = {}
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self.spilled = 0
        """Bytes that were written to disk."""

    def __setitem__(self, name: str, value: NDArray[Any]) -> None:
        if name in self:
            del self[name]
        array = self._held[name] = np.asarray(value)
        self._sizes[name] = array.nbytes
        self._bytes += array.nbytes
        self._make_room(name)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name in self._held:
            self._held.move_to_end(name)
            return self._held[name]
        array: NDArray[Any] = np.load(self._files[name], allow_pickle=False)
        return array

    def __delitem__(self, name: str) -> None:
        if name in self._held:
            self._bytes -= self._held.pop(name).nbytes
        else:
            self._files.pop(name).unlink()
        del self._sizes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._sizes))

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, name: object) -> bool:
        return name in self._sizes

    def bytes_of(self, name: str) -> int:
        """The size of a value, without fetching it."""
        return self._sizes[name]

    def _make_room(self, newest: str) -> None:
        waiting = [name for name, array in self._held.items() if array.nbytes > SMALL and name != newest]
        for name in takewhile(lambda _: self._bytes > self._budget, waiting):
            array = self._held.pop(name)
            self._bytes -= array.nbytes
            file = Path(self._folder.name) / f"{len(self._files)}-{self.spilled}.npy"
            np.save(file, array, allow_pickle=False)
            self._files[name] = file
            self.spilled += array.nbytes


class Layered(ChainMap[str, NDArray[Any]]):
    """Several mappings, the first one that has a name wins; nothing is copied."""

    def __init__(self, *layers: Values) -> None:
        super().__init__(*layers)  # type: ignore[arg-type]  # nobody writes into it

    def bytes_of(self, name: str) -> int:
        """The size of a value, without fetching it where that would be dear."""
        layer = next(layer for layer in self.maps if name in layer)
        return layer.bytes_of(name) if isinstance(layer, (Store, Layered)) else layer[name].nbytes


class Renamed(Mapping[str, NDArray[Any]]):
    """A mapping seen through other names."""

    def __init__(self, values: Values, names: Mapping[str, str]) -> None:
        self._values = values
        self._names = names

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._values[self._names[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
