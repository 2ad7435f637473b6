"""What a benchmark is asked to do, as values: nothing here imports numpy, torch or onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from onnxproof.request.option import Expected, Read, option
from onnxproof.request.reading import AT_ONCE, each, flag, named, number, one_of, seconds, sizes, switch, text, whole
from onnxproof.request.session import LEVELS, SessionSettings
from onnxproof.request.specs import parse_provider

Scenario = Literal["single", "offline", "server"]
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)
# Batch sizes that are timed where the batch is dynamic and nothing else is asked for.
BATCHES = (1, 8, 32, 128)
EXECUTIONS = ("sequential", "parallel")
# What may differ in a further session, and how it is read.
VARIANT_KEYS: dict[str, Read] = {
    "provider": text,
    "threads": whole(1, AT_ONCE),
    "optimization": one_of(*LEVELS),
    "execution": one_of(*EXECUTIONS),
    "binding": switch,
}


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


def parse_variant(text: str) -> Variant:
    """`threads=1`, `provider=OpenVINO,threads=2`, `optimization=basic`, `execution=parallel`, `binding=yes`."""
    values: dict[str, Any] = {}
    for part in (part for part in text.split(",") if part):
        key, equals, value = part.partition("=")
        if key not in VARIANT_KEYS or not equals or not value:
            raise Expected(f"key=value,… with keys of {', '.join(VARIANT_KEYS)}; got {part!r}")
        try:
            values[key] = VARIANT_KEYS[key](value)
        except Expected as error:
            raise Expected(f"{key} to be {error}; got {value!r}") from None
    if not values:
        raise Expected("at least one key=value, such as threads=1")
    return Variant(**values)


def parse_length(text: str) -> tuple[str, tuple[int, ...]]:
    """`seq=16,128`, one per dimension."""
    name, _, figures = text.partition("=")
    try:
        found = tuple(dict.fromkeys(sizes(figures)))
    except Expected:
        found = ()
    if not name or not found or not all(found):
        raise Expected("the name of a dynamic dimension and sizes, such as seq=16,128")
    return name, found


@dataclass(frozen=True)
class BenchSettings:
    """How to time."""

    lengths: Mapping[str, tuple[int, ...]] = option(
        dict,
        "Sizes of a dynamic dimension: seq=16,128 (repeatable).",
        named(parse_length, lambda value: tuple(value), '{"seq": (16, 128)}'),
        repeated=True,
    )
    """Sizes of dynamic dimensions other than the batch."""
    min_time: float = option(1.0, "Timed calls for each contender and size last at least this. Default 1s.", seconds)
    """Seconds of timed calls for each contender and size."""
    min_count: int = option(64, "And they are at least this many.", whole(1), metavar="INTEGER", told=True)
    """Timed calls for each contender and size."""
    budget: float = option(600.0, "Time for everything that is timed: 600s, 10m. Default 600s.", seconds)
    """Seconds for everything that is timed."""
    scenario: Scenario = option(
        "single", "single (one call after the other), offline or server.", one_of(*SCENARIOS), told=True
    )
    rate: float | None = option(
        None,
        "Server: arrivals per second. Default: 70 % of what one worker can do.",
        number(lambda value: 1e-3 <= value <= 1e6, "a number of requests per second, from 0.001 to 1,000,000"),
        metavar="FLOAT",
    )
    """Arrivals per second in the server scenario; None for 70 % of what one worker of the session that ships can do."""
    concurrency: int = option(
        1,
        "Server and offline: workers on one session, 1, 2, 4 … up to this.",
        whole(1, AT_ONCE),
        metavar="INTEGER",
        told=True,
    )
    """Workers: 1, 2, 4 … up to this number are tried in the server and offline scenarios."""
    also: tuple[Variant, ...] = option(
        (),
        "A further session: threads=1, provider=NAME, optimization=basic, execution=parallel, binding=yes (repeatable).",
        each(parse_variant),
        repeated=True,
    )
    against: str | None = option(None, "A second .onnx file to time beside it.", text)
    compile: bool = flag(False, "Time torch.compile too.")
    tune: bool = flag(False, "Look for faster session settings that still pass verification.")
    baseline: str | None = option(None, "An earlier proof.json: slower than that is a finding.", text, configured=False)
    percentiles: tuple[float, ...] = ()
    """Percentiles that the policy asks about: enough samples are taken to support them."""


def list_levels(concurrency: int) -> list[int]:
    """1, 2, 4 … and the number itself."""
    powers = [2**k for k in range(concurrency.bit_length()) if 2**k < concurrency]
    return [*powers, concurrency]
