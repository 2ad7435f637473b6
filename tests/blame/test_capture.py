"""The captured program, and every value it computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from onnxproof.blame.capture import capture, compute_truth, find_nonfinite_call, trace_outputs
from onnxproof.parity.float64 import Unavailable
from onnxproof.subject.assembly import make_subject


class Ratio(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("by", torch.tensor([3.0, 0.0]))

    def forward(self, x):
        return torch.relu(x) / self.by.clamp(min=0)


@pytest.fixture(scope="module")
def captured():
    subject = make_subject(Ratio().eval(), (torch.ones(2, 2),))
    return subject, capture(subject)


def test_values_are_true_ones_and_come_from_a_line(captured):
    subject, program = captured
    x = np.float32([[1, 1], [-1, 2]])
    values = compute_truth(program, subject, {"x": x}, torch.float32, {})
    (output,) = program.outputs
    assert values[output].dtype == np.float64
    assert values[output][0, 0] == 1 / 3
    assert values["relu"].tolist() == [[1, 1], [0, 2]]
    assert program.origins["relu"].text == "return torch.relu(x) / self.by.clamp(min=0)"
    assert program.origins["relu"].file.endswith("test_capture.py")


def test_the_first_call_that_is_not_finite_is_named(captured):
    subject, program = captured
    assert find_nonfinite_call(program, subject, {"x": np.ones((2, 2), np.float32)}).startswith("div")
    finite = make_subject(torch.nn.Linear(2, 2).eval(), (torch.ones(2, 2),))
    assert find_nonfinite_call(capture(finite), finite, {"input": np.ones((2, 2), np.float32)}) is None


def test_what_the_program_cannot_take_is_unavailable(captured):
    subject, program = captured
    with pytest.raises(Unavailable):
        compute_truth(program, subject, {"x": np.ones((2, 5), np.float32)}, torch.float32, {})


def test_tracing_freezes_a_branch():
    class Branch(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x

    subject = make_subject(Branch().eval(), (torch.ones(2, 2),))
    (frozen,) = trace_outputs(subject, {"x": -np.ones((2, 2), np.float32)})
    assert frozen.tolist() == [[-2, -2], [-2, -2]]


def test_a_program_that_is_fixed_to_other_sizes_writes_nowhere_else():
    """A captured LSTM holds states of the example's batch, and oneDNN's kernel trusts them: it wrote beyond and killed the process."""

    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = torch.nn.LSTM(4, 3, batch_first=True, bidirectional=True)

        def forward(self, x):
            return self.mix(x)[0] / 0

    subject = make_subject(Recurrent().eval(), (torch.ones(2, 5, 4),), dynamic={})
    program = capture(subject)
    assert find_nonfinite_call(program, subject, {"x": np.ones((2, 5, 4), np.float32)}).startswith("div")
    enabled = torch._C._get_mkldnn_enabled()
    for _ in range(20):
        assert find_nonfinite_call(program, subject, {"x": np.ones((64, 5, 4), np.float32)}) is None
    assert torch._C._get_mkldnn_enabled() == enabled


def test_a_trace_that_froze_a_state_writes_nowhere_else():
    class Frozen(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = torch.nn.LSTM(4, 3, batch_first=True, bidirectional=True)

        def forward(self, x):
            state = torch.zeros(2, int(x.shape[0]), 3)
            return self.mix(x, (state, state))[0]

    subject = make_subject(Frozen().eval(), (torch.ones(2, 5, 4),))
    for _ in range(20):
        assert trace_outputs(subject, {"x": np.ones((64, 5, 4), np.float32)}) is None


class Spectrum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(x).abs()


def test_a_complex_value_is_its_two_parts_as_in_the_graph():
    subject = make_subject(Spectrum().eval(), (torch.randn(2, 8),))
    values = compute_truth(capture(subject), subject, {"x": np.ones((2, 8), np.float32)}, torch.float32, {})
    assert {value.shape for value in values.values() if value.ndim == 3} == {(2, 5, 2)}
    assert not any(value.dtype.kind == "c" for value in values.values())
