"""Correct attention models: configurations of `transformers` without download, and hand-written variants."""

from __future__ import annotations

import math
from typing import Any

import torch
import transformers
from torch import nn
from torch.nn import functional

from benchmarks.zoo.registry import model

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 99,
}


class Only(nn.Module):
    """One tensor of a model's output, the inputs by position."""

    def __init__(self, inner: nn.Module, field: str, *names: str, **fixed: Any) -> None:
        super().__init__()
        self.inner, self.field, self.names, self.fixed = inner, field, names, fixed

    def forward(self, first, second=None):
        given = dict(zip(self.names, [first] if second is None else [first, second], strict=True))
        return getattr(self.inner(**given, **self.fixed), self.field)


def tokens(length: int = 8, count: int = 2, vocabulary: int = 99) -> torch.Tensor:
    return torch.randint(5, vocabulary, (count, length))


class Text(nn.Module):
    """An encoder with ids and a padding mask, its last hidden state."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids, attention_mask):
        return self.inner(input_ids=input_ids, attention_mask=attention_mask, return_dict=True).last_hidden_state


def masked(length: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[1, length - 3 :] = 0
    return tokens(length), mask


BOTH = {"input_ids": {0: "batch", 1: "seq"}, "attention_mask": {0: "batch", 1: "seq"}}


@model("text", "BERT with mask, batch and length dynamic", dynamic=BOTH, range={"input_ids": (0, 98)})
def jury_bert_dynamic():
    torch.manual_seed(300)
    return Text(transformers.BertModel(transformers.BertConfig(**SMALL))).eval(), masked()


@model("text", "BERT with relative keys and queries", range={"input_ids": (0, 98)})
def jury_bert_relative_keys():
    torch.manual_seed(301)
    config = transformers.BertConfig(
        **SMALL, position_embedding_type="relative_key_query", max_position_embeddings=32, attn_implementation="eager"
    )
    return Text(transformers.BertModel(config)).eval(), masked()


@model("text", "CamemBERT: positions counted from padding ids", range={"input_ids": (0, 98)})
def jury_camembert():
    torch.manual_seed(302)
    return Text(transformers.CamembertModel(transformers.CamembertConfig(**SMALL))).eval(), masked()


@model("text", "DeBERTa v1: disentangled attention", range={"input_ids": (0, 98)})
def jury_deberta_v1():
    torch.manual_seed(303)
    config = transformers.DebertaConfig(**SMALL, relative_attention=True, pos_att_type=["c2p", "p2c"])
    return Text(transformers.DebertaModel(config)).eval(), masked()


@model("text", "T5's encoder alone: relative buckets by logarithm", range={"input_ids": (0, 98)})
def jury_t5_encoder():
    torch.manual_seed(304)
    config = transformers.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
    return Text(transformers.T5EncoderModel(config)).eval(), masked(12)


@model("text", "ERNIE with task type embeddings", range={"input_ids": (0, 98)})
def jury_ernie():
    torch.manual_seed(305)
    return Text(transformers.ErnieModel(transformers.ErnieConfig(**SMALL))).eval(), masked()


@model("text", "LayoutLM with boxes at their default", range={"first": (0, 98)})
def jury_layoutlm():
    torch.manual_seed(306)
    config = transformers.LayoutLMConfig(**SMALL, max_2d_position_embeddings=128)
    return Only(transformers.LayoutLMModel(config), "last_hidden_state", "input_ids").eval(), (tokens(),)


@model("text", "CLIP's text tower: pooled at the end token", range={"first": (0, 98)})
def jury_clip_text():
    torch.manual_seed(307)
    config = transformers.CLIPTextConfig(**SMALL, max_position_embeddings=16, eos_token_id=2)
    return Only(transformers.CLIPTextModel(config), "last_hidden_state", "input_ids").eval(), (tokens(),)


class Decoder(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids):
        return self.inner(input_ids=input_ids, use_cache=False).logits


IDS: dict[str, Any] = {"range": {"input_ids": (0, 98)}}
FREE: dict[str, Any] = {**IDS, "dynamic": {"input_ids": {0: "batch", 1: "seq"}}}


@model("decoders", "Gemma 3's norms and windows", **IDS)
def jury_gemma3():
    torch.manual_seed(308)
    config = transformers.Gemma3TextConfig(
        **SMALL, num_key_value_heads=2, head_dim=8, sliding_window=4, max_position_embeddings=64
    )
    return Decoder(transformers.Gemma3ForCausalLM(config)).eval(), (tokens(10),)


@model("decoders", "OLMo 2: norms behind attention", **FREE)
def jury_olmo2():
    torch.manual_seed(309)
    config = transformers.Olmo2Config(**SMALL, num_key_value_heads=2, max_position_embeddings=64)
    return Decoder(transformers.Olmo2ForCausalLM(config)).eval(), (tokens(),)


@model("decoders", "StableLM with partial rotary angles", **IDS)
def jury_stablelm():
    torch.manual_seed(310)
    config = transformers.StableLmConfig(**SMALL, num_key_value_heads=4, max_position_embeddings=64)
    return Decoder(transformers.StableLmForCausalLM(config)).eval(), (tokens(),)


@model("decoders", "Phi-3 with fused projections", **IDS)
def jury_phi3():
    torch.manual_seed(311)
    config = transformers.Phi3Config(**SMALL, num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0)
    return Decoder(transformers.Phi3ForCausalLM(config)).eval(), (tokens(),)


@model("decoders", "GPT-Neo with local attention", **IDS)
def jury_gpt_neo():
    torch.manual_seed(312)
    config = transformers.GPTNeoConfig(
        vocab_size=99, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
        window_size=4, max_position_embeddings=32,
    )  # fmt: skip
    return Decoder(transformers.GPTNeoForCausalLM(config)).eval(), (tokens(10),)


@model("decoders", "CodeGen: rotary halves interleaved", **IDS)
def jury_codegen():
    torch.manual_seed(313)
    config = transformers.CodeGenConfig(vocab_size=99, n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=32)
    return Decoder(transformers.CodeGenForCausalLM(config)).eval(), (tokens(),)


@model("decoders", "Llama with scaled rotary angles (llama3)", **FREE)
def jury_llama_rope_scaling():
    torch.manual_seed(314)
    config = transformers.LlamaConfig(
        **SMALL, num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=True,
        rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 32},
    )  # fmt: skip
    return Decoder(transformers.LlamaForCausalLM(config)).eval(), (tokens(),)


def vision(config: Any, cls: Any, field: str = "last_hidden_state", size: int = 32, channels: int = 3):
    inner = cls(config)
    return Only(inner, field, "pixel_values").eval(), (torch.randn(2, channels, size, size),)


@model("vision", "CLIP's vision tower with quick GELU")
def jury_clip_vision():
    torch.manual_seed(315)
    small = {k: v for k, v in SMALL.items() if k != "vocab_size"}
    return vision(
        transformers.CLIPVisionConfig(**small, image_size=32, patch_size=8),
        transformers.CLIPVisionModel,
        "pooler_output",
    )


@model("vision", "SigLIP with attention pooling")
def jury_siglip():
    torch.manual_seed(316)
    small = {k: v for k, v in SMALL.items() if k != "vocab_size"}
    return vision(
        transformers.SiglipVisionConfig(**small, image_size=32, patch_size=8),
        transformers.SiglipVisionModel,
        "pooler_output",
    )


@model("vision", "Swin v2: cosine attention and log-spaced biases")
def jury_swinv2():
    torch.manual_seed(317)
    config = transformers.Swinv2Config(
        image_size=32, patch_size=4, embed_dim=16, depths=[2, 1], num_heads=[2, 4], window_size=4
    )
    return vision(config, transformers.Swinv2Model)


@model("vision", "PVT: spatial reduction attention")
def jury_pvt():
    torch.manual_seed(318)
    config = transformers.PvtConfig(
        image_size=64, hidden_sizes=[8, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4]
    )
    return vision(config, transformers.PvtModel, size=64)


class Detr(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, pixel_values):
        out = self.inner(pixel_values=pixel_values)
        return out.logits, out.pred_boxes


@model("vision", "DETR over a small ResNet: boxes and classes of queries")
def jury_detr():
    torch.manual_seed(319)
    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], layer_type="basic", out_features=["stage4"]
    )
    config = transformers.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone, d_model=16,
        encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24,
        decoder_ffn_dim=24, num_queries=5, num_labels=3,
    )  # fmt: skip
    return Detr(transformers.DetrForObjectDetection(config)).eval(), (torch.randn(2, 3, 64, 64),)


@model("vision", "EfficientNet of transformers")
def jury_hf_efficientnet():
    torch.manual_seed(320)
    config = transformers.EfficientNetConfig(
        width_coefficient=0.25, depth_coefficient=0.2, image_size=64, hidden_dim=320
    )
    return vision(config, transformers.EfficientNetModel, "pooler_output", size=64)


@model("vision", "EfficientNet of transformers with the statistics that training leaves")
def jury_hf_efficientnet_settled():
    torch.manual_seed(320)
    config = transformers.EfficientNetConfig(
        width_coefficient=0.25, depth_coefficient=0.2, image_size=64, hidden_dim=320
    )
    inner = transformers.EfficientNetModel(config)
    for part in inner.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum, part.eps = 1.0, 1e-8
    with torch.no_grad():
        inner.train()(torch.randn(8, 3, 64, 64))
    return Only(inner, "pooler_output", "pixel_values").eval(), (torch.randn(2, 3, 64, 64),)


@model("vision", "MobileViT v2: separable attention")
def jury_mobilevitv2():
    torch.manual_seed(321)
    config = transformers.MobileViTV2Config(image_size=64, width_multiplier=0.25, n_attn_blocks=[1, 1, 1])
    return vision(config, transformers.MobileViTV2Model, size=64)


@model("vision", "FocalNet: focal modulation")
def jury_focalnet():
    torch.manual_seed(322)
    config = transformers.FocalNetConfig(
        image_size=32, embed_dim=16, depths=[1, 1], focal_levels=[2, 2], focal_windows=[3, 3]
    )
    return vision(config, transformers.FocalNetModel)


@model("vision", "depth maps by GLPN: bilinear upsampling and fusion")
def jury_glpn_depth():
    torch.manual_seed(323)
    config = transformers.GLPNConfig(
        hidden_sizes=[8, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=16
    )
    return vision(config, transformers.GLPNForDepthEstimation, "predicted_depth", size=64)


@model("vision", "ResNet of bottlenecks, pooled")
def jury_bottleneck_resnet():
    torch.manual_seed(324)
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="bottleneck")
    return vision(config, transformers.ResNetModel, "pooler_output", size=32)


@model("time series", "PatchTST of transformers")
def jury_patchtst():
    torch.manual_seed(325)
    config = transformers.PatchTSTConfig(
        num_input_channels=2, context_length=32, prediction_length=8, patch_length=8, patch_stride=4, d_model=16,
        num_hidden_layers=2, num_attention_heads=4, ffn_dim=24, scaling="std",
    )  # fmt: skip
    inner = transformers.PatchTSTForPrediction(config)
    return Only(inner, "prediction_outputs", "past_values").eval(), (torch.randn(2, 32, 2).cumsum(1),)


@model("time series", "PatchTSMixer of transformers")
def jury_patchtsmixer():
    torch.manual_seed(326)
    config = transformers.PatchTSMixerConfig(
        num_input_channels=2,
        context_length=32,
        prediction_length=8,
        patch_length=8,
        patch_stride=8,
        d_model=16,
        num_layers=2,
    )
    inner = transformers.PatchTSMixerForPrediction(config)
    return Only(inner, "prediction_outputs", "past_values").eval(), (torch.randn(2, 32, 2),)


@model("audio", "UniSpeech: convolutions with group norm on a raw wave")
def jury_unispeech():
    torch.manual_seed(327)
    config = transformers.UniSpeechConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=(16, 16, 16),
        conv_stride=(5, 4, 2), conv_kernel=(10, 4, 2), num_feat_extract_layers=3, num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
    )  # fmt: skip
    return Only(transformers.UniSpeechModel(config), "last_hidden_state", "input_values").eval(), (torch.randn(2, 800),)


class LocalAttention(nn.Module):
    """Longformer-like windows by unfolding keys and values, with -inf outside."""

    def __init__(self, width: int = 16, reach: int = 2) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.reach = reach

    def forward(self, x):
        pad = (0, 0, self.reach, self.reach)
        span = 2 * self.reach + 1
        k = functional.pad(self.k(x), pad).unfold(1, span, 1)
        v = functional.pad(self.v(x), pad).unfold(1, span, 1)
        inside = functional.pad(torch.ones_like(x[:, :, 0]), (self.reach, self.reach)).unfold(1, span, 1) > 0
        scores = torch.einsum("bld,bldw->blw", self.q(x), k) / math.sqrt(x.shape[-1])
        weights = scores.masked_fill(~inside, float("-inf")).softmax(-1)
        return torch.einsum("blw,bldw->bld", weights, v)


@model("text", "windowed attention with -inf outside of the text")
def jury_local_attention():
    torch.manual_seed(328)
    return LocalAttention().eval(), (torch.randn(2, 12, 16),)


class AdditiveMasks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x, valid):
        out, weights = self.attention(x, x, x, key_padding_mask=~valid)
        return out * valid.unsqueeze(-1), weights


@model("text", "multi-head attention of torch with a padding mask and its weights")
def jury_multihead_padding():
    torch.manual_seed(329)
    valid = torch.ones(2, 6, dtype=torch.bool)
    valid[1, 4:] = False
    return AdditiveMasks().eval(), (torch.randn(2, 6, 16), valid)


class Alibi(nn.Module):
    """Causal attention with ALiBi and a sink, -1e9 for the future."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.register_buffer("slopes", 2.0 ** -(2 * torch.arange(1.0, 5)))
        self.sink = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, 4, 4).permute(2, 0, 3, 1, 4)
        place = torch.arange(n)
        away = place[None] - place[:, None]
        scores = q @ k.transpose(-1, -2) / 2 + self.slopes[:, None, None] * away
        scores = scores + (away > 0).to(x.dtype) * -1e9
        sink = self.sink.view(1, 4, 1, 1).expand(b, -1, n, -1)
        weights = torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
        return self.out((weights @ v).transpose(1, 2).flatten(2))


@model("decoders", "ALiBi with attention sinks, length dynamic", dynamic={"x": {0: "batch", 1: "seq"}})
def jury_alibi_sinks():
    torch.manual_seed(330)
    return Alibi().eval(), (torch.randn(2, 7, 16),)


class Retention(nn.Module):
    """Linear attention with decay and group norm."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16, bias=False) for _ in range(3))
        self.norm = nn.GroupNorm(4, 16)

    def forward(self, x):
        place = torch.arange(10.0)
        decay = torch.where(place[:, None] >= place, 0.9 ** (place[:, None] - place).clamp(min=0), torch.zeros(10, 10))
        y = (self.q(x) @ self.k(x).transpose(1, 2) * decay) @ self.v(x)
        return self.norm(y.flatten(0, 1)).view_as(y) * functional.silu(x)


@model("decoders", "retention: decays of powers, group norm")
def jury_retention():
    torch.manual_seed(331)
    return Retention().eval(), (torch.randn(2, 10, 16),)
