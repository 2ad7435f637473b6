"""What is asked, as one value: it travels from whoever asks to the process that works.

Every group is a frozen dataclass; its fields that are options carry their own declaration (`option.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from onnxproof.request import specs
from onnxproof.request.benchmark import BenchSettings
from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.lowering import QuantizeSettings
from onnxproof.request.option import option
from onnxproof.request.reading import each, flag, named, negated, one_of, seconds, size, sizes, text, texts, whole
from onnxproof.request.session import SessionSettings
from onnxproof.request.thresholds import Judgement

Exporter = Literal["auto", "dynamo", "torchscript"]


@dataclass(frozen=True)
class ExportOptions:
    """How to export."""

    opset: int | None = option(None, "Opset to export. Default: the exporter's best.", whole(), metavar="INTEGER")
    exporter: Exporter = option(
        "auto", "dynamo, torchscript or auto.", one_of("auto", "dynamo", "torchscript"), told=True
    )
    keep_metadata: bool = flag(False, "Leave source paths and lines in the shipped file.")
    optimize: bool = flag(True, "Leave the exporter's own graph optimiser out.", negated, name="no_optimize")
    strict: bool = flag(False, "Let torch.export trace Python strictly.")
    """Whether torch.export traces Python strictly, instead of running it."""


@dataclass(frozen=True)
class Limits:
    """When a difference is suspicious enough to ask what rounding may do (the tightest of the policy's thresholds)."""

    noise: float = 10.0
    atol: float = 1e-4
    rtol: float = 1e-3
    max_abs: float = 1e-3


@dataclass(frozen=True)
class VerifySettings:
    """How to verify."""

    session: SessionSettings = SessionSettings()
    batch_sizes: tuple[int, ...] | None = option(None, "Batch sizes to verify: 1,2,7,32,128.", sizes)
    data: str | None = option(
        None,
        "Your data: npz, npy, pt, safetensors, csv, parquet, a saved Hugging Face data set, or file.py:name.",
        text,
    )
    part: specs.Part = "all"
    """The rows that are read."""
    labels: str | None = None
    """The field (or file) of the data with the labels, as for the evaluation: no input, and every label comes early."""
    ids: str | None = None
    seed: int = option(0, "Seed of the generated cases.", whole(), metavar="INTEGER", told=True)
    budget: float = option(120.0, "Work for verifying, in seconds of one slow core: 120s, 5m. Default 120s.", seconds)
    precision: Literal["declared", "exact"] = option(
        "declared",
        "A file in a lower precision: judged by its own meaning and what it costs (declared), or as any other (exact).",
        one_of("declared", "exact"),
        told=True,
    )
    nonfinite: bool = flag(False, "NaN and infinite inputs gate the verdict too.")
    isolated: bool = False
    """Whether a crash costs a child only: then inputs that are known to kill onnxruntime are tried too."""
    roles: Mapping[str, specs.Role] = option(
        dict,
        "What an input means: ids:id, x:image, m:mask, m:additive-mask, n:length, n:integer, x:float (repeatable).",
        named(specs.parse_role, specs.to_role, '{"m": "mask"}'),
        name="role",
        repeated=True,
    )
    state: tuple[str, ...] = option(
        (),
        "What is carried from step to step: OUTPUT=INPUT, names or the beginnings of several (repeatable); 'none' for nothing. "
        "Default: what names and shapes say.",
        texts,
        repeated=True,
    )
    memory: int | None = option(None, "Memory for inner values while locating: 512MB. Default 2GB.", size)
    """Bytes for inner values while locating; None for the default."""
    search: float = option(0.0, "Look for an input that breaks it, this long: 30s, 5m.", seconds)
    """Seconds to look for an input on which the two sides part."""
    counterexamples: str | None = None
    """The folder of counterexamples: kept ones are tried first, new ones are written there."""
    limits: Limits = Limits()


@dataclass(frozen=True)
class Steps:
    """Which parts of a proof are made."""

    cases: bool = True
    """Whether planned cases are run on both sides."""
    evaluate: bool = flag(True, "Measure task quality where --data has labels.", off="--no-evaluate")
    bench: bool = flag(False, "Time both sides too.")
    heal: bool = flag(False, "Where the sides part: try other settings until one passes.")
    fast: bool = flag(False, "Stop at the verdict: no cause and no smallest input is looked for.")
    bisect: bool = flag(False, "Where releases answer differently: ask those between them for the first that changed.")
    fix: bool = flag(False, "Write the settings that worked into the configuration.", configured=False)
    all: bool = flag(False, "Prove every subject of the configuration.", configured=False)
    jobs: int | None = option(None, "Subjects at a time, with --all.", whole(1), metavar="INTEGER", configured=False)


@dataclass(frozen=True)
class Reports:
    """Where each form of the report is written: the file of `html` is what `render_html` of `report/html.py` makes of the proof."""

    html: str | None = option(None, "Write the report as one HTML page. prove does by default.", text, configured=False)
    junit: str | None = option(None, "Write JUnit XML.", text, configured=False)
    markdown: str | None = option(None, "Write Markdown for a pull-request comment.", text, configured=False)


@dataclass(frozen=True)
class Delivery(Reports):
    """What is shown and written. A configuration speaks of proofs, not of one run's files: it sets none of these."""

    json: str | None = option(None, "Write the proof; - for stdout.", text, configured=False)
    github: bool = flag(False, "GitHub annotations, and the job's summary.", configured=False)
    baseline: str | None = option(
        None, "An earlier proof.json: fail only on what got worse since.", text, configured=False
    )
    quiet: bool = flag(False, "Print nothing but the verdict's line.", short="-q", configured=False)
    verbose: bool = flag(False, "One line for every output of every case.", short="-v", configured=False)


@dataclass(frozen=True)
class Request:
    """A subject and everything asked about it."""

    verb: str = "prove"
    target: str | None = None
    """TARGET as the user wrote it; None for a module that is in memory."""
    pickled: str | None = None
    """A file with (module, inputs), for a module in memory that is proved in another process."""
    held: tuple[Any, Any] | None = field(default=None, compare=False)
    """(module, inputs) in memory; stays in the caller's process."""
    inputs: tuple[specs.InputSpec, ...] = option(
        (),
        "Example input: x:4x3x224x224:float32, or a number that is always that: sr=16000 (repeatable).",
        each(specs.parse_input),
        name="input",
        repeated=True,
    )
    dynamic: Mapping[str, Mapping[int, str]] | None = option(
        None,
        "Dynamic dims: x:0=batch,1=seq (repeatable); 'none' for none. Default: the batch.",
        specs.read_dynamic,
        repeated=True,
    )
    ranges: Mapping[str, specs.Range] = option(
        dict,
        "Valid values of an input, or sizes of a dynamic dimension, both ends included: ids:0,30521, seq:1,512 (repeatable).",
        named(specs.parse_range, specs.to_range, '{"ids": (0, 30521)}'),
        name="range",
        repeated=True,
    )
    onnx: str | None = option(None, "Prove this file instead of exporting.", text)
    """A file someone else exported; None to export."""
    runtimes: tuple[str, ...] = option(
        (),
        "What runs the file: onnxruntime==1.20.1, a range of releases, node, browser, browser:webgpu, or python:PATH for another environment (repeatable).",
        texts,
        name="runtime",
        repeated=True,
    )
    sweep: tuple[str, ...] = ()
    """Every runtime that these mean, where there are several; the first is the one that the rest of the proof is about."""
    original: SessionSettings | None = None
    """Where the first of two files is run; None for here, without optimisations."""
    out: str = option("onnxproof-out", "Folder for the artifact and the proof.", text, told=True)
    case_timeout: float | None = option(None, "Longest silence of a stage. Default 300s, 30m for the export.", seconds)
    trust: bool = flag(False, "Load a file.pt2 as torch does: what is pickled in it runs.", configured=False)
    resume: bool = flag(False, "Go on where a run of the same command was ended.", configured=False)
    in_process: bool = flag(False, "Work in one process (for debugging): a crash ends the run.")
    export: ExportOptions = ExportOptions()
    verify: VerifySettings = VerifySettings()
    judgement: Judgement = Judgement()
    steps: Steps = Steps()
    delivery: Delivery = Delivery()
    # Behind the others: of two options with one name, the first is meant by every verb but `bench`.
    bench: BenchSettings | None = None
    """What is to be timed; None for nothing."""
    evaluate: EvaluateSettings | None = None
    """What is asked about a data set with labels; None for nothing."""

    quantize: QuantizeSettings | None = None
    """Which lower precision is to be made; None for none."""

    def silence(self, *, exporting: bool = False) -> float:
        """Seconds without a word after which a stage counts as hung."""
        return self.case_timeout if self.case_timeout is not None else 1800.0 if exporting else 300.0

    @property
    def culprits(self) -> Path:
        """The folder of reproductions."""
        return Path(self.out) / "culprits"
