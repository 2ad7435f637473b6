"""Settings that are faster are offered where they pass."""

from __future__ import annotations

import models
from onnxproof.artifact.file import read_artifact
from onnxproof.latency.bench import Bench
from onnxproof.latency.tune import list_settings, tune
from onnxproof.pipeline.locating import SILENT
from onnxproof.request.benchmark import BenchSettings
from onnxproof.request.request import Request
from onnxproof.subject.assembly import make_subject


def test_tuning_offers_only_what_passes(tmp_path, exported):
    assert len(list_settings(10**9, 4)) == 6
    assert len(list_settings(1000, 2)) == 32
    module, inputs = models.mlp()
    bench = Bench(
        make_subject(module, inputs),
        read_artifact(exported("mlp")),
        Request(bench=BenchSettings(min_time=0.02, min_count=20)),
        SILENT,
    )
    asked = []

    def refuse(session):
        asked.append(session)
        return "block", 3

    tuned = tune(bench, bench.points[0], refuse, seconds=4.0)
    assert len(tuned) == len(asked)
    assert all(one.verdict == "block" and one.low > 1.0 for one in tuned)
