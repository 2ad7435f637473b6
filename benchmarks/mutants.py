"""ONNX files that are changed in their structure, and judged: the verdict is held against a comparison by brute force.

    python -m benchmarks.mutants [how many] [seed]

onnxruntime's own answer is the oracle. A mutant that does not load, refuses inputs that the module answers, or answers something else by far
more than rounding must not ship; one that answers the same to the last digits must not block. What lies between (a change that only
some inputs show, a difference near to rounding) is counted and not held against the verdict. Mutants are judged in
processes of their own, some at a time: one that kills onnxruntime costs itself only.
"""

from __future__ import annotations

import copy
import logging
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from benchmarks.forked import ask

# Relative to the largest value of an output: what is certainly wrong, and what is certainly rounding.
WRONG, RIGHT = 1e-2, 2e-6
# Inputs of the comparison by brute force.
TRIED = 60
# Mutants in one process.
TOGETHER = 20
SIBLINGS = {
    "Relu": ("Sigmoid", "Tanh", "Abs", "Elu"),
    "Add": ("Sub", "Mul"),
    "Mul": ("Add", "Div"),
    "Sub": ("Add",),
    "Div": ("Mul",),
    "Softmax": ("LogSoftmax", "Hardmax"),
    "MaxPool": ("AveragePool",),
    "ReduceMean": ("ReduceSum", "ReduceMax"),
    "Erf": ("Tanh",),
    "Tanh": ("Sigmoid", "Erf"),
    "Sqrt": ("Abs",),
}


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.last(torch.relu(self.first(x))), -1)


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.pool, self.last = nn.Conv2d(2, 3, 3, padding=1), nn.MaxPool2d(2), nn.Linear(12, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.pool(torch.tanh(self.conv(x))).flatten(1))


class Normalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.act, self.last = nn.LayerNorm(5), nn.GELU(), nn.Linear(5, 5)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        made = self.last(self.act(self.norm(x)))
        return made - y, (made * y).mean(-1)


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.last = nn.Embedding(7, 4), nn.Linear(4, 3)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self.last(self.table(ids).sum(1))
        return scores, scores.argmax(-1)


@dataclass(frozen=True)
class Pair:
    """A module, its example, and the file that it was exported to."""

    name: str
    module: nn.Module
    inputs: tuple[torch.Tensor, ...]
    model: onnx.ModelProto


def make_pairs(folder: Path) -> list[Pair]:
    """Every module with a right file."""
    import onnxproof

    torch.manual_seed(0)
    pairs = []
    for module, inputs in (
        (Perceptron(), (torch.randn(2, 4),)),
        (Convolution(), (torch.randn(2, 2, 4, 4),)),
        (Normalised(), (torch.randn(2, 5), torch.randn(2, 5))),
        (Words(), (torch.randint(0, 7, (2, 3)),)),
    ):
        name = type(module).__name__
        proof = onnxproof.export(module.eval(), inputs, out=folder / name)
        assert proof.artifact is not None
        pairs.append(Pair(name, module, inputs, onnx.load(proof.artifact.path)))
    return pairs


def mutate(model: onnx.ModelProto, generator: random.Random) -> tuple[onnx.ModelProto, str]:
    """A changed copy, and what was changed."""
    changed = copy.deepcopy(model)
    ways = (_attribute, _wiring, _operator, _bypass, _weight, _weight, _dtype, _shape, _rename, _opset)
    while True:
        way = generator.choice(ways)
        what = way(changed, generator)
        if what is not None:
            return changed, f"{way.__name__[1:]}: {what}"


def _attribute(model: onnx.ModelProto, generator: random.Random) -> str | None:
    places = [(node, attribute) for node in model.graph.node for attribute in node.attribute]
    if not places:
        return None
    node, attribute = generator.choice(places)
    kinds = onnx.AttributeProto
    if not generator.randrange(4):
        node.attribute.remove(attribute)
        return f"{node.op_type} without {attribute.name}"
    if attribute.type == kinds.INT:
        attribute.i += generator.choice((-1, 1, -2))
    elif attribute.type == kinds.FLOAT:
        attribute.f *= generator.choice((0.5, 1.01, 10.0, -1.0, 0.0))
    elif attribute.type == kinds.INTS and attribute.ints:
        attribute.ints[generator.randrange(len(attribute.ints))] += generator.choice((-1, 1))
    elif attribute.type == kinds.STRING:
        attribute.s = generator.choice((b"", b"tanh", b"none", b"SAME_UPPER"))
    elif attribute.type == kinds.TENSOR:
        array = numpy_helper.to_array(attribute.t)
        attribute.t.CopyFrom(numpy_helper.from_array((array + 1).astype(array.dtype), attribute.t.name))
    else:
        return None
    return f"{node.op_type}.{attribute.name}"


def _list_values(model: onnx.ModelProto) -> list[str]:
    made = [name for node in model.graph.node for name in node.output]
    return [*(i.name for i in model.graph.input), *(t.name for t in model.graph.initializer), *made]


def _wiring(model: onnx.ModelProto, generator: random.Random) -> str | None:
    node = generator.choice(list(model.graph.node))
    if not node.input:
        return None
    at = generator.randrange(len(node.input))
    if len(node.input) > 1 and generator.randrange(2):
        other = generator.randrange(len(node.input))
        node.input[at], node.input[other] = node.input[other], node.input[at]
        return f"{node.op_type} inputs {at} and {other}" if at != other else None
    name = generator.choice(_list_values(model))
    if name in (node.input[at], *node.output):
        return None
    node.input[at] = name
    return f"{node.op_type} input {at} from {name}"


def _operator(model: onnx.ModelProto, generator: random.Random) -> str | None:
    nodes = [node for node in model.graph.node if node.op_type in SIBLINGS]
    if not nodes:
        return None
    node = generator.choice(nodes)
    before, node.op_type = node.op_type, generator.choice(SIBLINGS[node.op_type])
    return f"{before} as {node.op_type}"


def _bypass(model: onnx.ModelProto, generator: random.Random) -> str | None:
    nodes = [node for node in model.graph.node if len(node.output) == 1 and node.input]
    node = generator.choice(nodes)
    kind, node.op_type = node.op_type, "Identity"
    del node.attribute[:]
    del node.input[1:]
    return f"no {kind}"


def _weight(model: onnx.ModelProto, generator: random.Random) -> str | None:
    stored = [tensor for tensor in model.graph.initializer if np.prod(tensor.dims)]
    if not stored:
        return None
    tensor = generator.choice(stored)
    array = numpy_helper.to_array(tensor).copy()
    flat = array.reshape(-1)
    at = generator.randrange(flat.size)
    match generator.randrange(5):
        case 0:
            flat[at] = -flat[at] if array.dtype.kind == "f" else flat[at] + 1
        case 1 if array.dtype.kind == "f":
            flat[at] += np.float32(generator.choice((0.5, 1e-3, 1e-6, 1e30)))
        case 2 if array.dtype.kind == "f":
            array = array.astype(np.float16).astype(np.float32)
        case 3:
            array = np.ascontiguousarray(np.flip(array))
        case _:
            flat[at] = np.float32(np.nan) if array.dtype.kind == "f" else 0
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return tensor.name


def _dtype(model: onnx.ModelProto, generator: random.Random) -> str | None:
    kind = generator.choice((TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.FLOAT))
    port = generator.choice([*model.graph.input, *model.graph.output])
    if not generator.randrange(2):
        port.type.tensor_type.elem_type = kind
        return f"declared {port.name}"
    value = generator.choice(_list_values(model))
    users = [(node, i) for node in model.graph.node for i, name in enumerate(node.input) if name == value]
    if not users:
        return None
    node, i = generator.choice(users)
    node.input[i] = "narrow"
    there = [helper.make_node("Cast", [value], ["wide"], to=kind), helper.make_node("Cast", ["wide"], ["narrow"], to=1)]
    place = list(model.graph.node).index(node)
    for cast in reversed(there):
        model.graph.node.insert(place, cast)
    return f"{value} through {TensorProto.DataType.Name(kind)}"


def _shape(model: onnx.ModelProto, generator: random.Random) -> str | None:
    port = generator.choice([*model.graph.input, *model.graph.output])
    dims = port.type.tensor_type.shape.dim
    if not dims:
        return None
    dim = generator.choice(list(dims))
    match generator.randrange(3):
        case 0:
            dim.dim_value = generator.choice((1, 2, 3, 99))
        case 1:
            dim.dim_param = "any"
        case _:
            dims.add().dim_value = 1
    return port.name


def _rename(model: onnx.ModelProto, generator: random.Random) -> str | None:
    name = generator.choice(_list_values(model))
    new = generator.choice(("", "x", "output", f"{name}_other", "\x1b[2J"))
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [new if one == name else one for one in names]
    if generator.randrange(2):
        for port in (*model.graph.input, *model.graph.output, *model.graph.initializer):
            port.name = new if port.name == name else port.name
    return f"{name!r} as {new!r}"


def _opset(model: onnx.ModelProto, generator: random.Random) -> str:
    version = generator.choice((7, 11, 13, 17, 21))
    model.opset_import[0].version = version
    return str(version)


def make_inputs(pair: Pair, generator: np.random.Generator) -> Iterator[tuple[torch.Tensor, ...]]:
    """Inputs of several sizes and magnitudes."""
    for number in range(TRIED):
        rows, scale = (1, 2, 3, 7)[number % 4], (1.0, 1.0, 0.1, 10.0, 0.0)[number % 5]

        def make(example: torch.Tensor, rows: int = rows, scale: float = scale) -> torch.Tensor:
            shape = (rows, *example.shape[1:])
            if example.dtype == torch.int64:
                return torch.from_numpy(generator.integers(0, 7, shape))
            return torch.from_numpy((scale * generator.normal(size=shape)).astype(np.float32))

        yield tuple(map(make, pair.inputs))


def ask_oracle(pair: Pair, model: bytes) -> str:
    """`right`, `wrong` or `unclear`, by onnxruntime's answers alone."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception:
        return "wrong"
    names, outputs = [port.name for port in session.get_inputs()], [port.name for port in session.get_outputs()]
    original = [port.name for port in pair.model.graph.input]
    if sorted(names) != sorted(original) or outputs != [port.name for port in pair.model.graph.output]:
        return "unclear"  # which of them is which is a question of pairing
    worst, generator = 0.0, np.random.default_rng(0)
    double = copy.deepcopy(pair.module).double()
    for inputs in make_inputs(pair, generator):
        with torch.no_grad():
            truth = double(*(tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs))
        truths = truth if isinstance(truth, tuple) else (truth,)
        try:
            answers: Any = session.run(None, {n: t.numpy() for n, t in zip(original, inputs, strict=True)})
        except Exception:
            return "wrong"
        worst = max(worst, _measure(truths, answers))
    return "wrong" if worst > WRONG else "right" if worst < RIGHT else "unclear"


def _measure(truths: Sequence[torch.Tensor], answers: Sequence[Any]) -> float:
    """The largest difference of any output, relative to its largest value."""
    worst = 0.0
    for truth, answer in zip(truths, answers, strict=True):
        right = truth.numpy()
        floats = right.dtype.kind == "f"
        if right.shape != answer.shape or answer.dtype != (np.float32 if floats else right.dtype):
            return float("inf")
        if not floats:
            # A decision may be a tie.
            worst = max(worst, 0.0 if np.array_equal(right, answer) else 1e-4)
            continue
        if not np.isfinite(answer).all():
            return float("inf")
        worst = max(worst, float(np.abs(answer - right).max(initial=0)) / (float(np.abs(right).max(initial=0)) + 1e-3))
    return worst


@dataclass(frozen=True)
class Judged:
    """A mutant, what the oracle says of it, and the verdict."""

    name: str
    what: str
    oracle: str
    verdict: str
    told: str = ""

    @property
    def fault(self) -> bool:
        """Whether the verdict is not that of the comparison by brute force."""
        return (self.oracle == "wrong" and self.verdict == "ship") or (
            self.oracle == "right" and self.verdict in ("block", "bug")
        )


def judge(pair: Pair, model: onnx.ModelProto, what: str, folder: Path) -> Judged:
    """One mutant through the oracle and the verifier, here."""
    import onnxproof
    from onnxproof.errors import OnnxproofError

    file = folder / "mutant.onnx"
    file.write_bytes(model.SerializeToString())
    oracle = ask_oracle(pair, model.SerializeToString())
    try:
        proof = onnxproof.verify(
            pair.module, pair.inputs, onnx=file, out=folder / "out", budget=5.0, batch_sizes=(2, 3), fast=True
        )
        gating = [f"{finding.code} {finding.message}" for finding in proof.findings if finding.weight]
        return Judged(pair.name, what, oracle, proof.verdict, "; ".join(gating)[:300])
    except OnnxproofError as error:
        return Judged(pair.name, what, oracle, "refused", str(error)[:300])
    except Exception as error:
        return Judged(pair.name, what, oracle, "bug", f"{type(error).__name__}: {error}"[:300])


def run_mutants(pairs: Sequence[Pair], count: int, seed: int, folder: Path) -> Iterator[Judged]:
    """So many mutants, judged in this process."""
    for number in range(count):
        generator = random.Random(f"{seed} {number}")
        pair = generator.choice(pairs)
        model, what = mutate(pair.model, generator)
        yield judge(pair, model, what, folder)


def run_in_processes(count: int, seed: int) -> list[Judged]:
    """The same in processes of which each judges some: a death costs the one that it came in."""
    import msgspec

    with tempfile.TemporaryDirectory(prefix="onnxproof-mutants-") as name:
        pairs = make_pairs(Path(name))

        def work(number: int) -> Judged:
            torch.set_num_threads(1)
            generator = random.Random(f"{seed} {number}")
            pair = generator.choice(pairs)
            model, what = mutate(pair.model, generator)
            return judge(pair, model, what, Path(name))

        return [
            Judged("", f"mutant {number}", one, one) if isinstance(one, str) else msgspec.convert(one, Judged)
            for number, one in enumerate(ask(work, count, TOGETHER))
        ]


def main() -> None:
    """Run, count, and exit with 1 where a verdict is not the oracle's."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    count, seed = (int(text) for text in (*sys.argv[1:], *("200", "0")[len(sys.argv) - 1 :]))
    results = run_in_processes(count, seed)
    for one in results:
        if one.fault or one.verdict == "bug":
            print(one)
    for (oracle, verdict), times in sorted(Counter((one.oracle, one.verdict) for one in results).items()):
        print(f"{times:6,}  {oracle:8} {verdict}")
    sys.exit(1 if any(one.fault for one in results) else 0)


if __name__ == "__main__":
    main()
