"""The worker of a benchmark: what it leaves for those who weigh, and how often it speaks."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from onnxproof.cases.plan import make_case
from onnxproof.latency.points import Point
from onnxproof.pipeline import benching, events
from onnxproof.pipeline.benching import INPUTS, run_bench, run_weigh
from onnxproof.pipeline.workshop import Workshop
from onnxproof.request.benchmark import BenchSettings
from onnxproof.request.thresholds import Policy
from pipeline.small import UNKNOWN_OPERATOR, Told, artifact_of, twice


def sized(batch: int) -> Point:
    inputs = {"x": np.zeros((batch, 2), np.float32)}
    return Point(make_case({"batch": batch}, "normal"), inputs, batch, {"batch": batch})


def test_it_speaks_now_and_then_only(monkeypatch):
    told = Told()
    tell = benching._make_teller(told)
    for word in ("first", "at once", "at once again"):
        tell(word)
    monkeypatch.setattr(benching, "TOLD_EVERY", 0.02)
    time.sleep(0.03)
    tell("later")
    assert told == [events.Entered("first"), events.Entered("later")]


def test_the_smallest_is_weighed_first(tmp_path):
    points = [sized(batch) for batch in (8, 1, 32)]
    told = Told()
    benching._tell_weights(SimpleNamespace(points=points, contenders={"pytorch": 0, "onnxruntime": 0}), tmp_path, told)
    assert told == [
        events.ToWeigh(["pytorch", "onnxruntime"], [{"batch": b, "sizes": {"batch": b}} for b in (1, 8, 32)])
    ]
    assert [len(inputs["x"]) for inputs in pickle.loads((tmp_path / INPUTS).read_bytes())] == [1, 8, 32]


def test_a_file_that_is_refused_is_a_finding_and_nothing_is_timed(tmp_path):
    told = Told()
    request = replace(twice(out=str(tmp_path)), bench=BenchSettings())
    run_bench(told, request, artifact_of(tmp_path, UNKNOWN_OPERATOR), Policy(), stateful=False, shop=Workshop())
    assert "NoSuchOperator" in told.of(events.Observed)[0].finding.message
    assert told.of(events.Timed) == []


def test_one_contender_is_weighed_at_every_size(tmp_path):
    inputs = [{"x": np.ones((batch, 2), np.float32)} for batch in (1, 4)]
    (tmp_path / INPUTS).write_bytes(pickle.dumps(inputs))
    told = Told()
    run_weigh(told, twice(out=str(tmp_path)), artifact_of(tmp_path), "onnxruntime", str(tmp_path), shop=Workshop())
    assert told[0] == events.Entered("weighing onnxruntime")
    assert told[1].contender == "onnxruntime"
    assert [type(count) in (int, type(None)) for count in told[1].bytes] == [True, True]
