"""Whether a changed file answers something else, by brute force: both files on the runtime, beside the module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.jury.program import Program, load

SCALES = (1.0, 1.0, 0.3, 3.0)
ROUNDS = 3
# A difference shows when it is so many times what module and right file differ by, and so much of the output's scale.
BEYOND, LEAST = 30.0, 4e-6


@dataclass(frozen=True)
class Answer:
    """How a changed file differs: `no`, `refused` (it does not run), or `yes` and by how much."""

    differs: str
    size: float = 0.0
    """Of the output's scale; 1 where integers, shapes or NaN differ."""
    share: float = 0.0
    """Of the inputs that were tried."""


def make_inputs(program: Program) -> Iterator[tuple[dict[str, Any], float]]:
    """Plausible inputs: some sizes, values around one."""
    generator = torch.Generator().manual_seed(7)
    free = [{}, {"batch": 3, "seq": 7}, {"batch": 1, "seq": 2}, {"batch": 7, "seq": 4}]
    for round_ in range(ROUNDS):
        for sizes, scale in zip(free, SCALES, strict=True):
            place = {**program.sizes, **{k: v for k, v in sizes.items() if k in program.free}}
            torch.manual_seed(int(torch.randint(0, 1 << 30, (), generator=generator)) + round_)
            made = {port.name: eval(port.write(place), {"torch": torch}) for port in program.ports}
            yield {n: v * scale if v.is_floating_point() else v for n, v in made.items()}, scale


def ask(program: Program, right: bytes, changed: bytes) -> Answer:
    """What brute force says."""
    try:
        sessions = [_open(right), _open(changed)]
    except Exception:
        return Answer("refused")
    model, _ = load(program.write())
    names = [port.name for port in sessions[0].get_inputs()]
    gaps: list[list[Gap]] = []
    for inputs, _ in make_inputs(program):
        feed = {name: inputs[name].numpy() for name in names}
        with torch.no_grad():
            told = model(*(inputs[port.name] for port in program.ports))
        truth = [one.numpy() for one in (told if isinstance(told, tuple) else (told,))]
        try:
            answers = [session.run(None, feed) for session in sessions]
        except Exception:
            return Answer("refused")
        gaps.append([measure(*three) for three in zip(truth, *answers, strict=True)])
    return judge(gaps)


@dataclass(frozen=True)
class Gap:
    """One output of one input: how far the right file and the changed one are from each other and from the module."""

    noise: float
    change: float
    scale: float


def measure(truth: np.ndarray, right: np.ndarray, changed: np.ndarray) -> Gap:
    if changed.shape != right.shape or changed.dtype != right.dtype:
        return Gap(0.0, np.inf, 1.0)
    if truth.dtype.kind != "f":
        return Gap(float((truth != right).any()), float((right != changed).any()), 1.0)
    if not (np.isfinite(truth).all() and np.isfinite(right).all()):
        return Gap(np.inf, 0.0, 1.0)
    if not np.isfinite(changed).all():
        return Gap(0.0, np.inf, 1.0)
    wide = [one.astype(np.float64) for one in (truth, right, changed)]
    scale = float(np.sqrt(np.mean(wide[0] ** 2))) if truth.size else 1.0
    noise = float(np.abs(wide[1] - wide[0]).max(initial=0.0))
    return Gap(noise, float(np.abs(wide[2] - wide[1]).max(initial=0.0)), scale)


def judge(gaps: list[list[Gap]]) -> Answer:
    """Per output: beyond the noise of any input, and of a size that counts."""
    size, shown = 0.0, set[int]()
    for output in range(len(gaps[0])):
        column = [row[output] for row in gaps]
        noise = max(gap.noise / (gap.scale or 1.0) for gap in column)
        for place, gap in enumerate(column):
            change = gap.change / (gap.scale or 1.0)
            if change > max(BEYOND * noise, LEAST):
                shown.add(place)
                size = max(size, min(change, 1.0))
    return Answer("yes", size, len(shown) / len(gaps)) if shown else Answer("no")


def _open(model: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


Sizes = Mapping[str, int]
