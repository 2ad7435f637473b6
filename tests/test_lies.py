"""How verifiers lie: each way gets a test that it does not work here. Nothing compared is never a pass."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

import models
import onnxproof
from conftest import codes
from onnxproof.findings import decide_verdict
from onnxproof.parity.comparison import compare
from onnxproof.pipeline.collected import Collected
from onnxproof.pipeline.conduct import judge_uncompared
from onnxproof.policy.judgement import judge
from onnxproof.proof.case_result import CaseResult
from onnxproof.request.thresholds import Policy


def verdict(*pairs: tuple[np.ndarray, np.ndarray]) -> tuple[str, set[str]]:
    outputs = tuple(compare(f"out{i}", np.asarray(b), np.asarray(c)) for i, (b, c) in enumerate(pairs))
    findings = judge([], [CaseResult("case", "normal", True, "compared", outputs=outputs)], Policy())
    return decide_verdict(findings), {f.code for f in findings}


# --- values ---------------------------------------------------------------------------------------------------------


def test_int32_extremes_do_not_wrap_around():
    b, c = np.array([-(2**31)], np.int32), np.array([2**31 - 1], np.int32)
    assert compare("x", b, c).max_abs == 2**32 - 1
    assert verdict((b, c)) == ("block", {"OX207"})


def test_int64_extremes_do_not_wrap_around():
    b, c = np.array([2**62], np.int64), np.array([-(2**62)], np.int64)
    assert compare("x", b, c).max_abs == 2**63
    assert verdict((b, c)) == ("block", {"OX207"})


def test_uint8_0_against_255_is_255():
    b, c = np.array([0], np.uint8), np.array([255], np.uint8)
    assert compare("x", b, c).max_abs == 255
    assert verdict((b, c))[0] == "block"


def test_large_int64_that_float64_cannot_tell_apart_differ():
    assert verdict((np.array([2**60], np.int64), np.array([2**60 + 1], np.int64)))[0] == "block"


def test_broadcastable_shapes_are_different():
    assert verdict((np.zeros((3, 1), np.float32), np.zeros((1, 3), np.float32))) == ("block", {"OX215"})


def test_empty_tensors_of_different_shape_differ():
    assert verdict((np.zeros((0, 3), np.float32), np.zeros((3, 0), np.float32)))[0] == "block"


def test_a_changed_dtype_is_not_cast():
    assert verdict((np.zeros(3, np.float32), np.zeros(3, np.float64))) == ("block", {"OX214"})
    assert verdict((np.zeros(3, np.int64), np.zeros(3, np.int32))) == ("block", {"OX214"})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_nonfinite_value_on_one_side_blocks(bad):
    good, other = np.array([1.0, 2.0], np.float32), np.array([1.0, bad], np.float32)
    assert verdict((good, other)) == ("block", {"OX205"})
    assert verdict((other, good)) == ("block", {"OX205"})


def test_opposite_infinities_differ():
    assert verdict((np.array([np.inf, 0], np.float32), np.array([-np.inf, 0], np.float32)))[0] == "block"


def test_equal_infinities_are_equal():
    both = np.array([np.inf, 1.0], np.float32)
    assert compare("x", both, both.copy()).max_abs == 0
    assert verdict((both, both.copy()))[0] == "ship"


def test_all_nan_on_both_sides_is_not_a_pass():
    nans = np.full(3, np.nan, np.float32)
    assert verdict((nans, nans.copy())) == ("review", {"OX206"})


def test_one_bad_element_does_not_disappear_in_a_mean():
    baseline = np.zeros(1_000_000, np.float32)
    candidate = baseline.copy()
    candidate[77] = 0.5
    result = compare("x", baseline, candidate)
    assert result.worst[0].index == (77,)
    assert verdict((baseline, candidate)) == ("block", {"OX201"})


def test_a_relative_error_at_zero_does_not_flag():
    baseline, candidate = np.array([0.0, 1.0], np.float32), np.array([0.0, 1.0], np.float32)
    assert compare("x", baseline, candidate).max_rel == 0


def test_equal_empty_tensors_are_not_infinitely_far():
    result = compare("x", np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32))
    assert result.max_abs is None
    assert result.same_form


def test_strings_and_booleans_are_compared_exactly():
    assert verdict((np.array(["a", "b"]), np.array(["a", "c"])))[0] == "block"
    assert verdict((np.array([True]), np.array([False])))[0] == "block"


# --- outputs --------------------------------------------------------------------------------------------------------


def drop_output(model: onnx.ModelProto) -> None:
    del model.graph.output[1]


def add_output(model: onnx.ModelProto) -> None:
    first = model.graph.output[0].name
    model.graph.node.append(helper.make_node("Identity", [first], ["extra"]))
    model.graph.output.append(helper.make_tensor_value_info("extra", TensorProto.FLOAT, None))


def rename_value(model: onnx.ModelProto, old: str, new: str) -> None:
    for node in model.graph.node:
        node.input[:] = [new if name == old else name for name in node.input]
        node.output[:] = [new if name == old else name for name in node.output]
    for value in (*model.graph.output, *model.graph.input):
        if value.name == old:
            value.name = new


def swap_names(model: onnx.ModelProto) -> None:
    rename_value(model, "first", "tmp")
    rename_value(model, "second", "first")
    rename_value(model, "tmp", "second")
    outputs = sorted(
        (onnx.ValueInfoProto.FromString(o.SerializeToString()) for o in model.graph.output), key=lambda o: o.name
    )
    del model.graph.output[:]
    model.graph.output.extend(outputs)


def swap_order(model: onnx.ModelProto) -> None:
    outputs = [onnx.ValueInfoProto.FromString(o.SerializeToString()) for o in reversed(model.graph.output)]
    del model.graph.output[:]
    model.graph.output.extend(outputs)


def output_as_double(model: onnx.ModelProto) -> None:
    name = model.graph.output[0].name
    rename_value(model, name, "narrow")
    model.graph.node.append(helper.make_node("Cast", ["narrow"], [name], to=TensorProto.DOUBLE))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(name, TensorProto.DOUBLE, None))


def squeeze_output(model: onnx.ModelProto) -> None:
    name = model.graph.output[0].name
    rename_value(model, name, "inner")
    model.graph.node.append(helper.make_node("Transpose", ["inner"], [name], perm=[1, 0]))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (drop_output, "OX210"),
        (add_output, "OX211"),
        (lambda m: rename_value(m, "second", "renamed"), "OX212"),
        (swap_names, "OX220"),
        (swap_order, "OX213"),
        (output_as_double, "OX214"),
        (squeeze_output, "OX215"),
    ],
    ids=["missing", "extra", "renamed", "swapped", "order", "dtype", "shape"],
)
def test_outputs_that_are_not_the_same(edit, code, mutated, verify):
    proof = verify("two_outputs", mutated("two_outputs", edit))
    assert code in codes(proof, "review", "block")
    assert proof.verdict in ("review", "block")


def test_a_renamed_output_of_an_unnamed_one_is_noticed_in_our_own_file(mutated, verify):
    proof = verify("tutorial", mutated("tutorial", lambda m: rename_value(m, "output", "other")))
    assert "OX212" in codes(proof, "review")


def test_a_module_without_outputs_is_not_a_pass(tmp_path):
    proof = onnxproof.prove(*models.no_tensor(), out=tmp_path)
    assert proof.verdict == "block"
    assert proof.findings[0].code == "OX216"


def test_always_nan_is_a_review(tmp_path):
    proof = onnxproof.prove(*models.always_nan(), out=tmp_path)
    assert "OX206" in codes(proof, "review")


# --- inputs ---------------------------------------------------------------------------------------------------------


def test_inputs_under_other_names_are_paired_by_position_and_said(mutated, verify):
    def edit(model: onnx.ModelProto) -> None:
        rename_value(model, "a", "left")
        rename_value(model, "b", "right")

    promised = verify("two_inputs", mutated("two_inputs", edit))
    assert codes(promised, "review") == {"OX217"}

    def forget(model: onnx.ModelProto) -> None:
        edit(model)
        del model.metadata_props[:]

    agreeing = verify("two_inputs", mutated("two_inputs", forget))
    assert "OX217" in codes(agreeing, "note")
    assert agreeing.verdict == "ship"


def test_swapped_inputs_are_found(mutated, verify):
    def edit(model: onnx.ModelProto) -> None:
        rename_value(model, "a", "tmp")
        rename_value(model, "b", "a")
        rename_value(model, "tmp", "b")

    proof = verify("two_inputs", mutated("two_inputs", edit))
    assert proof.verdict == "block"


def test_an_input_the_module_does_not_have_blocks(mutated, verify):
    def edit(model: onnx.ModelProto) -> None:
        model.graph.input.append(helper.make_tensor_value_info("surprise", TensorProto.FLOAT, [1]))

    proof = verify("two_inputs", mutated("two_inputs", edit))
    assert "OX218" in codes(proof, "block")


def test_an_input_of_another_dtype_is_said(mutated, verify):
    def edit(model: onnx.ModelProto) -> None:
        name = model.graph.input[0].name
        rename_value(model, name, "wide")
        shape = model.graph.input[0].type.tensor_type.shape
        model.graph.input[0].CopyFrom(helper.make_tensor_value_info(name, TensorProto.DOUBLE, None))
        model.graph.input[0].type.tensor_type.shape.CopyFrom(shape)
        model.graph.node.insert(0, helper.make_node("Cast", [name], ["wide"], to=TensorProto.FLOAT))

    proof = verify("tutorial", mutated("tutorial", edit))
    assert codes(proof, "review") == {"OX219"}


# --- runs -----------------------------------------------------------------------------------------------------------


class Mutating(torch.nn.Module):
    def forward(self, x):
        x += 1
        return x * 2


def test_inputs_mutated_by_the_first_runner_do_not_feed_the_second(tmp_path):
    proof = onnxproof.prove(Mutating(), (torch.randn(2, 3),), out=tmp_path)
    assert all(c.max_abs == 0 for case in proof.cases for c in case.outputs if case.fair)
    assert "OX113" in codes(proof, "review")


def test_the_verifier_does_not_advance_the_users_buffers(tmp_path):
    module, inputs = models.stateful()
    proof = onnxproof.prove(module, inputs, out=tmp_path)
    assert "OX113" in codes(proof, "review")
    assert module.count.tolist() == [0, 0, 0]


def test_modes_are_restored(tmp_path):
    module, inputs = models.train_mode()
    module.drop.eval()
    onnxproof.prove(module, inputs, out=tmp_path)
    assert (module.training, module.fc.training, module.drop.training) == (True, True, False)


def test_nothing_accepted_by_pytorch_is_nothing_compared(exported, tmp_path):
    with pytest.raises(onnxproof.errors.InputError, match="rejects its example"):
        onnxproof.prove(*models.picky(), out=tmp_path)


def test_ox134_a_module_takes_its_own_example(tmp_path):
    module = torch.nn.Linear(4, 2).eval()
    with pytest.raises(onnxproof.errors.InputError, match=r"shapes cannot be multiplied.*OX134"):
        onnxproof.prove(module, (torch.randn(2, 5),), out=tmp_path)
    assert onnxproof.prove(module, (torch.randn(2, 4),), out=tmp_path, budget=1.0).verdict == "ship"


def test_no_case_is_an_error(tmp_path):
    with pytest.raises(onnxproof.errors.NothingToVerify, match="no case"):
        onnxproof.prove(*models.tutorial(), out=tmp_path, batch_sizes=())


def test_only_rejected_cases_are_nothing_compared():
    collected = Collected()
    assert {f.code for f in judge_uncompared(collected.proof)} == {"OX004"}
    collected.cases["a"] = CaseResult("a", "normal", True, "rejected", message="no")
    assert {f.code for f in judge_uncompared(collected.proof)} == {"OX006", "OX004"}


def test_what_is_verified_is_the_session_that_ships(exported, verify):
    proof = verify("mlp", exported("mlp"), optimization="basic", threads=1)
    assert proof.environment.optimization == "basic"
    assert proof.environment.threads == 1


def test_inputs_are_not_only_random_and_sizes_not_only_one(exported, verify):
    names = [case.name for case in verify("mlp", exported("mlp")).cases]
    assert {name.split("/")[1] for name in names} >= {
        "normal",
        "uniform",
        "zeros",
        "ones",
        "tiny",
        "large",
        "negative",
        "mixed",
    }
    assert {name.split("/")[0] for name in names} >= {f"batch={n}" for n in (1, 2, 3, 7, 32, 128)}


# --- what a user accepts, asks for and declares -----------------------------------------------------------------------


def test_accepting_a_failed_export_is_not_a_pass(tmp_path):
    proof = onnxproof.prove(*models.median(), out=tmp_path, exporter="dynamo", accept={"OX108": "known"})
    assert proof.verdict == "block"
    assert "OX004" in codes(proof, "block")


def test_an_explained_nan_does_not_hide_a_wrong_value_beside_it():
    from dataclasses import replace

    from onnxproof.proof.comparison import Noise

    comparison = compare("x", np.array([np.nan, 1.0, 2.0], np.float32), np.array([0.0, 6.0, 2.0], np.float32))
    pattern = replace(comparison.pattern, unexplained=0)
    comparison = replace(comparison, pattern=pattern, noise=Noise("float64", 1e-8, 5.0, 1e8, 1e8, 1e6))
    findings = judge([], [CaseResult("case", "normal", True, "compared", outputs=(comparison,))], Policy())
    assert {f.code for f in findings} >= {"OX201"}


def test_a_flip_far_beyond_what_rounding_reaches_is_not_explained():
    from onnxproof.parity.comparison import count_unexplained_mismatches

    baseline, sample = np.array([10_000_000]), np.array([10_000_001])
    assert count_unexplained_mismatches(baseline, np.array([10_000_001]), [sample]) == 0
    assert count_unexplained_mismatches(baseline, np.array([0]), [sample]) == 1


def test_a_truth_that_overflows_excuses_nothing():
    from onnxproof.parity.comparison import measure_unexplained

    baseline, candidate, truth = np.array([1e5, 1.0]), np.array([2e5, 1.0]), np.array([np.inf, 1.0])
    assert measure_unexplained(baseline, candidate, truth, [truth], 6e-8) > 1
    beside = np.array([3e38, -1.0]), np.array([3e38, 2.0]), np.array([np.inf, -1.0])
    assert measure_unexplained(*beside, [beside[2]], 6e-8) > 1


def test_only_unfair_cases_are_nothing_compared():
    collected = Collected()
    same = compare("x", np.ones(2, np.float32), np.ones(2, np.float32))
    collected.cases["a"] = CaseResult("a", "huge", False, "compared", outputs=(same,))
    assert {f.code for f in judge_uncompared(collected.proof)} == {"OX004"}


def test_data_that_pytorch_rejects_is_a_review(exported, verify, tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((5, 7), np.float32))
    proof = verify("tutorial", exported("tutorial"), data=str(tmp_path / "rows.npy"))
    assert "OX006" in codes(proof, "review")


def test_all_rows_of_small_data_are_run(exported, verify, tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((40, 10), np.float32))
    proof = verify("tutorial", exported("tutorial"), data=str(tmp_path / "rows.npy"))
    assert {c.name for c in proof.cases if c.profile == "data"} == {"data/rows=0-31", "data/rows=8-39"}


def test_a_tolerance_for_no_output_is_refused(exported, verify):
    with pytest.raises(onnxproof.errors.UserError, match="'logit', which is no output; outputs are 'output'"):
        verify("tutorial", exported("tutorial"), atol={"logit": 1e-6})


def test_batch_sizes_follow_the_users_name_for_the_batch(exported, verify):
    proof = verify("tutorial", exported("tutorial"), dynamic={"input": {0: "n"}}, batch_sizes=(1, 5))
    assert {c.name.split("/")[0] for c in proof.cases} == {"n=1", "n=5"}
    with pytest.raises(onnxproof.errors.InputError, match="no first dimension is dynamic"):
        onnxproof.prove(*models.tutorial(), dynamic={}, batch_sizes=(1, 64), out=exported("tutorial").parent / "static")


class Guarded(torch.nn.Module):
    def forward(self, x):
        return torch.nan_to_num(x, nan=0.0) * 2


def test_a_file_that_lost_the_nan_guard_is_not_its_judge(tmp_path):
    onnxproof.export(torch.nn.Sequential(Doubled()), (torch.randn(2, 3),), out=tmp_path)
    proof = onnxproof.verify(Guarded(), (torch.randn(2, 3),), onnx=tmp_path / "model.onnx", out=tmp_path)
    assert proof.verdict == "block"


class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * 2
