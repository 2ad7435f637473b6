"""One file on many runtimes, real ones: an old release refuses what a new one answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
import torch

import models
import onnxproof
from candidates.small_models import sums
from onnxproof.candidates import INSTALLED, releases, serve
from onnxproof.errors import UserError
from onnxproof.parity.eager import EagerRunner
from onnxproof.pipeline import runtimes
from onnxproof.pipeline.runtimes import settle_runtimes
from onnxproof.report.text import render
from onnxproof.request.request import Request, Steps

OLD, NEW = "onnxruntime==1.17.3", "onnxruntime==1.20.1"
# Its Clip of half floats without a lower end takes zero for one.
BAD = "onnxruntime==1.19.2"


def test_one_runtime_is_the_proofs_own_and_several_are_a_sweep():
    one = settle_runtimes(Request(runtimes=("python:x",)))
    assert (one.verify.session.runtime, one.sweep) == ("python:x", ())
    two = settle_runtimes(Request(runtimes=("onnxruntime", NEW)))
    assert (two.verify.session.runtime, two.sweep) == (None, (INSTALLED, NEW))
    assert settle_runtimes(Request()) == Request()


def test_where_nothing_is_named_every_release_is_asked_and_the_installed_one_once(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "1.20.1")
    every = settle_runtimes(Request(verb="runtimes"))
    assert every.sweep[0] == INSTALLED
    assert OLD in every.sweep
    assert NEW not in every.sweep


def test_a_verb_that_runs_no_cases_takes_one_runtime():
    with pytest.raises(UserError, match="bench looks at one runtime at a time"):
        settle_runtimes(Request(verb="bench", runtimes=("python:x", "python:y"), steps=Steps(cases=False)))
    for several in (("1.20", "1.21"), "onnxruntime>=1.17,<1.19"):
        with pytest.raises(UserError, match="lint looks at one runtime at a time"):
            onnxproof.lint("model.onnx", runtime=several)


def test_a_lint_knows_releases_by_every_name(tmp_path):
    path = tmp_path / "sums.onnx"
    model = onnx.load_from_string(sums())
    model.ir_version = 10
    onnx.save(model, path)
    for text, codes in {"1.17.3": ["OX310"], OLD: ["OX310"], NEW: [], "onnxruntime": []}.items():
        assert [f.code for f in onnxproof.lint(path, runtime=text).findings if f.weight] == codes, text


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The tutorial's model on two releases beside the installed one, and how often the module ran for that."""
    forwards = []
    run = EagerRunner.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EagerRunner, "run", lambda self, inputs: forwards.append(1) or run(self, inputs))
        out = tmp_path_factory.mktemp("swept")
        proof = onnxproof.runtimes(*models.tutorial(), runtime=["onnxruntime", OLD, NEW], out=out)
    return proof, len(forwards)


def test_each_is_verified_and_judged_as_ever(swept):
    proof, _ = swept
    assert [(one.runtime, one.verdict) for one in proof.runtimes] == [
        ("onnxruntime", "ship"),
        (OLD, "block"),
        (NEW, "ship"),
    ]
    assert [one.version for one in proof.runtimes][1:] == ["1.17.3", "1.20.1"]
    refused = proof.runtimes[1]
    assert refused.findings[0].code == "OX310"
    assert (refused.p50_ms, refused.worst_noise_ratio) == (None, None)
    for one in (proof.runtimes[0], proof.runtimes[2]):
        assert one.p50_ms is not None
        assert one.worst_noise_ratio == pytest.approx(proof.worst_noise_ratio, rel=0.5)


def test_the_worst_of_those_that_were_asked_for_decides(swept):
    proof, _ = swept
    assert proof.verdict == "block"
    assert [f.code for f in proof.findings if f.weight] == ["OX330"]
    assert proof.environment.runtime is None


def test_what_does_not_depend_on_the_runtime_is_computed_once(swept):
    proof, forwards = swept
    assert proof.compared <= forwards < 2 * proof.compared


def test_it_is_written_and_read_again(swept, tmp_path):
    proof, _ = swept
    proof.save(tmp_path / "proof.json")
    assert onnxproof.Proof.load(tmp_path / "proof.json").runtimes == proof.runtimes


def test_bisection_asks_those_between_for_the_first_that_changed(tmp_path, monkeypatch):
    asked = []

    def visit(run, runtime, exported, executor, judge):
        asked.append(runtime)
        version = runtime.partition("==")[2]
        findings = (onnxproof.findings.found("OX310", "no"),) * (runtimes.Version(version) < runtimes.Version("1.18"))
        return runtimes.Visit(run, runtimes.RuntimeResult(runtime, version, findings=findings))

    monkeypatch.setattr(runtimes, "_visit", visit)
    request = Request(sweep=("onnxruntime==1.15.0", "onnxruntime==1.31.1"), steps=Steps(bisect=True, fast=True))
    run = runtimes.Run(request, onnxproof.Policy(), runtimes.Collected())
    runtimes.sweep(run, run.collected.known, None, None)
    before, after = runtimes.find_changes(run.collected.known.runtimes)[0]
    assert (before.version, after.version) == ("1.17.3", "1.18.0")
    assert len(asked) <= 8


def test_in_children_the_same_is_said(tmp_path):
    proof = onnxproof.runtimes(
        f"{models.__file__}:tutorial", runtime=[NEW, OLD], out=tmp_path, isolate=True, budget=5.0
    )
    assert [one.verdict for one in proof.runtimes] == ["ship", "block"]
    assert proof.environment.onnxruntime == "1.20.1"


def test_a_release_that_nobody_named_and_that_does_not_start_is_told_and_the_others_are_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(runtimes, "EVERYWHERE", (INSTALLED, "onnxruntime==9.9", NEW))
    proof = onnxproof.runtimes(*models.tutorial(), out=tmp_path, budget=5.0)
    assert [one.verdict for one in proof.runtimes] == ["ship", "block", "ship"]
    assert "there is no such release" in proof.runtimes[1].findings[0].message
    assert proof.verdict == "ship"
    with pytest.raises(UserError, match="there is no such release"):
        onnxproof.runtimes(*models.tutorial(), runtime=[INSTALLED, "onnxruntime==9.9"], out=tmp_path, budget=5.0)


WRONG = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("serve", sys.argv[1])
serve = importlib.util.module_from_spec(spec)
spec.loader.exec_module(serve)

class Wrong(serve.Server):
    def hello(self, header, blobs):
        facts, parts = super().hello(header, blobs)
        facts["versions"]["onnxruntime"] = "1.16.3"
        return facts, parts

    def run(self, header, blobs):
        told, answer = super().run(header, blobs)
        values = serve.unpack(told["arrays"], answer)
        packed, parts = serve.pack({name: value * value.dtype.type(1.1) for name, value in values.items()})
        return {"arrays": packed}, parts

serve.Server = Wrong
serve.main()
"""


def test_where_a_release_answers_wrong_the_place_is_named(tmp_path, monkeypatch):
    script = tmp_path / "wrong.py"
    script.write_text(WRONG)
    command, wrong = releases._build_command, [sys.executable, str(script), serve.__file__]
    monkeypatch.setattr(releases, "_build_command", lambda v: wrong if str(v) == "1.16.3" else command(v))
    chosen = {"exporter": "torchscript", "opset": 17, "budget": 5.0}
    proof = onnxproof.runtimes(*models.tutorial(), runtime=[OLD, "onnxruntime==1.16.3"], out=tmp_path / "out", **chosen)
    good, bad = proof.runtimes
    assert (good.verdict, bad.verdict, bad.version) == ("ship", "block", "1.16.3")
    assert bad.findings[0].code == "OX201"
    assert bad.findings[0].where.node is not None
    assert proof.blame == {}
    assert "changed between 1.16.3 (BLOCK) and 1.17.3 (SHIP) (node" in render(proof)


class Capped(torch.nn.Module):
    def forward(self, x):
        return torch.clamp(torch.sin(x).half(), max=0.5).float() * 2


def exit_under(release: str, script: Path) -> int:
    """The exit code of a script that sees a release and the NumPy it needs, and nothing else."""
    folders = releases.install_release(releases.Version(release.partition("==")[2]))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    return subprocess.run([sys.executable, "-S", script], env=environment, capture_output=True, check=False).returncode


def test_the_node_that_changed_stands_alone_in_a_script_that_ends_otherwise_on_either_release(tmp_path):
    made = {"exporter": "torchscript", "opset": 17, "budget": 5.0, "out": tmp_path}
    proof = onnxproof.runtimes(Capped().eval(), (torch.randn(3, 6),), runtime=[NEW, BAD], **made)
    good, bad = proof.runtimes
    assert (good.verdict, bad.verdict) == ("ship", "block")
    assert bad.findings[0].where.node == "/model/Clip"
    assert bad.findings[0].where.file == __file__
    assert good.reproduction is None
    assert f"python {bad.reproduction}/reproduce.py shows it" in render(proof)
    script = Path(bad.reproduction) / "reproduce.py"
    assert f'pip install "numpy>=2" {BAD}' in script.read_text()
    assert (exit_under(NEW, script), exit_under(BAD, script)) == (0, 1)


def test_of_two_files_the_first_runs_on_the_first_runtime():
    two = settle_runtimes(Request(verb="diff", runtimes=("python:x", "python:y")))
    assert (two.original.runtime, two.verify.session.runtime, two.sweep) == ("python:x", "python:y", ())
    three = settle_runtimes(Request(verb="diff", runtimes=("onnxruntime", "python:y", "python:z")))
    assert (three.original.runtime, three.sweep) == (None, ("python:y", "python:z"))
    one = settle_runtimes(Request(verb="diff", runtimes=("python:x",)))
    assert (one.original, one.verify.session.runtime) == (None, "python:x")


@pytest.fixture
def capped(tmp_path):
    """A file on which two releases differ."""
    made = {"exporter": "torchscript", "opset": 17, "out": tmp_path / "made"}
    return onnxproof.export(Capped().eval(), (torch.randn(3, 6),), **made).artifact.path


def test_two_runtimes_of_one_file_are_compared_down_to_the_node(capped, cli):
    done = cli("diff", capped, capped, "--runtime", NEW, "--runtime", BAD, "--budget", "3s")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("BLOCK")
    assert "node /model/Clip" in done.stdout
    assert f"held against {NEW}" in done.stdout
    same = cli("diff", capped, capped, "--runtime", NEW, "--runtime", f"python:{sys.executable}", "--budget", "3s")
    assert same.returncode == 0, same.stdout


def test_an_original_that_does_not_load_is_said_to_be_that(capped, cli, tmp_path):
    model = onnx.load(capped)
    model.ir_version = 10
    onnx.save(model, tmp_path / "new.onnx")
    done = cli("diff", "new.onnx", "new.onnx", "--runtime", OLD, "--runtime", NEW)
    assert done.returncode == 2
    assert f"does not load on {OLD}, which is to be the original" in done.stderr
