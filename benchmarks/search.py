"""What the cases cost, and what shrunk counterexamples look like: writes docs/counterexamples.md.

python -m benchmarks.search          both
python -m benchmarks.search --cost   the cost alone
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch

import onnxproof
from benchmarks.power import items

FIRST_PROFILES = frozenset(
    "normal uniform zeros ones tiny large negative mixed halves constant hints sparse huge nonfinite example".split()
)
"""Value profiles of the first version, which tried each size of each dimension alone."""
EXAMPLES = (
    ("plain", "abs-lost"),
    ("noise", "layernorm-epsilon"),
    ("noise", "gelu-tanh"),
    ("edge", "dead-row-epsilon"),
    ("edge", "row-in-the-middle"),
    ("edge", "one-combination-stale"),
    ("edge", "known-case-answer"),
    ("edge", "leap-day-of-2000"),
    ("shape", "relative-reach-forty"),
    ("shape", "equal-lengths-causal"),
    ("shape", "state-of-256-rows"),
    ("runtime", "pad-fused-into-max-pool"),
    ("runtime", "norm-epsilon-deleted"),
)
COSTED = 16
DOCS = Path(__file__).parents[1] / "docs"


def verified(name: str, search: float) -> tuple[items.Item, onnxproof.Proof]:
    """One item, with onnxproof."""
    with tempfile.TemporaryDirectory() as folder:
        item = items.load(name, Path(folder))
        options = {k: v for k, v in item.options.items() if k not in ("opset", "exporter")}
        out = Path(folder) / "out"
        return item, onnxproof.verify(item.module, item.inputs, onnx=item.onnx, out=out, search=search, **options)


def cost() -> float:
    """Seconds of all default cases over those of the first version's cases, on every so many-th model of the zoo."""
    names = [name for name in items.names() if name.startswith("zoo:")]
    everything = first = 0.0
    for name in names[:: len(names) // COSTED]:
        _, proof = verified(name, 0.0)
        exported = next(_sizes(case.name) for case in proof.cases if case.profile == "example")
        for case in proof.cases:
            seconds = sum(case.seconds.values())
            everything += seconds
            moved = sum(a != b for a, b in zip(_sizes(case.name), exported, strict=True))
            first += seconds if case.profile in FIRST_PROFILES and moved <= 1 else 0.0
    return everything / first


def _sizes(case: str) -> list[str]:
    return case.split("/")[0].split(",")


def example(cls: str, name: str) -> list[str]:
    """One fault as a row of the page."""
    item, proof = verified(f"fault:{name}", 30.0)
    if item.cls != cls:
        raise SystemExit(f"{name} is of class {item.cls}, not {cls}")
    if not proof.counterexamples:
        raise SystemExit(f"{name}: no counterexample ({proof.verdict})")
    one = proof.counterexamples[0]
    finding = next(f for f in proof.findings if f.code == one.code)
    how = "the search" if finding.where.case and finding.where.case.startswith("search/") else "the defaults"
    shapes = ", ".join(f"{key} of shape {list(shape)}" for key, shape in one.shapes.items())
    return [cls, f"`{name}`", f"`{one.text or shapes}`", _answers(finding.evidence), how]


def _answers(evidence: Any) -> str:
    worst = (evidence.get("worst") or [None])[0]
    if worst is None:
        return "onnxruntime gives no answer"
    return f"{_short(worst['baseline'])} / {_short(worst['candidate'])}"


def _short(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def page(rows: list[list[str]], ratio: float) -> str:
    """docs/counterexamples.md."""
    head = [
        "class",
        "fault",
        "the smallest failing input",
        "PyTorch / onnxruntime, where it first showed most",
        "found by",
    ]
    return "\n".join(
        [
            "# Counterexamples",
            "",
            "Made by `make counterexamples`: for faults of each class (contract faults need no input), the input that onnxproof shrank the failing case "
            "to. Each is kept as an npz and as a script that needs only torch, onnxruntime and numpy, and is tried first in the next run.",
            "",
            f"| {' | '.join(head)} |",
            "|---" * len(head) + "|",
            *(f"| {' | '.join(row)} |" for row in rows),
            "",
            f"The default cases take {ratio:.2f} times the time of those of the first version (normal values and eleven profiles), measured on "
            "every tenth or so model of the zoo in the same run.",
            "",
        ]
    )


def main() -> None:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cost", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ratio = cost()
    print(f"default cases / cases of the first version: {ratio:.2f}")
    if not options.cost:
        rows = [example(cls, name) for cls, name in EXAMPLES]
        (DOCS / "counterexamples.md").write_text(page(rows, ratio), encoding="utf-8")


if __name__ == "__main__":
    main()
