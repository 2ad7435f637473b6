"""What is remembered of trials: agreement only, whole files, and a proof that does not depend on it."""

from __future__ import annotations

import pytest

import onnxproof
from onnxproof.trials import examination, remembered
from onnxproof.trials.remembered import Remembered
from trials.small import capped, export, raise_cap


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(remembered, "user_cache_path", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "onnxproof" / "trials"


def test_what_one_keeps_another_recalls():
    one = Remembered()
    assert one.recall("a") is None
    one.keep("a", 7)
    one.write()
    assert Remembered().recall("a") == 7


def test_two_that_write_at_a_time_lose_nothing():
    one, other = Remembered(), Remembered()
    one.keep("a", 1)
    other.keep("b", 2)
    one.write()
    other.write()
    assert (Remembered().recall("a"), Remembered().recall("b")) == (1, 2)


def test_a_broken_file_is_as_none(cache):
    one = Remembered()
    one.keep("a", 1)
    one.write()
    (file,) = cache.iterdir()
    file.write_text("a one\n")
    assert Remembered().recall("a") is None


def test_a_folder_that_cannot_be_written_costs_nothing(cache):
    cache.parent.mkdir(parents=True)
    cache.write_text("a file is in the way")
    one = Remembered()
    one.keep("a", 1)
    one.write()
    assert Remembered().recall("a") is None


@pytest.mark.slow
def test_a_proof_is_the_same_with_and_without_it(tmp_path, cache):
    file = export(tmp_path / "file")
    first = onnxproof.verify(*capped(), onnx=file, out=tmp_path / "out", in_process=True)
    (kept,) = cache.iterdir()
    assert len(kept.read_text().split()) > 6
    assert onnxproof.verify(*capped(), onnx=file, out=tmp_path / "out", in_process=True).trials == first.trials


def test_a_fault_is_found_after_a_right_model_of_the_family(tmp_path):
    right, wrong = export(tmp_path / "right"), export(tmp_path / "wrong", raise_cap)
    assert onnxproof.verify(*capped(), onnx=right, out=tmp_path / "out", in_process=True).verdict == "ship"
    for _ in range(2):
        proof = onnxproof.verify(*capped(), onnx=wrong, out=tmp_path / "out", in_process=True, fast=True)
        assert proof.trials is not None
        assert proof.trials.latent


def test_the_second_model_of_a_family_is_recorded_once(tmp_path, cache, monkeypatch):
    """Pieces that all agreed before are no pairs by chance: the other input is not asked. Where one is unknown it is."""
    asked: list[int] = []
    monkeypatch.setattr(examination, "repeat", lambda *args: asked.append(1))  # None: the module is asked itself
    right, wrong = export(tmp_path / "right"), export(tmp_path / "wrong", raise_cap)
    first, second = (
        onnxproof.verify(*capped(), onnx=right, out=tmp_path / "out", in_process=True, fast=True).trials
        for _ in range(2)
    )
    assert len(asked) == 1
    assert first == second
    third = onnxproof.verify(*capped(), onnx=wrong, out=tmp_path / "out", in_process=True, fast=True).trials
    assert len(asked) == 2
    assert third is not None
    assert third.latent
