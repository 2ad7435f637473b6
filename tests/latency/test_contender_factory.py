"""Who takes part in a benchmark depends on what the candidate can do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conftest import target
from fake import FakeCandidate
from onnxproof.candidates.candidate import Abilities
from onnxproof.errors import UserError
from onnxproof.latency.bench import Bench
from onnxproof.latency.contender_factory import Field
from onnxproof.latency.contenders import Unavailable
from onnxproof.pipeline.conduct import conduct
from onnxproof.request.benchmark import BenchSettings, Variant
from onnxproof.request.request import Request, VerifySettings
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.request.specs import ProviderSpec
from onnxproof.request.thresholds import Policy
from seam import Heard, Mlp

NPU = SessionSettings(providers=(ProviderSpec("NpuExecutionProvider"),))
TIMED, BOUND = Abilities(timed=True), Abilities(timed=True, binding=True)


@pytest.fixture
def mlp(exported):
    return Mlp(exported("mlp"))


def field_of(mlp: Mlp, abilities: Abilities) -> Field:
    names = ("NpuExecutionProvider", CPU.name)
    candidate = FakeCandidate(mlp.right, abilities=abilities, available=names)
    pairs = {next(iter(mlp.subject.inputs.tensors)): "input"}
    return Field(mlp.subject, mlp.artifact, candidate, NPU, BenchSettings(), pairs)


def test_binding_is_tried_unasked_where_there_is_any(mlp):
    assert set(field_of(mlp, TIMED).makers) == {"pytorch", "onnxruntime"}
    assert any("binding" in name for name in field_of(mlp, BOUND).makers)


def test_binding_that_is_asked_for_and_not_there_is_unavailable(mlp):
    with pytest.raises(Unavailable, match="fake cannot bind"):
        field_of(mlp, TIMED).session(Variant(binding=True))
    assert field_of(mlp, BOUND).session(Variant(binding=True)).prepare(mlp.example())


def test_a_bench_of_a_fake_has_no_profile_and_compares_what_it_timed(mlp, tmp_path):
    bench = BenchSettings(min_time=0.01, min_count=5, budget=10.0)
    heard = Heard()
    request = Request(
        held=(mlp.module, mlp.inputs), out=str(tmp_path), verify=VerifySettings(batch_sizes=(3,)), bench=bench
    )
    timed = Bench(
        mlp.subject, mlp.artifact, request, heard.listener(), candidate=FakeCandidate(mlp.right, abilities=TIMED)
    ).run()
    assert {run.contender for run in timed.runs} == {"pytorch", "onnxruntime"}
    assert timed.profile is None
    assert heard.cases[0].outputs[0].max_abs == 0


def test_what_cannot_be_timed_is_refused(mlp, tmp_path):
    request = Request(held=(mlp.module, mlp.inputs), out=str(tmp_path), bench=BenchSettings())
    with pytest.raises(UserError, match="fake cannot be timed from here"):
        Bench(mlp.subject, mlp.artifact, request, Heard().listener(), candidate=FakeCandidate(mlp.right))


@pytest.mark.parametrize("in_process", [False, True])
def test_a_benchmark_of_another_interpreter_is_refused_before_anything_is_exported(tmp_path, in_process):
    session = SessionSettings(runtime=f"python:{sys.executable}")
    request = Request(
        target=target("mlp"),
        out=str(tmp_path / "out"),
        verify=VerifySettings(session=session),
        bench=BenchSettings(),
        in_process=in_process,
    )
    with pytest.raises(UserError, match=r"--runtime python:\S+ cannot be timed from here.*run it there"):
        conduct(request, Policy())
    assert [file.name for file in Path(tmp_path / "out").iterdir()] in ([], [".journal"])
