"""Encoder-decoders: tiny transformers configurations with random weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from benchmarks.zoo.registry import model

VOCAB = 64


class Translate(nn.Module):
    """Logits of the decoder for given source and target ids."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: torch.Tensor, decoder_input_ids: torch.Tensor) -> torch.Tensor:
        return self.inner(input_ids=input_ids, decoder_input_ids=decoder_input_ids, use_cache=False).logits


def pair() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(4, VOCAB, (2, 10)), torch.randint(4, VOCAB, (2, 7))


def bart_like(**more: Any) -> dict[str, Any]:
    """Sizes that BART-like configurations share."""
    return {
        "vocab_size": VOCAB,
        "d_model": 32,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "max_position_embeddings": 64,
        "pad_token_id": 1,
        **more,
    }


@model("seq2seq", "relative position buckets, RMS norm without mean")
def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(vocab_size=VOCAB, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4)
    return Translate(T5ForConditionalGeneration(config)).eval(), pair()


@model("seq2seq", "gated feed-forward")
def mt5():
    from transformers import MT5Config, MT5ForConditionalGeneration

    torch.manual_seed(1)
    config = MT5Config(vocab_size=VOCAB, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4)
    return Translate(MT5ForConditionalGeneration(config)).eval(), pair()


@model("seq2seq", "learned positions, post-norm")
def bart():
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(2)
    return Translate(BartForConditionalGeneration(BartConfig(**bart_like()))).eval(), pair()


@model("seq2seq", "pre-norm and a final norm")
def mbart():
    from transformers import MBartConfig, MBartForConditionalGeneration

    torch.manual_seed(3)
    return Translate(MBartForConditionalGeneration(MBartConfig(**bart_like()))).eval(), pair()


@model("seq2seq", "sinusoidal positions, tied logits with a bias")
def marian():
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(4)
    config = MarianConfig(**bart_like(pad_token_id=0, decoder_start_token_id=0, decoder_vocab_size=VOCAB))
    return Translate(MarianMTModel(config)).eval(), pair()


@model("seq2seq", "summariser with sinusoidal positions")
def pegasus():
    from transformers import PegasusConfig, PegasusForConditionalGeneration

    torch.manual_seed(5)
    return Translate(PegasusForConditionalGeneration(PegasusConfig(**bart_like(pad_token_id=0)))).eval(), pair()


@model("seq2seq", "dialogue model, scaled embeddings")
def blenderbot_small():
    from transformers import BlenderbotSmallConfig, BlenderbotSmallForConditionalGeneration

    torch.manual_seed(6)
    config = BlenderbotSmallConfig(**bart_like(pad_token_id=0))
    return Translate(BlenderbotSmallForConditionalGeneration(config)).eval(), pair()


@model("seq2seq", "positions from a cumulative sum over ids")
def m2m_100():
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    torch.manual_seed(7)
    return Translate(M2M100ForConditionalGeneration(M2M100Config(**bart_like()))).eval(), pair()


class TorchTransformer(nn.Module):
    """nn.Transformer between embeddings, with a causal mask."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(VOCAB, width), nn.Embedding(VOCAB, width)
        self.transformer = nn.Transformer(width, 4, 1, 1, 64, batch_first=True)
        self.head = nn.Linear(width, VOCAB)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        length = target.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        return self.head(self.transformer(self.source(source), self.target(target), tgt_mask=mask, tgt_is_causal=True))


@model("seq2seq", "PyTorch's own transformer with a causal mask")
def torch_transformer():
    torch.manual_seed(8)
    return TorchTransformer().eval(), pair()
