"""What is wrong with a module itself."""

from __future__ import annotations

import torch
from torch import nn

from onnxproof.subject.assembly import make_subject
from onnxproof.subject.examination import examine

X = torch.ones(2, 3)


def examined(module: nn.Module):
    return {finding.code: finding for finding in examine(make_subject(module, (X.clone(),)))}


class Changes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(1)
        return x.mul_(2)


def test_what_a_forward_writes_into_is_named_with_its_line():
    module = Changes().eval()
    finding = examined(module)["OX113"]
    assert finding.evidence == {"inputs": ["x"], "buffers": ["count"]}
    assert (finding.where.file, type(finding.where.line)) == (__file__, int)
    assert module.count.item() == 0


class Rare(nn.Module):
    def forward(self, x):
        return x * 2 if torch.rand(1).item() < 0.001 else x


class Remembers(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return x + self.calls


def test_a_rare_draw_and_a_state_are_told_apart():
    rare, state = examined(Rare().eval())["OX103"], examined(Remembers().eval())["OX103"]
    assert "aten.rand.default draws numbers" in rare.message
    assert rare.where.output == "output"
    assert rare.evidence == {"max_abs": 1.0}
    assert "keeps state from call to call" in state.message
    assert "OX144" in state.help


def test_the_mode_is_a_note_where_it_makes_no_difference():
    assert examined(nn.Linear(3, 2).train())["OX102"].severity == "note"
    assert examined(nn.Dropout().train())["OX102"].severity == "review"
    assert examined(nn.Linear(3, 2).eval()) == {}


class NoNumbers(nn.Module):
    def forward(self, x):
        return x / 0 - x / 0


def test_nan_equals_nan():
    assert examined(NoNumbers().eval()) == {}
