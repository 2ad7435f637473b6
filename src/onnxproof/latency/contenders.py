"""Who is timed: PyTorch eager, torch.compile, sessions of the candidate. Each prepares a call without arguments."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import torch

from onnxproof.candidates.candidate import Candidate, open_timed
from onnxproof.errors import FindingError, Rejected, first_line
from onnxproof.proof.latency import BASELINE
from onnxproof.request.session import SessionSettings
from onnxproof.subject.structure import flatten
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays
from onnxproof.tensors.conversion import to_numpy, to_torch


class Unavailable(Exception):
    """A contender cannot take part; the message says why."""


class Contender(Protocol):
    """Something that answers the same inputs."""

    name: str
    load_ms: float | None
    first_ms: float | None
    """Of the last preparation: the first run at that size."""
    threads: int | None

    def prepare(self, inputs: Arrays) -> Callable[[], Any]:
        """A call without arguments that runs the model on these inputs."""

    def around(self) -> AbstractContextManager[Any]:
        """What has to be in force while calls are made."""

    def outputs(self, raw: Any) -> dict[str, Array]:
        """The outputs of one call as named arrays, under the names of its own side."""


class EagerContender:
    """The user's module, in eval and inference mode, called as the user calls it."""

    name = BASELINE

    def __init__(self, subject: Subject, threads: int | None, load_ms: float | None = None) -> None:
        self._subject = subject
        self._module: Callable[..., Any] = subject.module
        self.threads = threads
        self.load_ms = load_ms
        self.first_ms: float | None = None

    def prepare(self, inputs: Arrays) -> Callable[[], Any]:
        leaves = [to_torch(inputs[name]) for name in self._subject.inputs.tensors]
        before = [leaf.clone() for leaf in leaves]
        rebuild, module = self._subject.inputs.rebuild, self._module
        args, kwargs = rebuild(leaves)
        with self.around():
            began = time.perf_counter()
            try:
                module(*args, **kwargs)
            except MemoryError:
                raise
            except Exception as error:
                raise Rejected(f"{type(error).__name__}: {error}") from error
            self.first_ms = (time.perf_counter() - began) * 1e3
        # Not torch.equal, to which a NaN has changed.
        kept = all(torch.allclose(*pair, rtol=0, atol=0, equal_nan=True) for pair in zip(before, leaves, strict=True))
        held = [tensor.shape for tensor in flatten((args, kwargs)).tensors.values()]
        if kept and held == [tensor.shape for tensor in flatten(rebuild(leaves)).tensors.values()]:
            return lambda: module(*args, **kwargs)

        def on_copies() -> Any:
            """The module writes to its inputs, or puts more into a cache: each call gets fresh ones."""
            args, kwargs = rebuild(leaves if kept else [leaf.clone() for leaf in before])
            return module(*args, **kwargs)

        return on_copies

    def around(self) -> AbstractContextManager[Any]:
        return torch.inference_mode()  # eval mode is the benchmark's: it is the module's, not the thread's

    def outputs(self, raw: Any) -> dict[str, Array]:
        return {name: to_numpy(tensor) for name, tensor in flatten(raw).tensors.items()}


class CompiledContender(EagerContender):
    """torch.compile of the same module; compiled anew for each size, as a user who cares for speed would have it."""

    name = "torch.compile"

    def __init__(self, subject: Subject, threads: int | None) -> None:
        compiler = os.environ.get("CXX") or "g++"
        if shutil.which(compiler) is None and shutil.which("clang++") is None:
            raise Unavailable(f"torch.compile needs a C++ compiler and there is none ({compiler} was looked for)")
        super().__init__(subject, threads)

    def prepare(self, inputs: Arrays) -> Callable[[], Any]:
        # After a few recompilations torch runs a function in eager mode instead.
        torch.compiler.reset()
        self._module = torch.compile(self._subject.module, dynamic=False)
        try:
            return super().prepare(inputs)
        except Rejected as error:
            raise Unavailable(f"torch.compile cannot compile this module: {first_line(error)}") from error


class SessionContender:
    """A session of the candidate, fed with arrays as a server would feed it; `bound` to memory once, what a call saves is the copying."""

    def __init__(
        self,
        name: str,
        candidate: Candidate,
        path: Path,
        settings: SessionSettings,
        renamed: Mapping[str, str],
        *,
        bound: bool = False,
    ) -> None:
        self.name = name
        self.threads = settings.threads
        self._bound = bound
        began = time.perf_counter()
        try:
            self.session = open_timed(candidate, path, settings, renamed)
        except FindingError as error:
            raise Unavailable(str(error)) from error
        self.load_ms: float | None = (time.perf_counter() - began) * 1e3
        self.first_ms: float | None = None

    def prepare(self, inputs: Arrays) -> Callable[[], Any]:
        began = time.perf_counter()
        self.session.run(inputs)
        self.first_ms = (time.perf_counter() - began) * 1e3
        call = self.session.prepare(inputs, bound=self._bound)
        self._read = call.read
        return call.run

    def around(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def outputs(self, raw: Any) -> dict[str, Array]:
        return self._read(raw)
