"""The rows of a data set through both sides: here, in processes, or on a cluster."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from onnxproof.data.opening import MEMORY, open_source
from onnxproof.data.source import fingerprint_files
from onnxproof.errors import FindingError, InputError, NotWritten
from onnxproof.findings import Finding
from onnxproof.pipeline.events import AtShard, Emit, Evaluated, Observed, decode
from onnxproof.pipeline.executors import fork_children
from onnxproof.pipeline.loading import fingerprint_weights, load_anew
from onnxproof.process.lanes import Lane, run_lanes
from onnxproof.process.orders import Order
from onnxproof.quality.accumulate import Scores, Shard, merge
from onnxproof.quality.engine import Engine
from onnxproof.quality.rows import Batch, Rows
from onnxproof.quality.shards import ATTEMPTS, Piece, Work, make_run
from onnxproof.quality.task import Plan
from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.request import Request
from onnxproof.system import count_cores

SHARD_ROWS = 65_536
MOST_SHARDS = 256
# Rows from which several processes are started without being asked.
PROCESSES_FROM = 200_000
MOST_PROCESSES = 8
TELL_EVERY = 0.2


def collect_scores(
    request: Request, engine: Engine, rows: Rows, plan: Plan, stateful: bool, emit: Emit
) -> tuple[Scores, list[Finding], tuple[int, str]]:
    """All shards, from earlier runs or fresh; what was lost; and how many processes worked, and where."""
    settings, source = engine.settings, rows.source
    per_shard = _choose_shard_size(source.rows, engine.batch)
    mark = _fingerprint_work(request, engine, plan, source.fingerprint, per_shard)
    work = Work(_make_absolute(request), engine.artifact, plan, stateful, mark)
    progress = _Progress(emit, source.rows)
    workers = _choose_workers(request, settings, source.rows, source.sequential)
    lost: list[Finding] = []
    if settings.ray is not None:
        from onnxproof.integrations.ray import run_on_ray

        size = per_shard * engine.batch
        shards = run_on_ray(work, _cut_pieces(source.rows, size), rows, size, progress.add, load_anew)
        where = "ray"
    elif workers > 1:
        pieces = _cut_pieces(source.rows, per_shard * engine.batch)
        shards, lost = _run_in_processes(work, pieces, workers, progress)
        where = "processes"
    else:
        shards = list(_run_here(work, engine, rows, per_shard, progress))
        where = "local"
    progress.add(0, last=True)
    return merge(shards, plan), lost, (workers if where != "local" else 1, where)


def _choose_shard_size(rows: int | None, batch: int) -> int:
    wanted = SHARD_ROWS if rows is None else max(SHARD_ROWS, -(-rows // MOST_SHARDS))
    return max(1, wanted // batch)


def _cut_pieces(rows: int | None, size: int) -> list[Piece]:
    starts = range(0, rows or 0, size)
    return [Piece(i, start, min(start + size, rows or 0)) for i, start in enumerate(starts)]


def _choose_workers(request: Request, settings: EvaluateSettings, rows: int | None, sequential: bool) -> int:
    # Rows that only come one after the other cannot be dealt out, nor objects of this process be sent.
    if sequential or request.held is not None or settings.data.startswith(MEMORY):
        return 1
    if settings.workers is not None:
        if settings.workers < 1:
            raise InputError(f"--workers {settings.workers}: expected 1 or more")
        return settings.workers
    return min(count_cores(), MOST_PROCESSES) if (rows or 0) >= PROCESSES_FROM else 1


def _fingerprint_work(request: Request, engine: Engine, plan: Plan, data: str, per_shard: int) -> str:
    """Changes with anything that changes what a shard holds."""
    settings = engine.settings
    steps = [text for text in (settings.preprocess, settings.serve_preprocess, settings.labels) if text]
    files = [text.rpartition(":")[0] if ".py:" in text else text for text in steps]
    parts = [
        data,
        engine.artifact.sha256,
        fingerprint_weights(engine.subject),
        repr(plan),
        repr(request.verify.session),
        f"{engine.batch} {per_shard} {settings.train_data is not None} {settings.ids} {settings.labels}",
        f"{settings.preprocess} {settings.serve_preprocess} {settings.with_preprocess}",
        *(fingerprint_files(Path(path)) for path in files if Path(path).is_file()),
    ]
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _make_absolute(request: Request) -> Request:
    """Paths that are right in any process's folder."""

    def path(text: str | None) -> str | None:
        if text is None:
            return None
        file, colon, name = text.rpartition(":")
        if colon and file.endswith(".py"):
            return f"{Path(file).resolve()}:{name}"
        return str(Path(text).resolve()) if Path(text).exists() else text

    settings = request.evaluate
    assert settings is not None  # asked only with it
    settings = replace(
        settings,
        data=str(path(settings.data)),
        labels=path(settings.labels),
        preprocess=path(settings.preprocess),
        serve_preprocess=path(settings.serve_preprocess),
    )
    return replace(request, target=path(request.target), out=str(Path(request.out).resolve()), evaluate=settings)


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
            self._emit(Evaluated(self._done, self._total, rate, left))


def _run_here(work: Work, engine: Engine, rows: Rows, per_shard: int, progress: _Progress) -> Iterator[Shard]:
    """Shard after shard in this process. Rows are read in one go from the first shard that is missing."""
    size, index = per_shard * engine.batch, 0
    while (kept := work.kept(index)) is not None:
        progress.add(kept.rows, kept=True)
        yield kept
        index += 1
        # Only the last one is smaller: there are no rows after it.
        if kept.rows < size:
            return
    if rows.source.rows is not None and index * size >= max(rows.source.rows, 1):
        return
    batches: Iterator[Batch] = rows.batches(index * size, engine.batch)
    while True:
        shard = make_run(engine, work.plan, index * size).run(batches, per_shard, progress.add)
        if shard.rows:
            with suppress(NotWritten):  # it is here: only who goes on later has to run it again
                shard.save(work.file(index), work.mark)
            yield shard
        if shard.rows < size:
            return
        index += 1


def run_shards(emit: Emit, work: Work, pieces: Sequence[Piece]) -> None:
    """The order of a worker process: run pieces and write them down."""
    engine = work.engine(load_anew(work.request))
    rows = engine.open(open_source(work.settings.data, part=work.settings.part))
    try:
        for piece in pieces:
            emit(AtShard(piece.index))
            shard = work.run(engine, rows, piece, lambda n: emit(AtShard(piece.index, n)))  # noqa: B023  # called at once
            shard.save(work.file(piece.index), work.mark)
            emit(AtShard(piece.index, done=True))
    except FindingError as error:
        emit(Observed(error.finding))


def _run_in_processes(
    work: Work, pieces: Sequence[Piece], workers: int, progress: _Progress
) -> tuple[list[Shard], list[Finding]]:
    """Pieces on several processes of this machine. A death costs its piece only, and that is tried again."""
    kept = {piece.index: shard for piece in pieces if (shard := work.kept(piece.index)) is not None}
    for shard in kept.values():
        progress.add(shard.rows, kept=True)
    todo = [piece for piece in pieces if piece.index not in kept]
    # Else every process would take all cores, and they would wait for each other.
    work = replace(work, threads=max(1, (os.cpu_count() or 1) // workers))
    lanes = [_make_lane(work, todo[i::workers], progress) for i in range(min(workers, len(todo)))]
    with fork_children(work.request.out, exporting=work.request.onnx is None):
        run_lanes(lanes)
    lost = [piece for lane in lanes for piece in lane.lost]
    fresh = [Shard.load(work.file(p.index), work.mark) for p in todo if p not in lost]
    return [*kept.values(), *(shard for shard in fresh if shard is not None)], [piece.lost() for piece in lost]


def _make_lane(work: Work, pieces: Sequence[Piece], progress: _Progress) -> Lane[Piece]:
    by_index = {piece.index: piece for piece in pieces}

    def receive(body: bytes, lane: Lane[Piece]) -> None:
        match decode(body):
            case AtShard(index, rows, done):
                lane.at = by_index[index]
                lane.done += [lane.at] * done
                progress.add(rows)
            case Observed(finding):
                lane.error = FindingError(finding)

    def order(left: Sequence[Piece]) -> Order:
        return Order("onnxproof.pipeline.sharding:run_shards", {"work": work, "pieces": list(left)})

    return Lane(order, receive, work.request.silence(), ATTEMPTS, list(pieces))
