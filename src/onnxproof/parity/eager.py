"""PyTorch as the user runs it: the baseline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from onnxproof.errors import Rejected
from onnxproof.subject.mode import enter_eval, preserve_buffers
from onnxproof.subject.structure import flatten, is_named
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays
from onnxproof.tensors.conversion import to_numpy, to_torch


class EagerRunner:
    """The user's module in eager, eval, inference mode. Its buffers are put back if a forward changes them."""

    def __init__(self, subject: Subject, *, stateful: bool = False) -> None:
        self._subject = subject
        self._stateful = stateful
        self._remembers = False
        self.named = False
        """Whether the module itself names its outputs, as seen in the last run."""

    @contextmanager
    def remember(self) -> Iterator[None]:
        """What the module keeps goes on from run to run, and is as it was after."""
        with preserve_buffers(self._subject.module):
            self._remembers = True
            try:
                yield
            finally:
                self._remembers = False

    def _at_rest(self, module: torch.nn.Module) -> AbstractContextManager[None]:
        return preserve_buffers(module) if self._stateful and not self._remembers else nullcontext()

    def run(self, inputs: Arrays) -> dict[str, Array]:
        leaves = [to_torch(inputs[name]) for name in self._subject.inputs.tensors]
        module = self._subject.module
        try:
            # Buffers are copied only where a forward is known to change them: it would cost every case.
            with enter_eval(module), self._at_rest(module), torch.no_grad():
                value = self._subject.call(leaves)
                # Copied here: an output may be a buffer that is about to be put back.
                outputs = {name: to_numpy(tensor) for name, tensor in flatten(value).tensors.items()}
        except (MemoryError, Rejected):
            raise
        except Exception as error:
            # torch's allocator raises a RuntimeError, which would look like a refusal of the input.
            if "can't allocate memory" in str(error):
                raise MemoryError(str(error)) from error
            raise Rejected(f"{type(error).__name__}: {error}") from error
        self.named = is_named(value)
        return outputs
