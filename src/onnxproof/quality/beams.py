"""Beam search as `generate` of transformers does it by default: several continuations of each prompt, of which the best is the answer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import log_softmax, logsumexp

from onnxproof.tensors.arrays import Array, Floats


@dataclass(frozen=True)
class Text:
    """A continuation that is over, and the mean of its tokens' logarithms of probability on either side."""

    tokens: Array
    ours: float
    theirs: float
    rows: tuple[int, ...]
    """Which beam it was at every step."""


@dataclass
class Beams:
    """The continuations of one prompt; the first step has one beam."""

    width: int
    ends: list[int]
    tokens: Array = field(default_factory=lambda: np.zeros((1, 0), np.int64))
    totals: Floats = field(default_factory=lambda: np.zeros(1))
    """Of the beams, by the candidate."""
    rows: Array = field(default_factory=lambda: np.zeros((1, 0), np.int64))
    over: list[Text] = field(default_factory=list)
    done: bool = False

    def find_swap(self, ours: Floats, theirs: Floats, *, last: bool) -> tuple[int, int] | None:
        """A continuation that only the module keeps and one that only the candidate keeps, where they do not keep the same."""
        goes_on = np.where(self._ending(len(ours), last=False), -np.inf, 0.0)
        kinds = [(ours, theirs)] if last or not self.ends else [(ours, theirs), (ours + goes_on, theirs + goes_on)]
        for mine, other in kinds:
            (a, b) = (set(choose_best(side, self.width).tolist()) for side in (mine, other))
            if a != b:
                return max(b - a, key=lambda at: other[at]), min(a - b, key=lambda at: other[at])
        return None

    def go_on(self, ours: Floats, theirs: Floats, *, last: bool) -> tuple[Array, Array]:
        """Keep the best, by the candidate; which beams go on, and with which tokens."""
        step = self.tokens.shape[1]
        best = choose_best(ours, max(2, 1 + len(self.ends)) * self.width)
        ending = self._ending(len(ours), last=last)
        beams, tokens = np.divmod(best, len(ours) // len(self.tokens))
        if not self.done:
            for at, beam, token in zip(best[: self.width], beams, tokens, strict=False):
                if ending[at]:
                    said, rows = np.append(self.tokens[beam], token), (*self.rows[beam].tolist(), int(beam))
                    self.over.append(Text(said, float(ours[at]) / (step + 1), float(theirs[at]) / (step + 1), rows))
            self.over = sorted(self.over, key=lambda text: -text.ours)[: self.width]
        running = np.flatnonzero(~ending[best])[: self.width] if not last else np.arange(self.width)
        beams, tokens = beams[running], tokens[running]
        self.totals = ours[best[running]].astype(np.float64)
        self.tokens = np.concatenate([self.tokens[beams], tokens[:, None]], axis=1)
        self.rows = np.concatenate([self.rows[beams], beams[:, None]], axis=1)
        full = len(self.over) == self.width
        self.done = self.done or last or (full and self.totals[0] / (step + 1) <= self.over[-1].ours)
        return beams, tokens

    def _ending(self, count: int, *, last: bool) -> Array:
        return np.full(count, True) if last else np.isin(np.arange(count) % (count // len(self.tokens)), self.ends)


def choose_best(totals: Floats, count: int) -> Array:
    """The places of the largest, the largest first."""
    some = np.argpartition(-totals, min(count, len(totals) - 1))[:count]
    return np.asarray(some[np.argsort(-totals[some], kind="stable")])


def add_up(scores: Array, told: Array) -> Floats:
    """Scores at places (rows × places × tokens), the first of them the one that says `told`: the totals of every next token."""
    past = np.zeros(len(told))
    for at in range(told.shape[1]):
        said = np.take_along_axis(scores[:, at], told[:, at : at + 1], axis=1)[:, 0].astype(np.float64)
        past += said - logsumexp(scores[:, at].astype(np.float64), axis=1)
    return np.asarray(log_softmax(scores[:, told.shape[1]].astype(np.float64), axis=1) + past[:, None])
