"""The planned cases, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from onnxproof.candidates.roles import CANDIDATE, name_stage
from onnxproof.cases.plan import Case
from onnxproof.findings import Finding, Severity, Where, found
from onnxproof.parity.listener import Listener
from onnxproof.parity.rollout import is_beyond
from onnxproof.parity.verifier import Verifier
from onnxproof.parity.work import PATIENCE


def verify(
    verifier: Verifier,
    listener: Listener,
    done: frozenset[str] = frozenset(),
    budget: float = 120.0,
    planned: Sequence[str] = (),
) -> None:
    """Run the planned cases that are not done yet, as many as the budget has work for; those that were `planned` before, where some were."""
    verifier.calibrate()
    cases = [case for case in verifier.plan() if not planned or case.name in planned]
    listener.plan(cases, verifier.supply.coverage(cases))
    for finding in verifier.supply.remarks():
        listener.finding(finding)
    began, left_out, cut = time.perf_counter(), list[str](), list[str]()
    for case in cases:
        if case.name in done:
            continue
        if time.perf_counter() - began > PATIENCE * budget:
            cut.append(case.name)
            continue
        try:
            result = verifier.run(case)
        except MemoryError as error:
            # Only the candidate's own lack of memory is held against it.
            severity: Severity = "block" if verifier.stage == CANDIDATE else "note"
            message = f"out of memory in case {case.name}, stage {name_stage(verifier.stage)}"
            evidence = {"error": str(error)[:300], "stage": name_stage(verifier.stage)}
            listener.finding(found("OX003", message, where=Where(case=case.name), severity=severity, evidence=evidence))
            continue
        if result is None:
            left_out.append(case.name)
            continue
        listener.case(result, verifier.ledger)
        if result.status == "rejected" and case.profile == "normal":
            _try_example(verifier, case, listener, done)
    _walk_freely(verifier, listener, {*done, *(case.name for case in cases)})
    for finding in (
        *verifier.find_faults(),
        *verifier.find_saturation(cases),
        *_tell_left_out(cases, left_out, cut, budget),
    ):
        listener.finding(finding)


def _walk_freely(verifier: Verifier, listener: Listener, known: set[str]) -> None:
    """Both sides in free run; the step that goes wrong first is also run with the state that the module has there."""
    rollout = verifier.roll_out(known)
    if rollout is None:
        return
    listener.rollout(rollout)
    last = len(rollout.steps) - (not rollout.message)
    case = Case(f"{rollout.name}/step={last}", profile="rollout")
    parted = bool(rollout.message) or (bool(rollout.steps) and is_beyond(rollout.steps[-1]))
    rollouts = verifier.supply.rollouts
    feedable = rollouts is not None and bool(rollouts.state)
    result = verifier.run(case) if parted and feedable and case.name not in known else None
    if result is not None:
        listener.case(result, verifier.ledger)


def _tell_left_out(
    cases: Sequence[Case], unaffordable: Sequence[str], cut: Sequence[str], budget: float
) -> Iterator[Finding]:
    """What a reader must know who takes the plan for what was run."""
    missing = {*unaffordable, *cut}
    severity: Severity = "review" if any(case.core and case.name in missing for case in cases) else "note"
    told = (
        (unaffordable, f"they would not fit into the budget of {budget:g} s or into memory"),
        (cut, f"the clock cut after {PATIENCE * budget:g} s, {PATIENCE:g} times the budget"),
    )
    for names, why in told:
        if names:
            message = f"{len(names)} of {len(cases)} cases were left out: {why}"
            yield found("OX005", message, severity=severity, evidence={"cases": list(names)})


def _try_example(verifier: Verifier, case: Case, listener: Listener, done: frozenset[str]) -> None:
    """Where the module refuses random values at some sizes, its own example at those sizes may do."""
    again = replace(case, name=case.name.replace("/normal/", "/example/"), profile="example")
    result = verifier.run(again) if again.name not in done else None
    if result is not None and result.status != "rejected":
        listener.case(result, verifier.ledger)
