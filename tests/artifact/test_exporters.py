"""The exporters of torch, called again and again in one process."""

from __future__ import annotations

import pytest
import torch

import onnxproof
from onnxproof.artifact import exporters


class Recurrent(torch.nn.Module):
    def __init__(self, kind: type[torch.nn.RNNBase]) -> None:
        super().__init__()
        self.mix = kind(4, 3, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mix(x)[0]


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
def test_the_second_export_of_a_process_is_as_dynamic_as_the_first(kind, tmp_path):
    """torch remembers the kernel of a recurrent operator that it took after the first, and fixes the length in the second."""
    for out in ("first", "second"):
        proof = onnxproof.export(
            Recurrent(kind).eval(), (torch.randn(2, 5, 4),), dynamic={"x": {0: "batch", 1: "seq"}}, out=tmp_path / out
        )
        assert (proof.verdict, [finding.code for finding in proof.findings]) == ("ship", [])


def test_torch_without_the_mend_gets_no_checks_that_it_cannot_run(monkeypatch):
    """As torch 2.9 is: what it writes of `L['leaves'][0]` names no argument of the captured program."""
    monkeypatch.delattr(exporters._unlift, "_force_gm_signature_match", raising=False)
    before = exporters._unlift._convert_guards_code_to_fn
    with exporters._leave_guards():
        made = exporters._unlift._convert_guards_code_to_fn(["L['leaves'][0].size()[0] >= 2"], [])
    assert made(torch.ones(1)) is None
    assert exporters._unlift._convert_guards_code_to_fn is before
