"""PyTorch as the user runs it: the baseline."""

from __future__ import annotations

import torch

from onnxproof.errors import Rejected
from onnxproof.subject.mode import Rest, enter_eval
from onnxproof.subject.structure import flatten, is_named
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays
from onnxproof.tensors.conversion import to_numpy, to_torch


class EagerRunner:
    """The user's module in eager, eval, inference mode. Its buffers are put back if a forward changes them."""

    def __init__(self, subject: Subject, *, stateful: bool = False) -> None:
        self._subject = subject
        # Buffers are copied only where a forward is known to change them: it would cost every case.
        self.rest = Rest(subject.module, needed=stateful)
        self.named = False
        """Whether the module itself names its outputs, as seen in the last run."""

    def run(self, inputs: Arrays) -> dict[str, Array]:
        leaves = [to_torch(inputs[name]) for name in self._subject.inputs.tensors]
        module = self._subject.module
        try:
            with enter_eval(module), self.rest.after_run(), torch.no_grad():
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
