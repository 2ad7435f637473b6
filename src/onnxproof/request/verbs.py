"""The verbs and what each of them takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from onnxproof.request.benchmark import BenchSettings
from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.option import Option, walk
from onnxproof.request.request import Request

EVERYTHING = Request(bench=BenchSettings(), evaluate=EvaluateSettings())
"""A request with every group there, so that every option can be found in it."""

SUBJECT = "input range role dynamic"
EXPORT = "opset exporter keep_metadata no_optimize strict"
SESSION = "provider optimization disable threads runtime"
TOLERANCE = "atol rtol max_abs noise"
GATES = "min max max_drop"
LIMITS = "max_latency min_speedup max_memory"
CASES = "nonfinite seed budget search memory"
FILES = "json html junit markdown github"
EVALUATION = (
    "labels ids train_data task output classes positive threshold goal cost min max max_drop delta metric preprocess "
    "serve_preprocess with_preprocess batch_size workers ray resume"
)
TIMES = "also against compile scenario rate concurrency min_time min_count budget"


@dataclass(frozen=True)
class Verb:
    """A verb: its arguments, its options in the order of `--help`, and the words that are its own."""

    name: str
    help: str
    takes: tuple[str, ...]
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Argument → help."""
    required: tuple[str, ...] = ()
    """Options that must be given."""
    group: str = ""
    """The group that an option belongs to first, where two have one of its name."""
    help_of: Mapping[str, str] = field(default_factory=dict)
    """Options that mean something a little different here."""
    configured: bool = True
    """Whether the configuration and the environment speak to it."""
    cases: bool = True
    """Whether it runs planned cases."""

    def homes(self) -> dict[str, tuple[tuple[str, ...], Option]]:
        """Name of any option → where its value stands in a request, and its declaration."""
        found: dict[str, tuple[tuple[str, ...], Option]] = {}
        for path, one in walk(EVERYTHING):
            if one.name not in found or path[0] == self.group:
                found[one.name] = path, replace(one, help=self.help_of.get(one.name, one.help))
        return found

    def options(self) -> dict[str, Option]:
        """The options that it takes, in the order of `--help`."""
        homes = self.homes()
        return {name: homes[name][1] for name in self.takes}


def _takes(*parts: str) -> tuple[str, ...]:
    return tuple(" ".join(parts).split())


MODULE = "path/file.py:name, package.module:name, file.pt2 or file.pt"
SEVERAL = "path/file.py:name, package.module:name, file.pt2, file.pt or a subject of the configuration."
_PROVING = _takes(
    "all jobs onnx", SUBJECT, "batch_sizes data evaluate labels", GATES, EXPORT, SESSION, "fast heal fix", TOLERANCE,
    "accept", CASES, "bench", LIMITS, "case_timeout in_process", FILES, "baseline quiet verbose out",
)  # fmt: skip
PROVE = Verb("prove", "Export, verify and judge: the whole proof.", _PROVING, {"target": SEVERAL})

VERBS = {
    verb.name: verb
    for verb in (
        PROVE,
        replace(PROVE, name="verify", help="Verify parity only, of a file (--onnx) or of a fresh export."),
        replace(
            PROVE,
            name="locate",
            help="Verify, and show the step, the nodes, the modules and the lines to blame.",
        ),
        Verb(
            "export",
            "Export only: eval mode, dynamic batch, readable names, a stripped file and its source map.",
            _takes("input range dynamic", EXPORT, "fix case_timeout in_process json quiet out"),
            {"target": MODULE},
            cases=False,
        ),
        Verb(
            "lint",
            "Look at an ONNX file without building a session, or at a module before it is exported.",
            _takes("input provider runtime accept json quiet"),
            {"target": "A file.onnx, or a TARGET whose module is looked at before export."},
            help_of={"runtime": "The onnxruntime that will serve it: 1.20. Default: the installed one."},
            cases=False,
        ),
        Verb(
            "diff",
            "Compare two ONNX files: before and after an optimiser, a quantiser, a simplifier, another opset.",
            _takes(
                "range role batch_sizes data",
                SESSION,
                TOLERANCE,
                "accept",
                CASES,
                "case_timeout in_process",
                FILES,
                "baseline quiet verbose out",
            ),
            {
                "first": "The file that is right: before an optimiser, a quantiser, …",
                "second": "The file that is to replace it.",
            },
        ),
        Verb(
            "bench",
            "Say whether ONNX Runtime is faster, by how much, how surely, and where it stops being so.",
            _takes(
                "onnx",
                SUBJECT,
                "batch_sizes lengths data opset exporter keep_metadata provider optimization threads runtime",
                TIMES,
                LIMITS,
                "tune baseline",
                TOLERANCE,
                "accept seed case_timeout in_process",
                FILES,
                "quiet out",
            ),
            {"target": MODULE},
            group="bench",
            help_of={
                "batch_sizes": "Batch sizes to time. Default 1,8,32,128 where the batch is dynamic.",
                "threads": "Threads of PyTorch and of onnxruntime. Default: the cores.",
            },
            cases=False,
        ),
        Verb(
            "evaluate",
            "Run a data set through both sides: metrics, changed decisions, thresholds, data traps.",
            _takes(
                "data onnx",
                EVALUATION,
                "input range dynamic opset exporter provider optimization threads runtime accept seed",
                "case_timeout in_process",
                FILES,
                "quiet verbose out",
            ),
            {"target": MODULE},
            required=("data",),
            help_of={
                "data": "Examples with labels: npz, npy, pt, safetensors, csv, parquet, a saved Hugging Face data set, or file.py:name "
                "(a DataLoader, a data set, any iterable of batches).",
                "seed": "Seed of the bootstrap.",
            },
            cases=False,
        ),
        Verb(
            "report",
            "Show a saved proof again, or judge it under another policy, without running anything.",
            _takes(TOLERANCE, LIMITS, GATES, "accept", FILES, "baseline quiet verbose"),
            {"proof": "A proof.json."},
            configured=False,
        ),
        Verb(
            "demo",
            "Train a small CNN on scikit-learn's digits, prove its export and evaluate it on digits it has not seen.",
            _takes("json html quiet verbose out"),
            configured=False,
        ),
    )
}
"""Every verb that makes or judges a proof."""
