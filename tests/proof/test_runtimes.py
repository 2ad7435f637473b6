"""One file on several runtimes: order, groups, changes."""

from __future__ import annotations

from onnxproof.findings import found
from onnxproof.proof.codec import decode, to_plain
from onnxproof.proof.runtimes import RuntimeResult, find_changes, group_results, name_group

REFUSED = (found("OX310", "too new"),)


def release(version: str, *findings) -> RuntimeResult:
    return RuntimeResult(f"onnxruntime=={version}", version, findings=findings)


RESULTS = [
    RuntimeResult("onnxruntime", "1.20.1"),
    release("1.9.0", *REFUSED),
    release("1.15.0", *REFUSED),
    release("1.17.3"),
    RuntimeResult("node", "1.20.1"),
    RuntimeResult("python:x", "1.0.0", findings=REFUSED),
]


def test_equal_neighbours_are_one_group_in_the_order_of_their_versions():
    assert [name_group(group) for group in group_results(RESULTS)] == [
        "onnxruntime 1.9.0–1.15.0",
        "onnxruntime 1.17.3–1.20.1",
        "node",
        "python:x",
    ]
    assert [name_group(group) for group in group_results([release("1.17.3")])] == ["onnxruntime 1.17.3"]


def test_a_change_is_between_neighbouring_releases():
    assert [(a.version, b.version) for a, b in find_changes(RESULTS)] == [("1.15.0", "1.17.3")]
    assert find_changes(RESULTS[3:]) == []


def test_the_verdict_is_written_and_follows_from_the_findings():
    plain = to_plain(RESULTS[1])
    assert plain["verdict"] == "block"
    assert decode(plain, RuntimeResult) == RESULTS[1]
