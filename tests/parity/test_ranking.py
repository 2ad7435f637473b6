"""Which node a lower precision costs most at."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lowered import KINDS, change, lower, lower_uneven, net
from onnxproof.lowering.conversion import list_places
from onnxproof.parity.declared import Meaning, list_originals
from onnxproof.parity.ranking import Ranking, place_cost, tell_costs
from onnxproof.request.lowering import Lowering


def rank(path, *, places=True, originals=None):
    module, (x,) = net()
    meaning = Meaning(str(path), {})
    known = list_places(lower("float32")) if places else None
    return Ranking(meaning, originals or list_originals(module), {"x": x.numpy()}, known).rank(effects=True)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "int8 operators"])
def test_what_each_node_does_alone_adds_up_to_what_all_do(kind):
    module, (x,) = net()
    with torch.no_grad():
        right = module.double()(x.double()).numpy()
    made = next(iter(Meaning(str(lower(kind)), {}).evaluate({"x": x.numpy()}).values()))
    ranked = rank(lower(kind))
    alone = sum(10 ** (-cost.effect / 10) for cost in ranked)
    together = np.sum((made - right) ** 2) / np.sum(right**2)
    assert 0.4 < alone / together < 2.5
    assert [cost.effect for cost in ranked] == sorted(cost.effect for cost in ranked)


@pytest.mark.parametrize("places", [True, False])
def test_the_node_with_the_coarse_weight_comes_first(places, tmp_path):
    def coarse(stored):
        return np.sign(stored) * 64 * np.round(np.abs(stored.astype(float)) / 64).clip(0, 1)

    ranked = rank(change(lower("int8 static"), "second.weight_quantized", coarse, tmp_path), places=places)
    assert "linear_1" in ranked[0].node
    assert ranked[0].introduced < ranked[0].inherited
    assert ranked[0].introduced < ranked[1].introduced - 10


def test_clipping_and_a_channel_that_ruins_the_scale(tmp_path):
    clipped = rank(change(lower("int8 static"), "x_scale", lambda a: a * 0.2, tmp_path))
    assert clipped[0].clipped > 0.2
    assert all(cost.outlier == 0 for cost in clipped)


@pytest.mark.parametrize("kind", ["int8 static", "int8 dynamic"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_ox232_a_channel_that_ruins_the_scale_is_named_wherever_it_ranks(kind, per_channel, tmp_path):
    module, x, path = lower_uneven(Lowering(kind, per_channel=per_channel), tmp_path)
    ranked = Ranking(Meaning(str(path), {}), list_originals(module), {"x": x.numpy()}).rank()
    told = tell_costs(ranked)
    assert ("one channel of the weight of" in told.message) == (not per_channel)
    if not per_channel:
        (ruined,) = (cost for cost in ranked if cost.outlier)
        assert ruined.module == "second"
        assert ruined.outlier == pytest.approx(200, rel=0.1)
        assert ruined.node in told.message.partition(";")[0]
        assert any(node["outlier"] for node in told.evidence["nodes"])


def test_the_name_before_the_conversion_finds_the_line(tmp_path):
    (tmp_path / "m.json").write_text(
        '{"schema": "onnxproof.sourcemap/1", "nodes": {"node_linear": {"module": "first", "file": "m.py", "line": 3}}}'
    )
    (cost, *_) = (cost for cost in rank(lower("int8 dynamic"), places=False) if "linear_MatMul" in cost.node)
    placed = place_cost(cost, str(tmp_path / "m.json"))
    assert (placed.module, placed.line) == ("first", 3)
