"""What a file's inputs and outputs say of a subject: sizes that vary, values that are handed on, outputs that were exchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onnxproof.artifact.pairing import pair_inputs
from onnxproof.cases.plan import Inputs
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.comparison import Comparison
from onnxproof.subject.state import is_kept, read_stem
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays


def add_symbols(subject: Subject, artifact: Artifact) -> Subject:
    """Dims that the artifact leaves open join the sweep, under the artifact's names."""
    pairs = pair_inputs(dict.fromkeys(subject.inputs.tensors, ""), artifact.inputs, subject.shapes()).pairs
    ports = {port.name: port for port in artifact.inputs}
    dynamic = {name: dict(dims) for name, dims in subject.dynamic.items()}
    known = {size for dims in dynamic.values() for size in dims.values()}
    for name, graph in pairs.items():
        shape = ports[graph].shape or ()
        tensor = subject.inputs.tensors[name]
        for dim, size in enumerate(shape):
            if isinstance(size, str) and dim not in dynamic.get(name, {}) and dim < tensor.ndim and size not in known:
                dynamic.setdefault(name, {})[dim] = size
    return replace(subject, dynamic=dynamic)


def find_passed(inputs: Inputs, outputs: Arrays) -> dict[str, str]:
    """Outputs that are a state as it came, bit for bit: output → input, the one that is called so where several are equal."""
    passed, kept = {}, {name: array for name, array in inputs.items() if is_kept(name)}
    for out, made in outputs.items():
        same = [n for n, given in kept.items() if made.dtype == given.dtype and np.array_equal(made, given)]
        same = [n for n in same if read_stem(n) == read_stem(out)] or same
        if len(same) == 1:
            passed[out] = same[0]
    return passed


def mark_swap(c: Comparison, baseline: Arrays, candidate: Arrays) -> Comparison:
    """Note another output of the module that this output of the artifact equals, where its own it does not."""
    value = candidate[c.output]
    if (
        len(baseline) < 2
        or not c.same_form
        or c.matched is not None
        or not c.size
        or value.dtype.kind not in "fiub"
        or _alike(value, baseline[c.output])
    ):
        return c
    twin = next((n for n, other in baseline.items() if n != c.output and _alike(value, other)), None)
    return replace(c, swapped_with=twin)


def _alike(a: Array, b: Array) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or not a.size:
        return False
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True))
