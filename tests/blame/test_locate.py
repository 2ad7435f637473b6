"""The steps of the ladder in the runtime: asked of abilities, not of a name."""

from __future__ import annotations

import onnx
import pytest
import torch

import onnxproof
from fake import FakeCandidate
from onnxproof.blame.locate import Locator, _put_clear_first
from onnxproof.candidates.candidate import Abilities
from onnxproof.candidates.onnxruntime import Onnxruntime
from onnxproof.proof.blame import Blame, Culprit
from onnxproof.report.text import _tell_step
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.request.specs import ProviderSpec
from onnxproof.subject.assembly import make_subject
from seam import Mlp

REWRITES = Abilities(rewrites=True)
NPU = ProviderSpec("NpuExecutionProvider")
HERE = SessionSettings()
UNSEEN = "the runtime shows no inner values, so no node was looked for in it"


@pytest.fixture
def mlp(exported):
    return Mlp(exported("mlp"))


def located(mlp: Mlp, candidate: FakeCandidate, settings: SessionSettings = HERE) -> Blame:
    names = {"output": "output"}
    name = next(iter(mlp.subject.inputs.tensors))
    locator = Locator(mlp.subject, mlp.artifact, candidate, settings, {name: "input"}, names)
    return locator.locate(mlp.example())


def test_a_runtime_without_rewrites_has_no_optimize_step(mlp):
    plain = FakeCandidate(mlp.wrong_where(lambda settings: True))
    blame = located(mlp, plain)
    assert (blame.stage, blame.culprits, blame.unseen) == ("kernel", (), True)
    assert UNSEEN in _tell_step(blame)
    assert {settings.optimization for _, settings in plain.opened} == {"all"}


def test_a_rewrite_is_found_where_there_are_any(mlp):
    def unhealed(settings):
        return settings.optimization != "disable" and "GeluFusionL1" not in settings.disabled_optimizers

    blame = located(mlp, FakeCandidate(mlp.wrong_where(unhealed), abilities=REWRITES))
    assert (blame.stage, blame.rewrite, blame.vanishes) == ("optimize", "GeluFusionL1", False)
    assert UNSEEN in _tell_step(blame)


def test_a_fault_that_stays_without_rewrites_is_a_kernels(mlp):
    blame = located(mlp, FakeCandidate(mlp.wrong_where(lambda settings: True), abilities=REWRITES))
    assert (blame.stage, blame.unseen) == ("kernel", True)


def test_a_provider_is_blamed_where_the_cpu_is_right(mlp):
    npu = SessionSettings(providers=(NPU,))
    wrong = mlp.wrong_where(lambda settings: settings.providers[0] == NPU)
    both = FakeCandidate(wrong, available=(NPU.name, CPU.name))
    assert located(mlp, both, npu).stage == "provider"
    alone = FakeCandidate(wrong, available=(NPU.name,))  # there is no CPU to ask
    assert located(mlp, alone, npu).stage == "kernel"


def test_inner_values_are_asked_for_where_they_are_shown(mlp):
    def shows(inputs, settings):
        return mlp.wrong_where(lambda settings: True)(inputs, settings)

    candidate = FakeCandidate(shows, abilities=Abilities(inner_values=True))
    blame = located(mlp, candidate)
    assert not blame.unseen
    assert UNSEEN not in _tell_step(blame)
    assert any(isinstance(model, bytes) for model, _ in candidate.opened)
    assert blame.culprits[0].value == "output"


class Warped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        lines = torch.linspace(-1.4, 1.4, 7), torch.linspace(-1.4, 1.4, 5)
        self.register_buffer("base", torch.stack(torch.meshgrid(*lines, indexing="xy"), -1)[None])

    def forward(self, x):
        grid = self.base.expand(x.shape[0], -1, -1, -1)
        return torch.nn.functional.grid_sample(x, grid, padding_mode="border", align_corners=False) * 2


class Bent(Onnxruntime):
    """An onnxruntime whose GridSample takes every border for zeros."""

    def open(self, model, settings, renamed=None):
        proto = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
        for node in proto.graph.node:
            for attribute in [one for one in node.attribute if one.name == "padding_mode"]:
                attribute.s = b"zeros"
        return super().open(proto.SerializeToString(), settings, renamed)


def test_a_kernel_is_blamed_and_not_a_shape_that_another_exporter_writes_otherwise(tmp_path):
    module, inputs = Warped().eval(), (torch.randn(2, 3, 6, 8),)
    artifact = onnxproof.export(module, inputs, exporter="torchscript", opset=17, out=tmp_path).artifact
    names = {"x": "x"}, {"output": "output"}
    locator = Locator(make_subject(module, inputs), artifact, Bent(), HERE, *names)
    blame = locator.locate({"x": inputs[0].numpy()})
    assert (blame.stage, blame.culprits[0].op) == ("kernel", "GridSample")


def test_what_errs_by_rounding_comes_behind_what_errs_by_far():
    culprits = [Culprit("little", "Mul", 5e-7), Culprit("much", "Gather", 2.3), Culprit("too", "Add", 1e300)]
    assert [c.node for c in _put_clear_first(culprits)] == ["much", "too", "little"]
    assert [c.node for c in _put_clear_first(culprits[:1])] == ["little"]
