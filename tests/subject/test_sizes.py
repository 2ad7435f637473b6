"""Names of sizes, and sums of them."""

from __future__ import annotations

from onnxproof.subject.sizes import list_free, measure_size


def test_a_sum_follows_from_its_terms():
    assert list_free(["batch", "past+seq", "past", "seq", "past"]) == ["batch", "past", "seq"]
    assert list_free(["past+seq", "seq"]) == ["past+seq", "seq"], "one of its terms is chosen by nobody"
    assert measure_size("past + seq", {"past": 5, "seq": 2, "past + seq": 1}, 9) == 7
    assert measure_size("past+1", {"past": 5}, 9) == 6
    assert measure_size("past+seq", {"past": 5}, 9) == 9
    assert measure_size("other", {"past": 5}, 9) == 9
