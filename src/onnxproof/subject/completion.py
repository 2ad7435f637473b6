"""What a file asks for and the example leaves out, where it follows from the rest of the example."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import torch

from onnxproof.request.specs import Range
from onnxproof.subject.state import is_kept
from onnxproof.subject.subject import Subject, read_parameters

Tensors = Mapping[str, torch.Tensor]
# Whether a file of two branches is to read its cache.
BRANCH = "use_cache_branch"


def complete(subject: Subject, asked: Collection[str]) -> Subject:
    """The subject with the inputs of a file that the example has not: the module's own parameters, else the file's alone."""
    given = subject.inputs.tensors
    known = {parameter.name for parameter in read_parameters(subject.module)}
    missing = [name for name in asked if name not in given]
    own = {name: made for name in missing if name in known and (made := _make(name, given)) is not None}
    if BRANCH in missing and any(map(is_kept, given)):
        branch = torch.tensor([True])
        subject = replace(subject, foreign={**subject.foreign, BRANCH: branch}, ranges={BRANCH: Range(1, 1)})
    return replace(subject, kwargs={**subject.kwargs, **own}, completed=tuple(own)) if own else subject


def _make(name: str, given: Tensors) -> torch.Tensor | None:
    """What transformers takes where it is not told; None for what it does not know by itself."""
    ids = next((given[n] for n in ("input_ids", "decoder_input_ids") if n in given), None)
    if ids is None or ids.ndim != 2:
        return None
    past = next((t.shape[-2] for n, t in given.items() if is_kept(n) and t.ndim == 4), 0)
    whole = torch.ones(len(ids), past + ids.shape[1], dtype=torch.int64)
    mask = given.get("attention_mask", whole)
    counted = mask.long() if mask.shape == whole.shape else whole
    made = {
        "position_ids": (counted.cumsum(-1) - 1).clamp(min=0)[:, past:].contiguous(),
        "cache_position": torch.arange(past, whole.shape[1]),
        "token_type_ids": torch.zeros_like(ids),
        "attention_mask": whole,
    }
    return made.get(name)
