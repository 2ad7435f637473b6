"""The subject of a request: from memory, from TARGET, the same in every process."""

from __future__ import annotations

import pytest
import torch

from onnxproof.errors import TargetError
from onnxproof.pipeline.loading import check_weights, describe_subject, fingerprint_weights, load_anew, load_subject
from onnxproof.request.request import Request
from onnxproof.request.specs import Range

RANDOM = "import torch\ndef make():\n    return torch.nn.Linear(3, 2), (torch.randn(4, 3),)\n"


def held(**options) -> Request:
    torch.manual_seed(1)
    return Request(held=(torch.nn.Linear(3, 2).eval(), (torch.randn(4, 3),)), **options)


def test_a_module_in_memory_is_described_with_what_was_asked_of_it():
    request = held(ranges={"input": Range(-1, 1)}, dynamic={"input": {0: "rows"}})
    facts = describe_subject(load_subject(request), request)
    assert (facts.name, facts.parameters, facts.inputs["input"].shape) == ("Linear", 8, (4, 3))
    assert facts.ranges == {"input": (-1.0, 1.0)}
    assert facts.dynamic == {"input": {"0": "rows"}}


def test_a_target_with_random_weights_is_one_model_in_every_process(tmp_path):
    (tmp_path / "m.py").write_text(RANDOM)
    request = Request(target=f"{tmp_path}/m.py:make")
    first, second = (fingerprint_weights(load_anew(request)) for _ in range(2))
    assert first == second
    assert fingerprint_weights(load_subject(request)) != first


def test_another_module_than_the_exported_one_is_refused():
    request = held()
    subject = load_subject(request)
    check_weights(subject, request, None)
    check_weights(subject, request, fingerprint_weights(subject))
    with pytest.raises(TargetError, match="other weights each time"):
        check_weights(subject, request, "another")


def test_a_request_without_a_subject_says_so():
    with pytest.raises(TargetError, match="no TARGET"):
        load_subject(Request())
