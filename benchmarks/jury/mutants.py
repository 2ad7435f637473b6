"""Wrong changes of files that shipped: those that brute force sees must not ship, and the node must be named."""

from __future__ import annotations

import random
import tempfile
from dataclasses import asdict
from pathlib import Path

import onnx

from benchmarks.jury.generator import generate
from benchmarks.jury.mutation import Mutant, mutate
from benchmarks.jury.oracle import Answer, ask
from benchmarks.jury.trial import Record, prove

PER_MODEL = 3
TRIES = 40
"""Mutants of one file that brute force is asked about until one differs."""


def judge(name: str, right: Path) -> Record:
    """The mutant of this name, `seed.number`: what was changed, how far it shows, what the proof says of it."""
    seed = int(name.split(".")[0])
    program = generate(seed)
    whole = (right / f"{seed}.onnx").read_bytes()
    chance, refused, same = random.Random(name), 0, 0
    for mutant in mutate(onnx.load_from_string(whole), chance):
        changed = mutant.model.SerializeToString()
        answer = ask(program, whole, changed)
        refused, same = refused + (answer.differs == "refused"), same + (answer.differs == "no")
        if answer.differs == "yes":
            break
        if refused + same >= TRIES:
            return {"skipped": "no change shows", "refused": refused, "same": same}
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        file = Path(folder) / "model.onnx"
        file.write_bytes(changed)
        record = prove(program, onnx=file)
    return {**describe(mutant, answer, record), "refused": refused, "same": same, **record}


def describe(mutant: Mutant, answer: Answer, record: Record) -> Record:
    """What was done, and whether the first that is blamed is it or holds it."""
    blamed = record.get("blamed") or []
    named = [one["node"] for one in record["findings"] if one.get("node") and one["severity"] != "note"]
    first = blamed[0] if blamed else named[:1]
    return {
        "kind": mutant.kind,
        "what": mutant.what,
        "culprits": list(mutant.culprits),
        "shown": asdict(answer),
        "right": bool(set(first) & set(mutant.culprits)) if first else None,
        "exactly": bool(first) and first[0] in mutant.culprits,
    }
