"""Average precision is COCO's: the numbers that are expected here were computed by pycocotools 2.0 on the same boxes."""

from __future__ import annotations

import numpy as np

from onnxproof.quality.metrics.boxes import OVERLAPS, average_precision, rank_boxes

IMAGES, CLASSES = 40, 3
# Seed → mAP, mAP@50 and mAP@75.
COCO = {
    0: (0.1976273173732653, 0.4230276302612781, 0.15814163811092705),
    1: (0.26203984161074517, 0.5214383697558391, 0.206043834488499),
    2: (0.21623447128431011, 0.43271747941032085, 0.20429964095552858),
}


def draw(seed):
    """True boxes and answers near them, some missing, some doubled, some of another class."""
    g = np.random.default_rng(seed)
    true, images, boxes, of_boxes = [], [], [], []
    for image in range(IMAGES):
        for _ in range(int(g.integers(0, 8))):
            x, y, w, h = *g.uniform(0, 80, 2), *g.uniform(5, 30, 2)
            label = int(g.integers(CLASSES))
            true.append([x, y, x + w, y + h, label])
            images.append(image)
            for _ in range(int(g.integers(0, 3))):
                moved = np.array([x, y, x + w, y + h]) + g.normal(0, 1.5, 4)
                boxes.append([*moved, round(g.random(), 2), label if g.random() < 0.9 else int(g.integers(CLASSES))])
                of_boxes.append(image)
        for _ in range(int(g.integers(0, 4))):
            x, y, w, h = *g.uniform(0, 80, 2), *g.uniform(5, 30, 2)
            boxes.append([x, y, x + w, y + h, round(g.random() * 0.6, 2), int(g.integers(CLASSES))])
            of_boxes.append(image)
    return np.array(true), np.array(images), np.array(boxes), np.array(of_boxes)


def measure(seed):
    true, images, boxes, of_boxes = draw(seed)
    each = []
    for k in range(CLASSES):
        mine, given = boxes[:, 5] == k, true[:, 4] == k
        ranked = rank_boxes(boxes[mine], of_boxes[mine], true[given], images[given], IMAGES)
        each.append(average_precision(ranked, np.ones(IMAGES)))
    mean = np.mean(each, axis=0)
    return mean.mean(), mean[0], mean[5]


def test_the_numbers_are_those_of_coco():
    for seed, expected in COCO.items():
        np.testing.assert_allclose(measure(seed), expected, atol=1e-9)


def test_a_weight_counts_an_image_that_often():
    true, images, boxes, of_boxes = draw(3)
    once = rank_boxes(boxes, of_boxes, true, images, IMAGES)
    twice = rank_boxes(
        np.concatenate([boxes, boxes[of_boxes == 5]]),
        np.concatenate([of_boxes, np.full((of_boxes == 5).sum(), IMAGES)]),
        np.concatenate([true, true[images == 5]]),
        np.concatenate([images, np.full((images == 5).sum(), IMAGES)]),
        IMAGES + 1,
    )
    weights = np.ones(IMAGES)
    weights[5] = 2
    # Boxes of equal scores stand in another order, which moves a precision a little.
    np.testing.assert_allclose(
        average_precision(once, weights), average_precision(twice, np.ones(IMAGES + 1)), atol=0.01
    )


def test_nothing_found_is_zero():
    true, images, *_ = draw(0)
    none = rank_boxes(np.zeros((0, 6)), np.zeros(0, np.int64), true, images, IMAGES)
    np.testing.assert_array_equal(average_precision(none, np.ones(IMAGES)), np.zeros(len(OVERLAPS)))
