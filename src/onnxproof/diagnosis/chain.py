"""Reading an exporter's exception chain: its texts, the user's line, the operator that was being translated."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from onnxproof.findings import Where
from onnxproof.findings.frames import find_traced_frame, find_user_frame, locate_frame, unwrap_scope


def read_chain(error: BaseException) -> str:
    """The texts of an exception and its causes, innermost first."""
    # The innermost is the cause, and what stands first in the text is told.
    return "\n".join(f"{type(link).__name__}: {link}" for link in reversed(follow_links(error)))


def find_location(error: BaseException) -> Where:
    """The user's module and line: of the operator being translated, else from the traceback or from what torch prints."""
    node = _find_translated(error)
    if node is not None:
        scopes = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
        place = locate_frame(find_user_frame(node.meta.get("stack_trace") or ""))
        return replace(place, module=unwrap_scope(scopes[-1]) if scopes else None)
    # The node that the TorchScript exporter was translating, with its scope and the calls that led to it.
    traced = _find_held(follow_links(error), lambda node: hasattr(node, "sourceRange"))
    module = unwrap_scope(traced.scopeName().rpartition("::")[2]) if traced is not None else None
    frame = find_user_frame(read_chain(error)) or (
        find_traced_frame(traced.sourceRange()) if traced is not None else None
    )
    if frame is None:
        tracebacks = ("".join(traceback.format_tb(link.__traceback__)) for link in follow_links(error))
        frame = next(filter(None, map(find_user_frame, tracebacks)), None)
    return replace(locate_frame(frame), module=module or None)


def follow_links(error: BaseException) -> list[BaseException]:
    """An exception and its causes, outermost first."""
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found and len(found) < 10:
        found.append(current)
        current = current.__cause__ or current.__context__
    return found


def _find_translated(error: BaseException) -> Any:
    """The operator that the exporter was translating when it failed: it prints its name only, but its frame still holds it."""
    telling = [link for link in follow_links(error) if "Error when translating node" in str(link)]
    return _find_held(telling, lambda node: hasattr(node, "meta") and hasattr(node, "target"))


def _find_held(errors: Sequence[BaseException], wanted: Callable[[Any], bool]) -> Any:
    """The first `node` of this kind in the frames of some tracebacks."""
    frames = (frame for error in errors for frame, _ in traceback.walk_tb(error.__traceback__))
    return next(filter(wanted, (frame.f_locals.get("node") for frame in frames)), None)


def find_called(error: BaseException) -> str | None:
    """The operator that the user called, where a part of its decomposition failed: aten.cumprod for prims.prod."""
    node = _find_translated(error)
    operator = node.meta.get("original_aten") if node is not None else None
    return str(operator).removesuffix(".default") if operator is not None and operator != node.target else None


def shorten_chain(text: str, lines: int = 12) -> str:
    """The first lines of an exception chain that say something."""
    # torch.onnx colours its reports.
    text = re.sub(r"\x1b\[[0-9;]*m|\[9?6?m?(?=This is step)", "", text)
    useful = [
        line.rstrip()
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith(("⬆", "[torch.onnx]", "##"))
    ]
    return "\n".join(line[:300] for line in useful[:lines])


FRAME = re.compile(
    r"^[ \t>|-]*File (?![^\n]*(?:version_converter|in load_\w*(?:weights|checkpoint)\b))[^\n]{0,300}, line \d+[^\n]*\n(?:[ \t]{2,}[^\n]*\n)*?(?=^[ \t]*File |^\S|\Z)"
    r"|^[^\n]*(?:TracerWarning|UserWarning|FutureWarning|DeprecationWarning|OnnxExporterWarning):[^\n]*\n(?:[ \t]+[^\n]*\n)?",
    re.M,
)


# An exception of C++ that nobody caught: what it says matters, and not that the process then ended.
ABORT = re.compile(
    r"^terminate called after throwing[^\n]*\n(?=\s*what\(\):)|(?<=\n)Aborted \(core dumped\)\s*\Z", re.M
)


def keep_errors(text: str) -> str:
    """A pasted log without the frames of its tracebacks and without warnings: they name much that did not fail."""
    return ABORT.sub("", FRAME.sub("", text))


DIMENSIONS = re.compile(r"ConstraintViolation|Constraints violated|inferred a static shape|specialized|dynamic_shapes")


def blames_dimensions(error: BaseException) -> bool:
    """Whether the exporter complains that a dynamic dimension cannot be dynamic."""
    return DIMENSIONS.search(read_chain(error)) is not None


PLACE = re.compile(r"\['leaves'\]\[(\d+)\]\.(?:size\(\)|shape)\[(\d+)\]")


def find_fixed_places(error: BaseException) -> set[tuple[int, int]]:
    """(input, dimension) pairs that torch.export names as fixed by the model."""
    return {(int(leaf), int(dim)) for leaf, dim in PLACE.findall(read_chain(error))}


def blames_optimiser(error: BaseException) -> bool:
    """Whether it was the exporter's own graph optimiser that failed."""
    text = read_chain(error)
    told = any(part in text for part in ("PassError", "onnxscript/optimizer", "onnxscript/rewriter"))
    # Some passes fail with a plain error: only its frames tell whose it is.
    return told or "onnx_ir/passes" in "".join(traceback.format_exception(error))
