"""Every remedy that the catalogue's forms offer was applied: the rewritten model exports and passes."""

from __future__ import annotations

import pytest
from benchmarks.failures import models
from benchmarks.failures.corpus import FAILURES

import onnxproof

REWRITTEN = sorted({failure.name for failure in FAILURES if failure.remedied_with is None})


@pytest.mark.slow
@pytest.mark.parametrize("name", REWRITTEN)
def test_the_rewritten_model_passes(name, tmp_path):
    proof = onnxproof.prove(*getattr(models, f"{name}_remedied")(), budget=1.0, out=tmp_path)
    assert proof.verdict == "ship", [(f.code, f.message) for f in proof.findings if f.weight]
