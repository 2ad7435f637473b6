"""evaluate: answers and labels that are missing, outputs to choose from, classes that are named, scores that differ unseen."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from sklearn import metrics as sk
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import evaluated
import onnxproof
from onnxproof.errors import InputError, UserError

FEATURES = evaluated.FEATURES


class Line(nn.Module):
    """One score per row: the first column."""

    def forward(self, x):
        return x[:, 0] * 2.0


class Logarithm(nn.Module):
    def forward(self, x):
        return x[:, 0].log()


class Hidden(nn.Module):
    """A feature first, then the logits."""

    def __init__(self):
        super().__init__()
        self.net = evaluated.fitted()

    def forward(self, x):
        return {"feature": x[:, :1] * 3.0, "logits": self.net(x)}


def rows(n=400, seed=3):
    x, y = evaluated.blobs(n, seed)
    return {"x": x, "labels": y}


def line():
    return Line().eval(), (torch.randn(4, FEATURES),)


def graph(nodes, result="output"):
    """A file with these nodes between x and the result."""
    ends = [helper.make_tensor_value_info("x", 1, ("batch", FEATURES)), helper.make_tensor_value_info(result, 1, None)]
    stored = [onnx.numpy_helper.from_array(np.array(v), k) for k, v in (("zero", 0), ("two", np.float32(2)))]
    made = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def codes(proof):
    return {finding.code: finding for finding in proof.findings}


def evaluate(model, data, tmp_path, **options):
    return onnxproof.evaluate(*model, data=data, out=tmp_path / "out", **options)


def test_ox516_answers_of_one_side_that_are_nan_block(tmp_path):
    nodes = [
        helper.make_node("Gather", ["x", "zero"], ["first"], axis=1),
        helper.make_node("Sqrt", ["first"], ["root"]),  # NaN where the column is negative
        helper.make_node("Mul", ["root", "root"], ["square"]),
        helper.make_node("Mul", ["square", "two"], ["output"]),
    ]
    onnx.save(graph(nodes), tmp_path / "root.onnx")
    x = evaluated.blobs(400)[0]
    data = {"x": x, "labels": 2.0 * x[:, 0] + 0.1}
    proof = evaluate(line(), data, tmp_path, onnx=tmp_path / "root.onnx")
    lost = int((x[:, 0] < 0).sum())
    assert proof.verdict == "block"
    assert codes(proof)["OX516"].evidence["candidate"] == lost
    assert proof.quality.measured == 400 - lost
    assert proof.quality.baseline["mae"] == pytest.approx(0.1, abs=1e-5), "both sides are measured on the same rows"
    positive = {"x": np.abs(x), "labels": 2.0 * np.abs(x[:, 0])}
    assert "OX516" not in codes(evaluate(line(), positive, tmp_path, onnx=tmp_path / "root.onnx"))


def test_ox516_answers_that_are_nan_on_both_sides_are_left_out_and_told(tmp_path):
    x, y = evaluated.blobs(400)
    proof = evaluate((Logarithm().eval(), (torch.rand(4, FEATURES),)), {"x": x, "labels": y == 0}, tmp_path)
    usable = x[:, 0] > 0
    assert codes(proof)["OX516"].severity == "review"
    assert proof.quality.measured == usable.sum()
    assert sum(map(sum, proof.quality.confusion.candidate)) == usable.sum()
    expected = sk.average_precision_score(y[usable] == 0, np.log(x[usable, 0]))
    assert proof.quality.candidate["pr_auc"] == pytest.approx(expected, abs=1e-6)


def test_ox517_a_softmax_that_changes_no_decision_is_told(tmp_path):
    model = evaluated.points()
    exported = onnxproof.export(*model, out=tmp_path / "made")
    graph_ = onnx.load(exported.artifact.path)
    last = graph_.graph.output[0].name
    for node in graph_.graph.node:
        node.output[:] = ["logits_inside" if name == last else name for name in node.output]
    graph_.graph.node.append(helper.make_node("Softmax", ["logits_inside"], [last], axis=-1))
    onnx.save(graph_, tmp_path / "soft.onnx")
    proof = evaluate(model, rows(), tmp_path, onnx=tmp_path / "soft.onnx")
    assert proof.quality.flip_count == 0
    assert proof.verdict == "review"
    assert codes(proof)["OX517"].evidence["examples"][0]["times_rounding"] > 1000
    right = evaluate(model, rows(), tmp_path, onnx=exported.artifact.path)
    assert "OX517" not in codes(right)
    assert right.verdict == "ship"


def test_ox517_rounding_of_an_ill_conditioned_model_is_none(tmp_path):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(64, 4000)).astype(np.float32)
    x -= x.mean(axis=1, keepdims=True)
    proof = evaluate(evaluated.sums(), {"x": x, "labels": generator.integers(0, 2, 64)}, tmp_path)
    assert proof.quality.score_difference.max_abs > 0
    assert "OX517" not in codes(proof)


def test_ox518_scores_of_different_shapes_are_named(tmp_path):
    nodes = [
        helper.make_node("Gather", ["x", "column"], ["first"], axis=1),
        helper.make_node("Mul", ["first", "two"], ["output"]),
    ]
    model = graph(nodes)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "column"))
    onnx.save(model, tmp_path / "column.onnx")
    x, y = evaluated.blobs(100)
    proof = evaluate(line(), {"x": x, "labels": y == 0}, tmp_path, onnx=tmp_path / "column.onnx")
    assert "PyTorch [100], onnxruntime [100, 1]" in codes(proof)["OX518"].message
    assert proof.verdict == "block"
    assert "OX518" not in codes(evaluate(line(), {"x": x, "labels": y == 0}, tmp_path))


@pytest.mark.parametrize(
    "kind", ["binary", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("multiclass", "multilabel"))]
)
def test_missing_labels_do_not_change_the_task(kind, tmp_path):
    data = rows()
    labels = data["labels"].astype(np.float64)
    model = evaluated.points()
    if kind == "binary":
        model, labels = evaluated.yes_or_no(), (labels == 0).astype(np.float64)
    if kind == "multilabel":
        labels = np.stack([labels != 0, labels == 1, labels > 0], 1).astype(np.float64)
    labels[:30] = np.nan
    quality = evaluate(model, {"x": data["x"], "labels": labels}, tmp_path).quality
    full = evaluate(model, {"x": data["x"][30:], "labels": labels[30:]}, tmp_path).quality
    assert (quality.task, quality.measured, quality.unlabelled) == (kind, 370, 30)
    assert quality.candidate == pytest.approx(full.candidate)
    with pytest.raises(InputError, match="no example of the data has a label"):
        evaluate(model, {"x": data["x"], "labels": np.full(400, np.nan)}, tmp_path)


def test_the_output_that_fits_the_labels_is_taken(tmp_path):
    model = Hidden().eval(), (torch.randn(4, FEATURES),)
    quality = evaluate(model, rows(), tmp_path).quality
    assert (quality.task, quality.output) == ("multiclass", "logits")
    assert quality.candidate["accuracy"] > 0.8


def test_one_score_speaks_for_the_class_that_is_called_positive(tmp_path):
    data = rows()
    texts = np.where(data["labels"] == 0, "fraud", "ok")
    given = {"x": data["x"], "labels": texts}
    right = evaluate(evaluated.yes_or_no(), given, tmp_path, positive="fraud")
    assert right.quality.candidate["accuracy"] > 0.8
    assert right.quality.positive == "fraud"
    guessed = evaluate(evaluated.yes_or_no(), given, tmp_path)
    assert "guessed from the alphabet" in codes(guessed)["OX506"].message
    spelled = evaluate(evaluated.yes_or_no(), given, tmp_path, classes="ok,fraud")
    assert spelled.quality.candidate["accuracy"] == right.quality.candidate["accuracy"]


def test_many_equal_classes_are_not_rare_and_many_missed_ones_are_counted(tmp_path):
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(20), 30)
    x = np.eye(20, dtype=np.float32)[labels] * 3 + generator.normal(size=(600, 20)).astype(np.float32)
    x[labels == 7, 8] += 4.0  # one class is taken for another
    proof = evaluate((nn.Identity(), (torch.randn(2, 20),)), {"input": x, "labels": labels}, tmp_path)
    assert proof.quality.per_class["7"].candidate["recall"] < 0.5
    assert "OX505" not in codes(proof)
    rare = np.concatenate([np.zeros(2000, np.int64), np.repeat(np.arange(1, 20), 6)])
    shown = np.zeros((len(rare), 20), np.float32)
    shown[:, 0] = 1.0
    found = [
        f
        for f in evaluate((nn.Identity(), (torch.randn(2, 20),)), {"input": shown, "labels": rare}, tmp_path).findings
        if f.code == "OX505"
    ]
    assert len(found) == 5
    assert "14 more classes" in found[-1].message


def test_macro_averages_are_those_of_scikit_learn_without_a_class_too(tmp_path):
    data = rows()
    labels = np.where(data["labels"] == 2, 1, data["labels"])
    quality = evaluate(evaluated.points(), {"x": data["x"], "labels": labels}, tmp_path).quality
    decided = evaluated.points()[0](torch.tensor(data["x"])).argmax(1).numpy()
    expected = sk.precision_recall_fscore_support(labels, decided, average="macro", zero_division=0)
    assert [quality.candidate[name] for name in ("precision", "recall", "f1")] == pytest.approx(expected[:3])


def test_labels_that_are_all_zero_have_no_relative_error(tmp_path):
    quality = evaluate(line(), {"x": rows()["x"], "labels": np.zeros(400)}, tmp_path, task="regression").quality
    assert {"mae", "rmse"} <= quality.candidate.keys()
    assert not {"relative_error", "r2"} & quality.candidate.keys()


@pytest.mark.slow
def test_objects_in_memory_are_data_too(tmp_path):
    data = rows()
    x, y = torch.tensor(data["x"]), torch.tensor(data["labels"])
    loader = DataLoader(TensorDataset(x, y), batch_size=64)
    singles = [{"x": data["x"][i], "labels": int(data["labels"][i])} for i in range(400)]
    pairs = [(data["x"][i], int(data["labels"][i])) for i in range(400)]
    expected = evaluate(evaluated.points(), data, tmp_path).quality.candidate
    for given in (loader, singles, pairs, (data["x"], data["labels"])):
        assert evaluate(evaluated.points(), given, tmp_path).quality.candidate == pytest.approx(expected)

    def broken():
        yield data["x"][:100], data["labels"][:100]
        raise OSError("disk gone")

    with pytest.raises(InputError, match="raised OSError: disk gone"):
        evaluate(evaluated.points(), broken, tmp_path)


def test_training_data_without_labels_still_show_duplicates(tmp_path):
    data = rows()
    np.save(tmp_path / "train.npy", data["x"][:200])
    proof = evaluate(evaluated.points(), data, tmp_path, train_data=str(tmp_path / "train.npy"))
    assert codes(proof)["OX601"].evidence["count"] == 200


def test_texts_with_gaps_and_a_constant_mask(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    data = rows()
    names = [None if i < 20 else f"class {label}" for i, label in enumerate(data["labels"])]
    pq.write_table(pa.table({"x": list(data["x"]), "labels": names}), tmp_path / "gaps.parquet")
    quality = evaluate(evaluated.points(), str(tmp_path / "gaps.parquet"), tmp_path).quality
    assert (quality.unlabelled, quality.classes) == (20, ("class 0", "class 1", "class 2"))

    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = evaluated.fitted()

        def forward(self, x, mask):
            return self.net(x * mask.float())

    example = (torch.randn(4, FEATURES), torch.ones(4, FEATURES, dtype=torch.int64))
    given = {**data, "mask": np.ones((400, FEATURES), np.int64)}
    proof = evaluate((Masked().eval(), example), given, tmp_path)
    assert codes(proof)["OX605"].severity == "note"
    assert proof.verdict == "ship"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "multilabel"}, "expected several of both"),
        ({"min": {"accuracy": float("nan")}}, "min: expected a number, got nan"),
        ({"preprocess": "p.py:a", "serve_preprocess": "p.py:b", "with_preprocess": True}, "give one of the two"),
    ],
)
def test_wrong_options_are_refused(options, message, tmp_path):
    with pytest.raises(UserError, match=message):
        evaluate(line(), {"x": rows()["x"], "labels": rows()["labels"] == 0}, tmp_path, **options)


def test_a_table_of_the_wrong_width_names_its_columns(tmp_path):
    pytest.importorskip("pyarrow")
    data = rows(50)
    names = [f"f{i}" for i in range(FEATURES)]
    lines = [",".join([*names, "customer", "note", "labels"])]
    lines += [
        ",".join([*map(str, x), str(i), "n", str(y)]) for i, (x, y) in enumerate(zip(*data.values(), strict=True))
    ]
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    message = codes(evaluate(evaluated.points(), str(tmp_path / "wide.csv"), tmp_path))["OX608"].message
    assert "'customer'" in message
    assert "left out are 'note'" in message


def test_a_hugging_face_data_set_names_its_classes(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import json

    data = rows(200)
    folder = tmp_path / "saved"
    folder.mkdir()
    table = pa.table({"x": list(data["x"]), "label": (data["labels"] == 0).astype(np.int64)})
    with pa.ipc.new_stream(str(folder / "data.arrow"), table.schema) as writer:
        writer.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    features = {"label": {"names": ["ok", "fraud"], "_type": "ClassLabel"}}
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    quality = evaluate(evaluated.yes_or_no(), str(folder), tmp_path, positive="fraud").quality
    assert (quality.classes, quality.positive) == (("ok", "fraud"), "fraud")
    assert quality.candidate["accuracy"] > 0.8


def test_training_data_of_another_width_are_named_as_such(tmp_path):
    np.save(tmp_path / "train.npy", rows()["x"][:, :5])
    proof = evaluate(evaluated.points(), rows(), tmp_path, train_data=str(tmp_path / "train.npy"))
    assert codes(proof)["OX608"].message.startswith("--train-data: rows of x have the shape [5]")


def test_several_labels_are_calibrated_too(tmp_path):
    data = rows()
    labels = np.stack([data["labels"] == k for k in range(3)], 1).astype(np.int64)
    labels[:, 1] |= data["labels"] == 0  # two of an example's labels may be on
    model = evaluated.points()
    quality = evaluate(model, {"x": data["x"], "labels": labels}, tmp_path).quality
    p = torch.sigmoid(model[0](torch.tensor(data["x"]))).detach().double().numpy().ravel()
    places = np.clip((p * 15).astype(int), 0, 14)
    apart = [abs(p[places == b].sum() - labels.ravel()[places == b].sum()) for b in range(15)]
    assert quality.candidate["ece"] == pytest.approx(sum(apart) / len(p), abs=1e-6)
    low, high = quality.intervals["ece"].candidate
    assert low < quality.candidate["ece"] < high
    assert sum(entry.count for entry in quality.calibration["candidate"]) == labels.size


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
def test_every_class_has_intervals_for_f1_and_areas(several, tmp_path):
    data = rows()
    labels = np.eye(3, dtype=np.int64)[data["labels"]] if several else data["labels"]
    task = "multilabel" if several else "multiclass"
    quality = evaluate(evaluated.points(), {"x": data["x"], "labels": labels}, tmp_path, task=task).quality
    for entry in quality.per_class.values():
        for metric in ("precision", "recall", "f1", "roc_auc", "pr_auc"):
            low, value, high = (entry.candidate[key] for key in (f"{metric}_low", metric, f"{metric}_high"))
            assert low - 0.01 <= value <= high + 0.01, metric
            assert low < high or value == 1.0


def test_ox613_names_the_first_field_that_differs_not_the_largest(tmp_path):
    body = "import numpy as np\ndef transform(x):\n    return x * np.array({}, np.float32)\n"
    scales = [[1.0] * FEATURES, [1.0, 1.01, 1.0, 5.0] + [1.0] * (FEATURES - 4)]
    for name, scale in zip(("train.py", "serve.py"), scales, strict=True):
        (tmp_path / name).write_text(body.format(scale))
    pipelines = {"preprocess": f"{tmp_path}/train.py:transform", "serve_preprocess": f"{tmp_path}/serve.py:transform"}
    proof = evaluate(evaluated.points(), rows(), tmp_path, **pipelines)
    assert proof.quality.preprocessing.field == 1
    assert "OX613" in codes(proof)
