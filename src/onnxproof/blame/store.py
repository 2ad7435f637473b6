"""Values within a budget of memory: what does not fit goes to disk and comes back when it is asked for."""

from __future__ import annotations

import tempfile
from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path

import numpy as np

from onnxproof.tensors.arrays import Array

Values = Mapping[str, Array]
# Bytes up to which a value always stays in memory.
SMALL = 1 << 16


class Store(MutableMapping[str, Array]):
    """A mapping from names to arrays; what comes first stays in memory."""

    def __init__(self, budget: int) -> None:
        self._room = budget
        self._folder = tempfile.TemporaryDirectory(prefix="onnxproof-values-")
        self._held: dict[str, Array] = {}
        self._files: dict[str, Path] = {}
        self._sizes: dict[str, int] = {}
        self.spilled = 0
        """Bytes that were written to disk."""

    def __setitem__(self, name: str, value: Array) -> None:
        if name in self:
            del self[name]
        array = np.asarray(value)
        size = self._sizes[name] = array.nbytes
        if size <= max(SMALL, self._room):
            self._held[name] = array
            self._room -= size
        else:
            # Not by its name, which may hold slashes; the count grows with every file.
            self._files[name] = Path(self._folder.name) / f"{self.spilled}.npy"
            np.save(self._files[name], array, allow_pickle=False)
            self.spilled += size

    def __getitem__(self, name: str) -> Array:
        if name in self._held:
            return self._held[name]
        array: Array = np.load(self._files[name], allow_pickle=False)
        return array

    def __delitem__(self, name: str) -> None:
        size = self._sizes.pop(name)
        if name in self._held:
            del self._held[name]
            self._room += size
        else:
            self._files.pop(name).unlink()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._sizes))

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, name: object) -> bool:
        return name in self._sizes

    def bytes_of(self, name: str) -> int:
        """The size of a value, without fetching it."""
        return self._sizes[name]


class Layered(ChainMap[str, Array]):
    """Several mappings, the first one that has a name wins; nothing is copied."""

    def __init__(self, *layers: Values) -> None:
        super().__init__(*layers)  # type: ignore[arg-type]  # nobody writes into it

    def bytes_of(self, name: str) -> int:
        """The size of a value, without fetching it where that would be dear."""
        layer = next(layer for layer in self.maps if name in layer)
        return layer.bytes_of(name) if isinstance(layer, (Store, Layered)) else layer[name].nbytes


class Renamed(Mapping[str, Array]):
    """A mapping seen through other names."""

    def __init__(self, values: Values, names: Mapping[str, str]) -> None:
        self._values = values
        self._names = names

    def __getitem__(self, name: str) -> Array:
        return self._values[self._names[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
