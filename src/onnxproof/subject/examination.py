"""A look at the module before it is exported: its mode, its determinism, what it changes."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from onnxproof.findings import Finding, Where, found
from onnxproof.findings.frames import find_running_line
from onnxproof.subject.determinism import HIGH, LOW, read_generators, watch_draws
from onnxproof.subject.mode import (
    enter_eval,
    find_trained,
    hold_at_rest,
    keep_surroundings,
    preserve_buffers,
    read_kept,
)
from onnxproof.subject.module_copy import copy_module
from onnxproof.subject.structure import flatten
from onnxproof.subject.subject import Subject
from onnxproof.system import end_twin

# Elements of a parameter that are held against what they were.
SAMPLED = 4096


def examine(subject: Subject, weights: Mapping[str, torch.Tensor] | None = None) -> list[Finding]:
    """What is wrong with the module itself, whatever the exporter does; `weights` are samples from before it was first run."""
    findings = _examine_mode(subject)
    with enter_eval(subject.module), torch.no_grad():
        before = read_kept(subject.module), sample_weights(subject) if weights is None else weights
        fed = subject.copies()
        chance = read_generators()
        with preserve_buffers(subject.module):
            first = _collect_outputs(subject, fed)
            # Here, since nothing differs any more once the buffers are put back.
            findings += _examine_mutation(subject, *before, fed)
        drawn = read_generators() != chance
        others = [_run_alone(subject), *(_run_rare(subject) if drawn else [])]
    random = next(filter(None, (_find_differing(first, other) for other in others)), {})
    return findings + (_examine_randomness(subject, random) if random else [])


def _run_rare(subject: Subject) -> list[dict[str, torch.Tensor]]:
    """What the module answers when the rarest numbers are drawn."""
    try:
        return [_run_again(subject, LOW), _run_again(subject, HIGH)]
    except Exception:
        return []  # what it does with plain numbers it may not do while they are watched (torch.cond)


def _run_alone(subject: Subject) -> dict[str, torch.Tensor]:
    """Another run on the same inputs, on a stack that is not ours: a module may look at who calls it."""
    try:
        args, kwargs = subject.inputs.rebuild(subject.copies())
        begin, own = threading.Event(), os.getpid()
        with preserve_buffers(subject.module), keep_surroundings(), ThreadPoolExecutor(1) as pool:
            pool.submit(begin.wait)
            asked = pool.submit(torch.no_grad()(subject.module), *args, **kwargs)
            # Before it begins: a twin that it forks has this thread alone, and would wait there for ever.
            asked.add_done_callback(lambda _: end_twin(own))
            begin.set()
            answer = asked.result()
            return {name: tensor.clone() for name, tensor in flatten(answer).tensors.items()}
    except Exception:
        return _run_again(subject)  # it cannot be asked from another thread


def _run_again(subject: Subject, forced: float | None = None) -> dict[str, torch.Tensor]:
    """Another run on the same inputs; with a number given, generators give it."""
    with preserve_buffers(subject.module), watch_draws(forced) if forced is not None else nullcontext():
        return _collect_outputs(subject, subject.copies())


STATE = (
    "Make the state an input and an output of the module (or leave it out): a graph holds nothing between calls. "
    "OX144 names the attributes that a forward changes."
)


def _collect_outputs(subject: Subject, leaves: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in flatten(subject.call(leaves)).tensors.items()}


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal in shape, dtype and every element; NaN equals NaN."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())


def sample_weights(subject: Subject) -> dict[str, torch.Tensor]:
    """Some elements of every parameter: who writes into one seldom writes into a few of its elements only."""
    flat = {name: p.detach().reshape(-1) for name, p in subject.module.named_parameters() if p.is_contiguous()}
    return {name: values[:: max(1, values.numel() // SAMPLED)].clone() for name, values in flat.items()}


def _examine_mutation(
    subject: Subject, before: dict[str, torch.Tensor], weights: Mapping[str, torch.Tensor], fed: Sequence[torch.Tensor]
) -> list[Finding]:
    given, now = subject.inputs.tensors, read_kept(subject.module)
    changed = [name for (name, tensor), after in zip(given.items(), fed, strict=True) if not _same(tensor, after)]
    buffers = [name for name, tensor in before.items() if name not in now or not _same(tensor, now[name])]
    after_weights = sample_weights(subject)
    written = [name for name, tensor in weights.items() if not _same(tensor, after_weights.get(name, tensor[:0]))]
    if not changed and not buffers and not written:
        return []
    what = [f"input {name}" for name in changed] + [f"buffer {name}" for name in buffers]
    what += [f"weight {name}" for name in written]
    message = f"a forward in eval mode changes {', '.join(what[:5])}: an ONNX graph cannot"
    where = _find_write(subject, {*changed, *buffers, *written})
    evidence = {"inputs": changed, "buffers": buffers} | ({"weights": written} if written else {})
    return [found("OX113", message, where=where, evidence=evidence)]


def _find_write(subject: Subject, changed: Collection[str]) -> Where:
    """The first line that writes into an input or a buffer."""
    fed = {name: tensor.clone() for name, tensor in subject.inputs.tensors.items()}
    watched = {**dict(subject.module.named_parameters()), **dict(subject.module.named_buffers()), **fed}
    # By their storage: a forward may write through a view.
    watch = _Writes({tensor.untyped_storage().data_ptr() for name, tensor in watched.items() if name in changed})
    try:
        with hold_at_rest(subject.module), watch:
            _collect_outputs(subject, list(fed.values()))
    except Exception:
        return Where()  # torch.cond does not run while it is watched
    return watch.place


class _Writes(TorchDispatchMode):
    """Watches for operators that write into some storages."""

    def __init__(self, storages: Collection[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not type it
        self._storages = storages
        self.place = Where()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        written = [
            value
            for argument, value in zip(func._schema.arguments, args, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write and isinstance(value, torch.Tensor)
        ]
        if self.place.file is None and any(value.untyped_storage().data_ptr() in self._storages for value in written):
            self.place = find_running_line()
        return func(*args, **(kwargs or {}))


def _find_differing(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> dict[str, dict[str, float]]:
    """Outputs that two runs on the same input give differently → how far apart."""
    return {name: _measure_distance(a, second.get(name)) for name, a in first.items() if _far(a, second.get(name))}


def _examine_randomness(subject: Subject, differing: dict[str, dict[str, float]]) -> list[Finding]:
    """A finding for each of these outputs, with the line that draws random numbers, if one does."""
    with hold_at_rest(subject.module), watch_draws() as watch:
        _collect_outputs(subject, subject.copies())
    if watch.seen:
        (op, place), help = watch.seen[0], None
        why = f"the module is random ({op} draws numbers)"
    else:
        place, help = Where(), STATE
        why = "nothing draws random numbers, so it keeps state from call to call (or looks at who calls it)"
    told = "eager runs in eval mode on the same input differ in"
    return [
        found("OX103", f"{told} {name}: {why}", where=replace(place, output=name), evidence=distance, help=help)
        for name, distance in differing.items()
    ]


def _measure_distance(a: torch.Tensor, b: torch.Tensor | None) -> dict[str, float]:
    if b is None or a.shape != b.shape or a.dtype == torch.bool or a.is_complex() or not a.numel():
        return {}
    return {"max_abs": float((a.double() - b.double()).abs().nan_to_num().max())}


def _far(a: torch.Tensor, b: torch.Tensor | None) -> bool:
    """Differing by more than threads summing in another order could explain."""
    if b is None or a.shape != b.shape or not a.is_floating_point():
        return b is None or not _same(a, b)
    scale = a.double().abs().nan_to_num().max() if a.numel() else torch.tensor(0.0)
    slack = float(scale) * torch.finfo(a.dtype).eps * 100
    apart = (a.double() - b.double()).abs().nan_to_num(nan=float("inf"))
    return not _same(a, b) and bool((apart > slack).any())


MATTERS = ", where it answers differently; it was exported and verified in eval mode"
NO_MATTER = "; it makes no difference for this module"


def _examine_mode(subject: Subject) -> list[Finding]:
    trained = find_trained(subject.module)
    if not trained:
        return []
    matters, evidence = _mode_matters(subject), {"submodules": trained[:20], "count": len(trained)}
    message = f"the module was handed over in train mode{MATTERS if matters else NO_MATTER}"
    return [found("OX102", message, severity="review" if matters else "note", evidence=evidence)]


def _mode_matters(subject: Subject) -> bool:
    """Whether a copy of the module answers differently as it was handed over than in eval mode."""
    try:
        other = copy_module(subject.module)
        # Dropout draws: what comes after must see the same numbers as without this look.
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            with preserve_buffers(other):
                trained = flatten(subject.call(subject.copies(), other)).tensors
            with enter_eval(other):
                calm = flatten(subject.call(subject.copies(), other)).tensors
    except Exception:
        return True  # it cannot even run in train mode (batch of one, for instance), so the mode matters
    return any(_far(calm[name], trained[name]) for name in calm if name in trained)
