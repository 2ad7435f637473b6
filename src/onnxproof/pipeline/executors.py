"""Who carries a stage out: this process, or supervised children, where a death costs a case and not the user's process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from onnxproof.errors import NotWritten, OnnxproofError, TargetError, UserError
from onnxproof.pipeline.collected import Collected
from onnxproof.pipeline.events import decode
from onnxproof.pipeline.stages import Run, Stage
from onnxproof.process.orders import Order
from onnxproof.process.supervisor import Child, End, InternalError, prepare, supervise
from onnxproof.request.request import Request
from onnxproof.system import SUPERVISES

# Seconds that a child has in any case until it comes to its first case: a limit for cases says nothing about imports and weights.
SETTING_UP = 60.0
WORKSHOP = "onnxproof.pipeline.workshop:Workshop"
PRELOADED = "onnxproof.pipeline.preload"
PRELOADED_TO_EXPORT = "onnxproof.pipeline.preload_exporter"


class NotPortable(OnnxproofError):
    """A module in memory that cannot be sent to a child."""


class Executor(Protocol):
    """Carries out one order of a stage; how it ended, where it did not end as it should."""

    @property
    def tolerated(self) -> tuple[type[Exception], ...]:
        """What an optional stage may raise without ending the run."""

    def carry_out(self, stage: Stage, arguments: Mapping[str, Any], collected: Collected) -> End | None: ...


# Hears which stage is about to begin.
Announce = Callable[[Stage], None]


def run_stages(run: Run, stages: Sequence[Stage], executor: Executor, announce: Announce) -> None:
    """The wanted stages in order."""
    for stage in stages:
        if stage.wanted(run):
            announce(stage)
            run.collected.seconds[stage.name] = _run_or_recall(stage, run, executor)


def _run_or_recall(stage: Stage, run: Run, executor: Executor) -> float:
    """Have a stage done that an earlier run did not end, or hear again what it said; how long it took."""
    journal, began = run.collected.journal, time.perf_counter()
    if not stage.remembered:
        run_stage(stage, run, executor)
        return time.perf_counter() - began
    known = journal.recall(stage.name)
    lost = bool(stage.leaves_to and run.folder) and not journal.recall(stage.leaves_to).whole
    whole = known.whole and not lost
    for event in known.events if whole or stage.goes_on else ():
        run.collected.take_in(event)
    if whole and known.seconds is not None:
        return known.seconds
    journal.begin(stage.name, goes_on=stage.goes_on)
    run_stage(stage, run, executor)
    seconds = time.perf_counter() - began
    journal.end(seconds)
    return seconds


def run_stage(stage: Stage, run: Run, executor: Executor) -> None:
    """One stage to its end, with as many children as it may have."""
    for attempt in range(stage.attempts):
        ends = [_carry_out(stage, order, run, executor) for order in stage.orders(run)]
        again = [stage.died(run, end, attempt) for end in ends if end is not None]
        if again:
            run.collected.journal.note_death()
        if not any(again):
            return


def _carry_out(stage: Stage, order: Mapping[str, Any], run: Run, executor: Executor) -> End | None:
    try:
        return executor.carry_out(stage, order, run.collected)
    except executor.tolerated as error:
        if not stage.optional:
            raise
        stage.failed(run, error)
        run.collected.journal.note_death()
        if isinstance(error, NotWritten):
            run.collected.progress.warning(str(error))
        return None


@dataclass
class Here:
    """Everything in this process: a crash of any stage is a crash of this process."""

    shop: Any
    """The workshop of all stages."""
    tolerated = (Exception,)

    def carry_out(self, stage: Stage, arguments: Mapping[str, Any], collected: Collected) -> End | None:
        try:
            Order(stage.work, arguments, keeps=WORKSHOP).carry_out(collected.receive, {WORKSHOP: self.shop})
        except (SystemExit, GeneratorExit) as error:  # its exit code would be taken for the verdict
            raise TargetError(f"the module ends the process in stage {stage.name}: {error!r}") from error
        return None


@dataclass
class Children:
    """Children forked from a process that has imported what they need. What the cases need is loaded by one, which stands by."""

    limit: Callable[[bool], float]
    """Seconds of silence after which a child counts as hung; whether it exports."""
    tolerated = (InternalError, UserError)
    _standing: Child | None = None

    def carry_out(self, stage: Stage, arguments: Mapping[str, Any], collected: Collected) -> End | None:
        # A death before the first word must not be blamed on the case that the child before was at.
        collected.at = (None, "start")
        allowed = self.limit(stage.name == "export")
        if stage.shares and (self._standing is None or not self._standing.alive):
            self._standing = Child()
        return supervise(
            Order(stage.work, arguments, stage.fresh, WORKSHOP),
            lambda body: collected.receive(decode(body)),
            lambda: allowed if collected.at[0] is not None else max(allowed, SETTING_UP),
            self._standing if stage.shares else None,
        )

    def dismiss(self) -> None:
        """Let the child go that stands by."""
        if self._standing is not None and self._standing.alive:
            self._standing.end()


# What is done with a run and whoever carries its stages out.
Work = Callable[[Run, Executor], None]


def run_here(run: Run, work: Work) -> None:
    """All work in this process."""
    from onnxproof.pipeline.loading import load_subject
    from onnxproof.pipeline.workshop import Workshop

    work(run, Here(Workshop(load_subject(run.request))))


def run_in_children(run: Run, work: Work) -> None:
    """All work in supervised children."""
    if not SUPERVISES:
        raise NotPortable("this system cannot supervise children")
    with (
        fork_children(run.request.out, exporting=run.request.onnx is None) as scratch,
        tempfile.TemporaryDirectory(dir=scratch) as folder,
    ):
        # The server imports while the module is written.
        request = _make_portable(run.request, Path(folder))
        verify = replace(request.verify, isolated=True)
        run = replace(run, request=replace(request, verify=verify), folder=folder)
        children = Children(lambda exporting: request.silence(exporting=exporting))
        try:
            work(run, children)
        finally:
            children.dismiss()


def fork_children(out: str, *, exporting: bool = True) -> AbstractContextManager[Path]:
    """Children are forked from one process; it is worth starting before anything else is done, and once for many runs."""
    return prepare([PRELOADED, *[PRELOADED_TO_EXPORT] * exporting], out)


def _make_portable(request: Request, folder: Path) -> Request:
    """A module in memory goes through a file."""
    if request.held is None:
        return request
    import torch

    path = folder / "subject.pt"
    try:
        torch.save(request.held, path)
    except Exception as error:
        raise NotPortable(f"the module cannot be pickled ({type(error).__name__}: {error})") from error
    return replace(request, held=None, pickled=str(path))
