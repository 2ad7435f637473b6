"""From end to end: an operator that errs where inputs seldom get is found, and shown by an input of the model."""

from __future__ import annotations

import onnx
import pytest
import torch
from torch import nn

import onnxproof
from onnxproof.report.text import render
from trials.small import capped, export, raise_cap


def test_a_right_file_agrees_in_every_piece(tmp_path):
    proof = onnxproof.verify(*capped(), onnx=export(tmp_path / "file"), out=tmp_path / "out")
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.tried == proof.trials.pieces > 3
    assert {one.module for one in proof.trials.modules} >= {"norm", "units", "table"}
    assert sum(one.pieces for one in proof.trials.modules) == proof.trials.pieces
    assert sum(one.values for one in proof.trials.modules) == proof.trials.values
    assert proof.trials.latent == ()
    assert "every one agreed on its own edges" in render(proof)


def test_an_operator_that_errs_beyond_the_cases_is_found_and_reached(tmp_path):
    proof = onnxproof.verify(*capped(), onnx=export(tmp_path / "file", raise_cap), out=tmp_path / "out", fast=True)
    assert proof.verdict == "block"
    assert proof.trials is not None
    (latent, *_) = proof.trials.latent
    assert latent.op in ("Clip", "Min")
    assert latent.reached is not None
    assert latent.expected == 6


def test_what_is_far_too_large_is_left_out_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setattr("onnxproof.trials.calls.MOST_ELEMENTS", 10)
    proof = onnxproof.verify(*capped(), onnx=export(tmp_path / "file"), out=tmp_path / "out")
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.pieces == 0
    assert "too large" in str(proof.trials.reason)


class Exactly(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x == 0.39


def test_a_number_that_float32_has_not_is_not_tried(tmp_path):
    """0.39 in float64 equals the module's constant and not the file's; no float32 ever does so."""
    proof = onnxproof.prove(Exactly().eval(), (torch.randn(2, 3),), out=tmp_path)
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.latent == ()


class Truncated(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rest = torch.remainder(x, x.abs() + 0.5)
        return torch.relu(torch.div(rest * 3, rest + 0.5, rounding_mode="trunc"))


def test_of_values_that_agree_by_chance_one_between_may_be_the_result(tmp_path):
    """A quotient that is never negative is what it is without its sign, and what a ReLU makes of it."""
    proof = onnxproof.prove(Truncated().eval(), (torch.randn(2, 3),), out=tmp_path)
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.latent == ()


class Nothing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        none = nn.functional.smooth_l1_loss(x, x, reduction="none")
        return nn.functional.smooth_l1_loss(x, none, reduction="none")


def test_what_agrees_by_chance_may_also_be_taken(tmp_path):
    """A difference that is always zero is what its square is, and what a loss of it is: the next operator takes the last of them."""
    proof = onnxproof.prove(Nothing().eval(), (torch.randn(2, 3),), out=tmp_path)
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.latent == ()


class EntropyTwice(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        entropy = torch.special.entr(x.abs())
        return entropy, entropy.bool()


@pytest.mark.slow
def test_one_pairing_that_is_mended_mends_others(tmp_path):
    """What is positive is what an entropy asks itself, and what its own truth is; the entropy is one of three steps that look alike."""
    for _ in range(2):  # the second remembers what the first has tried
        proof = onnxproof.prove(EntropyTwice().eval(), (torch.randn(2, 3),), out=tmp_path)
        assert proof.verdict == "ship"
        assert proof.trials is not None
        assert proof.trials.latent == ()


class Backward(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second, third, last = torch.cat([x, x], 0).flip(0).unbind(0)
        return torch.stack([first.tanh(), second.sin(), third.cos(), last.sigmoid()])


def test_what_looks_alike_may_come_in_another_order(tmp_path):
    """A sequence that repeats itself, turned around: its steps are paired in their order, which is not theirs."""
    proof = onnxproof.prove(Backward().eval(), (torch.randn(2, 3),), out=tmp_path, dynamic={})
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.latent == ()


class Stored(nn.Module):
    """A stream that is kept in bfloat16, and a decision at the middle of a sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = (x + self.layer(self.norm(x))).to(torch.bfloat16).float()
        return self.norm(kept), torch.sigmoid(x) > 0.5


def test_what_a_narrow_float_or_a_border_costs_is_no_kernels_fault(tmp_path):
    torch.manual_seed(0)
    proof = onnxproof.prove(Stored().eval(), (torch.randn(2, 8),), out=tmp_path, fast=True)
    assert proof.trials is not None
    assert proof.trials.latent == ()
    assert proof.verdict == "ship"


class Stepped(nn.Module):
    """A softplus whose exporter writes more than one node: what it is before its threshold is asked has its value everywhere here."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.softplus(self.step(x)) * x


def test_a_part_of_an_operator_that_agrees_is_not_taken_for_the_operator(tmp_path):
    torch.manual_seed(0)
    proof = onnxproof.prove(Stepped().eval(), (torch.randn(2, 5, 4),), out=tmp_path)
    assert proof.verdict == "ship", proof.findings
    assert proof.trials is not None
    assert proof.trials.latent == ()


class Bearing(nn.Module):
    """An angle of which only the square of its cosine is asked: exporters give minus pi for pi, and NaN on the way."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.atan2(x[:, :2], x[:, 2:]).cos().square()


def test_a_difference_that_the_rest_swallows_is_a_note(tmp_path):
    proof = onnxproof.prove(Bearing().eval(), (torch.randn(3, 4) * 3,), out=tmp_path, fast=True)
    assert proof.trials is not None
    assert [one.swallowed for one in proof.trials.latent] == [True]
    assert proof.verdict == "ship", proof.findings


class Interval(nn.Module):
    """A quotient that is computed twice and written once."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        width, low = x * x, x + x * x * 3 // 32
        return low, width * 5 // 32 - x * x * 3 // 32


def test_what_the_module_computes_twice_is_one_value(tmp_path):
    proof = onnxproof.prove(Interval().eval(), (torch.randint(0, 50, (3, 5)),), out=tmp_path, fast=True)
    assert proof.trials is not None
    assert proof.trials.latent == ()
    assert proof.verdict == "ship", proof.findings


class Leftover(nn.Module):
    """What is left of a value less itself: every step that follows is nothing too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left = nn.functional.huber_loss(x, x, reduction="none", delta=0.3).sort(1).values
        return torch.trunc(nn.functional.interpolate(left, size=7, mode="linear", align_corners=True))


def test_values_that_are_nothing_everywhere_are_paired_with_nothing(tmp_path):
    proof = onnxproof.prove(Leftover().eval(), (torch.randn(2, 2, 6),), out=tmp_path, fast=True)
    assert proof.trials is not None
    assert proof.trials.latent == ()
    assert proof.verdict == "ship", proof.findings


class Gated(nn.Module):
    """What the product looks at is, where nothing is negative, the same numbers as what the gate gives."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.out = nn.PReLU(), nn.Linear(1, 4, bias=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        top = x.topk(1, dim=-1).values
        seen = self.out(top)
        chosen = self.gate(top)[..., 0]
        return seen, chosen * chosen.sigmoid()


def test_a_value_of_the_graph_may_stand_for_another_one_of_the_module(tmp_path):
    """A step inside the module's product agreed by chance with the graph's result, and was taken for it."""
    torch.manual_seed(0)
    proof = onnxproof.prove(Gated().eval(), (torch.randn(2, 1, 60),), out=tmp_path)
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.latent == ()


class Around(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        squares = (x @ x.mT).diagonal(dim1=-2, dim2=-1).unsqueeze(1)
        return nn.functional.pad(squares, (1, 1), mode="circular").abs() + 0.1


def test_what_is_made_of_a_value_that_was_written_in_parts_may_be_its_result(tmp_path):
    """A pad that goes round writes through views: of what it writes nothing is known, and what is never negative looks like its magnitude."""
    proof = onnxproof.prove(Around().eval(), (torch.randn(2, 4, 4),), out=tmp_path)
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.latent == ()


class Angle(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.atan2(x[:, 1:].norm(dim=-1), x[:, 0].abs())


def test_a_magnitude_has_no_zero_below_zero(tmp_path):
    """On 0 and -0 the exporter's atan2 is wrong by π; what has no sign does not get there."""
    proof = onnxproof.prove(Angle().eval(), (torch.randn(3, 4),), out=tmp_path)
    assert proof.trials is not None
    assert proof.trials.latent == ()
    assert proof.verdict == "ship"


class Centuries(nn.Module):
    def forward(self, step: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        century = torch.div(step.clamp(-(10**6), 10**6) + 719468, 36524, rounding_mode="floor")
        return torch.tanh(x) * century.float().unsqueeze(1)


def test_a_divisor_of_integers_is_tried_where_it_begins_anew(tmp_path):
    """One more or less shows at multiples alone, and these lie far beyond the example."""
    inputs = torch.tensor([0, 19000, -1]), torch.randn(3, 4)
    onnxproof.export(Centuries().eval(), inputs, out=tmp_path / "file")
    model = onnx.load(tmp_path / "file" / "model.onnx")
    for tensor in model.graph.initializer:
        value = onnx.numpy_helper.to_array(tensor)
        if value.size == 1 and value == 36524:
            tensor.CopyFrom(onnx.numpy_helper.from_array(value + value.dtype.type(1), tensor.name))
    onnx.save(model, tmp_path / "wrong.onnx")
    wrong = onnxproof.verify(
        Centuries().eval(), inputs, onnx=tmp_path / "wrong.onnx", out=tmp_path / "wrong", fast=True
    )
    assert wrong.verdict != "ship"
    right = onnxproof.verify(
        Centuries().eval(), inputs, onnx=tmp_path / "file" / "model.onnx", out=tmp_path / "right", fast=True
    )
    assert right.verdict == "ship"


def test_trials_that_fail_are_told(tmp_path, monkeypatch):
    def fail(*args: object, **kwargs: object) -> None:
        raise ValueError("nobody thought of this")

    monkeypatch.setattr("onnxproof.trials.examination.find_common", fail)
    proof = onnxproof.verify(*capped(), onnx=export(tmp_path / "file"), out=tmp_path / "out")
    [told] = [finding for finding in proof.findings if finding.code == "OX007"]
    assert "the trial ended early" in told.message


class Alike(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = nn.functional.pad(torch.bucketize(x, torch.tensor([-0.5, 0.1, 0.7])).float(), (2, 1))
        nothing = torch.relu(y) - y
        first = torch.softmax(nothing @ y.mT, -1) @ y
        second = nn.functional.scaled_dot_product_attention(first, y, first, scale=0.7)
        return nn.functional.scaled_dot_product_attention(second, second, nothing, is_causal=True), second


def test_what_comes_before_a_value_is_not_made_of_it(tmp_path):
    """Rows that are all the same are their own mean: what the graph makes of the second looks like what the module makes the first of."""
    proof = onnxproof.prove(Alike().eval(), (torch.randn(2, 4, 6, 6),), out=tmp_path)
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.latent == ()


class Begun(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positive = nn.functional.softplus(x)
        return torch.linalg.vector_norm(sum(part * part.sigmoid() for part in (positive,)), ord=float("inf"), dim=-1)


def test_what_is_added_to_nothing_is_itself(tmp_path):
    """Python's sum begins with 0, which no exporter writes; the magnitude inside the norm is no second value either."""
    proof = onnxproof.prove(Begun().eval(), (torch.randn(3, 4),), out=tmp_path)
    assert proof.verdict == "ship"
    assert proof.trials is not None
    assert proof.trials.latent == ()
