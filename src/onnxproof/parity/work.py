"""What a forward costs, counted and not timed: a busy machine is slower, and must not be less thorough.

A run is planned by these numbers, so that the cases, samples and evaluations of two runs are the same. Seconds here are those of
one slow core that has nothing else to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from onnxproof.subject.subject import Subject

# Seconds for calling an operation, whatever its size.
CALL = 2e-5
# Additions and multiplications of a product in a second; what goes through memory instead counts for more of them.
RATE = 4e10
# How many times a forward the evaluation of the graph, node by node, takes.
EVALUATED = 4.0
# Forwards in a case: the module, its float64 copy (which takes two), the candidate.
SIDES = 4.0
# How many times a forward a legal rounding of it takes.
SAMPLED = 8.0
# Seconds of work up to which a forward has one thread: more would wait for each other, and on a busy machine for a long time.
CALM = 0.003
# Seconds of work in a call up to which more threads have nothing to share, however many calls there are.
GRAIN = 1e-4
# How many times what was planned the clock may show before it ends the work: a ceiling, which is said when it cuts.
PATIENCE = 5.0


@dataclass(frozen=True)
class Work:
    """Operations and calls of one forward, counted while it ran on so many input elements."""

    calls: int
    operations: float
    elements: int

    def forward(self, elements: int) -> float:
        """Seconds of a forward on inputs of this size."""
        return self.calls * CALL + self.operations / RATE * max(1.0, elements / max(1, self.elements))

    def case(self, elements: int) -> float:
        """Seconds of a case: all sides once."""
        return SIDES * self.forward(elements)

    def evaluation(self, elements: int) -> float:
        """Seconds of the graph's evaluation in float64."""
        return EVALUATED * self.forward(elements)

    def sample(self, elements: int) -> float:
        """Seconds of a legal rounding."""
        return SAMPLED * self.forward(elements)

    @contextmanager
    def threads(self, elements: int) -> Iterator[None]:
        """As many threads as a forward on inputs of this size is worth."""
        before = torch.get_num_threads()
        forward = self.forward(elements)
        if before > 1 and (forward < CALM or forward / max(1, self.calls) < CALL + GRAIN):
            torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


# Where nothing could be counted.
UNKNOWN = Work(100, 1e7, 1_000_000)


def expect_work(subject: Subject) -> Work:
    """A first guess, before a forward was counted: every weight is used once for each row."""
    tensors = subject.inputs.tensors.values()
    rows = max((tensor.shape[0] for tensor in tensors if tensor.ndim), default=1)
    products = 2.0 * rows * sum(parameter.numel() for parameter in subject.module.parameters())
    return Work(100, products, sum(tensor.numel() for tensor in tensors))
