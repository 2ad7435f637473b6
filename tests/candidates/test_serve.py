"""The server's own part, asked in this process: sessions by number, arrays as bytes, frames as the dialogue reads them."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto

from candidates.small_models import identity, sums
from onnxproof.candidates import serve
from onnxproof.candidates.exchange import encode_settings
from onnxproof.process.dialogue import Dialogue
from onnxproof.request.session import SessionSettings

SETTINGS = encode_settings(SessionSettings())


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.array(np.nan, np.float32),
        np.zeros((0, 4), np.float64),
        np.array([True, False]),
        np.array([["a", "ü\n"]], object),
        np.array(["x", "yz"]),
    ],
    ids=["matrix", "number", "empty", "flags", "objects", "texts"],
)
def test_arrays_come_back_as_they_were(array):
    told, blobs = serve.pack({"it": array, "other": np.ones(1, np.uint8)})
    back = serve.unpack(json.loads(json.dumps(told)), [bytes(blob) for blob in blobs])
    assert list(back) == ["it", "other"]
    assert back["it"].shape == array.shape
    np.testing.assert_array_equal(back["it"], array)
    assert back["it"].dtype == (object if array.dtype.kind in "OU" else array.dtype)


def test_what_is_no_tensor_is_not_sent():
    with pytest.raises(TypeError, match=r"no tensor \(dict\) cannot be sent"):
        serve.pack({"maps": np.array([{"a": 1}], object)})


@pytest.mark.parametrize(("level", "name"), serve.LEVELS.items())
def test_levels_are_onnxruntimes(level, name):
    options = serve.make_options({**SETTINGS, "optimization": level})
    assert options.graph_optimization_level == getattr(onnxruntime.GraphOptimizationLevel, name)


@pytest.mark.parametrize(
    ("changed", "threads"),
    [
        ({}, (0, 0)),
        ({"threads": 3}, (3, 1)),
        ({"execution": "parallel"}, (0, 0)),
        ({"execution": "parallel", "threads": 2}, (2, 2)),
    ],
    ids=["as it likes", "three", "parallel", "parallel with two"],
)
def test_threads_and_execution(changed, threads):
    options = serve.make_options({**SETTINGS, **changed})
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == threads
    parallel = options.execution_mode == onnxruntime.ExecutionMode.ORT_PARALLEL
    assert parallel is ("execution" in changed)


def test_sessions_have_numbers_and_are_forgotten(tmp_path):
    (tmp_path / "sums.onnx").write_bytes(sums())
    server = serve.Server()
    facts, _ = server.open({"session": 1, "path": str(tmp_path / "sums.onnx"), "settings": SETTINGS}, [])
    assert facts["inputs"] == {"x": "tensor(float)"}
    assert list(facts["outputs"]) == ["more", "largest"]
    assert facts["used"] == ["CPUExecutionProvider"]
    server.open({"session": 2, "settings": SETTINGS}, [identity(TensorProto.INT64, ["n"])])
    told, blobs = serve.pack({"x": np.array([[1, 2, 3]], np.float32)})
    answer = serve.unpack(*_answered(server.run({"session": 1, "arrays": told}, blobs)))
    np.testing.assert_array_equal(answer["more"], [[2, 3, 4]])
    np.testing.assert_array_equal(answer["largest"], [8])
    server.close({"session": 1}, [])
    server.close({"session": 1}, [])
    with pytest.raises(KeyError):
        server.run({"session": 1, "arrays": told}, blobs)


def _answered(answer):
    return answer[0]["arrays"], answer[1]


def test_who_is_there():
    facts, _ = serve.Server().hello({}, [])
    assert facts["versions"]["onnxruntime"] == onnxruntime.__version__
    assert facts["versions"]["Python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["levels"] == ["disable", "basic", "extended", "all"]


def test_an_onnxruntime_that_does_not_tell_who_runs_a_node():
    assert serve.read_assignment(SimpleNamespace()) == {}
    parts = [
        SimpleNamespace(ep_name="A", get_nodes=lambda: [SimpleNamespace(op_type="Add")]),
        SimpleNamespace(ep_name="B", get_nodes=lambda: [SimpleNamespace(op_type="Neg")]),
        SimpleNamespace(ep_name="A", get_nodes=lambda: [SimpleNamespace(op_type="Mul")]),
    ]
    assert serve.read_assignment(SimpleNamespace(get_provider_graph_assignment_info=lambda: parts)) == {
        "A": ["Add", "Mul"],
        "B": ["Neg"],
    }


def test_a_question_is_heard_whole_however_large():
    read, write = os.pipe()
    requests = queue.SimpleQueue()
    threading.Thread(target=serve._listen, args=(read, requests), daemon=True).start()
    blob = memoryview(bytes(range(256)) * 4000)  # more than a pipe holds
    serve._say(write, {"ask": "run"}, [blob, memoryview(b"")])  # both sides write alike
    header, blobs = requests.get(timeout=20)
    assert (header["ask"], header["blobs"]) == ("run", [blob.nbytes, 0])
    assert [bytes(part) for part in blobs] == [bytes(blob), b""]


def test_as_a_script_it_answers_errors_and_ends_with_who_asks():
    dialogue = Dialogue([sys.executable, str(Path(serve.__file__))])
    assert "versions" in dialogue.ask({"ask": "hello"}, silence=60).header
    refused = dialogue.ask({"ask": "open", "session": 1, "path": "/nowhere.onnx", "settings": SETTINGS}, silence=60)
    assert "/nowhere.onnx" in refused.header["error"]
    assert refused.header["memory"] is False
    dialogue.close()
    ended = subprocess.run([sys.executable, serve.__file__], stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert ended.returncode == 0


def extended() -> bytes:
    """A node of onnxruntime-extensions: the inverse of a matrix."""
    model = onnx.load_from_string(identity(TensorProto.FLOAT, [2, 2]))
    model.graph.node[0].op_type, model.graph.node[0].domain = "Inverse", serve.EXTENSIONS
    model.opset_import.append(onnx.helper.make_opsetid(serve.EXTENSIONS, 1))
    return model.SerializeToString()


def test_the_library_of_extensions_is_registered_where_it_is_needed_and_there(monkeypatch):
    package = ModuleType("onnxruntime_extensions")
    package.__spec__ = ModuleSpec(package.__name__, None)
    package.get_library_path = lambda: "/no/such/library.so"
    monkeypatch.setitem(sys.modules, package.__name__, package)
    serve.make_session(identity(TensorProto.FLOAT, [2, 2]), SETTINGS)  # which needs none, and asks for none
    with pytest.raises(Exception, match="no/such/library"):
        serve.make_session(extended(), SETTINGS)
    monkeypatch.setattr(serve.util, "find_spec", lambda name: None)
    with pytest.raises(Exception, match=r"ai\.onnx\.contrib:Inverse"):
        serve.make_session(extended(), SETTINGS)


def test_a_node_of_extensions_is_computed():
    pytest.importorskip("onnxruntime_extensions")
    session = serve.ArraySession(serve.make_session(extended(), SETTINGS))
    (made,) = session.prepared(dict.fromkeys(session.inputs, np.diag(np.float32([2, 4]))))()
    assert made.tolist() == [[0.5, 0], [0, 0.25]]
