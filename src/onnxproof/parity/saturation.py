"""Another machine's arithmetic: what a file in int8 answers where two products of bytes are added in 16 bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from onnxproof.candidates.arithmetic import adds_in_16_bits
from onnxproof.candidates.candidate import Candidate
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.graph.byte_pairs import Saturated
from onnxproof.graph.sourcemap import place_node
from onnxproof.parity.conversion import FAIR
from onnxproof.parity.declared import Meaning, Saturating
from onnxproof.parity.ranking import SUFFIX, measure_worst
from onnxproof.proof.artifact import Artifact, Precision
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.system import has_vnni
from onnxproof.tensors.arrays import Arrays

# Cases that are looked at.
EXAMINED = 4
# Nodes that are told.
TOLD = 8


def choose_saturating(precision: Precision | None, session: SessionSettings) -> Saturating | None:
    """How the products of a file are computed on a CPU without VNNI; None where no bytes are multiplied on a CPU."""
    if precision is None or not precision.kind.startswith("int8") or session.providers[0].name != CPU.name:
        return None
    return "fused" if session.optimization in ("extended", "all") else "integers"


def find_saturating(precision: Precision | None, session: SessionSettings, candidate: Candidate) -> Saturating | None:
    """The same for this runtime on the machine that it runs on; None where it adds in 32 bits."""
    how = choose_saturating(precision, session)
    return how if how is not None and adds_in_16_bits(candidate) else None


@dataclass(frozen=True)
class _Hit:
    """A case whose sums leave 16 bits."""

    case: str
    decibels: float
    nodes: list[Saturated]


def find_saturation(
    meaning: Meaning, batches: Iterable[tuple[str, Arrays]], how: Saturating, artifact: Artifact, *, here: bool
) -> Iterator[Finding]:
    """What such a CPU makes of some inputs, by the case that it hits hardest; `here` it is this one."""
    sides, hits = (meaning.on(None), meaning.on(how)), list[_Hit]()
    for case, inputs in batches:
        with suppress(Exception):  # what the evaluator cannot run is told by its case
            hits += _look(*sides, case, inputs)
    if not hits:
        return
    worst = min(hits, key=lambda hit: hit.decibels)
    places = [place_node(SUFFIX.sub("", one.node), artifact.sourcemap) for one in worst.nodes]
    first, where = worst.nodes[0], places[0]
    others = f" (and {len(places) - 1} more nodes)" if len(places) > 1 else ""
    machine = f"here they are added in {16 if here else 32} bits (this CPU has {'' if has_vnni() else 'no '}VNNI)"
    message = (
        f"answers differ on x86 CPUs without VNNI: {first.node} adds products of bytes in 16 bits there, and {first.pairs} of {first.of} "
        f"sums leave them{others}; the outputs keep {worst.decibels:.0f} dB of what the file says; {machine}"
    )
    nodes = [
        {"node": one.node, "module": place.module, "line": place.line, "pairs": one.pairs, "of": one.of}
        for one, place in zip(worst.nodes[:TOLD], places, strict=False)
    ]
    evidence = {"decibels": worst.decibels, "here": here, "vnni": has_vnni(), "nodes": nodes}
    # A file that is right may be meant for other machines than those; on one of them it is another answer.
    severity: Severity = "review" if here and worst.decibels < FAIR else "note"
    where = Where(node=first.node, module=where.module, file=where.file, line=where.line, case=worst.case)
    yield found("OX234", message, where=where, severity=severity, evidence=evidence)


def _look(exact: Meaning, there: Meaning, case: str, inputs: Arrays) -> Iterator[_Hit]:
    answer = there.evaluate(inputs)
    if there.saturated:
        nodes = sorted(there.saturated.values(), key=lambda one: -one.pairs / one.of)
        yield _Hit(case, measure_worst(exact.evaluate(inputs), answer), nodes)
