"""Providers: what was asked for is what runs, or it is said."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from conftest import codes, target

OPENVINO = Path(__file__).parents[1] / ".venv-openvino" / "bin" / "python"


def test_a_provider_that_runs_no_node_blocks(exported, verify):
    # The ordinary package lists Azure as available and silently runs everything on the CPU.
    proof = verify("mlp", exported("mlp"), provider="Azure")
    assert "OX304" in codes(proof, "block")
    assert proof.verdict == "block"


def openvino(exported, tmp_path, *flags):
    if not OPENVINO.exists():
        pytest.skip("make setup installs the second provider")
    command = [
        OPENVINO,
        "-c",
        "from onnxproof.cli import main; main()",
        "verify",
        target("mlp"),
        "--onnx",
        exported("mlp"),
    ]
    result = subprocess.run(
        [*command, *flags, "--json", "-"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert result.stdout, result.stderr
    return json.loads(result.stdout)


def test_a_real_second_provider_ships(exported, tmp_path):
    proof = openvino(exported, tmp_path, "--provider", "OpenVINO:device_type=CPU")
    assert proof["environment"]["providers"] == ["OpenVINOExecutionProvider"]
    assert proof["verdict"] == "ship", proof["findings"]


def test_a_provider_that_cannot_be_created_and_falls_back_blocks(exported, tmp_path):
    proof = openvino(exported, tmp_path, "--provider", "OpenVINO:device_type=GPU")
    assert [f["code"] for f in proof["findings"] if f["severity"] == "block"] == ["OX304"]
    assert "fell back to 'CPUExecutionProvider'" in proof["findings"][0]["message"]


def test_a_fault_of_the_provider_is_blamed_on_it(tmp_path):
    # OpenVINO computes 64-bit integers in 32 bits on the CPU.
    if not OPENVINO.exists():
        pytest.skip("make setup installs the second provider")
    (tmp_path / "m.py").write_text(
        "import torch\nclass Big(torch.nn.Module):\n    def forward(self, x):\n        return x * 3 + 1\n"
        "def model():\n    return Big().eval(), (torch.randint(0, 9, (2, 4)),)\n"
    )
    command = [OPENVINO, "-c", "from onnxproof.cli import main; main()", "prove", "m.py:model", "--json", "-"]
    done = subprocess.run(
        [*command, "--provider", "OpenVINO:device_type=CPU"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    proof = json.loads(done.stdout)
    finding = next(f for f in proof["findings"] if f["severity"] == "block")
    assert (finding["code"], finding["stage"]) == ("OX207", "provider")


@pytest.mark.slow
def test_nodes_that_the_provider_leaves_to_the_cpu_are_noted(tmp_path):
    if not OPENVINO.exists():
        pytest.skip("make setup installs the second provider")
    (tmp_path / "m.py").write_text(
        "import torch\nclass Some(torch.nn.Module):\n"
        "    def __init__(self, some):\n        super().__init__()\n        self.some = some\n"
        "    def forward(self, x):\n        y = (x @ x).tanh()\n        return torch.det(y) if self.some else y\n"
        "def partly():\n    return Some(True).eval(), (torch.randn(2, 3, 3),)\n"
        "def wholly():\n    return Some(False).eval(), (torch.randn(2, 3, 3),)\n"
    )
    found = []
    for name in ("partly", "wholly"):
        command = [OPENVINO, "-c", "from onnxproof.cli import main; main()", "prove", f"m.py:{name}", "--json", "-"]
        flags = ["--provider", "OpenVINO:device_type=CPU", "--budget", "5s"]
        result = subprocess.run([*command, *flags], capture_output=True, text=True, cwd=tmp_path, check=False)
        found.append("OX305" in [f["code"] for f in json.loads(result.stdout)["findings"]])
    assert found == [True, False]


@pytest.mark.slow
def test_a_missing_kernel_is_healed_by_another_provider(tmp_path):
    # The CPU provider has no ReLU of 16-bit integers; OpenVINO has.
    if not OPENVINO.exists():
        pytest.skip("make setup installs the second provider")
    (tmp_path / "m.py").write_text(
        "import torch\nclass Short(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
        "def model():\n    return Short().eval(), (torch.arange(-4, 4, dtype=torch.int16).reshape(2, 4),)\n"
    )
    command = [OPENVINO, "-c", "from onnxproof.cli import main; main()", "prove", "m.py:model", "--json", "-", "--heal"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    proof = json.loads(done.stdout)
    assert proof["verdict"] == "ship", proof["findings"]
    assert proof["healing"]["change"] == "the OpenVINO provider"
    assert proof["healing"]["session"]["providers"] == ["OpenVINOExecutionProvider", "CPUExecutionProvider"]
    assert "--provider OpenVINO" in next(f["help"] for f in proof["findings"] if f["code"] == "OX008")
