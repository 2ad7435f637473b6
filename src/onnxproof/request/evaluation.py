"""What is asked about a data set, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnxproof.errors import UserError
from onnxproof.request.option import Expected, option
from onnxproof.request.reading import AT_ONCE, each, flag, number, one_of, text, texts, whole, words
from onnxproof.request.specs import Part

TASKS = (
    *(
        "binary",
        "multiclass",
        "multilabel",
        "regression",
        "segmentation",
        "tokens",
        "detection",
        "embedding",
        "ranking",
        "keypoints",
        "generate",
    ),
    "custom",
)
LAYOUTS = ("xyxy", "xywh", "cxcywh")
GOAL_METRICS = ("recall", "precision", "f1", "accuracy", "specificity")


@dataclass(frozen=True)
class Goal:
    """What a threshold is chosen for."""

    text: str
    kind: str
    """`at-least` (metric ≥ value), `max` (of a metric), `cost`."""
    metric: str = ""
    value: float = 0.0
    costs: dict[str, float] = field(default_factory=dict)


def parse_goal(text: str) -> Goal:
    """`recall>=0.95` or `max:f1`."""
    plain = text.replace(" ", "")
    if plain.startswith("max:") and plain[4:] in GOAL_METRICS:
        return Goal(text, "max", plain[4:])
    name, sign, figure = plain.replace("≥", ">=").partition(">=")
    try:
        value = float(figure)
    except ValueError:
        value = -1.0
    if sign and name in ("recall", "precision", "specificity") and 0 <= value <= 1:
        return Goal(text, "at-least", name, value)
    raise Expected(f"recall>=0.95 (or precision, specificity, from 0 to 1), or max:f1 (of {', '.join(GOAL_METRICS)})")


def parse_cost(text: str) -> Goal:
    """`fn=100,fp=1`, also `tp` and `tn`; what is not given costs nothing."""
    costs: dict[str, float] = {}
    for part in text.split(","):
        name, sign, figure = part.strip().partition("=")
        try:
            costs[name] = float(figure)
        except ValueError:
            sign = ""
        if not sign or name not in ("fn", "fp", "tp", "tn"):
            raise Expected("numbers for fn, fp, tp or tn, such as fn=100,fp=1")
    return Goal(f"cost {text}", "cost", costs=costs)


def _read_address(value: object) -> str | None:
    """An address; `--ray` alone is this machine."""
    return "local" if value is True else None if value is False else text(value)


@dataclass(frozen=True)
class EvaluateSettings:
    """How to evaluate."""

    data: str = ""
    part: Part = "all"
    """The rows that are read: those that calibrated a lower precision judge nothing."""
    labels: str | None = option(None, "The field (or file) with the labels. Default: labels, y, label, target.", text)
    """The column with the labels, or a file that holds them; None to look for the usual names."""
    ids: str | None = option(None, "The field with the examples' ids.", text)
    train_data: str | None = option(None, "What the model was trained on: looks for leakage, overfitting, shift.", text)
    task: str | None = option(None, f"{', '.join(TASKS[:-1])} or custom. Default: inferred.", one_of(*TASKS))
    box_layout: str | None = option(
        None, "How the model writes boxes: xyxy, xywh or cxcywh. Default: guessed.", one_of(*LAYOUTS)
    )
    tokens: int = option(64, "Tokens to generate for each prompt.", whole(1), metavar="INTEGER", told=True)
    beams: int = option(
        1, "Continuations that a search keeps; 1 is greedy.", whole(1, AT_ONCE), metavar="INTEGER", told=True
    )
    beside: tuple[str, ...] = option(
        (),
        "Other files of a model that generates: its encoder, the decoder's first step (repeatable).",
        texts,
        repeated=True,
    )
    output: str | None = option(None, "The output with the scores.", text)
    """The output that holds the scores; None for the first one that fits the labels."""
    classes: tuple[str, ...] = option((), "Names in the order of the scores: ok,fraud.", words)
    """Names of the classes in the order of the scores' columns."""
    positive: str | None = option(None, "The class that counts as positive. Default: the second.", text)
    threshold: float | None = option(
        None,
        "Probability from which to decide. Default 0.5.",
        number(lambda value: 0 < value < 1, "a probability between 0 and 1"),
        metavar="FLOAT",
    )
    goals: tuple[Goal, ...] = option(
        (), "Choose a threshold: 'recall>=0.95', max:f1 (repeatable).", each(parse_goal), name="goal", repeated=True
    )
    cost: Goal | None = option(
        None, "Choose the cheapest threshold: fn=100,fp=1.", lambda value: parse_cost(text(value))
    )
    delta: float = option(
        0.01,
        "Accuracies within this are called the same.",
        number(lambda value: 0 < value < 1, "a share between 0 and 1"),
        metavar="FLOAT",
        told=True,
    )
    metrics: tuple[str, ...] = option(
        (), "Your own: file.py:function(labels, scores) -> float (repeatable).", texts, name="metric", repeated=True
    )
    """Custom metrics, as `file.py:function`."""
    preprocess: str | None = option(None, "What prepares raw records for training: file.py:name or file.onnx.", text)
    serve_preprocess: str | None = option(None, "What prepares them in production: compared step by step.", text)
    with_preprocess: bool = flag(False, "Export --preprocess (a torch module) into the same file.")
    batch_size: int | None = option(None, "Rows at once.", whole(1), metavar="INTEGER")
    workers: int | None = option(
        None, "Processes. Default: one, for large data one per core.", whole(1), metavar="INTEGER"
    )
    """Processes; None to choose by the number of rows."""
    ray: str | None = option(
        None, "Run on a Ray cluster; without an address on this machine.", _read_address, metavar="[ADDRESS]"
    )
    """Address of a Ray cluster, `local` for one on this machine; None to do without."""
    resume: bool = flag(True, "Go on where an earlier run ended.", off="--no-resume")
    seed: int = 0
    required: bool = True
    """Whether data without labels are an error; `prove --data` goes on without them."""

    def __post_init__(self) -> None:
        """Preprocessing is in the file or in front of it."""
        if self.with_preprocess and self.preprocess is None:
            raise UserError("--with-preprocess exports the module that --preprocess names: give it, as file.py:name")
        if self.with_preprocess and self.serve_preprocess is not None:
            raise UserError(
                "--with-preprocess puts --preprocess into the file, so that nothing is left for --serve-preprocess: give one of the two"
            )
