"""Findings with what is known about their causes."""

from __future__ import annotations

from dataclasses import replace

from onnxproof.findings import Finding, Where, found
from onnxproof.policy.causes import add_causes
from onnxproof.proof.blame import Blame, Culprit
from onnxproof.proof.search import Counterexample

WRONG = found("OX201", "wrong", where=Where(output="y", case="c"))
TRACED = found(
    "OX107",
    "the default exporter failed (a branch); TorchScript was used",
    where=Where(file="m.py", line=3),
    evidence={"reason": "a branch", "help": "Use torch.where.", "code": "OX109"},
)
SKIPPED = found("OX147", "the encoder leaves padding out", where=Where(module="encoder"))
BLAME = {"c": Blame("kernel", (Culprit("n1", "Add", 0.1, "layer", "model.py", 7, "x + y"),))}


def told(finding: Finding, *others: Finding, blames=None, counterexamples=()) -> Finding:
    return add_causes([finding, *others], blames or {}, counterexamples)[0]


def test_the_culprit_is_where_it_is_and_leads_the_help():
    finding = told(WRONG, blames=BLAME)
    assert finding.where == Where("y", "c", "n1", "layer", "model.py", 7)
    assert finding.stage == "kernel"
    assert finding.help.startswith("the error is born in Add node n1. ")
    assert finding.help.endswith(WRONG.help)


def test_a_culprit_of_another_output_and_a_code_that_cannot_be_located_stay_out_of_it():
    culprit = replace(BLAME["c"].culprits[0], outputs=("z",))
    assert told(WRONG, blames={"c": replace(BLAME["c"], culprits=(culprit,))}) == WRONG
    swapped = replace(WRONG, code="OX220")
    assert told(swapped, TRACED, SKIPPED, blames=BLAME) == swapped


def test_what_tracing_froze_is_named_with_its_line():
    finding = told(WRONG, TRACED)
    assert (finding.where.file, finding.where.line) == ("m.py", 3)
    assert finding.help.startswith(
        "The default exporter failed at m.py:3 (a branch) and tracing froze what stands there: Use torch.where."
    )
    located = told(WRONG, TRACED, blames=BLAME)
    assert located.where.file == "model.py"
    assert "tracing froze" in located.help


def test_an_exporter_that_died_gave_no_reason():
    assert told(WRONG, replace(TRACED, evidence={"signal": "SIGSEGV"})) == WRONG


def test_a_fast_path_is_suspected_unless_a_node_is_to_blame():
    finding = told(WRONG, SKIPPED)
    assert finding.where.module == "encoder"
    assert finding.help == f"Most likely the encoder leaves padding out. {SKIPPED.help} {WRONG.help}"
    assert "encoder" not in told(WRONG, SKIPPED, blames=BLAME).help


def test_what_does_not_gate_needs_no_suspect():
    note = replace(WRONG, code="OX204", severity="note")
    assert told(note, TRACED, SKIPPED) == note


def test_the_smallest_input_of_the_same_finding_is_shown():
    one = Counterexample("m-OX201", "OX201", "y", "c", "m.npz", text="x = [0]", shapes={"x": (1,)})
    shown = told(WRONG, counterexamples=[one]).evidence["counterexample"]
    assert (shown["text"], shown["shapes"]) == ("x = [0]", {"x": [1]})
    assert told(WRONG, counterexamples=[replace(one, output="z")]) == WRONG
