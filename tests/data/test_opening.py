"""One way in: every format gives the same rows, to parity cases and to the evaluation alike."""

from __future__ import annotations

import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from data import written
from data.written import FEATURES, FORMS, OBJECTS, ROWS, X, Y
from onnxproof.artifact.export import export
from onnxproof.cases.supply import Supply
from onnxproof.data.opening import hold, open_source
from onnxproof.errors import InputError, UserError
from onnxproof.quality.engine import Engine
from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.request import ExportOptions, SessionSettings, VerifySettings
from onnxproof.subject.assembly import make_subject


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    subject = make_subject(torch.nn.Linear(FEATURES, 4).eval(), (torch.randn(2, FEATURES),))
    return subject, export(subject, tmp_path_factory.mktemp("linear") / "model.onnx", ExportOptions(), lambda *_: None)


@pytest.fixture
def faces(exported):
    """What the two faces make of some data: the rows that parity cases draw from, and all batches of an evaluation."""

    def read(text, **options):
        supply = Supply(*exported, VerifySettings(data=text, **options))
        engine = Engine(*exported, SessionSettings(), EvaluateSettings(data=text, **options))
        return supply, engine.open(open_source(text))

    return read


def inputs(rows, size=50):
    return np.concatenate([batch.inputs["input"] for batch in rows.batches(0, size)])


@pytest.mark.parametrize("form", [*FORMS, *OBJECTS], ids=lambda form: form.__name__)
def test_both_faces_read_the_same(form, faces, tmp_path):
    supply, rows = faces(str(form(tmp_path)))
    assert np.array_equal(supply.domains[0].sample, X)
    assert np.array_equal(inputs(rows), X)
    assert np.array_equal(rows.read_labels(), Y)
    cases = [case for case in supply.plan() if case.profile == "data"]
    assert cases[0].name == "data/stratified=0-31"
    first = supply.make_inputs(cases[0])["input"]
    assert np.array_equal(first, X[:32])  # the labels come in turn already


@pytest.mark.parametrize("form", [*FORMS, *OBJECTS], ids=lambda form: form.__name__)
def test_any_window_of_every_format(form, tmp_path):
    source = open_source(str(form(tmp_path)))
    labels = "y" if "y" in source.fields else "labels"
    chosen = source.select([*(name for name in source.fields if source.fields[name] != "other"), labels])
    for start, stop, size in ((0, None, 64), (100, 190, 32), (250, 400, 16), (400, 500, 8)):
        tables = list(chosen.read(start, stop, size))
        assert all(len(table[labels]) == size for table in tables[:-1])
        assert [y for table in tables for y in table[labels]] == Y[start:stop].tolist()
    assert source.sequential or source.rows == ROWS
    assert source.count() == ROWS
    places = np.array([3, 4, 99, 100, 256])
    assert chosen.take(places)[labels].tolist() == Y[places].tolist()


def test_objects_in_memory_have_a_name_while_they_are_held(faces):
    with hold({"X": X, "y": Y}) as name:
        assert np.array_equal(inputs(faces(name)[1]), X)
    with pytest.raises(InputError, match="is read in this process only"):
        open_source(name)
    with hold("d.npz") as name:
        assert name == "d.npz"


def test_names_are_those_of_the_file(tmp_path):
    for form in (written.csv, written.parquet):
        assert tuple(open_source(str(form(tmp_path))).fields) == ("id", *written.NAMES, "note", "y")


def test_labels_in_a_file_of_their_own(faces, tmp_path):
    np.savez(tmp_path / "d.npz", X=X)
    torch.save({"X": torch.tensor(X), "y": torch.tensor(Y)}, tmp_path / "rows.pt")
    (tmp_path / "rows.csv").write_text("a,b,c,d\n" + "\n".join(",".join(map(str, row)) for row in X) + "\n")
    np.save(tmp_path / "y.npy", Y)
    (tmp_path / "y.csv").write_text("kind\n" + "\n".join(f"class {y}" for y in Y) + "\n")
    for data in ("d.npz", "rows.csv", "rows.pt"):
        for file, first in (("y.npy", 0), ("y.csv", "class 0")):
            supply, rows = faces(str(tmp_path / data), labels=str(tmp_path / file))
            assert rows.read_labels()[0] == first
            assert supply.plan()[0].name == "data/stratified=0-31"
    np.save(tmp_path / "few.npy", Y[:5])
    for data in ("d.npz", "rows.csv"):
        with pytest.raises(InputError, match=r"few\.npy has 5 rows and the data have 257"):
            faces(str(tmp_path / data), labels=str(tmp_path / "few.npy"))


def test_a_field_that_is_named_is_no_input(faces, tmp_path):
    columns = {name: X[:, i] for i, name in enumerate("abcd")}
    pq.write_table(pa.table({"customer": np.arange(ROWS), **columns, "kind": Y}), tmp_path / "d.parquet")
    supply, rows = faces(str(tmp_path / "d.parquet"), labels="kind", ids="customer")
    assert np.array_equal(inputs(rows), X)
    assert np.array_equal(supply.domains[0].sample, X)
    for options, message in (
        ({"labels": "nope"}, "--labels: the data have no field 'nope'"),
        ({"ids": "who"}, "--ids"),
    ):
        with pytest.raises(InputError, match=message):
            faces(str(tmp_path / "d.parquet"), **options)


# --- what cannot be read ----------------------------------------------------------------------------------------------


def save(folder, name, text):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


def cut(file, share=0.5):
    """The first part of a file, as an interrupted copy leaves it."""
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * share)])
    return file


def npy(folder, values, name="x.npy"):
    np.save(folder / name, values, allow_pickle=True)
    return folder / name


def savez(folder, **arrays):
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


def parquet_of(folder, **columns):
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


def pickled(folder):
    torch.save({"X": torch.nn.Linear(2, 2)}, folder / "m.pt")
    return folder / "m.pt"


def twice(folder):
    with zipfile.ZipFile(folder / "t.npz", "w") as archive:
        archive.write(npy(folder, X), "X.npy")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.write(npy(folder, X), "X.npy")
    return folder / "t.npz"


def doubled(folder):
    pq.write_table(pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], ["a", "a"]), folder / "t.parquet")
    return folder / "t.parquet"


def state(folder):
    return save(folder, "state.json", "{}").parent


WRONG = {
    "no file": (lambda f: f / "nowhere.npz", "--data: there is no file .*nowhere.npz"),
    "a folder": (lambda f: f, "expected a file, or a folder that a Hugging Face data set"),
    "a broken folder": (state, "cannot be read: KeyError: '_data_files'"),
    "splits": (lambda f: save(f, "dataset_dict.json", '{"splits": ["a", "b"]}').parent, "has the splits 'a', 'b'"),
    "unknown": (lambda f: save(f, "x.xyz", ""), "'.xyz' is not known; expected '.npz', .* or file.py:name"),
    "cut npz": (lambda f: cut(written.npz(f)), "cannot be read: BadZipFile"),
    "cut npy": (lambda f: cut(npy(f, X)), "ends before its last row"),
    "cut pt": (lambda f: cut(written.pt(f)), "cannot be read: RuntimeError"),
    "cut parquet": (lambda f: cut(written.parquet(f)), "cannot be read: ArrowInvalid"),
    "cut safetensors": (lambda f: cut(written.safetensors(f)), "cannot be read: SafetensorError"),
    "cut arrow": (
        lambda f: cut(written.hugging_face(f) / "test" / "data-00000-of-00002.arrow").parent,
        "cannot be read",
    ),
    "pickled": (pickled, "holds other Python objects, which are never unpickled"),
    "objects": (lambda f: savez(f, X=np.array([{}, {}])), "holds Python objects, which are never unpickled"),
    "an object": (lambda f: savez(f, X=X, meta=np.array({"a": 1})), "never unpickled"),
    "single": (lambda f: savez(f, input=np.float32(3), X=X), "'input' is a single value; expected an array of rows"),
    "only single": (lambda f: savez(f, X=np.float32(3)), "has no array for the input 'input'"),
    "texts": (lambda f: savez(f, X=np.array(["a", "b"])), "holds <U1 and the model takes float32"),
    "uneven": (lambda f: savez(f, X=X, y=Y[:5]), "different numbers of rows: {'X': 257, 'y': 5}"),
    "no rows": (lambda f: savez(f, X=X[:0]), "has no rows"),
    "no rows in parquet": (lambda f: parquet_of(f, a=pa.array([], pa.float32())), "has no rows"),
    "only a header": (lambda f: save(f, "h.csv", "a,b\n"), "has no rows"),
    "an empty csv": (lambda f: save(f, "e.csv", ""), "cannot be read: ArrowInvalid: Empty CSV file"),
    "no utf-8": (lambda f: save(f, "l.csv", "a,größe\n1,2\n".encode("latin-1")), "cannot be read"),
    "a short line": (lambda f: save(f, "s.csv", "a,b\n1,2\n1\n"), "Expected 2 columns, got 1"),
    "a late text": (
        lambda f: save(f, "t.csv", "a,b,c,d,y\n" + "1,2,3,4,3\n" * 200_000 + "x,2,3,4,3\n"),
        "invalid value 'x'",
    ),
    "twice in csv": (lambda f: save(f, "d.csv", "a,b,a\n1,2,3\n"), "has several fields of the name 'a'"),
    "twice in parquet": (doubled, "has several fields of the name 'a'"),
    "twice in npz": (twice, "has several fields of the name 'X.npy'"),
    "ragged": (
        lambda f: parquet_of(f, X=[[1.0, 2.0], [3.0]]),
        r"the lists in column 'X' have different lengths: \['1', '2'\]",
    ),
    "a gap": (lambda f: parquet_of(f, X=[[1.0, 2.0], None]), "have different lengths"),
    "structs": (lambda f: parquet_of(f, X=[{"a": 1}]), "column 'X' holds struct<a: int64>; expected numbers"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_cannot_be_read_is_told_by_both_faces(kind, exported, tmp_path):
    make, message = WRONG[kind]
    text = str(make(tmp_path))

    def parity():
        Supply(*exported, VerifySettings(data=text))

    def evaluation():
        engine = Engine(*exported, SessionSettings(), EvaluateSettings(data=text))
        rows = engine.open(open_source(text))
        engine.plan(rows, rows.all_labels())
        list(rows.batches(0, 4096))

    for face in (parity, evaluation):
        with pytest.raises(InputError, match=message) as told:
            face()
        assert "--data" in str(told.value)


@pytest.mark.parametrize(("form", "package"), [(written.csv, "pyarrow"), (written.safetensors, "safetensors")])
def test_a_missing_extra_is_named(form, package, tmp_path, monkeypatch):
    file = str(form(tmp_path))
    for name in list(sys.modules):
        if name.partition(".")[0] == package or name == "onnxproof.data.tables":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"needs the package {package}: pip install 'onnxproof\[data\]'"):
        open_source(file)
