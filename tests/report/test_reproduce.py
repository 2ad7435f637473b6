"""Commands that show each thing again: as a shell takes them."""

from __future__ import annotations

import shlex
from dataclasses import replace

from onnxproof.proof.environment import Environment
from onnxproof.proof.search import Counterexample
from onnxproof.report.reproduce import list_commands
from proofs import make_proof


def test_the_command_that_was_given_comes_first():
    proof = replace(make_proof(), environment=Environment(command="onnxproof prove 'a b.py:net'"))
    assert list_commands(proof)[0] == ("this proof", "onnxproof prove 'a b.py:net'")


def test_without_it_one_follows_from_the_proof():
    environment = Environment(providers=("CUDAExecutionProvider", "CPUExecutionProvider"), optimization="basic")
    proof = replace(make_proof(name="net", file="my model.py"), environment=environment)
    words = shlex.split(dict(list_commands(proof))["this proof"])
    assert words[:3] == ["onnxproof", "prove", "my model.py:net"]
    assert words[3:] == ["--provider", "CUDAExecutionProvider", "--optimization", "basic"]


def test_two_files_are_compared_again():
    proof = make_proof(file="x.py")
    proof = replace(proof, subject=replace(proof.subject, target="before.onnx"))
    assert dict(list_commands(proof))["this proof"] == "onnxproof diff before.onnx fixture.onnx"
    sides = replace(proof.environment, original="node", runtime="onnxruntime==1.20.1 (Python 3.11)")
    again = dict(list_commands(replace(proof, environment=sides)))["this proof"]
    assert again.endswith("fixture.onnx --runtime node --runtime onnxruntime==1.20.1")


def test_scripts_of_what_was_kept_and_pages_of_what_gates():
    kept = Counterexample("c", "OX201", "output", "batch=1", "c.npz", "out/a b.py")
    proof = make_proof(wrong=1, nodes=4, counterexamples=(kept, replace(kept, code="OX202", script=None)))
    told = dict(list_commands(proof))
    assert told["OX201 on the smallest input"] == "python 'out/a b.py'"
    assert "OX202 on the smallest input" not in told
    assert told["who is to blame"].startswith("onnxproof locate")
    assert told["what OX201 means"] == "onnxproof explain OX201"
