"""The worker's part of a conversion: the file in a lower precision, its times beside the float file's, its costliest nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

from onnxproof.artifact.file import read_artifact
from onnxproof.artifact.pairing import pair_inputs
from onnxproof.candidates import choose_candidate
from onnxproof.candidates.candidate import open_timed
from onnxproof.data.opening import open_source
from onnxproof.errors import FindingError, Rejected, UserError
from onnxproof.latency.harness import Harness, Need, Timed
from onnxproof.latency.statistics import bound_ratio
from onnxproof.lowering.calibration import count_rows, make_file, read_calibration
from onnxproof.lowering.conversion import Unsuitable, list_places
from onnxproof.parity.declared import Meaning, declare_precision, list_originals
from onnxproof.parity.ranking import Ranking, place_cost
from onnxproof.pipeline.events import Emit, Entered, Exported, Lowered
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.quantization import Bounded, NodeCost, Quantization, Quantized
from onnxproof.request.request import Request
from onnxproof.request.session import SessionSettings
from onnxproof.subject.onnx_module import GraphModule
from onnxproof.subject.subject import Subject
from onnxproof.system import has_vnni
from onnxproof.tensors.arrays import Arrays
from onnxproof.tensors.conversion import to_numpy

FLOAT, LOWER = "float", "lower"
# How long each file is timed.
NEED = Need(min_time=0.2, budget=10.0)
# Rows that the costs of nodes are measured on.
RANKED_ROWS = 16


def run_lower(emit: Emit, request: Request, artifact: Artifact, *, stateful: bool, shop: Workshop) -> None:
    """Make the file; emits it and what is known of it."""
    settings = request.quantize
    assert settings is not None  # the stage is wanted only then
    how = settings.making
    assert how is not None  # likewise
    emit(Entered(f"make {how.kind}"))
    subject, session = shop.load(request), request.verify.session
    rows = read_calibration(subject, artifact, request.verify)
    source, target = Path(artifact.path), Path(request.out) / f"model.{how.kind.replace(' ', '-')}.onnx"
    how = replace(how, reduce_range=not has_vnni() if how.reduce_range is None else how.reduce_range)
    try:
        how = make_file(source, target, how, rows, session)
    except Unsuitable as error:
        raise UserError(f"{how.kind}: {error}") from error
    made = replace(read_artifact(target, sourcemap=artifact.sourcemap), exporter="onnxruntime.quantization")
    emit(Exported(declare_precision(made, subject, "declared")))
    inputs = _example(subject, artifact)
    one = Quantized(how.kind, how, str(target), made.bytes)
    record = Quantization((one,), artifact.path, artifact.bytes, calibration_rows=count_rows(rows))
    if request.verify.data is not None:
        judging = open_source(request.verify.data, part="judging")
        record = replace(record, judging_rows=judging.select(list(judging.fields)[:1]).count())
    if request.steps.cases:
        emit(Entered(f"time {how.kind}"))
        record = _timed(record, source, target, inputs, session)
    if settings.keep_within and request.steps.cases:
        emit(Entered(f"rank the nodes of {how.kind}"))
        record = replace(record, ranking=_rank(source, target, rows[0] if rows else inputs, artifact.sourcemap))
    emit(Lowered(record))


def _example(subject: Subject, artifact: Artifact) -> Arrays:
    """The example's inputs under the names of the file."""
    arrays = {name: to_numpy(tensor) for name, tensor in subject.inputs.tensors.items()}
    dtypes = {name: array.dtype.name for name, array in arrays.items()}
    pairs = pair_inputs(dtypes, artifact.inputs, subject.shapes()).pairs
    return {pairs.get(name, name): array for name, array in arrays.items()}


def _timed(record: Quantization, source: Path, target: Path, inputs: Arrays, session: SessionSettings) -> Quantization:
    """Both files in turns, on the example."""
    candidate = choose_candidate(session)
    try:
        calls = {
            name: open_timed(candidate, path, session, {}).prepare(inputs).run
            for name, path in ((FLOAT, source), (LOWER, target))
        }
        threads = session.threads or 2
        timed = Harness([Timed(name, call, threads=threads) for name, call in calls.items()], NEED).run()
    except (FindingError, Rejected, UserError):
        return record  # a runtime that is not timed, or a file that it refuses: the cases say so
    ratio = bound_ratio(timed[LOWER].blocks, timed[FLOAT].blocks)
    typical = {name: median(one.samples) / 1e6 for name, one in timed.items()}
    time = None if ratio is None else Bounded(*ratio)
    made = replace(record.candidates[0], p50_ms=typical[LOWER], time=time)
    return replace(record, candidates=(made,), original_p50_ms=typical[FLOAT])


def _rank(source: Path, target: Path, inputs: Arrays, sourcemap: str | None) -> tuple[NodeCost, ...]:
    """By what each node alone does to the outputs, the worst first."""
    meaning = Meaning(str(target), {})
    if not meaning.evaluable:
        return ()
    some = {name: array[:RANKED_ROWS] if array.ndim else array for name, array in inputs.items()}
    ranking = Ranking(meaning, list_originals(GraphModule(str(source))), some, list_places(source))
    return tuple(place_cost(cost, sourcemap) for cost in ranking.rank(effects=True))
