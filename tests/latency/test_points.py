"""At which sizes it is timed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import onnxproof
from onnxproof.cases.supply import Supply
from onnxproof.errors import InputError
from onnxproof.latency.points import Points
from onnxproof.parity.verifier import add_symbols
from onnxproof.proof.artifact import Port
from onnxproof.request.benchmark import BATCHES, BenchSettings
from onnxproof.request.request import VerifySettings
from onnxproof.subject.assembly import make_subject
from seam import Mlp


@pytest.fixture
def mlp(exported):
    return Mlp(exported("mlp"))


def points_of(mlp, batch_sizes=None, artifact=None, subject=None, **bench):
    artifact, verify = artifact or mlp.artifact, VerifySettings(batch_sizes=batch_sizes)
    subject = subject or add_symbols(mlp.subject, artifact)
    return Points(subject, artifact, verify, BenchSettings(**bench), Supply(subject, artifact, verify)).all()


def test_batches_are_the_usual_ones_or_those_asked_for(mlp):
    assert [p.batch for p in points_of(mlp)] == list(BATCHES)
    asked = points_of(mlp, (8, 2, 2))
    assert [p.batch for p in asked] == [2, 8]
    assert all(next(iter(p.inputs.values())).shape[0] == p.batch for p in asked)
    assert asked[0].label.endswith("=2")


def test_no_size_and_an_unknown_length_are_refused(mlp):
    with pytest.raises(InputError, match="--batch-sizes is empty"):
        points_of(mlp, ())
    with pytest.raises(InputError, match="no dynamic dimension is called 'seq'"):
        points_of(mlp, lengths={"seq": (3,)})


def test_a_static_model_has_its_own_size_only(mlp):
    static = replace(mlp.subject, dynamic={})
    have = next(iter(mlp.subject.inputs.tensors.values())).shape[0]
    assert [p.batch for p in points_of(mlp, subject=static)] == [have]
    with pytest.raises(InputError, match="no first dimension is dynamic"):
        points_of(mlp, (have + 1,), subject=static)


def test_a_file_that_fixes_the_batch_is_timed_at_it(mlp):
    subject = add_symbols(mlp.subject, mlp.artifact)
    (port,) = mlp.artifact.inputs
    fixed = replace(mlp.artifact, inputs=(replace(port, shape=(3, *port.shape[1:])),))
    assert isinstance(port, Port)
    assert [p.batch for p in points_of(mlp, artifact=fixed, subject=subject)] == [3]


class Remembers(nn.Module):
    def forward(self, x, kept):
        kept = torch.cat([kept, x], 1)
        return {"y": kept.sum((1, 2)), "kept": kept}


def test_a_cache_that_grows_is_timed_with_a_prompt_and_with_one_token(tmp_path):
    given = {"x": torch.randn(2, 3, 4), "kept": torch.randn(2, 5, 4)}
    dynamic = {"x": {0: "batch", 1: "seq"}, "kept": {0: "batch", 1: "past"}}
    file = onnxproof.export(Remembers(), given, out=tmp_path, dynamic=dynamic).artifact
    timed = points_of(None, [1], file, make_subject(Remembers(), given, dynamic=dynamic))
    assert [{name: one.sizes[name] for name in ("past", "seq")} for one in timed] == [
        {"past": 1, "seq": 7},
        {"past": 5, "seq": 1},
    ]
