"""Pieces that agreed, kept in the user's cache for other models of the family: by likeness, and on how many values."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_cache_path

from onnxproof.errors import NotWritten
from onnxproof.files import replacing

# What an answer depends on besides the piece: these packages, and our own code of these rooms.
PACKAGES = ("torch", "onnx", "onnxruntime", "numpy")
CODE = ("trials/*.py", "graph/evaluator.py", "graph/operators.py", "graph/widening.py", "cases/values.py")
# Pieces that are kept; the oldest go.
MOST = 20_000


class Remembered:
    """Likeness → how many values a piece agreed on. A difference is never remembered: it is looked at anew."""

    def __init__(self) -> None:
        self._file = user_cache_path("onnxproof") / "trials" / f"{_identify()}.txt"
        self._known = self._read()
        self._new: dict[str, int] = {}

    def recall(self, likeness: str) -> int | None:
        """On how many values a piece like this agreed; None for one that is not known to."""
        return self._new.get(likeness, self._known.get(likeness))

    def keep(self, likeness: str, values: int) -> None:
        self._new[likeness] = values

    def write(self) -> None:
        """What is new joins what others have written meanwhile; where nothing can be kept, nothing is."""
        if self._new.keys() <= self._known.keys():
            return
        every = [f"{likeness} {values}" for likeness, values in (self._read() | self._new).items()]
        with suppress(NotWritten), replacing(self._file, lasting=False) as half:
            half.write_text("\n".join(every[-MOST:]) + "\n", encoding="ascii")

    def _read(self) -> dict[str, int]:
        try:
            lines = self._file.read_text(encoding="ascii").split("\n")
            return {likeness: int(values) for likeness, values in (line.split() for line in lines if line)}
        except (OSError, ValueError):
            return {}


@cache
def _identify() -> str:
    root = Path(__file__).parents[1]
    code = [file.read_bytes() for pattern in CODE for file in sorted(root.glob(pattern))]
    versions = [f"{name} {version(name)}".encode() for name in PACKAGES]
    return hashlib.blake2b(b"\0".join([*versions, *code]), digest_size=12).hexdigest()
