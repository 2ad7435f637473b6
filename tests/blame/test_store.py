"""Inner values within a budget of memory."""

from __future__ import annotations

import numpy as np

from onnxproof.blame.store import Layered, Renamed, Store


def test_a_store_keeps_everything_and_little_of_it_in_memory():
    store = Store(budget=1_000_000)
    arrays = {f"v{i}": np.full(100_000, float(i)) for i in range(20)}
    for name, array in arrays.items():
        store[name] = array
    held = sum(array.nbytes for array in store._held.values())
    assert held <= 1_000_000 + arrays["v0"].nbytes
    assert store.spilled >= 15 * arrays["v0"].nbytes
    assert len(store) == 20
    for name, array in arrays.items():
        assert np.array_equal(store[name], array)
        assert store.bytes_of(name) == array.nbytes
    store["v3"] = np.zeros(2)
    assert store["v3"].shape == (2,)
    del store["v4"]
    assert "v4" not in store


def test_layers_and_other_names_copy_nothing():
    store = Store(budget=0)
    store["a"], store["b"] = np.zeros(100_000), np.ones(2)
    layered = Layered({"b": np.full(3, 7.0)}, store)
    assert layered["b"].tolist() == [7, 7, 7]  # the first layer wins
    assert (layered.bytes_of("a"), layered.bytes_of("b")) == (800_000, 24)
    assert "c" not in layered
    renamed = Renamed(layered, {"x": "a"})
    assert "a" not in renamed
    assert Layered(renamed)["x"].shape == (100_000,)
