"""Subject → Artifact: export done right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx
import torch

from onnxproof.artifact.exporter_output import catch_output
from onnxproof.artifact.exporters import Attempt, Order, explain_capture, run
from onnxproof.artifact.file import read_artifact
from onnxproof.artifact.specialised import Place, listen
from onnxproof.diagnosis.chain import (
    blames_dimensions,
    blames_optimiser,
    find_fixed_places,
    find_location,
    shorten_chain,
)
from onnxproof.diagnosis.failures import diagnose_export
from onnxproof.errors import FindingError, InputError, NotWritten, condense, first_line
from onnxproof.findings import Finding, Where, found
from onnxproof.proof.artifact import Artifact
from onnxproof.request.request import ExportOptions
from onnxproof.subject.dynamic import accepts_sizes, resize_examples
from onnxproof.subject.mode import hold_at_rest
from onnxproof.subject.state import name_after
from onnxproof.subject.structure import Flat, flatten
from onnxproof.subject.subject import Subject

OLDEST_OPSET = 7
# By how much an example is longer where one of its own sizes was taken for a promise.
GROWN = 3
Report = Callable[[Finding], None]


def export(subject: Subject, path: Path, options: ExportOptions, report: Report) -> Artifact:
    """Export in eval mode, strip and map the metadata, read back what was written and compare it with the wish."""
    _require_exportable(subject, options.opset)
    outputs = _run_example(subject)
    _report_oddities(subject.inputs, outputs, report)
    leaves = _enlarge_inputs(subject)
    # An output that is called like an input (a state that goes round) gets a name of its own: ONNX has one namespace.
    names = [name_after(name) if name in subject.inputs.tensors else name for name in outputs.tensors]
    with catch_output() as log, hold_at_rest(subject.module):
        attempt = _try_exports(Order(subject, tuple(leaves), names, path, options.keep_metadata), options, report)
    printed = "".join(line for line in log.getvalue().splitlines(keepends=True) if line.strip())
    artifact = read_artifact(
        path,
        attempt.exporter,
        sourcemap=str(path.with_suffix(".sourcemap.json")),
        optimized=attempt.optimize,
        strict=attempt.strict,
        log=printed[-20_000:],
    )
    if options.opset is not None and artifact.opset != options.opset:
        message = f"opset {options.opset} was asked for and the exporter wrote opset {artifact.opset}"
        report(found("OX105", message, evidence={"asked": options.opset, "written": artifact.opset}))
    return artifact


def _run_example(subject: Subject) -> Flat:
    """Run the module once, to know its outputs; what it rejects, it cannot be exported with."""
    try:
        with hold_at_rest(subject.module):
            outputs = flatten(subject.call(subject.copies()))
    except InputError as error:
        raise FindingError(found("OX115", str(error))) from error
    except Exception as error:
        known = diagnose_export(error)
        if known.entry.eager:
            raise FindingError(replace(known, severity="block")) from error
        where = find_location(error)
        place = f" at {where.file}:{where.line}" if where.file else ""
        raise InputError(
            f"the module itself rejects its example inputs{place}: {type(error).__name__}: {condense(error)} "
            "(`onnxproof explain OX134`)"
        ) from error
    if not outputs.tensors:
        raise FindingError(found("OX216", "the module returns no tensor: there is nothing to export or compare"))
    return outputs


def _require_exportable(subject: Subject, opset: int | None) -> None:
    tensors = {**dict(subject.module.named_parameters()), **dict(subject.module.named_buffers())}
    empty = [name for name, tensor in {**tensors, **subject.inputs.tensors}.items() if tensor.is_meta]
    if empty:
        message = f"{len(empty)} tensors are on the meta device and have no values: {', '.join(empty[:5])}"
        raise FindingError(found("OX120", message, evidence={"tensors": empty}))
    newest = onnx.defs.onnx_opset_version()
    if opset is not None and not OLDEST_OPSET <= opset <= newest:
        raise InputError(f"--opset {opset}: expected {OLDEST_OPSET} to {newest}, which is the newest that there is")
    for name, tensor in subject.inputs.tensors.items():
        if tensor.is_complex():  # the exporters take it for a real one with another dimension, which nothing can feed
            message = _tell_complex("input", name, tensor)
            help = "Take the real and the imaginary part as two inputs and make `torch.complex(real, imag)` of them in the forward."
            raise FindingError(found("OX116", message, help=help))


def _tell_complex(side: str, name: str, tensor: torch.Tensor) -> str:
    return f"the {side} {name} is {str(tensor.dtype).removeprefix('torch.')}, which ONNX does not have"


def _report_oddities(inputs: Flat, outputs: Flat, report: Report) -> None:
    for name, tensor in outputs.tensors.items():
        if tensor.is_complex():
            report(found("OX116", _tell_complex("output", name, tensor), where=Where(output=name)))
    for name, value in inputs.constants.items():
        message = f"the input {name} = {value!r} is baked into the graph"
        report(found("OX106", message, evidence={"input": name, "value": repr(value)}))
    for name, value in outputs.constants.items():
        message = f"the output {name} is the Python value {value!r}, not a tensor: it is left out"
        report(found("OX110", message, where=Where(output=name)))


def _enlarge_inputs(subject: Subject) -> list[torch.Tensor]:
    """Example inputs whose dynamic dims are at least 2: torch.export bakes sizes 0 and 1 in."""
    leaves = list(subject.inputs.tensors.values())
    grown = resize_examples(subject, {name: max(size, 2) for name, size in subject.sizes().items()})
    other = any(a.shape != b.shape for a, b in zip(leaves, grown, strict=True))
    # Where it accepts only the example's sizes, the export will tell.
    return grown if other and subject.accepts(grown) else leaves


def _grow_inputs(subject: Subject) -> list[torch.Tensor]:
    """Larger example inputs, by an odd number: what was one of two is no longer one."""
    return resize_examples(subject, {name: size + GROWN for name, size in subject.sizes().items()})


def _try_exports(order: Order, options: ExportOptions, report: Report) -> Attempt:
    """Try the wished export, then what may remove the reason why it failed. The first error is the one to explain."""
    subject = order.subject
    scripted = isinstance(subject.module, torch.jit.ScriptModule)
    if scripted and options.exporter == "dynamo":
        raise FindingError(found("OX121", "torch.export does not take a scripted or traced module"))
    first = "torchscript" if options.exporter == "torchscript" or scripted else "dynamo"
    queue = [Attempt(first, optimize=options.optimize, strict=options.strict, opset=options.opset)]
    failed: list[tuple[Attempt, Exception]] = []
    fixed: dict[Place, Where] = {}
    while queue:
        attempt = queue.pop(0)
        try:
            with listen() as heard:
                made = run(attempt, order if not attempt.grown else replace(order, leaves=tuple(_grow_inputs(subject))))
        except NotWritten as error:
            raise FindingError(found("OX135", str(error))) from error
        except Exception as error:
            failed.append((attempt, error))
            fixed = {**heard.lines, **fixed}
            queue = [a for a in _plan_next(attempt, error, subject, options) if a not in queue] + queue
            continue
        if made.strict and not attempt.strict:
            _report_strict(explain_capture(attempt, order), report)
        cause = failed[0][1] if failed else None
        if cause is not None:
            _report_detour(made, diagnose_export(cause), report)
        _report_baked(subject, read_artifact(order.path), cause, {**heard.lines, **fixed}, report)
        return made
    raise FindingError(_explain_failure(subject, failed)) from failed[0][1]


def _explain_failure(subject: Subject, failed: Sequence[tuple[Attempt, Exception]]) -> Finding:
    """The finding for the first error, with what the other attempts said."""
    finding = diagnose_export(failed[0][1])
    scripted = [name for name, part in subject.module.named_modules() if isinstance(part, torch.jit.ScriptModule)]
    if scripted and finding.entry.vague:
        message = f"the submodule {scripted[0] or 'itself'} is scripted, and an exporter does not look into it"
        finding = found("OX121", message, where=Where(module=scripted[0] or None), evidence=finding.evidence)
    history = [{"exporter": attempt.exporter, "error": diagnose_export(error).message} for attempt, error in failed]
    others = sorted({one["exporter"] for one in history} - {history[0]["exporter"]})
    message = f"{finding.message} (nor does it work with {', '.join(others)})" if others else finding.message
    # Nothing is there to ship, whatever the code weighs elsewhere.
    return replace(finding, severity="block", message=message, evidence={**finding.evidence, "tried": history})


def _plan_next(attempt: Attempt, error: Exception, subject: Subject, options: ExportOptions) -> list[Attempt]:
    """What to try after a failure: the smallest change that may remove its cause, then the other exporter."""
    if attempt.opset is not None and diagnose_export(error).entry.of_opset:
        return [replace(attempt, opset=None)]
    if attempt.exporter == "torchscript":
        return []
    other = [Attempt("torchscript", opset=options.opset)] if options.exporter == "auto" else []
    if attempt.optimize and blames_optimiser(error):
        return [replace(attempt, optimize=False), *other]
    fixed = _find_fixed_dims(subject, error)
    if fixed and not attempt.grown and not attempt.static and subject.accepts(_grow_inputs(subject)):
        return [replace(attempt, grown=True), replace(attempt, static=fixed), *other]
    static = replace(attempt, static=attempt.static | fixed, grown=False)
    return [static, *other] if fixed - attempt.static else other


def _find_fixed_dims(subject: Subject, error: Exception) -> frozenset[str]:
    """Names of the dimensions that torch.export says the model fixes; all of them where it does not say which."""
    wished = frozenset(size for dims in subject.dynamic.values() for size in dims.values())
    if not blames_dimensions(error):
        return frozenset()
    names = list(subject.inputs.tensors)
    places = [(names[leaf], dim) for leaf, dim in find_fixed_places(error) if leaf < len(names)]
    return frozenset(subject.dynamic[n][d] for n, d in places if d in subject.dynamic.get(n, {})) or wished


def _report_detour(attempt: Attempt, reason: Finding, report: Report) -> None:
    """The export went another way than the wished one, which failed for a reason."""
    evidence = {
        "reason": reason.message,
        "error": reason.evidence.get("error"),
        "code": reason.code,
        "help": reason.help,
    }
    if attempt.exporter == "torchscript":
        if reason.entry.one_path:
            # Tracing records the path that the example takes: cases may or may not take the others.
            message = f"{reason.message}; tracing recorded the example's path only"
            report(replace(reason, severity="review", message=message))
        message = f"the default exporter failed ({reason.message}); TorchScript was used"
        report(found("OX107", message, where=reason.where, evidence=evidence))
    elif not attempt.optimize:
        report(found("OX112", "the exporter's graph optimiser crashed; exported without it", evidence=evidence))


def _report_strict(error: Exception | None, report: Report) -> None:
    """The exporter traced the model strictly after all: say why."""
    message = "traced strictly, because running the model does not capture it"
    if error is None:
        report(found("OX138", message))
        return
    reason = diagnose_export(error)
    evidence = {"reason": reason.message, "error": str(error)[:2000]}
    report(found("OX138", f"{message}: {first_line(error)}", where=reason.where, evidence=evidence))


def _report_baked(
    subject: Subject, artifact: Artifact, error: Exception | None, fixed: Mapping[Place, Where], report: Report
) -> None:
    """Compare the artifact's dims with the wish; `fixed` has the lines that were heard of."""
    ports = {port.name: port for port in artifact.inputs}
    baked: dict[str, list[str]] = {}
    lines: dict[str, Where] = {}
    for place, (name, tensor) in enumerate(subject.inputs.tensors.items()):
        shape = ports[name].shape if name in ports else None
        for dim, size in subject.dynamic.get(name, {}).items():
            if shape is not None and isinstance(shape[dim], int) and dim < tensor.ndim:
                baked.setdefault(size, []).append(f"{name}[{dim}] = {shape[dim]}")
                if (place, dim) in fixed:
                    lines.setdefault(size, fixed[place, dim])
    said = find_location(error) if error is not None else Where()
    also = {"error": shorten_chain(str(error))} if error is not None else {}
    for size, places in baked.items():
        message = f"the dimension {size!r} was wished dynamic and is baked in: {', '.join(places)}"
        evidence = {"dimension": size, "places": places, **also}
        finding = found("OX104", message, where=lines.get(size, said), evidence=evidence)
        # What the module itself refuses, no export needs to offer.
        wanted = subject.asked_dynamic or accepts_sizes(subject, size)
        report(finding if wanted else replace(finding, severity="note"))
