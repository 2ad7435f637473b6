"""Both sides of a subject, ready to answer batches of a data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from onnxproof.artifact.pairing import pair_inputs, pair_outputs
from onnxproof.candidates import choose_candidate
from onnxproof.candidates.candidate import Candidate
from onnxproof.data.fields import describe_columns
from onnxproof.data.source import Kind, Source, Table, count_rows
from onnxproof.errors import FindingError, InputError, Rejected, first_line
from onnxproof.findings import Finding, found
from onnxproof.parity.eager import EagerRunner
from onnxproof.parity.float64 import DoubleRunner, Unavailable
from onnxproof.proof.artifact import Artifact
from onnxproof.quality.preprocessing import Preprocessing
from onnxproof.quality.rows import Rows, judge_layout
from onnxproof.quality.task import Plan
from onnxproof.quality.task_plan import make_plan
from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.session import SessionSettings
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, is_narrow_float
from onnxproof.tensors.conversion import to_numpy

BATCH_ELEMENTS = 2_000_000
LARGEST_BATCH = 4096


class Engine:
    """Everything needed to run a shard: built once per process."""

    def __init__(
        self,
        subject: Subject,
        artifact: Artifact,
        session: SessionSettings,
        settings: EvaluateSettings,
        *,
        candidate: Candidate | None = None,
        stateful: bool = False,
    ) -> None:
        self.subject, self.artifact, self.settings = subject, artifact, settings
        self.examples = {name: to_numpy(tensor) for name, tensor in subject.inputs.tensors.items()}
        dtypes = {name: array.dtype.name for name, array in self.examples.items()}
        self.inputs = pair_inputs(dtypes, artifact.inputs, subject.shapes())
        if self.inputs.blocking is not None:
            raise FindingError(self.inputs.blocking)
        self.session = (candidate or choose_candidate(session)).open(Path(artifact.path), session, self.inputs.reverse)
        self.eager = EagerRunner(subject, stateful=stateful)
        self.fixed = self._find_fixed_batch()
        self.batch = self._choose_batch()
        self.preprocessing = Preprocessing(
            settings.preprocess, settings.serve_preprocess, apply=not settings.with_preprocess
        )
        self.findings: list[Finding] = []

    def _find_fixed_batch(self) -> int | None:
        """The artifact's batch, where it is a number."""
        sizes = [port.shape[0] for port in self.artifact.inputs if port.shape]
        known = [size for size in sizes if isinstance(size, int)]
        return known[0] if known and len(known) == len(sizes) else None

    def _choose_batch(self) -> int:
        if self.fixed is not None:
            return self.fixed
        if self.settings.batch_size is not None:
            if self.settings.batch_size < 1:
                raise InputError(f"--batch-size {self.settings.batch_size}: expected 1 or more")
            return self.settings.batch_size
        row = max((a.size // max(1, len(a)) for a in self.examples.values() if a.ndim), default=1)
        return int(min(LARGEST_BATCH, max(1, BATCH_ELEMENTS // max(1, row))))

    def open(self, source: Source, *, training: bool = False) -> Rows:
        """The fields of a source that are inputs, labels and ids; `training` data need not have the labels that were named."""
        labels = self.settings.labels
        return Rows(source, self, None if training and labels not in source.fields else labels)

    def check_layout(self, inputs: Table, columns: Mapping[str, Kind]) -> None:
        """Refuse rows that are not of the model's shape; `columns`: what the data have for them."""
        for name, array in inputs.items():
            finding = judge_layout(name, array.shape[1:], self._expect_sizes(name)) if array.ndim else None
            if finding is not None:
                told = "" if name in columns else describe_columns(columns)
                raise FindingError(replace(finding, message=finding.message + told))

    def _expect_sizes(self, name: str) -> tuple[int | None, ...]:
        """The sizes of a row that the artifact fixes, None where it leaves them open; the example's where it says nothing."""
        port = next((p for p in self.artifact.inputs if p.name == self.inputs.pairs.get(name)), None)
        if port is None or port.shape is None or len(port.shape) != self.examples[name].ndim:
            return self.examples[name].shape[1:]
        return tuple(size if isinstance(size, int) else None for size in port.shape[1:])

    def baseline(self, inputs: Table) -> dict[str, Array]:
        """PyTorch's outputs, cut to the rows."""
        try:
            return _widen_floats(self._run_padded(self.eager.run, inputs))
        except Rejected as error:
            rejects = f"{self.subject.baseline} rejects rows of --data"
            raise InputError(f"{rejects}: {first_line(error)}") from error

    def candidate(self, inputs: Table) -> dict[str, Array]:
        """onnxruntime's outputs under the graph's names, cut to the rows."""
        try:
            return _widen_floats(self._run_padded(self.session.run, inputs))
        except Rejected as error:
            message = f"onnxruntime refuses rows of the data: {first_line(error)}"
            raise FindingError(found("OX501", message, evidence={"error": str(error)[:2000]})) from error

    def _run_padded(self, run: Callable[[Table], dict[str, Array]], inputs: Table) -> dict[str, Array]:
        """A batch of the artifact's fixed size; the last row fills up."""
        rows = count_rows({name: a for name, a in inputs.items() if a.ndim})
        missing = 0 if self.fixed is None else self.fixed - rows
        if missing <= 0:
            return run(inputs)
        # With a row of the data: zeros need not be a valid input.
        filled = {
            n: np.concatenate([a, np.repeat(a[-1:], missing, axis=0)]) if a.ndim else a for n, a in inputs.items()
        }
        return {n: a[:rows] if a.ndim and len(a) == self.fixed else a for n, a in run(filled).items()}

    @cached_property
    def _outputs(self) -> Mapping[str, str]:
        """Outputs of the module → those of the graph."""
        some, artifact = self.eager.run(self.examples), self.artifact
        pairing = pair_outputs(list(some), artifact.outputs, artifact.promised_outputs, named=self.eager.named)
        self.findings += pairing.findings
        return pairing.pairs

    def graph_output(self, name: str) -> str:
        """The graph's name of an output of the module."""
        if name not in self._outputs:
            raise FindingError(found("OX210", f"the artifact has no output {name}, which holds the scores"))
        return self._outputs[name]

    @cached_property
    def double(self) -> DoubleRunner | None:
        """The module in float64, made when the first flip asks for it."""
        try:
            double = DoubleRunner(self.subject)
            double.run(self.examples)
        except Unavailable:
            return None
        return double

    def plan(self, rows: Rows, labels: Array | None) -> Plan:
        """How scores and labels are read, from the first rows and all labels that are known."""
        # Boxes come for one image at a time, unless there is a batch of them.
        probe = next(rows.batches(0, self.batch if rows.boxes is None else self.fixed or 1), None)
        if probe is None:
            raise InputError("--data has no rows")
        outputs = self.baseline(probe.inputs)
        known, settings = probe.labels if labels is None else labels, self.settings
        names = () if settings.classes else rows.class_names()
        if names and len(make_plan(outputs, known, replace(settings, positive=None)).classes) == len(names):
            settings = replace(settings, classes=names)
        return make_plan(outputs, known, settings)


def _widen_floats(outputs: dict[str, Array]) -> dict[str, Array]:
    """Scores in a dtype that numpy's functions know: bfloat16 as float32, which holds it exactly."""
    return {n: a.astype(np.float32) if is_narrow_float(a.dtype) else a for n, a in outputs.items()}
