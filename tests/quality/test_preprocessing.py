"""Two pipelines on the same records: how steps are applied, and where they part."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

from onnxproof.candidates import serve
from onnxproof.errors import InputError
from onnxproof.quality.preprocessing import Preprocessing, Step, apply_step, find_difference, load_steps

ROWS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


def step(call, batched=None):
    return Step("step", call, batched)


def test_a_step_gets_its_records_as_it_wants_them():
    assert (apply_step(step(lambda x: x * 2), ROWS) == ROWS * 2).all()
    centred = apply_step(step(lambda x: x - x.mean()), ROWS)  # at once it would take the mean of all rows
    assert np.allclose(centred, ROWS - ROWS.mean(axis=1, keepdims=True))
    lengths = apply_step(step(lambda record: {"n": len(record["text"])}), {"text": np.array(["a", "bcd"])})
    assert lengths["n"].tolist() == [1, 3]
    assert apply_step(step(torch.relu, True), torch.tensor(ROWS)).min() == 0


TEXTS = np.array(["ab", "abcd", "b"])


def tokenize(texts):
    """Many texts at once, as tokenizers take them: one would be many of one letter."""
    return {"ids": np.array([[ord(c) for c in text.ljust(4)] for text in texts])}


def test_a_tokenizer_gets_many_texts_and_a_function_of_one_gets_one():
    made = apply_step(step(tokenize), TEXTS)["ids"]
    assert made.shape == (3, 4)
    assert (made == tokenize(TEXTS)["ids"]).all()
    assert apply_step(step(lambda text: np.array([len(text)])), TEXTS).tolist() == [[2], [4], [1]]


def test_records_of_several_shapes_are_told():
    with pytest.raises(InputError, match=r"made the shapes \[2\] and \[4\] of two records: expected one for all"):
        apply_step(step(lambda text: np.array([ord(c) for c in str(text)])), TEXTS)


def test_a_step_that_fails_or_loses_rows_is_named():
    with pytest.raises(InputError, match="step step raised ZeroDivisionError"):
        apply_step(step(lambda x: 1 / 0), ROWS)
    with pytest.raises(InputError, match="of 6 records: expected one row for each"):
        apply_step(step(lambda batch: batch[:2], True), ROWS)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (ROWS[:, ::-1], "opposite order (RGB against BGR)"),
        (ROWS * 255, "255 times training"),
        (ROWS + 0.5, "training + 0.5"),
        (ROWS * 3, "training × 3"),
        (ROWS**2, None),
    ],
)
def test_a_simple_change_is_recognised(other, told):
    found = find_difference(ROWS, other)
    assert found["rows_differing"] == 6
    assert found["hint"] is None if told is None else told in found["hint"]


def test_rounding_is_no_difference_and_shapes_and_fields_are():
    assert find_difference(ROWS, ROWS * (1 + 1e-7)) is None
    assert find_difference({"a": ROWS}, {"a": ROWS, "b": ROWS})["what"] == "fields ['a'] against ['a', 'b']"
    images = np.zeros((2, 5, 4, 3))
    assert "channels last (NHWC)" in find_difference(images, images.transpose(0, 3, 1, 2))["hint"]
    worse = ROWS.copy()
    worse[4, 1] += 1
    found = find_difference({"a": ROWS, "b": ROWS}, {"a": ROWS, "b": worse})
    assert (found["field"], found["first_row"], found["rows_differing"]) == ("b[1]", 4, 1)
    assert find_difference(np.array(["x", "y"]), np.array(["x", "z"]))["rows_differing"] == 1


PIPELINES = """
def double(batch):
    return batch * 2

def shift(batch):
    return batch + 1

def both(batch):
    return batch * 2 + 1

training, merged, other = [double, shift], [both], [shift, double]
"""


def test_pipelines_part_at_the_first_step_or_at_the_end(tmp_path):
    (tmp_path / "steps.py").write_text(PIPELINES)

    def compare(a, b):
        return Preprocessing(*(f"{tmp_path / 'steps.py'}:{name}" for name in (a, b))).compare({"X": ROWS})

    assert compare("training", "merged").same
    parted = compare("training", "other")
    assert (parted.same, parted.step, parted.names) == (False, 0, {"training": "double", "serving": "shift"})
    assert compare("training", "double").names == {"training": "shift", "serving": "double"}
    with pytest.raises(InputError, match="needs --preprocess too"):
        Preprocessing(None, "steps.py:both")


WORDS = ["ab", "abcd", "b"]


def save_tokenizer(path, rows, domain="ai.onnx.ml"):
    """A file that looks up whole texts: `rows` at once, each a row of one id."""
    lookup = onnx.helper.make_node(
        "LabelEncoder", ["text"], ["id"], domain=domain, keys_strings=WORDS, values_int64s=[5, 6, 7], default_int64=0
    )
    axis = onnx.numpy_helper.from_array(np.array([1]), "axis")
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [lookup, onnx.helper.make_node("Unsqueeze", ["id", "axis"], ["ids"])],
            "tokenizer",
            [onnx.helper.make_tensor_value_info("text", onnx.TensorProto.STRING, [rows])],
            [onnx.helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [rows, 1])],
            [axis],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(domain, 2)],
        ir_version=8,
    )
    onnx.save(model, path)
    return str(path)


@pytest.mark.parametrize("rows", ["n", 1], ids=["many at once", "one by one"])
def test_a_file_prepares_texts_and_is_compared_with_a_function(rows, tmp_path):
    file = save_tokenizer(tmp_path / "tokenizer.onnx", rows)
    (only,), _ = load_steps(file, "--preprocess")
    assert only.name == "tokenizer.onnx"
    assert apply_step(only, TEXTS).tolist() == [[5], [6], [7]]
    assert apply_step(only, {"text": TEXTS}).tolist() == [[5], [6], [7]]
    for offset, same in ((5, True), (4, False)):
        script = tmp_path / f"train{offset}.py"
        script.write_text(f"def look(text):\n    return [{WORDS}.index(text) + {offset}]\n")
        facts = Preprocessing(f"{script}:look", file).compare({"text": TEXTS})
        assert facts.same is same


def test_a_file_of_extensions_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(serve.util, "find_spec", lambda name: None)
    file = save_tokenizer(tmp_path / "tokenizer.onnx", "n", domain=serve.EXTENSIONS)
    told = r"--serve-preprocess .*: the graph uses .*ai.onnx.contrib:LabelEncoder, which comes with `pip install onnxruntime-extensions`"
    with pytest.raises(InputError, match=told):
        load_steps(file, "--serve-preprocess")
