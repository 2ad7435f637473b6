"""The Python interface: the verbs of the command line, with keyword-only options named as the flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxproof.candidates import choose_candidate, expand_runtimes
from onnxproof.errors import FindingError, UserError
from onnxproof.pipeline.collected import Progress
from onnxproof.pipeline.conduct import conduct
from onnxproof.pipeline.runtimes import settle_runtimes
from onnxproof.policy import asked
from onnxproof.policy.judgement import judge_proof
from onnxproof.proof.blame import Blame
from onnxproof.proof.environment import Environment
from onnxproof.proof.subject import SubjectFacts
from onnxproof.proved import Proof
from onnxproof.request.benchmark import BenchSettings
from onnxproof.request.build import build_request, show_options, take_keywords
from onnxproof.request.request import Request
from onnxproof.request.session import SessionSettings
from onnxproof.request.thresholds import Policy


def make_policy(*, base: Policy | None = None, **given: Any) -> Policy:
    """A policy from tolerances, gates, limits and accepted codes, as `report` takes them, on top of another one."""
    return asked.make_policy(build_request("report", take_keywords("report", given)).judgement, base)


@show_options("prove")
def prove(
    model: Any,
    inputs: Any = None,
    *,
    bench: bool | BenchSettings = False,
    verify_cases: bool = True,
    isolate: bool = False,
    policy: Policy | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Proof:
    """Export the model (or take `onnx`), verify it under onnxruntime, and judge; data with labels are evaluated too.

    `model` is a `torch.nn.Module` with `inputs` (a tuple of positional or a dict of keyword inputs), or a TARGET string.
    `bench=True` times both sides too; `verify_cases=False` leaves the planned cases out; `isolate=True` works in
    supervised children.
    """
    timed = {"bench": True} if bench else {}
    request = _make_request("prove", model, inputs, {**options, **timed}, isolate=isolate, cases=verify_cases)
    if isinstance(bench, BenchSettings):
        request = replace(request, bench=bench)
    return carry_out(request, policy, progress)


@show_options("verify")
def verify(model: Any, inputs: Any = None, *, onnx: str | Path, **options: Any) -> Proof:
    """Verify a file against the model: `prove` with a given artifact, parity only."""
    return prove(model, inputs, onnx=onnx, **{"evaluate": False, **options})


@show_options("evaluate")
def evaluate(
    model: Any,
    inputs: Any = None,
    *,
    data: Any,
    isolate: bool = False,
    policy: Policy | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Proof:
    """Run a data set with labels through both sides, and judge what changed; the answer is in `proof.quality`.

    `data` is a file or `file.py:name` as on the command line, or the object itself: arrays, batches, a `DataLoader`.
    """
    from onnxproof.data.opening import hold

    with hold(data) as source:
        request = _make_request("evaluate", model, inputs, {**options, "data": source}, isolate=isolate)
        return carry_out(request, policy, progress)


@show_options("locate")
def locate(model: Any, inputs: Any = None, **options: Any) -> Mapping[str, Blame]:
    """Case → who is to blame (step, nodes, modules, lines) for the differences found; empty where nothing parts."""
    return prove(model, inputs, **options).blame


@show_options("runtimes")
def runtimes(
    model: Any,
    inputs: Any = None,
    *,
    isolate: bool = False,
    policy: Policy | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Proof:
    """Verify one file on many runtimes: `proof.runtimes` has what each made of it, the rest is about the first."""
    return carry_out(_make_request("runtimes", model, inputs, options, isolate=isolate), policy, progress)


@show_options("quantize")
def quantize(
    model: Any,
    inputs: Any = None,
    *,
    data: Any = None,
    isolate: bool = False,
    policy: Policy | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Proof:
    """Make the model's file in lower precisions, prove each, and name the best: `proof.quantization` has all of them.

    `data` are rows that calibrate and others that judge: a file or `file.py:name` as on the command line, or the object itself.
    """
    from onnxproof.data.opening import hold

    with hold("" if data is None else data) as source:
        given = {**options, "data": source} if source else options
        return carry_out(_make_request("quantize", model, inputs, given, isolate=isolate), policy, progress)


@show_options("bench")
def bench(
    model: Any,
    inputs: Any = None,
    *,
    isolate: bool = False,
    policy: Policy | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Proof:
    """Time the model against its export (or `onnx`): `proof.latency` has the numbers, the findings what they mean.

    `max_latency` maps percentiles to milliseconds; `min_time` and `budget` are seconds.
    """
    return carry_out(_make_request("bench", model, inputs, options, isolate=isolate), policy, progress)


@show_options("export")
def export(
    model: Any, inputs: Any = None, *, isolate: bool = False, progress: Progress | None = None, **options: Any
) -> Proof:
    """Export only: the proof has the artifact and what was found on the way, and no cases."""
    return carry_out(_make_request("export", model, inputs, options, isolate=isolate), None, progress)


@show_options("lint")
def lint(file: str | Path, *, policy: Policy | None = None, **options: Any) -> Proof:
    """Look at an ONNX file without building a session: the proof has findings and no cases."""
    return lint_onnx(build_request("lint", take_keywords("lint", options), target=str(file)), policy)


def lint_onnx(request: Request, policy: Policy | None = None) -> Proof:
    """The file that a request names, looked at."""
    from onnxproof.artifact.file import describe
    from onnxproof.graph.file import hold_against
    from onnxproof.graph.view import Graph
    from onnxproof.lints.graph import lint_graph

    path, session = Path(str(request.target)), request.verify.session
    policy = asked.make_policy(request.judgement, policy)
    providers = [provider.name for provider in session.providers]
    release, artifact, findings = _find_release(request.runtimes), None, []
    try:
        with hold_against(path):
            graph = Graph.read(path)
            artifact = describe(graph)
            findings = lint_graph(graph, providers, release)
    except FindingError as error:
        findings = [error.finding]
    environment = Environment(providers=tuple(providers), runtime=", ".join(request.runtimes) or None)
    proof = Proof(SubjectFacts(path.name, str(path)), artifact, environment, (), tuple(findings))
    return judge_proof(proof, policy)


def _find_release(runtimes: Sequence[str]) -> str | None:
    """The release of onnxruntime that a file is looked at for, `1.20` or as elsewhere; any other runtime is asked for its own."""
    bare = len(runtimes) == 1 and runtimes[0][:1].isdigit()
    named = runtimes if bare or len(runtimes) > 1 else expand_runtimes(runtimes)
    if len(named) > 1:
        raise UserError(f"lint looks at one runtime at a time, and --runtime names {', '.join(named)}")
    text = named[0].removeprefix("onnxruntime==") if named else None
    if text is None or text[:1].isdigit():
        return text
    return choose_candidate(SessionSettings(runtime=text)).versions()["onnxruntime"]


def carry_out(request: Request, policy: Policy | None = None, progress: Progress | None = None) -> Proof:
    """A request as a proof; a wrong one is healed where that was asked for."""
    policy, request = asked.make_policy(request.judgement, policy), settle_runtimes(request)
    if request.quantize is not None:
        from onnxproof.quantization.trials import quantize

        return Proof.of(quantize(request, policy, progress=progress))
    proof = conduct(request, policy, progress=progress)
    if request.steps.heal:
        from onnxproof.heal.healing import heal

        proof = heal(request, proof, policy, progress=progress)
    return Proof.of(proof)


def _make_request(
    verb: str, model: Any, inputs: Any, options: Mapping[str, Any], *, isolate: bool, cases: bool | None = None
) -> Request:
    """Of a module in memory, or of a TARGET."""
    place = {"target": model} if isinstance(model, str) else {"held": (model, inputs)}
    values = take_keywords(verb, options)
    return build_request(verb, {**values, "in_process": not isolate}, cases=cases, **place)
