"""Vision backbones and heads: tiny transformers configurations with random weights."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.zoo.registry import model


class Features(nn.Module):
    """The last hidden state of a backbone."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        return self.inner(pixel_values=pixel_values).last_hidden_state


class Logits(nn.Module):
    """The logits of a classifier or segmenter."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        return self.inner(pixel_values=pixel_values).logits


class Embeddings(nn.Module):
    """Image and text embeddings and their similarity."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: torch.Tensor, pixel_values: torch.Tensor) -> dict[str, torch.Tensor]:
        image = self.inner.get_image_features(pixel_values=pixel_values)
        text = self.inner.get_text_features(input_ids=input_ids)
        return {"image": image, "text": text}


class Boxes(nn.Module):
    """Scores and boxes of a set-prediction detector."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, pixel_values: torch.Tensor) -> dict[str, torch.Tensor]:
        out = self.inner(pixel_values=pixel_values)
        return {"logits": out.logits, "boxes": out.pred_boxes}


def images(size: int = 32, channels: int = 3) -> tuple[torch.Tensor]:
    return (torch.randn(2, channels, size, size),)


def vit_like(**more):
    """Sizes that ViT-like configurations share."""
    return {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "image_size": 32,
        "patch_size": 8,
        **more,
    }


@model("vision", "the usual patch transformer")
def vit():
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    return Logits(ViTForImageClassification(ViTConfig(**vit_like(num_labels=10)))).eval(), images()


@model("vision", "two class tokens, averaged heads")
def deit():
    from transformers import DeiTConfig, DeiTForImageClassificationWithTeacher

    torch.manual_seed(1)
    return Logits(DeiTForImageClassificationWithTeacher(DeiTConfig(**vit_like(num_labels=10)))).eval(), images()


@model("vision", "shifted windows: roll, masks, window reshapes", batch_sizes=(1, 2, 7))
def swin():
    from transformers import SwinConfig, SwinForImageClassification

    torch.manual_seed(2)
    config = SwinConfig(image_size=16, patch_size=2, embed_dim=16, depths=[2, 1], num_heads=[2, 4], window_size=4)
    return Logits(SwinForImageClassification(config)).eval(), images(16)


@model("vision", "channels-last norms between depthwise convolutions")
def convnext():
    from transformers import ConvNextConfig, ConvNextForImageClassification

    torch.manual_seed(3)
    config = ConvNextConfig(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2, num_labels=10)
    return Logits(ConvNextForImageClassification(config)).eval(), images()


@model("vision", "global response norm")
def convnextv2():
    from transformers import ConvNextV2Config, ConvNextV2ForImageClassification

    torch.manual_seed(4)
    config = ConvNextV2Config(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2, num_labels=10)
    return Logits(ConvNextV2ForImageClassification(config)).eval(), images()


@model("vision", "batch norms that the runtime folds into convolutions")
def resnet():
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(5)
    config = ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic", num_labels=10)
    return Logits(ResNetForImageClassification(config)).eval(), images()


@model("vision", "inverted residuals and ReLU6", batch_sizes=(1, 2, 7))
def mobilenet_v2():
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    torch.manual_seed(6)
    config = MobileNetV2Config(image_size=32, depth_multiplier=0.25, num_labels=10)
    return Logits(MobileNetV2ForImageClassification(config)).eval(), images()


@model("vision", "depthwise separable with TensorFlow padding", batch_sizes=(1, 2, 7))
def mobilenet_v1():
    from transformers import MobileNetV1Config, MobileNetV1ForImageClassification

    torch.manual_seed(7)
    config = MobileNetV1Config(image_size=32, depth_multiplier=0.25, num_labels=10)
    return Logits(MobileNetV1ForImageClassification(config)).eval(), images()


@model("vision", "grouped convolutions with squeeze and excitation")
def regnet():
    from transformers import RegNetConfig, RegNetForImageClassification

    torch.manual_seed(8)
    config = RegNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], groups_width=8, num_labels=10)
    return Logits(RegNetForImageClassification(config)).eval(), images()


@model("vision", "segmentation: reduced attention, interpolated maps", batch_sizes=(1, 2, 7))
def segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    torch.manual_seed(9)
    config = SegformerConfig(
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[4, 2],
        hidden_sizes=[16, 32],
        patch_sizes=[7, 3],
        strides=[4, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=16,
        num_labels=5,
    )
    return Logits(SegformerForSemanticSegmentation(config)).eval(), images(32)


@model("vision", "relative position bias per window")
def beit():
    from transformers import BeitConfig, BeitForImageClassification

    torch.manual_seed(10)
    config = BeitConfig(**vit_like(num_labels=10, use_relative_position_bias=True))
    return Logits(BeitForImageClassification(config)).eval(), images()


@model("vision", "average pooling in place of attention")
def poolformer():
    from transformers import PoolFormerConfig, PoolFormerForImageClassification

    torch.manual_seed(11)
    config = PoolFormerConfig(
        hidden_sizes=[16, 32],
        depths=[1, 1],
        num_encoder_blocks=2,
        patch_sizes=[7, 3],
        strides=[4, 2],
        padding=[2, 1],
        num_labels=10,
    )
    return Logits(PoolFormerForImageClassification(config)).eval(), images()


@model("vision", "layer scale; positions at the trained size")
def dinov2():
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(12)
    return Features(Dinov2Model(Dinov2Config(**vit_like(mlp_ratio=2)))).eval(), images()


@model("vision", "detection tokens: boxes and classes as a dict")
def yolos():
    from transformers import YolosConfig, YolosForObjectDetection

    torch.manual_seed(13)
    config = YolosConfig(**vit_like(image_size=[32, 32], num_detection_tokens=5, num_labels=3))
    return Boxes(YolosForObjectDetection(config)).eval(), images()


@model("vision", "image and text towers, two outputs, ids as input")
def clip():
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(14)
    config = CLIPConfig(
        text_config={"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
        | {"intermediate_size": 64, "max_position_embeddings": 16, "eos_token_id": 63},
        vision_config=vit_like(num_hidden_layers=1),
        projection_dim=16,
    )
    return Embeddings(CLIPModel(config)).eval(), (torch.randint(1, 64, (2, 8)), *images())


@model("vision", "attention as convolutions, batch norms between linear layers")
def levit():
    from transformers import LevitConfig, LevitForImageClassification

    torch.manual_seed(16)
    config = LevitConfig(
        image_size=64,
        hidden_sizes=[32, 48, 64],
        num_attention_heads=[2, 3, 4],
        depths=[1, 1, 1],
        key_dim=[8, 8, 8],
        down_ops=[["Subsample", 8, 4, 2, 2, 2], ["Subsample", 8, 6, 2, 2, 2]],
        num_labels=10,
    )
    return Logits(LevitForImageClassification(config)).eval(), images(64)


@model("vision", "patches unfolded and folded between convolutions")
def mobilevit():
    from transformers import MobileViTConfig, MobileViTForImageClassification

    torch.manual_seed(18)
    config = MobileViTConfig(
        image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 24, 32, 48, 64], num_labels=10
    )
    return Logits(MobileViTForImageClassification(config)).eval(), images(64)
