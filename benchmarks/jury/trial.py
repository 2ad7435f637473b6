"""One model proved in a process of its own, forked from a warm one: a crash costs a model, and no export sees another's state."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.jury.program import Program, load

LIMIT = 240.0
"""Seconds after which a model is given up."""
Record = dict[str, Any]


def warm_up() -> None:
    """Import what every child needs. Not onnxruntime: importing it starts a thread, and threads do not survive a fork."""
    import torch

    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    import onnxproof.pipeline.preload
    import onnxproof.pipeline.preload_exporter  # noqa: F401


def in_children(orders: Iterable[Any], work: Callable[[Any], Record], parallel: int) -> Iterator[tuple[Any, Record]]:
    """What `work` answers for each order, in whatever order; one that dies or hangs answers `{"died": …}`."""
    waiting, living = iter(orders), {}
    while True:
        while len(living) < parallel and (order := next(waiting, None)) is not None:
            read, process = _fork(order, work)
            living[read] = (order, process, bytearray())
        if not living:
            return
        ready, _, _ = select.select(list(living), [], [], LIMIT)
        for read in ready or list(living):
            order, process, heard = living[read]
            chunk = os.read(read, 1 << 16) if ready else b""
            if chunk:
                heard += chunk
                continue
            del living[read]
            yield order, _end(read, process, bytes(heard), hung=not ready)


def _fork(order: Any, work: Callable[[Any], Record]) -> tuple[int, int]:
    read, write = os.pipe()
    process = os.fork()
    if process:
        os.close(write)
        return read, process
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (int(LIMIT), int(LIMIT)))
        try:
            answer = work(order)
        except Exception:
            answer = {"raised": traceback.format_exc()[-1500:]}
        with os.fdopen(write, "w") as pipe:
            json.dump(answer, pipe)
        code = 0
    finally:
        os._exit(code)


def _end(read: int, process: int, heard: bytes, *, hung: bool) -> Record:
    os.close(read)
    if hung:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    try:
        answer: Record = json.loads(heard)
    except ValueError:
        how = "hung" if hung else f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {status}"
        answer = {"died": how}
    return answer


def prove(program: Program, keep: Path | None = None, onnx: Path | None = None) -> Record:
    """The verdict with defaults, and what it stands on; a file that ships is kept."""
    import onnxproof

    options = dict(program.options)
    if program.free != ("batch",):
        options["dynamic"] = program.dynamic()
    with tempfile.TemporaryDirectory(prefix="juror-") as folder:
        source = Path(folder) / "juror.py"
        source.write_text(program.write(), encoding="utf-8")
        model, inputs = load(source.read_text(encoding="utf-8"), str(source))
        options["out"] = Path(folder)
        if onnx is not None:
            options.pop("exporter", None)
            options["onnx"] = onnx
        proof = onnxproof.prove(model, inputs, **options)
        if keep is not None and proof.artifact is not None and proof.verdict == "ship":
            shutil.copyfile(proof.artifact.path, keep)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "verdict": str(proof.verdict),
        "findings": [
            {
                "code": f.code,
                "severity": str(f.severity),
                "stage": f.stage,
                "message": f.message[:400],
                "text": _cite(program, f.where.line),
                **({"node": f.where.node} if f.where.node else {}),
            }
            for f in proof.findings
        ],
        **({"blamed": _list_blamed(proof)} if proof.blame or onnx is not None else {}),
        "cases": len(proof.cases),
        "operations": len(program.statements),
        "seconds": round(used.ru_utime + used.ru_stime, 2),
        **({"options": dict(program.options)} if program.options else {}),
    }


def _list_blamed(proof: Any) -> list[list[str]]:
    """Every culprit's node and the rest of its piece, the worst first; pieces that differ on trial last."""
    blamed = [[one.node, *one.piece] for blame in proof.blame.values() for one in blame.culprits]
    latent = proof.trials.latent if proof.trials is not None else ()
    return blamed + [[one.first, one.last] for one in latent]


def _cite(program: Program, line: int | None) -> str:
    """The line of the model that a finding points at."""
    lines = program.write().splitlines()
    return lines[line - 1].strip() if line and line <= len(lines) else ""


def say(text: str) -> None:
    """Progress, for whoever watches."""
    print(text, file=sys.stderr, flush=True)
