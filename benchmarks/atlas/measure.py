"""One operation in one dtype through one exporter at one opset: does it export, does it run, does it agree."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.atlas.samples import Calls, Sample, choose_samples, is_random, list_outputs, vary
from onnxproof.artifact.exporter_output import catch_output
from onnxproof.artifact.exporters import Attempt, Order, run
from onnxproof.artifact.file import read_artifact
from onnxproof.cases.plan import Case
from onnxproof.diagnosis.failures import diagnose_export
from onnxproof.errors import FindingError, Rejected, condense
from onnxproof.lints.operations import read_dtype, read_manner
from onnxproof.parity.listener import SILENT
from onnxproof.parity.memo import Memo
from onnxproof.parity.verifier import Verifier
from onnxproof.policy.parity import weigh_output
from onnxproof.proof.case_result import CaseResult
from onnxproof.request.request import VerifySettings
from onnxproof.request.session import SessionSettings
from onnxproof.request.thresholds import Policy
from onnxproof.subject.mode import hold_at_rest
from onnxproof.subject.structure import flatten
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Array, Arrays
from onnxproof.tensors.conversion import to_numpy
from onnxproof.trials.trial import UNORDERED

Row = dict[str, Any]
LEVELS = ("all", "disable")
# Samples that are exported one by one where all together fail.
ALONE = 3
# Calls that only look at memory in another way, or copy it: no operation of their own.
VIEWS = frozenset(
    "view _unsafe_view reshape expand permute transpose t unsqueeze squeeze slice select detach alias clone as_strided lift_fresh _to_copy copy_ view_as_real".split()
)


@dataclass(frozen=True)
class Combination:
    """What is measured in one go."""

    op: str
    dtype: str
    exporter: str
    opset: int | None

    @property
    def key(self) -> str:
        return f"{self.op}|{self.dtype}|{self.exporter}|{self.opset or 'default'}"


class _Seen(TorchDispatchMode):
    """Which operations of torch a call consists of."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str, str]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((str(func), read_manner(func, args, kwargs or {}), read_dtype(args, kwargs or {})))
        return func(*args, **(kwargs or {}))


def measure(op: Any, one: Combination) -> Row:
    """The row of a combination."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    row: Row = {"key": one.key, "op": one.op, "dtype": one.dtype, "exporter": one.exporter, "opset": one.opset}
    dtype = getattr(torch, one.dtype)
    try:
        samples = choose_samples(op, dtype)
    except Exception as error:
        return {**row, "status": "no samples", "reason": condense(error)[:200]}
    samples = [sample for sample in samples if answers(op.op, sample)]
    if not samples:
        return {**row, "status": "no samples", "reason": "none of dense real tensors that torch answers"}
    if is_random(op) or not all(_repeats(op.op, sample) for sample in samples):
        return {**row, "status": "random", "samples": len(samples)}
    row["samples"] = len(samples)
    with tempfile.TemporaryDirectory(prefix="atlas-") as folder:
        made, failures = _export_all(op.op, samples, one, Path(folder))
        if failures:
            row["refused"] = failures
        if not made:
            return {**row, "status": "not exported"}
        results = [_judge(part, subject, path, dtype) for part, subject, path in made]
    return {**row, **_sum_up(op.op, results, bool(failures))}


def answers(function: Any, sample: Sample) -> bool:
    try:
        args, kwargs = sample.fill([t.clone() for t in sample.tensors])
        answers = list_outputs(function(*args, **kwargs))
        return bool(answers) and all(one.layout == torch.strided for one in answers)
    except Exception:
        return False


def _repeats(function: Any, sample: Sample) -> bool:
    answers = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        args, kwargs = sample.fill([t.clone() for t in sample.tensors])
        answers.append(list_outputs(function(*args, **kwargs)))
    return all(
        a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for a, b in zip(*answers, strict=True)
    )


def list_aten(function: Any, sample: Sample) -> list[tuple[str, str, str]]:
    """The operations of torch that a call runs, how it calls them and on which dtype, without views and copies."""
    args, kwargs = sample.fill([t.clone() for t in sample.tensors])
    with _Seen() as seen, torch.no_grad():
        function(*args, **kwargs)
    return [call for call in dict.fromkeys(seen.calls) if call[0].split(".")[1] not in VIEWS]


Made = tuple[Sequence[Sample], Subject, Path]


def _export_all(function: Any, samples: list[Sample], one: Combination, folder: Path) -> tuple[list[Made], list[Row]]:
    """One file of all samples; where that fails, one of each of the first few. What failed, by diagnosis."""
    try:
        return [_export(function, samples, one, folder / "all.onnx")], []
    except Exception as error:
        first = _diagnose(error)
    if len(samples) == 1:
        return [], [first]
    made, failures = list[Made](), list[Row]()
    for place, sample in enumerate(samples[:ALONE]):
        try:
            made.append(_export(function, [sample], one, folder / f"{place}.onnx"))
        except Exception as error:
            failures.append(_diagnose(error))
            if not made and len(failures) == 2 and failures[0] == failures[1]:
                break
    return made, list({str(row): row for row in (failures or [first])}.values())


def _diagnose(error: BaseException) -> Row:
    finding = diagnose_export(error)
    return {"code": finding.code, "message": finding.message[:200]}


def _export(function: Any, samples: Sequence[Sample], one: Combination, path: Path) -> Made:
    subject = Subject(
        Calls(function, samples).eval(), tuple(t for sample in samples for t in sample.tensors), {}, "operation"
    )
    names = list(flatten(subject.call(subject.copies())).tensors)
    order = Order(subject, tuple(subject.copies()), names, path, keep_metadata=False)
    with catch_output(), hold_at_rest(subject.module):
        run(Attempt(one.exporter, opset=one.opset), order)
    return samples, subject, path


def _judge(samples: Sequence[Sample], subject: Subject, path: Path, dtype: torch.dtype) -> Row:
    """What the session answers on the samples and on every kind of values, with and without optimisations."""
    model = onnx.load(path)
    facts: Row = {"nodes": sorted({n.op_type for n in model.graph.node}), "written": model.opset_import[0].version}
    names = iter(subject.inputs.tensors)
    groups = [[next(names) for _ in sample.tensors] for sample in samples]
    settings = VerifySettings(SessionSettings(threads=1), budget=1e6)
    try:
        memo = Memo()
        verifier = Verifier(subject, read_artifact(path), settings, SILENT, memo=memo)
        off = replace(settings, session=replace(settings.session, optimization="disable"))
        sessions = {"all": verifier, "disable": verifier.elsewhere(off, SILENT, memo)}
    except (FindingError, Rejected) as error:
        return {**facts, "status": "not loaded", "reason": condense(error)[:300]}
    ordered = not any(
        {name.split(".")[1] for name, _, _ in list_aten(subject.module.function, s)} & UNORDERED for s in samples
    )
    example = {name: to_numpy(tensor) for name, tensor in subject.inputs.tensors.items()}
    numpy_dtype = to_numpy(torch.zeros(1, dtype=dtype)).dtype
    facts["cases"], found, refused = 0, list[Row](), list[str]()
    for profile, fair, tries in [("sample", True, [example]), *vary(example, numpy_dtype, groups)]:
        if profile != "sample" and not ordered:
            continue  # equal values have no order that anyone promises
        for number, inputs in enumerate(tries):
            if number >= 2 and facts.get("last") == profile:
                break
            answers: dict[str, Array] | None = None
            for level, side in sessions.items():
                case = Case(f"{profile}/{number}", profile=profile, fair=False)
                before, answers = answers, _answer(side, inputs)
                if before is not None and answers is not None and _same(before, answers):
                    facts["cases"] += 1
                    continue  # what optimisations leave alone to the bit is judged once
                result = side.evaluate(case, inputs, (lambda known=answers: known) if answers is not None else None)
                if result.status == "rejected":
                    break
                facts["cases"] += 1
                facts["last"] = profile
                if result.status == "failed":
                    refused.append(f"{profile}: {condense(str(result.message))[:200]}")
                else:
                    found += _tell(result, profile, fair, level, inputs, samples, groups, subject)
            else:
                if number == 0:
                    break
    facts.pop("last", None)
    if refused:
        facts["fails"] = list(dict.fromkeys(refused))[:4]
    return {**facts, "status": "compared", "found": found}


def _answer(side: Verifier, inputs: Arrays) -> dict[str, Array] | None:
    try:
        return dict(side.session.run(inputs))
    except Rejected:
        return None


def _same(one: Arrays, other: Arrays) -> bool:
    return all(one[n].dtype == other[n].dtype and one[n].tobytes() == other[n].tobytes() for n in one)


def _tell(
    result: CaseResult,
    profile: str,
    fair: bool,
    level: str,
    inputs: Arrays,
    samples: Sequence[Sample],
    groups: Sequence[Sequence[str]],
    subject: Subject,
) -> list[Row]:
    """Differences beyond rounding, each with what goes in at its worst element."""
    owners = [place for place, sample in enumerate(samples) for _ in range(_count_outputs(subject, sample))]
    rows = []
    for number, comparison in enumerate(result.outputs):
        grave = weigh_output(comparison, Policy(), "PyTorch")
        if grave is None:
            continue
        place = owners[number]
        names = groups[place]
        worst = comparison.worst[0] if comparison.worst else None
        given = [
            float(inputs[name][worst.index])
            for name in names
            if worst is not None and inputs[name].shape == comparison.baseline_shape
        ]
        rows.append(
            {
                "sample": place, "output": number - owners.index(place), "profile": profile, "fair": fair, "level": level, "code": grave.code,
                "message": grave.message.replace(comparison.output, "the answer")[:300],
                "expected": worst.baseline if worst is not None else None,
                "got": worst.candidate if worst is not None else None,
                "given": [str(v) for v in given],
                "aten": list(dict.fromkeys(name for name, _, _ in list_aten(subject.module.function, samples[place]))),
                "manners": [manner for _, manner, _ in list_aten(subject.module.function, samples[place])],
                "inputs": {name: _to_list(inputs[name]) for name in names},
            }
        )  # fmt: skip
    return rows


def _count_outputs(subject: Subject, sample: Sample) -> int:
    args, kwargs = sample.fill([t.clone() for t in sample.tensors])
    return len(list_outputs(subject.module.function(*args, **kwargs)))


def _to_list(array: Any) -> Any:
    return [str(array.dtype), list(array.shape), [str(v) for v in np.asarray(array).ravel()[:200]]]


def _sum_up(function: Any, results: Sequence[Row], partly: bool) -> Row:
    compared = [one for one in results if one["status"] == "compared"]
    found = [row for one in compared for row in one["found"]]
    # One of each sample's output and level and profile is enough: fair ones first.
    found.sort(key=lambda row: (not row["fair"], row["profile"] != "sample"))
    status = "differs" if found else "agrees" if compared else "not loaded"
    if compared and not found and all(one.get("fails") and one["cases"] == len(one["fails"]) for one in compared):
        status = "not run"
    return {
        "status": status,
        "partly": partly,
        "nodes": sorted({name for one in results for name in one["nodes"]}),
        "written": results[0]["written"],
        "cases": sum(one.get("cases", 0) for one in compared),
        "fails": [text for one in compared for text in one.get("fails", [])][:4],
        "unloaded": [one["reason"] for one in results if one["status"] == "not loaded"][:2],
        "found": [row if n < 6 else {**row, "inputs": None} for n, row in enumerate(found[:24])],
        "found_all": len(found),
    }
