"""The demo's data and net: what is tested on is never trained on, always the same rows, and the net learns."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("sklearn", reason="the demo's extra is not installed")

from onnxproof.cli import digits


def test_a_fifth_is_held_back_and_always_the_same():
    rows, held = digits.load_seen()["id"], digits.load_unseen()["id"]
    assert len(held) == (len(rows) + len(held)) // 5
    assert sorted([*rows.tolist(), *held.tolist()]) == list(range(len(rows) + len(held)))
    assert torch.equal(digits.load_unseen()["id"], held)


def test_images_keep_their_labels_and_numbers():
    images, labels = digits.load_digits()
    assert images.shape[1:] == (1, 8, 8)
    assert (images.min(), images.max()) == (0, 1)
    for part in (digits.load_seen(), digits.load_unseen()):
        assert torch.equal(part["image"], images[part["id"]])
        assert torch.equal(part["labels"], labels[part["id"]])


def test_a_short_training_is_better_than_chance_and_can_be_repeated():
    first, second = digits.train(epochs=1), digits.train(epochs=1)
    assert not first.training
    data = digits.load_unseen()
    with torch.no_grad():
        answer = first(data["image"])
        assert torch.equal(answer["logits"], second(data["image"])["logits"])
    assert torch.equal(answer["digit"], answer["logits"].argmax(-1))
    assert (answer["digit"] == data["labels"]).float().mean() > 0.5
