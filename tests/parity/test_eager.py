"""The baseline: what it gives, what it refuses, and that it leaves the module alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from onnxproof.errors import Rejected
from onnxproof.parity.eager import EagerRunner
from onnxproof.subject.assembly import make_subject


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        if x.max() > 5:
            raise ValueError("too large")
        if x.min() < -5:
            raise RuntimeError("[enforce fail] can't allocate memory: 1 TB")
        return {"doubled": 2 * x, "training": torch.tensor(self.training)}


def runner(**options):
    module = Counts().train()
    made = EagerRunner(make_subject(module, (torch.zeros(2),)), **options)
    module.calls.zero_()
    return module, made


def test_outputs_are_named_arrays_of_eval_mode():
    module, eager = runner()
    outputs = eager.run({"x": np.ones(2, np.float32)})
    assert outputs["doubled"].tolist() == [2.0, 2.0]
    assert not outputs["training"]
    assert eager.named
    assert module.training


@pytest.mark.parametrize(("stateful", "left"), [(True, 0.0), (False, 1.0)])
def test_a_stateful_modules_buffers_are_put_back(stateful, left):
    module, eager = runner(stateful=stateful)
    eager.run({"x": np.ones(2, np.float32)})
    assert float(module.calls) == left


@pytest.mark.parametrize(("value", "error"), [(9.0, Rejected), (-9.0, MemoryError)])
def test_a_refusal_and_a_lack_of_memory_differ(value, error):
    with pytest.raises(error):
        runner()[1].run({"x": np.full(2, value, np.float32)})


class Counting(nn.Module):
    """Answers how often it was called."""

    def __init__(self, rebinds: bool) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.rebinds = rebinds

    def forward(self, x):
        if self.rebinds:
            self.calls = self.calls + 1
        else:
            self.calls += 1
        return self.calls


@pytest.mark.parametrize("rebinds", [True, False])
def test_a_forward_that_changes_a_buffer_is_a_first_one_every_time(rebinds):
    runner = EagerRunner(make_subject(Counting(rebinds).eval(), (torch.ones(2),)), stateful=True)
    answers = [runner.run({"x": np.ones(2, "f4")})["output"] for _ in range(3)]
    assert [float(answer) for answer in answers] == [1.0, 1.0, 1.0]
