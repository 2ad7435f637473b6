"""An option is the same option from every face, and the request is put together in one place."""

from __future__ import annotations

import inspect

import pytest

import onnxproof
from onnxproof import api
from onnxproof.cli.commands import take
from onnxproof.errors import UserError
from onnxproof.request.build import build_request, take_keywords
from onnxproof.request.configuration import Settings, list_keys, merge
from onnxproof.request.option import walk
from onnxproof.request.verbs import EVERYTHING, VERBS

SAME = {
    "batch_sizes": ("1,3", [1, 3], "1,3"),
    "range": (["ids:0,5"], {"ids": (0, 5)}, ["ids:0,5"]),
    "dynamic": (["x:0=batch"], {"x": {0: "batch"}}, ["x:0=batch"]),
    "role": (["m:mask"], {"m": "mask"}, ["m:mask"]),
    "provider": (["CUDA:device_id=1"], "CUDA:device_id=1", ["CUDA:device_id=1"]),
    "atol": (["1e-3", "y=1e-2"], {None: 1e-3, "y": 1e-2}, ["1e-3", "y=1e-2"]),
    "min": (["recall=0.8"], {"recall": 0.8}, {"recall": 0.8}),
    "max_latency": (["p99=20ms"], {"p99": 20.0}, ["p99=20ms"]),
    "budget": ("3m", 180, "3m"),
    "memory": ("1MB", 1_000_000, 1_000_000),
    "runtime": (["node", "onnxruntime==1.20.1"], ("node", "onnxruntime==1.20.1"), ["node", "onnxruntime==1.20.1"]),
    "no_optimize": (True, True, True),
    "opset": ("18", 18, 18),
}
"""Option → how a flag, a keyword and a configuration say the same."""


@pytest.mark.parametrize("name", SAME)
def test_every_face_gives_the_same_request(name, tmp_path):
    flag, keyword, key = SAME[name]
    import tomlkit

    (tmp_path / "onnxproof.toml").write_text(tomlkit.dumps({name.replace("_", "-"): key}))
    prove = VERBS["prove"]
    _, configured = merge(prove, "m.py:f", {}, Settings.find(tmp_path))
    made = [
        build_request("prove", values)
        for values in (take(prove, {name: flag}), take_keywords("prove", {name: keyword}), configured)
    ]
    assert made[0] == made[1] == made[2]
    assert made[0] != build_request("prove", {})


def test_a_name_has_one_meaning_in_a_verb():
    timed = build_request("bench", take_keywords("bench", {"budget": "30s", "baseline": "p.json"}))
    assert timed.bench is not None
    assert (timed.bench.budget, timed.verify.budget) == (30.0, 120.0)
    assert (timed.bench.baseline, timed.delivery.baseline) == ("p.json", None)
    proved = build_request("prove", take_keywords("prove", {"budget": "30s", "bench": True, "baseline": "p.json"}))
    assert proved.bench is not None
    assert (proved.bench.baseline, proved.delivery.baseline) == (None, "p.json")
    assert (proved.bench.budget, proved.verify.budget) == (600.0, 30.0)


def test_a_configured_budget_reaches_bench_and_a_configured_tolerance_reaches_diff(tmp_path):
    (tmp_path / "onnxproof.toml").write_text('budget = "7s"\natol = 1e-2\naccept = { OX204 = "known" }\n')
    settings = Settings.find(tmp_path)
    _, values = merge(VERBS["bench"], "m.py:f", {}, settings)
    timed = build_request("bench", values)
    assert timed.bench is not None
    assert timed.bench.budget == 7.0
    _, values = merge(VERBS["diff"], "a.onnx", {}, settings)
    assert build_request("diff", values).judgement.atol.general == 1e-2
    assert build_request("diff", values).judgement.accept == {"OX204": "known"}


def test_times_are_taken_where_a_limit_needs_them_and_labels_where_there_are_data():
    assert build_request("prove", {}).bench is None
    limited = build_request("prove", take_keywords("prove", {"max_latency": {"p99": 20}}))
    assert limited.bench is not None
    assert limited.bench.percentiles == (0.99,)
    data = take_keywords("prove", {"data": "x.npz", "seed": 3})
    asked = build_request("prove", data).evaluate
    assert asked is not None
    assert (asked.data, asked.seed, asked.required) == ("x.npz", 3, False)
    assert build_request("verify", data).evaluate is None
    assert build_request("prove", {**data, "evaluate": False}).evaluate is None
    assert build_request("evaluate", {"data": "x.npz"}).evaluate.required


def test_every_option_is_taken_by_some_verb_and_no_name_is_left_over():
    taken = {name for verb in VERBS.values() for name in verb.takes}
    assert taken == {option.name for _, option in walk(EVERYTHING)}
    assert all(len(verb.takes) == len(set(verb.takes)) for verb in VERBS.values())


def test_what_one_run_writes_is_not_configured():
    assert not list_keys().keys() & {
        "json",
        "html",
        "junit",
        "markdown",
        "github",
        "quiet",
        "verbose",
        "fix",
        "all",
        "jobs",
    }


def test_python_shows_the_options_in_its_signatures():
    shown = inspect.signature(onnxproof.prove).parameters
    assert {"atol", "dynamic", "provider", "batch_sizes", "isolate", "progress"} <= set(shown)
    assert not {"json", "quiet", "in_process"} & set(shown)
    assert shown["seed"].default == 0
    assert "baseline" in inspect.signature(onnxproof.bench).parameters


def test_a_misspelt_keyword_names_the_nearest():
    with pytest.raises(TypeError, match="did you mean 'atol'"):
        onnxproof.prove("m.py:f", atoll=1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"atol": "soon"}, "atol: expected a number"),
        ({"accept": "OX201"}, "accept: expected codes and reasons"),
        ({"min": 0.8}, "min: expected a mapping"),
        ({"min": {"recall": float("nan")}}, "min: expected a number"),
        ({"budget": "soon"}, "expected a time such as 30s"),
        ({"optimization": "max"}, "optimization: expected one of disable, basic"),
    ],
)
def test_a_wrong_value_from_python_says_what_was_expected(options, message):
    with pytest.raises(UserError, match=message):
        onnxproof.prove("m.py:f", **options)


def test_a_policy_is_made_of_the_same_options():
    policy = api.make_policy(atol=1e-3, max_abs={"y": 1e-2}, accept={"OX204": "known"})
    assert (policy.tolerance.atol, policy.tolerance.max_abs, policy.tolerance.promised) == (1e-3, float("inf"), True)
    assert policy.outputs["y"].max_abs == 1e-2
    assert api.make_policy(base=policy, noise=3.0).tolerance == policy.tolerance
