"""What the commands have in common: options → job and policy → work → what is printed, written and returned."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onnxproof.cli import outputs

if TYPE_CHECKING:
    from onnxproof.policy.policy import Policy
    from onnxproof.proof.proof import Proof
    from onnxproof.request.evaluation import EvaluateSettings


def stop(message: str) -> None:
    print(message, file=sys.stderr)
    sys.exit(2)


def stop_for_a_bug(message: str, trace: str, out: str = "onnxproof-out") -> None:
    """Say that it is our fault, and where the evidence lies."""
    import platform

    from onnxproof import __version__
    from onnxproof.pipeline.bug_report import write_bundle

    versions = {"onnxproof": __version__, "python": platform.python_version(), "platform": platform.platform()}
    folder = write_bundle(Path(out), message=message.splitlines()[0], trace=trace, environment=versions)
    stop(f"This is a bug in onnxproof: {message.splitlines()[0]}\nPlease report it with the files in {folder}.")


def work(options: dict[str, Any], *, verify: bool = True) -> None:
    from onnxproof.cli.progress import shown
    from onnxproof.errors import UserError
    from onnxproof.pipeline.conduct import InternalError, conduct, require_something
    from onnxproof.process.supervisor import nursery
    from onnxproof.request.configuration import Settings, merged
    from onnxproof.request.specs import parse_target

    options = merged(options, options.pop("given", set(options)), Settings.find(Path.cwd()))
    outputs.check(options)
    policy = policy_of(options, None)
    job = job_of(options, policy)
    if str(job.target).endswith(".onnx") and job.onnx is None:
        raise UserError(
            f"{job.target} is an ONNX file: there is nothing to export. `onnxproof diff A.onnx B.onnx` compares two"
        )
    if job.target is not None:
        parse_target(job.target)  # what cannot be read is told before seconds of imports
    try:
        isolate = not options.get("in_process")
        prepared = nursery(exporting=job.onnx is None) if isolate else nullcontext()
        with shown(bool(options.get("quiet"))) as progress, prepared:
            proof = conduct(job, policy, isolate=isolate, verify=verify, progress=progress)
            if options.get("heal"):
                from onnxproof.heal.healing import heal

                proof = heal(job, proof, policy, isolate=isolate, progress=progress)
    except InternalError as error:
        stop_for_a_bug(str(error), str(error), job.out)
        return
    proof = replace(proof, environment={**proof.environment, "command": shlex.join(["onnxproof", *sys.argv[1:]])})
    proof = _held_against_baseline(proof, options)
    _save(proof, Path(job.out))
    if options.get("fix"):
        _fix(proof, options)
    asked = verify or job.bench is not None or job.evaluate is not None
    deliver(proof, options, require_something if asked else None)


def _fix(proof: Proof, options: dict[str, Any]) -> None:
    """Write the settings that were found to work into the configuration."""
    from onnxproof.heal.healing import settings_of
    from onnxproof.request.configuration import write

    changes = settings_of(proof, options)
    if not changes:
        print("fix: nothing had to be changed", file=sys.stderr)
        return
    file = write(Path.cwd(), str(proof.subject.get("name") or "model"), str(options["target"]), changes)
    told = ", ".join(f"{key} = {value}" for key, value in changes.items())
    print(f"fix: {told} written to {file}", file=sys.stderr)


def given(context: typer.Context) -> set[str]:
    """The options that the user wrote on the command line."""
    source = context.get_parameter_source
    return {name for name in context.params if str(getattr(source(name), "name", "")) == "COMMANDLINE"}


def _held_against_baseline(proof: Proof, options: dict[str, Any]) -> Proof:
    """What the baseline found is known; `bench` compares times with it, not findings."""
    given = options.get("baseline") and options.get("verb") != "bench"
    return proof.against(outputs.load_baseline(options)) if given else proof


def _save(proof: Proof, folder: Path) -> None:
    proof.save(folder / "proof.json")


def finish(proof: Proof, text: str, options: dict[str, Any]) -> None:
    """Print a text or the proof, write the proof, and exit by the verdict."""
    if options.get("json") == "-":
        print(proof.dumps())
    else:
        if options.get("json"):
            proof.save(options["json"])
        print(text.splitlines()[0] if options.get("quiet") else text)
    sys.stdout.flush()
    raise typer.Exit(0 if proof.verdict == "ship" else 1)


def deliver(proof: Proof, options: dict[str, Any], require: Any = None) -> None:
    """Print, write and exit."""
    from onnxproof.report.text import culprits, describe_case, render

    target = options.get("json")
    if target == "-":
        print(proof.dumps())
    else:
        if target:
            proof.save(target)
        text = render(proof)
        print(text.splitlines()[0] if options.get("quiet") else text)
        if options.get("verb") == "locate" or (options.get("verb") == "diff" and proof.blame):
            print(culprits(proof))
        if options.get("verbose"):
            print("\n".join(line for case in proof.cases for line in describe_case(case)))
    outputs.write(proof, options)
    sys.stdout.flush()
    if require is not None:
        require(proof)
    raise typer.Exit(0 if proof.verdict == "ship" else 1)


def policy_of(options: dict[str, Any], base: Policy | None) -> Policy:
    from dataclasses import replace

    from onnxproof.api import make_policy
    from onnxproof.cli.timing import with_limits
    from onnxproof.errors import UserError
    from onnxproof.findings import CATALOGUE
    from onnxproof.request.evaluation import parse_gates
    from onnxproof.request.specs import parse_threshold

    thresholds: dict[str, Any] = {}
    for name in ("atol", "rtol", "max_abs"):
        general, special = parse_threshold(options.get(name) or (), name.replace("_", "-"))
        thresholds[name] = {None: general, **special} if special else general
    codes, reasons = options.get("accept") or [], options.get("reason") or []
    if len(codes) != len(reasons):
        raise UserError(f"{len(codes)} --accept and {len(reasons)} --reason: give one reason for each accepted code")
    if "OX004" in codes:
        raise UserError("--accept OX004: nothing compared is never a pass, so it cannot be accepted")
    unknown = [code for code in codes if code not in CATALOGUE]
    if unknown:
        raise UserError(f"--accept {unknown[0]}: there is no such code; `onnxproof explain --all` lists them")
    accept = dict(zip(codes, reasons, strict=True))
    gates = {name: parse_gates(options.get(name) or (), name.replace("_", "-")) for name in ("min", "max", "max_drop")}
    policy = make_policy(noise=options.get("noise"), accept=accept, base=base, **thresholds, **gates)
    return replace(policy, latency=with_limits(options, policy.latency))


def job_of(options: dict[str, Any], policy: Policy) -> Any:
    from onnxproof.api import limits_of
    from onnxproof.cli.timing import bench_of
    from onnxproof.request import specs
    from onnxproof.request.request import CPU, ExportOptions, Job, SessionSettings, VerifySettings

    get = options.get
    exporter: Any = get("exporter") or "auto"
    level = get("optimization") or "all"
    one_of("--exporter", exporter, ("auto", "dynamo", "torchscript"))
    one_of("--optimization", level, ("disable", "basic", "extended", "all"))
    return Job(
        target=get("target"),
        inputs=tuple(specs.parse_input(text) for text in get("input") or ()),
        ranges=dict(specs.parse_range(text) for text in get("range") or ()),
        dynamic=specs.parse_dynamic(get("dynamic") or ()),
        onnx=get("onnx"),
        out=get("out") or "onnxproof-out",
        export=ExportOptions(
            get("opset"), exporter, bool(get("keep_metadata")), not get("no_optimize"), bool(get("strict"))
        ),
        verify=VerifySettings(
            session=SessionSettings(
                tuple(specs.parse_provider(p) for p in get("provider") or ()) or (CPU,),
                level,
                get("threads"),
                tuple(get("disable") or ()),
            ),
            batch_sizes=specs.parse_sizes(get("batch_sizes")),
            data=get("data"),
            seed=get("seed") or 0,
            budget=specs.parse_seconds(get("budget") or "120s"),
            nonfinite=bool(get("nonfinite")),
            roles=dict(specs.parse_role(text) for text in get("role") or ()),
            memory=specs.parse_bytes(str(get("memory"))) if get("memory") else None,
            search=specs.parse_seconds(get("search") or "0"),
            counterexamples=str(Path(get("out") or "onnxproof-out") / "counterexamples"),
            limits=limits_of(policy),
        ),
        bench=bench_of(options),
        evaluate=evaluation_of(options),
        case_timeout=specs.parse_seconds(get("case_timeout") or "300s"),
        export_timeout=specs.parse_seconds(get("case_timeout") or "30m"),
    )


def evaluation_of(options: dict[str, Any]) -> EvaluateSettings | None:
    """What is asked about a data set with labels: by `evaluate`, and by `prove --data` where there are labels."""
    from onnxproof.request.evaluation import EvaluateSettings, checked

    get = options.get
    if get("verb") not in ("prove", "evaluate", "demo") or get("data") is None or get("evaluate") is False:
        return None
    return checked(
        EvaluateSettings(
            data=str(get("data")),
            labels=get("labels"),
            ids=get("ids"),
            train_data=get("train_data"),
            task=get("task"),
            output=get("output"),
            classes=tuple(name.strip() for name in str(get("classes")).split(",")) if get("classes") else (),
            positive=get("positive"),
            threshold=get("threshold"),
            goals=tuple(get("goal") or ()),
            cost=get("cost"),
            delta=0.01 if get("delta") is None else float(str(get("delta"))),
            metrics=tuple(get("metric") or ()),
            preprocess=get("preprocess"),
            serve_preprocess=get("serve_preprocess"),
            with_preprocess=bool(get("with_preprocess")),
            batch_size=get("batch_size"),
            workers=get("workers"),
            ray=get("ray"),
            resume=get("resume") is not False,
            seed=get("seed") or 0,
            required=get("verb") == "evaluate" or get("labels") is not None,
        )
    )


def one_of(flag: str, value: str, known: tuple[str, ...]) -> None:
    from onnxproof.errors import UserError

    if value not in known:
        raise UserError(f"{flag} {value!r}: expected one of {', '.join(known)}")
