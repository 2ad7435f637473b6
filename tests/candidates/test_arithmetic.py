"""How runtimes add products of bytes."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from fake import FakeCandidate
from onnxproof.candidates import choose_candidate
from onnxproof.candidates.arithmetic import adds_in_16_bits
from onnxproof.findings import found
from onnxproof.request.session import SessionSettings
from onnxproof.system import has_vnni


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other CPUs have no such instruction")
def test_the_runtime_here_does_what_this_cpu_has():
    assert adds_in_16_bits(choose_candidate(SessionSettings())) == (not has_vnni())


@pytest.mark.parametrize(("sum_", "saturates"), [(2**15 - 1, True), (2 * 255 * 127, False)])
def test_it_is_asked_for_a_sum_of_two_products(sum_, saturates):
    there = FakeCandidate(lambda inputs, settings: {"y": np.array([[sum_]], np.int32)}, outputs=["y"])
    assert adds_in_16_bits(there) == saturates


def test_what_cannot_be_asked_is_taken_to_be_exact():
    assert not adds_in_16_bits(FakeCandidate(lambda inputs, settings: {}, refused=found("OX303", "no such operator")))
