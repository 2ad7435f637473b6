"""Prompts continued by beam search through a file, and what the module says about everything that was kept or left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from onnxproof.errors import InputError
from onnxproof.quality.beams import Beams, Text, add_up
from onnxproof.quality.decoding import Choice, Decoder, Prompts, Speaker, Step, find_scores
from onnxproof.quality.flips import Explainer
from onnxproof.quality.generation import BATCH, Decided, Generation, Spoken
from onnxproof.quality.task import Plan
from onnxproof.tensors.arrays import Array, Arrays, Floats


@dataclass(frozen=True)
class Question:
    """Beginnings of texts that the module is told, equally many of each prompt: how likely is each next token?"""

    speaker: Speaker
    prompts: Prompts
    """One row for each text."""
    told: Array
    each: int

    def of(self, rows: Sequence[int]) -> Question:
        """What it is told of some prompts."""
        mine = np.concatenate([np.arange(row * self.each, (row + 1) * self.each) for row in rows])
        return replace(self, prompts=self.prompts.take(mine), told=self.told[mine])

    @property
    def inputs(self) -> dict[str, Array]:
        """What goes into the module."""
        return self.speaker.tell(self.prompts, self.told)

    def read(self, outputs: Arrays) -> Floats:
        """Of every prompt, the logarithms of the probability of all its texts with each next token."""
        totals = add_up(self.cut(outputs), self.told)
        return totals.reshape(len(totals) // self.each, -1)

    def name(self, place: int, columns: int) -> str:
        """What stands at a place of a prompt's row: a token; of whole texts, which one."""
        return str(place % (columns // self.each) if columns > self.each else place)

    def cut(self, outputs: Arrays) -> Array:
        """The scores from the first token that is not the prompt's."""
        return outputs[find_scores(outputs, "the module")][:, self.speaker.window(self.prompts, 1)[0] :]


class Contest(Question):
    """Whole texts of one prompt: which is the best?"""

    def read(self, outputs: Arrays) -> Floats:
        """The mean of each text's logarithms; what is over is filled up with −1."""
        raw, lengths = self.cut(outputs), (self.told >= 0).sum(axis=1)
        totals = [
            add_up(raw[row : row + 1], text[None, : size - 1])[0, text[size - 1]] / size
            for row, (text, size) in enumerate(zip(self.told, lengths, strict=True))
        ]
        return np.array([totals])

    @property
    def inputs(self) -> dict[str, Array]:
        """What goes into the module."""
        return self.speaker.tell(self.prompts, np.maximum(self.told, 0)[:, :-1])


class BeamGeneration(Generation):
    """A data set of prompts through both sides: the file searches, and every choice of its search is held against the module."""

    def __init__(self, speaker: Speaker, decoder: Decoder, count: int, out: Path, width: int) -> None:
        super().__init__(speaker, decoder, count, out)
        self._width, self.batch = width, max(1, BATCH // width)

    def _speak(self, prompts: Prompts, start: int) -> Spoken:
        beams = [Beams(self._width, self._speaker.ends) for _ in prompts.ids]
        steps, made, flips = self._decoder.steps(prompts), list[Step](), list[dict[str, Any]]()
        changed, choice = np.zeros((len(beams), self._count), bool), None
        while len(made) < self._count and not all(one.done for one in beams):
            made.append(next(steps) if choice is None else steps.send(choice))
            question = self._ask(prompts, beams)
            ours, theirs = self._rate(beams, made[-1].scores), self._answer(question)
            at, last = len(made) - 1, len(made) == self._count
            swaps = {
                row: swap
                for row, one in enumerate(beams)
                if not one.done and (swap := one.find_swap(ours[row], theirs[row], last=last)) is not None
            }
            changed[list(swaps), at] = True
            flips += self._explain(question, {"baseline": theirs, "candidate": ours}, swaps, start, at)
            moves = [one.go_on(ours[row], theirs[row], last=last) for row, one in enumerate(beams)]
            rows = [row * question.each + parents for row, (parents, _) in enumerate(moves)]
            choice = Choice(np.concatenate([tokens for _, tokens in moves]), np.concatenate(rows))
        for row, one in enumerate(beams):
            if another := self._compare_answers(prompts.take(np.array([row])), one.over, start + row):
                flips += another
                changed[row, len(one.over[0].tokens) - 1] = True
        return self._collect([one.over[0] for one in beams], made, Decided(changed, flips))

    def _ask(self, prompts: Prompts, beams: Sequence[Beams]) -> Question:
        each = len(beams[0].tokens)
        every = prompts.take(np.repeat(np.arange(len(beams)), each))
        return Question(self._speaker, every, np.concatenate([one.tokens for one in beams]), each)

    def _rate(self, beams: Sequence[Beams], scores: Array) -> Floats:
        """The candidate's totals, by the scores of its last step."""
        if scores.shape[1] < 2 * self._width:
            message = f"expected at most half of the {scores.shape[1]} tokens that the model knows"
            raise InputError(f"--beams {self._width}: {message}")
        totals = np.concatenate([one.totals for one in beams])[:, None]
        made = add_up(scores[:, None], np.zeros((len(scores), 0), np.int64)) + totals
        return np.asarray(made.reshape(len(beams), -1))

    def _answer(self, question: Question) -> Floats:
        inputs = question.inputs
        return question.read(self._speaker.runners(inputs)[0].run(inputs))

    def _explain(
        self, question: Question, sides: dict[str, Floats], swaps: dict[int, tuple[int, int]], start: int, step: int
    ) -> list[dict[str, Any]]:
        """Prompts of which either side keeps a place that the other one does not: what rounding says about the two."""
        if not swaps:
            return []
        rows, asked = list(swaps), question.of(list(swaps))
        inputs, plan = asked.inputs, Plan("multiclass", "totals", "logit", sides["baseline"].shape[1])
        explainer = Explainer(*self._speaker.runners(inputs), plan, read=asked.read)
        chosen = {side: np.array([swaps[row][i] for row in rows]) for i, side in enumerate(sides)}
        explained = explainer.explain(inputs, {s: t[rows].astype(np.float32) for s, t in sides.items()}, chosen)
        flips = []
        for i, row in enumerate(rows):
            about = {"id": start + row, "row": start + row, "label": None, "place": [step], **explained.of(i)}
            about |= {f"{side}_score": float(sides[side][row, chosen[side][i]]) for side in sides}
            flips.append(about | {side: asked.name(int(chosen[side][i]), plan.columns) for side in sides})
        return flips

    def _compare_answers(self, prompt: Prompts, texts: Sequence[Text], number: int) -> list[dict[str, Any]]:
        """The best of the texts that are left, where it is another one by the module."""
        best = int(np.argmax([text.theirs for text in texts]))
        if best == 0:
            return []
        size = max(len(text.tokens) for text in texts)
        told = np.array([np.pad(text.tokens, (0, size - len(text.tokens)), constant_values=-1) for text in texts])
        contest = Contest(self._speaker, prompt.take(np.zeros(len(texts), np.int64)), told, len(texts))
        sides = {"baseline": [one.theirs for one in texts], "candidate": [one.ours for one in texts]}
        rated = {side: np.array([means]) for side, means in sides.items()}
        return self._explain(contest, rated, {0: (best, 0)}, number, len(texts[0].tokens) - 1)

    def _collect(self, texts: Sequence[Text], made: Sequence[Step], decided: Decided) -> Spoken:
        """The answers, filled up with the token that ends them."""
        end = self._speaker.ends[0] if self._speaker.ends else 0
        fill = [(0, self._count - len(text.tokens)) for text in texts]
        tokens = np.array([np.pad(t.tokens, by, constant_values=end) for t, by in zip(texts, fill, strict=True)])
        each = [1, *(len(step.scores) // len(texts) for step in made[1:])]
        places = [[row * each[at] + beam for at, beam in enumerate(text.rows)] for row, text in enumerate(texts)]
        rows = np.array([np.pad(np.array(one), by) for one, by in zip(places, fill, strict=True)])
        steps = (*made, *(made[-1],) * (self._count - len(made)))
        scores = np.stack([step.scores[rows[:, at]] for at, step in enumerate(steps)], axis=1)
        return Spoken(tokens, scores, steps, rows, decided)
