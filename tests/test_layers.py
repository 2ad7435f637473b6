"""The tree tells the story: imports point one way, also those inside functions, and the picture of it is current."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import layers


def test_every_module_has_a_room():
    rooms = {layers.package_of(name) for name in layers.modules()}
    assert rooms == set(layers.RANK) | layers.ALONE


def test_no_import_points_up():
    up = [
        f"{source} imports {what or target} of {target}"
        for source, target, what in layers.edges()
        if layers.package_of(source) != layers.package_of(target)
        and layers.RANK[layers.package_of(target)] > layers.RANK[layers.package_of(source)]
    ]
    assert up == []


def test_packages_import_in_no_circle():
    try:
        TopologicalSorter(layers.between_packages()).prepare()
    except CycleError as error:
        raise AssertionError(f"packages import each other: {' → '.join(error.args[1])}") from None


def test_modules_import_in_no_circle():
    graph: dict[str, set[str]] = {}
    for source, target, _ in layers.edges():
        if source != target:
            graph.setdefault(source, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"modules import each other: {' → '.join(error.args[1])}") from None


def test_nothing_imports_the_code_of_models():
    assert [source for source, target, _ in layers.edges() if layers.package_of(target) in layers.ALONE] == []


def test_the_picture_in_the_design_is_current():
    text = layers.PAGE.read_text(encoding="utf-8")
    shown = text.partition(layers.BEGIN)[2].partition(layers.END)[0].strip()
    assert shown == layers.picture(), "python tests/layers.py writes it anew"
