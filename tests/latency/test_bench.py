"""Whole benchmarks, from the models to the proof."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import onnx
import pytest

import models
import onnxproof
from conftest import codes, target
from onnxproof.errors import UserError
from onnxproof.proof.schema import read_schema

QUICK = {"min_time": 0.02, "min_count": 20, "threads": 1}


@pytest.fixture(scope="module")
def timed(tmp_path_factory) -> onnxproof.Proof:
    """A small transformer, timed in this process at two sizes."""
    out = tmp_path_factory.mktemp("timed")
    return onnxproof.bench(
        *models.transformer(), batch_sizes=[1, 4], also=["threads=1,optimization=disable"], out=out, **QUICK
    )


def test_a_run_has_what_the_contract_says(timed):
    data = json.loads(timed.dumps())
    jsonschema.validate(data, read_schema())
    latency = data["latency"]
    assert {(r["contender"], r["batch"]) for r in latency["runs"]} == {
        (name, batch)
        for name in ("pytorch", "onnxruntime", "onnxruntime[threads=1,optimization=disable]")
        for batch in (1, 4)
    }
    for run in latency["runs"]:
        assert run["samples"]
        assert run["count"] >= 20
        assert run["p50_ms"] > 0
        assert run["max_ms"] >= run["p50_ms"]
        assert run["throughput"] > 0
        assert run["first_ms"] > 0
        assert run["compared"] >= 1
        assert (run["p99_ms"] is None) == (run["count"] < 662)
        assert (run["p90_ms"] is None) == (run["count"] < 64)
    assert all(s["low"] <= s["ratio"] <= s["high"] for s in latency["speedup"])
    assert latency["machine"]["fingerprint"]
    assert next(r for r in latency["runs"] if r["contender"] == "onnxruntime")["load_ms"] > 0


def test_what_was_timed_was_compared(timed):
    names = [case.name for case in timed.cases if case.outputs]
    assert {name.split("/")[0] for name in names} == {"batch=1", "batch=4"}
    assert not codes(timed, "block")


def test_the_slowest_nodes_lead_to_modules_and_lines(timed):
    nodes = timed.latency.profile.nodes
    assert sum(node.share for node in nodes) <= 1.0 + 1e-9
    assert [n.share for n in nodes] == sorted((n.share for n in nodes), reverse=True)
    placed = [node for node in nodes if node.file]
    assert placed
    assert all(node.file.endswith("models.py") and node.line for node in placed)


def test_the_report_of_a_bench_is_calm_and_judges_again(timed, cli, tmp_path):
    timed.save(tmp_path / "proof.json")
    plain = cli("report", "proof.json")
    assert len(plain.stdout.splitlines()) <= 32
    assert "speed-up" in plain.stdout
    assert "slowest nodes" in plain.stdout
    assert cli("report", "proof.json", "--min-speedup", "0.0001").returncode in (0, 1)
    strict = cli("report", "proof.json", "--max-latency", "p50=1us")
    assert strict.returncode == 2  # there is no such unit
    strict = cli("report", "proof.json", "--max-latency", "p50=0.000001ms")
    assert strict.returncode == 1
    assert strict.stdout.startswith("BLOCK")
    assert "OX401" in strict.stdout
    shown = cli("report", "proof.json", "--max-latency", "p99.9=100s")
    assert "OX402" in shown.stdout


def test_timing_leaves_the_module_as_it_was(tmp_path):
    module, inputs = models.mlp()
    module.train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    onnxproof.bench(module, inputs, batch_sizes=[2], out=tmp_path, **QUICK)
    assert module.training
    assert all((before[name] == value).all() for name, value in module.state_dict().items())


def test_a_module_that_counts_its_calls_is_compared_from_where_it_began(tmp_path):
    proof = onnxproof.bench(*models.stateful(), batch_sizes=[1, 2], out=tmp_path, **QUICK)
    assert not codes(proof) & {"OX201", "OX207"}


@pytest.mark.slow
def test_the_users_data_are_timed_where_there_are_enough_rows(tmp_path):
    np.savez(tmp_path / "data.npz", X=np.random.default_rng(0).normal(size=(5, 20)).astype("float32"))
    data = str(tmp_path / "data.npz")
    proof = onnxproof.bench(*models.mlp(), batch_sizes=[4, 8], data=data, out=tmp_path, **QUICK)
    assert {case.name.split("/")[1] for case in proof.cases} == {"timed-data", "timed"}
    assert {case.group for case in proof.cases} == {"batch=4", "batch=8"}
    assert {r.batch for r in proof.latency.runs} == {4, 8}


def spoil(model: onnx.ModelProto) -> None:
    """One weight of the first matrix is off."""
    weight = next(t for t in model.graph.initializer if len(t.dims) == 2)
    array = onnx.numpy_helper.to_array(weight).copy()
    array[0] += 0.5
    weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))


def test_a_wrong_file_is_caught_by_what_was_timed(mutated, tmp_path):
    path = mutated("mlp", spoil)
    proof = onnxproof.bench(*models.mlp(), onnx=path, batch_sizes=[2], out=tmp_path, **QUICK)
    assert proof.verdict == "block"
    assert "OX201" in codes(proof, "block")


def test_a_wrong_second_file_is_noted_and_does_not_gate(mutated, exported, tmp_path):
    good, wrong = exported("mlp"), mutated("mlp", spoil)
    proof = onnxproof.bench(*models.mlp(), onnx=good, against=wrong, batch_sizes=[2], out=tmp_path, **QUICK)
    assert "OX418" in codes(proof, "note")
    assert not codes(proof, "block")
    again = onnxproof.bench(*models.mlp(), onnx=good, against=good, batch_sizes=[2], out=tmp_path, **QUICK)
    assert "OX418" not in codes(again)
    assert {r.contender for r in again.latency.runs} == {"pytorch", "onnxruntime", "onnxruntime:model.onnx"}


@pytest.mark.slow
def test_lengths_binding_and_offline(tmp_path):
    proof = onnxproof.bench(
        *models.transformer(),
        dynamic={"ids": {0: "batch", 1: "seq"}},
        batch_sizes=[2],
        lengths={"seq": [3, 12]},
        also=["binding=yes"],
        scenario="offline",
        concurrency=2,
        out=tmp_path,
        **QUICK,
    )
    runs = proof.latency.runs
    assert {(r.sizes["batch"], r.sizes["seq"]) for r in runs} == {(2, 3), (2, 12)}
    assert {r.concurrency for r in runs if r.scenario == "offline"} == {1, 2}
    assert "OX418" not in codes(proof)
    assert not codes(proof, "block")
    with pytest.raises(UserError, match="no dynamic dimension is called 'width'"):
        onnxproof.bench(*models.mlp(), lengths={"width": [3]}, out=tmp_path, **QUICK)


def test_a_server_is_timed_from_the_arrival(tmp_path):
    proof = onnxproof.bench(
        *models.mlp(), batch_sizes=[1], scenario="server", concurrency=2, rate=400.0, out=tmp_path, **QUICK
    )
    served = [r for r in proof.latency.runs if r.scenario == "server"]
    assert {(r.contender, r.concurrency) for r in served} == {
        (name, workers) for name in ("pytorch", "onnxruntime") for workers in (1, 2)
    }
    assert all(r.rate == 400.0 and r.waiting_ms >= 0 for r in served)


def test_a_baseline_turns_it_into_a_regression_check(timed, tmp_path):
    data = json.loads(timed.dumps())
    for run in data["latency"]["runs"]:
        for bound in run["percentiles"].values():
            for end in bound:
                bound[end] /= 1000
    (tmp_path / "old.json").write_text(json.dumps(data))
    module, inputs = models.transformer()
    proof = onnxproof.bench(module, inputs, batch_sizes=[1], baseline=tmp_path / "old.json", out=tmp_path, **QUICK)
    assert "OX408" in codes(proof, "review")
    assert "OX409" not in codes(proof)
    without = {**data, "latency": None}
    (tmp_path / "none.json").write_text(json.dumps(without))
    with pytest.raises(UserError, match="has no times"):
        onnxproof.bench(module, inputs, baseline=tmp_path / "none.json", out=tmp_path, **QUICK)


@pytest.mark.slow
def test_without_a_compiler_torch_compile_is_a_note(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    proof = onnxproof.bench(*models.mlp(), batch_sizes=[1], compile=True, out=tmp_path, **QUICK)
    note = next(f for f in proof.findings if f.code == "OX417")
    assert "C++ compiler" in note.message
    assert note.severity == "note"


@pytest.mark.slow
def test_the_command_line_end_to_end(cli, tmp_path):
    result = cli(
        "bench",
        target("mlp"),
        "--batch-sizes",
        "1,3",
        "--min-time",
        "0.02s",
        "--min-count",
        "20",
        "--threads",
        "1",
        "--max-latency",
        "p50=100s",
        "--max-memory",
        "10GB",
        "--json",
        "proof.json",
    )
    assert result.returncode in (0, 1), result.stderr
    proof = json.loads((tmp_path / "proof.json").read_text())
    jsonschema.validate(proof, read_schema())
    assert {f["code"] for f in proof["findings"] if f["severity"] == "block"} == set()
    assert "OX402" not in {f["code"] for f in proof["findings"]}
    assert all(run["memory"] > 0 for run in proof["latency"]["runs"])
    assert len(result.stdout.splitlines()) <= 35
    assert (tmp_path / "onnxproof-out" / "proof.json").is_file()


@pytest.mark.slow
def test_prove_can_time_too(cli, tmp_path):
    result = cli("prove", target("tutorial"), "--bench", "--batch-sizes", "1", "--threads", "1", "--json", "proof.json")
    assert result.returncode in (0, 1), result.stderr
    proof = json.loads((tmp_path / "proof.json").read_text())
    assert proof["planned"]
    assert proof["latency"]["runs"]
    assert "latency:" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--batch-sizes", ""), "there is no size to time"),
        (("--scenario", "burst"), "expected one of single, offline, server"),
        (("--against", "nowhere.onnx"), "there is no file nowhere.onnx"),
        (("--baseline", "nowhere.json"), "there is no proof nowhere.json"),
        (("--rate", "-3"), "above 0"),
        (("--also", "speed=high"), "--also 'speed=high'"),
    ],
)
def test_wrong_usage_is_told(cli, options, message):
    result = cli("bench", target("mlp"), "--min-time", "0.02s", *options)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
