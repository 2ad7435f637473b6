"""Text encoders: tiny transformers configurations with random weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from benchmarks.zoo.registry import model

VOCAB = 64


class Hidden(nn.Module):
    """The last hidden state of an encoder."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.inner(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


class Logits(nn.Module):
    """The logits of an encoder with a head."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.inner(input_ids=input_ids, attention_mask=attention_mask).logits


class Span(nn.Module):
    """Start and end logits of a question answerer."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> dict[str, torch.Tensor]:
        out = self.inner(input_ids=input_ids, attention_mask=attention_mask)
        return {"start": out.start_logits, "end": out.end_logits}


def tokens(length: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    """Random ids above the special tokens, and a ragged mask."""
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[1, length // 2 :] = 0
    return torch.randint(4, VOCAB, (2, length)), mask


def small(**more: Any) -> dict[str, Any]:
    """Sizes that BERT-like configurations share."""
    return {
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        **more,
    }


@model("text", "the most exported encoder")
def bert():
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    return Hidden(BertModel(BertConfig(**small()), add_pooling_layer=False)).eval(), tokens()


@model("text", "classification head: pooled, then linear")
def bert_classifier():
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(1)
    return Logits(BertForSequenceClassification(BertConfig(**small(num_labels=5)))).eval(), tokens()


@model("text", "masked language model: tied embeddings, wide output")
def bert_masked_lm():
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(2)
    return Logits(BertForMaskedLM(BertConfig(**small()))).eval(), tokens()


@model("text", "two named outputs in a dict")
def bert_question_answering():
    from transformers import BertConfig, BertForQuestionAnswering

    torch.manual_seed(3)
    return Span(BertForQuestionAnswering(BertConfig(**small()))).eval(), tokens()


@model(
    "text",
    "batch and sequence both dynamic",
    dynamic={n: {0: "batch", 1: "seq"} for n in ("input_ids", "attention_mask")},
)
def bert_dynamic_sequence():
    from transformers import BertConfig, BertModel

    torch.manual_seed(4)
    return Hidden(BertModel(BertConfig(**small()), add_pooling_layer=False)).eval(), tokens()


@model("text", "positions from a cumulative sum over non-padding ids")
def roberta():
    from transformers import RobertaConfig, RobertaModel

    torch.manual_seed(5)
    return Hidden(RobertaModel(RobertaConfig(**small()), add_pooling_layer=False)).eval(), tokens()


@model("text", "the same with token labels")
def xlm_roberta_tokens():
    from transformers import XLMRobertaConfig, XLMRobertaForTokenClassification

    torch.manual_seed(6)
    return Logits(XLMRobertaForTokenClassification(XLMRobertaConfig(**small(num_labels=3)))).eval(), tokens()


@model("text", "no token types; the usual small server model")
def distilbert():
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    torch.manual_seed(7)
    config = DistilBertConfig(
        vocab_size=VOCAB, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64
    )
    return Logits(DistilBertForSequenceClassification(config)).eval(), tokens()


@model("text", "embeddings narrower than the hidden size")
def electra():
    from transformers import ElectraConfig, ElectraModel

    torch.manual_seed(8)
    return Hidden(ElectraModel(ElectraConfig(**small(embedding_size=16)))).eval(), tokens()


@model("text", "one layer's weights used twice")
def albert():
    from transformers import AlbertConfig, AlbertModel

    torch.manual_seed(9)
    return Hidden(AlbertModel(AlbertConfig(**small(embedding_size=16)), add_pooling_layer=False)).eval(), tokens()


@model("text", "relative position buckets per head")
def mpnet():
    from transformers import MPNetConfig, MPNetModel

    torch.manual_seed(10)
    return Hidden(MPNetModel(MPNetConfig(**small()), add_pooling_layer=False)).eval(), tokens()


@model("text", "disentangled attention through gathers")
def deberta_v2():
    from transformers import DebertaV2Config, DebertaV2Model

    torch.manual_seed(11)
    config = DebertaV2Config(**small(relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8))
    return Hidden(DebertaV2Model(config)).eval(), tokens()


@model("text", "linear layers as grouped convolutions")
def squeezebert():
    from transformers import SqueezeBertConfig, SqueezeBertModel

    torch.manual_seed(12)
    return Hidden(SqueezeBertModel(SqueezeBertConfig(**small(embedding_size=32)))).eval(), tokens()


@model("text", "Fourier transform of real and imaginary parts in place of attention")
def fnet_like():
    torch.manual_seed(13)
    return FourierMixer().eval(), (torch.randn(2, 16, 32),)


class FourierMixer(nn.Module):
    """Token mixing by the DFT matrices' real part."""

    def __init__(self, length: int = 16, width: int = 32) -> None:
        super().__init__()
        self.register_buffer("cos_t", torch.fft.fft(torch.eye(length)).real.contiguous())
        self.register_buffer("sin_t", torch.fft.fft(torch.eye(length)).imag.contiguous())
        self.register_buffer("cos_d", torch.fft.fft(torch.eye(width)).real.contiguous())
        self.register_buffer("sin_d", torch.fft.fft(torch.eye(width)).imag.contiguous())
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = self.cos_t @ x @ self.cos_d - self.sin_t @ x @ self.sin_d
        x = self.norm(x + mixed)
        return x + self.mlp(x)


@model("text", "ConvBERT: span-based dynamic convolution through unfold")
def convbert():
    from transformers import ConvBertConfig, ConvBertModel

    torch.manual_seed(14)
    return Hidden(ConvBertModel(ConvBertConfig(**small(embedding_size=32)))).eval(), tokens()


@model("text", "rotary positions in an encoder")
def roformer():
    from transformers import RoFormerConfig, RoFormerModel

    torch.manual_seed(15)
    return Hidden(RoFormerModel(RoFormerConfig(**small(embedding_size=32)))).eval(), tokens()


@model("text", "bottlenecked MobileBERT without its layer norms")
def mobilebert():
    from transformers import MobileBertConfig, MobileBertModel

    torch.manual_seed(16)
    config = MobileBertConfig(**small(embedding_size=32, intra_bottleneck_size=16, hidden_size=32))
    return Hidden(MobileBertModel(config, add_pooling_layer=False)).eval(), tokens()


@model("text", "global and local attention alternate")
def modernbert():
    from transformers import ModernBertConfig, ModernBertModel

    torch.manual_seed(17)
    config = ModernBertConfig(
        **small(pad_token_id=0, reference_compile=False, local_attention=8, global_attn_every_n_layers=2)
    )
    return Hidden(ModernBertModel(config)).eval(), tokens()


@model("text", "PyTorch's own encoder layer with a padding mask")
def torch_encoder():
    torch.manual_seed(18)
    return PaddedEncoder().eval(), (torch.randn(2, 10, 32),)


class PaddedEncoder(nn.Module):
    """nn.TransformerEncoder over dense features."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x)


@model("text", "hidden states zeroed outside the mask")
def xlm():
    from transformers import XLMConfig, XLMModel

    torch.manual_seed(20)
    config = XLMConfig(vocab_size=VOCAB, emb_dim=32, n_layers=1, n_heads=4, max_position_embeddings=64)
    return Hidden(XLMModel(config)).eval(), tokens()


class Unmasked(nn.Module):
    """The last hidden state of an encoder that takes no mask."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.inner(input_ids=input_ids).last_hidden_state


@model("text", "relative positions by a shift of the scores, no mask")
def xlnet():
    from transformers import XLNetConfig, XLNetModel

    torch.manual_seed(19)
    config = XLNetConfig(vocab_size=VOCAB, d_model=32, n_layer=1, n_head=4, d_inner=64, use_mems_eval=False)
    return Unmasked(XLNetModel(config)).eval(), tokens()[:1]


@model("text", "pooled between blocks and upsampled again", batch_sizes=(1, 2, 7))
def funnel():
    from transformers import FunnelConfig, FunnelModel

    torch.manual_seed(22)
    config = FunnelConfig(
        vocab_size=VOCAB, d_model=32, n_head=4, d_head=8, d_inner=64, block_sizes=[1, 1], num_decoder_layers=1
    )
    return Hidden(FunnelModel(config)).eval(), tokens()
