"""Measures combinations that are read from standard input, one JSON line each; the parent notes what kills this process."""

from __future__ import annotations

import functools
import json
import os
import resource
import sys

import torch
from torch._export import utils as export_utils
from torch.onnx._internal.exporter import _registration

from benchmarks.atlas.measure import Combination, measure
from benchmarks.atlas.samples import load_operations

# Bytes that the process may take.
MEMORY = 12 << 30


def remember_tables() -> None:
    """Tables of operations that are the same for every export, and take longer to make than an operation takes to export."""
    registry = _registration.ONNXRegistry
    registry.from_torchlib = staticmethod(functools.cache(registry.from_torchlib))  # type: ignore[method-assign,assignment]
    export_utils._materialize_cpp_cia_ops = functools.cache(export_utils._materialize_cpp_cia_ops)


def main() -> None:
    # What is printed by anyone else goes to the other stream.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    # Where an edge value is taken for a size, an error is better than a machine without memory.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    remember_tables()
    known = load_operations()
    for line in sys.stdin:
        one = Combination(**json.loads(line))
        try:
            row = measure(known[one.op], one)
        except Exception as error:
            row = {
                "key": one.key,
                **json.loads(line),
                "status": "our error",
                "reason": f"{type(error).__name__}: {error}"[:400],
            }
        told.write(json.dumps(row) + "\n")
        told.flush()


if __name__ == "__main__":
    main()
