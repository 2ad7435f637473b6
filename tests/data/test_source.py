"""Tables cut, joined and counted; marks that change with the data."""

from __future__ import annotations

import numpy as np
import pytest

from data import written
from data.written import X, Y
from onnxproof.data.arrays import ArraySource
from onnxproof.data.opening import open_source
from onnxproof.data.source import rechunk, take_window


def test_windows_and_chunks_keep_every_row():
    tables = [{"a": np.arange(i * 7, i * 7 + 7)} for i in range(9)]
    for skip, count, size in ((0, None, 10), (3, 40, 7), (14, 7, 7), (62, 5, 4), (63, 5, 4)):
        got = [t["a"] for t in rechunk(take_window(tables, skip, count), size)]
        joined = np.concatenate(got).tolist() if got else []
        assert joined == list(range(63))[skip : None if count is None else skip + count]
        assert all(len(part) == size for part in got[:-1])


def test_a_window_reads_no_further_than_its_end():
    def tables():
        yield {"a": np.zeros(4)}
        raise AssertionError("read on")

    assert len(list(take_window(tables(), 1, 3))) == 1


def test_selected_fields_are_all_that_is_read(tmp_path):
    source = open_source(str(written.vectors(tmp_path)))
    assert list(next(source.select(["y", "features", "y"]).read(0, 3, 3))) == ["y", "features"]
    assert source.fields == {"odd": "other", "features": "vector", "y": "number"}


@pytest.mark.parametrize("form", [written.pair, written.generator, written.loader])
def test_data_that_a_script_makes_are_recognised_by_their_values(form, tmp_path):
    text = form(tmp_path)
    mark = open_source(text).fingerprint
    assert open_source(text).fingerprint == mark
    np.savez(tmp_path / "d.npz", X=X + 1, y=Y)
    assert open_source(text).fingerprint != mark


def test_a_file_that_is_written_again_has_another_mark(tmp_path):
    mark = open_source(str(written.npz(tmp_path))).fingerprint
    np.savez(tmp_path / "d.npz", X=X[:9], y=Y[:9])
    assert open_source(str(tmp_path / "d.npz")).fingerprint != mark


def test_rows_of_more_keep_their_numbers():
    part = ArraySource({"X": X[100:200]}, "--data", "", first=100)
    assert np.array_equal(next(part.read(150, 160, 10))["X"], X[150:160])
