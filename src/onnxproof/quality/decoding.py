"""Two ways to continue a prompt: the module over whole sequences, and a file step by step, with its cache where it has one."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from onnxproof.candidates.candidate import Session
from onnxproof.errors import FindingError, InputError, Rejected, list_names
from onnxproof.findings import found
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner, Unavailable
from onnxproof.proof.artifact import Artifact, Port
from onnxproof.subject.subject import Subject, read_parameters
from onnxproof.tensors.arrays import Array, Arrays
from onnxproof.tensors.conversion import to_numpy

IDS, MASK, POSITIONS, DECODER_IDS = "input_ids", "attention_mask", "position_ids", "decoder_input_ids"
STATES = "encoder_hidden_states"


@dataclass(frozen=True)
class Prompts:
    """Token ids of some prompts, one row each, with 0 in the mask where a row is padded."""

    ids: Array
    mask: Array

    @property
    def padded(self) -> bool:
        """Whether any row has less than all places."""
        return bool((self.mask == 0).any())


def count_positions(mask: Array) -> Array:
    """The position of every token among those that count, as `generate` of transformers has them."""
    return np.asarray(np.maximum(np.cumsum(mask, axis=1) - 1, 0), np.int64)


def extend(mask: Array, count: int) -> Array:
    """The mask with so many more tokens."""
    return np.concatenate([mask, np.ones((len(mask), count), mask.dtype)], axis=1)


class Speaker:
    """The module: it is told a prompt and its continuation, and answers with the scores of every next token at once."""

    def __init__(self, subject: Subject) -> None:
        self._subject, module = subject, subject.module
        known, given = {p.name for p in read_parameters(module)}, subject.inputs.tensors
        self.two_parts = DECODER_IDS in known
        """Whether there is an encoder for the prompt and a decoder for the continuation."""
        whole = [name for name, tensor in given.items() if tensor.dtype in (torch.int64, torch.int32)]
        if not whole:
            raise InputError("--task generate needs a module that takes token ids; no input of it is of integers")
        self.ids = IDS if IDS in given else whole[0]
        self._mask = MASK if MASK in known else None
        self._positions = POSITIONS if POSITIONS in known else None
        self._settings: dict[str, Any] = {"use_cache": False} if "use_cache" in known else {}
        self._runners: dict[tuple[str, ...], tuple[EagerRunner, DoubleRunner | None]] = {}
        config = getattr(module, "config", None)
        self.start = getattr(config, "decoder_start_token_id", None) or 0
        ends = getattr(config, "eos_token_id", None)
        self.ends: list[int] = ends if isinstance(ends, list) else [] if ends is None else [ends]

    def tell(self, prompts: Prompts, told: Array) -> dict[str, Array]:
        """What the module is given: the prompt and the tokens after it."""
        if self.two_parts:
            first = np.full((len(told), 1), self.start, told.dtype)
            inputs = {self.ids: prompts.ids, DECODER_IDS: np.concatenate([first, told], axis=1)}
            return {**inputs, self._mask: prompts.mask} if self._mask is not None else inputs
        mask, inputs = extend(prompts.mask, told.shape[1]), {self.ids: np.concatenate([prompts.ids, told], axis=1)}
        if self._mask is not None:
            inputs[self._mask] = mask
        if self._positions is not None and prompts.padded:
            inputs[self._positions] = count_positions(mask)
        return inputs

    def window(self, prompts: Prompts, count: int) -> tuple[int, int]:
        """The places of the scores of `count` next tokens."""
        first = 0 if self.two_parts else prompts.ids.shape[1] - 1
        return first, first + count

    def runners(self, inputs: Arrays) -> tuple[EagerRunner, DoubleRunner | None]:
        """The module as it is, and in float64, for inputs of these names."""
        if tuple(inputs) in self._runners:
            return self._runners[tuple(inputs)]
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in inputs.items()}
        subject = Subject(self._subject.module, (), {**tensors, **self._settings}, self._subject.name)
        try:
            double = DoubleRunner(subject)
        except Unavailable:
            double = None
        return self._runners.setdefault(tuple(inputs), (EagerRunner(subject), double))

    def encode(self, prompts: Prompts) -> Array:
        """What the module's own encoder makes of a prompt."""
        with torch.no_grad():
            given = {self.ids: torch.from_numpy(prompts.ids), MASK: torch.from_numpy(prompts.mask)}
            return to_numpy(self._subject.module.eval().get_encoder()(**given).last_hidden_state)  # type: ignore[operator]  # transformers


def find_scores(outputs: Arrays, told: str) -> str:
    """The output with a score for every token of the vocabulary."""
    fitting = [name for name, array in outputs.items() if array.ndim in (2, 3) and array.dtype.kind == "f"]
    if not fitting:
        raise InputError(f"--task generate: {told} answers no scores of tokens; it answers {list_names(outputs)}")
    return next((name for name in fitting if "logits" in name), fitting[0])


@dataclass(frozen=True)
class Step:
    """One step of a file: what it was given, and what it answered."""

    inputs: Arrays
    scores: Array
    """Of the last token; one row for each prompt."""
    whole: Array | None = None
    """Of all tokens that it was given, where it answers so."""


class Decoder:
    """A file that is asked for one token after the other."""

    def __init__(self, artifact: Artifact, session: Session, speaker: Speaker) -> None:
        self._session, self._speaker = session, speaker
        self._ports = {port.name: port for port in artifact.inputs}
        self._states = {n: p for n, p in self._ports.items() if "past" in n and n != "past_length" and p.shape}
        outputs = [port.name for port in artifact.outputs if "present" in port.name or "past" in port.name]
        self._next = pair_states(list(self._states), outputs)
        whole = [n for n, p in self._ports.items() if p.dtype in ("int64", "int32") and len(p.shape or ()) == 2]
        self._ids = next((n for n in (DECODER_IDS, speaker.ids, IDS) if n in self._ports), next(iter(whole), ""))
        known = {self._ids, IDS, speaker.ids, MASK, POSITIONS, STATES, "encoder_attention_mask", "use_cache_branch"}
        strange = [name for name in self._ports if name not in known and name not in self._states]
        if strange or not self._ids:
            message = f"the file takes {list_names(strange or self._ports)}, which generation does not know"
            raise InputError(f"{message}: expected token ids, {MASK}, {POSITIONS} and a cache whose names have 'past'")

    @property
    def cached(self) -> bool:
        """Whether it has a cache."""
        return bool(self._states)

    def steps(self, prompts: Prompts) -> Generator[Step, Array, None]:
        """One step after the other; the next token is sent in."""
        rows, two_parts = len(prompts.ids), self._speaker.two_parts
        ids = np.full((rows, 1), self._speaker.start, np.int64) if two_parts else prompts.ids
        mask, past = (np.ones_like(ids) if two_parts else prompts.mask), self._empty(rows)
        encoded = self._speaker.encode(prompts) if STATES in self._ports else None
        told = ids
        while True:
            positions = count_positions(mask)[:, -told.shape[1] :]
            known: dict[str, Any] = {POSITIONS: positions, MASK: mask, self._ids: told, STATES: encoded, **past}
            known["use_cache_branch"] = np.array([told is not ids])
            if two_parts:
                known |= {MASK: prompts.mask, "encoder_attention_mask": prompts.mask}
                known |= {self._speaker.ids: prompts.ids} if self._speaker.ids != self._ids else {}
            inputs = {n: self._cast(n, known[n]) for n in self._ports if known.get(n) is not None}
            outputs = self._run(inputs)
            scores = outputs[
                find_scores({n: a for n, a in outputs.items() if n not in self._next.values()}, "the file")
            ]
            chosen = yield Step(
                inputs, scores if scores.ndim == 2 else scores[:, -1], scores if scores.ndim == 3 else None
            )
            past = {name: outputs[after] for name, after in self._next.items()}
            mask = extend(mask, 1)
            told = chosen[:, None] if self.cached else np.concatenate([told, chosen[:, None]], axis=1)

    def _run(self, inputs: Arrays) -> dict[str, Array]:
        try:
            return self._session.run(inputs)
        except Rejected as error:
            message = f"onnxruntime refuses a step of a generation: {str(error).splitlines()[0][:300]}"
            raise FindingError(found("OX501", message, evidence={"error": str(error)[:2000]})) from error

    def _cast(self, name: str, array: Array) -> Array:
        dtype = self._ports[name].dtype
        return array if dtype == "unknown" else array.astype(dtype)

    def _empty(self, rows: int) -> dict[str, Array]:
        return {name: np.zeros(_empty_shape(port, rows), np.float32) for name, port in self._states.items()}


def _empty_shape(port: Port, rows: int) -> list[int]:
    """A cache without a token: sizes that are no numbers are the batch, and then the length."""
    sizes = list(port.shape or ())
    open_sizes = [i for i, size in enumerate(sizes) if not isinstance(size, int)]
    free = {at: 0 if number or at else rows for number, at in enumerate(open_sizes)}
    return [size if isinstance(size, int) else free[at] for at, size in enumerate(sizes)]


def pair_states(past: Sequence[str], present: Sequence[str]) -> Mapping[str, str]:
    """Input of the cache → the output that is its next value: by name, else by position."""
    plain = {
        name.replace("present_key_values", "past_key_values").replace("present", "past_key_values"): name
        for name in present
    }
    if all(name in plain for name in past):
        return {name: plain[name] for name in past}
    if len(past) != len(present):
        raise InputError(
            f"the file takes {len(past)} parts of a cache ({list_names(past[:4])}, …) and answers {len(present)} "
            f"({list_names(present[:4])}, …): expected as many"
        )
    return dict(zip(past, present, strict=True))
