"""What a model carries from step to step: outputs that are the next step's inputs, known by their names and shapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onnxproof.errors import InputError, list_names

# Names → tensors or arrays: their forms are all that counts here.
Formed = Mapping[str, Any]
# What the two ends of one state are told apart by: no part of its own name.
MARKS = frozenset(
    "past present previous prev last next new old in out input output inputs outputs updated cur current final initial init "
    "n t cache cached kv layers layer attention".split()
)
# Words for what is kept from step to step.
KEPT = frozenset(
    "h c hx cx hidden cell state states carry mem mems memory memories past present cache cached prev previous kv key value "
    "rnn lstm gru".split()
)
ALIKE = dict(
    pair.split("=") for pair in "keys=key values=value states=state k=key v=value self=decoder cross=encoder".split()
)
# `past_key_values` is one word; `key` and `value` after it are others.
WORD = re.compile(r"key_?values?(?![a-z])|[a-z]+|\d+")
# The parts of a layer in the tuples that caches were before they were objects.
LEGACY = (("key",), ("value",), ("encoder", "key"), ("encoder", "value"))
PAST = re.compile(r"past(_key_values?)?(?=[._\[])")
# Outputs that the module gives no name.
NAMELESS = re.compile(r"output(_\d+)?(\[.*)?$")


def _split_words(name: str) -> list[str]:
    found = ("kv" if word.startswith(("key_", "keyv")) else word for word in WORD.findall(name.lower()))
    # hn and cn are what becomes of h and c, stateN of state.
    short = (word[:-1] if word[-1] in "nN" and word[:-1] in KEPT else word for word in found)
    return [ALIKE.get(word, word) for word in short]


def read_stem(name: str) -> tuple[str, ...]:
    """A name without what tells a state's input from its output: the same for `past_key_values.0.key`, `present.0.key` and
    `past_key_values_key_cache_0`."""
    words = _split_words(name)
    own = [word for word in words if word not in MARKS]
    if "kv" in words and len(own) == 2 and all(word.isdecimal() for word in own) and int(own[1]) < len(LEGACY):
        own = [own[0], *LEGACY[int(own[1])]]
    # The self-attention of a decoder is its own cache.
    return tuple(sorted(own if "encoder" in own else [word for word in own if word != "decoder"]))


def name_after(name: str) -> str:
    """The name of an output that is called like the input it becomes: what was past is present."""
    return PAST.sub("present", name) if PAST.match(name) else f"{name}_out"


def is_kept(name: str) -> bool:
    """Whether an input's name says that it is kept from step to step."""
    return not KEPT.isdisjoint(_split_words(name))


def guess_state(inputs: Formed, outputs: Formed) -> dict[str, str]:
    """Output → the input that it is in the next step, where names and shapes say so. Something must be left that drives the steps."""
    kept = [name for name in inputs if is_kept(name)]
    pairs = _pair_ends(kept, inputs, outputs)
    # What goes round beside a state is one too, whatever it is called, as long as something drives the steps.
    others = _pair_ends([name for name in inputs if name not in kept], inputs, outputs) if pairs else {}
    if {*pairs}.isdisjoint(others) and len(pairs) + len(others) < len(inputs):
        pairs |= others
    lonely = [name for name in kept if name not in pairs.values()]
    nameless = [out for out in outputs if NAMELESS.match(out) and out not in pairs][-len(lonely) :] if lonely else []
    if len(nameless) == len(lonely) and all(map(follows, (inputs[n] for n in lonely), (outputs[o] for o in nameless))):
        pairs |= dict(zip(nameless, lonely, strict=True))
    return pairs if len(set(pairs.values())) == len(pairs) < len(inputs) else {}


def _pair_ends(names: Iterable[str], inputs: Formed, outputs: Formed) -> dict[str, str]:
    return {out: name for name in names if (out := _find_end(name, inputs[name], outputs)) is not None}


def _find_end(name: str, value: Any, outputs: Formed) -> str | None:
    """The one output that has the stem of an input and its form; `h0` ends in `hn`."""
    stem = read_stem(name)
    for wanted in dict.fromkeys((stem, tuple(word for word in stem if word != "0"))):
        ends = [
            o
            for o, made in outputs.items()
            if not NAMELESS.match(o) and read_stem(o) == wanted and follows(value, made)
        ]
        if len(ends) == 1:
            return ends[0]
    return None


def read_state(asked: Sequence[str], inputs: Formed, outputs: Formed, others: Mapping[str, str]) -> dict[str, str]:
    """Output → input as the user wrote it, `OUTPUT=INPUT` or the other way round, names or the beginnings of several.

    `others`: what the file calls outputs → what the module calls them.
    """
    pairs: dict[str, str] = {}
    for text in asked:
        left, _, right = text.partition("=")
        found = _read_pair(left, right, inputs, outputs, others) or _read_pair(right, left, inputs, outputs, others)
        if not found:
            raise InputError(
                f"--state {text}: expected OUTPUT=INPUT of one form; the outputs are {list_names(outputs)}, "
                f"the inputs {list_names(inputs)}"
            )
        pairs |= found
    return pairs


def _read_pair(out: str, into: str, inputs: Formed, outputs: Formed, others: Mapping[str, str]) -> dict[str, str]:
    ends = [others.get(name, name) for name in list_members(out, [*outputs, *others])]
    kept = list_members(into, inputs)
    if len(set(ends)) == len(kept) == 1:
        return {ends[0]: kept[0]} if follows(inputs[kept[0]], outputs[ends[0]]) else {}
    fitting = {(o, i) for o in ends for i in kept if read_stem(o) == read_stem(i) and follows(inputs[i], outputs[o])}
    return dict(sorted(fitting)) if kept and len(fitting) == len(kept) else {}


def list_members(prefix: str, names: Iterable[str]) -> list[str]:
    """The one of this name, or all that begin with it."""
    known = list(names)
    return [prefix] if prefix in known else [name for name in known if name.startswith((f"{prefix}.", f"{prefix}["))]


def follows(before: Any, after: Any) -> bool:
    """Whether a value can take another's place: the same form, or longer in one dimension; a file in half floats gives such."""
    fits = before.dtype == after.dtype or is_half_of(str(before.dtype), str(after.dtype))
    return fits and find_growth(before.shape, after.shape) is not None


def is_half_of(dtype: str, other: str) -> bool:
    """Whether the other is a half float where the first is a wider one."""
    return other.endswith("float16") and dtype.endswith(("float32", "float64"))


def find_growth(before: Sequence[int], after: Sequence[int]) -> tuple[int, int] | None:
    """The dimension in which a state grows, and by how much: (0, 0) where it keeps its form, None where it takes another."""
    if len(before) != len(after):
        return None
    grown = [(dim, b - a) for dim, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    return (0, 0) if not grown else grown[0] if len(grown) == 1 and grown[0][1] > 0 else None
