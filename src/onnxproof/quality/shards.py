"""A data set in pieces: what a process must know to run one, and where a finished one is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from onnxproof.findings import Finding, found
from onnxproof.proof.artifact import Artifact
from onnxproof.quality.accumulate import Shard
from onnxproof.quality.boxrun import BoxRun
from onnxproof.quality.engine import Engine
from onnxproof.quality.placerun import PlaceRun
from onnxproof.quality.rows import Rows
from onnxproof.quality.shardrun import RowRun, ShardRun
from onnxproof.quality.task import Plan
from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.request import Request
from onnxproof.subject.subject import Subject

# Processes that may die on one piece before it is given up.
ATTEMPTS = 3


def make_run(engine: Engine, plan: Plan, start: int) -> ShardRun:
    """What runs a shard, by what the answers are."""
    kind = PlaceRun if plan.placed else BoxRun if plan.boxes is not None else RowRun
    return kind(engine, plan, start)


@dataclass(frozen=True)
class Piece:
    """Rows to be run."""

    index: int
    start: int
    stop: int

    def lost(self) -> Finding:
        """Rows that nobody could evaluate."""
        return found(
            "OX514",
            f"rows {self.start} to {self.stop - 1} were not evaluated: {ATTEMPTS} processes died on them",
            evidence={"start": self.start, "stop": self.stop},
        )


@dataclass(frozen=True)
class Work:
    """What a process needs to know to run pieces; it travels to processes and clusters."""

    request: Request
    artifact: Artifact
    plan: Plan
    stateful: bool
    mark: str
    """The fingerprint of data, model and settings."""
    threads: int | None = None

    @property
    def settings(self) -> EvaluateSettings:
        """What is asked about the data."""
        assert self.request.evaluate is not None  # a request without it has no work here
        return self.request.evaluate

    def engine(self, subject: Subject) -> Engine:
        """The two sides, with this process's share of the threads."""
        session = self.request.verify.session
        if self.threads is not None:
            import torch

            torch.set_num_threads(self.threads)
            session = replace(session, threads=session.threads or self.threads)
        return Engine(subject, self.artifact, session, self.settings, stateful=self.stateful)

    def run(self, engine: Engine, rows: Rows, piece: Piece, tell: Callable[[int], None]) -> Shard:
        """One piece of a source that can be read anywhere."""
        batches = rows.batches(piece.start, engine.batch, piece.stop)
        return make_run(engine, self.plan, piece.start).run(batches, None, tell)

    def file(self, index: int) -> Path:
        """Where a finished piece is kept."""
        return Path(self.request.out) / "evaluate" / f"shard-{index:04d}.npz"

    def kept(self, index: int) -> Shard | None:
        """A piece that an earlier run finished, where it may be used."""
        return Shard.load(self.file(index), self.mark) if self.settings.resume else None
