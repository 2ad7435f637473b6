"""The command line: the only place that prints and exits."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from onnxproof.policy import Policy
    from onnxproof.proof import Proof

app = typer.Typer(
    name="onnxproof",
    help="May this ONNX model replace its PyTorch original in production?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Target = Annotated[
    str, typer.Argument(help="path/file.py:name, package.module:name, file.pt2 or file.pt", show_default=False)
]
Onnx = Annotated[str | None, typer.Option("--onnx", help="Prove this file instead of exporting.", show_default=False)]
Input = Annotated[
    list[str] | None,
    typer.Option("--input", help="Example input: x:4x3x224x224:float32 (repeatable).", show_default=False),
]
Range_ = Annotated[
    list[str] | None,
    typer.Option("--range", help="Valid values, both ends included: ids:0,30521 (repeatable).", show_default=False),
]
RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        help="What an input means: ids:id, x:image, m:mask, m:additive-mask, n:length, n:integer, x:float (repeatable).",
        show_default=False,
    ),
]
Search = Annotated[
    str | None,
    typer.Option("--search", help="Look for an input that breaks it, this long: 30s, 5m.", show_default=False),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", help="Memory for inner values while locating: 512MB. Default 2GB.", show_default=False),
]
Dynamic = Annotated[
    list[str] | None,
    typer.Option(
        "--dynamic",
        help="Dynamic dims: x:0=batch,1=seq (repeatable); 'none' for none. Default: the batch.",
        show_default=False,
    ),
]
Batches = Annotated[
    str | None, typer.Option("--batch-sizes", help="Batch sizes to verify: 1,2,7,32,128.", show_default=False)
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data", help="Your data: npz, npy, pt, safetensors, csv, parquet or file.py:name.", show_default=False
    ),
]
Opset = Annotated[
    int | None, typer.Option("--opset", help="Opset to export. Default: the exporter's best.", show_default=False)
]
ExporterName = Annotated[str, typer.Option("--exporter", help="dynamo, torchscript or auto.")]
KeepMetadata = Annotated[
    bool, typer.Option("--keep-metadata", help="Leave source paths and lines in the shipped file.")
]
Provider = Annotated[
    list[str] | None,
    typer.Option("--provider", help="Execution provider NAME[:k=v,…] (repeatable). Default: CPU.", show_default=False),
]
Optimization = Annotated[str, typer.Option("--optimization", help="disable, basic, extended or all.")]
Threads = Annotated[int | None, typer.Option("--threads", help="onnxruntime's intra-op threads.", show_default=False)]
Atol = Annotated[
    list[str] | None,
    typer.Option("--atol", help="Absolute tolerance, or output=number (repeatable). Default 1e-4.", show_default=False),
]
Rtol = Annotated[
    list[str] | None,
    typer.Option("--rtol", help="Relative tolerance, or output=number (repeatable). Default 1e-3.", show_default=False),
]
MaxAbs = Annotated[
    list[str] | None,
    typer.Option("--max-abs", help="Largest absolute difference, or output=number. Default 1e-3.", show_default=False),
]
Noise = Annotated[
    float | None,
    typer.Option(
        "--noise", help="Times PyTorch's own rounding error that is accepted. Default 10.", show_default=False
    ),
]
Accept = Annotated[
    list[str] | None, typer.Option("--accept", help="Accept findings of this code (with --reason).", show_default=False)
]
Reason = Annotated[list[str] | None, typer.Option("--reason", help="Why: one for each --accept.", show_default=False)]
Nonfinite = Annotated[bool, typer.Option("--nonfinite", help="NaN and infinite inputs gate the verdict too.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the generated cases.")]
Budget = Annotated[str, typer.Option("--budget", help="Time for verifying: 120s, 5m.")]
CaseTimeout = Annotated[
    str | None,
    typer.Option(
        "--case-timeout", help="Longest silence of a stage. Default 300s, 30m for the export.", show_default=False
    ),
]
InProcess = Annotated[bool, typer.Option("--in-process", help="Work in this process (for debugging).")]
Json = Annotated[str | None, typer.Option("--json", help="Write the proof; - for stdout.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the verdict's line.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="One line for every output of every case.")]
Out = Annotated[str, typer.Option("--out", help="Folder for the artifact and the proof.")]


def main() -> None:
    """Run, and turn errors into messages and exit codes: 1 for REVIEW and BLOCK, 2 for wrong usage and our own bugs."""
    from onnxproof.errors import UserError

    try:
        app()
    except UserError as error:
        _stop(f"error: {error}")
    except KeyboardInterrupt:
        _stop("interrupted")
    except Exception as error:
        _stop(
            f"{traceback.format_exc()}\nThis is a bug in onnxproof ({type(error).__name__}): please report it with the lines above."
        )


def _stop(message: str) -> None:
    print(message, file=sys.stderr)
    sys.exit(2)


@app.command("prove", help="Export, verify and judge: the whole proof.")
@app.command("verify", help="Verify parity only, of a file (--onnx) or of a fresh export.")
@app.command("locate", help="Verify, and show the step, the nodes, the modules and the lines to blame.")
def prove(
    context: typer.Context,
    target: Target,
    onnx: Onnx = None,
    input: Input = None,
    range: Range_ = None,
    role: RoleOption = None,
    dynamic: Dynamic = None,
    batch_sizes: Batches = None,
    data: Data = None,
    opset: Opset = None,
    exporter: ExporterName = "auto",
    keep_metadata: KeepMetadata = False,
    provider: Provider = None,
    optimization: Optimization = "all",
    threads: Threads = None,
    atol: Atol = None,
    rtol: Rtol = None,
    max_abs: MaxAbs = None,
    noise: Noise = None,
    accept: Accept = None,
    reason: Reason = None,
    nonfinite: Nonfinite = False,
    seed: Seed = 0,
    budget: Budget = "120s",
    search: Search = None,
    memory: Memory = None,
    case_timeout: CaseTimeout = None,
    in_process: InProcess = False,
    json: Json = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    out: Out = "onnxproof-out",
) -> None:
    """The verbs that run both sides share their options."""
    options = {name: value for name, value in locals().items() if name != "context"}
    _prove({**options, "verb": context.info_name})


@app.command()
def diff(
    first: Annotated[str, typer.Argument(help="The file that is right: before an optimiser, a quantiser, …")],
    second: Annotated[str, typer.Argument(help="The file that is to replace it.")],
    range: Range_ = None,
    role: RoleOption = None,
    batch_sizes: Batches = None,
    data: Data = None,
    provider: Provider = None,
    optimization: Optimization = "all",
    threads: Threads = None,
    atol: Atol = None,
    rtol: Rtol = None,
    max_abs: MaxAbs = None,
    noise: Noise = None,
    accept: Accept = None,
    reason: Reason = None,
    nonfinite: Nonfinite = False,
    seed: Seed = 0,
    budget: Budget = "120s",
    search: Search = None,
    memory: Memory = None,
    case_timeout: CaseTimeout = None,
    in_process: InProcess = False,
    json: Json = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    out: Out = "onnxproof-out",
) -> None:
    """Compare two ONNX files: before and after an optimiser, a quantiser, a simplifier, another opset."""
    from onnxproof.errors import UserError

    options = {name: value for name, value in locals().items() if name not in ("first", "second", "UserError")}
    for file in (first, second):
        if not file.endswith(".onnx"):
            raise UserError(f"diff compares two .onnx files, got {file}")
    _prove({**options, "target": first, "onnx": second, "verb": "diff"})


@app.command()
def export(
    target: Target,
    input: Input = None,
    range: Range_ = None,
    dynamic: Dynamic = None,
    opset: Opset = None,
    exporter: ExporterName = "auto",
    keep_metadata: KeepMetadata = False,
    case_timeout: CaseTimeout = None,
    in_process: InProcess = False,
    json: Json = None,
    quiet: Quiet = False,
    out: Out = "onnxproof-out",
) -> None:
    """Export only: eval mode, dynamic batch, readable names, a stripped file and its source map."""
    _prove(dict(locals()), verify=False)


@app.command()
def report(
    proof: Annotated[str, typer.Argument(help="A proof.json.", show_default=False)],
    atol: Atol = None,
    rtol: Rtol = None,
    max_abs: MaxAbs = None,
    noise: Noise = None,
    accept: Accept = None,
    reason: Reason = None,
    json: Json = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show a saved proof again, or judge it under another policy, without running anything."""
    from onnxproof.proof import Proof

    loaded = Proof.load(proof)
    judged = loaded.judged(_policy(dict(locals()), loaded.policy))
    _deliver(judged, {"json": json, "quiet": quiet, "verbose": verbose})


@app.command()
def explain(
    code: Annotated[str | None, typer.Argument(help="A finding's code, such as OX201.", show_default=False)] = None,
    all: Annotated[bool, typer.Option("--all", help="Every code.")] = False,
) -> None:
    """Say what a finding means, why it matters and how to fix it."""
    from onnxproof.errors import UserError
    from onnxproof.findings import CATALOGUE

    if all:
        print("\n".join(f"{entry.code}  {entry.severity:<6}  {entry.title}" for entry in CATALOGUE.values()))
        return
    if code is None or code.upper() not in CATALOGUE:
        raise UserError(f"there is no code {code!r}; `onnxproof explain --all` lists them")
    entry = CATALOGUE[code.upper()]
    print(
        f"{entry.code}: {entry.title} ({entry.severity})\n\n{entry.what}\n\nWhy it matters: {entry.why}\n\nWhat to do: {entry.fix}"
    )


@app.command()
def demo(json: Json = None, quiet: Quiet = False, verbose: Verbose = False, out: Out = "onnxproof-out") -> None:
    """Train a small CNN on scikit-learn's digits and prove its export."""
    _prove({"target": "onnxproof.digits:digits", "json": json, "quiet": quiet, "verbose": verbose, "out": out})


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """May this ONNX model replace its PyTorch original in production?"""
    if show:
        from onnxproof import __version__

        print(__version__)
        raise typer.Exit


def _prove(options: dict[str, Any], *, verify: bool = True) -> None:
    from onnxproof.conductor import InternalError, conduct, require_something
    from onnxproof.errors import UserError
    from onnxproof.progress import shown

    policy = _policy(options, None)
    job = _job(options, policy)
    if str(job.target).endswith(".onnx") and job.onnx is None:
        raise UserError(
            f"{job.target} is an ONNX file: there is nothing to export. `onnxproof diff A.onnx B.onnx` compares two"
        )
    try:
        with shown(bool(options.get("quiet"))) as progress:
            proof = conduct(job, policy, isolate=not options.get("in_process"), verify=verify, progress=progress)
    except InternalError as error:
        _stop(f"{error}\nThis is a bug in onnxproof: please report it with the lines above.")
        return
    _save(proof, Path(job.out))
    _deliver(proof, options, require_something if verify else None)


def _save(proof: Proof, folder: Path) -> None:
    proof.save(folder / "proof.json")


def _deliver(proof: Proof, options: dict[str, Any], require: Any = None) -> None:
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
    sys.stdout.flush()
    if require is not None:
        require(proof)
    raise typer.Exit(0 if proof.verdict == "ship" else 1)


def _policy(options: dict[str, Any], base: Policy | None) -> Policy:
    from onnxproof.api import make_policy
    from onnxproof.errors import UserError
    from onnxproof.findings import CATALOGUE
    from onnxproof.specs import parse_threshold

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
    return make_policy(noise=options.get("noise"), accept=accept, base=base, **thresholds)


def _job(options: dict[str, Any], policy: Policy) -> Any:
    from onnxproof import specs
    from onnxproof.api import limits_of
    from onnxproof.artifact.record import ExportOptions
    from onnxproof.job import CPU, Job, SessionSettings, VerifySettings

    get = options.get
    exporter: Any = get("exporter") or "auto"
    level = get("optimization") or "all"
    _one_of("--exporter", exporter, ("auto", "dynamo", "torchscript"))
    _one_of("--optimization", level, ("disable", "basic", "extended", "all"))
    return Job(
        target=get("target"),
        inputs=tuple(specs.parse_input(text) for text in get("input") or ()),
        ranges=dict(specs.parse_range(text) for text in get("range") or ()),
        dynamic=specs.parse_dynamic(get("dynamic") or ()),
        onnx=get("onnx"),
        out=get("out") or "onnxproof-out",
        export=ExportOptions(get("opset"), exporter, bool(get("keep_metadata"))),
        verify=VerifySettings(
            session=SessionSettings(
                tuple(specs.parse_provider(p) for p in get("provider") or ()) or (CPU,), level, get("threads")
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
        case_timeout=specs.parse_seconds(get("case_timeout") or "300s"),
        export_timeout=specs.parse_seconds(get("case_timeout") or "30m"),
    )


def _one_of(flag: str, value: str, known: tuple[str, ...]) -> None:
    from onnxproof.errors import UserError

    if value not in known:
        raise UserError(f"{flag} {value!r}: expected one of {', '.join(known)}")
