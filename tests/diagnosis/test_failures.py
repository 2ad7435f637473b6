"""From the text of a failure to a finding: who is asked, in which order, and what the finding says beside its code."""

from __future__ import annotations

import importlib
import json
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from onnxproof.diagnosis.chain import keep_errors
from onnxproof.diagnosis.failures import (
    diagnose_export,
    diagnose_loading,
    diagnose_running,
    diagnose_text,
    find_named_node,
    find_refused_size,
)
from onnxproof.findings import CATALOGUE


def said(text):
    finding = diagnose_text(text)
    return finding.code if finding is not None else None


LOG = """Traceback (most recent call last):
  File "/venv/torch/_dynamo/eval_frame.py", line 414, in _fn
    return fn(*args, **kwargs)
  File "/home/me/model.py", line 7, in forward
    return x @ self.w
/venv/model.py:212: TracerWarning: Converting a tensor to a Python boolean might cause the trace to be incorrect.
  if a.size() != b.size():
RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x512 and 256x10)
"""


def test_frames_and_warnings_do_not_speak_for_the_error():
    assert said(LOG) == "OX134"
    assert "dynamo" not in keep_errors(LOG)
    assert "Warning" not in keep_errors(LOG)
    assert "mat1 and mat2" in keep_errors(LOG)


def test_a_frame_speaks_where_the_error_says_nothing():
    frames = LOG.replace("mat1 and mat2 shapes cannot be multiplied (1x512 and 256x10)", "7")
    assert said(frames) == "OX126"
    assert said("RuntimeError: 7") is None


def test_whoever_is_heard_in_a_text_is_asked_first():
    text = "Load model failed: Protobuf parsing failed. Segmentation fault"
    assert said(text) == "OX001"
    assert said(f"onnxruntime: {text}") == "OX301"


def test_people_are_asked_where_a_message_says_little():
    assert said("Failed to create the session") == "OX303"
    assert said("Failed to create the session, and then it hangs") == "OX002"
    assert said("Protobuf parsing failed, and then it hangs") == "OX301"


def test_nobody_but_a_pasted_text_is_read_as_somebodys_own_words():
    words = "InferenceSession hangs"
    assert said(words) == "OX002"
    assert diagnose_loading(words) is None
    assert diagnose_running(words) is None
    assert diagnose_export(RuntimeError(words)).code == "OX101"


def test_quotes_of_an_issue_tracker_are_those_of_the_message():
    assert said("RuntimeError: ONNX export failed: Couldn’t export Python operator qfn") == "OX117"


def test_each_moment_has_its_speakers():
    rank = "Invalid rank for input: x Got: 3 Expected: 4"
    assert diagnose_running(rank).code == "OX224"
    assert diagnose_loading(rank) is None
    cut = "INVALID_PROTOBUF : Protobuf parsing failed."
    assert diagnose_loading(cut).code == "OX301"
    assert diagnose_running(cut) is None


def test_a_refused_file_is_found_at_its_node():
    text = "NOT_IMPLEMENTED : Could not find an implementation for Erf(13) node with name 'only'"
    finding = diagnose_loading(text)
    assert finding.where.node == find_named_node(text) == "only"
    assert finding.message == "onnxruntime has no kernel for Erf(13) with the dtype of node only"


@pytest.mark.parametrize(
    ("text", "code", "help"),
    [
        ("No ONNX function found for <OpOverload(op='aten.median', overload='dim')>", "OX108", "Instead: `x.sort(dim)"),
        ("UnsupportedOperatorException: aten.to_sparse.default", "OX117", "Instead: a dense matrix"),
        ("UnsupportedOperatorException: mylib.scale.default", "OX117", "Register one"),
        ("torch.nn.DataParallel is not supported by ONNX exporter", "OX125", "Hand over the module inside"),
        ("7: aten.kthvalue", "OX101", "Instead: `x.topk("),
        ("7", "OX101", CATALOGUE["OX101"].fix),
    ],
)
def test_a_form_comes_before_the_rules_help_and_that_before_the_codes(text, code, help):
    finding = diagnose_export(RuntimeError(text))
    assert finding.code == code
    assert finding.help.startswith(help)


def test_the_opsets_since_when_are_those_of_the_exporter():
    from torch.onnx._internal.torchscript_exporter.registration import registry

    for opset in range(7, 21):
        importlib.import_module(f"torch.onnx._internal.torchscript_exporter.symbolic_opset{opset}")
    data = msgspec.toml.decode((files("onnxproof.diagnosis") / "messages" / "torchscript.toml").read_bytes())
    since = {
        name: int(key.removeprefix("since_")) for key, names in data["fragments"].items() for name in names.split("|")
    }
    assert {name: registry.get_function_group(f"aten::{name}").get_min_supported() for name in since} == since
    for name, opset in since.items():
        text = f"Exporting the operator 'aten::{name}' to ONNX opset version %d is not supported."
        assert diagnose_text(text % (opset - 1)).message.endswith(
            f"from opset {opset} on, and was asked for opset {opset - 1}"
        )
        assert said(text % opset) == "OX108"


def test_the_codes_of_the_public_reports_are_given():
    reports = Path(__file__).parents[2] / "benchmarks" / "failures" / "reports.json"
    rows = json.loads(reports.read_text(encoding="utf-8"))
    judged = [row for row in rows if row.get("code") not in (None, "OX101", "OX303")]
    wrong = [
        (row["url"], row["code"], code)
        for row in judged
        if (code := said(row["error"])) not in (row["code"], row.get("or"), None, "OX137")
    ]
    # Who judged the later samples saw the catalogue only, and some messages have two sides.
    assert len(judged) > 900
    assert len(wrong) < 0.025 * len(judged), wrong
    early = {row["url"] for row in rows if row["sample"] < 21}
    assert [one for one in wrong if one[0] in early] == []


def test_the_size_that_a_file_fixes():
    refused = "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices\n index: 3 Got: 384 Expected: 192\n"
    assert find_refused_size(refused) == ("x", "3", "192")
    assert find_refused_size("Got invalid dimensions for input: x") is None
    assert find_refused_size("Invalid rank for input: x Got: 3 Expected: 4") is None
