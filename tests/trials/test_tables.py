"""Tables, row by row: one that sizes choose a row of is wrong in a row that no case chooses."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import onnxproof
from onnxproof.graph.evaluator import Evaluator
from onnxproof.policy.trials import judge_trials
from onnxproof.proof.trials import Trials
from onnxproof.trials.tables import find_changed_rows

ROW = 100


class Positions(nn.Module):
    """The row is the length of what came before."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.twin = nn.Embedding(128, 16), nn.Embedding(128, 16)
        with torch.no_grad():
            self.twin.weight.copy_(self.table.weight)
            self.twin.weight[3] += 1.0

    def forward(self, past: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        at = torch.full((1,), 0) + past.shape[1]
        return x + self.table(at) + past.sum(1, keepdim=True) + self.twin.weight.sum()


@pytest.mark.parametrize("wrong", [True, False])
def test_a_row_that_only_one_size_chooses(tmp_path, wrong):
    torch.manual_seed(0)
    module, inputs = Positions().eval(), (torch.randn(2, 5), torch.randn(2, 16))
    dynamic = {"past": {0: "batch", 1: "before"}, "x": {0: "batch"}}
    onnxproof.export(module, inputs, dynamic=dynamic, out=tmp_path / "file")
    onnx_file = tmp_path / "file" / "model.onnx"
    model = onnx.load(onnx_file)
    own = module.table.weight.detach().numpy()
    [table] = [t for t in model.graph.initializer if np.array_equal(onnx.numpy_helper.to_array(t), own)]
    if wrong:
        changed = own.copy()
        changed[ROW] *= 1.05
        table.CopyFrom(onnx.numpy_helper.from_array(changed, table.name))
        onnx.save(model, onnx_file)
    evaluator = Evaluator.exact(onnx.load(onnx_file), keep_lossy_casts=True)
    found = list(find_changed_rows(evaluator, module))
    assert [(one.op, one.given) for one in found] == [("Gather", {"row": float(ROW)})] * wrong
    assert all(one.got == pytest.approx(1.05 * one.expected) for one in found)
    assert [finding.severity for finding in judge_trials(Trials(latent=tuple(found)))] == ["review"] * wrong
