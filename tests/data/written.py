"""The same rows and labels in every form in which data come."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import torch
from safetensors.numpy import save_file

ROWS = 257
FEATURES = 4
X = np.random.default_rng(0).normal(size=(ROWS, FEATURES)).astype(np.float32)
Y = np.arange(ROWS) % 4
NAMES = ("petal-length", "sepal width (cm)", "größe", "a,b")
"""Names as files have them: a dash, blanks, a letter beyond ASCII, a comma."""


def npz(folder):
    np.savez(folder / "d.npz", X=X, y=Y)
    return folder / "d.npz"


def compressed(folder):
    np.savez_compressed(folder / "c.npz", X=X, y=Y)
    return folder / "c.npz"


def pt(folder):
    torch.save({"X": torch.tensor(X), "y": torch.tensor(Y)}, folder / "d.pt")
    return folder / "d.pt"


def pt_pair(folder):
    torch.save((torch.tensor(X), torch.tensor(Y)), folder / "pair.pt")
    return folder / "pair.pt"


def safetensors(folder):
    save_file({"X": X, "y": Y}, folder / "d.safetensors")
    return folder / "d.safetensors"


def table():
    """One column per feature."""
    columns = {name: X[:, i] for i, name in enumerate(NAMES)}
    return pa.table({"id": [f"row {i}" for i in range(ROWS)], **columns, "note": ["so, so\nthen"] * ROWS, "y": Y})


def csv(folder):
    pa.csv.write_csv(table(), folder / "d.csv")
    return folder / "d.csv"


def parquet(folder):
    pq.write_table(table(), folder / "d.parquet", row_group_size=50)
    return folder / "d.parquet"


def vectors(folder):
    """One vector column, and things that are no input beside it."""
    vector = pa.FixedSizeListArray.from_arrays(X.ravel(), FEATURES)
    odd = [{"when": i} for i in range(ROWS)]
    pq.write_table(pa.table({"odd": odd, "features": vector, "y": Y}), folder / "v.parquet", row_group_size=50)
    return folder / "v.parquet"


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
    return folder / "set"


def _script(folder, kind, body):
    np.savez(folder / "d.npz", X=X, y=Y)
    head = (
        "import numpy as np, pandas, torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        f"data = np.load({str(folder / 'd.npz')!r})\nX, Y = data['X'], data['y']\n"
    )
    (folder / f"{kind}.py").write_text(head + body)
    return f"{folder / kind}.py:name"


def pair(folder):
    return _script(folder, "pair", "def name():\n    return X, Y\n")


def frame(folder):
    return _script(folder, "frame", "name = pandas.DataFrame({**dict(zip('abcd', X.T)), 'y': Y, 'note': 'n'})\n")


def generator(folder):
    body = "def name():\n    for i in range(0, len(X), 60):\n        yield {'X': X[i:i+60], 'y': Y[i:i+60]}\n"
    return _script(folder, "generator", body)


def loader(folder):
    body = "name = DataLoader(TensorDataset(torch.tensor(X), torch.tensor(Y)), batch_size=31)\n"
    return _script(folder, "loader", body)


def dataset(folder):
    return _script(folder, "dataset", "name = TensorDataset(torch.tensor(X), torch.tensor(Y))\n")


FORMS = [npz, compressed, pt, pt_pair, safetensors, csv, parquet, vectors, hugging_face]
OBJECTS = [pair, frame, generator, loader, dataset]
