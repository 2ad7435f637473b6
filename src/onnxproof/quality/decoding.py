"""Two ways to continue a prompt: the module over whole sequences, and a file step by step, with its cache where it has one."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
# What an encoder made of a prompt, as exporters call it, and who may ask for what counts of it.
STATES, HEARD = ("encoder_hidden_states", "encoder_outputs.last_hidden_state"), "encoder_attention_mask"
# Whether a file of two branches is to read its cache, and the places of the tokens that a step is told.
BRANCH, PLACES, TOLD = "use_cache_branch", "cache_position", "decoder_attention_mask"
KNOWN = {IDS, MASK, POSITIONS, DECODER_IDS, *STATES, HEARD, BRANCH, PLACES, TOLD}


@dataclass(frozen=True)
class Prompts:
    """What is to be continued, one row each: token ids, or what an encoder hears or sees."""

    ids: Array
    mask: Array | None = None
    """0 where a row is padded; None where nobody says so."""

    @property
    def counted(self) -> Array:
        """The mask, of ones where nobody says otherwise."""
        return np.ones(self.ids.shape[:2], np.int64) if self.mask is None else self.mask

    @property
    def padded(self) -> bool:
        """Whether any row has less than all places."""
        return bool((self.counted == 0).any())

    def take(self, rows: Array) -> Prompts:
        """Some rows of them, or some of them several times."""
        return Prompts(self.ids[rows], None if self.mask is None else self.mask[rows])


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
        main = getattr(module, "main_input_name", IDS)  # transformers' name of what is continued, or heard
        self.ids: str = main if main in known else next(iter(given)) if self.two_parts else whole[0]
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
            return {**inputs, **self._mask_prompts(prompts)}
        mask, inputs = extend(prompts.counted, told.shape[1]), {self.ids: np.concatenate([prompts.ids, told], axis=1)}
        if self._mask is not None:
            inputs[self._mask] = mask
        if self._positions is not None and prompts.padded:
            inputs[self._positions] = count_positions(mask)
        return inputs

    def _mask_prompts(self, prompts: Prompts) -> dict[str, Array]:
        """What counts of a prompt, where the module asks and it is known: of a sound the data must say so."""
        known = prompts.mask is not None or prompts.ids.dtype.kind in "iu"
        return {self._mask: prompts.counted} if self._mask is not None and known else {}

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
        given = {self.ids: prompts.ids, **self._mask_prompts(prompts)}
        with torch.no_grad():
            encoder = self._subject.module.eval().get_encoder()  # type: ignore[operator]  # transformers
            return to_numpy(encoder(**{n: torch.from_numpy(a) for n, a in given.items()}).last_hidden_state)


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

    main: bool = True
    """Whether it was a step of the file that is proved, and not of one beside it."""


@dataclass(frozen=True)
class Choice:
    """The next token of each row; where rows go on that were chosen among others, which ones."""

    tokens: Array
    rows: Array | None = None


class Part:
    """One file of a model: which of its inputs are token ids and which a cache."""

    def __init__(self, artifact: Artifact, session: Session) -> None:
        self.session, self.name = session, Path(artifact.path).name
        self.ports = {port.name: port for port in artifact.inputs}
        self.states = {n: p for n, p in self.ports.items() if "past" in n and n != "past_length" and p.shape}
        self.present = [port.name for port in artifact.outputs if "present" in port.name or "past" in port.name]
        self.told_states = next((name for name in STATES if name in self.ports), None)

    @property
    def encodes(self) -> bool:
        """Whether it is an encoder: nobody tells it what was said so far."""
        return self.told_states is None and not (DECODER_IDS in self.ports or self.states or self.present)

    def find_ids(self, speaker: Speaker) -> str:
        """The input for the tokens that are told."""
        whole = [n for n, p in self.ports.items() if p.dtype in ("int64", "int32") and len(p.shape or ()) == 2]
        ids = next((n for n in (DECODER_IDS, speaker.ids, IDS) if n in self.ports), next(iter(whole), ""))
        strange = [n for n in self.ports if n not in {*KNOWN, speaker.ids, ids, *self.states}]
        if strange or not ids:
            message = f"{self.name} takes {list_names(strange or self.ports)}, which generation does not know"
            raise InputError(f"{message}: expected token ids, {MASK}, {POSITIONS} and a cache whose names have 'past'")
        return ids

    def run(self, known: Mapping[str, Array | None]) -> tuple[dict[str, Array], dict[str, Array]]:
        """What it is given of what is known, and what it answers."""
        given = {name: array for name in self.ports if (array := known.get(name)) is not None}
        inputs = {n: a if self.ports[n].dtype == "unknown" else a.astype(self.ports[n].dtype) for n, a in given.items()}
        try:
            return inputs, self.session.run(inputs)
        except Rejected as error:
            message = f"onnxruntime refuses a step of a generation in {self.name}: {str(error).splitlines()[0][:300]}"
            raise FindingError(found("OX501", message, evidence={"error": str(error)[:2000]})) from error


class Decoder:
    """A file that is asked for one token after the other, with the files beside it: its encoder, and its first step."""

    def __init__(self, main: Part, speaker: Speaker, beside: Sequence[Part] = ()) -> None:
        self._main, self._speaker = main, speaker
        self._encoder = next((part for part in beside if speaker.two_parts and part.encodes), None)
        others = [part for part in beside if part is not self._encoder]
        self._first = others[0] if others else main
        if len(others) > 1 or self._first.states.keys() - main.states.keys():
            expected = "expected the file of an encoder, and one of the first step, which has no cache yet"
            raise InputError(f"--beside: {expected}; {list_names([part.name for part in others])} cannot both be that")
        self._ids = {part: part.find_ids(speaker) for part in (main, self._first)}
        self._next = {part: pair_states(list(main.states), part.present) for part in (main, self._first)}
        if unmade := [name for name in main.states if self._first is not main and name not in self._next[self._first]]:
            raise InputError(
                f"--beside {self._first.name}: expected the cache that {main.name} takes, it has no {unmade[0]}"
            )
        crossing = [name for name in main.states if "encoder" in name.split(".") or "cross" in name]
        if crossing and self._first is main and BRANCH not in main.ports:
            raise InputError(
                f"{main.name} takes what an encoder left in a cache ({crossing[0]}, …) and cannot make it: give the file of the first step, "
                "which has no cache yet, with --beside decoder_model.onnx"
            )

    @property
    def cached(self) -> bool:
        """Whether it has a cache."""
        return bool(self._main.states)

    def steps(self, prompts: Prompts) -> Generator[Step, Choice, None]:
        """One step after the other; the next tokens are sent in."""
        two_parts, part = self._speaker.two_parts, self._first
        told = np.full((len(prompts.ids), 1), self._speaker.start, np.int64) if two_parts else prompts.ids
        mask = np.ones_like(told) if two_parts else prompts.counted
        past, encoded, later = self._empty(len(told)), self._encode(prompts), False
        while True:
            new = told.shape[1]
            known: dict[str, Array | None] = {
                POSITIONS: count_positions(mask)[:, -new:],
                MASK: mask,
                TOLD: mask,
                **past,
            }
            known |= {PLACES: np.arange(mask.shape[1] - new, mask.shape[1]), BRANCH: np.array([later])}
            if two_parts:
                known |= {MASK: prompts.counted, HEARD: prompts.counted, self._speaker.ids: prompts.ids}
                known |= dict.fromkeys(STATES, encoded)
            inputs, outputs = part.run({**known, self._ids[part]: told})
            scores = outputs[find_scores({n: a for n, a in outputs.items() if n not in part.present}, "the file")]
            whole = scores if scores.ndim == 3 else None
            choice = yield Step(inputs, scores if whole is None else whole[:, -1], whole, part is self._main)
            # A file of two branches has no answer for what does not change.
            past |= {n: outputs[after] for n, after in self._next[part].items() if outputs[after].size}
            if choice.rows is not None:
                rows = choice.rows
                prompts, past, mask, told = (
                    prompts.take(rows),
                    {n: a[rows] for n, a in past.items()},
                    mask[rows],
                    told[rows],
                )
                encoded = None if encoded is None else encoded[rows]
            new_tokens = choice.tokens[:, None]
            told, mask = new_tokens if self.cached else np.concatenate([told, new_tokens], axis=1), extend(mask, 1)
            part, later = self._main, True

    def _encode(self, prompts: Prompts) -> Array | None:
        """By the file of the encoder, else by the module's own."""
        if self._encoder is None:
            asked = any(part.told_states for part in (self._main, self._first))
            return self._speaker.encode(prompts) if asked else None
        _, answer = self._encoder.run({self._speaker.ids: prompts.ids, MASK: prompts.counted})
        return answer.get("last_hidden_state", next(iter(answer.values())))

    def _empty(self, rows: int) -> dict[str, Array]:
        return {name: np.zeros(_empty_shape(port, rows), np.float32) for name, port in self._main.states.items()}


def _empty_shape(port: Port, rows: int) -> list[int]:
    """A cache without a token: sizes that are no numbers are the batch, and then the length."""
    sizes = list(port.shape or ())
    open_sizes = [i for i, size in enumerate(sizes) if not isinstance(size, int)]
    free = {at: 0 if number or at else rows for number, at in enumerate(open_sizes)}
    return [size if isinstance(size, int) else free[at] for at, size in enumerate(sizes)]


def pair_states(past: Sequence[str], present: Sequence[str]) -> Mapping[str, str]:
    """Input of the cache → the output that is its next value: by name, where what has none stays as it is, else by position."""
    plain = {
        name.replace("present_key_values", "past_key_values").replace("present", "past_key_values"): name
        for name in present
    }
    if not past or (plain and plain.keys() <= set(past)):
        return plain if past else {}
    if len(past) != len(present):
        raise InputError(
            f"the file takes {len(past)} parts of a cache ({list_names(past[:4])}, …) and answers {len(present)} "
            f"({list_names(present[:4])}, …): expected as many"
        )
    return dict(zip(past, present, strict=True))
