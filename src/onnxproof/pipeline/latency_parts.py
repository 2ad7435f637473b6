"""The parent's side of a benchmark: what children report, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from onnxproof.pipeline.events import ToWeigh
from onnxproof.proof.latency import Earlier, Latency


@dataclass
class LatencyParts:
    """What was reported so far."""

    latency: Latency | None = None
    to_weigh: ToWeigh | None = None
    """Contenders and sizes whose memory is asked for."""
    weighed: dict[str, Sequence[int | None]] = field(default_factory=dict)
    """Contender → bytes at each of those sizes."""

    def finished(self, earlier: Earlier | None) -> Latency | None:
        """The whole record; None where nothing was timed."""
        if self.latency is None:
            return None
        memory = {
            (name, point["batch"], tuple(sorted(point["sizes"].items()))): count
            for name, counts in self.weighed.items()
            for point, count in zip(self.to_weigh.points if self.to_weigh else (), counts, strict=True)
        }
        runs = tuple(
            replace(run, memory=memory.get((run.contender, run.batch, tuple(sorted(run.sizes.items())))))
            for run in self.latency.runs
        )
        return replace(self.latency, runs=runs, baseline=earlier)


def earlier_of(settings: Any) -> Earlier | None:
    """What the proof of `--baseline` measured."""
    if settings is None or settings.baseline is None:
        return None
    from onnxproof.errors import UserError
    from onnxproof.proof.proof import Proof

    proof = Proof.load(settings.baseline)
    latency = proof.latency
    if latency is None:
        raise UserError(f"--baseline {settings.baseline}: this proof has no times; make one with `onnxproof bench`")
    runs = tuple(replace(run, samples=(), blocks=()) for run in latency.runs)
    versions = {name: str(getattr(proof.environment, name)) for name in ("torch", "onnxruntime", "onnxproof")}
    return Earlier(str(settings.baseline), latency.machine.fingerprint, runs, latency.speedup, versions)
