"""What a child is told to do, and how what it says travels: msgpack in frames, since values may be NaN or infinite."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import msgspec

# What a frame is (said, done, failed), and how long.
HEADER = struct.Struct("<cI")
SAID, DONE, FAILED = b"s", b"d", b"f"
# How work reports: any value that msgspec writes.
Say = Callable[[Any], None]


@dataclass(frozen=True)
class Order:
    """A function by its name, `package.module:name`; it is called with a way to speak and these arguments."""

    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    fresh: bool = False
    """Whether it shares nothing with other children, so that its memory can be measured."""

    keeps: str = ""
    """A class, by its name: the function is given an object of it as `shop`, the same one for all orders of a child."""

    def carry_out(self, say: Say, kept: dict[str, Any]) -> None:
        """Do it in this process, with what earlier orders have `kept`."""
        if self.keeps and self.keeps not in kept:
            kept[self.keeps] = _find(self.keeps)()
        given = {"shop": kept[self.keeps]} if self.keeps else {}
        _find(self.function)(say, **self.arguments, **given)


def _find(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


@dataclass(frozen=True)
class Failure:
    """An exception that ended a child's work."""

    kind: str
    """`user`, `interrupted`, `memory` or `bug`."""
    type: str
    message: str
    traceback: str = ""


def make_frame(kind: bytes, value: Any = None) -> bytes:
    """One frame."""
    body = b"" if value is None else msgspec.msgpack.encode(value, enc_hook=_make_plain)
    return HEADER.pack(kind, len(body)) + body


def _make_plain(value: Any) -> Any:
    """numpy's scalars and kinds of text and number as Python's own."""
    if hasattr(value, "item"):
        return value.item()
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__name__} cannot be sent to another process")


class Frames:
    """Frames out of bytes as they come."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bytes]]:
        """What is complete by now: (kind, body)."""
        self._buffer += chunk
        while len(self._buffer) >= HEADER.size:
            kind, length = HEADER.unpack_from(self._buffer)
            if len(self._buffer) < HEADER.size + length:
                return
            body = bytes(self._buffer[HEADER.size : HEADER.size + length])
            del self._buffer[: HEADER.size + length]
            yield kind, body


def write_all(descriptor: int, data: bytes) -> None:
    """Every byte of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
