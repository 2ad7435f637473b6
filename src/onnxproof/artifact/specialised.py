"""Where a dynamic dimension becomes a constant: torch says so in a log line, at the very moment when the user's line runs."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from onnxproof.findings import Where
from onnxproof.findings.frames import find_running_line

LOG = "torch.fx.experimental.symbolic_shapes"
MADE = re.compile(r"create_symbol (\w+) = .*?\['leaves'\]\[(\d+)\]\.size\(\)\[(\d+)\]")
FIXED = re.compile(r"(?:eval|runtime_assert) (Eq\(.*?\)) \[|set_replacement (\w+ = \d+)\b")
SYMBOL = re.compile(r"\b[su]\d+\b")

# An input by its number, and a dimension.
Place = tuple[int, int]


class Specialised(logging.Handler):
    """Listens to the capture."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._places: dict[str, Place] = {}
        self.lines: dict[Place, Where] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Note a symbol's dimension, and the line that fixes it."""
        text = record.getMessage()
        made, fixed = MADE.search(text), FIXED.search(text)
        if made:
            self._places[made.group(1)] = (int(made.group(2)), int(made.group(3)))
        symbols = set(SYMBOL.findall(next(filter(None, fixed.groups())))) if fixed else set()
        place = self._places.get(symbols.pop()) if len(symbols) == 1 else None  # of two sizes none is fixed
        if place is not None and place not in self.lines and (line := find_running_line()).file is not None:
            self.lines[place] = line


@contextmanager
def listen() -> Iterator[Specialised]:
    """Everything that the captures of a block fix; what torch logs reaches nobody else meanwhile."""
    log, handler = logging.getLogger(LOG), Specialised()
    before = log.handlers, log.level, log.propagate
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        log.handlers, level, log.propagate = before
        log.setLevel(level)
