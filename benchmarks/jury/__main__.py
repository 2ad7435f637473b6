"""Prove random models with defaults and keep what came of each.

python -m benchmarks.jury --models 2000 --from 0     goes on where an earlier call ended
python -m benchmarks.jury --show 17                  prints the model of a seed
python -m benchmarks.jury --solos                    models of one operation, every form of the grammar
python -m benchmarks.jury --publish                  docs/jury.json and the section of docs/power.md
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.jury.generator import generate
from benchmarks.jury.page import publish
from benchmarks.jury.program import Program
from benchmarks.jury.solos import list_solos
from benchmarks.jury.trial import Record, in_children, prove, say, warm_up

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "onnxproof-out"
"""Where it is written what came of each model so far."""


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--results", type=Path, default=KEPT, help="a folder")
    parser.add_argument("--show", type=int)
    parser.add_argument("--solos", action="store_true")
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    files = {kind: options.results / f"{kind}.jsonl" for kind in ("solos", "models")}
    if options.show is not None:
        print(generate(options.show).write())
    elif options.publish:
        publish({kind: read(file).values() for kind, file in files.items()}, ROOT / "docs")
    elif options.solos:
        solos = list_solos()
        run(list(solos), solos.__getitem__, files["solos"], options.parallel)
    else:
        run(range(options.first, options.first + options.models), generate, files["models"], options.parallel)


def run(names: Sequence[Any], make: Callable[[Any], Program], results: Path, parallel: int) -> None:
    """Prove those of the models that have no result yet."""
    known = read(results)
    warm_up()
    results.parent.mkdir(parents=True, exist_ok=True)
    left = [name for name in names if name not in known]
    with results.open("a", encoding="utf-8") as file:
        for name, record in in_children(left, lambda name: prove(make(name)), parallel):
            file.write(json.dumps({"seed": name, **record}) + "\n")
            file.flush()
            if record.get("verdict") != "ship":
                codes = sorted({f["code"] for f in record.get("findings", ()) if f["severity"] != "note"})
                say(f"{name}: {record.get('verdict') or record} {' '.join(codes)}")


def read(results: Path) -> dict[Any, Record]:
    """Seed or form → record."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return {record["seed"]: record for record in map(json.loads, lines)}


if __name__ == "__main__":
    main()
