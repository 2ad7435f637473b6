"""Opinions about differences that no case has reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from onnxproof.findings import Finding, Severity, found
from onnxproof.proof.trials import Latent, Trials


def judge_trials(trials: Trials | None) -> Iterator[Finding]:
    """What is to be said of pieces that differ on values that no case brought there."""
    for one in trials.latent if trials is not None else ():
        if one.reached is None:
            yield _tell(one)


def _tell(one: Latent) -> Finding:
    piece = one.last if one.first == one.last else f"{one.first} to {one.last}"
    taken = " and ".join(f"{number:.6g}" for number in one.given.values())
    on = f"on {taken}" if taken else f"on {one.profile} values"
    on += f" at {', '.join(f'{name}={size}' for name, size in one.sizes.items())}" if one.sizes else ""
    how = (
        "no input was found that brings such values there, but the cases come near them"
        if one.near and not one.swallowed
        else "the outputs are the same with either"
        if one.swallowed
        else "no case comes near such values"
    )
    who = f"{one.op} ({piece})" if not one.kernel else f"the runtime's {one.op} ({piece})"
    message = f"{who} by itself gives {one.got:.6g} where PyTorch gives {one.expected:.6g}, {on}; {how}"
    # Of nothing at all a difference gates where the cases are asked for it.
    fair = one.near and not one.swallowed and 0 not in one.sizes.values()
    severity: Severity = "review" if fair else "note"
    evidence = {name: value for name, value in asdict(one).items() if name != "where"}
    return found("OX250", message, where=one.where, severity=severity, evidence=evidence)
