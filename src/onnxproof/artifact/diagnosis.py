"""From an exporter's exception chain to a finding: what happened, at which line of the user's code, what helps."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from onnxproof.artifact.sourcemap import user_frame
from onnxproof.findings import Finding, Where, found


@dataclass(frozen=True)
class Pattern:
    """A family of export failures, known by a fragment of its message."""

    fragment: re.Pattern[str]
    code: str
    message: Callable[[re.Match[str]], str]
    help: str | None = None


PATTERNS = (
    Pattern(
        re.compile(r"No ONNX function found for <?OpOverload\(op='([\w.:]+)'", re.S),
        "OX108",
        lambda m: f"the exporter has no ONNX translation for {m.group(1)}",
    ),
    Pattern(
        re.compile(r"No ONNX function found for (\S+)"),
        "OX108",
        lambda m: f"the exporter has no ONNX translation for {m.group(1)}",
    ),
    Pattern(
        re.compile(r"Exporting the operator '?([\w:]+)'? to ONNX opset version (\d+) is not supported"),
        "OX108",
        lambda m: f"the TorchScript exporter has no translation for {m.group(1)} at opset {m.group(2)}",
    ),
    Pattern(
        re.compile(
            r"GuardOnDataDependentSymNode|Could not guard on data-dependent|Could not extract specialized integer"
        ),
        "OX109",
        lambda m: (
            "the model decides on the values of a tensor (a Python `if`, `.item()`, a size taken from data), which cannot be captured"
        ),
    ),
    Pattern(
        re.compile(r"DataDependentOutputException[:\s]+(\S+)"),
        "OX109",
        lambda m: f"{m.group(1)} gives Python a value that depends on the data, which cannot be captured",
    ),
)


def chain(error: BaseException) -> str:
    """The texts of an exception and its causes, innermost first."""
    texts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(texts) < 10:
        texts.append(f"{type(current).__name__}: {current}")
        current = current.__cause__ or current.__context__
    return "\n".join(reversed(texts))


def location(error: BaseException) -> Where:
    """The user's line, from the traceback or from what torch prints of it."""
    current: BaseException | None = error
    frame = user_frame(chain(error))
    while frame is None and current is not None:
        frame = user_frame("".join(traceback.format_tb(current.__traceback__)))
        current = current.__cause__ or current.__context__
    if frame is None:
        return Where()
    return Where(file=frame["file"], line=int(frame["line"]))


def diagnose(error: BaseException) -> Finding:
    """The finding for an export that failed."""
    text = chain(error)
    where = location(error)
    for pattern in PATTERNS:
        match = pattern.fragment.search(text)
        if match:
            return found(
                pattern.code, pattern.message(match), where=where, evidence={"error": shortest(text)}, help=pattern.help
            )
    return found("OX101", f"the export failed: {shortest(text, 1)}", where=where, evidence={"error": shortest(text)})


def shortest(text: str, lines: int = 12) -> str:
    """The first lines of an exception chain that say something."""
    text = re.sub(r"\x1b\[[0-9;]*m|\[9?6?m?(?=This is step)", "", text)
    useful = [
        line.rstrip()
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith(("⬆", "[torch.onnx]", "##"))
    ]
    return "\n".join(line[:300] for line in useful[:lines])


def about_dimensions(error: BaseException) -> bool:
    """Whether the exporter complains that a dynamic dimension cannot be dynamic."""
    text = chain(error)
    return bool(
        re.search(r"ConstraintViolation|Constraints violated|inferred a static shape|specialized|dynamic_shapes", text)
    )


PLACE = re.compile(r"\['leaves'\]\[(\d+)\]\.(?:size\(\)|shape)\[(\d+)\]")


def fixed_places(error: BaseException) -> set[tuple[int, int]]:
    """(input, dimension) pairs that torch.export names as fixed by the model."""
    return {(int(leaf), int(dim)) for leaf, dim in PLACE.findall(chain(error))}


def in_optimiser(error: BaseException) -> bool:
    """Whether it was the exporter's own graph optimiser that failed."""
    text = chain(error)
    return (
        "PassError" in text
        or "onnxscript/optimizer" in text
        or "onnxscript/rewriter" in text
        or "onnx_ir/passes" in "".join(traceback.format_exception(error))
    )
