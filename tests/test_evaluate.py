"""`onnxproof evaluate` from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import evaluated
import onnxproof
from conftest import codes
from onnxproof.errors import UserError
from onnxproof.proof.schema import read_schema

HERE = Path(__file__).parent
EXAMPLE = HERE.parent / "examples" / "fraud.py"


def target(name: str) -> str:
    return f"{HERE / 'evaluated.py'}:{name}"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Test and training data, and the exported model."""
    folder = tmp_path_factory.mktemp("points")
    x, y = evaluated.blobs()
    np.savez(folder / "test.npz", x=x, labels=y)
    train, answers = evaluated.blobs(3000, seed=0)
    np.savez(folder / "train.npz", x=train, labels=answers)
    proof = onnxproof.export(target("points"), out=folder)
    assert proof.artifact is not None
    return folder


def evaluate(files, out, **options):
    options = {"data": str(files / "test.npz"), "onnx": files / "model.onnx", **options}
    return onnxproof.evaluate(target("points"), out=out, **options)


def changed(path: Path, out: Path, change) -> Path:
    """A copy of the artifact with its first matrix changed."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.ndim == 2:
            tensor.CopyFrom(numpy_helper.from_array(change(array.copy()), tensor.name))
            break
    onnx.save(model, out / "changed.onnx")
    return out / "changed.onnx"


# --- the command line -------------------------------------------------------------------------------------------------


def test_a_good_export_ships_with_its_numbers(cli, files, tmp_path):
    result = cli("evaluate", target("points"), "--data", files / "test.npz", "--json", "p.json")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.startswith("SHIP")
    assert "zero flips in 1,500 examples bound the rate at 0.20%" in result.stdout
    assert len(result.stdout.splitlines()) <= 30
    proof = json.loads((tmp_path / "p.json").read_text())
    jsonschema.validate(proof, read_schema())
    quality = proof["quality"]
    assert quality["task"] == "multiclass"
    assert quality["n"] == 1500
    assert quality["flips"] == []
    assert quality["flip_rate"]["value"] == 0.0
    assert quality["baseline"]["accuracy"] == quality["candidate"]["accuracy"]
    assert sum(map(sum, quality["confusion"]["candidate"])) == 1500
    assert proof["cases"] == []


@pytest.mark.slow
def test_the_fraud_example_blocks_for_recall_whatever_the_parity(cli, tmp_path):
    arguments = ["evaluate", f"{EXAMPLE}:model", "--data", f"{EXAMPLE}:test", "--classes", "ok,fraud"]
    result = cli(*arguments)
    assert result.returncode == 1, result.stdout + result.stderr
    assert result.stdout.startswith("BLOCK")
    assert "OX505" in result.stdout
    table = result.stdout.index("PyTorch  onnxruntime")
    assert result.stdout.index("recall ", table) < result.stdout.index("accuracy ", table), "recall leads"
    tuned = cli(
        *arguments, "--goal", "recall>=0.8", "--cost", "fn=100,fp=1", "--min", "recall[fraud]=0.01", "--json", "p.json"
    )
    assert tuned.returncode == 0, tuned.stdout + tuned.stderr
    quality = json.loads((tmp_path / "p.json").read_text())["quality"]
    assert quality["candidate"]["accuracy"] > 0.98
    recall, cost = quality["thresholds"]["goals"]
    assert recall["candidate"]["recall"] >= 0.8
    assert cost["candidate"]["cost"] < 0.99  # cheaper than to call nothing fraud, which costs 100 × 1 %
    assert abs(recall["moved"]) < 1e-4
    again = cli("report", "p.json", "--min", "recall=0.9")
    assert again.returncode == 1
    assert "OX504" in again.stdout
    assert cli("report", "p.json", "--min", "beauty=1").returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nowhere.npz"], "there is no file nowhere.npz"),
        (["--data", "bare.npz"], "has no labels"),
        (["--data", "{test}", "--labels", "nope"], "no field 'nope'"),
        (["--data", "{test}", "--task", "magic"], "expected one of binary"),
        (["--data", "{test}", "--output", "nope"], "no output 'nope'"),
        (["--data", "{test}", "--goal", "recall"], "--goal"),
        (["--data", "{test}", "--min", "recall"], "--min"),
        (["--data", "{test}", "--min", "beauty=1"], "no such metric"),
        (["--data", "{test}", "--metric", "{module}:fails"], "raised ValueError: I do not like them"),
        (["--data", "{test}", "--serve-preprocess", "{module}:serving"], "needs --preprocess"),
        (["--data", "{test}", "--with-preprocess"], "--preprocess"),
        (["--data", "{test}", "--threshold", "0.3"], "--threshold needs binary"),
    ],
)
def test_wrong_usage_exits_2(arguments, message, cli, files, tmp_path):
    np.savez(tmp_path / "bare.npz", x=np.zeros((5, evaluated.FEATURES), np.float32))
    names = {"test": files / "test.npz", "module": HERE / "evaluated.py"}
    filled = [str(a).format(**names) for a in arguments]
    result = cli("evaluate", target("points"), "--onnx", files / "model.onnx", "--in-process", *filled)
    assert result.returncode == 2, result.stdout
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_prove_with_labels_evaluates_too(cli, files, tmp_path):
    arguments = ["prove", target("points"), "--onnx", files / "model.onnx", "--batch-sizes", "2", "--json", "p.json"]
    both = cli(*arguments, "--data", files / "test.npz", "--min", "accuracy=0.5")
    assert both.returncode == 0, both.stdout + both.stderr
    assert len(both.stdout.splitlines()) <= 34
    proof = json.loads((tmp_path / "p.json").read_text())
    assert proof["cases"]
    assert proof["quality"]["n"] == 1500
    alone = cli(*arguments, "--data", files / "test.npz", "--no-evaluate")
    assert alone.returncode == 0
    assert json.loads((tmp_path / "p.json").read_text())["quality"] is None


# --- flips ------------------------------------------------------------------------------------------------------------


def test_ox502_decisions_that_rounding_does_not_explain(files, tmp_path):
    def move(weight):
        weight[0] *= 1.3
        return weight

    proof = evaluate(files, tmp_path, onnx=changed(files / "model.onnx", tmp_path, move))
    assert "OX502" in codes(proof, "block")
    flips = proof.quality.flips
    assert len(flips) == proof.quality.flip_count > 0
    assert not any(flip.explained for flip in flips)
    x, _ = evaluated.blobs()
    worst = flips[0]
    module, _ = evaluated.points()
    import torch

    scores = module(torch.tensor(x[worst.id][None])).detach().numpy()[0]
    assert str(int(scores.argmax())) == worst.baseline
    assert worst.margin == pytest.approx(scores.max() - scores[int(worst.candidate)], rel=1e-4)


def test_ox503_decisions_within_rounding_are_noise(tmp_path):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(400, 4000)).astype(np.float32)
    for _ in range(3):
        x[:, -1] -= x.astype(np.float64).sum(axis=1).astype(np.float32)  # the exact sum is next to nothing
    np.savez(tmp_path / "d.npz", x=x, labels=np.arange(400) % 2)
    proof = onnxproof.evaluate(target("sums"), data=str(tmp_path / "d.npz"), out=tmp_path)
    assert proof.quality.flip_count > 0, "two orders of adding give the same signs here"
    assert all(flip.explained for flip in proof.quality.flips)
    assert "OX503" in codes(proof, "note")
    assert "OX502" not in codes(proof)


def test_ox501_rows_that_onnxruntime_alone_refuses(tmp_path):
    fixed = onnxproof.export(target("sums"), out=tmp_path, dynamic={"x": {0: "batch"}})
    assert fixed.artifact is not None
    np.savez(tmp_path / "d.npz", x=np.zeros((8, 4000), np.float32), labels=np.arange(8) % 2)
    model = onnx.load(tmp_path / "model.onnx")
    model.graph.node[0].op_type = "ReduceLogSum"  # another graph, which onnxruntime still runs
    onnx.save(model, tmp_path / "other.onnx")
    ran = onnxproof.evaluate(target("sums"), data=str(tmp_path / "d.npz"), onnx=tmp_path / "other.onnx", out=tmp_path)
    assert "OX501" not in codes(ran)
    check = onnx.helper.make_node("Reshape", ["x", "wrong"], ["x2"])
    model.graph.initializer.append(numpy_helper.from_array(np.array([3, -1, 7], np.int64), "wrong"))
    model.graph.node[0].input[0] = "x2"
    model.graph.node.insert(0, check)
    onnx.save(model, tmp_path / "refuses.onnx")
    proof = onnxproof.evaluate(
        target("sums"), data=str(tmp_path / "d.npz"), onnx=tmp_path / "refuses.onnx", out=tmp_path
    )
    assert "OX501" in codes(proof, "block")


# --- data in other forms ----------------------------------------------------------------------------------------------


def test_tables_with_text_labels_and_ids(files, tmp_path):
    x, y = evaluated.blobs(300)
    names = np.array(["ant", "bee", "cow"])[y]
    head = ",".join(["id", *(f"f{i}" for i in range(x.shape[1])), "kind"])
    rows = [f"e{i}," + ",".join(map(str, x[i])) + f",{names[i]}" for i in range(300)]
    (tmp_path / "d.csv").write_text("\n".join([head, *rows]) + "\n")

    def move(weight):
        weight[0] *= 1.3
        return weight

    options = {"data": str(tmp_path / "d.csv"), "labels": "kind", "onnx": changed(files / "model.onnx", tmp_path, move)}
    proof = evaluate(files, tmp_path, **options, min={"recall[cow]": 0.999})
    assert proof.quality.classes == ("ant", "bee", "cow")
    assert all(str(flip.id).startswith("e") for flip in proof.quality.flips)
    assert "OX504" in codes(proof, "block")


def test_regression_and_a_metric_of_the_users_own(files, tmp_path):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(300, 3)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x, y=generator.normal(size=300))
    proof = onnxproof.evaluate(target("numbers"), data=str(tmp_path / "d.npz"), out=tmp_path, max={"mae": 100})
    assert proof.quality.task == "regression"
    assert proof.quality.flip_rate is None
    assert set(proof.quality.candidate) == {"mae", "rmse", "r2", "relative_error"}
    assert proof.verdict == "ship", proof.findings
    own = evaluate(files, tmp_path, metric=target("share_right"))
    assert own.quality.candidate["share_right"] == own.quality.candidate["accuracy"]
    low, high = own.quality.intervals["share_right"].candidate
    assert low < own.quality.candidate["share_right"] < high


# --- many rows --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    x, y = evaluated.blobs(140_000, seed=5)
    np.savez(folder / "many.npz", x=x, labels=y)
    return folder / "many.npz"


@pytest.mark.slow
def test_processes_give_the_same_answer_and_runs_resume(files, many, tmp_path):
    def move(weight):
        weight[0] *= 1.01
        return weight

    options = {"data": str(many), "onnx": changed(files / "model.onnx", tmp_path, move), "batch_size": 1000}
    alone = evaluate(files, tmp_path / "a", workers=1, **options)
    shared = evaluate(files, tmp_path / "b", workers=2, **options)
    assert alone.quality.flip_count > 0
    assert (alone.quality.where, shared.quality.where) == ("local", "processes")
    for name in ("n", "confusion", "flips", "flip_count", "candidate", "intervals", "tests"):
        assert getattr(alone.quality, name) == getattr(shared.quality, name), name
    shards = sorted((tmp_path / "b" / "evaluate").glob("shard-*.npz"))
    assert len(shards) == 3
    shards[1].unlink()
    times = {shard: shard.stat().st_mtime_ns for shard in shards if shard.exists()}
    resumed = evaluate(files, tmp_path / "b", workers=1, goal=(), **options)
    assert resumed.quality.confusion == alone.quality.confusion
    assert shards[0].stat().st_mtime_ns == times[shards[0]], "a finished shard is not run again"
    assert shards[1].exists()
    other = evaluate(files, tmp_path / "b", workers=1, **{**options, "onnx": files / "model.onnx"})
    assert other.quality.flip_count == 0
    assert shards[0].stat().st_mtime_ns != times[shards[0]], "another model, other shards"


@pytest.mark.slow
def test_ox514_a_worker_that_dies_costs_its_shard_only(cli, tmp_path):
    x, y = evaluated.blobs(140_000, seed=6)
    x[70_000, 0] = 1e7  # in the second shard
    np.savez(tmp_path / "d.npz", x=x, labels=y)
    arguments = [
        "evaluate",
        target("mortal"),
        "--data",
        "d.npz",
        "--workers",
        "2",
        "--batch-size",
        "1000",
        "--json",
        "p.json",
    ]
    once = cli(*arguments, "--out", "a", MORTAL_MARKER=str(tmp_path / "marker"))
    quality = json.loads((tmp_path / "p.json").read_text())["quality"]
    assert (tmp_path / "marker").exists(), "nobody died"
    assert quality["n"] == 140_000, once.stdout
    assert "OX514" not in once.stdout
    always = cli(*arguments, "--out", "b")
    proof = json.loads((tmp_path / "p.json").read_text())
    assert always.returncode == 1
    assert proof["quality"]["n"] == 140_000 - 65_000
    assert "OX514" in {finding["code"] for finding in proof["findings"]}


# --- preprocessing ----------------------------------------------------------------------------------------------------


def test_ox613_the_first_step_and_field_that_differ(files, tmp_path):
    proof = evaluate(files, tmp_path, preprocess=target("training"), serve_preprocess=target("serving"))
    finding = next(f for f in proof.findings if f.code == "OX613")
    assert finding.severity == "block"
    p = proof.quality.preprocessing
    assert (p.step, p.field) == (0, 3)
    assert p.names == {"training": "centre", "serving": "shifted"}
    assert p.max_abs == pytest.approx(4.0, rel=1e-4)
    assert p.flips > 0
    alike = evaluate(files, tmp_path, preprocess=target("training"), serve_preprocess=target("same"))
    assert "OX613" not in codes(alike)
    assert alike.quality.preprocessing.flips == 0


def test_preprocessing_is_exported_into_the_same_file(files, tmp_path):
    options = {"onnx": None, "preprocess": target("halves"), "min": {"accuracy": 0.3}}
    outside = evaluate(files, tmp_path / "a", **options)
    inside = evaluate(files, tmp_path / "b", with_preprocess=True, **options)
    assert inside.artifact.inputs[0].name == "raw"
    assert inside.quality.confusion == outside.quality.confusion
    assert inside.verdict == "ship"


def test_gates_without_data_are_refused(files, tmp_path):
    with pytest.raises(UserError, match="needs an evaluation"):
        onnxproof.prove(target("points"), onnx=files / "model.onnx", min={"recall": 0.5}, batch_sizes=[1], out=tmp_path)


def test_ox515_labels_that_fit_nothing_do_not_stop_prove(files, tmp_path):
    x, y = evaluated.blobs(40)
    options = {"onnx": files / "model.onnx", "batch_sizes": [1], "out": tmp_path}
    np.savez(tmp_path / "odd.npz", x=x, labels=y + 100)
    odd = onnxproof.prove(target("points"), data=str(tmp_path / "odd.npz"), **options)
    assert "OX515" not in codes(odd), "three values for three columns are understood"
    np.savez(tmp_path / "odd.npz", x=x, labels=np.arange(40))
    odd = onnxproof.prove(target("points"), data=str(tmp_path / "odd.npz"), **options)
    assert "OX515" in codes(odd, "note")
    assert odd.quality is None
    assert odd.compared
    silent = onnxproof.prove(target("points"), data=str(tmp_path / "odd.npz"), evaluate=False, **options)
    assert "OX515" not in codes(silent)


def test_an_artifact_with_a_fixed_batch(tmp_path):
    x, y = evaluated.blobs(10)
    np.savez(tmp_path / "d.npz", x=x, labels=y)
    fixed = onnxproof.evaluate(target("points"), data=str(tmp_path / "d.npz"), dynamic={}, out=tmp_path / "a")
    free = onnxproof.evaluate(target("points"), data=str(tmp_path / "d.npz"), out=tmp_path / "b")
    assert fixed.artifact.inputs[0].shape[0] == 4
    assert fixed.quality.n == 10
    assert fixed.quality.confusion == free.quality.confusion
