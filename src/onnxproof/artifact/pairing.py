"""Which input of the graph is which input of the module, and the same for outputs: by name, else by position and said so."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import numpy as np

from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.proof.artifact import Artifact, Port
from onnxproof.subject.state import is_half_of, is_kept, read_stem


@dataclass(frozen=True)
class Pairing:
    """Names on the module's side ↔ names on the graph's side, and what was odd about it."""

    pairs: Mapping[str, str] = field(default_factory=dict)
    """Module's name → graph's name."""
    findings: tuple[Finding, ...] = ()
    handed: Mapping[str, str] = field(default_factory=dict)
    """Outputs of the module that the graph lacks because they are inputs as they came: output → input."""

    @property
    def blocking(self) -> Finding | None:
        """Why nothing can be fed, if that is so."""
        return next((finding for finding in self.findings if finding.severity == "block"), None)

    @property
    def reverse(self) -> dict[str, str]:
        """Graph's name → module's name."""
        return {graph: module for module, graph in self.pairs.items()}


def pair_inputs(
    expected: Mapping[str, str],
    ports: Sequence[Port],
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    *,
    named: bool = False,
    lowered: bool = False,
) -> Pairing:
    """`expected`: the module's inputs with their dtypes, in order; `shapes`: their sizes, None where they are dynamic;
    `named`: nobody gives them by position; `lowered`: a lower precision was chosen, and inputs may have it too."""
    names = [port.name for port in ports]
    findings: list[Finding] = []
    pairs = {name: name for name in expected if name in names}
    meant = _pair_by_meaning([n for n in expected if n not in pairs], [n for n in names if n not in pairs])
    if meant:
        told = ", ".join(f"{graph} ← {module}" for module, graph in meant.items())
        message = f"the state has other names, which mean the same: {told}"
        findings.append(found("OX217", message, severity="note", evidence={"pairs": meant}))
    pairs |= meant
    lonely = [name for name in expected if name not in pairs]
    unknown = [name for name in names if name not in pairs.values()]
    if lonely and unknown:
        left = [port for port in ports if port.name in unknown]
        fitting = _pair_by_fit({name: expected[name] for name in lonely}, left, shapes or {})
        by_place = fitting or dict(zip(lonely, unknown, strict=False))
        pairs |= by_place
        told = ", ".join(f"{graph} ← {module}" for module, graph in by_place.items())
        message = f"input names differ, paired by {'shape and words' if fitting else 'position'}: {told}"
        severity: Severity = "note" if len(expected) == 1 else "review"
        findings.append(found("OX217", message, severity=severity, evidence={"pairs": by_place}))
        lonely = [name for name in lonely if name not in by_place]
        unknown = [name for name in unknown if name not in by_place.values()]
    if unknown:
        message = f"the artifact takes {', '.join(unknown)}, which the module does not have; the module takes {', '.join(expected)}"
        findings.append(found("OX218", message, evidence={"artifact": names, "module": list(expected)}))
    findings += [_tell_unused(name, [] if named else list(expected)) for name in lonely]
    if not lonely and not unknown and set(names) == set(expected) and names != list(expected):
        findings.append(_tell_order("inputs", names, list(expected)))
    return Pairing(pairs, (*findings, *_compare_dtypes(expected, ports, pairs, lowered)))


def hide_state(artifact: Artifact, expected: Collection[str]) -> tuple[Artifact, dict[str, str]]:
    """The file without the state that its module keeps inside, and that state: output → input."""
    more = [p for p in artifact.inputs if p.name not in expected and is_kept(p.name)]
    hidden: dict[str, str] = {}
    for port in more[: max(0, len(artifact.inputs) - len(expected))]:
        ends = [o.name for o in artifact.outputs if read_stem(o.name) == read_stem(port.name) and o.dtype == port.dtype]
        hidden |= {ends[0]: port.name} if len(ends) == 1 else {}
    shown = [
        [p for p in ports if p.name not in (*hidden, *hidden.values())] for ports in (artifact.inputs, artifact.outputs)
    ]
    if not hidden or not all(shown):
        return artifact, {}
    return replace(artifact, inputs=tuple(shown[0]), outputs=tuple(shown[1])), hidden


def begin_hidden(
    ports: Sequence[Port], hidden: Collection[str], inputs: Mapping[str, Any], kept: Sequence[Any] = ()
) -> dict[str, Any]:
    """The state that a module keeps inside, before the first step: what it keeps of that form, else zeros, as many as the batch."""
    batch = next((array.shape[0] for array in inputs.values() if array.ndim), 1)
    begun = {}
    for port in (port for port in ports if port.name in hidden):
        shape = [size if isinstance(size, int) and size > 0 else batch for size in port.shape or ()]
        own = [
            k
            for k in kept
            if k.size and k.dtype.name == port.dtype and _fits(k.shape, [s or None for s in port.shape or ()])
        ]
        begun[port.name] = own[0] if len(own) == 1 else np.zeros(shape, port.dtype)
    return begun


def _pair_by_meaning(lonely: Sequence[str], unknown: Sequence[str]) -> dict[str, str]:
    """States whose names differ only in the words that exporters choose: `past_key_values.0.key` and `past_key_values_key_cache_0`."""
    ours, theirs = ([read_stem(name) for name in names] for names in (lonely, unknown))
    return {
        name: unknown[theirs.index(stem)]
        for name, stem in zip(lonely, ours, strict=True)
        if stem and is_kept(name) and ours.count(stem) == theirs.count(stem) == 1
    }


NOTED: Severity = "note"
# Inputs up to which every order is tried.
MANY = 6


def _pair_by_fit(
    lonely: Mapping[str, str], ports: Sequence[Port], shapes: Mapping[str, Sequence[int | None]]
) -> dict[str, str] | None:
    """The one order in which every input fits its port and their names share most, where that is not the given one: `input_ids` of
    a decoder's file is `decoder_input_ids` of the whole."""

    def rate(name: str, port: Port) -> float | None:
        fits = lonely[name] in ("", port.dtype) and (name not in shapes or _fits(shapes[name], port.shape))
        one, other = ({*re.split(r"[^a-z0-9]+", text.lower())} for text in (name, port.name))
        return len(one & other) / len(one | other) if fits else None

    if len(lonely) > MANY or len(lonely) < len(ports):
        return None
    rated = [(names, [*map(rate, names, ports)]) for names in permutations(lonely, len(ports))]
    fitting = [(sum(filter(None, rates)), names) for names, rates in rated if None not in rates]
    best = [names for shared, names in fitting if shared == max(fitting)[0]]
    if len(best) != 1 or best == [tuple(lonely)[: len(ports)]]:
        return None
    return {name: port.name for name, port in zip(best[0], ports, strict=True)}


def _fits(taken: Sequence[int | None], declared: Sequence[object] | None) -> bool:
    """Whether an input of these sizes may go into a port: sizes that are numbers on both sides are equal."""
    if declared is None:
        return True
    sizes = zip(taken, declared, strict=False)
    return len(taken) == len(declared) and all(a == b for a, b in sizes if isinstance(a, int) and isinstance(b, int))


def _compare_dtypes(
    expected: Mapping[str, str], ports: Sequence[Port], pairs: Mapping[str, str], lowered: bool
) -> Iterator[Finding]:
    declared = {port.name: port.dtype for port in ports}
    for name, graph in pairs.items():
        module, artifact = expected[name], declared[graph]
        if artifact in (module, "unknown"):
            continue
        chosen = lowered and is_half_of(module, artifact)
        asked = ", as the chosen precision has it: callers cast what they feed" * chosen
        message = f"the input {name} is {module} in the module and {artifact} in the artifact{asked}"
        evidence = {"input": name, "module": module, "artifact": artifact}
        yield found("OX219", message, severity=NOTED if chosen else None, evidence=evidence)


def pair_outputs(
    expected: Sequence[str],
    ports: Sequence[Port],
    promised: Sequence[str] | None,
    *,
    named: bool,
    passed: Mapping[str, str] | None = None,
) -> Pairing:
    """`named`: the module itself names its outputs. `promised`: the names the file says it was exported with. `passed`: outputs
    that are inputs as they came, which a file may leave out."""
    names = [port.name for port in ports]
    fitting = promised if promised is not None and len(promised) == len(expected) else None
    wanted = dict(zip(expected, fitting or expected, strict=True))
    if set(wanted.values()) == set(names):
        order = [_tell_order("outputs", names, list(wanted.values()))] if names != list(wanted.values()) else []
        return Pairing(wanted, tuple(order))
    if named or fitting is not None:
        return _pair_by_name(wanted, names, passed or {}, promised=fitting is not None)
    pairs = dict(zip(expected, names, strict=False))
    return _leave(pairs, expected[len(names) :], names[len(expected) :], passed or {})


def _pair_by_name(
    wanted: Mapping[str, str], names: Sequence[str], passed: Mapping[str, str], *, promised: bool
) -> Pairing:
    pairs = {module: graph for module, graph in wanted.items() if graph in names}
    left = [name for name in wanted if name not in pairs]
    # A promise of names is kept or broken. The members of a cache have a place and a part; one word is a name that callers ask for.
    members = [name for name in left if len(read_stem(name)) > 1] if not promised else []
    pairs |= _pair_by_meaning(members, [name for name in names if name not in pairs.values()])
    lonely = [module for module in wanted if module not in pairs]
    unknown = [name for name in names if name not in pairs.values()]
    if len(lonely) != len(unknown):
        return _leave(pairs, lonely, unknown, passed)
    renamed, findings = dict(zip(lonely, unknown, strict=True)), []
    for module, graph in renamed.items():
        message = f"the output {wanted[module]} is called {graph} in the artifact; paired by position"
        evidence = {"module": module, "artifact": graph}
        findings.append(found("OX212", message, where=Where(output=module), evidence=evidence))
    return Pairing(pairs | renamed, tuple(findings))


def _leave(
    pairs: Mapping[str, str], missing: Sequence[str], extra: Sequence[str], passed: Mapping[str, str]
) -> Pairing:
    """What has no partner is told; what the module hands on as it came the caller has already."""
    handed, gone = {name: passed[name] for name in missing if name in passed}, []
    for name in missing:
        why = (
            f": the module hands on its input {handed[name]} as it came, and so may the caller"
            if name in handed
            else ""
        )
        message, severity = f"the artifact has no output {name}{why}", NOTED if name in handed else None
        gone.append(found("OX210", message, severity=severity, where=Where(output=name)))
    more = ((name, f"the artifact has an output {name} that the module does not return") for name in extra)
    return Pairing(pairs, (*gone, *(found("OX211", text, where=Where(output=name)) for name, text in more)), handed)


def _tell_unused(name: str, expected: Sequence[str]) -> Finding:
    """Whoever feeds by position feeds what comes after it wrongly."""
    after = expected[expected.index(name) + 1 :] if expected else []
    message = f"the artifact has no input {name}: nothing in the graph depends on it"
    if not after:
        return found("OX226", message)
    shifted = f"; fed by position, {', '.join(after)} would get what is meant for another: feed by name"
    return found("OX226", message + shifted, severity="review", evidence={"shifted": after})


def _tell_order(what: str, names: Sequence[str], expected: Sequence[str]) -> Finding:
    message = (
        f"the {what} come in another order: {', '.join(names)} in the artifact, {', '.join(expected)} in the module"
    )
    # Inputs are fed by name; outputs are often taken by their place.
    severity: Severity | None = "note" if what == "inputs" else None
    return found("OX213", message, severity=severity, evidence={"artifact": list(names), "module": list(expected)})
