"""What is wrong with a module itself."""

from __future__ import annotations

import threading
import traceback

import torch
from torch import nn

from onnxproof.lints.module import lint_module
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


class Looks(nn.Module):
    """Answers us as we like, and anybody else."""

    def forward(self, x):
        watched = any("onnxproof" in frame.filename for frame in traceback.extract_stack())
        return x * 2.5 if watched else x * 2


def test_a_module_that_looks_at_who_calls_it():
    finding = examined(Looks().eval())["OX103"]
    assert "looks at who calls it" in finding.message
    assert finding.evidence == {"max_abs": 0.5}


class OfOneThread(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = threading.get_ident()

    def forward(self, x):
        assert threading.get_ident() == self.own
        return x * 2


def test_a_module_that_only_its_own_thread_may_ask_is_asked_there():
    assert examined(OfOneThread().eval()) == {}


class Learns(nn.Module):
    def __init__(self, step):
        super().__init__()
        self.weight, self.step = nn.Parameter(torch.ones(3)), step

    def forward(self, x):
        self.weight.data.add_(self.step)
        return x * self.weight


def test_a_forward_that_writes_into_its_weights():
    found = examined(Learns(1.0).eval())
    assert found["OX113"].evidence["weights"] == ["weight"]
    assert "weight weight" in found["OX113"].message
    assert "OX103" in found
    assert examined(Learns(0.0).eval()) == {}


class Once(nn.Module):
    """Answers the first call in another way."""

    calls = 0

    def forward(self, x):
        self.calls += 1
        return x if self.calls == 1 else x * 1.25


def test_the_first_call_is_the_first_after_the_lint_too():
    subject = make_subject(Once().eval(), (X.clone(),))
    assert "OX144" in {finding.code for finding in lint_module(subject)}
    assert "OX103" in {finding.code for finding in examine(subject)}
