"""Tables that a graph looks up, held against the module's row by row: a row that sizes choose is met at one size in a thousand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from onnxproof.graph.evaluator import Evaluator, Step
from onnxproof.proof.trials import Latent
from onnxproof.tensors.arrays import Array
from onnxproof.tensors.conversion import to_numpy

# Operators that take rows of a table, and the elements up to which one is looked at.
LOOKUPS = {"Gather", "Slice"}
LARGEST = 1 << 24
# The share of rows that are the module's to the bit: a table with fewer is another one.
SAME = 0.5


def find_changed_rows(evaluator: Evaluator, module: torch.nn.Module) -> Iterator[Latent]:
    """Rows of a table that are not the module's, where most of the others are."""
    looked = {step.takes[0]: step for step in evaluator.steps if step.op in LOOKUPS and step.takes}
    tables = {name: evaluator.stored[name] for name in looked if name in evaluator.stored}
    for name, table in tables.items():
        if np.ndim(table) == 2 and np.size(table) <= LARGEST and np.asarray(table).dtype.kind == "f":
            yield from _compare(looked[name], np.asarray(table), module)


def _compare(step: Step, table: Array, module: torch.nn.Module) -> Iterator[Latent]:
    alike = [tensor for tensor in (*module.parameters(), *module.buffers()) if tuple(tensor.shape) == table.shape]
    rows = [(own, (own != table).any(1)) for own in (to_numpy(one.detach()).astype(np.float64) for one in alike)]
    if not rows or any(not changed.any() for _, changed in rows):
        return
    own, changed = min(rows, key=lambda pair: int(pair[1].sum()))
    if changed.mean() > SAME:
        return
    row = int(np.flatnonzero(changed)[0])
    place = int(np.abs(own[row] - table[row]).argmax())
    node = str(step.node.name or step.gives[0])
    expected, got = float(own[row, place]), float(table[row, place])
    yield Latent(node, node, step.op, step.gives[0], "every row", True, expected, got, {"row": float(row)})
