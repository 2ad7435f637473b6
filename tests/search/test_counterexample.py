"""A failing case is shrunk, named, written and described."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fake import FakeCandidate
from onnxproof.cases import counterexample_files as keep
from onnxproof.proof.comparison import Element
from onnxproof.request.session import SessionSettings
from onnxproof.request.thresholds import Policy
from onnxproof.search.counterexample import Keeper, list_gating, measure_nearness
from onnxproof.search.script import Sides
from proofs import compared, make_case
from seam import CASE, Heard, Mlp


def test_the_nearest_output_tells_the_row():
    case = make_case("batch=4/normal/seed=0", 1e-7, 0, ("a", "b"))
    noise = compared("a", 1e-7, 0).noise
    calm, worse = replace(noise, ratio=1.0, worst_ratio=1.0), replace(noise, ratio=1.0, worst_ratio=6.0)
    outputs = (
        replace(case.outputs[0], noise=calm, worst=(Element((1,), 0.0, 1.0),)),
        replace(case.outputs[1], noise=worse, worst=(Element((3, 1), 0.0, 1.0),)),
    )
    assert measure_nearness(replace(case, outputs=outputs), 2.0) == (3.0, 3)
    explained = (outputs[0], replace(outputs[1], noise=replace(worse, unexplained=0.1)))
    assert measure_nearness(replace(case, outputs=explained), 2.0) == (0.5, 1)


def test_a_wrong_candidate_gives_a_named_file_that_fails_alike(exported, tmp_path):
    mlp = Mlp(exported("mlp"))
    verifier = mlp.verifier(FakeCandidate(mlp.wrong_where(lambda settings: True)), Heard())
    inputs = verifier.supply.make_inputs(CASE)
    finding = list_gating(verifier.evaluate(CASE, inputs), Policy())[0]
    sides = Sides(None, Path(mlp.artifact.path), SessionSettings(), verifier.input_pairs, {"output": "output"})
    keeper = Keeper(verifier, Policy(), tmp_path, sides)
    first, again = keeper.keep(CASE, finding), keeper.keep(CASE, finding)
    assert again == first  # a run that goes on writes the same input under the same name
    small = keep.read(Path(first.file))
    keep.write(Path(first.file), {name: array + 1 for name, array in small.items()})
    assert keeper.keep(CASE, finding).name == f"{first.name}-2"
    assert {name: array.shape for name, array in small.items()} == dict(first.shapes)
    assert first.evaluations > 0
    assert finding.code in {f.code for f in list_gating(verifier.evaluate(CASE, small), Policy())}


def test_what_rounding_explains_does_not_gate():
    assert list_gating(make_case("batch=4/normal/seed=0", 1e-8, 0), Policy()) == []
