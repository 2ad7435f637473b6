"""The provider that was asked for is the one that is verified; where it is not, it is said.

OpenVINO's build of onnxruntime replaces the ordinary one, so it has an environment of its own and is reached through the seam.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conftest import codes, target
from onnxproof.errors import ProviderError
from onnxproof.heal.healing import heal
from onnxproof.pipeline.conduct import conduct
from onnxproof.proof.proof import Proof
from onnxproof.request.request import Request, VerifySettings
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.request.specs import parse_provider
from onnxproof.request.thresholds import Policy

OPENVINO = Path(__file__).parents[1] / ".venv-openvino" / "bin" / "python"


def test_a_provider_that_runs_no_node_blocks(exported, verify):
    # The ordinary package lists Azure as available and silently runs everything on the CPU.
    proof = verify("mlp", exported("mlp"), provider="Azure")
    assert "OX304" in codes(proof, "block")
    assert proof.verdict == "block"


def asked(tmp_path: Path, model: str, provider: str | None, **options: object) -> Request:
    """A request whose other side is the onnxruntime of OpenVINO's environment."""
    if not OPENVINO.exists():
        pytest.skip("make setup installs the second provider")
    providers = (CPU,) if provider is None else (parse_provider(provider),)
    session = SessionSettings(providers=providers, runtime=f"python:{OPENVINO}")
    return Request(target=model, out=str(tmp_path), verify=VerifySettings(session=session, budget=20.0), **options)


def proved(request: Request, *, in_process: bool = True) -> Proof:
    return conduct(replace(request, in_process=in_process), Policy())


def mlp(exported, tmp_path: Path, provider: str) -> Request:
    return asked(tmp_path, target("mlp"), provider, onnx=str(exported("mlp")))


def written(tmp_path: Path, forward: str, example: str) -> str:
    """A TARGET with one line of forward."""
    (tmp_path / "m.py").write_text(
        f"import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return {forward}\n"
        f"def model():\n    return Net().eval(), ({example},)\n"
    )
    return f"{tmp_path / 'm.py'}:model"


def test_a_real_second_provider_ships(exported, tmp_path):
    proof = proved(mlp(exported, tmp_path, "OpenVINO:device_type=CPU"))
    assert proof.environment.providers == ("OpenVINOExecutionProvider",)
    assert str(proof.environment.runtime).startswith(f"python:{OPENVINO} (Python 3.")
    assert proof.verdict == "ship", proof.findings
    assert all("onnxruntime" in case.seconds for case in proof.cases if case.outputs)


def test_it_ships_from_supervised_children_too(exported, tmp_path):
    proof = proved(mlp(exported, tmp_path, "OpenVINO:device_type=CPU"), in_process=False)
    assert proof.verdict == "ship", proof.findings
    assert len([case for case in proof.cases if case.outputs]) > 5


def test_a_provider_that_cannot_be_created_and_falls_back_blocks(exported, tmp_path):
    proof = proved(mlp(exported, tmp_path, "OpenVINO:device_type=GPU"))
    blocking = [finding for finding in proof.findings if finding.severity == "block"]
    assert [finding.code for finding in blocking] == ["OX304"]
    assert "fell back to 'CPUExecutionProvider'" in blocking[0].message


def test_a_provider_of_this_process_is_none_of_that_one(exported, tmp_path):
    with pytest.raises(ProviderError, match=r"'AzureExecutionProvider' in the onnxruntime \S+ of python:.*OpenVINO"):
        proved(mlp(exported, tmp_path, "Azure"))


def test_a_fault_of_the_provider_is_blamed_on_it(tmp_path):
    # OpenVINO computes 64-bit integers in 32 bits on the CPU.
    model = written(tmp_path, "x * 3 + 1", "torch.randint(0, 9, (2, 4))")
    proof = proved(asked(tmp_path, model, "OpenVINO:device_type=CPU"))
    finding = next(f for f in proof.findings if f.severity == "block")
    assert (finding.code, finding.stage) == ("OX207", "provider")


@pytest.mark.slow
@pytest.mark.parametrize(("forward", "noted"), [("torch.det((x @ x).tanh())", True), ("(x @ x).tanh()", False)])
def test_nodes_that_the_provider_leaves_to_the_cpu_are_noted(tmp_path, forward, noted):
    model = written(tmp_path, forward, "torch.randn(2, 3, 3)")
    proof = proved(asked(tmp_path, model, "OpenVINO:device_type=CPU"))
    assert ("OX305" in codes(proof)) == noted


@pytest.mark.slow
def test_a_missing_kernel_is_healed_by_another_provider(tmp_path):
    # The CPU provider has no ReLU of 16-bit integers; OpenVINO has.
    model = written(tmp_path, "torch.relu(x)", "torch.arange(-4, 4, dtype=torch.int16).reshape(2, 4)")
    request = asked(tmp_path, model, None)
    sick = proved(request)
    assert "OX308" in codes(sick, "block")
    proof = heal(replace(request, in_process=True), sick, Policy())
    assert proof.verdict == "ship", proof.findings
    assert proof.healing is not None
    assert proof.healing.change == "the OpenVINO provider"
    assert proof.healing.session["providers"] == ["OpenVINOExecutionProvider", "CPUExecutionProvider"]
    assert proof.healing.cost.latency_ratio is None
    assert "--provider OpenVINO" in next(f.help for f in proof.findings if f.code == "OX008")
