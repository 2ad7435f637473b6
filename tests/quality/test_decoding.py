"""Caches of files, and what a step is given."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fake import FakeCandidate
from onnxproof.errors import InputError
from onnxproof.proof.artifact import Artifact, Port
from onnxproof.quality.decoding import Decoder, Prompts, Speaker, count_positions, pair_states
from onnxproof.request.session import SessionSettings
from onnxproof.subject.assembly import make_subject


class Sums(nn.Module):
    """The next token is the sum of all before, modulo seven."""

    def forward(self, input_ids, attention_mask=None):
        return nn.functional.one_hot(input_ids.cumsum(1) % 7, 7).float()


def opened(ports, outputs, function):
    artifact = Artifact(
        path="none.onnx",
        sha256="",
        exporter="dynamo",
        opset=20,
        inputs=tuple(ports),
        outputs=tuple(Port(n, "float32", None) for n in outputs),
    )
    session = FakeCandidate(function, outputs).open(b"", SessionSettings(), {})
    return Decoder(artifact, session, Speaker(make_subject(Sums(), {"input_ids": torch.ones(2, 3, dtype=torch.int64)})))


def test_states_are_paired_by_name_else_by_position():
    assert pair_states(["past_key_values.0.key"], ["present.0.key"]) == {"past_key_values.0.key": "present.0.key"}
    assert pair_states(["past_a", "past_b"], ["present_x", "present_y"]) == {
        "past_a": "present_x",
        "past_b": "present_y",
    }
    with pytest.raises(InputError, match="expected as many"):
        pair_states(["past_a", "past_b"], ["present_x"])


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
    assert steps.send(np.array([6, 5])).scores.argmax(1).tolist() == [5, 3]
    assert seen[0] == {"input_ids": (2, 3), "attention_mask": (2, 3), "past.0": (2, 1, 0, 1)}
    assert seen[1] == {"input_ids": (2, 1), "attention_mask": (2, 4), "past.0": (2, 1, 3, 1)}


def test_without_a_cache_all_is_told_again():
    def answer(inputs, settings):
        return {"logits": np.eye(7, dtype=np.float32)[np.cumsum(inputs["input_ids"], axis=1) % 7]}

    steps = opened([Port("input_ids", "int64", ("batch", "seq"))], ["logits"], answer).steps(
        Prompts(np.array([[1, 2, 3]]), np.ones((1, 3), np.int64))
    )
    next(steps)
    assert steps.send(np.array([6])).inputs["input_ids"].tolist() == [[1, 2, 3, 6]]


def test_inputs_that_nobody_knows_are_refused():
    ports = [Port("input_ids", "int64", ("batch", "seq")), Port("weather", "float32", ("batch",))]
    with pytest.raises(InputError, match="which generation does not know"):
        opened(ports, ["logits"], lambda inputs, settings: {})
