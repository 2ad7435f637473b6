"""What is timed is the same call every time."""

from __future__ import annotations

import torch

from onnxproof.latency.contenders import EagerContender
from onnxproof.subject.assembly import make_subject
from onnxproof.tensors.conversion import to_numpy


def test_a_cache_that_a_call_fills_is_new_in_the_next_call():
    from transformers import GPT2Config, GPT2LMHeadModel

    module = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=2, n_positions=8)).eval()
    with torch.no_grad():
        cache = module(torch.ones(1, 5, dtype=torch.int64), use_cache=True).past_key_values
    subject = make_subject(module, {"input_ids": torch.ones(1, 1, dtype=torch.int64), "past_key_values": cache})
    contender = EagerContender(subject, None)
    call = contender.prepare({name: to_numpy(tensor) for name, tensor in subject.inputs.tensors.items()})
    with contender.around():
        lengths = [next(a.shape[2] for a in contender.outputs(call()).values() if a.ndim == 4) for _ in range(5)]
    assert lengths == [6] * 5
