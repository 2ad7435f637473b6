"""Counterexamples: a failing case, shrunk, kept as a file and a script, and described."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path

import torch

from onnxproof.cases import counterexample_files as keep
from onnxproof.cases.plan import Case, Inputs
from onnxproof.errors import NotWritten
from onnxproof.files import write_file
from onnxproof.findings import Finding
from onnxproof.parity.verifier import Verifier
from onnxproof.policy.judgement import judge_case
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.comparison import Comparison
from onnxproof.proof.search import Counterexample
from onnxproof.request.thresholds import Policy
from onnxproof.search.script import NoScript, Sides, write_script
from onnxproof.search.shrink import Shrinker, show_in_full

# How far beyond what rounding explains a difference must be that was searched for: who looks long enough sees outliers.
SURE = 2.0
# How far beyond what rounding may explain a difference must be at a glance, while its input is made smaller: the first that holds.
FAR = (20.0, 4.0)
# Seconds of work that may go into one smallest input, and how many inputs are tried at least and at most; in full, at least as many.
SHRINKING = 10.0
TRIES, CAREFULLY = (4, 600), 8
# How many times as dear a full judgement is, which asks for dozens of legal roundings.
CAREFUL = 40
# Bytes up to which a module that is only in memory is saved beside its counterexample.
SMALL_MODULE = 100_000_000


def list_gating(result: CaseResult, policy: Policy) -> list[Finding]:
    """What one case that was searched for says against the candidate."""
    against = [finding for finding in judge_case(result, policy) if finding.weight]
    return [finding for finding in against if finding.excess is None or finding.excess > SURE]


def measure_nearness(result: CaseResult, threshold: float) -> tuple[float, int]:
    """How near a case is to what rounding cannot explain (1 is the border), and the row of its worst element."""
    score, row = 0.0, 0
    for c in result.outputs:
        if c.noise is not None:
            ratio = max(c.noise.ratio, c.noise.worst_ratio) / threshold
            one = ratio if c.noise.unexplained is None else c.noise.unexplained
            if one > score:
                score, row = one, c.worst[0].index[0] if c.worst and c.worst[0].index else 0
    return score, row


def _is_among(finding: Finding, others: Iterable[Finding]) -> bool:
    return any((one.code, one.where.output) == (finding.code, finding.where.output) for one in others)


def _apply_allowance(c: Comparison, allowance: float) -> Comparison:
    """A comparison whose exactness is held against an allowance that is known from another input."""
    if c.exactness is None:
        return c
    ratio = c.exactness.error / allowance if allowance else 0.0
    return replace(c, exactness=replace(c.exactness, allowance=allowance, ratio=ratio))


@dataclass(frozen=True)
class Keeper:
    """Shrinks and writes counterexamples of one subject."""

    verifier: Verifier
    policy: Policy
    folder: Path
    sides: Sides

    def keep(self, case: Case, finding: Finding) -> Counterexample:
        """Shrink a failing case (one that was kept before stays as it is), write it and describe it."""
        inputs = self.verifier.supply.make_inputs(case)
        old = case.name.startswith("kept/")
        inputs, tried = (inputs, 0) if old else self._shrink(inputs, finding)
        name = Path(case.name).name if old else self._choose_name(finding, inputs)
        file = self.folder / f"{name}.npz"
        keep.write(file, inputs)
        script = self._try_script(file.with_suffix(".py"), finding, inputs)
        return Counterexample(
            name,
            finding.code,
            finding.where.output,
            case.name,
            str(file),
            str(script) if script else None,
            show_in_full(inputs),
            {key: array.shape for key, array in inputs.items()},
            tried,
        )

    def _shrink(self, inputs: Inputs, finding: Finding) -> tuple[Inputs, int]:
        """The smallest input, and how many were tried. Each step is judged at a glance where the difference is far beyond
        rounding, and the last one in full; where that says no, every step is."""
        domains, tries = self.verifier.supply.domains, self._count_tries(inputs)
        far = next((far for far in FAR if self._fails_clearly(inputs, finding, far)), None)
        quick = Shrinker(domains, lambda trial: self._fails_clearly(trial, finding, far or FAR[0]), tries)
        if far is not None:
            small = quick.shrink(inputs)
            if self._fails(small, finding):
                return small, quick.tried
        careful = Shrinker(domains, lambda trial: self._fails(trial, finding), max(CAREFULLY, tries // CAREFUL))
        return careful.shrink(inputs), quick.tried + careful.tried

    def _count_tries(self, inputs: Inputs) -> int:
        work = self.verifier.work.case(sum(array.size for array in inputs.values()))
        return max(TRIES[0], min(TRIES[1], int(SHRINKING / work)))

    def _fails(self, inputs: Inputs, finding: Finding) -> bool:
        """Whether these inputs fail in the same way: another fault would be another counterexample."""
        result = self.verifier.evaluate(Case("shrink"), inputs)
        return _is_among(finding, list_gating(result, self.policy))

    def _fails_clearly(self, inputs: Inputs, finding: Finding, far: float) -> bool:
        """Whether they do at a glance, without asking what rounding explains."""
        result = self.verifier.evaluate(Case("shrink"), inputs, glance=True, inside=finding.entry.inside)
        allowance = far * float(finding.evidence.get("exactness", {}).get("allowance", 0.0))
        outputs = tuple(_apply_allowance(c, allowance) for c in result.outputs)
        policy = replace(self.policy, noise=far * self.policy.noise)
        return _is_among(finding, [one for one in judge_case(replace(result, outputs=outputs), policy) if one.weight])

    def _choose_name(self, finding: Finding, inputs: Inputs) -> str:
        """A name that no other input has: one that a run wrote which was then ended is written again."""
        parts = [self.verifier.subject.name, finding.code, finding.where.output or ""]
        stem = re.sub(r"[^A-Za-z0-9_.]+", "-", "-".join(part for part in parts if part))[:100].strip("-.")
        taken = {file.stem for file in keep.read_folder(self.folder) if not keep.holds(file, inputs)}
        return next(name for name in chain([stem], (f"{stem}-{i}" for i in count(2))) if name not in taken)

    def _try_script(self, file: Path, finding: Finding, inputs: Inputs) -> Path | None:
        """The script, where the module can be loaded again and its call be written down."""
        try:
            if self.verifier.candidate.abilities.elsewhere:
                raise NoScript("one interpreter cannot show both sides")
            # 2 marks a dtype that another package registered, such as ml_dtypes' bfloat16.
            if any(array.dtype.isbuiltin == 2 for array in inputs.values()):
                raise NoScript("numpy alone cannot read this dtype")
            module_file = None if self.sides.target is not None else self._save_module(file)
            write_script(file, f"{finding.code}: {finding.message}", self.verifier.subject, self.sides, module_file)
        except (MemoryError, NotWritten):
            raise
        except Exception:
            # Without its script it is of no use to anybody.
            file.with_suffix(".module.pt").unlink(missing_ok=True)
            return None  # one process cannot show it, or no code can build it: the npz remains
        return file

    def _save_module(self, file: Path) -> str:
        module = self.verifier.subject.module
        size = sum(t.numel() * t.element_size() for t in (*module.parameters(), *module.buffers()))
        if size > SMALL_MODULE:
            raise NoScript("the module is only in memory, and too large to be saved beside each counterexample")
        saved = file.with_suffix(".module.pt")
        stream = io.BytesIO()
        torch.save(module, stream)
        write_file(saved, stream.getvalue())
        return saved.name
