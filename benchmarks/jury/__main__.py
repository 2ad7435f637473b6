"""Prove random models with defaults and keep what came of each.

python -m benchmarks.jury --models 2000 --from 0     goes on where an earlier call ended
python -m benchmarks.jury --show 17                  prints the model of a seed
python -m benchmarks.jury --solos                    models of one operation, every form of the grammar
python -m benchmarks.jury --mutants 300 --from 0     wrong changes of files that shipped: are they caught, is the culprit right
python -m benchmarks.jury --publish                  docs/jury.json and the section of docs/power.md
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.jury.generator import generate
from benchmarks.jury.mutants import PER_MODEL, judge
from benchmarks.jury.page import publish
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
    parser.add_argument("--mutants", type=int)
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    files = {kind: options.results / f"{kind}.jsonl" for kind in ("solos", "models", "mutants")}
    if options.show is not None:
        print(generate(options.show).write())
    elif options.publish:
        publish({kind: read(file).values() for kind, file in files.items()}, ROOT / "docs")
    elif options.solos:
        solos = list_solos()
        run(list(solos), lambda name: prove(solos[name]), files["solos"], options.parallel)
    elif options.mutants is not None:
        right = sorted((options.results / "right").glob("*.onnx"), key=lambda file: int(file.stem))
        names = [f"{file.stem}.{number}" for number in range(PER_MODEL) for file in right]
        run(
            names[: options.mutants],
            lambda name: judge(name, options.results / "right"),
            files["mutants"],
            options.parallel,
        )
    else:
        (options.results / "right").mkdir(parents=True, exist_ok=True)
        seeds = range(options.first, options.first + options.models)
        run(
            seeds,
            lambda seed: prove(generate(seed), options.results / "right" / f"{seed}.onnx"),
            files["models"],
            options.parallel,
        )


def run(names: Sequence[Any], work: Callable[[Any], Record], results: Path, parallel: int) -> None:
    """Do those that have no result yet."""
    known = read(results)
    warm_up()
    results.parent.mkdir(parents=True, exist_ok=True)
    left, state = [name for name in names if name not in known], identify_state()
    with results.open("a", encoding="utf-8") as file:
        for name, record in in_children(left, work, parallel):
            file.write(json.dumps({"seed": name, "state": state, **record}) + "\n")
            file.flush()
            if is_telling(record):
                codes = sorted({f["code"] for f in record.get("findings", ()) if f["severity"] != "note"})
                say(f"{name}: {record.get('verdict') or record} {' '.join(codes)} {record.get('what', '')}")


def is_telling(record: Record) -> bool:
    """Whether somebody has to look: a model that does not ship, a mutant that does or whose culprit is another."""
    if "what" in record:
        return record.get("verdict") == "ship" or record.get("right") is False
    return record.get("verdict") != "ship"


def identify_state() -> str:
    """Of the code that proves."""
    code = b"".join(file.read_bytes() for file in sorted((ROOT / "src").rglob("*.py")))
    return hashlib.blake2b(code, digest_size=4).hexdigest()


def read(results: Path) -> dict[Any, Record]:
    """Seed or form → record."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return {record["seed"]: record for record in map(json.loads, lines)}


if __name__ == "__main__":
    main()
