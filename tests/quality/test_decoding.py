"""Caches of files, and what a step is given."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fake import FakeCandidate
from onnxproof.errors import InputError
from onnxproof.proof.artifact import Artifact, Port
from onnxproof.quality.decoding import Choice, Decoder, Part, Prompts, Speaker, count_positions, pair_states
from onnxproof.request.session import SessionSettings
from onnxproof.subject.assembly import make_subject


class Sums(nn.Module):
    """The next token is the sum of all before, modulo seven."""

    def forward(self, input_ids, attention_mask=None):
        return nn.functional.one_hot(input_ids.cumsum(1) % 7, 7).float()


def make_part(ports, outputs, function, path="none.onnx"):
    artifact = Artifact(
        path=path,
        sha256="",
        exporter="dynamo",
        opset=20,
        inputs=tuple(ports),
        outputs=tuple(Port(n, "float32", None) for n in outputs),
    )
    return Part(artifact, FakeCandidate(function, outputs).open(b"", SessionSettings(), {}))


def opened(ports, outputs, function):
    speaker = Speaker(make_subject(Sums(), {"input_ids": torch.ones(2, 3, dtype=torch.int64)}))
    return Decoder(make_part(ports, outputs, function), speaker)


def test_states_are_paired_by_name_else_by_position():
    assert pair_states(["past_key_values.0.key"], ["present.0.key"]) == {"past_key_values.0.key": "present.0.key"}
    assert pair_states(["past_a", "past_b"], ["present_x", "present_y"]) == {
        "past_a": "present_x",
        "past_b": "present_y",
    }
    with pytest.raises(InputError, match="expected as many"):
        pair_states(["past_a", "past_b"], ["present_x"])


def test_what_a_file_does_not_answer_stays_as_it_is():
    past = ["past_key_values.0.decoder.key", "past_key_values.0.encoder.key"]
    assert pair_states(past, ["present.0.decoder.key"]) == {past[0]: "present.0.decoder.key"}


def test_positions_count_what_is_not_padding():
    assert count_positions(np.array([[0, 0, 1, 1], [1, 1, 1, 1]])).tolist() == [[0, 0, 0, 1], [0, 1, 2, 3]]


def test_a_cache_starts_empty_and_is_handed_on():
    seen = []

    def answer(inputs, settings):
        seen.append({name: array.shape for name, array in inputs.items()})
        ids, past = inputs["input_ids"], inputs["past.0"]
        sums = past[:, 0, -1:, 0] if past.shape[2] else np.zeros((len(ids), 1), np.float32)
        sums = sums + np.cumsum(ids, axis=1)
        kept = np.concatenate([past, sums[:, None, :, None].astype(np.float32)], axis=2)
        return {"logits": np.eye(7, dtype=np.float32)[(sums % 7).astype(int)], "present.0": kept}

    ports = [Port("input_ids", "int64", ("batch", "seq")), Port("attention_mask", "int64", ("batch", "all"))]
    decoder = opened([*ports, Port("past.0", "float32", ("batch", 1, "past", 1))], ["logits", "present.0"], answer)
    assert decoder.cached
    steps = decoder.steps(Prompts(np.array([[1, 2, 3], [2, 2, 1]]), np.ones((2, 3), np.int64)))
    assert next(steps).scores.argmax(1).tolist() == [6, 5]
    assert steps.send(Choice(np.array([6, 5]))).scores.argmax(1).tolist() == [5, 3]
    assert seen[0] == {"input_ids": (2, 3), "attention_mask": (2, 3), "past.0": (2, 1, 0, 1)}
    assert seen[1] == {"input_ids": (2, 1), "attention_mask": (2, 4), "past.0": (2, 1, 3, 1)}


def test_without_a_cache_all_is_told_again():
    def answer(inputs, settings):
        return {"logits": np.eye(7, dtype=np.float32)[np.cumsum(inputs["input_ids"], axis=1) % 7]}

    steps = opened([Port("input_ids", "int64", ("batch", "seq"))], ["logits"], answer).steps(
        Prompts(np.array([[1, 2, 3]]), np.ones((1, 3), np.int64))
    )
    next(steps)
    assert steps.send(Choice(np.array([6]))).inputs["input_ids"].tolist() == [[1, 2, 3, 6]]


def test_inputs_that_nobody_knows_are_refused():
    ports = [Port("input_ids", "int64", ("batch", "seq")), Port("weather", "float32", ("batch",))]
    with pytest.raises(InputError, match="which generation does not know"):
        opened(ports, ["logits"], lambda inputs, settings: {})


class Translates(nn.Module):
    """The next token is the sum of the source and of all before, modulo seven."""

    def forward(self, input_ids, decoder_input_ids):
        sums = input_ids.sum(1, keepdim=True) + decoder_input_ids.cumsum(1)
        return nn.functional.one_hot(sums % 7, 7).float()


IDS = Port("input_ids", "int64", ("batch", "seq"))
STATES = Port("encoder_hidden_states", "float32", ("batch", "source", 1))
CACHE = [
    Port("past_key_values.0.decoder.key", "float32", ("batch", 1, "past", 1)),
    Port("past_key_values.0.encoder.key", "float32", ("batch", 1, "source", 1)),
]
PRESENT = ["present.0.decoder.key", "present.0.encoder.key"]


def encode(inputs, settings):
    return {"last_hidden_state": inputs["input_ids"][..., None].astype(np.float32)}


def begin(inputs, settings):
    told, heard = inputs["input_ids"], inputs["encoder_hidden_states"]
    return answer(told, heard[:, None], np.zeros((len(told), 1, 0, 1), np.float32))


def go_on(inputs, settings):
    made = answer(inputs["input_ids"], inputs[CACHE[1].name], inputs[CACHE[0].name])
    return {name: made[name] for name in ("logits", PRESENT[0])}


def answer(told, crossing, past):
    sums = np.cumsum(told, axis=1) + past.sum(axis=(1, 2)) + crossing.sum(axis=(1, 2))
    kept = np.concatenate([past, told[:, None, :, None].astype(np.float32)], axis=2)
    return {"logits": np.eye(7, dtype=np.float32)[(sums % 7).astype(int)], PRESENT[0]: kept, PRESENT[1]: crossing}


def translator(beside=("encoder", "first")):
    given = {"input_ids": torch.ones(2, 3, dtype=torch.int64), "decoder_input_ids": torch.ones(2, 1, dtype=torch.int64)}
    files = {
        "encoder": make_part([IDS], ["last_hidden_state"], encode, "encoder.onnx"),
        "first": make_part([IDS, STATES], ["logits", *PRESENT], begin, "first.onnx"),
    }
    later = make_part([IDS, *CACHE], ["logits", PRESENT[0]], go_on, "later.onnx")
    return Decoder(later, Speaker(make_subject(Translates(), given)), [files[name] for name in beside])


def test_an_encoder_and_a_first_step_may_be_files_of_their_own():
    """The source is heard once; what crosses stays as the first step left it."""
    steps = translator().steps(Prompts(np.array([[1, 2, 3], [2, 2, 1]])))
    first = next(steps)
    assert (first.scores.argmax(1).tolist(), first.main) == ([6, 5], False)
    second = steps.send(Choice(np.array([6, 5])))
    assert (second.scores.argmax(1).tolist(), second.main) == ([5, 3], True)
    assert steps.send(Choice(np.array([5, 3]))).scores.argmax(1).tolist() == [3, 6]


def test_rows_that_go_on_take_their_cache_along():
    steps = translator().steps(Prompts(np.array([[1, 2, 3], [2, 2, 1]])))
    next(steps)
    assert steps.send(Choice(np.array([6, 1, 2]), np.array([0, 1, 1]))).scores.argmax(1).tolist() == [5, 6, 0]
    assert steps.send(Choice(np.array([0]), np.array([2]))).scores.argmax(1).tolist() == [0]


def test_what_crosses_needs_a_file_that_makes_it():
    with pytest.raises(InputError, match="give the file of the first step"):
        translator(beside=["encoder"])


def test_a_merged_file_is_told_which_branch_and_answers_nothing_for_what_stays():
    def merged(inputs, settings):
        if inputs["use_cache_branch"][0]:
            return {**go_on(inputs, settings), PRESENT[1]: np.zeros((0, 1, 1, 1), np.float32)}
        return begin(inputs, settings)

    given = {"input_ids": torch.ones(2, 3, dtype=torch.int64), "decoder_input_ids": torch.ones(2, 1, dtype=torch.int64)}
    file = make_part([IDS, STATES, Port("use_cache_branch", "bool", (1,)), *CACHE], ["logits", *PRESENT], merged)
    encoder = make_part([IDS], ["last_hidden_state"], encode)
    decoder = Decoder(file, Speaker(make_subject(Translates(), given)), [encoder])
    steps = decoder.steps(Prompts(np.array([[1, 2, 3]])))
    assert next(steps).scores.argmax(1).tolist() == [6]
    assert steps.send(Choice(np.array([6]))).scores.argmax(1).tolist() == [5]
    assert steps.send(Choice(np.array([5]))).scores.argmax(1).tolist() == [3]
