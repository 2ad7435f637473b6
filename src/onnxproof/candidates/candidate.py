"""The one seam to whatever computes the other side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from onnxproof.errors import UserError
from onnxproof.findings import Finding
from onnxproof.request.session import SessionSettings
from onnxproof.tensors.arrays import Array, Arrays

Outputs = dict[str, Array]


@dataclass(frozen=True)
class Abilities:
    """What a candidate can do besides answering. Whoever wants more asks here, never for a name."""

    inner_values: bool = False
    """It shows values inside the graph: a model whose outputs are such values gives them."""
    rewrites: bool = False
    """It has optimisation levels, and rewrites that can be switched off one by one."""
    profile: bool = False
    """It tells the time of each node: it is a `Profiling` candidate."""
    binding: bool = False
    """Inputs and outputs can be bound to its own memory once."""
    elsewhere: bool = False
    """It computes in another process or language: what is known about the libraries of this one says nothing about it."""
    timed: bool = False
    """Its calls can be timed from here: its sessions are `TimedSession`s."""


class Session(Protocol):
    """A model that was opened."""

    @property
    def outputs(self) -> Sequence[str]:
        """The graph's names of what it answers."""

    def run(self, inputs: Arrays) -> Outputs:
        """The answer, under the graph's names.

        Raises `Rejected` for an input that it refuses (or that kills it: the next one is answered again) and `MemoryError` where
        memory is short. It does not change its inputs.
        """

    def placement(self) -> Finding | None:
        """A finding where it does not use what was asked for, or not for every node."""

    def close(self) -> None:
        """Let go of what it holds."""


@dataclass(frozen=True)
class Call:
    """A run with everything prepared: nothing is left to time but the computation."""

    run: Callable[[], Any]
    read: Callable[[Any], Outputs]
    """What such a run returned, under the graph's names."""


@runtime_checkable
class TimedSession(Session, Protocol):
    """A session of a candidate whose calls can be timed."""

    def prepare(self, inputs: Arrays, *, bound: bool = False) -> Call:
        """A call on these inputs; `bound` to memory of the runtime's own, where the candidate has that ability."""


@runtime_checkable
class PacedSession(Session, Protocol):
    """A session that times itself, where it runs: a glance, not a benchmark."""

    def pace(self, inputs: Arrays) -> Sequence[float]:
        """Seconds of a few runs on these inputs; raises as `run` does."""


@dataclass(frozen=True)
class NodeTime:
    """The time of one node in one run."""

    node: str
    op: str
    provider: str
    microseconds: float


@dataclass(frozen=True)
class Profiled:
    """What a profiler saw."""

    runs: int
    times: Sequence[NodeTime]
    results: Mapping[str, Sequence[str]]
    """Node of the graph that really ran → the values it makes; nothing where that graph is not known."""


class Candidate(Protocol):
    """Whatever may take the place of the original."""

    name: str
    """As a message calls it."""
    abilities: Abilities
    """What it can do; known before anything is started."""

    def versions(self) -> Mapping[str, str]:
        """What its answers depend on, for the proof's environment."""

    def providers(self) -> Sequence[str]:
        """Execution providers that it has."""

    def open(self, model: Path | bytes, settings: SessionSettings, renamed: Mapping[str, str] | None = None) -> Session:
        """A session; `renamed` has the graph's inputs that are called otherwise in the arrays it will be given.

        Raises `FindingError` where the file is refused and `ProviderError` where a provider is not there.
        """


@runtime_checkable
class Profiling(Protocol):
    """A candidate that tells the time of each node."""

    def profile(
        self,
        model: Path,
        settings: SessionSettings,
        renamed: Mapping[str, str],
        inputs: Arrays,
        *,
        runs: tuple[int, int],
        seconds: float,
        results: bool,
    ) -> Profiled:
        """Run between so many times, within about so many seconds; with `results`, which values the nodes make."""


def require_timed(candidate: Candidate) -> None:
    """Raise where times would be those of something else than the candidate."""
    if not candidate.abilities.timed:
        raise UserError(
            f"--runtime {candidate.name} cannot be timed from here: it computes in another process, and a call would last as long as its "
            "arrays take to get there. Leave --runtime out of `bench`, or install onnxproof in that environment and run it there"
        )


def open_timed(
    candidate: Candidate, model: Path | bytes, settings: SessionSettings, renamed: Mapping[str, str]
) -> TimedSession:
    """A session whose calls can be timed; raises a `UserError` where the candidate has none."""
    require_timed(candidate)
    session = candidate.open(model, settings, renamed)
    assert isinstance(session, TimedSession)  # that is what the ability promises
    return session
