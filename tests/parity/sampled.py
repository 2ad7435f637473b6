"""Legal roundings of small modules, for the tests of what operations lose and of how errors are injected."""

from __future__ import annotations

import numpy as np
from torch import nn

from onnxproof.parity.float64 import DoubleRunner
from onnxproof.subject.assembly import make_subject
from onnxproof.tensors.conversion import to_numpy


def arrays(x):
    return {"x": to_numpy(x)}


def spread(module, x, count=8):
    double = DoubleRunner(make_subject(module, (x,)))
    truth = double.run(arrays(x))["output"]
    samples = [double.sample(arrays(x), seed)["output"] for seed in range(count)]
    return truth, np.max([np.abs(s - truth) for s in samples], axis=0)


class Op(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)
