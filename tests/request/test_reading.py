"""Readers take what any face gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxproof.request import reading
from onnxproof.request.option import Expected
from onnxproof.request.thresholds import (
    Thresholds,
    parse_gate,
    parse_latency,
    read_accepted,
    read_limits,
    read_thresholds,
)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("30s", 30), ("2m", 120), ("500ms", 0.5), ("1h", 3600), (2.5, 2.5)]
)
def test_seconds(text, seconds):
    assert reading.seconds(text) == seconds


@pytest.mark.parametrize(("given", "size"), [("512MB", 512_000_000), ("2gb", 2_000_000_000), ("7", 7), (7, 7)])
def test_bytes(given, size):
    assert reading.size(given) == size


def test_the_same_value_from_a_flag_a_file_and_python():
    assert reading.sizes("1,2,7") == reading.sizes([1, 2, 7]) == reading.sizes((1, 2, 7)) == (1, 2, 7)
    assert reading.texts("a") == reading.texts(["a"]) == ("a",)
    assert reading.words("ok, fraud") == reading.words(["ok", "fraud"]) == ("ok", "fraud")
    assert reading.switch("yes") is reading.switch(True) is True
    assert reading.switch("off") is False
    assert reading.negated("true") is False
    assert reading.text(Path("a") / "b") == "a/b"
    assert reading.whole(1)("3") == 3
    assert read_thresholds("1e-3") == read_thresholds(1e-3) == read_thresholds(["1e-3"]) == Thresholds(1e-3)
    mixed = Thresholds(1e-3, {"logits": 1e-2})
    assert read_thresholds(["1e-3", "logits=1e-2"]) == read_thresholds({None: 1e-3, "logits": 1e-2}) == mixed
    assert read_limits(["p99=20ms"]) == read_limits({"p99": 20}) == {"p99": 20.0}


def test_gates_and_latencies():
    assert parse_gate("recall[a=b]=0.5") == ("recall[a=b]", 0.5)
    assert parse_latency("p99=20ms") == parse_latency("p99=20") == ("p99", 20.0)
    assert parse_latency("p50=0.5s") == ("p50", 500.0)


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (reading.switch, "perhaps"),
        (reading.switch, 1),
        (reading.text, 3),
        (reading.whole(), "x"),
        (reading.whole(), True),
        (reading.whole(1), 0),
        (reading.whole(1), 2**31),
        (reading.whole(1, 8), "9"),
        (reading.number(), "nan"),
        (reading.number(), None),
        (reading.one_of("a", "b"), "c"),
        (reading.seconds, "soon"),
        (reading.seconds, "-1s"),
        (reading.seconds, "1e300"),
        (reading.seconds, "nan"),
        (reading.size, "big"),
        (reading.size, "1e300GB"),
        (reading.sizes, "-1"),
        (reading.sizes, "2,999999999999"),
        (reading.sizes, 3),
        (read_thresholds, ["-1"]),
        (read_thresholds, {"logits": "x"}),
        (parse_gate, "recall"),
        (parse_gate, "=0.5"),
        (parse_latency, "p42=1ms"),
        (parse_latency, "p99=-1ms"),
        (parse_latency, "p99"),
        (read_limits, {"p42": 1.0}),
        (read_accepted, ["OX202"]),
        (read_accepted, {"OX202": 1}),
    ],
)
def test_nonsense_is_refused(read, value):
    with pytest.raises(Expected):
        read(value)


def test_of_several_the_wrong_one_is_named():
    with pytest.raises(Expected) as refused:
        reading.each(reading.seconds)(["1s", "soon"])
    assert refused.value.part == "soon"
