"""Shards, written down and put together again."""

from __future__ import annotations

from onnxproof.quality.accumulate import Shard, merge
from onnxproof.quality.metrics import measure
from quality.scored import binary, scores_of


def test_shards_in_any_order_are_one(tmp_path):
    labels, logits = binary(1000)
    whole = scores_of(labels, logits)
    cuts = [(0, 300), (300, 301), (301, 1000)]
    parts = [
        Shard(a, b - a, {"labels": whole.labels[a:b], "baseline": logits[a:b], "candidate": logits[a:b]})
        for a, b in cuts
    ]
    for i, shard in enumerate(parts):
        shard.save(tmp_path / f"shard-{i}.npz", "mark")
    assert Shard.load(tmp_path / "shard-0.npz", "other") is None
    (tmp_path / "shard-9.npz").write_bytes((tmp_path / "shard-0.npz").read_bytes()[:100])
    assert Shard.load(tmp_path / "shard-9.npz", "mark") is None
    loaded = [Shard.load(tmp_path / f"shard-{i}.npz", "mark") for i in (2, 0, 1)]
    merged = merge(loaded, whole.plan)
    assert merged.n == 1000
    assert (merged.sides["candidate"].scores == logits).all()
    assert measure(merged).confusion == measure(whole).confusion
