"""What was measured, as plain data: no opinion, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from onnxproof.proof.comparison import Comparison
from onnxproof.request.benchmark import Scenario

# Samples of a run that stay in the proof. Of n more, every ⌈n/2000⌉-th in order of time stays; numbers come from all.
KEPT_SAMPLES = 2000
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

    PUBLISHED: ClassVar = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms")
    ADDED: ClassVar = ("cpu_ms", "crowded")

    contender: str
    batch: int
    sizes: Mapping[str, int] = field(default_factory=dict)
    scenario: Scenario = "single"
    samples: tuple[int, ...] = ()
    """Nanoseconds, in order of time; of n > 2000 samples every ⌈n/2000⌉-th. In the server scenario from the arrival."""
    count: int = 0
    """Samples before thinning."""
    blocks: tuple[float, ...] = ()
    """Mean nanoseconds per call of each round's block: the pairs behind a speed-up."""
    percentiles: Mapping[str, Bound] = field(default_factory=dict)
    """Those that the count supports."""
    min_ms: float | None = None
    max_ms: float | None = None
    mean_ms: float | None = None
    cpu_ms: float | None = None
    """Mean time of all cores together per call: what others do on the machine changes it little."""
    crowded: int = 0
    """Rounds in which its threads had to wait for cores that others had: no speed-up is taken from them."""
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
    differing: tuple[Comparison, ...] = ()
    """Comparisons of outputs of a further contender with PyTorch's (the session that ships has cases of its own)."""

    def milliseconds(self, name: str) -> float | None:
        """A percentile by its name; None where the samples do not support it."""
        bound = self.percentiles.get(name)
        return None if bound is None else bound.value_ms

    @property
    def p50_ms(self) -> float | None:
        """The median."""
        return self.milliseconds("p50")

    @property
    def p90_ms(self) -> float | None:
        """The time that nine of ten calls do not exceed."""
        return self.milliseconds("p90")

    @property
    def p95_ms(self) -> float | None:
        """The time that 95 % of the calls do not exceed."""
        return self.milliseconds("p95")

    @property
    def p99_ms(self) -> float | None:
        """The time that 99 % of the calls do not exceed."""
        return self.milliseconds("p99")

    @property
    def p999_ms(self) -> float | None:
        """The time that 99.9 % of the calls do not exceed."""
        return self.milliseconds("p99.9")


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
    scenario: Scenario = "single"
    concurrency: int = 1


@dataclass(frozen=True)
class Machine:
    """What the numbers depend on besides the model."""

    fingerprint: str = ""
    cpu: str = "unknown"
    cores: int = 0
    """Cores that this process may use."""
    memory: int = 0
    clock_ns: float = 0.0
    """The clock's smallest step."""
    overhead_ns: float = 0.0
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
class OperatorShare:
    """What all nodes of one operator take."""

    share: float
    nodes: float


@dataclass(frozen=True)
class Profile:
    """Where the time goes in the session that ships, by onnxruntime's own profile."""

    batch: int
    sizes: Mapping[str, int]
    runs: int
    nodes: tuple[SlowNode, ...]
    """The slowest first."""
    ops: Mapping[str, OperatorShare]
    providers: Mapping[str, float]
    """Provider → share of the time."""
    fused: tuple[str, ...] = ()
    """Rewrites seen in the session's graph: operators that the file does not have."""


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
class LatencySettings:
    """How it was measured."""

    threads: int | None = None
    scenario: Scenario = "single"
    min_time: float = 0.0
    min_count: int = 0
    concurrency: int = 1
    seed: int = 0
    providers: tuple[str, ...] = ("CPUExecutionProvider",)
    optimization: str = "all"


@dataclass(frozen=True)
class Latency:
    """Everything the clock said."""

    runs: tuple[Run, ...]
    speedup: tuple[Speedup, ...]
    machine: Machine = Machine()
    absent: tuple[Absent, ...] = ()
    profile: Profile | None = None
    tuned: tuple[Tuned, ...] = ()
    baseline: Earlier | None = None
    settings: LatencySettings = LatencySettings()

    def of(self, contender: str, scenario: str | None = None) -> list[Run]:
        """The runs of a contender, smallest batch first."""
        runs = [r for r in self.runs if r.contender == contender and scenario in (None, r.scenario)]
        return sorted(runs, key=lambda run: (run.batch, run.concurrency))

    def weighed(self, contender: str, points: Sequence[Mapping[str, Any]], counts: Sequence[int | None]) -> Latency:
        """The same with the bytes that a contender takes at each of these sizes."""
        memory = {(p["batch"], *sorted(p["sizes"].items())): count for p, count in zip(points, counts, strict=True)}
        runs = [
            replace(run, memory=memory.get((run.batch, *sorted(run.sizes.items()))))
            if run.contender == contender
            else run
            for run in self.runs
        ]
        return replace(self, runs=tuple(runs))


def read_load(one: Run | Speedup) -> tuple[Any, ...]:
    """What was asked of a contender: a run and its speed-up have it in common, and so have two proofs."""
    return (one.scenario, one.batch, one.concurrency, *sorted(one.sizes.items()))


def thin_samples(samples: Sequence[int]) -> tuple[int, ...]:
    """At most KEPT_SAMPLES of them, evenly spread over time."""
    step = -(-len(samples) // KEPT_SAMPLES) or 1
    return tuple(int(sample) for sample in samples[::step])
