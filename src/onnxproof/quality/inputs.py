"""What is noted about the inputs while they pass: extremes, values that are not finite, a sample of rows, hashes of rows."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxproof.quality.accumulate import merge_facts
from onnxproof.tensors.arrays import Array

# Input values that a shard keeps as its sample.
SAMPLE_VALUES = 1_000_000
SAMPLE_ROWS = 4096
# Values of a row that are kept in the sample: a fixed random choice of them where there are more.
FEATURES = 1024
MIX = np.uint64(0x9E3779B97F4A7C15)


def extract_features(array: Array) -> Array:
    """Rows as float32 vectors of at most FEATURES values, always the same ones."""
    flat = array.reshape(len(array), -1)
    width = flat.shape[1]
    if width > FEATURES:
        flat = flat[:, np.sort(np.random.default_rng(width).choice(width, FEATURES, replace=False))]
    return flat.astype(np.float32)


def hash_rows(inputs: Mapping[str, Array]) -> NDArray[np.uint64]:
    """A 64-bit hash of every row over all inputs; −0.0 counts as 0.0."""
    total: NDArray[np.uint64] | None = None
    for place, (_, array) in enumerate(sorted(inputs.items())):
        if not array.ndim:
            continue
        words = _view_words(array)
        generator = np.random.default_rng(words.shape[1] * 31 + place)
        # Odd factors can be undone modulo 2^64: no bit of a word is lost.
        odd = generator.integers(1, 2**63, words.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        mixed = words ^ (words >> np.uint64(32))
        mixed *= MIX
        mixed ^= mixed >> np.uint64(29)
        mixed *= odd
        part = mixed.sum(axis=1, dtype=np.uint64)
        total = part if total is None else total * MIX + part
    return total if total is not None else np.zeros(0, np.uint64)


def _view_words(array: Array) -> NDArray[np.uint64]:
    plain = np.ascontiguousarray(array.reshape(len(array), -1))
    # −0.0 + 0.0 is 0.0.
    plain = plain + np.zeros((), plain.dtype) if plain.dtype.kind == "f" else plain
    raw = plain.view(np.uint8).reshape(len(array), -1)
    missing = -raw.shape[1] % 8
    if missing:
        raw = np.concatenate([raw, np.zeros((len(raw), missing), np.uint8)], axis=1)
    return np.ascontiguousarray(raw).view(np.uint64)


def hash_ids(ids: Array) -> NDArray[np.uint64]:
    """A 64-bit hash of every id, the same for 7, 7.0 and "7"."""

    def text(value: Any) -> str:
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

    digests = [hashlib.blake2b(text(v).encode(), digest_size=8).digest() for v in ids.tolist()]
    return np.frombuffer(b"".join(digests), np.uint64)


class Sampler:
    """Every s-th row; s doubles whenever there are too many, so that any number of rows ends up evenly thinned."""

    def __init__(self) -> None:
        self._step = 1
        self._seen = 0
        self.parts: defaultdict[str, list[Array]] = defaultdict(list)

    def see(self, inputs: Mapping[str, Array], rows: int, start: int) -> Array:
        """Take some of these rows; the places that were taken."""
        chosen = {name: a for name, a in inputs.items() if a.ndim and a.dtype.kind in "fiub"}
        width = max((extract_features(a[:1]).shape[1] for a in chosen.values() if len(a)), default=0)
        limit = int(min(SAMPLE_ROWS, max(64, SAMPLE_VALUES // max(1, width))))
        while len(taken := self._choose_places(rows)) + sum(map(len, self.parts["sample_rows"])) > limit:
            # Thinned before the rows are copied, most of which would be thrown away again.
            for parts in filter(None, self.parts.values()):
                parts[:] = [np.concatenate(parts)[::2]]
            self._step *= 2
        self._seen += rows
        self.parts["sample_rows"].append(taken + start)
        for name, array in chosen.items():
            self.parts[f"sample/{name}"].append(extract_features(array[taken]))
        return taken

    def _choose_places(self, rows: int) -> Array:
        return np.arange(-self._seen % self._step, rows, self._step)


class Watch:
    """Notes about inputs, one batch after the other."""

    def __init__(self, *, hashed: bool) -> None:
        self._hashed = hashed
        self.facts: dict[str, dict[str, Any]] = {}
        """Input → what was noted."""
        self._sampler = Sampler()
        self._hashes: defaultdict[str, list[Array]] = defaultdict(list)

    def see(self, inputs: Mapping[str, Array], ids: Array | None, start: int = 0) -> None:
        """Note a batch."""
        rows = next((len(a) for a in inputs.values() if a.ndim), 0)
        taken = self._sampler.see(inputs, rows, start)
        noted = {name: _note(a, taken) for name, a in inputs.items() if a.ndim and a.dtype.kind in "fiu"}
        self.facts = merge_facts([self.facts, noted])
        if self._hashed:
            self._hashes["hash"].append(hash_rows(inputs))
            if ids is not None:
                self._hashes["id_hash"].append(hash_ids(ids))

    def columns(self) -> dict[str, Array]:
        """What is kept per row."""
        return {name: np.concatenate(parts) for name, parts in (self._sampler.parts | self._hashes).items()}


def _note(array: Array, taken: Array) -> dict[str, Any]:
    """Facts about a batch of an input; those of several are added up as those of shards are."""
    fact: dict[str, Any] = {"rows": len(array), "nonfinite_rows": 0, "nonfinite": 0, "low": None, "high": None}
    values = array
    # Either extreme shows NaN and infinities.
    if array.size and not np.isfinite([array.min(), array.max()]).all():
        finite = np.isfinite(array)
        fact["nonfinite"] = int(array.size - finite.sum())
        fact["nonfinite_rows"] = int((~finite.reshape(len(array), -1).all(axis=1)).sum())
        values = array[finite]
    if not values.size:
        return fact
    fact |= {"low": float(values.min()), "high": float(values.max())}
    if array.ndim == 4 and array.shape[1] in (1, 3, 4) and len(taken):
        fact["sum_channels"] = array[taken].astype(np.float64).sum(axis=(0, 2, 3)).tolist()
        fact["channel_values"] = len(taken) * array.shape[2] * array.shape[3]
    return fact
