"""What is asked about a data set, as one value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from onnxproof.errors import UserError

TASKS = ("binary", "multiclass", "multilabel", "regression", "custom")


@dataclass(frozen=True)
class EvaluateSettings:
    """How to evaluate."""

    data: str
    labels: str | None = None
    """The column with the labels, or a file that holds them; None to look for the usual names."""
    ids: str | None = None
    train_data: str | None = None
    task: str | None = None
    output: str | None = None
    """The output that holds the scores; None for the first one that fits the labels."""
    classes: tuple[str, ...] = ()
    """Names of the classes in the order of the scores' columns."""
    positive: str | None = None
    threshold: float | None = None
    goals: tuple[str, ...] = ()
    cost: str | None = None
    delta: float = 0.01
    metrics: tuple[str, ...] = ()
    """Custom metrics, as `file.py:function`."""
    preprocess: str | None = None
    serve_preprocess: str | None = None
    with_preprocess: bool = False
    batch_size: int | None = None
    workers: int | None = None
    """Processes; None to choose by the number of rows."""
    ray: str | None = None
    """Address of a Ray cluster, `local` for one on this machine; None to do without."""
    resume: bool = True
    seed: int = 0
    required: bool = True
    """Whether data without labels are an error; `prove --data` goes on without them."""


@dataclass(frozen=True)
class Goal:
    """What a threshold is chosen for."""

    text: str
    kind: str
    """`at-least` (metric ≥ value), `max` (of a metric), `cost`."""
    metric: str = ""
    value: float = 0.0
    costs: dict[str, float] = field(default_factory=dict)


GOAL_METRICS = ("recall", "precision", "f1", "accuracy", "specificity")


def parse_goal(text: str) -> Goal:
    """`recall>=0.95` or `max:f1`."""
    plain = text.replace(" ", "")
    if plain.startswith("max:") and plain[4:] in GOAL_METRICS:
        return Goal(text, "max", plain[4:])
    name, sign, number = plain.replace("≥", ">=").partition(">=")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if sign and name in ("recall", "precision", "specificity") and 0 <= value <= 1:
        return Goal(text, "at-least", name, value)
    raise UserError(
        f"--goal {text!r}: expected recall>=0.95 (or precision, specificity, from 0 to 1), or max:f1 "
        f"(of {', '.join(GOAL_METRICS)})"
    )


def parse_cost(text: str) -> Goal:
    """`fn=100,fp=1`, also `tp` and `tn`; what is not given costs nothing."""
    costs: dict[str, float] = {}
    for part in text.split(","):
        name, sign, number = part.strip().partition("=")
        try:
            costs[name] = float(number)
        except ValueError:
            sign = ""
        if not sign or name not in ("fn", "fp", "tp", "tn"):
            raise UserError(f"--cost {text!r}: expected numbers for fn, fp, tp or tn, such as fn=100,fp=1")
    return Goal(f"cost {text}", "cost", costs=costs)


def parse_gates(texts: Iterable[str], flag: str) -> dict[str, float]:
    """`recall=0.8`, `recall[fraud]=0.8` (repeatable) → metric → number."""
    gates: dict[str, float] = {}
    for text in texts:
        name, sign, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            sign, value = "", 0.0
        if not sign or not name.strip() or value != value:
            raise UserError(f"--{flag} {text!r}: expected metric=number, such as recall=0.8 or recall[fraud]=0.8")
        gates[name.strip()] = value
    return gates


def checked(settings: EvaluateSettings) -> EvaluateSettings:
    """The same settings, if they are ones: wrong words are told before any work."""
    for text in settings.goals:
        parse_goal(text)
    if settings.cost is not None:
        parse_cost(settings.cost)
    if settings.task is not None and settings.task not in TASKS:
        raise UserError(f"--task {settings.task!r}: expected one of {', '.join(TASKS)}")
    if settings.threshold is not None and not 0 < settings.threshold < 1:
        raise UserError(f"--threshold {settings.threshold:g}: expected a probability between 0 and 1")
    if not 0 < settings.delta < 1:
        raise UserError(f"--delta {settings.delta:g}: expected a share between 0 and 1")
    if settings.with_preprocess and settings.preprocess is None:
        raise UserError("--with-preprocess exports the module that --preprocess names: give it, as file.py:name")
    if settings.with_preprocess and settings.serve_preprocess is not None:
        raise UserError(
            "--with-preprocess puts --preprocess into the file, so that nothing is left for --serve-preprocess: give one of the two"
        )
    return settings
