"""What may remove a fault without a change of the model: other settings of the export and of the session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from onnxproof.candidates.candidate import Candidate
from onnxproof.proof.healing import Healing
from onnxproof.proof.proof import Proof
from onnxproof.proof.subject import TensorFacts
from onnxproof.request.request import Request
from onnxproof.request.session import SessionSettings
from onnxproof.request.specs import ProviderSpec, Range

OPSETS = (23, 25, 21, 20, 18)
"""Opsets to try: attention became an operator in 23; older ones have other decompositions."""
LEVELS = ("extended", "basic", "disable")
CPU = "CPUExecutionProvider"
NEVER_RUNS = frozenset({"AzureExecutionProvider"})
"""Providers that a package lists and that run no node of their own accord."""
LARGEST = 2**31 - 1
"""The upper end of sizes that are bounded below only."""
FEWEST = 3
"""Sizes that must have passed for an interval of them to be worth a try."""


@dataclass(frozen=True)
class Remedy:
    """One change of the settings."""

    what: str
    export: Mapping[str, Any] = field(default_factory=dict)
    session: Mapping[str, Any] = field(default_factory=dict)
    static: bool = False
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Dynamic dimension → the sizes that are served."""
    stages: frozenset[str] = frozenset()
    """The stages whose faults it is most likely to remove."""

    @property
    def name(self) -> str:
        """A folder's name."""
        return "".join(c if c.isalnum() else "-" for c in self.what).strip("-")

    def apply(self, request: Request) -> Request:
        """The request with this change."""
        request = replace(request, export=replace(request.export, **self.export))
        session = replace(request.verify.session, **self.session)
        request = replace(request, verify=replace(request.verify, session=session))
        request = replace(
            request, ranges={**request.ranges, **{n: Range(low, high) for n, (low, high) in self.limits.items()}}
        )
        return replace(request, dynamic={}) if self.static else request

    def record(self, healing: Healing) -> Healing:
        """What `--heal` did, with what this changes."""
        session = dict(self.session)
        if "providers" in session:
            session["providers"] = [provider.name for provider in session["providers"]]
        export, limits = dict(self.export), dict(self.limits)
        return replace(healing, change=self.what, export=export, session=session, static=self.static, limits=limits)

    def recipe(self) -> str:
        """How to ask for it."""
        off = list(self.session.get("disabled_optimizers", ()))
        code = f" Serve it with `onnxruntime.InferenceSession(path, disabled_optimizers={off})`." if off else ""
        sizes = " The file itself accepts other sizes and answers them wrongly: refuse them before the session."
        flags = " ".join(self._flags())
        return (
            f"`onnxproof prove … {flags}` gives the same; `--fix` writes it into the configuration."
            f"{code}{sizes if self.limits else ''}"
        )

    def _flags(self) -> Iterator[str]:
        if self.export.get("optimize") is False:
            yield "--no-optimize"
        if self.export.get("exporter"):
            yield f"--exporter {self.export['exporter']}"
        if self.export.get("opset"):
            yield f"--opset {self.export['opset']}"
        if self.export.get("strict"):
            yield "--strict"
        if self.static:
            yield "--dynamic none"
        for name, (low, high) in self.limits.items():
            yield f"--range {name}:{low},{high}"
        if self.session.get("optimization"):
            yield f"--optimization {self.session['optimization']}"
        if self.session.get("providers"):
            yield f"--provider {short(self.session['providers'][0].name)}"
        for name in self.session.get("disabled_optimizers", ()):
            yield f"--disable {name}"


def short(provider: str) -> str:
    """A provider's name as one types it."""
    return provider.removesuffix("ExecutionProvider")


def remedies(request: Request, proof: Proof, candidate: Candidate) -> list[Remedy]:
    """What may remove the fault: first what fits the stage to blame, then everything else, the cheapest first."""
    blamed = {str(blame.stage) for blame in proof.blame.values()}
    exports = request.onnx is None
    every = [
        *_of_session(request.verify.session, proof, candidate),
        *(_of_export(proof) if exports else ()),
        *_of_sizes(proof),
        *(_static(proof) if exports else ()),
    ]
    useful = [remedy for remedy in every if remedy.apply(request) != request]
    return sorted(useful, key=lambda remedy: not (remedy.stages & blamed))


# --- the session --------------------------------------------------------------------------------------------------------


def _of_session(session: SessionSettings, proof: Proof, candidate: Candidate) -> list[Remedy]:
    optimize = frozenset({"optimize"})
    found = [
        Remedy(
            f"onnxruntime's rewrite {rewrite} off",
            session={"disabled_optimizers": (*session.disabled_optimizers, rewrite)},
            stages=optimize,
        )
        for rewrite in dict.fromkeys(blame.rewrite for blame in proof.blame.values() if blame.rewrite)
    ]
    order = ("all", *LEVELS)
    lower = order[order.index(session.optimization) + 1 :] if candidate.abilities.rewrites else ()
    found += [Remedy(f"optimization {level}", session={"optimization": level}, stages=optimize) for level in lower]
    return [*found, *_of_providers(session.providers[0].name, candidate)]


def _of_providers(current: str, candidate: Candidate) -> list[Remedy]:
    """The other providers of the candidate, the CPU's first."""
    available = [name for name in candidate.providers() if name not in NEVER_RUNS | {current}]
    faults = frozenset({"provider", "kernel"})
    return [
        Remedy(
            f"the {short(name)} provider",
            session={"providers": tuple(ProviderSpec(one) for one in dict.fromkeys((name, CPU)))},
            stages=faults,
        )
        for name in sorted(available, key=lambda name: name != CPU)
    ]


# --- sizes --------------------------------------------------------------------------------------------------------------


def _of_sizes(proof: Proof) -> list[Remedy]:
    """Fewer sizes: those that the exporter says the program is good for, else those around the example's that passed."""
    sizes = [(_sizes(proof, case.inputs), case.name in _failing(proof)) for case in proof.cases if case.fair]
    exported = _sizes(proof, proof.subject.inputs)
    stated = proof.artifact.bounds if proof.artifact is not None else {}
    found = []
    for name, example in exported.items():
        tried = [(one[name], failed) for one, failed in sizes if name in one]
        ends = _interval(tried, example, stated.get(name))
        if ends is not None:
            top = "" if ends[1] == LARGEST else f" to {ends[1]}"
            found.append(
                Remedy(
                    f"{name} limited to {ends[0]}{top or ' and more'}",
                    limits={name: ends},
                    stages=frozenset({"capture"}),
                )
            )
    return found


def _failing(proof: Proof) -> frozenset[str]:
    """Cases that a finding speaks of."""
    weighty = [finding for finding in proof.findings if finding.weight]
    named = {finding.where.case for finding in weighty if finding.where.case}
    return frozenset(named | {str(case) for f in weighty for case in f.evidence.get("cases", ())})


def _sizes(proof: Proof, inputs: Mapping[str, TensorFacts]) -> dict[str, int]:
    """The sizes of the dynamic dimensions in some inputs."""
    return {
        size: inputs[name].shape[int(dim)]
        for name, dims in proof.subject.dynamic.items()
        if name in inputs
        for dim, size in dims.items()
    }


def _interval(
    tried: list[tuple[int, bool]], example: int, stated: tuple[int, int | None] | None
) -> tuple[int, int] | None:
    """Sizes around the example's at which nothing failed, if a failure lies outside."""
    bad = sorted({size for size, failed in tried if failed})
    good = sorted({size for size, failed in tried if not failed} - set(bad))
    if not bad or example in bad:
        return None
    below, above = [size for size in bad if size < example], [size for size in bad if size > example]
    low = max(below) + 1 if below else 1
    passed = [size for size in good if low <= size and (not above or size < min(above))]
    high = max(passed, default=example) if above else LARGEST
    if stated is not None and stated[1] is not None and stated[1] < LARGEST and above and stated[1] < min(above):
        high = max(high, int(stated[1]))
    return (low, high) if len(passed) >= FEWEST and low < high else None


# --- the export ---------------------------------------------------------------------------------------------------------


def _of_export(proof: Proof) -> list[Remedy]:
    made = proof.artifact
    exporter = made.exporter if made is not None else "dynamo"
    found = [Remedy("the exporter's optimiser off", export={"optimize": False}, stages=frozenset({"simplify"}))]
    translate, capture = frozenset({"translate", "kernel"}), frozenset({"capture"})
    found += [
        Remedy(f"opset {opset}", export={"opset": opset}, stages=translate)
        for opset in OPSETS
        if (made is None or opset != made.opset) and (exporter == "dynamo" or opset <= 20)
    ]
    other = "torchscript" if exporter == "dynamo" else "dynamo"
    found.append(Remedy(f"the {other} exporter", export={"exporter": other, "opset": None}, stages=translate | capture))
    found.append(Remedy("strict capture", export={"strict": True}, stages=capture))
    return found


def _static(proof: Proof) -> list[Remedy]:
    if not any(proof.subject.dynamic.values()):
        return []
    return [Remedy("every dimension fixed to the example's size", static=True, stages=frozenset({"capture"}))]
