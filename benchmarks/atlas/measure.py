"""One operation in one dtype, through the exporters and at the opsets that are asked for: does it export, does it run, does it agree."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.atlas.samples import WIDE, Calls, Sample, choose_samples, is_random, list_outputs, load_operations, vary
from benchmarks.atlas.sharing import share_capture
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
# Samples that are exported one by one where all together fail.
ALONE = 3
# In memory where there is such a folder: a file is written for good, which takes longer on a disk than it takes to make it.
SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None
# Differences of a row that are kept.
MOST_FOUND = 24
# What an operation is in a dtype, whatever the exporter and the opset: said at the default one only.
SETTLED = ("random", "no samples")
# Operations whose integers say how many answers there are: wide ones would ask for millions of them.
COUNTING = (torch.tensor_split,)
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


def measure(op: Any, wanted: Sequence[Combination]) -> Iterator[Row]:
    """The rows of combinations that are all of one operation in one dtype."""
    samples, settled = _find_samples(op, getattr(torch, wanted[0].dtype))
    with tempfile.TemporaryDirectory(prefix="atlas-", dir=SCRATCH) as folder:
        modules = _Modules(op.op, samples, getattr(torch, wanted[0].dtype), Path(folder))
        for one in wanted if not settled else [one for one in wanted if one.opset is None]:
            row: Row = {"op": one.op, "dtype": one.dtype, "exporter": one.exporter, "opset": one.opset}
            try:
                row |= settled or {"samples": len(samples), **modules.measure(one)}
            except Exception as error:
                row |= {"status": "our error", "reason": f"{type(error).__name__}: {error}"[:400]}
            yield row


def compare_plainly(op: str, dtype: str, opsets: Sequence[int]) -> list[bool]:
    """Whether the newer exporter's files with one capture for all of them are those of one export each, where it makes any."""
    samples, _ = _find_samples(load_operations()[op], getattr(torch, dtype))
    same = list[bool]()
    with tempfile.TemporaryDirectory(prefix="atlas-", dir=SCRATCH) as folder:
        shared, *plain = (
            _Module(
                load_operations()[op].op, dict(enumerate(samples)), getattr(torch, dtype), Path(folder) / f"{n}.onnx"
            )
            for n in range(1 + len(opsets))
        )
        for opset, alone in zip(opsets, plain, strict=True):
            made = [module.try_export(Combination(op, dtype, "dynamo", opset)) for module in (shared, alone)]
            same += [made[0] == made[1]] * any(made)
    return same


def list_samples(op: Any, dtype: torch.dtype) -> list[Sample]:
    """The samples that are measured, in the order that rows count them in."""
    return [sample for sample in choose_samples(op, dtype) if answers(op.op, sample)]


def _find_samples(op: Any, dtype: torch.dtype) -> tuple[list[Sample], Row]:
    """What can be exported, or what there is to say instead."""
    try:
        samples = list_samples(op, dtype)
    except Exception as error:
        return [], {"status": "no samples", "reason": condense(error)[:200]}
    if not samples:
        return [], {"status": "no samples", "reason": "none of dense real tensors that torch answers"}
    if is_random(op) or not all(_repeats(op.op, sample) for sample in samples):
        return [], {"status": "random", "samples": len(samples)}
    return samples, {}


def answers(function: Any, sample: Sample) -> bool:
    """Whether torch answers a sample, and with dense tensors."""
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


class _Modules:
    """The modules that are made of an operation's samples: all together, and each of the first few alone."""

    def __init__(self, function: Any, samples: list[Sample], dtype: torch.dtype, folder: Path) -> None:
        self._function, self._samples, self._dtype, self._folder = function, samples, dtype, folder
        self._known: dict[range, _Module] = {}

    def measure(self, one: Combination) -> Row:
        """One file of all samples; where that fails, one of each of the first few."""
        every = range(len(self._samples))
        made, failures = list[Row](), list[Row]()
        try:
            made.append(self._pick(every).measure(one))
        except _NotExported as error:
            failures, alone = [error.diagnosis], every[:ALONE] if len(every) > 1 else ()
            for place in alone:
                if self._needs(place, failures[0]):
                    failures.append(failures[0])
                    continue
                try:
                    made.append(self._pick(range(place, place + 1)).measure(one))
                except _NotExported as error:
                    failures.append(error.diagnosis)
                    if not made and place == 1 and failures[1] == failures[2]:
                        break
            failures = failures[1:] or failures if alone else failures
        told = {"refused": list({str(row): row for row in failures}.values())} if failures else {}
        return {**told, **_sum_up(made, bool(failures))} if made else {**told, "status": "not exported"}

    def _needs(self, place: int, diagnosis: Row) -> bool:
        """Whether a sample by itself calls the very operation that the exporter has no translation for."""
        lacking = diagnosis["message"].removeprefix("the exporter has no ONNX translation for ")
        called = (name.removesuffix(".default") for name, _, _ in list_aten(self._function, self._samples[place]))
        return diagnosis["code"] == "OX108" and lacking in called

    def _pick(self, places: range) -> _Module:
        if places not in self._known:
            samples = {place: self._samples[place] for place in places}
            self._known[places] = _Module(self._function, samples, self._dtype, self._folder / f"{places}.onnx")
        return self._known[places]


class _NotExported(Exception):
    def __init__(self, error: BaseException) -> None:
        finding = diagnose_export(error)
        self.diagnosis: Row = {"code": finding.code, "message": finding.message[:200]}


class _Module:
    """Some samples as a module: it is captured once for all opsets, and answers that were judged once are not judged again."""

    def __init__(self, function: Any, samples: dict[int, Sample], dtype: torch.dtype, path: Path) -> None:
        self._function, self._samples, self._path = function, samples, path
        inputs = tuple(t for sample in samples.values() for t in sample.tensors)
        self._subject = Subject(Calls(function, list(samples.values())).eval(), inputs, {}, "operation")
        self._numpy_dtype = to_numpy(torch.zeros(1, dtype=dtype)).dtype
        self._captured: dict[Any, Any] = {}
        self._memo = Memo()
        self._judged: dict[tuple[str, tuple[bytes, ...]], CaseResult] = {}

    @cached_property
    def _groups(self) -> list[list[str]]:
        """The inputs of each sample."""
        names = iter(self._subject.inputs.tensors)
        return [[next(names) for _ in sample.tensors] for sample in self._samples.values()]

    @cached_property
    def _example(self) -> dict[str, Array]:
        return {name: to_numpy(tensor) for name, tensor in self._subject.inputs.tensors.items()}

    @cached_property
    def _aten(self) -> list[list[tuple[str, str, str]]]:
        return [list_aten(self._function, sample) for sample in self._samples.values()]

    @cached_property
    def _owners(self) -> list[int]:
        """The sample that each output is of, by its place in this module."""
        owners = list[int]()
        for place, sample in enumerate(self._samples.values()):
            args, kwargs = sample.fill([t.clone() for t in sample.tensors])
            owners += [place] * len(list_outputs(self._function(*args, **kwargs)))
        return owners

    def measure(self, one: Combination) -> Row:
        """What comes of one exporter at one opset."""
        try:
            self._export(one)
        except Exception as error:
            raise _NotExported(error) from error
        model = onnx.load(self._path)
        facts: Row = {"nodes": sorted({n.op_type for n in model.graph.node}), "written": model.opset_import[0].version}
        try:
            sessions = self._open()
        except (FindingError, Rejected) as error:
            return {**facts, "status": "not loaded", "reason": condense(error)[:300]}
        return {**facts, "status": "compared", **self._judge(sessions)}

    def try_export(self, one: Combination) -> bytes:
        """The file; empty where there is none."""
        try:
            self._export(one)
            return self._path.read_bytes()
        except Exception:
            return b""

    def _export(self, one: Combination) -> None:
        subject = self._subject
        names = list(flatten(subject.call(subject.copies())).tensors)
        order = Order(subject, tuple(subject.copies()), names, self._path, keep_metadata=False)
        with catch_output(), hold_at_rest(subject.module), share_capture(self._captured):
            run(Attempt(one.exporter, opset=one.opset), order)

    def _open(self) -> dict[str, Verifier]:
        """With and without optimisations."""
        settings = VerifySettings(SessionSettings(threads=1), budget=1e6)
        verifier = Verifier(self._subject, read_artifact(self._path), settings, SILENT, memo=self._memo)
        off = replace(settings, session=replace(settings.session, optimization="disable"))
        return {"all": verifier, "disable": verifier.elsewhere(off, SILENT, self._memo)}

    def _judge(self, sessions: dict[str, Verifier]) -> Row:
        """What the sessions answer on the samples and on every kind of values."""
        cases, before, found, refused = 0, len(self._judged), list[Row](), list[str]()
        # Equal values have no order that anyone promises.
        ordered = not {name.split(".")[1] for calls in self._aten for name, _, _ in calls} & UNORDERED
        kinds = vary(self._example, self._numpy_dtype, self._groups) if ordered else ()
        for profile, fair, tries in [("sample", True, [self._example]), *kinds]:
            if profile in WIDE and self._function in COUNTING:
                continue
            taken = False
            for number, inputs in enumerate(tries):
                if number == 2 and taken:
                    break
                results = self._run(Case(f"{profile}/{number}", profile=profile, fair=False), sessions, inputs)
                if results is None:
                    continue
                taken, cases = True, cases + len(sessions)
                for level, result in results.items():
                    if result.status == "failed":
                        refused.append(f"{profile}: {condense(str(result.message))[:200]}")
                    else:
                        found += self._tell(result, profile, fair, level, inputs)
                if number == 0:
                    break
        return {"cases": cases, "judged": len(self._judged) - before, "found": found, "fails": refused}

    def _run(self, case: Case, sessions: dict[str, Verifier], inputs: Arrays) -> dict[str, CaseResult] | None:
        """Level → result, without what optimisations leave alone to the bit; None where torch refuses the values."""
        results: dict[str, CaseResult] = {}
        last: tuple[bytes, ...] | None = None
        for level, side in sessions.items():
            answers = _answer(side, inputs)
            bits = _read_bits(answers) if answers is not None else None
            if bits is not None and bits == last:
                continue
            last = bits
            result = self._judged.get((case.name, bits)) if bits is not None else None
            if result is None:
                result = side.evaluate(case, inputs, (lambda known=answers: known) if answers is not None else None)
                if result.status == "rejected":
                    return None
                if bits is not None:
                    self._judged[case.name, bits] = result
            results[level] = result
        return results

    def _tell(self, result: CaseResult, profile: str, fair: bool, level: str, inputs: Arrays) -> Iterator[Row]:
        """Differences beyond rounding, each with what goes in at its worst element."""
        for number, comparison in enumerate(result.outputs):
            grave = weigh_output(comparison, Policy(), "PyTorch")
            if grave is None:
                continue
            place = self._owners[number]
            names = self._groups[place]
            worst = comparison.worst[0] if comparison.worst else None
            given = [
                _read_number(inputs[name][worst.index])
                for name in names
                if worst is not None and inputs[name].shape == comparison.baseline_shape
            ]
            yield {
                "sample": list(self._samples)[place], "output": number - self._owners.index(place), "profile": profile, "fair": fair, "level": level,
                "code": grave.code, "message": grave.message.replace(comparison.output, "the answer")[:300],
                "expected": worst.baseline if worst is not None else None,
                "got": worst.candidate if worst is not None else None,
                "given": given,
                "aten": list(dict.fromkeys(name for name, _, _ in self._aten[place])),
                "manners": [manner for _, manner, _ in self._aten[place]],
                # Which inputs have values of the profile: the others are the sample's own.
                "varied": [i for i, name in enumerate(names) if inputs[name] is not self._example[name]],
                "size": sum(inputs[name].size for name in names),
            }  # fmt: skip


def _read_number(value: Any) -> str:
    """All digits of an integer; anything else as float64 has it."""
    return str(int(value) if value.dtype.kind in "iu" else float(value))


def _answer(side: Verifier, inputs: Arrays) -> dict[str, Array] | None:
    try:
        return dict(side.session.run(inputs))
    except Rejected:
        return None


def _read_bits(answers: Arrays) -> tuple[bytes, ...]:
    """What makes two answers the same: names, dtypes, shapes and every bit."""
    return tuple(f"{n} {a.dtype} {a.shape} ".encode() + a.tobytes() for n, a in answers.items())


def _sum_up(results: Sequence[Row], partly: bool) -> Row:
    compared = [one for one in results if one["status"] == "compared"]
    found = [row for one in compared for row in one["found"]]
    # One of each sample's output and level and profile is enough: fair ones first.
    found.sort(key=lambda row: (not row["fair"], row["profile"] != "sample"))
    status = "differs" if found else "agrees" if compared else "not loaded"
    if compared and not found and all(one["fails"] and one["cases"] == len(one["fails"]) for one in compared):
        status = "not run"
    return {
        "status": status,
        "partly": partly,
        "nodes": sorted({name for one in results for name in one["nodes"]}),
        "written": results[0]["written"],
        "cases": sum(one["cases"] for one in compared),
        "judged": sum(one["judged"] for one in compared),
        "fails": list(dict.fromkeys(text for one in compared for text in one["fails"]))[:4],
        "unloaded": [one["reason"] for one in results if one["status"] == "not loaded"][:2],
        "found": found[:MOST_FOUND],
        "found_all": len(found),
    }
