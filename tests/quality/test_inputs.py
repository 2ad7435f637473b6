"""What is noted about inputs while they pass."""

from __future__ import annotations

import numpy as np

from onnxproof.quality.inputs import FEATURES, SAMPLE_ROWS, Sampler, Watch, extract_features, hash_ids, hash_rows


def test_equal_rows_have_equal_hashes_and_others_have_not():
    rows = np.random.default_rng(0).normal(size=(500, 7)).astype(np.float32)
    rows[3], rows[4] = rows[9], -0.0
    rows[5] = 0.0
    hashes = hash_rows({"x": rows, "mask": np.ones((500, 3), bool), "scalar": np.float32(1)})
    assert hashes[3] == hashes[9]
    assert hashes[4] == hashes[5]
    assert len(np.unique(hashes)) == 498
    assert (hash_rows({"x": rows[:, ::-1]}) != hash_rows({"x": rows})).sum() >= 498


def test_an_id_is_the_same_as_number_and_as_text():
    assert hash_ids(np.array([7, 8])).tolist() == hash_ids(np.array([7.0, 8.0])).tolist()
    assert hash_ids(np.array(["7", "8"])).tolist() == hash_ids(np.array([7, 8])).tolist()
    assert hash_ids(np.array([7.5]))[0] != hash_ids(np.array([7]))[0]


def test_a_long_row_always_keeps_the_same_features():
    rows = np.arange(2 * 3 * FEATURES, dtype=np.float64).reshape(2, -1)
    kept = extract_features(rows)
    assert kept.shape == (2, FEATURES)
    assert (kept[1] - kept[0] == rows.shape[1]).all()
    assert (extract_features(rows[:1]) == kept[:1]).all()


def test_a_sample_is_evenly_thinned_however_rows_come():
    for size in (100, 999, 30_000):
        sampler = Sampler()
        for start in range(0, 30_000, size):
            numbers = np.arange(start, min(start + size, 30_000), dtype=np.float32)
            taken = sampler.see({"x": numbers[:, None], "text": np.array(["a"] * len(numbers))}, len(numbers), start)
            assert (taken < len(numbers)).all()
        sample = {name: np.concatenate(parts) for name, parts in sampler.parts.items()}
        assert list(sample) == ["sample_rows", "sample/x"]
        assert (np.diff(sample["sample_rows"]) == 8).all()
        assert len(sample["sample_rows"]) <= SAMPLE_ROWS
        assert (sample["sample/x"][:, 0] == sample["sample_rows"]).all()


def test_extremes_are_those_of_finite_values_and_the_others_are_counted():
    watch = Watch(hashed=True)
    watch.see({"x": np.array([[1.0, -2.0], [np.nan, 3.0]])}, np.array(["a", "b"]), 0)
    watch.see({"x": np.array([[np.inf, -np.inf]])}, np.array(["c"]), 2)
    noted, kept = watch.facts["x"], watch.columns()
    assert (noted["low"], noted["high"], noted["rows"]) == (-2.0, 3.0, 3)
    assert (noted["nonfinite"], noted["nonfinite_rows"]) == (3, 2)
    assert len(kept["hash"]) == len(kept["id_hash"]) == 3


def test_channels_of_images_are_summed():
    watch = Watch(hashed=False)
    images = np.ones((4, 3, 2, 2), np.float32) * np.array([1, 2, 3], np.float32)[:, None, None]
    watch.see({"x": images}, None)
    watch.see({"x": images}, None, 4)
    noted = watch.facts["x"]
    assert [total / noted["channel_values"] for total in noted["sum_channels"]] == [1, 2, 3]
