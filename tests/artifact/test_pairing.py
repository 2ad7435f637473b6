"""Which input and output of the graph is which of the module."""

from __future__ import annotations

import pytest

from onnxproof.artifact.pairing import pair_inputs, pair_outputs
from onnxproof.proof.artifact import Port


def ports(*names: str, dtype: str = "float32") -> list[Port]:
    return [Port(name, dtype, ("batch", 4)) for name in names]


def told(pairing) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in pairing.findings]


FLOATS = {"a": "float32", "b": "float32"}


def test_inputs_by_name():
    pairing = pair_inputs(FLOATS, ports("a", "b"))
    assert (pairing.pairs, pairing.findings, pairing.blocking) == ({"a": "a", "b": "b"}, (), None)
    assert [code for code, _ in told(pair_inputs(FLOATS, ports("b", "a")))] == ["OX213"]


def test_inputs_by_position_and_by_shape():
    pairing = pair_inputs(FLOATS, ports("x", "y"))
    assert pairing.reverse == {"x": "a", "y": "b"}
    assert told(pairing) == [("OX217", "review")]
    assert told(pair_inputs({"a": "float32"}, ports("x"))) == [("OX217", "note")]
    wide, narrow = Port("wide", "float32", ("n", 8)), Port("narrow", "float32", ("n", 4))
    fitting = pair_inputs(FLOATS, [wide, narrow], {"a": (None, 4), "b": (None, 8)})
    assert fitting.pairs == {"a": "narrow", "b": "wide"}
    assert "paired by shape" in fitting.findings[0].message


def test_inputs_that_are_missing_unknown_or_of_another_type():
    assert told(pair_inputs(FLOATS, ports("a"))) == [("OX226", "note")]
    assert told(pair_inputs(FLOATS, ports("b"))) == [("OX226", "review")]
    unknown = pair_inputs({"a": "float32"}, ports("a", "more"))
    assert unknown.blocking is not None
    assert unknown.blocking.code == "OX218"
    typed = pair_inputs({"a": "int64"}, ports("a"))
    assert typed.findings[0].evidence == {"input": "a", "module": "int64", "artifact": "float32"}
    assert pair_inputs({"a": "int64"}, ports("a", dtype="unknown")).findings == ()


@pytest.mark.parametrize(
    ("module", "artifact", "severity"),
    [
        ("float32", "float16", "note"),
        ("float64", "float16", "note"),
        ("float32", "bfloat16", "note"),
        ("float64", "float32", "review"),
        ("float32", "float64", "review"),
        ("float16", "bfloat16", "review"),
        ("int64", "int32", "review"),
        ("int64", "float16", "review"),
    ],
)
def test_ox219_half_floats_are_part_of_a_chosen_precision(module, artifact, severity):
    (chosen,) = pair_inputs({"a": module}, ports("a", dtype=artifact), lowered=True).findings
    (other,) = pair_inputs({"a": module}, ports("a", dtype=artifact)).findings
    assert (chosen.code, chosen.severity, other.severity) == ("OX219", severity, "review")
    assert ("callers cast" in chosen.message) == (severity == "note")


@pytest.mark.parametrize(
    ("expected", "names", "promised", "named", "pairs", "codes"),
    [
        (["p", "q"], ["p", "q"], None, True, {"p": "p", "q": "q"}, []),
        (["p", "q"], ["q", "p"], None, True, {"p": "p", "q": "q"}, ["OX213"]),
        (["p", "q"], ["1", "2"], None, False, {"p": "1", "q": "2"}, []),
        (["p", "q"], ["1"], None, False, {"p": "1"}, ["OX210"]),
        (["p"], ["1", "2"], None, False, {"p": "1"}, ["OX211"]),
        (["p", "q"], ["p", "other"], None, True, {"p": "p", "q": "other"}, ["OX212"]),
        (["p", "q"], ["p", "r", "s"], None, True, {"p": "p"}, ["OX210", "OX211", "OX211"]),
        (["p", "q"], ["p_out", "q"], ["p_out", "q"], False, {"p": "p_out", "q": "q"}, []),
    ],
)
def test_outputs(expected, names, promised, named, pairs, codes):
    pairing = pair_outputs(expected, ports(*names), promised, named=named)
    assert pairing.pairs == pairs
    assert [code for code, _ in told(pairing)] == codes


def test_a_state_under_the_names_of_another_exporter():
    expected = {"ids": "float32", "past_key_values.0.key": "float32", "past_key_values.0.value": "float32"}
    pairing = pair_inputs(expected, ports("ids", "past_key_values_value_cache_0", "past_key_values_key_cache_0"))
    assert pairing.pairs["past_key_values.0.key"] == "past_key_values_key_cache_0"
    assert told(pairing) == [("OX217", "note")]
    outputs = pair_outputs(["logits", "past_key_values.0.key"], ports("present.0.key", "logits"), None, named=True)
    assert outputs.pairs == {"logits": "logits", "past_key_values.0.key": "present.0.key"}
    assert outputs.findings == ()
    # One word is a name that callers ask for; and names that the file itself promises are kept or broken.
    renamed = pair_outputs(["logits", "value"], ports("logits", "values"), None, named=True)
    assert [code for code, _ in told(renamed)] == ["OX212"]
    names = ["logits", "past_key_values.0.key"]
    assert [code for code, _ in told(pair_outputs(names, ports("logits", "present.0.key"), names, named=True))] == [
        "OX212"
    ]


def test_parts_of_an_encoder_decoder_are_paired_by_their_words():
    ours = {"encoder_outputs.last_hidden_state": "float32", "attention_mask": "int64", "decoder_input_ids": "int64"}
    theirs = [
        Port("encoder_attention_mask", "int64", ("b", "s")),
        Port("input_ids", "int64", ("b", "t")),
        Port("encoder_hidden_states", "float32", ("b", "s", 32)),
    ]
    shapes = {"encoder_outputs.last_hidden_state": (2, 7, 32), "attention_mask": (2, 7), "decoder_input_ids": (2, 1)}
    pairs = {"attention_mask": "encoder_attention_mask", "decoder_input_ids": "input_ids"}
    whole = pair_inputs(ours, theirs, shapes)
    assert whole.pairs == {"encoder_outputs.last_hidden_state": "encoder_hidden_states", **pairs}
    part = pair_inputs(ours, theirs[:2], shapes, named=True)
    assert part.pairs == pairs
    assert told(part) == [("OX217", "review"), ("OX226", "note")], "nobody gives named inputs by position"


def test_what_the_module_hands_on_may_be_left_out():
    pairing = pair_outputs(["y", "present"], ports("y"), None, named=True, passed={"present": "past"})
    assert (pairing.handed, told(pairing)) == ({"present": "past"}, [("OX210", "note")])
    assert told(pair_outputs(["y", "present"], ports("y"), None, named=True)) == [("OX210", "block")]
