"""Likely reasons why onnxruntime is slower than PyTorch, from the record alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from onnxproof.proof.latency import SHIPPED, Latency, Profile, Run, Speedup

# Share of the time from which something counts as a reason.
WORTH = 0.1
MOVING = "Transpose Cast MemcpyToHost MemcpyFromHost ReorderInput ReorderOutput Expand Concat Gather".split()
# A call this short is mostly the cost of calling.
TINY_MS = 0.05
# Work this short does not feed several threads.
SMALL_MS = 1.0
# What onnxruntime could fuse: the pattern's name, operators that show that it is there in pieces, the fused operator.
PIECES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("GELU", ("Erf",), "BiasGelu"),
    ("layer normalisation", ("ReduceMean", "Sqrt", "Div"), "LayerNormalization"),
    ("attention", ("Softmax", "MatMul", "Transpose"), "MultiHeadAttention"),
)


class Reason(NamedTuple):
    """One likely reason, and what to try."""

    text: str
    help: str


def guess_reasons(latency: Latency, speedup: Speedup) -> list[Reason]:
    """The likeliest first."""
    profile = latency.profile
    runs = [r for r in latency.of(SHIPPED, "single") if r.batch == speedup.batch]
    found = list(_suspect_providers(profile, latency)) if profile else []
    found += [*_suspect_threads(runs, latency), *_suspect_calls(runs)]
    if profile:
        found += [*_suspect_moves(profile), *_suspect_unfused(profile), *_suspect_top_node(profile)]
    return found


def _suspect_providers(profile: Profile, latency: Latency) -> Iterator[Reason]:
    wanted = next(iter(latency.settings.providers), "CPUExecutionProvider")
    share = sum(value for name, value in profile.providers.items() if name and name != wanted)
    if share > WORTH:
        text = f"{share:.0%} of the time is spent on other providers than {wanted}"
        yield Reason(text, "Look which operators fall back (OX305); another opset or formulation may be supported.")


def _suspect_threads(runs: list[Run], latency: Latency) -> Iterator[Reason]:
    for run in (run for run in runs if (run.threads or 1) > 1):
        p50 = run.milliseconds("p50")
        if (latency.machine.others or 0.0) > 0.5:
            text = f"{run.threads} threads share {latency.machine.cores} cores with other processes"
            yield Reason(text, "Measure on a quiet machine, or with `--threads 1`.")
        elif p50 is not None and p50 < SMALL_MS:
            text = f"{run.threads} threads for a call of {p50:.3g} ms: more than batch {run.batch} can feed"
            yield Reason(text, "Try `--threads 1`.")


def _suspect_calls(runs: list[Run]) -> Iterator[Reason]:
    for run in runs:
        p50 = run.milliseconds("p50")
        if p50 is not None and p50 < TINY_MS:
            text = f"a call of {p50 * 1e3:.0f} µs is mostly the cost of calling"
            yield Reason(text, "Send larger batches, or bind inputs and outputs.")


def _suspect_moves(profile: Profile) -> Iterator[Reason]:
    shares = {op: profile.ops[op].share for op in MOVING if op in profile.ops}
    if sum(shares.values()) > WORTH:
        told = ", ".join(f"{int(profile.ops[op].nodes)} {op}" for op in sorted(shares, key=lambda op: -shares[op])[:3])
        text = f"{sum(shares.values()):.0%} of the time only moves or converts data ({told})"
        yield Reason(text, "Keep one layout and one dtype through the model.")


def _suspect_unfused(profile: Profile) -> Iterator[Reason]:
    for name, pieces, fused in PIECES:
        share = sum(profile.ops[op].share for op in pieces if op in profile.ops)
        if all(op in profile.ops for op in pieces) and fused not in profile.ops and share > WORTH:
            yield Reason(
                f"{name} is not fused ({', '.join(pieces)} take {share:.0%} of the time)",
                "Try `--optimization all`, another opset, or onnxruntime's transformer optimiser (and `onnxproof diff` after it).",
            )


def _suspect_top_node(profile: Profile) -> Iterator[Reason]:
    if profile.nodes:
        top = profile.nodes[0]
        place = f" ({top.file}:{top.line})" if top.file else f" ({top.module})" if top.module else ""
        yield Reason(f"{top.op} node {top.node}{place} takes {top.share:.0%} of the time", "Look at the slowest nodes.")
