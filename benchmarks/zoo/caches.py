"""Decoders with their caches as inputs and outputs, as transformers has them: tiny configurations with random weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from benchmarks.zoo.decoders import llama_like
from benchmarks.zoo.registry import model

VOCAB = 64
Made = tuple[nn.Module, dict[str, Any]]


def with_past(module: nn.Module, past: int = 5, new: int = 3) -> Made:
    """The module after some tokens, with the next ones."""
    module.eval()
    with torch.no_grad():
        cache = module(input_ids=torch.randint(1, VOCAB, (2, past)), use_cache=True).past_key_values
    mask = torch.ones(2, past + new, dtype=torch.int64)
    return module, {"input_ids": torch.randint(1, VOCAB, (2, new)), "attention_mask": mask, "past_key_values": cache}


def with_source(module: nn.Module, encoded: torch.Tensor, past: int = 5) -> Made:
    """A decoder after some tokens, with the next one; the encoder has run before."""
    from transformers.modeling_outputs import BaseModelOutput

    source = BaseModelOutput(last_hidden_state=encoded)
    with torch.no_grad():
        ids = torch.randint(4, VOCAB, (2, past))
        cache = module(encoder_outputs=source, decoder_input_ids=ids, use_cache=True).past_key_values
    ids = torch.randint(4, VOCAB, (2, 1))
    return module, {"encoder_outputs": source, "decoder_input_ids": ids, "past_key_values": cache}


@model("caches", "learned positions behind a DynamicCache")
def gpt2_cached() -> Made:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    return with_past(GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4, n_positions=64)))


@model("caches", "rotary positions and grouped queries behind a DynamicCache")
def llama_cached() -> Made:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    return with_past(LlamaForCausalLM(LlamaConfig(**llama_like())))


@model("caches", "biases on query, key and value behind a DynamicCache")
def qwen2_cached() -> Made:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(2)
    return with_past(Qwen2ForCausalLM(Qwen2Config(**llama_like())))


@model("caches", "a sliding window, whose cache counts beside what it holds")
def mistral_cached() -> Made:
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(3)
    return with_past(MistralForCausalLM(MistralConfig(**llama_like(sliding_window=16))))


@model("caches", "two caches, of which one does not grow: EncoderDecoderCache")
def t5_cached() -> Made:
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(4)
    config = T5Config(
        vocab_size=VOCAB, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    module = T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        return with_source(module, module.encoder(input_ids=torch.randint(4, VOCAB, (2, 10))).last_hidden_state)


@model("caches", "a speech decoder with both caches")
def whisper_cached() -> Made:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(5)
    sizes = {
        f"{side}_{part}": n for side in ("encoder", "decoder") for part, n in (("attention_heads", 4), ("ffn_dim", 64))
    }
    config = WhisperConfig(
        vocab_size=VOCAB,
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        num_mel_bins=16,
        max_source_positions=20,
        max_target_positions=40,
        pad_token_id=1,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=2,
        **sizes,
    )
    module = WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        return with_source(module, module.model.encoder(torch.randn(2, 16, 40)).last_hidden_state)


@model("caches", "a StaticCache, written in place at given positions")
def llama_static_cache() -> Made:
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

    torch.manual_seed(6)
    module = LlamaForCausalLM(LlamaConfig(**llama_like())).eval()
    cache = StaticCache(config=module.config, max_cache_len=16)
    with torch.no_grad():
        module(input_ids=torch.randint(1, VOCAB, (2, 5)), past_key_values=cache, cache_position=torch.arange(5))
    ids = torch.randint(1, VOCAB, (2, 3))
    return module, {"input_ids": ids, "past_key_values": cache, "cache_position": torch.arange(5, 8)}


class Stream(nn.Module):
    """A recurrent detector: what it has heard is an input and an output."""

    def __init__(self, cells: type[nn.Module]) -> None:
        super().__init__()
        self.cells, self.head = cells(4, 8, 2, batch_first=True), nn.Linear(8, 3)


class GruStream(Stream):
    def forward(self, x: torch.Tensor, h: torch.Tensor) -> dict[str, torch.Tensor]:
        y, hn = self.cells(x, h)
        return {"scores": self.head(y), "hn": hn}


class LstmStream(Stream):
    def forward(self, x: torch.Tensor, h0: torch.Tensor, c0: torch.Tensor) -> dict[str, torch.Tensor]:
        y, (hn, cn) = self.cells(x, (h0, c0))
        return {"scores": self.head(y), "hn": hn, "cn": cn}


TIMED = {"x": {0: "batch", 1: "time"}}


@model("caches", "a recurrent state of two layers", dynamic={**TIMED, "h": {1: "batch"}})
def gru_stream() -> tuple[nn.Module, Any]:
    torch.manual_seed(7)
    return GruStream(nn.GRU).eval(), (torch.randn(2, 5, 4), torch.randn(2, 2, 8))


@model("caches", "two recurrent states", dynamic={**TIMED, "h0": {1: "batch"}, "c0": {1: "batch"}})
def lstm_stream() -> tuple[nn.Module, Any]:
    torch.manual_seed(8)
    return LstmStream(nn.LSTM).eval(), (torch.randn(2, 5, 4), torch.randn(2, 2, 8), torch.randn(2, 2, 8))


class ConvStream(nn.Module):
    """Causal convolutions that keep the end of what they heard."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(2, 6, 5), nn.Conv1d(6, 3, 3)

    def forward(self, x: torch.Tensor, cache_a: torch.Tensor, cache_b: torch.Tensor) -> dict[str, torch.Tensor]:
        a = torch.cat([cache_a, x], dim=2)
        b = torch.cat([cache_b, torch.relu(self.first(a))], dim=2)
        return {"scores": self.second(b), "cache_a": a[:, :, -4:], "cache_b": b[:, :, -2:]}


@model(
    "caches",
    "convolutions over a stream",
    dynamic={"x": {0: "batch", 2: "time"}, "cache_a": {0: "batch"}, "cache_b": {0: "batch"}},
)
def conv_stream() -> tuple[nn.Module, Any]:
    torch.manual_seed(9)
    return ConvStream().eval(), (torch.randn(2, 2, 6), torch.randn(2, 2, 4), torch.randn(2, 6, 2))


class ResetStream(Stream):
    """A stream whose state begins anew wherever a record does."""

    def forward(self, x: torch.Tensor, begins: torch.Tensor, h: torch.Tensor) -> dict[str, torch.Tensor]:
        y, hn = self.cells(x, torch.where(begins[None, :, None], torch.zeros_like(h), h))
        return {"scores": self.head(y), "hn": hn}


@model("caches", "a recurrent state that a flag resets", dynamic={**TIMED, "begins": {0: "batch"}, "h": {1: "batch"}})
def reset_stream() -> tuple[nn.Module, Any]:
    torch.manual_seed(10)
    return ResetStream(nn.GRU).eval(), (torch.randn(2, 5, 4), torch.tensor([True, False]), torch.randn(2, 2, 8))
