"""Recurrent operators over sequences of several lengths: the reference ones run every sequence to the end of the longest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx.reference.ops.op_gru import CommonGRU
from onnx.reference.ops.op_lstm import CommonLSTM
from onnx.reference.ops.op_rnn import CommonRNN


class _Ragged:
    """Each sequence alone, as long as it is; behind its end there is nothing."""

    def _run(self, X, W, R, B=None, sequence_lens=None, *given, **attributes):
        run = super()._run  # of the operator that this stands before
        if sequence_lens is None or attributes.get("layout") or all(n == len(X) for n in sequence_lens):
            return run(X, W, R, B, None, *given, **attributes)
        # States have a row for each sequence; what stands behind them are weights.
        states = 2 if isinstance(self, CommonLSTM) else 1
        parts = []
        for row, length in enumerate(sequence_lens):
            begin = [None if one is None else one[:, row : row + 1] for one in given[:states]]
            parts.append(run(X[:length, row : row + 1], W, R, B, None, *begin, *given[states:], **attributes))
        return tuple(_join(parts, len(X)))


def _join(parts: list[tuple[Any, ...]], longest: int) -> Iterator[Any]:
    """One batch of the sequences' answers: all steps, then the last ones."""
    steps = [np.pad(part[0], [(0, longest - len(part[0])), *[(0, 0)] * 3]) for part in parts]
    yield np.concatenate(steps, 2)
    for place in range(1, len(parts[0])):
        yield np.concatenate([part[place] for part in parts], 1)


class LSTM(_Ragged, CommonLSTM):
    """By the lengths that are given."""


class GRU(_Ragged, CommonGRU):
    """By the lengths that are given."""


class RNN(_Ragged, CommonRNN):
    """By the lengths that are given."""
