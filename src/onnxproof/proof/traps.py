"""Facts about the data that make a good result worth less than it looks: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from onnxproof.proof.codec import Number, Sparse
from onnxproof.proof.search import Coverage


@dataclass(frozen=True)
class InputFacts:
    """One input of the model over all rows of the data."""

    OMITTED: ClassVar = ("features", "constant", "constant_count", "declared", "channels", "image", "data_dtype")

    rows: int
    nonfinite_rows: int
    nonfinite: int
    low: float | None
    high: float | None
    rank: int
    dtype: str
    example_low: float | None = None
    example_high: float | None = None
    features: int | None = None
    constant: tuple[int, ...] | None = None
    """Features that never change, the first fifty."""
    constant_count: int | None = None
    declared: tuple[float, float] | None = None
    channels: tuple[Number, ...] | None = None
    """Means of the channels of images."""
    image: bool | None = None
    data_dtype: str | None = None
    """What the data themselves are, before they are fed."""


@dataclass(frozen=True)
class Leak:
    """The feature of an input that tells most about the label, and how much the next one tells."""

    input: str
    feature: int
    strength: float
    next: float


@dataclass(frozen=True)
class Duplicates(Sparse):
    """Test rows (or ids) that the training data have too."""

    count: int
    of: int
    rows: tuple[int, ...]
    """The first of them."""
    train_twins: float | None = None
    """Share of the training rows that have a twin among themselves."""


@dataclass(frozen=True)
class Ring:
    """Test rows nearer to a training row than this share of the usual distance."""

    radius: float
    count: int
    of: int
    train_share: float
    """The share of training rows that are as near to another one."""


@dataclass(frozen=True)
class Near:
    """Test rows that almost are training rows."""

    usual: float
    by_radius: tuple[Ring, ...]
    rows: tuple[int, ...]
    ratios: tuple[Number, ...]
    probes: int


@dataclass(frozen=True)
class Gap(Sparse):
    """How well the candidate does on the data it was trained on."""

    metric: str
    train: Number
    rows: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Shift:
    """The feature of an input whose distribution differs most between training and test data."""

    input: str
    feature: int
    distance: float
    critical: float
    """What chance may do."""
    features: int
    """How many differ by more than that."""
    of: int
    train_magnitude: float


@dataclass(frozen=True)
class TrainingFacts:
    """What the training data tell about the test data."""

    train_rows: int
    duplicates: Duplicates
    near: Near | None = None
    ids: Duplicates | None = None
    gap: Gap | None = None
    shift: tuple[Shift, ...] = ()
    channels: Mapping[str, tuple[Number, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Traps(Sparse):
    """Everything that was looked for."""

    inputs: Mapping[str, InputFacts] = field(default_factory=dict)
    leaks: tuple[Leak, ...] = ()
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    training: TrainingFacts | None = None


@dataclass(frozen=True)
class PreprocessingFacts(Sparse):
    """Where two pipelines part on the same records; what is not known is left out."""

    same: bool
    steps: Mapping[str, tuple[str, ...]]
    """`training` and `serving` → the names of the steps."""
    step: int | None = None
    """The first step in which they part."""
    names: Mapping[str, str] | None = None
    field: str | int | None = None
    what: str | None = None
    hint: str | None = None
    """A simple change that would explain all of it."""
    rows_differing: int | None = None
    compared: int | None = None
    first_row: int | None = None
    max_abs: float | None = None
    mean_abs: float | None = None
    refused: str | None = None
    """Why the model cannot take what serving makes."""
    served_difference: Mapping[str, Number] | None = None
    flips: int | None = None
    """Decisions that the other preprocessing changes."""
    of: int | None = None
    rows: tuple[int, ...] | None = None
    accuracy: Mapping[str, Number] | None = None
