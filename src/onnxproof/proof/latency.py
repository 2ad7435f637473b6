"""What was measured, as plain data: no opinion, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from onnxproof.request.judgement import SHOWN_PERCENTILES

Data = Mapping[str, Any]

KEPT_SAMPLES = 2000
"""Samples of a run that stay in the proof. Of n more, every ⌈n/2000⌉-th in order of time stays; numbers come from all."""
BASELINE, SHIPPED = "pytorch", "onnxruntime"


@dataclass(frozen=True)
class Bound:
    """A percentile in milliseconds with its order-statistic bounds (99 %)."""

    value_ms: float
    low_ms: float
    high_ms: float


@dataclass(frozen=True)
class Run:
    """One contender at one size in one scenario."""

    contender: str
    batch: int
    sizes: Mapping[str, int]
    scenario: str
    samples: tuple[int, ...]
    """Nanoseconds, in order of time, thinned to at most KEPT_SAMPLES. In the server scenario from the arrival."""
    count: int
    """Samples before thinning."""
    blocks: tuple[float, ...] = ()
    """Mean nanoseconds per call of each round's block: the pairs behind a speed-up."""
    percentiles: Mapping[str, Bound] = field(default_factory=dict)
    """Those that the count supports."""
    min_ms: float | None = None
    max_ms: float | None = None
    mean_ms: float | None = None
    throughput: float | None = None
    """Items per second: the batch over the mean time, or what was really done in the server scenario."""
    load_ms: float | None = None
    first_ms: float | None = None
    warmup: int = 0
    """Calls before the first that counts."""
    steady: bool = True
    """Whether the warm-up ended because times stopped falling."""
    cut: bool = False
    """Whether the budget ended the run before its minimum time and count."""
    calls_per_block: int = 1
    threads: int | None = None
    concurrency: int = 1
    rate: float | None = None
    """Arrivals per second, in the server scenario."""
    waiting_ms: float | None = None
    """Mean time between arrival and start, in the server scenario."""
    backlog: float | None = None
    """Requests that were waiting when the last one arrived, over all."""
    memory: int | None = None
    """Bytes by which the peak of a process of its own grew; weights included."""
    compared: int = 0
    """Outputs of timed calls that were compared."""
    differing: tuple[Mapping[str, Any], ...] = ()
    """Comparisons of outputs of a further contender with PyTorch's (the session that ships has cases of its own)."""

    def milliseconds(self, name: str) -> float | None:
        """A percentile by its name; None where the samples do not support it."""
        bound = self.percentiles.get(name)
        return None if bound is None else bound.value_ms

    def to_json(self) -> dict[str, Any]:
        """The run as plain data, with the contract's names for the percentiles."""
        data = asdict(self)
        named = {f"{name.replace('.', '')}_ms": self.milliseconds(name) for name in SHOWN_PERCENTILES}
        return {**data, **named}

    @staticmethod
    def from_json(data: Data) -> Run:
        """Read a run back; fields of a later version are ignored, and what only this version writes may be missing."""
        values = {name: data[name] for name in Run.__dataclass_fields__ if name in data}
        for name in ("samples", "blocks", "differing"):
            values[name] = tuple(values.get(name) or ())
        plain = {f"p{q}": data[f"p{q}_ms"] for q in (50, 90, 95, 99) if data.get(f"p{q}_ms") is not None}
        values["percentiles"] = {n: Bound(value, value, value) for n, value in plain.items()}
        values["percentiles"] |= {n: Bound(**_of(Bound, b)) for n, b in (data.get("percentiles") or {}).items()}
        return Run(**{"sizes": {}, "scenario": "single", "count": len(values["samples"]), **values})


@dataclass(frozen=True)
class Speedup:
    """How many times faster than PyTorch a contender is: the ratio of the two times, with a 95 % interval."""

    batch: int
    contender: str
    ratio: float
    low: float
    high: float
    rounds: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)
    scenario: str = "single"
    concurrency: int = 1


@dataclass(frozen=True)
class Machine:
    """What the numbers depend on besides the model."""

    fingerprint: str
    cpu: str
    cores: int
    """Cores that this process may use."""
    memory: int
    clock_ns: float
    """The clock's smallest step."""
    overhead_ns: float
    """What timing an empty call costs: taken off the block means behind speed-ups."""
    load_before: float | None = None
    load_after: float | None = None
    others: float | None = None
    """Cores that other processes kept busy while it was timed."""
    steal: float | None = None
    """Share of the time that the hypervisor took away."""
    mhz_before: float | None = None
    mhz_after: float | None = None
    throttled: int | None = None
    """Times the processor (heat) or the control group (quota) was slowed down while it was timed."""


UNKNOWN_MACHINE: Data = {
    "fingerprint": "",
    "cpu": "unknown",
    "cores": 0,
    "memory": 0,
    "clock_ns": 0.0,
    "overhead_ns": 0.0,
}


@dataclass(frozen=True)
class SlowNode:
    """A node of the session's own graph and its share of the time."""

    node: str
    op: str
    share: float
    ms: float
    """Median time per run."""
    provider: str = ""
    module: str | None = None
    file: str | None = None
    line: int | None = None
    text: str | None = None


@dataclass(frozen=True)
class Profile:
    """Where the time goes in the session that ships, by onnxruntime's own profile."""

    batch: int
    sizes: Mapping[str, int]
    runs: int
    nodes: tuple[SlowNode, ...]
    """The slowest first."""
    ops: Mapping[str, Mapping[str, float]]
    """Operator → share of the time and number of nodes."""
    providers: Mapping[str, float]
    """Provider → share of the time."""
    fused: tuple[str, ...] = ()
    """Rewrites seen in the session's graph: operators that the file does not have."""

    @staticmethod
    def from_json(data: Data) -> Profile:
        """Read a profile back."""
        values = _of(Profile, data)
        values["nodes"] = tuple(SlowNode(**_of(SlowNode, node)) for node in data["nodes"])
        values["fused"] = tuple(values.get("fused") or ())
        return Profile(**values)


@dataclass(frozen=True)
class Tuned:
    """A setting that was tried: how it compares with the session that ships, and whether it still passes."""

    setting: Mapping[str, Any]
    batch: int
    ratio: float
    low: float
    high: float
    verdict: str | None = None
    """Of a verification under this setting; None where it was not asked."""
    cases: int = 0


@dataclass(frozen=True)
class Absent:
    """A contender or a size that could not be measured, and why."""

    what: str
    why: str
    batch: int | None = None


@dataclass(frozen=True)
class Earlier:
    """What an earlier proof measured, to be held against this one."""

    path: str
    fingerprint: str
    runs: tuple[Run, ...]
    speedup: tuple[Speedup, ...]
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Latency:
    """Everything the clock said."""

    runs: tuple[Run, ...]
    speedup: tuple[Speedup, ...]
    machine: Machine
    absent: tuple[Absent, ...] = ()
    profile: Profile | None = None
    tuned: tuple[Tuned, ...] = ()
    baseline: Earlier | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def of(self, contender: str, scenario: str | None = None) -> list[Run]:
        """The runs of a contender, smallest batch first."""
        runs = [r for r in self.runs if r.contender == contender and scenario in (None, r.scenario)]
        return sorted(runs, key=lambda run: (run.batch, run.concurrency))

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        data = {
            "runs": [run.to_json() for run in self.runs],
            "speedup": [asdict(one) for one in self.speedup],
            "machine": asdict(self.machine),
            "absent": [asdict(one) for one in self.absent],
            "profile": asdict(self.profile) if self.profile else None,
            "tuned": [asdict(one) for one in self.tuned],
            "baseline": None,
            "settings": dict(self.settings),
        }
        if self.baseline is not None:
            runs = [{**run.to_json(), "samples": [], "blocks": []} for run in self.baseline.runs]
            data["baseline"] = {**asdict(self.baseline), "runs": runs}
        return data

    @staticmethod
    def from_json(data: Data) -> Latency:
        """Read it back; fields of a later version are ignored."""
        earlier = data.get("baseline")
        return Latency(
            runs=tuple(Run.from_json(run) for run in data["runs"]),
            speedup=_speedups(data["speedup"]),
            machine=Machine(**{**UNKNOWN_MACHINE, **_of(Machine, data.get("machine") or {})}),
            absent=tuple(Absent(**_of(Absent, one)) for one in data.get("absent") or ()),
            profile=Profile.from_json(data["profile"]) if data.get("profile") else None,
            tuned=tuple(Tuned(**_of(Tuned, one)) for one in data.get("tuned") or ()),
            baseline=_earlier(earlier) if earlier else None,
            settings=data.get("settings") or {},
        )


def _earlier(data: Data) -> Earlier:
    runs = tuple(Run.from_json(run) for run in data["runs"])
    return Earlier(data["path"], data["fingerprint"], runs, _speedups(data["speedup"]), data.get("versions") or {})


def _speedups(items: Sequence[Data]) -> tuple[Speedup, ...]:
    return tuple(Speedup(**{"contender": "onnxruntime", **_of(Speedup, one)}) for one in items)


def _of(cls: Any, data: Data) -> dict[str, Any]:
    """The fields that this version knows."""
    return {name: data[name] for name in cls.__dataclass_fields__ if name in data}


def thinned(samples: Sequence[int]) -> tuple[int, ...]:
    """At most KEPT_SAMPLES of them, evenly spread over time."""
    step = -(-len(samples) // KEPT_SAMPLES) or 1
    return tuple(int(sample) for sample in samples[::step])
