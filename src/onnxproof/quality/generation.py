"""Prompts continued by a file, token by token, and what the module says about every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax

from onnxproof.data.source import Source, Table
from onnxproof.errors import InputError
from onnxproof.quality.accumulate import SIDES, Shard
from onnxproof.quality.decoding import MASK, Choice, Decoder, Prompts, Speaker, Step, find_scores
from onnxproof.quality.flips import Explainer
from onnxproof.quality.task import Plan, select_scores
from onnxproof.tensors.arrays import Array, Floats

# Prompts at once, and prompts of a batch without a changed token whose scores are held against the float64 truth.
BATCH, EXAMINED = 32, 4
# Units in the last place of a score below which a difference is rounding, whatever the model.
NOTABLE = 64.0
# Scores that the float64 truth is asked about at once.
MOST_SCORES = 4_000_000


@dataclass(frozen=True)
class Decided:
    """Decisions that were more than a token: which steps changed (prompt × step), and what is known of them."""

    changed: Array
    flips: list[dict[str, Any]]


@dataclass(frozen=True)
class Spoken:
    """The continuation of a batch, and the scores that chose it: prompt × step × token."""

    tokens: Array
    scores: Array
    steps: tuple[Step, ...]
    rows: Array
    """Which row of a step was the continuation's: prompt × step."""
    decided: Decided | None = None
    """None where every token was the one with the largest score."""


class Generation:
    """A data set of prompts through both sides: greedily, the token with the largest score comes next."""

    batch = BATCH

    def __init__(self, speaker: Speaker, decoder: Decoder, count: int, out: Path) -> None:
        self._speaker, self._decoder, self._count, self._out = speaker, decoder, count, out

    def run(self, source: Source) -> Iterator[tuple[Shard, Plan]]:
        """Batch by batch."""
        start = 0
        for table in source.read(0, None, self.batch):
            prompts = self._read(table)
            yield self._take(prompts, start)
            start += len(prompts.ids)

    def _read(self, table: Table) -> Prompts:
        names = [n for n in (self._speaker.ids, "input_ids", "prompts", "ids", "X", "x") if n in table]
        raw = table[names[0]] if names else None
        heard = self._speaker.two_parts and raw is not None and raw.dtype.kind == "f" and raw.ndim > 1
        if raw is None or not (heard or (raw.ndim == 2 and raw.dtype.kind in "iu")):
            raise InputError(
                f"--task generate: expected token ids in a field {self._speaker.ids}, one row of integers for each prompt (and {MASK} where "
                f"rows are padded), or what an encoder hears; the data have {', '.join(f'{n} {list(a.shape)} {a.dtype}' for n, a in table.items())}"
            )
        mask = table[MASK].astype(np.int64) if MASK in table else None
        return Prompts(raw.astype(np.float32 if heard else np.int64), mask)

    def _speak(self, prompts: Prompts, start: int) -> Spoken:
        steps, tokens, made = self._decoder.steps(prompts), list[Array](), list[Step]()
        while len(made) < self._count:
            made.append(steps.send(Choice(tokens[-1])) if tokens else next(steps))
            tokens.append(made[-1].scores.argmax(axis=1))
        rows = np.repeat(np.arange(len(prompts.ids))[:, None], self._count, axis=1)
        return Spoken(np.stack(tokens, axis=1), np.stack([one.scores for one in made], axis=1), tuple(made), rows)

    def _take(self, prompts: Prompts, start: int) -> tuple[Shard, Plan]:
        spoken = self._speak(prompts, start)
        inputs = self._speaker.tell(prompts, spoken.tokens[:, :-1])
        eager, _ = self._speaker.runners(inputs)
        outputs = eager.run(inputs)
        name = find_scores(outputs, "the module")
        raw = outputs[name]
        window = self._speaker.window(prompts, self._count)
        if raw.ndim != 3 or raw.shape[1] < window[1]:
            raise InputError(
                f"--task generate needs scores for every token of a sequence; {name} has the shape {list(raw.shape)} for {window[1]} tokens"
            )
        plan = Plan("generate", name, "logit", raw.shape[2], axis=2, window=window)
        baseline = select_scores(raw, plan).reshape(spoken.scores.shape)
        alive = find_alive(spoken.tokens, self._speaker.ends)
        decided = spoken.decided
        changed = (baseline.argmax(axis=2) != spoken.tokens) & alive if decided is None else decided.changed
        prefix = np.where(changed.any(axis=1), changed.argmax(axis=1), alive.sum(axis=1))
        columns = {"labels": alive.sum(axis=1), "prefix": prefix, "same": ~changed.any(axis=1)}
        columns |= self._losses(prompts, spoken, raw, baseline, alive)
        flips, far = self._examine(
            inputs, plan, {"baseline": baseline, "candidate": spoken.scores}, alive, start, spoken
        )
        apart = np.abs(spoken.scores - baseline)[alive]
        facts = {
            "farthest": far,
            "apart": {"compared": apart.size, "total": float(apart.sum()), "worst": float(apart.max())},
        }
        flips, count = (flips, int(changed.sum())) if decided is None else (decided.flips, len(decided.flips))
        return Shard(start, len(prompts.ids), columns, flips, count, facts), plan

    def _losses(self, prompts: Prompts, spoken: Spoken, raw: Array, baseline: Array, alive: Array) -> dict[str, Array]:
        """Minus the logarithm of the probability of the prompt's own tokens, else of the continuation's."""
        whole = spoken.steps[0].whole
        if self._speaker.two_parts or whole is None or prompts.ids.shape[1] < 2:
            known, wanted, sides = alive, spoken.tokens, {"baseline": baseline, "candidate": spoken.scores}
        else:
            known, wanted = (prompts.counted[:, 1:] * prompts.counted[:, :-1]) > 0, prompts.ids[:, 1:]
            sides = {"baseline": raw[:, : wanted.shape[1]], "candidate": whole[:, :-1]}
        columns = {"loss_count": known.sum(axis=1)}
        for side, scores in sides.items():
            likely = np.take_along_axis(log_softmax(scores.astype(np.float64), axis=2), wanted[..., None], axis=2)
            columns[f"{side}_loss"] = -np.where(known, likely[..., 0], 0.0).sum(axis=1)
        return columns

    def _examine(
        self, inputs: Table, plan: Plan, sides: dict[str, Array], alive: Array, start: int, spoken: Spoken
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Changed tokens with their margins, and the steps whose scores no rounding explains."""
        apart = np.where(alive, np.abs(sides["candidate"] - sides["baseline"]).max(axis=2), 0.0)
        least = NOTABLE * float(np.finfo(np.float32).eps) * float(np.abs(sides["baseline"]).max())
        other = sides["baseline"].argmax(axis=2) != sides["candidate"].argmax(axis=2)
        changed = (other & alive & (spoken.decided is None)).any(axis=1)
        notable = [row for row in np.argsort(-apart.max(axis=1))[:EXAMINED].tolist() if apart[row].max() > least]
        rows = np.array(sorted({*np.flatnonzero(changed).tolist(), *notable}), np.int64)
        flips, far, together = (
            list[dict[str, Any]](),
            dict[str, Any](),
            max(1, MOST_SCORES // sides["baseline"][0].size),
        )
        for some in (rows[at : at + together] for at in range(0, len(rows), together)):
            mine = {name: array[some] for name, array in inputs.items()}
            explainer = Explainer(*self._speaker.runners(mine), plan).remember()
            told = {side: scores[some].reshape(-1, scores.shape[2]) for side, scores in sides.items()}
            flips += _explain_changed(explainer, mine, told, alive[some], start + some) if changed.any() else []
            times = explainer.times_each(mine, told)
            for row, each in zip(some.tolist(), [] if times is None else times.reshape(len(some), -1), strict=False):
                each = np.where(alive[row], each, 0.0)
                step = int((each > 1).argmax()) if (each > 1).any() else None
                file = None if step is None else self._keep(spoken.steps[step], start + row, spoken.rows[row, step])
                entry = {"id": start + row, "difference": float(apart[row].max()), "times_rounding": float(each.max())}
                far[str(start + row)] = {**entry, "step": step, "file": file}
        return flips, far

    def _keep(self, step: Step, number: int, row: int) -> str:
        """The inputs of a step, as data for `prove` and `locate`."""
        self._out.mkdir(parents=True, exist_ok=True)
        path = self._out / f"prompt-{number}.npz"
        arrays: dict[str, Any] = {n: a[row : row + 1] if a.ndim > 1 else a for n, a in step.inputs.items()}
        np.savez(path, **arrays)
        return str(path)


def _explain_changed(
    explainer: Explainer, inputs: Table, sides: dict[str, Array], alive: Array, rows: Array
) -> list[dict[str, Any]]:
    """Tokens that changed; `sides` have a row of scores for every step of every prompt."""
    decided = {side: scores.argmax(axis=1) for side, scores in sides.items()}
    places = np.flatnonzero((decided["baseline"] != decided["candidate"]) & alive.reshape(-1))
    if not len(places):
        return []
    chosen = {side: decided[side][places] for side in SIDES}
    explained = explainer.at(places).explain(inputs, {s: sides[s][places] for s in SIDES}, chosen)
    flips = []
    for i, place in enumerate(places.tolist()):
        row, step = divmod(place, alive.shape[1])
        about = {"id": int(rows[row]), "row": int(rows[row]), "label": None, "place": [step], **explained.of(i)}
        about |= {side: str(chosen[side][i]) for side in SIDES}
        flips.append(about | {f"{side}_score": float(sides[side][place, chosen[side][i]]) for side in SIDES})
    return flips


def find_alive(tokens: Array, ends: list[int]) -> Array:
    """The steps up to the first token that ends a text."""
    over: Floats = np.cumsum(np.isin(tokens, ends), axis=1)
    return np.concatenate([np.ones((len(tokens), 1), bool), over[:, :-1] == 0], axis=1)
