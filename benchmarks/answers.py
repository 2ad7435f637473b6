"""Answers that are sets, maps and texts, judged: `python -m benchmarks.answers` writes docs/answers.md.

Right exports of detectors, segmenters, taggers and embedders have to ship; then a fault is planted in the file, one at a time, and `verify`
or `evaluate` has to find it. What generations showed (`benchmarks.generations`) stands on the same page.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import onnxproof

PAGE, RESULTS = (Path(__file__).parents[1] / "docs" / name for name in ("answers.md", "answers.json"))
IMAGES, SIDE = 24, 32
Outputs = dict[str, torch.Tensor]
HEAD = """# Answers that are not one tensor

Made by `make answers` (its parts may be of several runs): small configurations with random weights, labels made of the model's own answers with some of them changed.
`verify` holds every output against rounding, boxes as sets; `evaluate` runs data with labels, or prompts, through both sides.
"""


class Detector(nn.Module):
    """Boxes of one image: a grid, a threshold, and of boxes that overlap only the best."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        torch.manual_seed(1)
        self.fault = fault
        self.features = nn.Sequential(nn.Conv2d(3, 16, 4, stride=4), nn.Tanh(), nn.Conv2d(16, 4 + 4, 1))
        grid = torch.stack(torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="xy"), -1).reshape(-1, 2)
        self.register_buffer("centres", grid * 4 + 2)

    def forward(self, image: torch.Tensor) -> Outputs:
        raw = self.features(image)[0].flatten(1).T
        centre, size = self.centres + raw[:, :2], 4 + 3 * raw[:, 2:4].exp()
        boxes = torch.cat([centre - size / 2, centre + size / 2], 1)
        boxes = boxes if self.fault == "boxes not clipped" else boxes.clamp(0, SIDE)
        every = (4 * raw[:, 4:]).softmax(1)  # the first class is the background
        every = every if self.fault == "background index kept" else every[:, 1:]
        scores, labels = every.topk(2, 1)
        scores, labels = (
            scores[:, int(self.fault == "scores of another class")],
            labels[:, 0] + int(self.fault == "labels off by one"),
        )
        order = scores.argsort(descending=True)
        order = order[scores[order] > (0.35 if self.fault == "a lower threshold" else 0.4)]
        boxes, scores, labels = boxes[order], scores[order], labels[order]
        keep = self._suppress(boxes, labels)
        return {"boxes": self._write(boxes[keep]), "scores": scores[keep], "labels": labels[keep]}

    def _suppress(self, boxes: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        low, high = (
            torch.maximum(boxes[:, None, :2], boxes[None, :, :2]),
            torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:]),
        )
        common, areas = (high - low).clamp(min=0).prod(2), (boxes[:, 2:] - boxes[:, :2]).prod(1)
        overlap = common / (areas[:, None] + areas[None] - common)
        near = overlap < 0.3 if self.fault == "NMS threshold on the wrong side" else overlap > 0.3
        near = near if self.fault == "NMS across labels" else near & (labels[:, None] == labels[None])
        return ~torch.triu(near, 1).any(0)

    def _write(self, boxes: torch.Tensor) -> torch.Tensor:
        if self.fault == "xywh for xyxy":
            return torch.cat([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)
        return boxes[:, [1, 0, 3, 2]] if self.fault == "x and y swapped" else boxes


class Segmenter(nn.Module):
    """Scores of four classes for each pixel, from a smaller map."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        torch.manual_seed(3)
        self.fault = fault
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.GELU(), nn.Conv2d(8, 4, 3, padding=1, stride=2)
        )

    def forward(self, image: torch.Tensor) -> Outputs:
        small = self.net(image)
        if self.fault == "masks resized to the nearest pixel":
            return {"logits": nn.functional.interpolate(small, (SIDE, SIDE), mode="nearest")}
        corners = self.fault == "resized masks off by half a pixel"
        large = nn.functional.interpolate(small, (SIDE, SIDE), mode="bilinear", align_corners=corners)
        large = large.roll(1, 1) if self.fault == "classes of the mask off by one" else large
        return {"logits": large.roll(1, 3) if self.fault == "masks shifted by a pixel" else large}


class Tagger(nn.Module):
    """Scores of five tags for each token."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        torch.manual_seed(4)
        self.fault = fault
        self.words, self.head = nn.Embedding(50, 16), nn.Linear(16, 5)
        self.mix = nn.Conv1d(16, 16, 3, padding=1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        scores = self.head(self.mix(self.words(ids).transpose(1, 2)).tanh().transpose(1, 2))
        return scores.roll(1, 1) if self.fault == "tags shifted by a token" else scores


class Embedder(nn.Module):
    """A vector for each text: the mean of its words that count."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        torch.manual_seed(5)
        self.fault = fault
        self.words, self.mix = nn.Embedding(50, 16), nn.Linear(16, 16)

    def forward(self, ids: torch.Tensor) -> Outputs:
        mask = torch.ones_like(ids) if self.fault == "the mean takes the padding along" else (ids != 0).long()
        words = self.mix(self.words(ids)).tanh()
        mean = (words * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return {
            "sentence_embedding": mean
            if self.fault == "vectors not normalised"
            else nn.functional.normalize(mean, dim=-1)
        }


def image(generator: np.random.Generator) -> np.ndarray:
    return generator.normal(size=(IMAGES, 3, SIDE, SIDE)).astype(np.float32)


def make_detr() -> nn.Module:
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

    torch.manual_seed(0)
    backbone = ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], out_features=["stage2"], layer_type="basic"
    )
    sizes = {
        "d_model": 32,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32,
        "num_queries": 12,
    }
    config = DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone_config=backbone, backbone=None, num_labels=5,
        encoder_attention_heads=2, decoder_attention_heads=2, init_std=0.5, **sizes,
    )  # fmt: skip
    return Chosen(DetrForObjectDetection(config), ("logits", "pred_boxes"))


def make_yolos() -> nn.Module:
    from transformers import YolosConfig, YolosForObjectDetection

    torch.manual_seed(0)
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "patch_size": 8,
    }
    config = YolosConfig(image_size=[SIDE, SIDE], num_detection_tokens=12, num_labels=5, initializer_range=0.3, **sizes)
    return Chosen(YolosForObjectDetection(config), ("logits", "pred_boxes"))


def make_segformer() -> nn.Module:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    torch.manual_seed(0)
    config = SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2],
        num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16, num_labels=4, initializer_range=0.3,
    )  # fmt: skip
    return Chosen(SegformerForSemanticSegmentation(config), ("logits",))


def make_ctc() -> nn.Module:
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    torch.manual_seed(0)
    config = Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, conv_dim=(16, 16), conv_stride=(5, 4),
        conv_kernel=(10, 8), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, vocab_size=12, initializer_range=0.3,
        mask_time_prob=0.0, num_feat_extract_layers=2,
    )  # fmt: skip
    return Chosen(Wav2Vec2ForCTC(config), ("logits",), "input_values")


class Chosen(nn.Module):
    """Some outputs of a transformers model."""

    def __init__(self, inner: nn.Module, outputs: tuple[str, ...], name: str = "pixel_values") -> None:
        super().__init__()
        self.inner, self.outputs, self.name = inner.eval(), outputs, name

    def forward(self, x: torch.Tensor) -> Outputs:
        answer = self.inner(**{self.name: x})
        return {name: answer[name] for name in self.outputs}


def label_boxes(answers: list[Outputs], generator: np.random.Generator) -> dict[str, np.ndarray]:
    """The model's own boxes, moved a little, some of them left out."""
    most = max(len(one["boxes"]) for one in answers)
    boxes, labels = np.zeros((len(answers), most, 4), np.float32), np.full((len(answers), most), -1)
    for row, one in enumerate(answers):
        kept = np.flatnonzero(generator.random(len(one["boxes"])) < 0.8)
        boxes[row, : len(kept)] = one["boxes"].numpy()[kept] * (1 + generator.normal(0, 0.02, (len(kept), 4)))
        labels[row, : len(kept)] = one["labels"].numpy()[kept]
    return {"boxes": boxes, "labels": labels}


def label_queries(answer: Outputs, generator: np.random.Generator) -> dict[str, np.ndarray]:
    centre, size = answer["pred_boxes"][..., :2], answer["pred_boxes"][..., 2:]
    corners = torch.cat([centre - size / 2, centre + size / 2], -1)
    one_by_one = [{"boxes": b, "labels": s[:, :-1].argmax(-1)} for b, s in zip(corners, answer["logits"], strict=True)]
    return label_boxes(one_by_one, generator)


def change_some(labels: np.ndarray, classes: int, generator: np.random.Generator) -> np.ndarray:
    return np.where(generator.random(labels.shape) < 0.1, generator.integers(0, classes, labels.shape), labels)


def make_data(kind: str, model: nn.Module, file: Path) -> None:
    """Inputs, and labels that the right model mostly agrees with."""
    generator = np.random.default_rng(0)
    with torch.no_grad():
        if kind == "detector":
            x = image(generator)
            fields = {"image": x, **label_boxes([model(torch.tensor(x[i : i + 1])) for i in range(IMAGES)], generator)}
        elif kind == "segmenter":
            x = image(generator)
            fields = {
                "image": x,
                "labels": change_some(model(torch.tensor(x))["logits"].argmax(1).numpy(), 4, generator),
            }
        elif kind in ("tagger", "embedder"):
            ids = generator.integers(1, 50, (40, 9))
            ids[:, 6:] = np.where(generator.random((40, 3)) < 0.5, 0, ids[:, 6:])
            if kind == "tagger":
                labels = change_some(model(torch.tensor(ids)).argmax(-1).numpy(), 5, generator)
            else:
                ids[20:] = ids[:20]
                ids[20:, 0], labels = generator.integers(1, 50, 20), np.tile(np.arange(20), 2)
            fields = {"ids": ids, "labels": labels}
        elif kind in ("detr", "yolos"):
            x = image(generator)
            fields = {"x": x, **label_queries(model(torch.tensor(x)), generator)}
        else:
            x = generator.normal(size=(IMAGES, 400)).astype(np.float32) if kind == "wav2vec2-ctc" else image(generator)
            scores = model(torch.tensor(x))["logits"]
            scores = (
                scores if kind == "wav2vec2-ctc" else nn.functional.interpolate(scores, (SIDE, SIDE), mode="bilinear")
            )
            labels = scores.argmax(-1 if kind == "wav2vec2-ctc" else 1).numpy()
            fields = {
                "x": x,
                "labels": change_some(labels, scores.shape[-1 if kind == "wav2vec2-ctc" else 1], generator),
            }
    np.savez(file, **fields)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "detector": Detector, "segmenter": Segmenter, "tagger": Tagger, "embedder": Embedder,
    "detr": make_detr, "yolos": make_yolos, "segformer": make_segformer, "wav2vec2-ctc": make_ctc,
}  # fmt: skip
FAULTS = {
    "detector": (
        "NMS threshold on the wrong side", "NMS across labels", "xywh for xyxy", "x and y swapped", "labels off by one",
        "scores of another class", "background index kept", "boxes not clipped", "a lower threshold",
    ),
    "segmenter": (
        "resized masks off by half a pixel", "masks resized to the nearest pixel", "classes of the mask off by one", "masks shifted by a pixel",
    ),
    "tagger": ("tags shifted by a token",),
    "embedder": ("the mean takes the padding along", "vectors not normalised"),
}  # fmt: skip
WRONG = {"detector": Detector, "segmenter": Segmenter, "tagger": Tagger, "embedder": Embedder}


def judge(kind: str, fault: str, folder: Path) -> dict[str, Any]:
    """The right model against the file of one with a fault, by `verify` and by `evaluate`."""
    model = MODELS[kind]().eval()
    shipped = WRONG[kind](fault).eval() if fault else model
    data = folder / f"{kind}.npz"
    if not data.exists():
        make_data(kind, model, data)
    with np.load(data) as fields:
        name = next(iter(fields.files))
        inputs = (torch.tensor(fields[name][: 1 if kind == "detector" else 2]),)
    how: dict[str, Any] = {"dynamic": "none"} if kind == "detector" else {}
    file = onnxproof.export(shipped, inputs, out=folder / "out", isolate=True, **how).artifact.path
    verified = onnxproof.verify(
        model, inputs, onnx=file, out=folder / "out", in_process=True, fast=True, threads=1, budget="20s", **how
    )
    evaluated = onnxproof.evaluate(
        model, inputs, onnx=file, data=str(data), out=folder / "out", in_process=True, threads=1, resume=False, **how
    )
    return {
        **{"model": kind, "fault": fault, "task": evaluated.quality.task if evaluated.quality is not None else None},
        **{"verify": verified.verdict, "evaluate": evaluated.verdict},
        **{"codes": sorted({f.code for p in (verified, evaluated) for f in p.findings if f.weight})},
    }


def write_page(known: dict[str, Any]) -> None:
    lines = [HEAD, "## Right exports", "", "| model | task | `verify` | `evaluate` |", "|---|---|---|---|"]
    lines += [
        f"| {r['model']} | {r['task']} | {r['verify']} | {r['evaluate']} |" for r in known.get("right answers", ())
    ]
    wrong = known.get("wrong answers", ())
    caught = sum(r["verify"] != "ship" or r["evaluate"] != "ship" for r in wrong)
    lines += [
        "",
        f"## Planted faults: {caught} of {len(wrong)} caught",
        "",
        "| model | fault | `verify` | `evaluate` | codes |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['model']} | {r['fault']} | {r['verify']} | {r['evaluate']} | {', '.join(r['codes'])} |" for r in wrong
    ]
    runs = known.get("right generations", ())
    total = {name: sum(r[name] for r in runs) for name in ("generations", "steps", "changed", "unclassified", "bugs")}
    lines += [
        "",
        "## Generations",
        "",
        f"{total['generations']:,} continuations through right files, {total['steps']:,} steps: {total['changed']:,} tokens changed, "
        f"{total['changed'] - total['bugs'] - total['unclassified']:,} of them classified as rounding, {total['unclassified']} not classified, "
        f"{total['bugs']} called a bug. Half of the vocabulary is nearly a copy of the other half, so that rounding often decides.",
        "",
        "| family | file | generations | tokens changed | bugs | verdict |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['family']} | {r['kind']} | {r['generations']} | {r['changed']} | {r['bugs']} | {r['verdict']} |"
        for r in runs
    ]
    lines += ["", "| fault | family | file | verdict | codes | first wrong step found |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {r['fault']} | {r['family']} | {r['kind']} | {r['verdict']} | {', '.join(r['codes'])} | {r['first']} |"
        for r in known.get("wrong generations", ())
    ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=("right", "wrong", "page"), default=("right", "wrong"))
    asked = parser.parse_args()
    torch.set_num_threads(1)  # the models are small
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    plans = {
        "right": [(kind, "") for kind in MODELS],
        "wrong": [(kind, one) for kind, faults in FAULTS.items() for one in faults],
    }
    with tempfile.TemporaryDirectory() as made:
        for part in (part for part in plans if part in asked.only):
            known[f"{part} answers"] = []
            for kind, fault in plans[part]:
                known[f"{part} answers"].append(judge(kind, fault, Path(made)))
                print(known[f"{part} answers"][-1], flush=True)
    latest = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known = {**latest, **{name: rows for name, rows in known.items() if name.endswith("answers")}}
    RESULTS.write_text(json.dumps(known, indent=1) + "\n")
    write_page(known)


if __name__ == "__main__":
    from benchmarks import answers  # children find its classes by this name

    answers.main()
