"""The whole run, as one list. Each stage says when it is wanted, what its worker is told, and what a death in it means.

The work itself stands in the modules that are named here by text: whoever decides needs neither torch nor onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import Any

from onnxproof.errors import first_line
from onnxproof.findings import Finding, found
from onnxproof.pipeline.closer_look import CloserLook
from onnxproof.pipeline.collected import Collected
from onnxproof.policy.judgement import judge_proof, to_locate
from onnxproof.process.supervisor import End
from onnxproof.request.request import Request
from onnxproof.request.thresholds import Policy
from onnxproof.search.look import TRYING, Look

Arguments = Mapping[str, Any]
# Deaths after which verifying is given up.
MAX_CHILDREN = 20
# Bytes from which on a file is large: its module is built once, and its session is not kept for later.
LARGE = 200_000_000


@dataclass(frozen=True)
class Run:
    """What is asked, under which policy, and what is known so far."""

    request: Request
    policy: Policy
    collected: Collected
    folder: str | None = None
    """Where workers leave files for each other; None where all work is done in this process."""

    def worth_searching(self) -> bool:
        """Whether the planned cases left something to find."""
        if not any(case.outputs for case in self.collected.cases.values()):
            return False
        return not any(finding.severity == "block" for finding in self.all_known().findings)

    def all_known(self) -> Look:
        """What a search need not find again."""
        return self._make_look([finding for finding in self._judge() if finding.weight])

    def look(self) -> Look:
        """What is worth a closer look."""
        return self._make_look(to_locate(self._judge()))

    def look_closer(self, look: Look) -> CloserLook:
        """What a worker is told that looks at this."""
        artifact, ledger = self.collected.known.artifact, self.collected.ledger
        assert artifact is not None  # there is a file, or the stage were not wanted
        known, spent = (ledger.for_a_closer_look(), ledger.forwards) if ledger is not None else (None, 0.0)
        return CloserLook(self.request, artifact, look, self.collected.stateful, known, spent)

    def _judge(self) -> Sequence[Finding]:
        return judge_proof(self.collected.proof, self.policy).findings

    def _make_look(self, findings: Sequence[Finding]) -> Look:
        return Look(tuple(findings), self.collected.outputs, self.collected.files, self.policy)


class Stage:
    """One step of the run."""

    name = ""
    work = ""
    """The worker's function, `package.module:name`."""
    fresh = False
    """Whether its process must be started anew, because it measures itself."""
    shares = False
    """Whether it works where others have, with what they have loaded and made."""
    attempts = 1
    """Children that may be told to do it."""
    optional = False
    """Whether what goes wrong in it leaves the other findings as they are."""
    goes_on = False
    """Whether a run that was ended in it goes on from what was done; else it begins anew."""
    remembered = True
    """Whether a run that goes on takes its word; else it is done again."""
    leaves_to = ""
    """The stage that finds what this one left in a folder that goes with the run."""
    explains = False
    """Whether it finds out more about a verdict that stands before it begins."""

    def wanted(self, run: Run) -> bool:
        """Whether there is anything to do."""
        return run.collected.known.artifact is not None

    def orders(self, run: Run) -> Iterator[Arguments]:
        """What workers are told; most stages have one."""
        yield self.told(run)

    def told(self, run: Run) -> dict[str, Any]:
        """What a worker is told."""
        return {"request": run.request, "artifact": run.collected.known.artifact, "stateful": run.collected.stateful}

    def died(self, run: Run, end: End, attempt: int) -> bool:
        """Note a death, where the stage is not optional; whether another child is to go on."""
        if not self.optional:
            run.collected.observe(run.collected.death(end, "block"))
        return False

    def failed(self, run: Run, error: Exception) -> None:
        """Note what an optional stage raised."""


class Lint(Stage):
    """Look at the module; nothing is exported."""

    name, work, remembered = "lint", "onnxproof.pipeline.exporting:run_lint", False

    def wanted(self, run: Run) -> bool:
        return True

    def told(self, run: Run) -> dict[str, Any]:
        return {"request": run.request}


class Export(Lint):
    """Look at the module and export it, or read the file that was given."""

    name, work, attempts = "export", "onnxproof.pipeline.exporting:run_export", 2

    def told(self, run: Run) -> dict[str, Any]:
        return {**super().told(run), "killed_by": run.collected.exporter_death}

    def died(self, run: Run, end: End, attempt: int) -> bool:
        """Where the default exporter killed its process, the other one is tried in the next."""
        request, collected = run.request, run.collected
        first = collected.exporter_death is None
        again = first and request.export.exporter == "auto" and request.onnx is None and not end.hung
        if again and collected.at[1] == "export":
            collected.exporter_death = end.signal_name or "it died"
            return True
        return super().died(run, end, attempt)


class Read(Export):
    """Look at the module and read a large file that was given: no exporter runs, so the module that is loaded here is the one for all that follows.

    A module that is quickly built is built twice: whether it has other weights each time shows in no other way.
    """

    shares = True


class Lower(Stage):
    """Make the file in a lower precision: from here on, that one is meant."""

    name, work, shares = "quantize", "onnxproof.pipeline.lowering:run_lower", True

    def wanted(self, run: Run) -> bool:
        settings = run.request.quantize
        return settings is not None and settings.making is not None and super().wanted(run)


class Verify(Stage):
    """Run the planned cases on both sides; a death costs its case, and the next child goes on."""

    name, work, attempts = "verify", "onnxproof.pipeline.verifying:run_verify", MAX_CHILDREN
    shares = goes_on = True

    def wanted(self, run: Run) -> bool:
        return run.request.steps.cases and super().wanted(run)

    def told(self, run: Run) -> dict[str, Any]:
        done = frozenset(run.collected.cases) | run.collected.lost
        known = run.collected.known
        so_far = {"done": done, "planned": known.planned, "ledger": run.collected.ledger}
        return {**super().told(run), **so_far, "weights": known.subject.weights}

    def died(self, run: Run, end: End, attempt: int) -> bool:
        collected = run.collected
        collected.observe(collected.death(end))
        case, _ = collected.at
        # It died while setting up, and so would the next one.
        if case is None:
            return False
        collected.lost.add(case)
        planned = collected.known.planned
        left = [name for name in planned if name not in collected.cases and name not in collected.lost]
        if left and attempt + 1 == MAX_CHILDREN:
            message = f"given up after {MAX_CHILDREN} deaths: {len(left)} of {len(planned)} cases were not run"
            collected.observe(found("OX005", message, severity="review", evidence={"cases": left}))
        return bool(left)


class Screen(Stage):
    """Every size and every id that the plan left out, at a glance."""

    name, work, optional = "screen", "onnxproof.pipeline.screening:run_screen", True
    shares = True

    def wanted(self, run: Run) -> bool:
        artifact, request = run.collected.known.artifact, run.request
        lowered = artifact is not None and artifact.precision is not None and artifact.precision.declared
        asked = request.steps.cases and not request.sweep and not lowered
        return asked and super().wanted(run) and run.worth_searching()

    def told(self, run: Run) -> dict[str, Any]:
        return {"closer": run.look_closer(run.all_known())}

    def died(self, run: Run, end: End, attempt: int) -> bool:
        """Where the candidate died of an input, that is what the screen was for."""
        run.collected.observe(run.collected.death(end, "note" if run.collected.at[0] is None else None))
        return False

    def failed(self, run: Run, error: Exception) -> None:
        _tell_early_end(run, self.name, error)


class Trial(Screen):
    """Every piece of the graph on values of its own; where one differs, an input of the model that shows it."""

    name, work = "trial", "onnxproof.pipeline.trying:run_trials"


class Search(Stage):
    """Look for an input on which the sides part, where the planned cases left something to find."""

    name, work, optional = "search", "onnxproof.pipeline.searching:run_search", True
    shares = True

    def wanted(self, run: Run) -> bool:
        asked = run.request.steps.cases and run.request.verify.search > 0
        return asked and super().wanted(run) and run.worth_searching()

    def told(self, run: Run) -> dict[str, Any]:
        return {"closer": run.look_closer(run.all_known())}

    def died(self, run: Run, end: End, attempt: int) -> bool:
        """An input that kills the child is what the search was for: it is kept."""
        case, _ = run.collected.at
        death = run.collected.death(end, "note" if case is None else None)
        trying = Path(str(run.request.verify.counterexamples)) / TRYING
        if case is not None and trying.is_file():
            kept = trying.with_name(f"{run.collected.known.subject.name or 'model'}-{death.code}.npz")
            trying.replace(kept)
            death = replace(death, evidence={**death.evidence, "file": str(kept)})
        run.collected.observe(death)
        return False

    def failed(self, run: Run, error: Exception) -> None:
        _tell_early_end(run, self.name, error)


def _tell_early_end(run: Run, name: str, error: Exception) -> None:
    """What was left out because of an error of ours or of a module's is said."""
    message = f"the {name} ended early: {first_line(error)}"
    run.collected.observe(found("OX007", message, evidence={"error": str(error)[:3000]}))


class Locate(Stage):
    """The cause of what parts, and the smallest input that shows it; what is not found leaves the findings as they are."""

    name, work, optional, explains = "locate", "onnxproof.pipeline.locating:run_locate", True, True
    shares = True

    def wanted(self, run: Run) -> bool:
        steps = run.request.steps
        return steps.cases and not steps.fast and super().wanted(run) and bool(run.look().findings)

    def told(self, run: Run) -> dict[str, Any]:
        return {"closer": run.look_closer(run.look())}


class Evaluate(Stage):
    """Run the data set through both sides. Finished shards are on disk: after a death one more child goes on from there."""

    name, work, attempts = "evaluate", "onnxproof.pipeline.evaluating:run_evaluate", 2
    shares = True

    def wanted(self, run: Run) -> bool:
        return run.request.evaluate is not None and super().wanted(run)

    def died(self, run: Run, end: End, attempt: int) -> bool:
        return (attempt == 0 and not end.hung) or super().died(run, end, attempt)


class Bench(Stage):
    """Time every contender."""

    name, work, fresh, leaves_to = "bench", "onnxproof.pipeline.benching:run_bench", True, "weigh"

    def wanted(self, run: Run) -> bool:
        return run.request.bench is not None and super().wanted(run)

    def told(self, run: Run) -> dict[str, Any]:
        weights = run.collected.known.subject.weights
        return {**super().told(run), "policy": run.policy, "folder": run.folder, "weights": weights}

    def died(self, run: Run, end: End, attempt: int) -> bool:
        run.collected.observe(run.collected.death(end))
        run.collected.to_weigh = None
        return False


class Weigh(Stage):
    """Peak memory of each contender, in a process of its own; one that fails costs only that number."""

    name, work, fresh, optional = "weigh", "onnxproof.pipeline.benching:run_weigh", True, True

    def wanted(self, run: Run) -> bool:
        return run.folder is not None and run.collected.to_weigh is not None

    def orders(self, run: Run) -> Iterator[Arguments]:
        asked = run.collected.to_weigh
        for name in asked.contenders if asked is not None else ():
            yield {
                "request": run.request,
                "artifact": run.collected.known.artifact,
                "contender": name,
                "folder": run.folder,
            }


# The run, in order.
STAGES: tuple[Stage, ...] = (
    Export(),
    Lower(),
    Verify(),
    Screen(),
    Trial(),
    Search(),
    Locate(),
    Evaluate(),
    Bench(),
    Weigh(),
)


def list_stages(request: Request) -> tuple[Stage, ...]:
    """What a request runs through."""
    if request.verb == "lint":
        return (Lint(),)
    return (Read(), *STAGES[1:]) if request.onnx is not None and _is_large(Path(request.onnx)) else STAGES


def _is_large(file: Path) -> bool:
    """With the weights beside it, which are called after it."""
    return sum(one.stat().st_size for one in file.parent.glob(f"{escape(file.name)}*")) > LARGE
