"""Facts about the data become findings: each with what nearly is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onnxproof.policy.data import exceeds_chance, judge_data
from onnxproof.proof.quality import MetricInterval, Quality
from onnxproof.proof.search import Coverage
from onnxproof.proof.traps import (
    Duplicates,
    Gap,
    InputFacts,
    Leak,
    Near,
    PreprocessingFacts,
    Ring,
    Shift,
    TrainingFacts,
    Traps,
)

FACTS = InputFacts(100, 0, 0, 0.0, 1.0, 2, "float32", 0.0, 1.0, features=4, constant=(), constant_count=0)
IMAGE = replace(FACTS, image=True, rank=4)
NONE = Duplicates(0, 100, ())
SHIFT = Shift("x", 2, 0.2, 0.15, 1, 4, 1.0)


def told(facts=FACTS, training=None, **quality):
    traps = Traps({"x": facts}, training=training, **quality.pop("traps", {}))
    return [(f.code, f.severity, f.message) for f in judge_data(Quality(traps=traps, **quality))]


def trained(facts=FACTS, quality=None, **changes):
    return told(facts, TrainingFacts(1000, **{"duplicates": NONE, **changes}), **(quality or {}))


@pytest.mark.parametrize(
    ("facts", "code", "severity", "said"),
    [
        (replace(FACTS, nonfinite_rows=3), "OX604", "review", "3 of 100 rows of x hold NaN or infinities"),
        (replace(FACTS, constant_count=4), "OX605", "review", "x is the same in every row"),
        (replace(FACTS, constant_count=4, dtype="int64"), "OX605", "note", "x is the same in every row"),
        (replace(FACTS, constant_count=2, constant=(1, 3)), "OX605", "note", "2 of 4 columns of x never change: 1, 3"),
        (replace(FACTS, declared=(0.0, 0.5)), "OX606", None, "x goes from 0 to 1; declared is 0 to 0.5"),
        (replace(IMAGE, data_dtype="uint8"), "OX615", None, "the data of x are uint8, the input takes float32"),
        (replace(IMAGE, high=255.0), "OX607", "review", "x reaches 255 and the example inputs 1: another scale"),
    ],
)
def test_each_trap_of_an_input(facts, code, severity, said):
    ((found, how, message),) = told(facts)
    assert found == code
    assert severity in (None, how)
    assert message.startswith(said)


@pytest.mark.parametrize(
    "facts",
    [
        FACTS,
        replace(FACTS, constant_count=4, rows=1),
        replace(FACTS, constant_count=2, constant=(1, 3), rank=3),
        replace(FACTS, declared=(0.0, 1.0)),
        replace(IMAGE, data_dtype="float64"),
        replace(IMAGE, high=15.0),
        replace(FACTS, high=255.0),
    ],
)
def test_what_only_looks_like_a_trap(facts):
    assert told(facts) == []


def test_another_scale_that_the_model_makes_sense_of_is_a_note():
    assert told(replace(IMAGE, high=255.0), candidate={"accuracy": 0.9})[0][:2] == ("OX607", "note")
    shifted = trained(
        replace(FACTS, high=255.0), {"candidate": {"accuracy": 0.9}}, shift=(replace(SHIFT, distance=0.0),)
    )
    assert [one[:2] for one in shifted] == [("OX607", "review")]
    assert "the training data 1" in shifted[0][2]


@pytest.mark.parametrize(
    ("leak", "severity"),
    [(Leak("x", 3, 0.999, 0.6), "review"), (Leak("x", 3, 0.999, 0.98), "note"), (Leak("x", 3, 0.98, 0.5), None)],
)
def test_a_feature_that_tells_the_label(leak, severity):
    found = told(traps={"leaks": (leak,)})
    assert [one[:2] for one in found] == ([("OX610", severity)] if severity else [])


def test_data_where_no_case_has_been():
    ((code, _, message),) = told(traps={"coverage": {"x": Coverage(0.5), "z": Coverage(0.8)}})
    assert (code, message) == ("OX609", "only 50% of x lies where generated parity cases have been")


def test_rows_of_the_training_data():
    ((code, _, message),) = trained(duplicates=Duplicates(9, 100, (4,)))
    assert (code, message) == ("OX601", "9 of 100 test rows (9.0%) are training rows, such as row 4")
    assert trained(duplicates=Duplicates(9, 100, (4,), train_twins=0.1)) == []
    assert [one[0] for one in trained(ids=Duplicates(1, 100, (4,)))] == ["OX603"]
    near = Near(1.0, (Ring(0.1, 1, 100, 0.0), Ring(0.2, 9, 100, 0.0), Ring(0.5, 20, 100, 0.0)), (4,), (), 1000)
    ((code, _, message),) = trained(near=near)
    assert code == "OX602"
    assert "0.2 times the usual distance" in message


def test_a_count_is_beyond_chance_where_the_share_does_not_make_it_natural():
    assert not exceeds_chance(0, 100, 0.0, 0.0)
    assert exceeds_chance(1, 100, 0.0, 0.0)
    assert not exceeds_chance(20, 100, 0.1, 0.0)
    assert exceeds_chance(39, 100, 0.1, 0.0)
    assert not exceeds_chance(38, 100, 0.1, 0.0)


def test_much_better_on_what_it_was_trained_on():
    narrow = {
        "candidate": {"accuracy": 0.7},
        "intervals": {"accuracy": MetricInterval("wilson", candidate=(0.65, 0.75))},
    }
    ((code, _, message),) = trained(quality=narrow, gap=Gap("accuracy", 0.99, 1000, 0.98, 1.0))
    assert code == "OX611"
    assert message.startswith("accuracy is 0.99 on the training data and 0.7 on the test data: learnt by heart")
    assert trained(quality=narrow, gap=Gap("accuracy", 0.99, 1000, 0.74, 1.0)) == []
    assert trained(quality={"candidate": {"mae": 3.0}}, gap=Gap("mae", 2.0, 1000)) == []
    assert trained(quality={"candidate": {"mae": 5.0}}, gap=Gap("mae", 2.0, 1000))[0][0] == "OX611"


@pytest.mark.parametrize(("distance", "severity"), [(0.4, "review"), (0.2, "note"), (0.12, None)])
def test_another_distribution(distance, severity):
    found = trained(shift=(replace(SHIFT, distance=distance),))
    assert [one[:2] for one in found] == ([("OX612", severity)] if severity else [])


def test_channels_in_the_opposite_order():
    image = replace(FACTS, channels=(0.1, 0.5, 0.9))
    assert [one[0] for one in trained(image, channels={"x": (0.9, 0.5, 0.1)})] == ["OX614"]
    assert trained(image, channels={"x": (0.1, 0.5, 0.9)}) == []
    assert trained(channels={"x": (0.9, 0.5, 0.1)}) == trained(image, channels={"other": (0.9, 0.5, 0.1)}) == []


PARTED = PreprocessingFacts(False, {}, 1, {"training": "scale", "serving": "scale"}, what="one side has no field age")


@pytest.mark.parametrize(
    ("facts", "severity", "said"),
    [
        (PARTED, "review", "step 2 (scale): one side has no field age"),
        (replace(PARTED, field="age"), "review", "step 2 (scale), field age: one side has no field age"),
        (
            replace(
                PARTED, names={"training": "a", "serving": "b"}, max_abs=0.5, rows_differing=3, compared=9, hint="÷ 255"
            ),
            "review",
            "step 2 (a / b): up to 0.5 in 3 of 9 rows; ÷ 255",
        ),
        (replace(PARTED, flips=0, of=9), "review", "age; 0 of 9 decisions change"),
        (replace(PARTED, flips=2, of=9), "block", "age; 2 of 9 decisions change"),
        (replace(PARTED, refused="shape"), "block", "age; the model cannot take it"),
    ],
)
def test_where_training_and_serving_part(facts, severity, said):
    ((code, how, message),) = told(preprocessing=facts)
    assert (code, how) == ("OX613", severity)
    assert message.startswith("training and serving part in step 2")
    assert message.endswith(said)
    assert told(preprocessing=replace(facts, same=True)) == []
