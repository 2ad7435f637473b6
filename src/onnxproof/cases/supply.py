"""Everything the cases of one subject are made of: the domains of its inputs, the user's data, kept counterexamples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onnxproof.artifact.pairing import pair_inputs
from onnxproof.cases import counterexample_files as keep
from onnxproof.cases import data as user_data
from onnxproof.cases.coverage import cover, spread
from onnxproof.cases.domain import WIDE_INTEGERS, Domain, infer_domain, observed, with_lengths
from onnxproof.cases.plan import Case, Inputs, generated, make_inputs, make_plan
from onnxproof.cases.roles import Use, scalar_constants, uses
from onnxproof.cases.values import FAIR_LIMIT, NONFINITE
from onnxproof.errors import InputError, NothingToVerify, listed
from onnxproof.findings import Finding, found
from onnxproof.graph.view import Graph
from onnxproof.proof.artifact import Artifact
from onnxproof.request.request import VerifySettings
from onnxproof.subject.subject import Subject
from onnxproof.tensors.conversion import to_numpy

DATA_ROWS = 32
DATA_CASES = 16
SAMPLE_ROWS = 4096
"""Rows of the user's data that generated values are drawn from."""


class Supply:
    """Plans cases and makes their inputs."""

    def __init__(self, subject: Subject, artifact: Artifact, settings: VerifySettings) -> None:
        self.subject = subject
        self.settings = settings
        self.bounds = artifact.bounds
        graph = Graph.read(Path(artifact.path))
        self._handles_nonfinite = any(node.op_type in ("IsNaN", "IsInf") for node in graph.nodes)
        """Whether the model itself deals with NaN or infinities."""
        self.domains = self._infer(artifact, graph)
        self._data = self._load_data()
        self._order = self._row_order()
        if self._data is not None:
            self.domains = [self._with_sample(domain) for domain in self.domains]

    def _infer(self, artifact: Artifact, graph: Graph) -> list[Domain]:
        used, hints = uses(graph), scalar_constants(graph, FAIR_LIMIT)
        subject = self.subject
        renamed = pair_inputs(dict.fromkeys(subject.inputs.tensors, ""), artifact.inputs, subject.shapes()).pairs
        unknown = [name for name in self.settings.roles if name not in subject.inputs.tensors]
        if unknown:
            raise InputError(
                f"--role: the model has no input {listed(unknown)}; its inputs are {listed(subject.inputs.tensors)}"
            )
        domains = [
            infer_domain(
                name,
                to_numpy(tensor),
                subject.dynamic.get(name, {}),
                subject.ranges.get(name),
                used.get(renamed.get(name, name), Use()),
                hints,
                self.settings.roles.get(name),
            )
            for name, tensor in subject.inputs.tensors.items()
        ]
        return with_lengths([replace(domain, limits=subject.limits) for domain in domains])

    # --- the user's data

    def _load_data(self) -> user_data.Table | None:
        """One array of rows per input; inputs without dimensions come as they are, or from the example."""
        self._labels: NDArray[np.generic] | None = None
        if self.settings.data is None:
            return None
        table = user_data.load_data(self.settings.data)
        rows = {d.name: d.dtype for d in self.domains if d.shape}
        scalars = {
            d.name: np.asarray(table.get(d.name, d.example)).astype(d.dtype) for d in self.domains if not d.shape
        }
        self._labels = next((np.asarray(table[name]) for name in user_data.LABELS if name in table), None)
        return {**user_data.select_inputs(table, rows), **scalars}

    def _row_order(self) -> NDArray[np.intp] | None:
        """Rows in an order in which every label comes early, where there are labels."""
        if self._data is None or self._labels is None or len(self._labels) != self._rows():
            return None
        return user_data.stratified(self._labels)

    def _with_sample(self, domain: Domain) -> Domain:
        assert self._data is not None  # asked only with data
        if not domain.shape or not domain.is_float:
            return domain
        rows = self._data[domain.name]
        step = max(1, len(rows) // SAMPLE_ROWS)
        return replace(domain, sample=rows[::step])

    def _rows(self) -> int:
        assert self._data is not None  # asked only with data
        return next((len(array) for array in self._data.values() if array.ndim), 0)

    def _data_cases(self) -> list[Case]:
        """Windows of rows over all of the data; where there are too many, evenly spread ones."""
        if self._data is None:
            return []
        rows = self._rows()
        static = {d.shape[0] for d in self.domains if d.shape and 0 not in d.dims}
        most = self.subject.limits.get(self.subject.batch or "", (0, DATA_ROWS))[1]
        step = min(next(iter(static)) if static else min(DATA_ROWS, most), rows)
        starts = np.unique(np.linspace(0, rows - step, num=min(DATA_CASES, -(-rows // step)), dtype=int)).tolist()
        if self._order is not None:
            starts = [min(i * step, rows - step) for i in range(len(starts))]
        word = "rows" if self._order is None else "stratified"
        return [Case(f"data/{word}={s}-{s + step - 1}", profile="data", rows=(s, step)) for s in dict.fromkeys(starts)]

    def rows_case(self, count: int, label: str) -> Case | None:
        """The first rows of the user's data as a case, where there are as many."""
        if self._data is None or self._rows() < count:
            return None
        return Case(f"{label}/timed-data/rows=0-{count - 1}", profile="data", rows=(0, count))

    def remarks(self) -> list[Finding]:
        """What is to be said about the user's data: how many rows were run, and what the generated cases do not reach."""
        if self._data is None:
            return []
        rows, cases = self._rows(), self._data_cases()
        run = sum(case.rows[1] for case in cases if case.rows is not None)
        if run >= rows:
            return []
        how = "a few of each label first" if self._order is not None else "spread evenly"
        message = f"{run} of the {rows} rows of --data were run, {how}"
        return [found("OX005", message, evidence={"rows": rows, "run": run})]

    def coverage(self, cases: list[Case]) -> dict[str, dict[str, float]]:
        """How much of the user's data lies where the generated cases have been, per input."""
        if self._data is None:
            return {}
        synthetic = [case for case in cases if case.fair and case.profile not in ("data", "like-data", "kept")]
        made = [self.make_inputs(case) for case in synthetic]
        return {
            d.name: cover(self._data[d.name], spread(inputs[d.name] for inputs in made))
            for d in self.domains
            if d.is_float and d.shape
        }

    # --- what is tried

    def calibrate(self, accepts: Callable[[Inputs], bool]) -> None:
        """Ask PyTorch which integers it accepts where nothing else tells: wide ones, else the example's."""
        for i, domain in enumerate(self.domains):
            if domain.role == "integer" and domain.valid is None:
                self.domains[i] = replace(domain, valid=WIDE_INTEGERS)
                if not self._accepted(i, accepts):
                    self.domains[i] = replace(domain, valid=observed(domain), extremes=False)

    def _accepted(self, index: int, accepts: Callable[[Inputs], bool]) -> bool:
        domain = self.domains[index]
        inputs = self.example()
        for profile in ("normal", "tiny"):
            inputs[domain.name] = make_inputs(generated({}, profile), [replace(domain, dims={})])[domain.name]
            if not accepts(inputs):
                return False
        return True

    def example(self) -> Inputs:
        """The example inputs as arrays."""
        return make_inputs(generated({}, "example"), [replace(d, dims={}) for d in self.domains])

    def plan(self, *, asks_for_nan: bool = False) -> list[Case]:
        """Cases in the order they are run: kept counterexamples, the user's data, generated ones."""
        settings = self.settings
        self._check_batch_sizes()
        cases = make_plan(
            self.subject.sizes(),
            settings.batch_sizes,
            floats=any(d.is_float and not d.declared for d in self.domains),
            seed=settings.seed,
            batch=self.subject.batch or "batch",
            bounds=self.bounds,
            limits=self.subject.limits,
            empty=settings.isolated,
            sampled=any(d.sample is not None for d in self.domains),
        )
        if settings.nonfinite or asks_for_nan or self._handles_nonfinite:
            cases = [replace(case, fair=True) if case.profile in NONFINITE else case for case in cases]
        if not cases:
            raise NothingToVerify(
                "there is no case to verify: --batch-sizes is empty. Give at least one size, such as --batch-sizes 1,2"
            )
        nonfinite = any(case.fair for case in cases if case.profile in NONFINITE)
        return [*self._kept_cases(nonfinite), *self._data_cases(), *cases]

    def _kept_cases(self, nonfinite: bool) -> list[Case]:
        """Counterexamples of earlier runs that fit this subject and its declared ranges; fair as any other input is."""
        if self.settings.counterexamples is None:
            return []
        cases = []
        for file in keep.kept(Path(self.settings.counterexamples)):
            inputs = keep.of_domains(keep.read(file), self.domains)
            if keep.fits(inputs, self.domains):
                fair = nonfinite or all(_finite(inputs[d.name]) for d in self.domains if d.is_float)
                empty = any(0 in array.shape for array in inputs.values()) and 0 not in (
                    self.settings.batch_sizes or ()
                )
                cases.append(Case(f"kept/{file.stem}", profile="kept", file=str(file), fair=fair and not empty))
        return cases

    def _check_batch_sizes(self) -> None:
        """Sizes asked for a batch that does not vary are a mistake, unless they are the one it has."""
        asked = self.settings.batch_sizes
        if asked and self.subject.batch is None:
            have = {d.shape[0] for d in self.domains if d.shape}
            if not set(asked) <= have:
                raise InputError(
                    f"--batch-sizes {','.join(map(str, asked))}: no first dimension is dynamic, so the batch is "
                    f"{' or '.join(map(str, sorted(have)))}. Make it dynamic with --dynamic NAME:0=batch"
                )

    def make_inputs(self, case: Case) -> Inputs:
        """The inputs of a planned case."""
        if case.file is not None:
            return keep.of_domains(keep.read(Path(case.file)), self.domains)
        if case.rows is not None:
            assert self._data is not None  # data cases are planned only with data
            return {name: self._window(array, case.rows) for name, array in self._data.items()}
        return make_inputs(case, self.domains)

    def _window(self, array: NDArray[np.generic], rows: tuple[int, int]) -> NDArray[np.generic]:
        if not array.ndim:
            return array
        start, count = rows
        if self._order is not None:
            return np.ascontiguousarray(array[self._order[start : start + count]])
        return np.ascontiguousarray(array[start : start + count])

    def sizes_of(self, inputs: Mapping[str, NDArray[np.generic]]) -> dict[str, int]:
        """The sizes of the dynamic dims in some inputs."""
        return {name: inputs[d.name].shape[i] for d in self.domains for i, name in d.dims.items()}


def _finite(array: NDArray[np.generic]) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
