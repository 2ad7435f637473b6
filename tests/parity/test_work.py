"""Work is counted, and so the same on every machine."""

from __future__ import annotations

import torch

from onnxproof.parity.float64 import DoubleRunner
from onnxproof.parity.work import CALM, RATE, UNKNOWN, Work
from onnxproof.subject.assembly import make_subject
from onnxproof.tensors.conversion import to_numpy


def test_a_forward_is_counted_once():
    module = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).eval()
    subject = make_subject(module, (torch.randn(10, 32),))
    double = DoubleRunner(subject)
    assert double.work is UNKNOWN
    inputs = {name: to_numpy(tensor) for name, tensor in subject.inputs.tensors.items()}
    double.run(inputs)
    first = double.work
    products = 2 * 10 * (32 * 64 + 64 * 8)
    assert products <= first.operations <= 1.2 * products
    assert first.elements == 320
    double.sample(inputs, 1)
    double.run({name: array[:1] for name, array in inputs.items()})
    assert double.work == first


def test_larger_inputs_are_more_work_and_smaller_ones_never_less_than_counted():
    work = Work(10, RATE, 100)
    assert work.forward(50) == work.forward(100) < work.forward(200)
    assert work.case(100) > work.forward(100)
    assert work.sample(100) > work.forward(100)


def test_a_small_forward_has_one_thread_and_a_large_one_all():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        small, large = Work(1, 0, 1), Work(1, 10 * CALM * RATE, 1)
        with small.threads(1):
            assert torch.get_num_threads() == 1
        with large.threads(1):
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_many_small_calls_have_one_thread_however_long_they_take_together():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        # A recurrent network: a thousand steps, each too small to be shared.
        with Work(1000, 1000 * 1e-5 * RATE, 1).threads(1):
            assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
