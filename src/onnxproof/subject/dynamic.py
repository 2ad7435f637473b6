"""Which dimensions are dynamic: the batch by default, the lengths of a cache, and what must stay as long as these, found by trying."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, product

import torch

from onnxproof.errors import InputError, list_names
from onnxproof.subject.mode import hold_at_rest
from onnxproof.subject.module_copy import copy_module
from onnxproof.subject.sizes import measure_size
from onnxproof.subject.state import find_growth, guess_state, is_kept, list_members, read_stem
from onnxproof.subject.structure import flatten
from onnxproof.subject.subject import Dims, Subject

Place = tuple[str, int]
# Bytes of weights up to which sizes are tried on a copy.
COPIED = 200_000_000
# Ways to take the batch that are tried.
MOST_BATCHES = 64


def resize_examples(subject: Subject, changed: Mapping[str, int]) -> list[torch.Tensor]:
    """The example inputs with some dynamic dimensions grown or shrunk by repeating what is there."""
    result, sizes = [], {**subject.sizes(), **changed}
    for name, tensor in subject.inputs.tensors.items():
        for dim, size in subject.dynamic.get(name, {}).items():
            have = tensor.shape[dim]
            wanted = measure_size(size, sizes, have)
            if have and wanted != have:
                tensor = tensor.index_select(dim, torch.arange(wanted) % have)
        result.append(tensor)
    return result


def accepts_sizes(subject: Subject, *names: str) -> bool:
    """Whether the module takes its example with these dimensions longer by one."""
    sizes = subject.sizes()
    return subject.accepts(resize_examples(subject, {name: sizes[name] + 1 for name in names if name in sizes}))


def read_asked(dynamic: Dims, tensors: Mapping[str, torch.Tensor]) -> Dims:
    """What the user asked for, checked; a prefix stands for every input under it."""
    checked: dict[str, dict[int, str]] = {}
    for asked, dims in dynamic.items():
        members = list_members(asked, tensors)
        if not members:
            raise InputError(
                f"--dynamic: the model has no input {list_names([asked])}; its inputs are {list_names(tensors)}"
            )
        for name in members:
            rank = tensors[name].ndim
            for dim in dims:
                if not -rank <= dim < rank:
                    raise InputError(f"--dynamic {asked}:{dim}: expected a dimension below {rank}, the rank of {name}")
            checked.setdefault(name, {}).update({dim % rank: size for dim, size in dims.items()})
    return checked


def _try_out(subject: Subject) -> Subject:
    """The subject with a module of its own to try sizes on: a forward may change whatever hangs on it. A large one is not copied."""
    if sum(p.numel() * p.element_size() for p in subject.module.parameters()) > COPIED:
        return subject
    with suppress(Exception):  # what cannot be copied is tried itself
        return replace(subject, module=copy_module(subject.module))
    return subject


def choose_default(subject: Subject) -> Subject:
    """The batch, and the lengths of a cache where the module takes others."""
    tensors, plain = subject.inputs.tensors, _choose_batch(subject)
    batched = replace(subject, dynamic=plain)
    trial = _try_out(subject) if any(is_kept(name) for name in tensors) else subject
    for lengths in _list_lengths(trial):
        merged = {n: {**plain.get(n, {}), **lengths.get(n, {})} for n in tensors if n in plain or n in lengths}
        longer = replace(trial, dynamic=merged)
        names = [name for name in longer.sizes() if name != "batch"]
        if all(accepts_sizes(longer, name) for name in names) and accepts_sizes(longer, *names):
            return replace(subject, dynamic=merged)
    return batched


def _choose_batch(subject: Subject) -> Dims:
    """The first dimension of all inputs that have as many rows as the first; others where the module takes more rows only so."""
    firsts = {name: tensor.shape[0] for name, tensor in subject.inputs.tensors.items() if tensor.ndim}
    plain = {name: {0: "batch"} for name, size in firsts.items() if size == next(iter(firsts.values()))}
    if len(firsts) < 2 or accepts_sizes(replace(subject, dynamic=plain), "batch"):
        return plain
    trial = _try_out(subject)
    if not trial.accepts(list(trial.inputs.tensors.values())):
        return plain
    proposed = (dims for have in dict.fromkeys(firsts.values()) for dims in _list_batches(trial, have))
    fitting = (dims for dims in proposed if accepts_sizes(replace(trial, dynamic=dims), "batch"))
    return next(fitting, plain)


def _list_batches(subject: Subject, have: int) -> Iterator[Dims]:
    """Where a batch of this size may be, the likely first: a recurrent state has it behind its layers, a table has none."""
    tensors = subject.inputs.tensors
    leader = next(name for name, tensor in tensors.items() if tensor.ndim and tensor.shape[0] == have)
    # Inputs of one form go together.
    places = {t.shape: [*(dim for dim, size in enumerate(t.shape) if size == have), None] for t in tensors.values()}
    choices = product(*(range(len(one)) for one in places.values()))
    for choice in islice(sorted(choices, key=sum), MOST_BATCHES):
        chosen = {shape: dims[i] for (shape, dims), i in zip(places.items(), choice, strict=True)}
        named = {name: {dim: "batch"} for name, t in tensors.items() if (dim := chosen[t.shape]) is not None}
        if named.get(leader) == {0: "batch"}:
            yield named


def _list_lengths(subject: Subject) -> Iterator[Dims]:
    """The lengths that a growing cache suggests, the most general first: past, new tokens, and what is as long as both."""
    tensors = subject.inputs.tensors
    if not any(is_kept(name) for name in tensors):
        return
    outputs: Mapping[str, torch.Tensor] = {}
    # A module that refuses its example says so in the next stage, with a better message.
    with suppress(Exception), hold_at_rest(subject.module):
        outputs = flatten(subject.call(subject.copies())).tensors
    state = guess_state(tensors, outputs)
    growth = {name: find_growth(tensors[name].shape, outputs[out].shape) for out, name in state.items()}
    growing = {name: grown for name, grown in growth.items() if grown is not None and grown[1]}
    sizes = {(tensors[name].shape[dim], more) for name, (dim, more) in growing.items()}
    if len(sizes) != 1:
        return
    past, new = sizes.pop()
    lengths = {name: {dim: "past"} for name, (dim, _) in growing.items()}
    driving = [name for name in tensors if name not in state.values()]
    total, fresh = _find_places(tensors, driving, past + new), _find_places(tensors, driving, new)
    crossing = [name for name in state.values() if name not in growing and "encoder" in read_stem(name)]
    for name in crossing[:1]:
        source = _find_places(tensors, [*crossing, *driving], tensors[name].shape[-2])
        yield _name_dims(lengths, {"past+seq": total, "seq": fresh, "source": source})
    yield _name_dims(lengths, {"past+seq": total, "seq": fresh})
    yield _name_dims(lengths, {f"past+{new}": total})


def _find_places(tensors: Mapping[str, torch.Tensor], names: Sequence[str], size: int) -> list[Place]:
    """Dimensions of this size, but for the first of several, which is the batch."""
    ranks = {name: tensors[name].shape for name in names}
    return [
        (n, d) for n, shape in ranks.items() for d, have in enumerate(shape) if have == size and (d or len(shape) == 1)
    ]


def _name_dims(dims: Dims, more: Mapping[str, Sequence[Place]]) -> Dims:
    named = {name: dict(own) for name, own in dims.items()}
    for size, places in more.items():
        for name, dim in places:
            named.setdefault(name, {})[dim] = size
    return named


def take_along(subject: Subject) -> tuple[Subject, list[str]]:
    """Dimensions that were not asked for and must follow one that was: the module refuses the one without the other."""
    tied, module, subject = list[str](), subject.module, _try_out(subject)
    for size, have in subject.sizes().items():
        if accepts_sizes(subject, size) or not subject.accepts(list(subject.inputs.tensors.values())):
            continue
        for places, name in _list_ties(subject, size, have):
            other = replace(subject, dynamic=_name_dims(subject.dynamic, {name: places}))
            if accepts_sizes(other, size):
                subject = other
                tied += [f"{leaf}:{dim}={name}" for leaf, dim in places]
                break
    return replace(subject, module=module), tied


def _list_ties(subject: Subject, size: str, have: int) -> Iterator[tuple[list[Place], str]]:
    """Dimensions that may have to follow a size, and by which name: as long as it is, or longer by something that stays."""
    tensors, known = subject.inputs.tensors, subject.dynamic
    free = [
        (name, dim, int(length))
        for name, tensor in tensors.items()
        for dim, length in enumerate(tensor.shape)
        if dim not in known.get(name, {})
    ]
    equal = [(name, dim) for name, dim, length in free if length == have]
    if equal:
        yield equal, size
        # Not every dimension of that length has to follow: those at the same place first, then one alone.
        asked = {dim for dims in known.values() for dim, name in dims.items() if name == size}
        yield [place for place in equal if place[1] in asked], size
        yield from (([place], size) for place in equal)
    others = {**subject.sizes(), **{str(n): n for n in {length - have for _, _, length in free if length > have}}}
    for other, more in others.items():
        longer = [(name, dim) for name, dim, length in free if length == have + more and other != size]
        if longer:
            yield longer, f"{size}+{other}"
