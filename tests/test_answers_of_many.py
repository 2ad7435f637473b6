"""evaluate where an example has many answers: boxes, masks, tags, neighbours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

import detectors
import onnxproof
from conftest import codes
from onnxproof.errors import UserError

TARGETS = Path(detectors.__file__)


def changed(path: Path, change) -> Path:
    """A copy of a file with its largest weight changed."""
    model = onnx.load(path)
    tensor = max(model.graph.initializer, key=lambda one: int(np.prod(one.dims)))
    tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor).copy()), tensor.name))
    onnx.save(model, path.with_name("changed.onnx"))
    return path.with_name("changed.onnx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of each kind with its file, and data whose labels it made itself, some of them wrong."""
    folder = tmp_path_factory.mktemp("many")
    generator = np.random.default_rng(0)
    for name in ("masks", "tags", "embedder", "best"):
        onnxproof.export(*getattr(detectors, name)(), out=folder / name)
    onnxproof.export(*detectors.thresholded(), out=folder / "thresholded", dynamic="none")
    image = generator.normal(size=(24, 3, 32, 32)).astype(np.float32)
    with torch.no_grad():
        maps = torch.nn.functional.interpolate(
            detectors.Masks()(torch.tensor(image))["logits"], (32, 32), mode="bilinear"
        )
    masks = maps.argmax(1).numpy()
    masks[:, :4] = 255
    masks[:, 4:6] = 0
    np.savez(folder / "masks.npz", image=image, labels=masks)
    ids = generator.integers(0, 50, (40, 9))
    with torch.no_grad():
        tags = detectors.Tags()(torch.tensor(ids)).argmax(-1).numpy()
    tags[:, 7:] = -100
    tags[::4, 0] = 1
    np.savez(folder / "tags.npz", ids=ids, labels=tags)
    x = generator.normal(size=(20, 12)).astype(np.float32)
    x = np.concatenate([x, x + 0.1 * generator.normal(size=x.shape).astype(np.float32)])
    np.savez(folder / "embedder.npz", x=x, labels=np.tile(np.arange(20), 2))
    with torch.no_grad():
        found = detectors.Best()(torch.tensor(image))
    boxes, labels = found["boxes"].numpy() + generator.normal(0, 0.3, (24, 10, 4)), found["labels"].numpy()
    labels = np.where(generator.random(labels.shape) < 0.2, -1, labels)
    np.savez(folder / "boxes.npz", image=image, boxes=boxes, labels=labels)
    return folder


def evaluate(folder, name, out, data=None, **options):
    options = {
        "data": str(data or folder / f"{name}.npz"),
        "onnx": folder / name / "model.onnx",
        "in_process": True,
        **options,
    }
    return onnxproof.evaluate(f"{TARGETS}:{name}", out=out, **options)


def test_masks_are_measured_by_their_overlap(folder, tmp_path):
    proof = evaluate(folder, "masks", tmp_path)
    q = proof.quality
    assert proof.verdict == "ship"
    assert (q.task, q.n, q.decisions, q.flip_count) == ("segmentation", 24, 24 * 28 * 32, 0)
    assert 0.7 < q.candidate["miou"] < 1
    low, high = q.intervals["miou"].candidate
    assert low < q.candidate["miou"] < high
    assert q.per_class["1"].candidate["iou"] == q.per_class["1"].baseline["iou"] > 0.5


def test_ox502_a_pixel_that_changed_is_named(folder, tmp_path):
    wrong = changed(folder / "masks" / "model.onnx", lambda weight: weight * np.float32(1.05))
    proof = evaluate(folder, "masks", tmp_path, onnx=wrong)
    told = next(f for f in proof.findings if f.code == "OX502")
    assert proof.verdict == "block"
    assert proof.quality.flip_count > 0
    assert len(proof.quality.flips[0].place) == 2
    assert "at [" in told.message


def test_tags_leave_out_what_has_no_label(folder, tmp_path):
    q = evaluate(folder, "tags", tmp_path).quality
    assert (q.task, q.decisions, q.flip_count) == ("tokens", 40 * 7, 0)
    assert 0.9 < q.candidate["token_accuracy"] < 1
    assert 0.8 < q.candidate["f1"] < 1


def test_a_tag_of_another_class_is_found(folder, tmp_path):
    wrong = changed(folder / "tags" / "model.onnx", lambda weight: np.roll(weight, 1, axis=-1))
    assert "OX502" in codes(evaluate(folder, "tags", tmp_path, onnx=wrong))


def test_neighbours_are_found_on_both_sides(folder, tmp_path):
    proof = evaluate(folder, "embedder", tmp_path)
    assert proof.quality.task == "embedding"
    assert proof.verdict == "ship"
    assert proof.quality.candidate["recall_at_1"] > 0.9
    assert proof.quality.candidate["same_neighbour"] == 1.0
    wrong = changed(folder / "embedder" / "model.onnx", lambda weight: np.roll(weight, 1, axis=0))
    assert codes(evaluate(folder, "embedder", tmp_path / "wrong", onnx=wrong)) & {"OX507", "OX517"}


def test_boxes_have_an_average_precision(folder, tmp_path):
    proof = evaluate(folder, "best", tmp_path, folder / "boxes.npz")
    q = proof.quality
    assert proof.verdict == "ship"
    assert (q.task, q.flip_count) == ("detection", 0)
    assert 0.4 < q.candidate["map"] < q.candidate["map_50"] <= 1
    assert q.intervals["map"].difference == (0.0, 0.0)
    assert q.per_class["0"].candidate["ap"] == q.per_class["0"].baseline["ap"]


def test_images_come_one_by_one_where_there_is_no_batch_of_boxes(folder, tmp_path):
    proof = evaluate(folder, "thresholded", tmp_path, folder / "boxes.npz", dynamic="none")
    assert proof.quality.task == "detection"
    assert proof.quality.n == 24
    assert not [f for f in proof.findings if f.weight]


def test_a_box_that_only_one_side_has_is_found(folder, tmp_path):
    wrong = changed(folder / "best" / "model.onnx", lambda weight: weight * np.float32(1.02))
    proof = evaluate(folder, "best", tmp_path, folder / "boxes.npz", onnx=wrong)
    assert codes(proof) & {"OX502", "OX517"}


def test_boxes_that_do_not_fit_are_refused(folder, tmp_path):
    with np.load(folder / "boxes.npz") as data:
        np.savez(tmp_path / "flat.npz", image=data["image"], boxes=data["boxes"][:, 0], labels=data["labels"][:, 0])
    with pytest.raises(UserError, match="expected \\(images, most, 4\\)"):
        evaluate(folder, "best", tmp_path / "out", tmp_path / "flat.npz")
