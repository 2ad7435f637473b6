"""Beam search, held against transformers' own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from onnxproof.quality.beams import Beams, add_up, choose_best

VOCAB, TOKENS = 40, 9


def make_model(ends):
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(3)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32, "initializer_range": 0.4}
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, bos_token_id=None, eos_token_id=ends, **sizes)).eval()


def search(model, prompt, width, ends):
    """The same search, with the whole text told at every step."""
    beams = Beams(width, ends)
    for at in range(TOKENS):
        if beams.done:
            break
        told = torch.tensor(np.concatenate([np.tile(prompt, (len(beams.tokens), 1)), beams.tokens], axis=1))
        with torch.no_grad():
            scores = model(told).logits[:, len(prompt) - 1 :].numpy()
        totals = add_up(scores, beams.tokens).reshape(-1)
        assert beams.find_swap(totals, totals, last=at == TOKENS - 1) is None
        beams.go_on(totals, totals, last=at == TOKENS - 1)
    return beams.over[0].tokens.tolist()


@pytest.mark.parametrize("ends", [None, [5], [5, 9, 11, 30]])
@pytest.mark.parametrize("width", [2, 4])
def test_it_finds_what_generate_finds(ends, width):
    model = make_model(ends)
    for prompt in np.random.default_rng(0).integers(1, VOCAB, (6, 4)):
        how = {"num_beams": width, "max_new_tokens": TOKENS, "do_sample": False, "pad_token_id": 0}
        expected = model.generate(torch.tensor(prompt[None]), **how)[0, len(prompt) :].tolist()
        found = search(model, prompt, width, ends or [])
        assert found == expected[: len(found)]
        assert not any(expected[len(found) :])


def test_a_swap_is_what_only_one_side_keeps():
    theirs = np.array([0.0, -1.0, -2.0, -3.0])
    ours = np.array([0.0, -4.0, -2.0, -1.5])
    assert Beams(2, []).find_swap(ours, theirs, last=False) == (1, 3)
    assert Beams(1, []).find_swap(ours, theirs, last=False) is None
    # Among the two best both have the end, 0; of those that go on they keep others.
    ours = np.array([0.0, -1.0, -2.0, -1.9])
    assert Beams(2, []).find_swap(ours, theirs, last=False) is None
    assert Beams(2, [0]).find_swap(ours, theirs, last=False) == (2, 3)


def test_the_best_come_first():
    assert choose_best(np.array([3.0, 9.0, 1.0, 7.0]), 3).tolist() == [1, 3, 0]
