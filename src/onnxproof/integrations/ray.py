"""Shards on a Ray cluster. Paths (TARGET, the artifact, the data) must be the same on every node."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

from onnxproof.data.arrays import ArraySource
from onnxproof.data.opening import open_source
from onnxproof.data.source import Source, count_rows
from onnxproof.errors import FindingError, InputError, NotWritten, UserError, first_line
from onnxproof.files import find_temporary, make_scratch
from onnxproof.findings import Finding
from onnxproof.process.group import Group
from onnxproof.quality.accumulate import Shard
from onnxproof.quality.engine import Engine
from onnxproof.quality.rows import Rows
from onnxproof.quality.shards import Piece, Work
from onnxproof.request.request import Request
from onnxproof.subject.subject import Subject

# Times that a shard is run again because its worker or node was lost.
RETRIES = 5
# Characters of a temporary folder in which Ray's sockets have their place: their names may have 107.
DEEPEST = 19
# Workers would have groups of their own, and outlive ours.
TOGETHER = {"RAY_process_group_cleanup_enabled": "0"}
# Shards of a stream that are under way at once.
WAITING = 64

# The two sides in a worker process: built for its first shard, used for all others.
_engines: dict[str, tuple[Engine, Rows | None]] = {}


def run_on_ray(
    work: Work,
    pieces: Sequence[Piece],
    rows: Rows,
    size: int,
    tell: Callable[[int], None],
    load: Callable[[Request], Subject],
) -> list[Shard]:
    """All shards, in any order; those of earlier runs are not run again. `load` makes the subject in a worker."""
    shards: list[Shard] = []
    waiting: dict[Any, int] = {}
    with _connect(str(work.settings.ray)) as ray:
        task = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(_run)
        orders = _stream(rows.source, size) if rows.source.sequential else ((piece, None) for piece in pieces)
        for piece, table in orders:
            kept = work.kept(piece.index)
            if kept is not None:
                shards.append(kept)
                tell(kept.rows)
                continue
            while len(waiting) >= WAITING and table is not None:
                shards.append(_await_next(ray, waiting, work, tell))
            waiting[task.remote(work, piece, table, load)] = piece.index
        while waiting:
            shards.append(_await_next(ray, waiting, work, tell))
    return shards


@contextmanager
def _connect(address: str) -> Iterator[Any]:
    """Ray, with a cluster; a local one is started, and ends here or with this process, whoever ended it."""
    try:
        import ray
    except ImportError:
        raise InputError("--ray needs the package ray: pip install 'onnxproof[ray]'") from None
    with ExitStack() as stack:
        try:
            _knock(address)
            _begin(ray, address, stack)
        except Exception as error:  # a cluster that does not come up is a plain Exception of Ray's
            raise InputError(f"--ray {address}: no cluster answers there: {first_line(error, 200)}") from error
        yield ray


def _begin(ray: Any, address: str, stack: ExitStack) -> None:
    settings = {"ignore_reinit_error": True, "log_to_driver": False, "configure_logging": False}
    if address != "local":
        stack.callback(ray.shutdown)
        ray.init(address=address, **settings)
        return
    folder = stack.enter_context(make_scratch(find_temporary(DEEPEST)))
    group = Group(folder)
    stack.callback(group.end)
    stack.callback(ray.shutdown)  # comes first: who is asked ends in order
    os.environ.update(TOGETHER)
    with group.joined():
        ray.init(include_dashboard=False, _temp_dir=str(folder), **settings)


def _knock(address: str) -> None:
    """Ray itself tries for minutes to reach an address where nobody is."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def _stream(source: Source, size: int) -> Iterator[tuple[Piece, Any]]:
    """Shards of a source that only this process can read: their rows travel with them."""
    start = 0
    for index, table in enumerate(source.read(0, None, size)):
        yield Piece(index, start, start + count_rows(table)), table
        start += count_rows(table)


def _await_next(ray: Any, waiting: dict[Any, int], work: Work, tell: Callable[[int], None]) -> Shard:
    """The next shard that is done, written down."""
    done, _ = ray.wait(list(waiting), num_returns=1)
    index = waiting.pop(done[0])
    try:
        shard: Shard | Finding = ray.get(done[0])
    except ray.exceptions.RayTaskError as error:
        cause = error.cause if isinstance(error.cause, Exception) else error
        raise cause from error
    except ray.exceptions.RayError as error:
        raise UserError(f"--ray: shard {index} was lost {RETRIES} times: {first_line(error, 200)}") from error
    if isinstance(shard, Finding):
        raise FindingError(shard)
    with suppress(NotWritten):  # it is here: only who goes on later has to run it again
        shard.save(work.file(index), work.mark)
    tell(shard.rows)
    return shard


def _run(work: Work, piece: Piece, table: Any, load: Callable[[Request], Subject]) -> Shard | Finding:
    """In a worker: one shard, with one thread, as a local process would."""
    try:
        if work.mark not in _engines:
            _engines.clear()
            engine = replace(work, threads=1).engine(load(work.request))
            _engines[work.mark] = (
                engine,
                engine.open(open_source(work.settings.data, part=work.settings.part)) if table is None else None,
            )
        engine, rows = _engines[work.mark]
        if rows is None:  # they came with the order
            rows = engine.open(ArraySource(table, f"--data {work.settings.data}", "", piece.start))
        return work.run(engine, rows, piece, lambda n: None)
    except FindingError as error:
        return error.finding  # an exception of ours would lose it on the way
