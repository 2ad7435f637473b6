"""The worker's part of a closer look: who is to blame, and the smallest input that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from onnxproof.blame.locate import MEMORY, Locator
from onnxproof.cases.plan import Case
from onnxproof.cases.supply import Supply
from onnxproof.findings import Finding
from onnxproof.parity.listener import SILENT
from onnxproof.parity.truth import Effort
from onnxproof.pipeline.closer_look import CloserLook
from onnxproof.pipeline.events import Blamed, Emit, Entered, Shrunk
from onnxproof.pipeline.workshop import Workshop
from onnxproof.search.counterexample import Keeper
from onnxproof.search.script import Sides

# Who looks long enough sees outliers: a difference that was searched for is held against more legal roundings.
SEARCHED = Effort(samples=(8, 32, 96), settles=False)


def run_locate(emit: Emit, closer: CloserLook, shop: Workshop) -> None:
    """Look for the cause of some findings, and for the smallest input that shows each; emits blames and counterexamples."""
    emit(Entered("locate"))
    request, artifact, look = closer.request, closer.artifact, closer.look
    # As strict as a search: what is shrunk and kept is tried in every run from now on.
    effort = replace(SEARCHED, unhurried=True)
    verifier = shop.look_closer(closer, SILENT, effort)
    verifier.calibrate()
    planned = {case.name: case for case in verifier.plan()}
    cases = [(finding, _find_case(str(finding.where.case), planned, look.files)) for finding in look.findings]
    known = [(finding, case) for finding, case in cases if case is not None]
    session, pairs = request.verify.session, verifier.input_pairs
    if request.verify.counterexamples is not None:
        emit(Entered("shrink"))
        sides = Sides(request.target, Path(artifact.path), session, pairs, look.outputs)
        keeper = Keeper(verifier, look.policy, Path(request.verify.counterexamples), sides)
        for finding, case in known:
            emit(Shrunk(keeper.keep(_find_kept(finding, planned) or case, finding)))
    emit(Entered("locate"))
    shop.clear_away(artifact)
    memory = request.verify.memory or MEMORY
    parts = (verifier.subject, artifact, verifier.candidate, session, pairs, look.outputs)
    _blame(
        lambda: Locator(*parts, double=verifier.double, memory=memory, out=request.culprits),
        verifier.supply,
        known,
        emit,
    )


def _find_case(name: str, planned: Mapping[str, Case], files: Mapping[str, str]) -> Case | None:
    if name in files:
        return Case(name, profile="search", file=files[name])
    if name.startswith("rollout="):
        return Case(name, profile="rollout")
    # Verification tries the example where a normal case is rejected; only the normal one is planned.
    case = planned.get(name) or planned.get(name.replace("/example/", "/normal/"))
    if case is not None and "/example/" in name:
        return replace(case, name=name, profile="example")
    return case


def _find_kept(finding: Finding, planned: Mapping[str, Case]) -> Case | None:
    """The smallest input of an earlier run, where it shows the same."""
    before = [name for name in finding.evidence.get("cases", ()) if name.startswith("kept/") and name in planned]
    return planned[before[0]] if before else None


def _blame(make: Callable[[], Locator], supply: Supply, known: list[tuple[Finding, Case]], emit: Emit) -> None:
    try:
        locator = make()
        for finding, case in known:
            blame = locator.locate(supply.make_inputs(case), explained=finding.entry.stage == "precision")
            emit(Blamed(case.name, blame))
    except MemoryError:
        raise
    except Exception as error:
        # A cause that cannot be found leaves the finding as it is.
        emit(Entered(f"locate: {f'{type(error).__name__}: {error}'[:500]}"))
