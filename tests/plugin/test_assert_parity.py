"""`assert_parity`, with and without pytest."""

from __future__ import annotations

import pytest
from torch import nn

from onnxproof.testing import ParityError, assert_parity


def test_a_good_model_passes_and_gives_its_proof():
    import torch

    proof = assert_parity(nn.Linear(3, 2).eval(), (torch.randn(2, 3),), batch_sizes=[1, 2])
    assert proof.verdict == "ship"


def test_a_failure_reads_like_the_command_line_and_names_every_failing_output(suite):
    result = suite(
        """
        from net import bad
        from onnxproof.testing import assert_parity

        def test_it():
            assert_parity(*bad(), batch_sizes=[3])
        """
    )
    result.assert_outcomes(failed=1)
    shown = result.stdout.str()
    assert "BLOCK  Epsilon: " in shown
    assert "OX205 block  output_0: " in shown
    assert "OX205 block  output_2: " in shown
    assert "output_1" not in shown.split("short test summary")[0].split("BLOCK", 1)[1]
    assert "where: output output_0" in shown
    assert "help: " in shown
    assert "stages.py" not in shown  # our own frames are hidden


def test_the_error_has_the_proof():
    import torch

    class Epsilon(nn.Module):
        def forward(self, x):
            return torch.log(x.abs() + 1e-8)

    with pytest.raises(ParityError) as caught:
        assert_parity(Epsilon().eval(), (torch.randn(2, 5),), batch_sizes=[3])
    assert caught.value.proof.verdict == "block"
    assert isinstance(caught.value, AssertionError)
