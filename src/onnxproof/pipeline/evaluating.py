"""Evaluation as a stage: plan, run the shards here, in processes or on a cluster, put the results together."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxproof.errors import FindingError, InputError, UserError
from onnxproof.findings import Finding, found
from onnxproof.lints.refusal import refusal
from onnxproof.pipeline.stages import fingerprint, load_subject
from onnxproof.process.supervisor import Child, nursery
from onnxproof.proof.artifact import Artifact
from onnxproof.quality.accumulate import SIDES, Scores, Shard, merge
from onnxproof.quality.engine import Engine
from onnxproof.quality.preprocessing import COMPARED_ROWS
from onnxproof.quality.rows import Batch, Rows
from onnxproof.quality.shardrun import ShardRun
from onnxproof.quality.sources import MEMORY, file_fingerprint, open_source
from onnxproof.quality.task import Plan, contradicts
from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.request import Job, SessionSettings
from onnxproof.subject.subject import Subject

Emit = Callable[[Mapping[str, Any]], None]
SHARD_ROWS = 65_536
MOST_SHARDS = 256
PROCESSES_FROM = 200_000
"""Rows from which several processes are started without being asked."""
MOST_PROCESSES = 8
ATTEMPTS = 3
"""Processes that may die on one shard before it is given up."""
TELL_EVERY = 0.2


@dataclass(frozen=True)
class Work:
    """What a process needs to know to run shards; it travels to processes and clusters."""

    job: Job
    artifact: Artifact
    plan: Plan
    stateful: bool
    mark: str
    """The fingerprint of data, model and settings."""
    threads: int | None = None

    @property
    def settings(self) -> EvaluateSettings:
        """What is asked about the data."""
        assert self.job.evaluate is not None  # a job without it has no work here
        return self.job.evaluate

    def engine(self, subject: Subject | None = None) -> Engine:
        """The two sides, with this process's share of the threads."""
        session = self.job.verify.session
        if self.threads is not None:
            import torch

            torch.set_num_threads(self.threads)
            session = replace(session, threads=session.threads or self.threads)
        return make_engine(self.job, self.artifact, session, self.stateful, subject)

    def file(self, index: int) -> Path:
        """Where a finished shard is kept."""
        return Path(self.job.out) / "evaluate" / f"shard-{index:04d}.npz"


@dataclass(frozen=True)
class Piece:
    """A shard to be run."""

    index: int
    start: int
    stop: int


def make_engine(
    job: Job, artifact: Artifact, session: SessionSettings, stateful: bool, subject: Subject | None = None
) -> Engine:
    """The two sides of a job."""
    assert job.evaluate is not None  # asked only with it
    return Engine(subject or load_subject(job), artifact, session, job.evaluate, stateful=stateful)


def run_evaluate(job: Job, artifact: Artifact, emit: Emit, *, stateful: bool, subject: Subject | None = None) -> None:
    """Evaluate the data set; emits progress, findings and the quality."""
    emit({"event": "stage", "case": None, "stage": "evaluate"})
    settings = job.evaluate
    assert settings is not None  # the conductor asks only then
    try:
        engine = make_engine(job, artifact, job.verify.session, stateful, subject)
        placement = engine.session.placement()
        if placement is not None:
            emit({"event": "finding", "finding": placement.to_json()})
        _evaluate(job, artifact, settings, engine, stateful, emit)
        for finding in engine.findings:
            emit({"event": "finding", "finding": finding.to_json()})
    except FindingError as error:
        emit({"event": "finding", "finding": refusal(error.finding, artifact, job.verify.session).to_json()})
    except UserError as error:
        if settings.required:
            raise
        # `prove --data` was asked for parity: labels that nobody understands do not stop it.
        finding = found("OX515", f"the labels of the data were not evaluated: {error}")
        emit({"event": "finding", "finding": finding.to_json()})


def _evaluate(
    job: Job, artifact: Artifact, settings: EvaluateSettings, engine: Engine, stateful: bool, emit: Emit
) -> None:
    rows = engine.open(open_source(settings.data))
    if not rows.labelled:
        if not settings.required:
            return
        raise InputError(
            f"--data {settings.data} has no labels: expected a field labels, y, label or target, or --labels NAME; "
            f"it has {', '.join(rows.source.fields)}"
        )
    preprocessing = _compare_preprocessing(engine, rows)
    plan = engine.plan(rows, rows.all_labels())
    scores, lost, shared = _scores(job, artifact, engine, rows, plan, stateful, emit)
    if any(s.scores is not None and contradicts(s.scores, plan) for n, s in scores.sides.items() if n == "baseline"):
        plan = replace(plan, scale="logit")  # the first rows looked like probabilities, later ones are none
        scores, lost, shared = _scores(job, artifact, engine, rows, plan, stateful, emit)
    if not scores.n:
        raise InputError("--data has no rows")
    for finding in lost:
        emit({"event": "finding", "finding": finding.to_json()})
    emit({"event": "stage", "case": None, "stage": "measure"})
    quality = _measured(job, artifact, settings, engine, rows, scores, preprocessing, shared)
    emit({"event": "quality", "quality": quality})


def _measured(
    job: Job,
    artifact: Artifact,
    settings: EvaluateSettings,
    engine: Engine,
    rows: Rows,
    scores: Scores,
    preprocessing: dict[str, Any] | None,
    shared: tuple[int, str],
) -> dict[str, Any]:
    from onnxproof.proof.proof import finite
    from onnxproof.quality.assemble import assemble
    from onnxproof.quality.traps import Training, find_leaks, look_at_inputs

    traps: dict[str, Any] = {
        "inputs": look_at_inputs(scores, engine.examples, engine.subject.ranges),
        "leaks": find_leaks(scores),
        "coverage": _coverage(job, artifact, engine, scores),
    }
    if len(set(rows.dtypes.values())) == 1:
        for entry in traps["inputs"].values():
            entry["data_dtype"] = next(iter(rows.dtypes.values()))
    if settings.train_data is not None:
        train = engine.open(open_source(settings.train_data, "--train-data"))
        try:
            traps["training"] = Training(engine, train, scores).compare()
        except FindingError as error:
            raise FindingError(replace(error.finding, message=f"--train-data: {error.finding.message}")) from error
    if preprocessing is not None and "served" in scores.columns:
        preprocessing |= _served(scores)
    quality = assemble(
        scores,
        settings,
        traps=traps,
        preprocessing=preprocessing,
        rows=rows.source.rows,
        workers=shared[0],
        where=shared[1],
    )
    clean: dict[str, Any] = finite(quality.to_json())
    return clean


def _served(scores: Scores) -> dict[str, Any]:
    """Decisions that the other preprocessing flips, and what they cost."""
    import numpy as np

    from onnxproof.quality.flips import changed

    served, candidate = scores.columns["served"], scores.sides["candidate"].decisions
    if not scores.plan.classification:
        apart = np.abs(served.astype(np.float64) - candidate.astype(np.float64))
        return {"served_difference": {"max_abs": float(apart.max()), "mean_abs": float(apart.mean())}}
    flipped = changed(served, candidate)
    right = {name: ~changed(d, scores.labels) for name, d in (("served", served), ("candidate", candidate))}
    return {
        "flips": int(flipped.sum()),
        "of": len(flipped),
        "rows": np.flatnonzero(flipped)[:5].tolist(),
        "accuracy": {name: float(values.mean()) for name, values in right.items()},
    }


def _compare_preprocessing(engine: Engine, rows: Rows) -> dict[str, Any] | None:
    """Where the two pipelines part; one whose result has another shape cannot be run any further."""
    if not engine.preprocessing.compares:
        return None
    table = next(rows.source.read(0, COMPARED_ROWS, COMPARED_ROWS), None)
    if table is None:
        return None
    told = engine.preprocessing.compare(rows.raw(table))
    try:
        served = engine.preprocessing.serving(rows.raw({n: a[:2] for n, a in table.items()}))
        if served is not None:
            engine.to_inputs(served)
    except (FindingError, UserError) as error:
        engine.preprocessing.drop_serving()
        told["refused"] = str(error)
    return told


def _coverage(job: Job, artifact: Artifact, engine: Engine, scores: Scores) -> dict[str, Any]:
    """How much of the data lies where the generated parity cases are; per input."""
    from onnxproof.cases.coverage import cover, spread
    from onnxproof.cases.supply import Supply

    if sum(a.size for a in engine.examples.values()) > 200_000:
        return {}  # making the cases would cost more than the answer is worth
    try:
        supply = Supply(engine.subject, artifact, replace(job.verify, data=None, counterexamples=None))
        planned = [c for c in supply.plan() if c.fair and c.profile != "kept"]
        made = [supply.make_inputs(case) for case in planned[:40]]
    except (UserError, ValueError):
        return {}  # a subject for which no case can be made; `prove` says why
    return {
        d.name: cover(scores.columns[f"sample/{d.name}"], spread(inputs[d.name] for inputs in made))
        for d in supply.domains
        if d.is_float and d.shape and f"sample/{d.name}" in scores.columns
    }


# --- shards -------------------------------------------------------------------------------------------------------


def _scores(
    job: Job, artifact: Artifact, engine: Engine, rows: Rows, plan: Plan, stateful: bool, emit: Emit
) -> tuple[Scores, list[Finding], tuple[int, str]]:
    """All shards, from earlier runs or fresh; what was lost; and how many processes worked, and where."""
    settings, source = engine.settings, rows.source
    per_shard = _shard_batches(source.rows, engine.batch)
    mark = _mark(job, artifact, engine, plan, source.fingerprint(), per_shard)
    work = Work(_absolute(job), artifact, plan, stateful, mark)
    progress = _Progress(emit, source.rows)
    workers = _workers(job, settings, source.rows, source.sequential)
    lost: list[Finding] = []
    if settings.ray is not None:
        from onnxproof.integrations.ray import run_on_ray

        shards = run_on_ray(
            work, _pieces(source.rows, per_shard * engine.batch), rows, per_shard * engine.batch, progress.add
        )
        where = "ray"
    elif workers > 1:
        pieces = _pieces(source.rows, per_shard * engine.batch)
        shards, lost = _in_processes(work, pieces, workers, progress)
        where = "processes"
    else:
        shards = list(_here(work, engine, rows, per_shard, progress))
        where = "local"
    progress.add(0, last=True)
    return merge(shards, plan), lost, (workers if where != "local" else 1, where)


def _shard_batches(rows: int | None, batch: int) -> int:
    wanted = SHARD_ROWS if rows is None else max(SHARD_ROWS, -(-rows // MOST_SHARDS))
    return max(1, wanted // batch)


def _pieces(rows: int | None, size: int) -> list[Piece]:
    starts = range(0, rows or 0, size)
    return [Piece(i, start, min(start + size, rows or 0)) for i, start in enumerate(starts)]


def _workers(job: Job, settings: EvaluateSettings, rows: int | None, sequential: bool) -> int:
    if sequential or job.memory is not None or settings.data.startswith(MEMORY):
        return 1
    if settings.workers is not None:
        if settings.workers < 1:
            raise InputError(f"--workers {settings.workers}: expected 1 or more")
        return settings.workers
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_PROCESSES) if (rows or 0) >= PROCESSES_FROM else 1


def _mark(job: Job, artifact: Artifact, engine: Engine, plan: Plan, data: str, per_shard: int) -> str:
    """Changes with anything that changes what a shard holds."""
    settings = engine.settings
    scripts = [text.rpartition(":")[0] for text in (settings.preprocess, settings.serve_preprocess) if text]
    parts = [
        data,
        artifact.sha256,
        fingerprint(engine.subject),
        repr(plan),
        repr(job.verify.session),
        f"{engine.batch} {per_shard} {settings.train_data is not None} {settings.ids} {settings.labels}",
        f"{settings.preprocess} {settings.serve_preprocess} {settings.with_preprocess}",
        *(file_fingerprint(Path(path)) for path in scripts if Path(path).is_file()),
    ]
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _absolute(job: Job) -> Job:
    """Paths that are right in any process's folder."""

    def path(text: str | None) -> str | None:
        if text is None:
            return None
        file, colon, name = text.rpartition(":")
        if colon and file.endswith(".py"):
            return f"{Path(file).resolve()}:{name}"
        return str(Path(text).resolve()) if Path(text).exists() else text

    settings = job.evaluate
    assert settings is not None  # asked only with it
    settings = replace(
        settings,
        data=str(path(settings.data)),
        labels=path(settings.labels),
        preprocess=path(settings.preprocess),
        serve_preprocess=path(settings.serve_preprocess),
    )
    return replace(job, target=path(job.target), out=str(Path(job.out).resolve()), evaluate=settings)


class _Progress:
    """Rows done, told now and then with the rate and the time left."""

    def __init__(self, emit: Emit, total: int | None) -> None:
        self._emit, self._total = emit, total
        self._began = self._told = time.perf_counter()
        self._done = self._fresh = 0
        self._lock = threading.Lock()

    def add(self, rows: int, *, last: bool = False, kept: bool = False) -> None:
        """Some more rows; `kept` ones come from an earlier run and say nothing about the rate."""
        with self._lock:
            self._done += rows
            self._fresh += 0 if kept else rows
            now = time.perf_counter()
            if not last and now - self._told < TELL_EVERY:
                return
            self._told = now
            rate = self._fresh / max(now - self._began, 1e-9)
            left = (self._total - self._done) / rate if self._total and rate else None
            self._emit({"event": "evaluated", "done": self._done, "total": self._total, "rate": rate, "left": left})


def _here(work: Work, engine: Engine, rows: Rows, per_shard: int, progress: _Progress) -> Iterator[Shard]:
    """Shard after shard in this process. Rows are read in one go from the first shard that is missing."""
    size, index = per_shard * engine.batch, 0
    while work.settings.resume:
        kept = Shard.load(work.file(index), work.mark)
        if kept is None:
            break
        progress.add(kept.rows, kept=True)
        yield kept
        index += 1
        if kept.rows < size:
            return
    if rows.source.rows is not None and index * size >= max(rows.source.rows, 1):
        return
    batches: Iterator[Batch] = rows.batches(index * size, engine.batch)
    while True:
        shard = ShardRun(engine, work.plan, index * size).run(batches, per_shard, progress.add)
        if shard.rows:
            shard.save(work.file(index), work.mark)
            yield shard
        if shard.rows < size:
            return
        index += 1


def run_piece(work: Work, engine: Engine, rows: Rows, piece: Piece, tell: Callable[[int], None]) -> Shard:
    """One shard of a source that can be read anywhere."""
    return ShardRun(engine, work.plan, piece.start).run(rows.batches(piece.start, engine.batch, piece.stop), None, tell)


# --- processes ----------------------------------------------------------------------------------------------------


def run_shards(work: Work, pieces: Sequence[Piece], emit: Emit) -> None:
    """The order of a worker process: run shards and write them down."""
    engine = work.engine()
    rows = engine.open(open_source(work.settings.data))
    try:
        for piece in pieces:
            emit({"event": "begin", "index": piece.index})
            shard = run_piece(work, engine, rows, piece, lambda n: emit({"event": "rows", "rows": n}))
            shard.save(work.file(piece.index), work.mark)
            emit({"event": "shard", "index": piece.index})
    except FindingError as error:
        emit({"event": "finding", "finding": error.finding.to_json()})


class _Lane:
    """One process after the other, working through some shards."""

    def __init__(self, work: Work, pieces: Sequence[Piece], progress: _Progress) -> None:
        self._work, self._left, self._progress = work, list(pieces), progress
        self.deaths: dict[int, int] = {}
        self.lost: list[Piece] = []
        self.error: Exception | None = None

    def run(self) -> None:
        """Until every shard is done or given up."""
        try:
            while self._left and self.error is None:
                self._one_child()
        except Exception as error:  # told by the thread that waits
            self.error = error

    def _one_child(self) -> None:
        child = Child({"stage": "evaluate-shards", "work": self._work, "pieces": self._left})
        at: int | None = None
        done: set[int] = set()
        try:
            for event in child.events(lambda: self._work.job.case_timeout):
                kind = event["event"]
                if kind == "begin":
                    at = event["index"]
                elif kind == "rows":
                    self._progress.add(event["rows"])
                elif kind == "shard":
                    done.add(event["index"])
                elif kind == "finding":
                    self.error = FindingError(Finding.from_json(event["finding"]))
                elif kind == "error":
                    self.error = _raised(event)
            child.end()
        finally:
            child.stop()
        self._left = [piece for piece in self._left if piece.index not in done]
        if self._left and self.error is None:
            self._count_death(at if at is not None and at not in done else self._left[0].index)

    def _count_death(self, index: int) -> None:
        self.deaths[index] = self.deaths.get(index, 0) + 1
        if self.deaths[index] >= ATTEMPTS:
            self.lost += [piece for piece in self._left if piece.index == index]
            self._left = [piece for piece in self._left if piece.index != index]


def _raised(event: Mapping[str, Any]) -> Exception:
    from onnxproof import errors

    if event["kind"] == "user":
        kind: type[Exception] = getattr(errors, event["type"], UserError)
        return kind(event["message"])
    return RuntimeError(f"{event['message']}\n{event.get('traceback', '')}")


def _in_processes(
    work: Work, pieces: Sequence[Piece], workers: int, progress: _Progress
) -> tuple[list[Shard], list[Finding]]:
    """Shards on several processes of this machine. A death costs its shard only, and that is tried again."""
    resume = work.settings.resume
    kept = {
        p.index: shard for p in pieces if resume and (shard := Shard.load(work.file(p.index), work.mark)) is not None
    }
    for shard in kept.values():
        progress.add(shard.rows, kept=True)
    todo = [piece for piece in pieces if piece.index not in kept]
    cores = os.cpu_count() or 1
    work = replace(work, threads=max(1, cores // workers))
    lanes = [_Lane(work, todo[i::workers], progress) for i in range(min(workers, len(todo)))]
    threads = [threading.Thread(target=lane.run) for lane in lanes]
    with nursery(exporting=False):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for lane in lanes:
        if lane.error is not None:
            raise lane.error
    lost = [piece for lane in lanes for piece in lane.lost]
    fresh = [Shard.load(work.file(p.index), work.mark) for p in todo if p not in lost]
    return [*kept.values(), *(shard for shard in fresh if shard is not None)], [lost_rows(p) for p in lost]


def lost_rows(piece: Piece) -> Finding:
    """Rows that nobody could evaluate."""
    return found(
        "OX514",
        f"rows {piece.start} to {piece.stop - 1} were not evaluated: {ATTEMPTS} processes died on them",
        evidence={"start": piece.start, "stop": piece.stop},
    )


__all__ = ["SIDES", "Piece", "Work", "lost_rows", "run_evaluate", "run_piece", "run_shards"]
