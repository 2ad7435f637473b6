"""Tables: what csv, parquet and saved data sets hold, value for value."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from data import written
from onnxproof.data.opening import open_source


def read(folder, text):
    (folder / "d.csv").write_text(text, encoding="utf-8")
    return next(open_source(str(folder / "d.csv")).read(0, None, 1000))


def test_csv_with_quotes_commas_and_lines_in_values(tmp_path):
    table = read(tmp_path, '\ufeff"petal-length","a, b",größe\n1.5,"x, y",2\n2.5,"two\nlines",3\n')
    assert table["petal-length"].tolist() == [1.5, 2.5]
    assert table["a, b"].tolist() == ["x, y", "two\nlines"]
    assert table["größe"].tolist() == [2.0, 3.0]


def test_csv_with_missing_values(tmp_path):
    table = read(tmp_path, "a,b,kind,none,yes\n1,NA,fraud,,true\n,2.5,,,\n3,nan,ok,,false\n")
    assert np.array_equal(table["a"], [1, np.nan, 3], equal_nan=True)
    assert np.array_equal(table["b"], [np.nan, 2.5, np.nan], equal_nan=True)
    assert table["kind"].tolist() == ["fraud", "", "ok"]
    assert np.isnan(table["none"]).all()
    assert np.array_equal(table["yes"], [1, np.nan, 0], equal_nan=True)


def test_whole_numbers_may_have_fractions_later(tmp_path):
    lines = ["a,b", *["1,2"] * 400_000, "1.5,2.25"]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    source = open_source(str(tmp_path / "d.csv"))
    assert source.column("b")[-1] == 2.25
    assert source.rows == 400_001


def test_columns_of_many_types(tmp_path):
    columns = {
        "category": pa.array(["ok", "fraud", None]).dictionary_encode(),
        "price": [Decimal("1.25"), None, Decimal("3.50")],
        "flag": [True, None, False],
        "big": pa.array(["a", "bc", "d"], pa.large_string()),
        "matrix": [[[1, 2], [3, 4]]] * 3,
        "half": pa.array(np.array([1, 2, 3], np.float16)),
        "when": pa.array([0, 1, 2], pa.date32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    source = open_source(str(tmp_path / "t.parquet"))
    assert list(source.fields.values()) == ["other", "number", "number", "other", "vector", "number", "other"]
    table = next(source.read(0, None, 3))
    assert table["category"].tolist() == ["ok", "fraud", ""]
    assert np.array_equal(table["price"], [1.25, np.nan, 3.5], equal_nan=True)
    assert np.array_equal(table["flag"], [1, np.nan, 0], equal_nan=True)
    assert table["big"].tolist() == ["a", "bc", "d"]
    assert table["matrix"].shape == (3, 2, 2)
    assert table["half"].dtype == np.float16


def test_a_name_with_a_dot_is_one_column(tmp_path):
    pq.write_table(pa.table({"a": [1.0], "a.b": [2.0]}), tmp_path / "t.parquet")
    source = open_source(str(tmp_path / "t.parquet"))
    assert source.column("a.b").tolist() == [2.0]
    assert source.column("a").tolist() == [1.0]


def test_a_saved_data_set_names_its_classes(tmp_path):
    folder = written.hugging_face(tmp_path)
    features = {"X": None, "y": {"names": ["a", "b", "c", "d"], "_type": "ClassLabel"}}
    (folder / "test" / "dataset_info.json").write_text(json.dumps({"features": features}))
    assert open_source(str(folder)).classes["y"] == ("a", "b", "c", "d")
    assert open_source(str(folder / "test")).classes["X"] == ()


def test_only_row_groups_that_are_needed_are_read(tmp_path, monkeypatch):
    from onnxproof.data import tables

    source, groups = open_source(str(written.parquet(tmp_path))), []

    class Noted(tables.ParquetFile):
        def iter_batches(self, size, row_groups, *rest, **options):
            groups.extend(row_groups)
            return super().iter_batches(size, row_groups, *rest, **options)

    monkeypatch.setattr(tables, "ParquetFile", Noted)
    assert len(next(source.read(120, 140, 32))["y"]) == 20
    assert groups == [2]
