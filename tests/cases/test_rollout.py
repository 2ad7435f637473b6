"""Steps as cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onnxproof.cases.domain import infer_domain
from onnxproof.cases.roles import Use
from onnxproof.cases.rollout import STEPS, Rollouts
from onnxproof.errors import Rejected


def domain(name, example, dims):
    return infer_domain(name, np.asarray(example), dims, None, Use())


def sum_up(inputs):
    """A state that keeps its form: what was seen so far."""
    state = inputs["state"] + inputs["x"].sum(axis=1)
    return {"y": state * 2, "state_out": state}


def sum_up_windows(inputs):
    """The same, of windows that are at least so long."""
    if inputs["x"].shape[1] < 3:
        raise Rejected("too short")
    return sum_up(inputs)


def make(seed: int = 0, run=sum_up) -> Rollouts:
    x, state = np.ones((3, 4), np.float32), np.full(3, 5, np.float32)
    domains = [domain("x", x, {0: "batch", 1: "time"}), domain("state", state, {0: "batch"})]
    outputs = sum_up({"x": x, "state": state})
    return Rollouts(domains, {"state_out": "state"}, run, outputs, batch="batch", seed=seed)


def test_a_step_has_the_modules_own_state_and_its_name_is_enough():
    rollouts, again = make(), make()
    long, mixed = rollouts.walks
    assert (long.name, mixed.name) == ("rollout=zero/steps=1x12", "rollout=example/steps=4,1,2")
    steps = [rollouts.make(rollouts.name_step(long, i)) for i in range(3)]
    assert steps[0]["state"].tolist() == [0, 0, 0]
    assert np.array_equal(steps[2]["state"], steps[0]["x"][:, 0] + steps[1]["x"][:, 0])
    assert [rollouts.make(rollouts.name_step(mixed, i))["x"].shape for i in range(3)] == [(3, 4), (3, 1), (3, 2)]
    assert rollouts.make(rollouts.name_step(mixed, 0))["state"].tolist() == [5, 5, 5]
    for case in rollouts.cases():
        assert all(np.array_equal(a, again.make(case)[n]) for n, a in rollouts.make(case).items())
    assert not np.array_equal(make(1).make(rollouts.cases()[0])["x"], steps[0]["x"])


def test_chunks_are_as_long_as_the_module_takes_them():
    rollouts = make(run=sum_up_windows)
    assert [walk.name for walk in rollouts.walks] == ["rollout=zero/steps=4x12", "rollout=example/steps=4,4,4"]
    assert [rollouts.count(walk) for walk in rollouts.walks] == [12, 3]


def listen(inputs):
    """Beside its state it hands on what it heard, and it has a rate and a mode."""
    heard = inputs["rate"] * inputs["mode"] * inputs["hidden"].sum(axis=1)
    return {"state_out": inputs["state"] + heard + inputs["x"].sum(axis=1), "hidden_out": inputs["hidden"]}


def test_what_is_handed_on_is_no_state_and_a_number_stays():
    given = {
        "x": np.ones((3, 4), np.float32),
        "state": np.full(3, 5, np.float32),
        "hidden": np.ones((3, 2), np.float32),
        "rate": np.array(16000),
        "mode": np.array(1),
    }
    dims = {"x": {0: "batch", 1: "time"}, "state": {0: "batch"}, "hidden": {0: "batch"}}
    domains = [domain(name, array, dims.get(name, {})) for name, array in given.items()]
    state = {"state_out": "state", "hidden_out": "hidden"}
    rollouts = Rollouts(domains, state, listen, listen(given), batch="batch")
    assert rollouts.state == state  # it goes along all the same: the next step hears it too
    assert rollouts.moving == {"state_out": "state"}
    steps = [rollouts.make(case) for case in rollouts.cases()]
    assert {(int(step["rate"]), int(step["mode"])) for step in steps} == {(16000, 1)}


def attend(inputs):
    """A state that grows; positions and mask have to fit."""
    past = inputs["past"]
    key = np.concatenate([past, inputs["ids"][..., None].astype(np.float32)], axis=1)
    if inputs["mask"].shape[1] != key.shape[1] or inputs["position_ids"][0, 0] != past.shape[1]:
        raise Rejected("the lengths do not fit")
    return {"key": key}


def grow(dims=None) -> Rollouts:
    given = {
        "ids": np.zeros((2, 3), np.int64),
        "mask": np.ones((2, 8), np.int64),
        "position_ids": np.broadcast_to(np.arange(5, 8), (2, 3)),
        "past": np.ones((2, 5, 1), np.float32),
    }
    dims = dims or {
        "ids": {0: "batch", 1: "seq"},
        "mask": {0: "batch", 1: "past+seq"},
        "position_ids": {0: "batch", 1: "seq"},
        "past": {0: "batch", 1: "past"},
    }
    domains = [domain(name, array, dims[name]) for name, array in given.items()]
    return Rollouts(domains, {"key": "past"}, attend, attend(given), batch="batch", seed=0)


def test_masks_and_positions_go_on_with_a_state_that_grows():
    rollouts = grow()
    long, mixed = rollouts.walks
    assert rollouts.count(long) == STEPS, "the module takes every step"
    assert rollouts.count(mixed) == 3
    last = rollouts.make(rollouts.name_step(mixed, 2))
    assert last["past"].shape == (2, 9, 1)
    assert last["position_ids"].tolist() == [[9, 10]] * 2
    assert last["mask"].tolist() == [[0] + [1] * 10, [1] * 11], "padding on the left, where there was a past"
    assert rollouts.make(rollouts.name_step(long, 4))["mask"].all()


def test_a_state_that_grows_and_is_fixed_cannot_be_rolled_out():
    fixed = {name: {0: "batch"} for name in ("ids", "mask", "position_ids", "past")}
    assert grow(fixed).walks == []
    assert grow(fixed).cases() == []


def test_what_the_module_refuses_ends_a_walk():
    def fill(inputs):
        if inputs["state"].max() > 3:
            raise Rejected("full")
        return {"state": inputs["state"] + 1, "y": inputs["x"]}

    domains = [domain("x", np.ones((2, 2), np.float32), {}), domain("state", np.zeros((2, 1), np.float32), {})]
    rollouts = Rollouts(
        domains, {"state": "state"}, fill, fill({"x": 0, "state": np.zeros((2, 1))}), batch=None, seed=0
    )
    assert rollouts.count(rollouts.walks[0]) == 0 or rollouts.count(rollouts.walks[0]) < STEPS


def test_nothing_outside_the_declared_sizes_is_tried():
    x, state = np.ones((3, 4), np.float32), np.full(3, 5, np.float32)
    limits = {"time": (2, 9), "batch": (5, 6)}
    domains = [replace(domain("x", x, {0: "batch", 1: "time"}), limits=limits), domain("state", state, {0: "batch"})]
    rollouts = Rollouts(domains, {"state_out": "state"}, sum_up, sum_up({"x": x, "state": state}), batch="batch")
    made = [rollouts.make(case)["x"].shape for case in rollouts.cases()]
    assert {shape[0] for shape in made} == {5}
    assert {shape[1] for shape in made} == {2, 4}
