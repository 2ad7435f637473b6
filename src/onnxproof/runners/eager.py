"""PyTorch as the user runs it: the baseline."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from onnxproof.artifact.wrapper import eval_mode
from onnxproof.runners.base import Arrays, Rejected
from onnxproof.runners.tensors import to_numpy, to_torch
from onnxproof.structure import flatten
from onnxproof.subject import Subject


class EagerRunner:
    """The user's module in eager, eval, inference mode. Its buffers are put back if a forward changes them."""

    name = "pytorch"

    def __init__(self, subject: Subject, *, stateful: bool = False) -> None:
        self._subject = subject
        self._names = list(subject.inputs.tensors)
        self._state = {n: b.detach().clone() for n, b in subject.module.named_buffers()} if stateful else {}

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        leaves = [to_torch(inputs[name]) for name in self._names]
        try:
            with eval_mode(self._subject.module), torch.inference_mode():
                outputs = flatten(self._subject.call(leaves))
        except MemoryError:
            raise
        except Exception as error:
            if "can't allocate memory" in str(error):
                raise MemoryError(str(error)) from error
            raise Rejected(f"{type(error).__name__}: {error}") from error
        finally:
            self._restore()
        return {name: to_numpy(tensor) for name, tensor in outputs.tensors.items()}

    def _restore(self) -> None:
        for name, buffer in self._subject.module.named_buffers():
            if name in self._state and buffer.shape == self._state[name].shape:
                buffer.data.copy_(self._state[name])
