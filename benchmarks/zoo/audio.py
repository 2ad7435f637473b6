"""Audio models: tiny transformers configurations with random weights, and a hand-written front end."""

from __future__ import annotations

import math

import torch
from torch import nn

from benchmarks.zoo.registry import model


class Waveform(nn.Module):
    """The last hidden state for raw audio."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_values: torch.Tensor) -> torch.Tensor:
        return self.inner(input_values=input_values).last_hidden_state


class WaveLogits(nn.Module):
    """Frame logits for raw audio."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_values: torch.Tensor) -> torch.Tensor:
        return self.inner(input_values=input_values).logits


def wave_config(**more):
    """Sizes that wav2vec2-like configurations share."""
    return {
        "vocab_size": 32,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "conv_dim": (16, 16, 16),
        "conv_kernel": (10, 3, 3),
        "conv_stride": (5, 2, 2),
        "num_feat_extract_layers": 3,
        "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 4,
        **more,
    }


def wave(length: int = 320) -> tuple[torch.Tensor]:
    return (torch.randn(2, length),)


@model("audio", "group-normed convolutions over raw audio, weight-normed positions")
def wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    torch.manual_seed(0)
    return Waveform(Wav2Vec2Model(Wav2Vec2Config(**wave_config()))).eval(), wave()


@model("audio", "speech recogniser: frame logits")
def wav2vec2_ctc():
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    torch.manual_seed(1)
    return WaveLogits(Wav2Vec2ForCTC(Wav2Vec2Config(**wave_config()))).eval(), wave()


@model("audio", "layer-normed convolutions, pre-norm blocks")
def hubert():
    from transformers import HubertConfig, HubertModel

    torch.manual_seed(2)
    config = HubertConfig(**wave_config(feat_extract_norm="layer", do_stable_layer_norm=True))
    return Waveform(HubertModel(config)).eval(), wave()


@model("audio", "relative position bias gated by the input")
def wavlm():
    from transformers import WavLMConfig, WavLMModel

    torch.manual_seed(3)
    return Waveform(WavLMModel(WavLMConfig(**wave_config(num_buckets=16, max_bucket_distance=40)))).eval(), wave()


@model("audio", "squeezed in time and upsampled again")
def sew():
    from transformers import SEWConfig, SEWModel

    torch.manual_seed(4)
    return Waveform(SEWModel(SEWConfig(**wave_config(squeeze_factor=2)))).eval(), wave()


class WhisperEncoder(nn.Module):
    """Encoder states from log-mel features."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_features: torch.Tensor) -> torch.Tensor:
        return self.inner(input_features).last_hidden_state


class WhisperLogits(nn.Module):
    """Decoder logits from log-mel features and ids."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_features: torch.Tensor, decoder_input_ids: torch.Tensor) -> torch.Tensor:
        return self.inner(input_features=input_features, decoder_input_ids=decoder_input_ids, use_cache=False).logits


def whisper_config():
    from transformers import WhisperConfig

    return WhisperConfig(
        vocab_size=64,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=16,
        max_source_positions=20,
        max_target_positions=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
    )


@model("audio", "log-mel encoder")
def whisper_encoder():
    from transformers import WhisperModel

    torch.manual_seed(5)
    return WhisperEncoder(WhisperModel(whisper_config()).encoder).eval(), (torch.randn(2, 16, 40),)


@model("audio", "log-mel features and ids together")
def whisper():
    from transformers import WhisperForConditionalGeneration

    torch.manual_seed(6)
    inner = WhisperForConditionalGeneration(whisper_config())
    return WhisperLogits(inner).eval(), (torch.randn(2, 16, 40), torch.randint(4, 64, (2, 6)))


@model("audio", "patches of a spectrogram")
def audio_spectrogram_transformer():
    from transformers import ASTConfig, ASTForAudioClassification

    torch.manual_seed(7)
    config = ASTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        patch_size=8,
        frequency_stride=8,
        time_stride=8,
        max_length=32,
        num_mel_bins=16,
        num_labels=5,
    )
    return WaveLogits(ASTForAudioClassification(config)).eval(), (torch.randn(2, 32, 16),)


class MelFrontEnd(nn.Module):
    """Short-time Fourier power by strided convolution, a filter bank and a logarithm."""

    def __init__(self, window: int = 64, bins: int = 12) -> None:
        super().__init__()
        time = torch.arange(window)
        angles = 2 * math.pi * torch.outer(torch.arange(window // 2 + 1), time) / window
        hann = torch.hann_window(window)
        self.register_buffer("kernel", torch.cat([torch.cos(angles), torch.sin(angles)]).mul(hann).unsqueeze(1))
        self.register_buffer("bank", torch.rand(bins, window // 2 + 1))
        self.classify = nn.Sequential(nn.Conv1d(bins, 16, 3, padding=1), nn.ReLU(), nn.Conv1d(16, 4, 1))

    def forward(self, wave: torch.Tensor) -> dict[str, torch.Tensor]:
        real, imaginary = nn.functional.conv1d(wave.unsqueeze(1), self.kernel, stride=16).chunk(2, dim=1)
        mel = self.bank @ (real.square() + imaginary.square())
        loudness = torch.log10(mel.clamp(min=1e-10))
        return {"mel": loudness, "logits": self.classify(loudness).mean(-1)}


@model("audio", "spectrogram as a convolution, then a clamped logarithm")
def mel_front_end():
    torch.manual_seed(8)
    return MelFrontEnd().eval(), wave(320)


class KeywordSpotter(nn.Module):
    """Depthwise separable 1-d convolutions with pooling over time."""

    def __init__(self, channels: int = 24, words: int = 6) -> None:
        super().__init__()

        def block(stride: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Conv1d(channels, channels, 9, stride=stride, padding=4, groups=channels),
                nn.Conv1d(channels, channels, 1),
                nn.BatchNorm1d(channels),
                nn.ReLU(),
            )

        self.stem = nn.Conv1d(1, channels, 80, stride=4)
        self.blocks = nn.Sequential(*(block(s) for s in (1, 2, 2)))
        self.head = nn.Linear(2 * channels, words)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        x = self.blocks(self.stem(wave.unsqueeze(1)))
        return self.head(torch.cat([x.mean(-1), x.std(-1)], dim=-1)).log_softmax(-1)


@model("audio", "mean and standard deviation over time")
def keyword_spotter():
    torch.manual_seed(9)
    return KeywordSpotter().eval(), wave(320)
