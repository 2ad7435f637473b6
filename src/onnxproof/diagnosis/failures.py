"""From the text of a failure to a finding: what happened, where, and what helps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from onnxproof.diagnosis.chain import find_called, find_location, keep_errors, read_chain, shorten_chain
from onnxproof.diagnosis.forms import suggest_form
from onnxproof.diagnosis.rules import find_rule
from onnxproof.findings import Finding, Where, found, look_up

# Who speaks while a module is exported.
EXPORTING = ("system", "packages", "pytorch", "torch_export", "torch_onnx", "torchscript")
# Who speaks while onnxruntime loads a file.
LOADING = ("onnxruntime_model", "onnxruntime_provider", "onnxruntime_graph", "onnx")
# Who speaks while onnxruntime runs it.
RUNNING = ("onnxruntime_feed", "onnxruntime_provider", "onnxruntime_node")
# Who else speaks in what people paste, from the most to the least specific.
ELSEWHERE = (
    "optimum",
    "module",
    "onnxscript",
    "tools",
    "installation",
    "onnxruntime_status",
    "exporter_status",
    "script",
)
# A text of onnxruntime: its speakers are asked before the exporter's.
RUNTIME = re.compile(
    r"onnxruntime|no available backend found|\bOrtException|Can't create a session|ERROR_CODE: ?\d", re.I
)
# Issue trackers and editors turn the quotes of a message into others.
QUOTES = str.maketrans("‘’“”´", "''\"\"'")
OPERATOR = re.compile(r"\b(?:aten|prims)(?:\.|::)\w+")
BAKED = (
    "A parametrization computes the weight in every forward: bake it before the export, "
    "`torch.nn.utils.parametrize.remove_parametrizations(layer, 'weight')`."
)
NODE = re.compile(
    r"(?:running \w+ node\. Name:|node with name |in node \(|Node \(|node_index:? ?|Node:)\s*'?([^'()\s]+)'?", re.S
)


def diagnose_export(error: BaseException) -> Finding:
    """Why an export failed."""
    text, where = read_chain(error), find_location(error)
    known = _try_rules(text, EXPORTING, where)
    if known is None:
        message, form = f"the export failed: {shorten_chain(text, 1)}", _find_form(text)
        failed = found("OX101", message, where=where, evidence={"error": shorten_chain(text)})
        return replace(failed, help=f"Instead: {form}. {failed.help}") if form else failed
    if ".parametrizations." in f".{where.module}.":
        return replace(known, help=BAKED)
    whole = find_called(error)
    if whole is None:
        return known
    # A part of its decomposition failed: it is told about the operator that the user called.
    form = suggest_form(whole)
    message = known.message if whole in known.message else f"{known.message}{known.entry.link} {whole}"
    return replace(known, message=message, help=_tell_instead(form, known.entry.fix) if form else known.help)


def diagnose_loading(text: str) -> Finding | None:
    """Why onnxruntime does not load a file; None where its words are not known."""
    return _try_rules(text, LOADING, Where(node=find_named_node(text)))


def diagnose_running(text: str) -> Finding | None:
    """Why onnxruntime fails on an input; None where its words are not known."""
    return _try_rules(text, RUNNING)


def find_refused_size(text: str) -> tuple[str, str, str] | None:
    """The input, the dimension and the size that a file fixes, where onnxruntime was fed another; None for any other message."""
    known = find_rule(text, ("onnxruntime_feed",))
    caught = known[1].groupdict() if known is not None else {}
    return (caught["name"], caught["dimension"], caught["fixed"]) if {"name", "fixed"} <= caught.keys() else None


def diagnose_text(text: str) -> Finding | None:
    """What a text from elsewhere tells, a message, a whole log or somebody's own words; None where nothing of the catalogue fits."""
    text = text.translate(QUOTES)
    errors = keep_errors(text)
    # Frames name much that did not fail: the whole text is read only where the errors alone say nothing.
    known = (
        _try_rules(text, ("traceback",))
        or _try_rules(errors, _order_speakers(errors))
        or _try_rules(text, _order_speakers(text))
    )
    return (_try_rules(errors, ("people",)) or known) if known is None or known.entry.vague else known


def find_named_node(text: str) -> str | None:
    """The node that a message of onnxruntime names."""
    match = NODE.search(text)
    return match.group(1) if match else None


def _order_speakers(text: str) -> tuple[str, ...]:
    """All who print messages: whoever is heard in the text is asked first."""
    runtime = (*LOADING, *RUNNING)
    return (*runtime, *EXPORTING, *ELSEWHERE) if RUNTIME.search(text) else (*EXPORTING, *runtime, *ELSEWHERE)


def _try_rules(text: str, speakers: Iterable[str], where: Where | None = None) -> Finding | None:
    """The finding of the first rule that holds."""
    known = find_rule(text, speakers)
    if known is None:
        return None
    rule, match = known
    entry, operator = look_up(rule.code), match.groupdict().get("operator")
    form = _find_form(text) if entry.mentions else operator and suggest_form(operator)
    help = _tell_instead(form, entry.fix) if form else rule.help
    return found(rule.code, rule.tell(match), where=where, evidence={"error": shorten_chain(text)}, help=help)


def _tell_instead(form: str, fix: str) -> str:
    return f"Instead: {form}. {fix}"


def _find_form(text: str) -> str | None:
    """What to write instead of the first operator in a text for which there is a form."""
    return next(filter(None, map(suggest_form, OPERATOR.findall(text))), None)
