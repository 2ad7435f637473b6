"""One file on several runtimes: plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import ClassVar

from onnxproof.findings import Finding, Verdict, decide_verdict


@dataclass(frozen=True)
class RuntimeResult:
    """What one runtime made of the file."""

    PUBLISHED: ClassVar = ("verdict",)
    ADDED: ClassVar = ("reproduction",)

    runtime: str
    """As `--runtime` names it; `onnxruntime` is the installed one."""
    version: str | None = None
    """Of its onnxruntime."""
    asked: bool = True
    """Whether it was named: one that was not does not gate."""
    findings: tuple[Finding, ...] = ()
    """What gates there."""
    worst_noise_ratio: float | None = None
    p50_ms: float | None = None
    """The median of a few runs on the example: a glance, not a benchmark."""
    seconds: float = 0.0
    """How long it took to verify."""
    reproduction: str | None = None
    """The folder of the node that is wrong there, alone, with a script whose exit code says so."""

    @property
    def verdict(self) -> Verdict:
        """SHIP, REVIEW or BLOCK, in lower case."""
        return decide_verdict(self.findings)

    @property
    def release(self) -> tuple[int, ...] | None:
        """The version of a release of onnxruntime for Python, to sort by; None for any other runtime."""
        if not self.runtime.startswith("onnxruntime") or self.version is None:
            return None
        return tuple(int(part) for part in self.version.split(".") if part.isdigit())


def sort_results(results: Iterable[RuntimeResult]) -> list[RuntimeResult]:
    """Releases from the oldest on, then the others."""
    return sorted(results, key=lambda one: (one.release is None, one.release or ()))


def group_results(results: Iterable[RuntimeResult]) -> list[Sequence[RuntimeResult]]:
    """Neighbouring releases of which the same is to be said; any other runtime by itself."""

    def alike(one: RuntimeResult) -> tuple[object, ...]:
        alone = one.runtime if one.release is None else None
        return (alone, one.verdict, *(finding.code for finding in one.findings[:1]))

    return [list(group) for _, group in groupby(sort_results(results), alike)]


def name_group(group: Sequence[RuntimeResult]) -> str:
    """`onnxruntime 1.15.0–1.17.3`."""
    first, last = group[0], group[-1]
    if first.release is None:
        return first.runtime
    return f"onnxruntime {first.version}" + (f"–{last.version}" if last is not first else "")


def find_changes(results: Iterable[RuntimeResult]) -> list[tuple[RuntimeResult, RuntimeResult]]:
    """Neighbouring releases whose verdicts differ."""
    releases = [one for one in sort_results(results) if one.release is not None]
    return [(before, after) for before, after in pairwise(releases) if before.verdict != after.verdict]
