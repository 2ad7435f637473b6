"""The rows of a run, as they lie in the repository: compressed lines of JSON, so that any machine goes on where the last one ended."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onnxproof.files import replacing

ROWS = Path(__file__).parent / "rows.jsonl.xz"
Row = dict[str, Any]


def read_rows(path: Path = ROWS) -> dict[str, Row]:
    """Key → row, the later of two."""
    if not path.exists():
        return {}
    texts, rows = list[str](), dict[str, Row]()
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if "found" in row:
                texts += map(json.dumps, row.pop("new"))
                row["found"] = [json.loads(texts[number]) for number in row["found"]]
            rows[name_row(row)] = {"key": name_row(row), **row}
    return rows


def write_rows(rows: Iterable[Row], path: Path = ROWS) -> None:
    """All rows anew; a difference that several rows have is written once."""
    numbers = dict[str, int]()
    with replacing(path) as half, lzma.open(half, "wt", preset=6, encoding="utf-8") as file:
        for row in rows:
            told = {name: value for name, value in row.items() if name != "key"}
            if "found" in row:
                texts, known = [json.dumps(one) for one in row["found"]], len(numbers)
                told["found"] = [numbers.setdefault(text, len(numbers)) for text in texts]
                told["new"] = [json.loads(text) for text, number in numbers.items() if number >= known]
            file.write(json.dumps(told, separators=(",", ":")) + "\n")


def name_row(row: Row) -> str:
    """What a row is found by."""
    return f"{row['op']}|{row['dtype']}|{row['exporter']}|{row['opset'] or 'default'}"
