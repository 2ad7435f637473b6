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
from onnxproof.request.session import CPU, LEVELS, SessionSettings
from onnxproof.request.specs import ProviderSpec, Range

# Opsets to try: attention became an operator in 23; older ones have other decompositions.
OPSETS = (23, 25, 21, 20, 18)
# Providers that a package lists and that run no node of their own accord.
NEVER_RUNS = frozenset({"AzureExecutionProvider"})
# The upper end of sizes that are bounded below only.
LARGEST = 2**31 - 1
# Sizes that must have passed for an interval of them to be worth a try.
FEWEST = 3


@dataclass(frozen=True)
class Remedy:
    """One change of the settings."""

    what: str
    export: Mapping[str, Any] = field(default_factory=dict)
    session: Mapping[str, Any] = field(default_factory=dict)
    static: bool = False
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Dynamic dimension → the sizes that are served."""
    stages: tuple[str, ...] = ()
    """The stages whose faults it is most likely to remove."""

    @property
    def name(self) -> str:
        """A folder's name."""
        return "".join(c if c.isalnum() else "-" for c in self.what).strip("-")

    def apply(self, request: Request) -> Request:
        """The request with this change."""
        session = replace(request.verify.session, **self.session)
        return replace(
            request,
            export=replace(request.export, **self.export),
            verify=replace(request.verify, session=session),
            ranges={**request.ranges, **{name: Range(*ends) for name, ends in self.limits.items()}},
            dynamic={} if self.static else request.dynamic,
        )

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
        flags = " ".join(_spell_flags(list_options(self.record(Healing(True)))))
        return (
            f"`onnxproof prove … {flags}` gives the same; `--fix` writes it into the configuration."
            f"{code}{sizes if self.limits else ''}"
        )


def list_options(healing: Healing) -> dict[str, Any]:
    """What to ask for to get the same: the values of flags, by the names that they have in the configuration."""
    export, session = healing.export or {}, healing.session or {}
    asked = {
        "no_optimize": export.get("optimize") is False,
        "exporter": export.get("exporter"),
        "opset": export.get("opset"),
        "strict": export.get("strict"),
        "dynamic": "none" if healing.static else None,
        "range": [f"{name}:{low},{high}" for name, (low, high) in (healing.limits or {}).items()],
        "optimization": session.get("optimization"),
        "provider": [shorten_provider(name) for name in session.get("providers", ())[:1]],
        "disable": list(session.get("disabled_optimizers", ())),
    }
    return {name: value for name, value in asked.items() if value}


def _spell_flags(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:
            yield flag if one is True else f"{flag} {one}"


def shorten_provider(provider: str) -> str:
    """A provider's name as one types it."""
    return provider.removesuffix("ExecutionProvider")


def list_remedies(request: Request, proof: Proof, candidate: Candidate) -> list[Remedy]:
    """What may remove the fault: first what fits the stage to blame, then everything else, the cheapest first."""
    blamed = {str(blame.stage) for blame in proof.blame.values()}
    exports = request.onnx is None
    static = Remedy("every dimension fixed to the example's size", static=True, stages=("capture",))
    every = [
        *_vary_session(request.verify.session, proof, candidate),
        *(_vary_export(proof) if exports else ()),
        *_narrow_sizes(proof),
        *([static] if exports and any(proof.subject.dynamic.values()) else ()),
    ]
    useful = [remedy for remedy in every if remedy.apply(request) != request]
    return sorted(useful, key=lambda remedy: blamed.isdisjoint(remedy.stages))


def _vary_session(session: SessionSettings, proof: Proof, candidate: Candidate) -> list[Remedy]:
    off = session.disabled_optimizers
    changes: dict[str, dict[str, Any]] = {
        f"onnxruntime's rewrite {blame.rewrite} off": {"disabled_optimizers": (*off, blame.rewrite)}
        for blame in proof.blame.values()
        if blame.rewrite
    }
    if candidate.abilities.rewrites:
        lower = reversed(LEVELS[: LEVELS.index(session.optimization)])
        changes |= {f"optimization {level}": {"optimization": level} for level in lower}
    found = [Remedy(what, session=change, stages=("optimize",)) for what, change in changes.items()]
    return [*found, *_vary_providers(session.providers[0].name, candidate)]


def _vary_providers(current: str, candidate: Candidate) -> list[Remedy]:
    """The other providers of the candidate, the CPU's first."""
    found = []
    for name in sorted(candidate.providers(), key=lambda name: name != CPU.name):
        if name not in NEVER_RUNS | {current}:
            session = {"providers": tuple(map(ProviderSpec, dict.fromkeys((name, CPU.name))))}
            found.append(
                Remedy(f"the {shorten_provider(name)} provider", session=session, stages=("provider", "kernel"))
            )
    return found


def _narrow_sizes(proof: Proof) -> list[Remedy]:
    """Fewer sizes: those that the exporter says the program is good for, else those around the example's that passed."""
    weighty = [finding for finding in proof.findings if finding.weight]
    failing = {finding.where.case for finding in weighty}
    failing |= {str(case) for finding in weighty for case in finding.evidence.get("cases", ())}
    sizes = [(_read_sizes(proof, case.inputs), case.name in failing) for case in proof.cases if case.fair]
    exported = _read_sizes(proof, proof.subject.inputs)
    stated = proof.artifact.bounds if proof.artifact is not None else {}
    found = []
    for name, example in exported.items():
        tried = [(one[name], failed) for one, failed in sizes if name in one]
        ends = _find_interval(tried, example, stated.get(name))
        if ends is not None:
            top = "and more" if ends[1] == LARGEST else f"to {ends[1]}"
            found.append(Remedy(f"{name} limited to {ends[0]} {top}", limits={name: ends}, stages=("capture",)))
    return found


def _read_sizes(proof: Proof, inputs: Mapping[str, TensorFacts]) -> dict[str, int]:
    """The sizes of the dynamic dimensions in some inputs."""
    return {
        size: inputs[name].shape[int(dim)]
        for name, dims in proof.subject.dynamic.items()
        if name in inputs
        for dim, size in dims.items()
    }


def _find_interval(
    tried: list[tuple[int, bool]], example: int, stated: tuple[int, int | None] | None
) -> tuple[int, int] | None:
    """Sizes around the example's at which nothing failed, if a failure lies outside."""
    bad = {size for size, failed in tried if failed}
    if not bad or example in bad:
        return None
    low = max((size for size in bad if size < example), default=0) + 1
    end = min((size for size in bad if size > example), default=None)
    passed = {size for size, _ in tried if low <= size and (end is None or size < end)}
    high = LARGEST if end is None else max(passed, default=example)
    if stated is not None and stated[1] is not None and end is not None and stated[1] < end:
        high = max(high, int(stated[1]))
    return (low, high) if len(passed) >= FEWEST and low < high else None


def _vary_export(proof: Proof) -> list[Remedy]:
    made = proof.artifact
    exporter, used = (made.exporter, made.opset) if made is not None else ("dynamo", None)
    other, newest = ("torchscript", max(OPSETS)) if exporter == "dynamo" else ("dynamo", 20)
    opsets = [opset for opset in OPSETS if opset != used and opset <= newest]
    translate = ("translate", "kernel")
    return [
        Remedy("the exporter's optimiser off", export={"optimize": False}, stages=("simplify",)),
        *(Remedy(f"opset {opset}", export={"opset": opset}, stages=translate) for opset in opsets),
        Remedy(f"the {other} exporter", export={"exporter": other, "opset": None}, stages=(*translate, "capture")),
        Remedy("strict capture", export={"strict": True}, stages=("capture",)),
    ]
