"""onnxruntime for JavaScript, in Node and in a real Chromium: dtypes cross over, and what goes wrong there is told."""

from __future__ import annotations

import os
import shutil
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import models
import onnxproof
from browser import require_javascript
from candidates.small_models import identity, sums
from onnxproof.candidates import choose_candidate, javascript
from onnxproof.errors import FindingError, Rejected, UserError
from onnxproof.request.session import SessionSettings
from onnxproof.request.specs import ProviderSpec

SETTINGS = SessionSettings()


@pytest.fixture(params=["node", "browser"])
def there(request):
    require_javascript(request.param)
    return choose_candidate(SessionSettings(runtime=request.param))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (TensorProto.FLOAT, np.array([1.5, -0.0, np.nan, np.inf], np.float32)),
        (TensorProto.DOUBLE, np.array([1e-300, 2.0], np.float64)),
        (TensorProto.FLOAT16, np.array([0.1, -65504.0], np.float16)),
        (TensorProto.INT64, np.array([2**63 - 1, -(2**63)], np.int64)),
        (TensorProto.UINT64, np.array([2**64 - 1, 0], np.uint64)),
        (TensorProto.INT32, np.array([-5, 2**31 - 1], np.int32)),
        (TensorProto.INT8, np.array([-128, 127], np.int8)),
        (TensorProto.UINT8, np.array([0, 255], np.uint8)),
        (TensorProto.BOOL, np.array([True, False])),
        (TensorProto.STRING, np.array(["ä", ""], object)),
        (TensorProto.FLOAT, np.zeros((0,), np.float32)),
    ],
)
def test_every_dtype_of_javascript_crosses_over(there, kind, values):
    answer = there.open(identity(kind, ["n"]), SETTINGS).run({"x": values})["y"]
    assert answer.dtype == values.dtype
    np.testing.assert_array_equal(answer, values)


def test_a_dtype_that_javascript_lacks_is_a_refusal(there):
    with pytest.raises(FindingError, match="bfloat16"):
        there.open(identity(TensorProto.BFLOAT16, ["n"]), SETTINGS)


def test_large_arrays_arrive_whole(there):
    values = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    large = np.tile(values, (500, 1))
    np.testing.assert_array_equal(there.open(sums(), SETTINGS).run({"x": large})["more"], large + 1)


def test_weights_in_another_file_are_found(there, tmp_path):
    weight = helper.make_tensor("w", TensorProto.FLOAT, [1024], np.arange(1024, dtype=np.float32).tobytes(), raw=True)
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1024]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", ports[:1], ports[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    answer = there.open(path, SETTINGS).run({"x": np.ones(1024, np.float32)})["y"]
    np.testing.assert_array_equal(answer, np.arange(1024) + 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_wasm_answers_the_same_with_and_without_threads(threads):
    require_javascript("browser")
    settings = SessionSettings(runtime="browser", threads=threads)
    there = choose_candidate(settings)
    there.stop()  # wasm takes the number of threads when it is loaded
    values = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
    np.testing.assert_array_equal(there.open(sums(), settings).run({"x": values})["more"], values + 1)
    there.stop()


def test_a_provider_that_the_machine_has_not_is_the_users_error_with_what_there_is():
    require_javascript("browser")
    settings = SessionSettings(runtime="browser", providers=(ProviderSpec("WebGpuExecutionProvider"),))
    told = "there is no provider 'WebGpuExecutionProvider' in the onnxruntime .* of browser; available: 'CPUExecution"
    with pytest.raises(UserError, match=told):
        choose_candidate(settings).open(sums(), settings)


def test_it_times_itself(there):
    seconds = there.open(sums(), SETTINGS).pace({"x": np.ones((2, 3), np.float32)})
    assert len(seconds) >= 3
    assert all(second >= 0 for second in seconds)


def test_a_rewrite_that_cannot_be_switched_off_is_refused(there):
    with pytest.raises(FindingError, match="switches no rewrite off"):
        there.open(sums(), SessionSettings(disabled_optimizers=("ConstantFolding",)))


def test_the_next_input_is_answered_after_its_process_died(there):
    session = there.open(sums(), SETTINGS)
    there._dialogue._process.kill()
    with pytest.raises((Rejected, MemoryError), match="killed by SIGKILL"):
        session.run({"x": np.ones((1, 3), np.float32)})
    assert session.run({"x": np.ones((1, 3), np.float32)})["more"].shape == (1, 3)


@pytest.mark.parametrize("runtime", ["node", "browser"])
def test_a_proof_has_the_verdict_that_it_has_in_python(runtime, tmp_path):
    require_javascript(runtime)
    proof = onnxproof.prove(*models.cnn(), runtime=["onnxruntime", runtime], out=tmp_path, budget=5.0)
    assert [one.verdict for one in proof.runtimes] == ["ship", "ship"], proof.findings
    assert proof.runtimes[1].p50_ms is not None


@pytest.mark.parametrize(
    ("runtime", "left", "told"),
    [
        ("node", (), "expected Node on the path, and there is none: install nodejs"),
        ("node", ("node",), "expected npm on the path"),
        ("browser", ("node", "npm", "env", "sh"), "expected Chromium on the path"),
    ],
)
def test_what_is_missing_is_the_users_error(runtime, left, told, tmp_path, monkeypatch):
    require_javascript(runtime)
    javascript.install_package(runtime)
    for name in left:
        os.symlink(str(shutil.which(name)), tmp_path / name)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=f"--runtime {runtime}: {told}"):
        javascript.make_command(runtime)


def test_webgpu_answers_and_says_what_it_runs_on():
    require_javascript("browser")
    there = choose_candidate(SessionSettings(runtime="browser:webgpu"))
    values = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    np.testing.assert_array_equal(there.open(sums(), SETTINGS).run({"x": values})["more"], values + 1)
    assert "WebGPU" in there.versions()["runtime"]
    there.stop()


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["node==1.20.1", "browser==1.18.0", "browser:nosimd==1.18.0"])
def test_releases_that_do_not_tell_types_are_told_those_of_the_file(runtime):
    require_javascript(runtime.partition("==")[0].partition(":")[0])
    there = choose_candidate(SessionSettings(runtime=runtime))
    answer = there.open(identity(TensorProto.INT64, ["n"]), SETTINGS).run({"x": np.array([2**40, -1])})["y"]
    assert answer.tolist() == [2**40, -1]
    assert answer.dtype == np.int64
    there.stop()


def test_a_way_that_a_release_has_not_is_the_users_error():
    require_javascript("browser")
    with pytest.raises(UserError, match=r"only wasm with SIMD.*such as browser:nosimd==1.18.0"):
        choose_candidate(SessionSettings(runtime="browser:nosimd")).versions()
    with pytest.raises(UserError, match=r"expected a release .* browser:webgpu"):
        choose_candidate(SessionSettings(runtime="browser:webgl"))


def test_what_other_systems_need_is_not_kept():
    require_javascript("node")
    binaries = javascript.install_package("node") / "node_modules" / "onnxruntime-node" / "bin"
    assert {folder.name for folder in binaries.glob("*/*")} == {sys.platform}


def test_a_release_that_is_not_there_is_the_users_error():
    require_javascript("node")
    with pytest.raises(UserError, match=r"--runtime node==0.0.1 cannot be installed: .*npm install"):
        javascript.install_package("node==0.0.1")
