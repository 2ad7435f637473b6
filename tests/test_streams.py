"""Data sets as streams: every format gives the same rows, in any window."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onnxproof.errors import InputError
from onnxproof.quality.batches import PROBED, prefetch, read_ahead, rechunk, window
from onnxproof.quality.sources import open_source

ROWS = 257
X = np.random.default_rng(0).normal(size=(ROWS, 3)).astype(np.float32)
Y = np.arange(ROWS) % 4


def write(folder, kind):
    if kind == "npz":
        np.savez(folder / "d.npz", X=X, y=Y)
    elif kind == "compressed":
        np.savez_compressed(folder / "d.npz", X=X, y=Y)
    elif kind == "parquet":
        table = pa.table({"X": pa.FixedSizeListArray.from_arrays(X.ravel(), 3), "y": Y})
        pq.write_table(table, folder / "d.parquet", row_group_size=50)
        return str(folder / "d.parquet")
    elif kind == "hugging face":
        return hugging_face(folder)
    elif kind in ("loader", "dataset", "generator", "pair"):
        return script(folder, kind)
    return str(folder / "d.npz")


def hugging_face(folder):
    """What `save_to_disk` of the library datasets writes: a folder per split, arrow streams beside state.json."""
    split = folder / "set" / "test"
    split.mkdir(parents=True)
    names = []
    for i, (a, b) in enumerate(((0, 100), (100, ROWS))):
        names.append(f"data-{i:05d}-of-00002.arrow")
        batch = pa.record_batch({"X": pa.array(X[a:b].tolist(), pa.list_(pa.float32())), "y": Y[a:b]})
        with pa.OSFile(str(split / names[-1]), "wb") as stream, pa.ipc.new_stream(stream, batch.schema) as writer:
            for start in range(0, b - a, 40):
                writer.write_batch(batch.slice(start, 40))
    (split / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "set" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    return str(folder / "set")


def script(folder, kind):
    np.savez(folder / "d.npz", X=X, y=Y)
    makers = {
        "pair": "def name():\n    return X, Y\n",
        "generator": "def name():\n    for i in range(0, len(X), 60):\n        yield {'X': X[i:i+60], 'y': Y[i:i+60]}\n",
        "loader": "name = DataLoader(TensorDataset(torch.tensor(X), torch.tensor(Y)), batch_size=31)\n",
        "dataset": "name = TensorDataset(torch.tensor(X), torch.tensor(Y))\n",
    }
    head = (
        "import numpy as np, torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        f"data = np.load({str(folder / 'd.npz')!r})\nX, Y = data['X'], data['y']\n"
    )
    (folder / f"{kind}.py").write_text(head + makers[kind])
    return f"{folder / kind}.py:name"


KINDS = ["npz", "compressed", "parquet", "hugging face", "pair", "generator", "loader", "dataset"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_rows(kind, tmp_path):
    source = open_source(write(tmp_path, kind))
    labels = next(name for name in source.fields if name != "X")
    for start, stop, size in ((0, None, 64), (100, 190, 32), (250, 400, 16)):
        tables = list(source.read(start, stop, size))
        assert all(len(table["X"]) == size for table in tables[:-1])
        assert (np.concatenate([t["X"] for t in tables]) == X[start:stop]).all()
        assert (np.concatenate([t[labels] for t in tables]) == Y[start:stop]).all()
    if not source.sequential:
        assert source.rows == ROWS
        assert (source.column(labels) == Y).all()


def test_csv_with_texts_and_numbers(tmp_path):
    lines = ["id,a,b,kind", *(f"{i},{X[i, 0]},{i},{'fraud' if i % 4 == 0 else 'ok'}" for i in range(ROWS))]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    source = open_source(str(tmp_path / "d.csv"))
    table = next(source.read(10, 20, 10))
    assert table["b"].tolist() == list(range(10, 20))
    assert table["a"].astype(np.float32).tolist() == X[10:20, 0].tolist()
    assert source.column("kind")[:2].tolist() == ["fraud", "ok"]


def test_npy_and_odd_arrays(tmp_path):
    np.save(tmp_path / "x.npy", X)
    assert (next(open_source(str(tmp_path / "x.npy")).read(5, 9, 4))["X"] == X[5:9]).all()
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    assert (next(open_source(str(tmp_path / "f.npy")).read(5, 9, 4))["X"] == X[5:9]).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: str(f / "nowhere.npz"), "there is no file"),
        (lambda f: str(f), "expected a file"),
        (lambda f: _ragged(f), "different lengths"),
        (lambda f: _uneven(f), "different numbers of rows"),
    ],
)
def test_what_cannot_be_read_is_told(make, message, tmp_path):
    with pytest.raises(InputError, match=message):
        list(open_source(make(tmp_path)).read(0, None, 4))


def _ragged(folder):
    pq.write_table(pa.table({"X": [[1.0, 2.0], [3.0]], "y": [0, 1]}), folder / "r.parquet")
    return str(folder / "r.parquet")


def _uneven(folder):
    np.savez(folder / "u.npz", X=X, y=Y[:5])
    return str(folder / "u.npz")


def test_windows_and_chunks_keep_every_row():
    tables = [{"a": np.arange(i * 7, i * 7 + 7)} for i in range(9)]
    for skip, count, size in ((0, None, 10), (3, 40, 7), (14, 7, 7), (62, 5, 4)):
        got = [t["a"] for t in rechunk(window(tables, skip, count), size)]
        joined = np.concatenate(got).tolist() if got else []
        assert joined == list(range(63))[skip : None if count is None else skip + count]


def test_an_error_while_reading_ahead_is_raised_where_rows_are_used():
    def broken():
        yield {"a": np.zeros(1)}
        raise ValueError("disk")

    with pytest.raises(ValueError, match="disk"):
        list(prefetch(broken()))


@pytest.mark.parametrize(("slow_to_read", "ahead"), [(True, True), (False, False)])
def test_rows_are_read_ahead_only_where_reading_takes_a_good_share(slow_to_read, ahead):
    readers = []

    def source():
        for i in range(PROBED + 4):
            time.sleep(0.01 if slow_to_read else 0)
            readers.append(threading.current_thread())
            yield i

    seen = []
    for item in read_ahead(source()):
        time.sleep(0 if slow_to_read else 0.01)
        seen.append(item)
    assert seen == list(range(PROBED + 4))
    assert {reader is threading.main_thread() for reader in readers[PROBED:]} == {not ahead}


@pytest.mark.parametrize("kind", ["pair", "generator", "loader"])
def test_data_that_a_script_makes_are_recognised_by_their_values(kind, tmp_path):
    text = write(tmp_path, kind)
    mark = open_source(text).fingerprint()
    assert open_source(text).fingerprint() == mark
    np.savez(tmp_path / "d.npz", X=X + 1, y=Y)
    assert open_source(text).fingerprint() != mark
