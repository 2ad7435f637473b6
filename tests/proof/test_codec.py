"""Records become JSON and come back: what they publish, what they leave out, numbers that JSON does not have."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec
import numpy as np
import pytest

from onnxproof.proof.codec import LARGEST, Number, decode, encode, make_finite, settle, to_plain


@dataclass(frozen=True)
class Inner:
    PUBLISHED: ClassVar = ("double",)

    value: Number
    note: float | None = None

    @property
    def double(self) -> float:
        return 2 * self.value


@dataclass(frozen=True)
class Outer:
    OMITTED: ClassVar = ("class_", "more")

    inner: Inner
    class_: str | None = None
    more: tuple[int, ...] | None = None
    parts: dict[str, Inner] = field(default_factory=dict)


def test_what_is_derived_is_written_and_left_aside_on_reading():
    assert to_plain(Inner(2.0)) == {"double": 4.0, "value": 2.0, "note": None}
    assert decode({"double": "wrong", "value": 3}, Inner) == Inner(3.0)


def test_what_may_be_left_out_is_left_out_where_it_is_none():
    assert to_plain(Outer(Inner(1.0))) == {"inner": to_plain(Inner(1.0)), "parts": {}}
    assert to_plain(Outer(Inner(1.0), more=()))["more"] == []


def test_a_word_of_python_is_written_without_its_underscore():
    written = to_plain(Outer(Inner(1.0), class_="model.Net"))
    assert written["class"] == "model.Net"
    assert decode(written, Outer).class_ == "model.Net"


def test_fields_of_a_later_version_are_ignored():
    assert decode({"value": 1, "from_the_future": {"a": [1]}}, Inner) == Inner(1.0)


def test_numbers_that_json_does_not_have():
    data = json.loads(encode(Outer(Inner(math.nan, math.nan), parts={"a": Inner(math.inf), "b": Inner(-math.inf)})))
    assert data["inner"] == {"double": None, "value": None, "note": None}
    assert (data["parts"]["a"]["value"], data["parts"]["b"]["value"]) == (LARGEST, -LARGEST)
    again = decode(data, Outer)
    assert math.isnan(again.inner.value), "a measured number that is none is NaN again"
    assert again.inner.note is None, "a number that may be missing is missing"


def test_a_settled_record_reads_back_as_itself():
    made = settle(Outer(Inner(1.0, math.nan), parts={"a": Inner(math.inf)}))
    assert made.inner.note is None
    assert decode(json.loads(encode(made)), Outer) == made


def test_kinds_of_numbers_and_texts_are_written_as_what_they_are():
    class Version(str):
        __slots__ = ()

    assert json.loads(encode({"a": np.float64(0.5), "b": Version("2.1"), 3: True})) == {"a": 0.5, "b": "2.1", "3": True}


def test_half_a_character_does_not_stop_a_proof():
    assert make_finite({"file": "a\ud800b"}) == {"file": "a?b"}
    assert json.loads(encode({"file": "\udcff.onnx"})) == {"file": "?.onnx"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"inner": {"value": "1"}}, r"Expected `number \| null`, got `str` - at `\$\.inner\.value`"),
        ({"inner": {"value": True}}, r"got `bool` - at `\$\.inner\.value`"),
        ({"inner": {"value": 1, "note": "x"}}, r"at `\$\.inner\.note`"),
        ({"inner": []}, r"Expected `object`, got `array` - at `\$\.inner`"),
        ({}, "missing required field `inner`"),
        ({"inner": {"value": 1}, "parts": {"a": 1}}, r"at `\$\.parts\[\.\.\.\]`"),
        (3, "Expected `object`, got `int`"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(data, said):
    with pytest.raises(msgspec.ValidationError, match=said):
        decode(data, Outer)
