"""The list of stages, driven by an executor that only says how each order ends."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from onnxproof.findings import found
from onnxproof.pipeline import events, stages
from onnxproof.pipeline.collected import Collected
from onnxproof.pipeline.executors import run_stages
from onnxproof.pipeline.stages import MAX_CHILDREN, STAGES, list_stages
from onnxproof.process.supervisor import End
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.environment import Environment
from onnxproof.proof.latency import Latency, Run
from onnxproof.proof.subject import SubjectFacts
from onnxproof.request.benchmark import BenchSettings
from onnxproof.request.build import build_request
from onnxproof.request.request import Request
from onnxproof.request.thresholds import Policy

ARTIFACT = Artifact(path="m.onnx", exporter="dynamo", opset=20, sha256="0" * 64, inputs=(), outputs=())
SEGFAULT = End(-11, hung=False, log="")
HUNG = End(-9, hung=True, log="")


@dataclass
class Script:
    """An executor that plays what is written for each stage: events, then an end or an exception."""

    plays: dict[str, list[tuple]]
    tolerated = (ValueError,)
    told: list[tuple[str, dict]] = field(default_factory=list)

    def carry_out(self, stage, arguments, collected):
        self.told.append((stage.name, dict(arguments)))
        plays = self.plays.get(stage.name) or [()]
        play = plays.pop(0) if plays else ()
        for part in play:
            if isinstance(part, End):
                return part
            if isinstance(part, Exception):
                raise part
            collected.receive(part)
        return None


def go(request: Request, **plays) -> tuple[Collected, Script]:
    script = Script({name: list(play) for name, play in plays.items()})
    run = stages.Run(request, Policy(), Collected(), folder="somewhere")
    run_stages(run, list_stages(request), script, lambda stage: None)
    return run.collected, script


EXPORTED = [(events.SubjectRead(SubjectFacts("m", weights="abc"), Environment()), events.Exported(ARTIFACT))]
PLAN = events.Planned(["a", "b", "c"], ["c"], {})


def compared(name: str) -> events.Compared:
    return events.Compared(CaseResult(name, "normal", True, "compared"))


def test_the_order_of_the_run():
    assert [stage.name for stage in STAGES] == [
        "export",
        "quantize",
        "verify",
        "screen",
        "trial",
        "search",
        "locate",
        "evaluate",
        "bench",
        "weigh",
    ]
    everything = build_request("prove", {"data": "x.npz", "bench": True})
    _, script = go(everything, export=EXPORTED, bench=[(events.ToWeigh(["pytorch", "onnxruntime"], []),)])
    assert [name for name, _ in script.told] == ["export", "verify", "evaluate", "bench", "weigh", "weigh"]


def test_without_an_artifact_nothing_follows():
    _, script = go(build_request("prove", {"data": "x.npz", "bench": True}))
    assert [name for name, _ in script.told] == ["export"]


@pytest.mark.parametrize(("size", "shared"), [(9, False), (10, True)])
def test_a_large_file_is_read_where_it_is_verified(tmp_path, monkeypatch, size, shared):
    """An exporter may kill its process, or leave it with gigabytes; of a small module it is worth seeing that it is the same twice."""
    monkeypatch.setattr("onnxproof.pipeline.stages.LARGE", 9)
    (tmp_path / "m.onnx").write_bytes(b"1234")
    (tmp_path / "m.onnx.data").write_bytes(b"x" * (size - 4))
    given = list_stages(build_request("prove", {"onnx": str(tmp_path / "m.onnx")}))
    assert [stage.name for stage in given] == [stage.name for stage in STAGES]
    assert given[0].shares is shared
    assert not list_stages(build_request("prove", {}))[0].shares


def test_lint_is_a_run_of_one_stage():
    _, script = go(build_request("lint", {}))
    assert [name for name, _ in script.told] == ["lint"]


def test_a_verb_without_cases_runs_none():
    _, script = go(build_request("evaluate", {"data": "x.npz"}), export=EXPORTED)
    assert [name for name, _ in script.told] == ["export", "evaluate"]


def test_an_exporter_that_dies_gives_way_to_the_other():
    dies = (events.Entered("export"), SEGFAULT)
    collected, script = go(build_request("prove", {}), export=[dies, *EXPORTED])
    assert [told["killed_by"] for name, told in script.told if name == "export"] == [None, "SIGSEGV"]
    assert collected.known.artifact is not None
    assert collected.known.findings == ()


@pytest.mark.parametrize(
    ("values", "play"),
    [
        ({"exporter": "dynamo"}, [(events.Entered("export"), SEGFAULT)]),
        ({"onnx": "x.onnx"}, [(events.Entered("export"), SEGFAULT)]),
        ({}, [(events.Entered("export"), HUNG)]),
        ({}, [(events.Entered("import"), SEGFAULT)]),
        ({}, [(events.Entered("export"), SEGFAULT), (events.Entered("export"), SEGFAULT)]),
    ],
    ids=["asked for", "given file", "hung", "before it", "both"],
)
def test_an_export_that_cannot_be_saved_is_a_finding(values, play):
    collected, _ = go(build_request("prove", values), export=play)
    assert [f.code for f in collected.known.findings] in (["OX001"], ["OX002"])
    assert collected.known.findings[0].severity == "block"


def test_a_death_costs_its_case_and_the_next_child_is_told_what_is_done():
    first = (PLAN, compared("a"), events.Entered("candidate", "b"), SEGFAULT)
    collected, script = go(build_request("prove", {}), export=EXPORTED, verify=[first, (PLAN, compared("c"))])
    assert [told["done"] for name, told in script.told if name == "verify"] == [frozenset(), {"a", "b"}]
    assert [(f.code, f.severity, f.where.case) for f in collected.known.findings] == [("OX001", "block", "b")]
    assert set(collected.cases) == {"a", "c"}


@pytest.mark.parametrize(
    ("case", "step", "severity"),
    [("b", "candidate", "block"), ("c", "candidate", "note"), ("b", "baseline", "note"), ("b", "exactness", "note")],
    ids=["candidate", "unfair", "PyTorch", "ours"],
)
def test_only_the_candidates_death_on_a_fair_input_blocks(case, step, severity):
    play = (PLAN, events.Entered(step, case), SEGFAULT)
    collected, _ = go(build_request("prove", {}), export=EXPORTED, verify=[play])
    assert [f.severity for f in collected.known.findings if f.code == "OX001"] == [severity]


def test_too_many_deaths_are_given_up():
    names = [f"case{i}" for i in range(MAX_CHILDREN + 5)]
    plan = events.Planned(names, [], {})
    plays = [(plan, events.Entered("candidate", name), SEGFAULT) for name in names]
    collected, script = go(build_request("prove", {}), export=EXPORTED, verify=plays)
    assert sum(name == "verify" for name, _ in script.told) == MAX_CHILDREN
    assert [f.evidence["cases"] for f in collected.known.findings if f.code == "OX005"] == [names[MAX_CHILDREN:]]


def test_what_goes_wrong_in_a_search_is_told_and_the_run_goes_on():
    request = build_request("prove", {"search": 1.0, "data": "x.npz"})
    result = replace(compared("a").result, outputs=(_equal(),))
    verify = [(PLAN, events.Compared(result))]
    collected, script = go(request, export=EXPORTED, verify=verify, search=[(ValueError("no luck"),)])
    assert [f.code for f in collected.known.findings] == ["OX007"]
    assert [name for name, _ in script.told] == ["export", "verify", "screen", "trial", "search", "evaluate"]


def test_what_goes_wrong_elsewhere_ends_the_run():
    with pytest.raises(ValueError, match="ours"):
        go(build_request("prove", {}), export=EXPORTED, verify=[(ValueError("ours"),)])


def test_an_evaluation_that_died_is_tried_once_more_and_a_hung_one_is_not():
    request = build_request("evaluate", {"data": "x.npz"})
    collected, script = go(request, export=EXPORTED, evaluate=[(SEGFAULT,), ()])
    assert sum(name == "evaluate" for name, _ in script.told) == 2
    assert collected.known.findings == ()
    collected, script = go(request, export=EXPORTED, evaluate=[(HUNG,), ()])
    assert sum(name == "evaluate" for name, _ in script.told) == 1
    assert [f.code for f in collected.known.findings] == ["OX002"]


def test_a_contender_that_cannot_be_weighed_costs_only_its_number():
    request = replace(build_request("bench", {}), bench=BenchSettings())
    plays = [(ValueError("too large"),), (events.Weighed("onnxruntime", [7]),)]
    asked = events.ToWeigh(["pytorch", "onnxruntime"], [{"batch": 1, "sizes": {}}])
    timed = events.Timed(Latency((Run("pytorch", 1), Run("onnxruntime", 1)), ()))
    collected, _ = go(request, export=EXPORTED, bench=[(asked, timed)], weigh=plays)
    assert {run.contender: run.memory for run in collected.known.latency.runs} == {"pytorch": None, "onnxruntime": 7}
    assert collected.known.findings == ()


def test_a_finding_is_noted_once():
    collected = Collected()
    for _ in range(2):
        collected.receive(events.Observed(found("OX113", "a forward changes a buffer")))
    assert len(collected.known.findings) == 1
    assert collected.stateful


def _equal():
    import numpy as np

    from onnxproof.parity.comparison import compare

    return compare("y", np.ones(2, np.float32), np.ones(2, np.float32))
