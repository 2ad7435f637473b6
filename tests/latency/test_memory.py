"""How far the peak grows."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from onnxproof.errors import Rejected
from onnxproof.latency import memory
from onnxproof.subject.assembly import make_subject

MEGABYTE = 1_000_000


class Holds:
    """A contender that takes as much memory as its input says."""

    def prepare(self, inputs):
        count = int(inputs["megabytes"])
        if not count:
            raise Rejected("nothing to do")
        return lambda: np.ones(count * MEGABYTE, np.uint8).sum()

    def around(self):
        return nullcontext()


def test_peaks_grow_with_the_inputs_and_a_refusal_has_none():
    sizes = [{"megabytes": np.array(n)} for n in (0, 20, 200)]
    none, small, large = memory.weigh(Holds, sizes, None)
    assert none is None
    assert small < large
    assert 150 * MEGABYTE < large < 400 * MEGABYTE


def test_weights_that_are_there_already_are_added_once(monkeypatch):
    layer = nn.Linear(10, 10, bias=False)
    module = nn.Sequential(layer, layer)
    subject = make_subject(module, (torch.zeros(1, 10),))
    assert memory.weigh_parameters(subject) == 400
    monkeypatch.setattr(memory, "read_peak", lambda: 0)
    made = SimpleNamespace(prepare=lambda inputs: lambda: None, around=nullcontext)
    assert memory.weigh(lambda: made, [{}], subject) == [400]


def test_without_the_systems_file_the_process_is_asked(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "STATUS", tmp_path / "absent")
    monkeypatch.setattr(memory, "CLEAR", tmp_path / "absent" / "too")
    memory.reset_peak()
    assert memory.read_memory() == memory.read_peak() > MEGABYTE
