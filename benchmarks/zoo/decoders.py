"""Causal decoders: tiny transformers configurations with random weights, and one with its cache as tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from benchmarks.zoo.registry import model

VOCAB = 64


class Causal(nn.Module):
    """Logits of a causal language model, without a cache."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.inner(input_ids=input_ids, use_cache=False).logits


class MaskedCausal(nn.Module):
    """The same with a padding mask."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.inner(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits


def ids(length: int = 12) -> tuple[torch.Tensor]:
    return (torch.randint(1, VOCAB, (2, length)),)


def llama_like(**more: Any) -> dict[str, Any]:
    """Sizes that Llama-like configurations share."""
    return {
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        **more,
    }


@model("decoders", "learned positions, fused query-key-value")
def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    return Causal(GPT2LMHeadModel(config)).eval(), ids()


@model("decoders", "rotary positions, grouped queries, RMS norm")
def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    return Causal(LlamaForCausalLM(LlamaConfig(**llama_like()))).eval(), ids()


@model("decoders", "batch and sequence both dynamic", dynamic={"input_ids": {0: "batch", 1: "seq"}})
def llama_dynamic_sequence():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(2)
    return Causal(LlamaForCausalLM(LlamaConfig(**llama_like()))).eval(), ids()


@model("decoders", "sliding window attention")
def mistral():
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(3)
    return Causal(MistralForCausalLM(MistralConfig(**llama_like(sliding_window=4)))).eval(), ids()


@model("decoders", "biases on query, key and value")
def qwen2():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(4)
    return Causal(Qwen2ForCausalLM(Qwen2Config(**llama_like()))).eval(), ids()


@model("decoders", "norms on queries and keys")
def qwen3():
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(5)
    return Causal(Qwen3ForCausalLM(Qwen3Config(**llama_like(head_dim=8)))).eval(), ids()


@model("decoders", "position offset of two, padding mask")
def opt():
    from transformers import OPTConfig, OPTForCausalLM

    torch.manual_seed(6)
    config = OPTConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        ffn_dim=64,
        max_position_embeddings=64,
        word_embed_proj_dim=32,
    )
    return MaskedCausal(OPTForCausalLM(config)).eval(), (*ids(), torch.ones(2, 12, dtype=torch.int64))


@model("decoders", "ALiBi slopes")
def bloom():
    from transformers import BloomConfig, BloomForCausalLM

    torch.manual_seed(7)
    return Causal(BloomForCausalLM(BloomConfig(vocab_size=VOCAB, hidden_size=32, n_layer=2, n_head=4))).eval(), ids()


@model("decoders", "parallel residual, rotary on a quarter of the head")
def gpt_neox():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    torch.manual_seed(8)
    config = GPTNeoXConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    return Causal(GPTNeoXForCausalLM(config)).eval(), ids()


@model("decoders", "partial rotary, LayerNorm, GELU")
def phi():
    from transformers import PhiConfig, PhiForCausalLM

    torch.manual_seed(9)
    return Causal(PhiForCausalLM(PhiConfig(**llama_like(num_key_value_heads=4)))).eval(), ids()


@model("decoders", "embeddings scaled by the root of the width, norms of 1 + weight")
def gemma():
    from transformers import GemmaConfig, GemmaForCausalLM

    torch.manual_seed(10)
    return Causal(GemmaForCausalLM(GemmaConfig(**llama_like(head_dim=8)))).eval(), ids()


@model("decoders", "soft-capped logits, alternating windows")
def gemma2():
    from transformers import Gemma2Config, Gemma2ForCausalLM

    torch.manual_seed(11)
    config = Gemma2Config(**llama_like(head_dim=8, sliding_window=4), attn_implementation="eager")
    return Causal(Gemma2ForCausalLM(config)).eval(), ids()


@model("decoders", "one key and value head for all queries")
def falcon():
    from transformers import FalconConfig, FalconForCausalLM

    torch.manual_seed(12)
    config = FalconConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4)
    return Causal(FalconForCausalLM(config)).eval(), ids()


@model("decoders", "interleaved rotary")
def gptj():
    from transformers import GPTJConfig, GPTJForCausalLM

    torch.manual_seed(13)
    config = GPTJConfig(vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4)
    return Causal(GPTJForCausalLM(config)).eval(), ids()


@model("decoders", "residual and logit multipliers")
def granite():
    from transformers import GraniteConfig, GraniteForCausalLM

    torch.manual_seed(14)
    config = GraniteConfig(**llama_like(residual_multiplier=0.22, logits_scaling=8.0, embedding_multiplier=12.0))
    return Causal(GraniteForCausalLM(config)).eval(), ids()


@model("decoders", "a selective state space scanned in a Python loop")
def mamba():
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(17)
    config = MambaConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=1, state_size=4)
    return Causal(MambaForCausalLM(config)).eval(), ids(6)


class CachedAttention(nn.Module):
    """Causal self-attention that takes and returns keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, past_key, past_value):
        batch, new, width = x.shape
        q, k, v = (t.view(batch, new, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        key, value = torch.cat([past_key, k], dim=2), torch.cat([past_value, v], dim=2)
        past, total = past_key.shape[2], key.shape[2]
        rows = torch.arange(new, device=x.device).unsqueeze(1) + past
        seen = torch.arange(total, device=x.device).unsqueeze(0) <= rows
        mixed = nn.functional.scaled_dot_product_attention(q, key, value, attn_mask=seen)
        return self.out(mixed.transpose(1, 2).reshape(batch, new, width)), key, value


class CachedDecoder(nn.Module):
    """One block with its cache as plain tensors."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.norm = nn.LayerNorm(width)
        self.attention = CachedAttention(width, heads)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
        self.head = nn.Linear(width, VOCAB)

    def forward(self, input_ids, past_key, past_value):
        x = self.embed(input_ids)
        mixed, key, value = self.attention(self.norm(x), past_key, past_value)
        x = x + mixed
        return {"logits": self.head(x + self.mlp(x)), "key": key, "value": value}


@model("decoders", "takes and returns a cache of keys and values")
def cached_decoder():
    torch.manual_seed(15)
    past = torch.randn(2, 4, 6, 8)
    return CachedDecoder().eval(), (torch.randint(0, VOCAB, (2, 3)), past, torch.randn_like(past))


class TransformersCache(nn.Module):
    """A Llama whose DynamicCache is passed as one key and one value tensor per layer."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids, past_keys: list[torch.Tensor], past_values: list[torch.Tensor]):
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer, (key, value) in enumerate(zip(past_keys, past_values, strict=True)):
            cache.update(key, value, layer)
        out = self.inner(input_ids=input_ids, past_key_values=cache, use_cache=True)
        layers = out.past_key_values.layers
        return {"logits": out.logits, "keys": [c.keys for c in layers], "values": [c.values for c in layers]}


@model("decoders", "a transformers cache through lists of tensors")
def llama_with_cache():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(16)
    keys = [torch.randn(2, 2, 5, 8) for _ in range(2)]
    values = [torch.randn(2, 2, 5, 8) for _ in range(2)]
    return TransformersCache(LlamaForCausalLM(LlamaConfig(**llama_like()))).eval(), (*ids(1), keys, values)
