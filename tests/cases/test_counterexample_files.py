"""Counterexamples on disk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onnxproof.cases import counterexample_files as keep
from onnxproof.cases.domain import infer_domain
from onnxproof.cases.roles import Use


def test_kept_inputs_survive_names_and_dtypes(tmp_path):
    import ml_dtypes

    inputs = {"file": np.arange(3), "past[0].key": np.array([1.5, 2.0], ml_dtypes.bfloat16)}
    keep.write(tmp_path / "a.npz", inputs)
    domains = [infer_domain(name, array, {0: "batch"}, None, Use()) for name, array in inputs.items()]
    back = keep.cast_to_domains(keep.read(tmp_path / "a.npz"), domains)
    assert keep.fits(back, domains)
    assert not keep.fits(back, [replace(domain, limits={"batch": (4, 9)}) for domain in domains])
    assert all(np.array_equal(back[name], inputs[name]) and back[name].dtype == inputs[name].dtype for name in inputs)


def test_what_is_no_counterexample_holds_nothing(tmp_path):
    (tmp_path / "cut.npz").write_bytes(b"PK and no more")
    keep.write(tmp_path / ".trying.npz", {"x": np.ones(2)})
    assert keep.read(tmp_path / "cut.npz") == {}
    assert keep.read_folder(tmp_path) == [tmp_path / "cut.npz"]
    assert keep.read(tmp_path / ".trying.npz")["x"].tolist() == [1, 1]
