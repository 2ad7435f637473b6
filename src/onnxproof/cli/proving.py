"""The commands that run something: prove, verify, locate, export, diff, bench, evaluate, lint, demo."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxproof.cli.commands import add_command
from onnxproof.cli.ending import check, deliver, load_baseline, stop_for_a_bug, tell, write
from onnxproof.cli.repository import prove_all
from onnxproof.cli.watching import watch
from onnxproof.errors import NotWritten, UserError
from onnxproof.request.build import build_request
from onnxproof.request.configuration import Settings, merge
from onnxproof.request.configuration import write as write_settings
from onnxproof.request.specs import parse_target
from onnxproof.request.verbs import VERBS, Verb

if TYPE_CHECKING:
    from onnxproof.proof.proof import Proof
    from onnxproof.request.request import Request

Arguments = Mapping[str, str | None]
Values = Mapping[str, Any]


def prove(verb: Verb, arguments: Arguments, values: Values) -> None:
    """One TARGET, or with --all every subject of the configuration."""
    target = arguments["target"]
    if values.get("all"):
        if target is not None or verb.name != "prove":
            raise UserError("--all proves every subject of the configuration: give it to `prove`, without a TARGET")
        prove_all(values, prove_subject)
    if target is None:
        raise UserError("expected a TARGET such as model.py:make, or `prove --all` with a configuration")
    run(verb, arguments, values)


def run(verb: Verb, arguments: Arguments, values: Values) -> None:
    """What most verbs do: everything that is set for a TARGET, carried out."""
    target, merged = configure(verb, arguments.get("target"), values)
    work_through(build_request(verb.name, merged, target=target))


def configure(verb: Verb, target: str | None, values: Values) -> tuple[str | None, dict[str, Any]]:
    """The TARGET and its options, with what the environment and the configuration add."""
    if not verb.configured:
        return target, dict(values)
    return merge(verb, target, values, Settings.find(Path.cwd()))


def diff(verb: Verb, arguments: Arguments, values: Values) -> None:
    """A verification of one file against another."""
    first, second = str(arguments["first"]), str(arguments["second"])
    for file in (first, second):
        if not file.endswith(".onnx"):
            raise UserError(f"diff compares two .onnx files, got {file}")
    _, merged = configure(verb, first, values)
    work_through(build_request("diff", {**merged, "onnx": second}, target=first))


def demo(verb: Verb, arguments: Arguments, values: Values) -> None:
    """A model of our own, on data of its own."""
    file = Path(__file__).with_name("digits.py")
    data = {"data": f"{file}:load_unseen", "train_data": f"{file}:load_seen"}
    work_through(build_request("demo", {**values, **data}, target="onnxproof.cli.digits:digits"))


def lint(verb: Verb, arguments: Arguments, values: Values) -> None:
    """A file, or a module before it is exported."""
    target, merged = configure(verb, arguments["target"], values)
    request = build_request("lint", merged, target=target)
    proof: Proof
    if str(target).endswith(".onnx"):
        from onnxproof.api import lint_onnx

        proof = lint_onnx(request)
    elif request.runtimes:
        raise UserError("--runtime is about an ONNX file: give one instead of a module")
    else:
        from onnxproof.process.supervisor import InternalError

        watch(request)
        try:
            proof = _make_proof(request)
        except InternalError as error:
            stop_for_a_bug(str(error), str(error), request.out)
    from onnxproof.report.text import render_lint

    deliver(proof, request, text=render_lint(proof))


def work_through(request: Request) -> None:
    """A request to its end: the proof is made, kept, shown and written."""
    from onnxproof.process.supervisor import InternalError

    check(request.delivery)
    check_target(request)
    watch(request)
    said: list[str] = []
    try:
        proof, unwritten = _make_and_keep(
            request, shlex.join(["onnxproof", *sys.argv[1:]]), lambda proof: said.append(tell(proof, request.delivery))
        )
    except InternalError as error:
        stop_for_a_bug(str(error), str(error), request.out)
    if request.steps.fix:
        _fix(proof, request)
    deliver(proof, request, _choose_requirement(request), said, unwritten=unwritten)


def prove_subject(name: str, values: Values) -> Proof:
    """One subject of many: the proof is made, kept and written; raises where it cannot be."""
    target, merged = configure(VERBS["prove"], name, {**values, "quiet": True})
    request = build_request("prove", merged, target=target)
    if request.in_process:
        raise UserError("--in-process proves one TARGET: with --all every subject is proved in processes of its own")
    check(request.delivery)
    check_target(request)
    proof, unwritten = _make_and_keep(request, shlex.join(["onnxproof", "prove", name]))
    if request.steps.fix:
        _fix(proof, request)
    missing = [*unwritten, *write(proof, request)]
    if missing:
        raise NotWritten(missing[0])
    if (require := _choose_requirement(request)) is not None:
        require(proof)
    return proof


def _choose_requirement(request: Request) -> Callable[[Proof], None] | None:
    from onnxproof.pipeline.conduct import require_something

    asked = request.steps.cases or request.bench is not None or request.evaluate is not None
    return require_something if asked else None


def _make_and_keep(
    request: Request, command: str, tell_early: Callable[[Proof], object] = lambda proof: None
) -> tuple[Proof, list[str]]:
    """The proof, which is in its folder as soon as the verdict stands; why it is not, where it could not be written."""
    from onnxproof.policy.judgement import judge_against

    baseline = load_baseline(request.delivery) if request.delivery.baseline else None
    unwritten: dict[str, None] = {}

    def keep(proof: Proof) -> Proof:
        proof = replace(proof, environment=replace(proof.environment, command=command))
        proof = proof if baseline is None else judge_against(proof, baseline)
        try:
            proof.save(Path(request.out) / "proof.json")
            unwritten.clear()
        except NotWritten as error:  # the verdict stands, and is said before this
            unwritten[str(error)] = None
        return proof

    def keep_early(proof: Proof) -> None:
        # A finding that the baseline has is recognised by its node, which is not known before it was looked for.
        if baseline is None:
            tell_early(keep(proof))

    return keep(_make_proof(request, keep_early)), list(unwritten)


def check_target(request: Request) -> None:
    """What cannot be read is told before seconds of imports."""
    if str(request.target).endswith(".onnx") and request.onnx is None:
        raise UserError(
            f"{request.target} is an ONNX file: there is nothing to export. `onnxproof diff A.onnx B.onnx` compares two"
        )
    if request.target is not None:
        parse_target(request.target)


def _make_proof(request: Request, verdict: Callable[[Proof], None] = lambda proof: None) -> Proof:
    from onnxproof.api import carry_out
    from onnxproof.cli.progress import show_progress
    from onnxproof.pipeline.executors import fork_children

    with (
        show_progress(request.delivery.quiet, verdict) as progress,
        nullcontext() if request.in_process else fork_children(request.out, exporting=request.onnx is None),
    ):
        return carry_out(request, None, progress)


def _fix(proof: Proof, request: Request) -> None:
    """Write the settings that were found to work into the configuration."""
    from onnxproof.heal.healing import list_settings

    changes = list_settings(proof, request)
    if not changes:
        print("fix: nothing had to be changed", file=sys.stderr)
        return
    file = write_settings(Path.cwd(), proof.subject.name or "model", str(request.target), changes)
    told = ", ".join(f"{key} = {value}" for key, value in changes.items())
    print(f"fix: {told} written to {file}", file=sys.stderr)


for name in ("prove", "verify", "locate"):
    add_command(VERBS[name], prove, optional=("target",))
for name in ("export", "runtimes", "bench", "evaluate", "quantize"):
    add_command(VERBS[name], run)
add_command(VERBS["lint"], lint)
add_command(VERBS["diff"], diff)
add_command(VERBS["demo"], demo)


def add_address(arguments: list[str]) -> list[str]:
    """`--ray` without an address means this machine: typer knows no options whose value may be left out."""
    completed = []
    for argument, following in zip(arguments, [*arguments[1:], "-"], strict=True):
        alone = argument == "--ray" and (following.startswith("-") or ".py:" in following)
        completed += [argument, "local"] if alone else [argument]
    return completed
