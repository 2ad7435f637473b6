"""What stages report while they work, typed: the same events in this process and from a child."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, ClassVar

import msgspec

from onnxproof.findings import Finding
from onnxproof.parity.ledger import Ledger
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.blame import Blame
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.codec import read_number
from onnxproof.proof.environment import Environment
from onnxproof.proof.latency import Latency
from onnxproof.proof.quality import Quality
from onnxproof.proof.quantization import Quantization
from onnxproof.proof.rollout import Rollout
from onnxproof.proof.search import Counterexample, Coverage, Search
from onnxproof.proof.subject import SubjectFacts
from onnxproof.proof.trials import Trials


class Event(msgspec.Struct, frozen=True, tag=True):
    """Anything that a stage reports."""

    passing: ClassVar = False
    """Whether it is of no interest when the run is over."""


class Entered(Event, frozen=True):
    """A stage begins, or a step of a case: what to blame if the process dies now."""

    passing: ClassVar = True
    stage: str
    case: str | None = None


class SubjectRead(Event, frozen=True):
    """What is proved, and what the answer depends on besides it."""

    subject: SubjectFacts
    environment: Environment


class Observed(Event, frozen=True):
    """A finding of a stage's own."""

    finding: Finding


class Exported(Event, frozen=True):
    """The file is there."""

    artifact: Artifact


class Lowered(Event, frozen=True):
    """The file was made in a lower precision."""

    quantization: Quantization


class Based(Event, frozen=True):
    """A hash of everything that the cases are about: code, weights, data, the file, the releases."""

    mark: str


class Planned(Event, frozen=True):
    """The cases to be run, which of them are not fair, and how much of the user's data they cover."""

    cases: Sequence[str]
    unfair: Sequence[str]
    coverage: Mapping[str, Coverage]


class Compared(Event, frozen=True):
    """A case was run; the next one is to go on with this account."""

    result: CaseResult
    ledger: Ledger | None = None


class RolledOut(Event, frozen=True):
    """Both sides were run freely, step by step."""

    rollout: Rollout


class Paired(Event, frozen=True):
    """Module's output → graph's output."""

    outputs: Mapping[str, str]


class Paced(Event, frozen=True):
    """Which onnxruntime answers, and how fast it is at a glance."""

    version: str
    p50_ms: float | None


class Blamed(Event, frozen=True):
    """Who is to blame for what happened in a case."""

    case: str
    blame: Blame


class Searched(Event, frozen=True):
    """How far a search is."""

    search: Search


class Tried(Event, frozen=True):
    """What came of trying the pieces of the graph."""

    trials: Trials


class Hit(Event, frozen=True):
    """A search found an input on which the sides part, and wrote it down."""

    case: str
    file: str


class Shrunk(Event, frozen=True):
    """The smallest input that shows a finding."""

    counterexample: Counterexample


class Timed(Event, frozen=True):
    """Times so far."""

    latency: Latency


class ToWeigh(Event, frozen=True):
    """Contenders and sizes whose memory is asked for."""

    contenders: Sequence[str]
    points: Sequence[Mapping[str, Any]]


class Weighed(Event, frozen=True):
    """Peak memory of a contender at each of the sizes."""

    contender: str
    bytes: Sequence[int | None]


class Evaluated(Event, frozen=True):
    """Rows done."""

    passing: ClassVar = True
    done: int
    total: int | None
    rate: float
    left: float | None


class Measured(Event, frozen=True):
    """Task quality."""

    quality: Quality


class AtShard(Event, frozen=True):
    """A worker is at a shard: so many more of its rows are done, or it is written down as a whole."""

    index: int
    rows: int = 0
    done: bool = False


Emit = Callable[[Event], None]
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
    reduce(or_, Event.__subclasses__()), dec_hook=read_number
)


def decode(body: bytes) -> Event:
    """An event out of what a child said."""
    event: Event = _decoder.decode(body)
    return event
