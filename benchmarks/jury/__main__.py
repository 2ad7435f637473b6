"""Prove random models with defaults and keep what came of each.

python -m benchmarks.jury --models 2000 --from 0     goes on where an earlier call ended
python -m benchmarks.jury --show 17                  prints the model of a seed
python -m benchmarks.jury --publish                  docs/jury.json and the section of docs/power.md
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.jury.generator import generate
from benchmarks.jury.trial import Record, in_children, prove, say, warm_up

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "onnxproof-out" / "jury.jsonl"
"""What came of each model so far."""


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--results", type=Path, default=KEPT)
    parser.add_argument("--show", type=int)
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    if options.show is not None:
        print(generate(options.show).write())
        return
    if not options.publish:
        run(range(options.first, options.first + options.models), options.results, options.parallel)


def run(seeds: range, results: Path, parallel: int) -> None:
    """Those of the seeds that have no result yet."""
    known = read(results)
    warm_up()
    results.parent.mkdir(parents=True, exist_ok=True)
    left = [seed for seed in seeds if seed not in known]
    with results.open("a", encoding="utf-8") as file:
        for seed, record in in_children(left, _work, parallel):
            file.write(json.dumps({"seed": seed, **record}) + "\n")
            file.flush()
            if record.get("verdict") != "ship":
                codes = sorted({f["code"] for f in record.get("findings", ()) if f["severity"] != "note"})
                say(f"{seed}: {record.get('verdict') or record} {' '.join(codes)}")


def read(results: Path) -> dict[int, Record]:
    """Seed → record."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return {record["seed"]: record for record in map(json.loads, lines)}


def _work(seed: int) -> Record:
    return prove(generate(seed))


if __name__ == "__main__":
    main()
