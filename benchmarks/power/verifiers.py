"""The verifiers: each looks at a module, its inputs and an ONNX file, and passes or alarms.

Peers get what their own documentation tells users to do; where a peer has no verdict of its own, its published threshold is applied. Random
inputs are the same for the recipes: standard normal floats, integers and booleans in the range of the example.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

import onnxproof
from benchmarks.power.items import Item
from onnxproof.artifact.wrapper import FlatModule
from onnxproof.subject.assembly import make_subject
from onnxproof.subject.mode import enter_eval
from onnxproof.subject.subject import Subject
from onnxproof.tensors.conversion import to_numpy, to_torch

Arrays = dict[str, np.ndarray]
POLYGRAPHY = Path(".venv-polygraphy/bin/python")


@dataclass(frozen=True)
class Result:
    """What a verifier said. `alarm`: it did not pass. `located`: nodes it blames, the first one first."""

    alarm: bool
    why: str = ""
    located: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    module: str | None = None
    line: int | None = None
    stage: str | None = None
    tried: float = 0.0
    """Seconds of the trials of single pieces."""


# --- ours -----------------------------------------------------------------------------------------------------------


SEARCH_FAULTS, SEARCH_ZOO = 30.0, 10.0
"""Seconds that a search has on a fault and on a correct model."""


class Ours:
    """onnxproof: with its defaults, with what its defaults say on normal inputs alone, and with a search after them."""

    def __init__(self) -> None:
        self._name = ""
        self._proof: onnxproof.Proof | None = None

    def defaults(self, item: Item, folder: Path) -> Result:
        """What a user gets without any flag."""
        return _result(self._default_proof(item, folder))

    def normal_only(self, item: Item, folder: Path) -> Result:
        """The same judgement on the cases with random normal inputs (and the example), at the same sizes."""
        proof = self._default_proof(item, folder)
        normal = tuple(case for case in proof.cases if case.profile in ("normal", "example") and case.fair)
        return _result(replace(proof, cases=normal).judged(proof.policy))

    def search(self, item: Item, folder: Path) -> Result:
        """With --search; where the planned cases block already, nothing is searched."""
        proof = self._default_proof(item, folder)
        if proof.verdict == "block":
            return _result(proof)
        seconds = SEARCH_FAULTS if item.kind == "fault" else SEARCH_ZOO
        return _result(_verified(item, folder, search=seconds))

    def _default_proof(self, item: Item, folder: Path) -> onnxproof.Proof:
        key = f"{item.kind}:{item.name}"
        if self._proof is None or self._name != key:
            self._name, self._proof = key, _verified(item, folder)
        return self._proof


OURS = Ours()


def _verified(item: Item, folder: Path, search: float = 0.0) -> onnxproof.Proof:
    options = {k: v for k, v in item.options.items() if k not in ("opset", "exporter")}
    with tempfile.TemporaryDirectory(dir=folder) as out:
        return onnxproof.verify(item.module, item.inputs, onnx=item.onnx, out=out, search=search, **options)


def _result(proof: onnxproof.Proof) -> Result:
    grave = [f for f in proof.findings if f.weight]
    nodes = tuple(dict.fromkeys(f.where.node for f in grave if f.where.node))
    blamed = next((f for f in grave if f.where.node), grave[0] if grave else None)
    return Result(
        proof.verdict != "ship",
        "; ".join(f"{f.code} {f.message}"[:200] for f in grave[:2]),
        nodes,
        tuple(dict.fromkeys(f.code for f in grave)),
        blamed.where.module if blamed else None,
        blamed.where.line if blamed else None,
        blamed.stage if blamed else None,
        proof.timing.stages.get("trial", 0.0),
    )


# --- recipes --------------------------------------------------------------------------------------------------------


def _random(subject: Subject, batch: int | None, seed: int) -> Arrays:
    """Random inputs at a batch size (None: the example's)."""
    rng = np.random.default_rng(seed)
    values: Arrays = {}
    for name, tensor in subject.inputs.tensors.items():
        example = to_numpy(tensor)
        shape = list(example.shape)
        if batch is not None and 0 in subject.dynamic.get(name, {}):
            shape[0] = batch
        if example.dtype.kind == "f":
            values[name] = rng.standard_normal(shape).astype(example.dtype)
        elif example.dtype.kind == "b":
            values[name] = rng.integers(0, 2, shape).astype(bool)
        else:
            low, high = (int(example.min()), int(example.max())) if example.size else (0, 1)
            values[name] = rng.integers(low, high + 1, shape).astype(example.dtype)
    return values


def _torch_outputs(subject: Subject, values: Arrays) -> list[np.ndarray]:
    module = FlatModule(subject)
    with enter_eval(subject.module), torch.no_grad():
        return [to_numpy(t) for t in module(*(to_torch(values[name]) for name in subject.inputs.tensors))]


def _ort_outputs(session: onnxruntime.InferenceSession, subject: Subject, values: Arrays) -> list[np.ndarray]:
    """As scripts do it: inputs by name where the names agree, else by position."""
    declared = [i.name for i in session.get_inputs()]
    names = list(subject.inputs.tensors)
    feed = {name: values[name] if name in values else values[names[i]] for i, name in enumerate(declared)}
    return session.run(None, feed)


def _session(item: Item) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(item.onnx), options, providers=["CPUExecutionProvider"])


def _recipe(
    batches: Sequence[int | None], check: Callable[[np.ndarray, np.ndarray], bool]
) -> Callable[[Item, Path], Result]:
    """A script that compares outputs pair by pair at some batch sizes."""

    def run(item: Item, folder: Path) -> Result:
        subject = make_subject(item.module, item.inputs)
        try:
            session = _session(item)
            for i, batch in enumerate(batches):
                values = _random(subject, batch, i)
                pairs = zip(_torch_outputs(subject, values), _ort_outputs(session, subject, values), strict=False)
                for expected, got in pairs:
                    if not check(expected, np.asarray(got)):
                        return Result(True, f"differs at batch {batch}")
        except Exception as error:
            return Result(True, f"{type(error).__name__}: {error}"[:200])
        return Result(False)

    return run


def _allclose(expected: np.ndarray, got: np.ndarray) -> bool:
    return bool(np.allclose(expected, got, atol=1e-4, rtol=1e-3))


def _max_diff(expected: np.ndarray, got: np.ndarray) -> bool:
    return bool(np.abs(np.asarray(expected, np.float64) - np.asarray(got, np.float64)).max(initial=0.0) <= 1e-3)


def _assert_close(expected: np.ndarray, got: np.ndarray) -> bool:
    try:
        torch.testing.assert_close(torch.as_tensor(got), torch.as_tensor(expected))
    except AssertionError:
        return False
    return True


def _optimum(expected: np.ndarray, got: np.ndarray) -> bool:
    return expected.shape == got.shape and bool(np.allclose(expected, got, atol=1e-5))


# --- torch.onnx.verification ----------------------------------------------------------------------------------------


def torch_verification(item: Item, folder: Path) -> Result:
    """`verify_onnx_program` on the exported program and the file; its exporter's thresholds: abs 5e-3, rel 1e-1."""
    import onnx_ir
    from torch.onnx.verification import verify_onnx_program

    subject = make_subject(item.module, item.inputs)
    leaves = tuple(subject.inputs.tensors.values())
    try:
        with enter_eval(subject.module), torch.no_grad():
            program = torch.onnx.export(FlatModule(subject), leaves, None, dynamo=True, verbose=False, optimize=False)
            assert program is not None
            candidate = torch.onnx.ONNXProgram(onnx_ir.load(item.onnx), program.exported_program)
            infos = verify_onnx_program(candidate, args=leaves)
    except Exception as error:
        return Result(True, f"{type(error).__name__}: {error}"[:200])
    bad = [i.name for i in infos if i.max_abs_diff >= 5e-3 or i.max_rel_diff >= 1e-1]
    return Result(bool(bad), ", ".join(bad))


# --- Polygraphy -----------------------------------------------------------------------------------------------------


class Polygraphy:
    """The real one, in an environment of its own: its data loader, its runner, its comparison with its defaults."""

    def __init__(self) -> None:
        script = Path(__file__).parent / "polygraphy_peer.py"
        self._process = subprocess.Popen(
            [str(POLYGRAPHY), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def _ask(self, **order: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def __call__(self, item: Item, folder: Path) -> Result:
        subject = make_subject(item.module, item.inputs)
        fed, torch_side = folder / "polygraphy-inputs.npz", folder / "polygraphy-torch.npz"
        made = self._ask(do="inputs", model=str(item.onnx), out=str(fed))
        if "error" in made:
            return Result(True, made["error"])
        with np.load(fed) as archive:
            given = {name: archive[name] for name in archive.files}
        names = list(subject.inputs.tensors)
        by_name = all(name in given for name in names)
        values = {
            name: given[name] if by_name else list(given.values())[i]
            for i, name in enumerate(names)
            if by_name or i < len(given)
        }
        for name, tensor in subject.inputs.tensors.items():
            values.setdefault(name, to_numpy(tensor))
        try:
            outputs = _torch_outputs(subject, values)
        except Exception as error:
            return Result(True, f"PyTorch: {type(error).__name__}: {error}"[:200])
        labels = made["outputs"]
        np.savez(torch_side, **{labels[i] if i < len(labels) else f"missing_{i}": o for i, o in enumerate(outputs)})
        told = self._ask(do="compare", model=str(item.onnx), inputs=str(fed), torch=str(torch_side))
        return Result(told["alarm"], told.get("why", ""))


VERIFIERS: dict[str, Callable[[], Callable[[Item, Path], Result]]] = {
    "onnxproof": lambda: OURS.defaults,
    "onnxproof --search": lambda: OURS.search,
    "onnxproof, normal inputs only": lambda: OURS.normal_only,
    "tutorial allclose 1e-4/1e-3": lambda: _recipe((1, 2, 4), _allclose),
    "max diff 1e-3": lambda: _recipe((None,), _max_diff),
    "torch.testing.assert_close": lambda: _recipe((None,), _assert_close),
    "optimum's rule (1e-5, batch 2)": lambda: _recipe((2,), _optimum),
    "torch.onnx.verification": lambda: torch_verification,
    "Polygraphy": Polygraphy,
}
