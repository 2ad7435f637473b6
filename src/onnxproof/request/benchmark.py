"""What a benchmark is asked to do, as values: nothing here imports numpy, torch or onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from onnxproof.errors import UserError
from onnxproof.request.request import SessionSettings
from onnxproof.request.specs import parse_provider

Scenario = Literal["single", "offline", "server"]
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)
BATCHES = (1, 8, 32, 128)
"""Batch sizes that are timed where the batch is dynamic and nothing else is asked for."""
VARIANT_KEYS = ("provider", "threads", "optimization", "execution", "binding")
LEVELS = ("disable", "basic", "extended", "all")
EXECUTIONS = ("sequential", "parallel")


@dataclass(frozen=True)
class Variant:
    """A further onnxruntime contender: what differs from the session that ships."""

    provider: str | None = None
    threads: int | None = None
    optimization: str | None = None
    execution: str | None = None
    binding: bool = False

    @property
    def name(self) -> str:
        """`onnxruntime[threads=1,binding=yes]`."""
        given = {key: getattr(self, key) for key in VARIANT_KEYS if getattr(self, key)}
        words = [f"{key}={'yes' if value is True else value}" for key, value in given.items()]
        return f"onnxruntime[{','.join(words)}]"

    def applied(self, session: SessionSettings) -> SessionSettings:
        """The session that ships with these changes."""
        changes: dict[str, Any] = {
            key: getattr(self, key)
            for key in ("threads", "optimization", "execution")
            if getattr(self, key) is not None
        }
        if self.provider is not None:
            changes["providers"] = (parse_provider(self.provider),)
        return replace(session, **changes)


@dataclass(frozen=True)
class BenchSettings:
    """How to time."""

    lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Sizes of dynamic dimensions other than the batch."""
    min_time: float = 1.0
    """Seconds of timed calls for each contender and size."""
    min_count: int = 64
    """Timed calls for each contender and size."""
    budget: float = 600.0
    """Seconds for everything that is timed."""
    scenario: Scenario = "single"
    rate: float | None = None
    """Arrivals per second in the server scenario; None for 70 % of what one worker of the session that ships can do."""
    concurrency: int = 1
    """Workers: 1, 2, 4 … up to this number are tried in the server and offline scenarios."""
    also: tuple[Variant, ...] = ()
    against: str | None = None
    compile: bool = False
    tune: bool = False
    baseline: str | None = None
    percentiles: tuple[float, ...] = ()
    """Percentiles that the policy asks about: enough samples are taken to support them."""


def levels(concurrency: int) -> list[int]:
    """1, 2, 4 … and the number itself."""
    powers = [2**k for k in range(concurrency.bit_length()) if 2**k < concurrency]
    return [*powers, concurrency]


# --- what the user writes -------------------------------------------------------------------------------------------


def parse_variant(text: str) -> Variant:
    """`threads=1`, `provider=OpenVINO,threads=2`, `optimization=basic`, `execution=parallel`, `binding=yes`."""
    values: dict[str, Any] = {}
    for part in (part for part in text.split(",") if part):
        key, equals, value = part.partition("=")
        if key not in VARIANT_KEYS or not equals or not value:
            raise UserError(
                f"--also {text!r}: expected key=value,… with keys of {', '.join(VARIANT_KEYS)}; got {part!r}"
            )
        values[key] = _value(text, key, value)
    if not values:
        raise UserError(f"--also {text!r}: expected at least one key=value, such as threads=1")
    return Variant(**values)


def _value(text: str, key: str, value: str) -> Any:
    if key == "threads":
        if not value.isdigit() or int(value) < 1:
            raise UserError(f"--also {text!r}: expected a number of threads of 1 or more, got {value!r}")
        return int(value)
    if key == "binding":
        if value not in ("yes", "no"):
            raise UserError(f"--also {text!r}: expected binding=yes or binding=no, got {value!r}")
        return value == "yes"
    known: Sequence[str] | None = {"optimization": LEVELS, "execution": EXECUTIONS}.get(key)
    if known is not None and value not in known:
        raise UserError(f"--also {text!r}: expected {key} to be one of {', '.join(known)}; got {value!r}")
    return value


def parse_lengths(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """`seq=16,128`, one per dimension."""
    lengths: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, sizes = text.partition("=")
        numbers = [part.strip() for part in sizes.split(",") if part.strip()]
        if not name or not numbers or not all(number.isdigit() and int(number) for number in numbers):
            raise UserError(
                f"--lengths {text!r}: expected the name of a dynamic dimension and sizes, such as seq=16,128"
            )
        lengths[name] = tuple(dict.fromkeys(int(number) for number in numbers))
    return lengths
