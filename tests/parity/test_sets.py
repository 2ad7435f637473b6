"""Boxes are compared as sets where their order says otherwise, and only what rounding decides may be missing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import detectors
import onnxproof
from conftest import codes
from onnxproof.parity.boxes import Boxes, BoxNames, find_boxes, guess_layout, match_boxes, measure_overlaps, to_corners
from onnxproof.parity.sets import match_sets


class Changed(detectors.Thresholded):
    """The detector, and what its file does otherwise."""

    def __init__(self, change, threshold=0.6):
        super().__init__(threshold)
        self.change = change

    def forward(self, image):
        return self.change(super().forward(image))


class AtTheEdge(torch.nn.Module):
    """Boxes with a score above a threshold that one of them has exactly."""

    def __init__(self, margin=0.0):
        super().__init__()
        self.margin = margin

    def forward(self, x):
        scores = (x * torch.linspace(1, 2, 7)).sum(-1) / 7
        keep = scores > 0.75 + self.margin
        corners = torch.arange(5.0)[:, None] * 10 + torch.tensor([0.0, 0.0, 4.0, 4.0])
        return {"boxes": corners[keep], "scores": scores[keep], "labels": torch.arange(5)[keep]}


def verify(original, shipped, tmp_path, inputs, **options):
    file = onnxproof.export(shipped, inputs, out=tmp_path, dynamic="none", in_process=True).artifact.path
    how = {"dynamic": "none", "in_process": True, "fast": True, "out": tmp_path / "out", **options}
    return onnxproof.verify(original, inputs, onnx=file, **how)


def reverse(found):
    return {name: values.flip(0) for name, values in found.items()}


def test_ox240_another_order_is_no_difference(tmp_path):
    original, inputs = detectors.thresholded()
    proof = verify(original, Changed(reverse), tmp_path, inputs)
    assert proof.verdict == "ship"
    told = next(f for f in proof.findings if f.code == "OX240")
    assert told.severity == "note"
    assert told.evidence["missing"] == told.evidence["extra"] == 0
    assert told.evidence["moved"]


def test_ox241_what_is_taken_for_boxes_is_said(tmp_path):
    original, inputs = detectors.thresholded()
    proof = verify(original, original, tmp_path, inputs)
    assert proof.verdict == "ship"
    told = next(f for f in proof.findings if f.code == "OX241")
    assert told.severity == "note"
    assert {*told.evidence["members"]} == {"boxes", "scores", "labels"}
    assert "scores" in told.message


def test_ox241_near_miss_four_numbers_for_each_example_are_an_answer(tmp_path):
    proof = verify(torch.nn.Linear(3, 4).eval(), torch.nn.Linear(3, 4).eval(), tmp_path, (torch.randn(2, 3),))
    assert "OX241" not in codes(proof)


FAULTS = {
    "scores that stay in their order": lambda found: {**reverse(found), "scores": found["scores"]},
    "labels off by one": lambda found: {**found, "labels": found["labels"] + 1},
    "xywh for xyxy": lambda found: {
        **found,
        "boxes": torch.cat([found["boxes"][:, :2], found["boxes"][:, 2:] - found["boxes"][:, :2]], 1),
    },
    "the last one dropped": lambda found: {name: values[:-1] for name, values in found.items()},
    "boxes a little larger": lambda found: {**reverse(found), "boxes": found["boxes"].flip(0) * 1.001},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_ox240_near_miss_what_is_wrong_stays_wrong(fault, tmp_path):
    original, inputs = detectors.thresholded()
    proof = verify(original, Changed(FAULTS[fault]), tmp_path, inputs)
    assert proof.verdict == "block"
    assert "OX240" not in {f.code for f in proof.findings if f.weight}


def test_a_threshold_elsewhere_is_found(tmp_path):
    original, inputs = detectors.thresholded()
    assert "OX215" in codes(verify(original, detectors.Thresholded(0.55), tmp_path, inputs))


def test_a_box_at_the_threshold_may_be_on_either_side(tmp_path):
    """All of a row's numbers times their weights make 0.75, up to rounding."""
    inputs = (torch.full((5, 7), 0.5) + torch.tensor([0.0, 0.1, 0.2, -0.1, -0.2])[:, None],)
    proof = verify(AtTheEdge(), AtTheEdge(1e-8), tmp_path, inputs, range={"x": (0.0, 1.0)})
    assert proof.verdict == "ship"
    far = verify(AtTheEdge(), AtTheEdge(0.05), tmp_path, inputs, range={"x": (0.0, 1.0)})
    assert far.verdict == "block"


def test_rows_of_a_batch_are_no_set():
    outputs = {"boxes": np.zeros((7, 4), np.float32), "scores": np.zeros(7, np.float32)}
    assert find_boxes(outputs, 7) is None
    assert find_boxes(outputs, 1) == BoxNames("boxes", "scores", None, "xyxy", members=("boxes", "scores"))
    assert find_boxes({"output_0": outputs["boxes"], "output_1": outputs["scores"]}, 1) is None
    labels = np.zeros(7, np.int64)
    assert find_boxes({"a": outputs["boxes"], "b": outputs["scores"], "c": labels}, 1).labels == "c"


def test_detr_has_centres_and_a_class_for_nothing():
    outputs = {"logits": np.zeros((2, 5, 4), np.float32), "pred_boxes": np.full((2, 5, 4), 0.5, np.float32)}
    names = find_boxes(outputs, 2)
    assert (names.layout, names.background, names.batched) == ("cxcywh", True, True)
    outputs["logits"][..., 3] = 9  # nothing
    outputs["logits"][..., 1] = 1
    (first, _) = names.read(outputs)
    assert first.labels.tolist() == [1] * 5
    np.testing.assert_array_equal(first.corners[0], [0.25, 0.25, 0.75, 0.75])


def test_overlaps():
    a = np.array([[0.0, 0, 2, 2], [5, 5, 5, 5]])
    np.testing.assert_allclose(measure_overlaps(a, a), np.eye(2))
    np.testing.assert_allclose(measure_overlaps(a[:1], np.array([[1.0, 0, 3, 2]])), [[1 / 3]])
    np.testing.assert_array_equal(to_corners(a, "xywh")[1], [5, 5, 10, 10])
    assert guess_layout("boxes", np.array([[5.0, 5, 1, 1]])) == "cxcywh"


def test_sides_of_another_form_are_not_matched():
    outputs = {"boxes": np.zeros((3, 4), np.float32), "scores": np.zeros(3, np.float32)}
    other = {**outputs, "scores": np.zeros((3, 2), np.float32)}
    names = find_boxes(outputs, 1)
    assert match_sets(outputs, other, names) is None
    assert match_sets(outputs, outputs, names).judge([]).pairs == 3


def test_a_sliver_that_moves_by_an_ulp_is_the_same_box():
    corners = np.array([[0.1, 0.5, 0.9, 0.5 + 1e-7], [0.1, 0.7, 0.9, 0.7 + 1e-7]])
    a = Boxes(corners, np.array([0.9, 0.8]), np.array([1, 1]))
    b = Boxes(corners[::-1] + 2e-7, np.array([0.8, 0.9]), np.array([1, 1]))
    assert match_boxes(a, b).tolist() == [1, 0]
    assert match_boxes(a, Boxes(b.corners, b.scores, np.array([1, 2]))).tolist() == [-1, 0]
