"""The session that ships."""

from __future__ import annotations

from dataclasses import dataclass

from onnxproof.request.option import option
from onnxproof.request.reading import AT_ONCE, each, one_of, texts, whole
from onnxproof.request.specs import ProviderSpec, parse_provider

CPU = ProviderSpec("CPUExecutionProvider")
LEVELS = ("disable", "basic", "extended", "all")


@dataclass(frozen=True)
class SessionSettings:
    """The session that ships."""

    providers: tuple[ProviderSpec, ...] = option(
        (CPU,),
        "Execution provider NAME[:k=v,…] (repeatable). Default: CPU.",
        lambda value: each(parse_provider)(value) or (CPU,),
        name="provider",
        repeated=True,
    )
    optimization: str = option("all", "disable, basic, extended or all.", one_of(*LEVELS), told=True)
    threads: int | None = option(None, "onnxruntime's intra-op threads.", whole(1, AT_ONCE), metavar="INTEGER")
    disabled_optimizers: tuple[str, ...] = option(
        (), "An onnxruntime rewrite to switch off, by name (repeatable).", texts, name="disable", repeated=True
    )
    runtime: str | None = None
    """What runs the file, one of those that `--runtime` names; None for the installed onnxruntime."""
    execution: str = "sequential"
    weights: str | None = None
    """The folder in which weights lie that a model keeps in other files, where it is given as bytes."""
    spinning: bool = True
    """Whether threads that wait keep their core busy, as onnxruntime's do: what is timed ships so, what is compared need not."""
