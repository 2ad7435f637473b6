"""The thresholds: what a user may promise, change or accept, as plain data without an opinion of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from onnxproof.errors import UserError
from onnxproof.findings import CATALOGUE, Severity, look_up
from onnxproof.request.option import Expected, option
from onnxproof.request.reading import make_list, named, number, seconds, size

# Percentiles that are measured and that limits may speak of, and the share of samples each stands for.
SHOWN_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True)
class Thresholds:
    """A number for every output, and those of single outputs."""

    general: float | None = None
    outputs: Mapping[str, float] = field(default_factory=dict)


_not_negative = number(lambda value: value >= 0, "a number of 0 or more")
_positive = number(lambda value: value > 0, "a number above 0")


def read_thresholds(value: Any) -> Thresholds:
    """`1e-3`, `logits=1e-3`, several of them, or a mapping of outputs (`None` for the others)."""
    if isinstance(value, Mapping):
        numbers = {name: _not_negative(one) for name, one in value.items() if one is not None}
        return Thresholds(numbers.pop(None, None), numbers)
    general, outputs = None, {}
    for one in make_list(value):
        output, equals, figure = str(one).rpartition("=")
        try:
            found = _not_negative(figure)
        except Expected as error:
            raise Expected(f"{error}, or output=number", one) from None
        if equals:
            outputs[output] = found
        else:
            general = found
    return Thresholds(general, outputs)


def parse_gate(text: str) -> tuple[str, float]:
    """`recall=0.8`, `recall[fraud]=0.8`."""
    name, sign, figure = text.rpartition("=")
    try:
        value = number()(figure)
    except Expected:
        sign, value = "", 0.0
    if not sign or not name.strip():
        raise Expected("metric=number, such as recall=0.8 or recall[fraud]=0.8")
    return name.strip(), value


def parse_latency(text: str) -> tuple[str, float]:
    """`p99=20ms`: a percentile and a time; a bare number is milliseconds."""
    name, _, limit = text.partition("=")
    if name not in SHOWN_PERCENTILES:
        raise Expected(f"a percentile and a time, such as p99=20ms; percentiles are {', '.join(SHOWN_PERCENTILES)}")
    bare = limit.replace(".", "", 1).replace("e-", "", 1).isdigit()
    try:
        return name, _positive(limit if bare else seconds(limit) * 1e3)
    except Expected:
        raise Expected("a time above 0, such as p99=20ms") from None


def read_limits(value: Any) -> dict[str, float]:
    """Percentile → milliseconds, of texts or of a mapping."""
    limits: dict[str, float] = named(parse_latency, _positive, '{"p99": 20.0}')(value)
    unknown = next((name for name in limits if name not in SHOWN_PERCENTILES), None)
    if unknown is not None:
        raise Expected(f"percentiles of {', '.join(SHOWN_PERCENTILES)}", unknown)
    return limits


def read_accepted(value: Any) -> dict[str, str]:
    """Codes and the reason for each."""
    if not isinstance(value, Mapping) or not all(isinstance(reason, str) for reason in value.values()):
        raise Expected('codes and reasons, such as { OX202 = "known approximation" }')
    return dict(value)


_gates = named(parse_gate, number(), '{"recall": 0.8}')


@dataclass(frozen=True)
class Tolerance:
    """The contract for one output: |difference| ≤ atol + rtol·|baseline|, and ≤ max_abs."""

    atol: float = 1e-4
    rtol: float = 1e-3
    max_abs: float = 1e-3
    promised: bool = False
    """Whether the user gave it. A promise binds; the defaults yield to rounding."""


@dataclass(frozen=True)
class LatencyPolicy:
    """Limits. Those that are given bind; the others are opinions."""

    good_ms: float = 10.0
    bad_ms: float = 100.0
    max_latency: Mapping[str, float] = option(
        dict, "A limit, on its safe end: p99=20ms (repeatable).", read_limits, repeated=True
    )
    """Percentile → milliseconds."""
    min_speedup: float | None = option(
        None,
        "Least speed-up against PyTorch, on its safe end.",
        number(lambda value: value > 0, "a ratio above 0, such as 1.5"),
        metavar="FLOAT",
    )
    max_memory: int | None = option(None, "Most memory of the session that ships: 2GB.", size)
    regression: float = 1.05
    """How many times slower than the baseline counts as slower, beyond both intervals."""

    @property
    def promised(self) -> bool:
        """Whether a limit was given that only a benchmark can show to hold."""
        return bool(self.max_latency) or self.min_speedup is not None or self.max_memory is not None


@dataclass(frozen=True)
class QualityPolicy:
    """The thresholds for task quality."""

    ADDED: ClassVar = ("max_changed",)

    minimum: Mapping[str, float] = option(
        dict, "Gate: recall=0.8, 'recall[fraud]=0.8' (repeatable).", _gates, name="min", repeated=True
    )
    """Metric (`recall`, `recall[fraud]`) → what the candidate must reach."""
    maximum: Mapping[str, float] = option(
        dict, "Gate for errors: mae=0.5, log_loss=0.3 (repeatable).", _gates, name="max", repeated=True
    )
    """Metric → what the candidate must not exceed: for errors and losses."""
    max_drop: Mapping[str, float] = option(
        dict, "Largest loss against PyTorch: accuracy=0.01 (repeatable).", _gates, repeated=True
    )
    """Metric → by how much the candidate may be worse than the baseline."""
    accuracy: float = 0.8
    default_drop: float = 0.01
    max_changed: float = 0.02
    """Share of decisions that a lower precision may change where no labels say what that costs."""
    rare: float = 0.1
    """Share of the examples below which a class is rare, if it is also below three quarters of an equal share."""
    rare_recall: float = 0.5
    imbalanced: float = 0.9
    beyond: float = 10.0
    """Times what rounding may do to a score from which on a difference is told."""
    most_rare: int = 5
    """Classes that get a finding of their own."""


@dataclass(frozen=True)
class Known:
    """A finding of a baseline: what it says, about what, and how large."""

    code: str
    severity: Severity
    output: str | None = None
    module: str | None = None
    node: str | None = None
    stage: str | None = None
    measure: float | None = None


@dataclass(frozen=True)
class Policy:
    """The thresholds."""

    tolerance: Tolerance = Tolerance()
    outputs: Mapping[str, Tolerance] = field(default_factory=dict)
    noise: float = 10.0
    """How many times farther from the truth than PyTorch onnxruntime may be."""
    accept: Mapping[str, str] = field(default_factory=dict)
    """Code → the reason why findings of that code are accepted."""
    latency: LatencyPolicy = LatencyPolicy()
    known: tuple[Known, ...] = ()
    """What a baseline found: it gates only where it got worse."""
    quality: QualityPolicy = QualityPolicy()

    def __post_init__(self) -> None:
        for code in self.accept:
            if code not in CATALOGUE:
                raise UserError(f"accept {code}: there is no such code; `onnxproof explain --all` lists them")
            if not look_up(code).acceptable:
                raise UserError(f"accept {code}: {look_up(code).unacceptable}, so it cannot be accepted")

    def for_output(self, output: str) -> Tolerance:
        """The contract for one output."""
        return self.outputs.get(output, self.tolerance)


@dataclass(frozen=True)
class Judgement:
    """Tolerances, gates, limits, and what is accepted. What is not given here is the policy's own."""

    atol: Thresholds = option(
        Thresholds(), "Absolute tolerance, or output=number (repeatable). Default 1e-4.", read_thresholds, repeated=True
    )
    rtol: Thresholds = option(
        Thresholds(), "Relative tolerance, or output=number (repeatable). Default 1e-3.", read_thresholds, repeated=True
    )
    max_abs: Thresholds = option(
        Thresholds(), "Largest absolute difference, or output=number. Default 1e-3.", read_thresholds, repeated=True
    )
    noise: float | None = option(
        None, "Times PyTorch's own rounding error that is accepted. Default 10.", _not_negative, metavar="FLOAT"
    )
    accept: Mapping[str, str] = option(
        dict,
        "Accept findings of this code (with --reason).",
        read_accepted,
        repeated=True,
        partner=("reason", "Why: one for each --accept."),
    )
    quality: QualityPolicy = QualityPolicy()
    latency: LatencyPolicy = LatencyPolicy()
