"""Everything the cases of one subject are made of: the domains of its inputs, the user's data, kept counterexamples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from onnxproof.artifact.pairing import pair_inputs
from onnxproof.cases import counterexample_files as keep
from onnxproof.cases.coverage import cover, sort_finite
from onnxproof.cases.data_rows import DataRows
from onnxproof.cases.domain import WIDE_INTEGERS, Domain, bind_lengths, infer_domain, observe_range, read_sizes
from onnxproof.cases.plan import Case, Inputs, make_case, make_inputs, make_plan
from onnxproof.cases.roles import Use, find_constants, find_uses
from onnxproof.cases.rollout import Rollouts
from onnxproof.cases.values import NONFINITE, choose_hints
from onnxproof.data.examples import Examples
from onnxproof.data.opening import open_source
from onnxproof.errors import InputError, NothingToVerify, list_names
from onnxproof.findings import Finding, found
from onnxproof.graph.view import Graph
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.search import Coverage
from onnxproof.request.request import VerifySettings
from onnxproof.request.specs import Range
from onnxproof.subject.subject import Subject
from onnxproof.tensors.arrays import Arrays
from onnxproof.tensors.conversion import to_numpy

# Rows of the user's data that make a case, where the model takes any number.
DATA_ROWS = 32
# Calls of a module that deals with NaN or infinities itself.
ASKING = frozenset("isnan isinf isfinite nan_to_num nanmean nansum".split())
# Calls that exporters write with a question for NaN of their own: what the graph asks there, the module does not.
ASKED_INSIDE = frozenset(
    """atan2 heaviside histc logaddexp logaddexp2 special_entr special_xlog1py xlogy _fused_sdp_choice _safe_softmax
    _scaled_dot_product_flash_attention_for_cpu scaled_dot_product_attention""".split()
)


class Supply:
    """Plans cases and makes their inputs."""

    def __init__(self, subject: Subject, artifact: Artifact, settings: VerifySettings) -> None:
        self.subject = subject
        self.settings = settings
        self.bounds = artifact.bounds
        graph = Graph.read(Path(artifact.path))
        self._handles_nonfinite = any(node.op_type in ("IsNaN", "IsInf") for node in graph.nodes)
        self.domains = self._infer(artifact, graph)
        self.rollouts: Rollouts | None = None
        """The steps of a model that carries state, once it is known to."""
        self._data = self._open_data()
        if self._data is not None:
            sample = self._data.sample
            self.domains = [replace(d, sample=sample[d.name]) if d.shape and d.is_float else d for d in self.domains]

    def _infer(self, artifact: Artifact, graph: Graph) -> list[Domain]:
        used, hints = find_uses(graph), find_constants(graph)
        subject = self.subject
        renamed = pair_inputs(dict.fromkeys(subject.inputs.tensors, ""), artifact.inputs, subject.shapes()).pairs
        unknown = [name for name in self.settings.roles if name not in subject.inputs.tensors]
        if unknown:
            raise InputError(
                f"--role: the model has no input {list_names(unknown)}; its inputs are {list_names(subject.inputs.tensors)}"
            )
        domains = [
            infer_domain(
                name,
                to_numpy(tensor),
                subject.dynamic.get(name, {}),
                subject.ranges.get(name),
                used.get(renamed.get(name, name), Use()),
                choose_hints(hints, to_numpy(tensor)),
                self.settings.roles.get(name),
            )
            for name, tensor in subject.inputs.tensors.items()
        ]
        return bind_lengths([replace(domain, limits=subject.limits) for domain in domains])

    def _open_data(self) -> DataRows | None:
        settings, limits = self.settings, self.subject.limits
        if settings.data is None:
            return None
        static = [d.shape[0] for d in self.domains if d.shape and 0 not in d.dims]
        most = static[0] if static else min(DATA_ROWS, limits.get(self.subject.batch or "", (0, DATA_ROWS))[1])
        examples = {d.name: d.example for d in self.domains}
        return DataRows(
            Examples(open_source(settings.data, part=settings.part), examples, settings.labels, settings.ids), most
        )

    def rows_case(self, count: int, label: str, sizes: Mapping[str, int]) -> Case | None:
        """The first rows of the user's data as a case, where there are as many."""
        if self._data is None or self._data.count < count:
            return None
        return Case(f"{label}/timed-data/rows=0-{count - 1}", dict(sizes), profile="data", rows=(0, count))

    def remarks(self) -> list[Finding]:
        """What is to be said about the user's data: how many rows were run, and what the generated cases do not reach."""
        if self._data is None:
            return []
        rows, run = self._data.count, sum(count for _, count in self._data.windows)
        if run >= rows:
            return []
        how = "a few of each label first" if self._data.stratified else "spread evenly"
        message = f"{run} of the {rows} rows of --data were run, {how}"
        return [found("OX005", message, evidence={"rows": rows, "run": run})]

    def coverage(self, cases: list[Case]) -> dict[str, Coverage]:
        """How much of the user's data lies where the generated cases have been, per input."""
        if self._data is None:
            return {}
        synthetic = [case for case in cases if case.fair and case.profile not in ("data", "like-data", "kept")]
        made = [self.make_inputs(case) for case in synthetic]
        return {
            d.name: cover(self._data.sample[d.name], sort_finite(inputs[d.name] for inputs in made))
            for d in self.domains
            if d.is_float and d.shape
        }

    def calibrate(self, accepts: Callable[[Inputs], bool]) -> None:
        """Ask PyTorch which integers it accepts where nothing else tells: wide ones, else the example's."""
        for i, domain in enumerate(self.domains):
            if domain.role == "integer" and domain.valid is None:
                wide = replace(domain, valid=WIDE_INTEGERS)
                if domain.is_number and abs(int(domain.example)) > WIDE_INTEGERS.high:  # those mean nothing to a rate
                    low, high = sorted((int(domain.example) // 2, 2 * int(domain.example)))
                    wide = replace(domain, valid=Range(low, high), extremes=False)
                # `tiny` is the two ends of the range, which `normal` may miss.
                ends = (make_case({}, profile) for profile in ("normal", "tiny"))
                tried = (make_inputs(case, [replace(wide, declared=True)]) for case in ends)
                accepted = all(accepts({**self.example(), **inputs}) for inputs in tried)
                self.domains[i] = wide if accepted else self._bound_integers(domain, accepts)

    def _bound_integers(self, domain: Domain, accepts: Callable[[Inputs], bool]) -> Domain:
        """Places in a dynamic dimension where the first that the module refuses is its size; else what the example has."""
        seen = observe_range(domain)

        def takes(value: int) -> bool:
            return accepts({**self.example(), domain.name: np.full(domain.shape, value, domain.dtype)})

        fitting = (
            name
            for name, size in self.subject.sizes().items()
            if seen.low >= 0 and seen.high < size and takes(size - 1) and not takes(size)
        )
        return replace(domain, valid=seen, measures=next(fitting, None), extremes=False)

    def example(self) -> Inputs:
        """The example inputs as arrays."""
        return make_inputs(make_case({}, "example"), self.domains)

    def first_rows(self) -> Inputs | None:
        """Some of the user's data, where there are any."""
        rows = self._data.cases() if self._data is not None else []
        return self.make_inputs(rows[0]) if rows else None

    def plan(self, called: Collection[str] = ()) -> list[Case]:
        """Cases in the order they are run: kept counterexamples, the user's data, generated ones; `called` by the module."""
        settings = self.settings
        # A file that lost the guard must not be the judge of it; it is where the module's calls do not show it.
        asks = ASKING.intersection(called) or (self._handles_nonfinite and not ASKED_INSIDE.intersection(called))
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
        if settings.nonfinite or asks:
            cases = [replace(case, fair=True) if case.profile in NONFINITE else case for case in cases]
        if not cases:
            raise NothingToVerify(
                "there is no case to verify: --batch-sizes is empty. Give at least one size, such as --batch-sizes 1,2"
            )
        nonfinite = any(case.fair for case in cases if case.profile in NONFINITE)
        steps = self.rollouts.cases() if self.rollouts is not None else []
        rows = self._data.cases() if self._data is not None else []
        # Steps before what a child may die of, which comes last.
        core = sum(case.core for case in cases)
        return [*self._read_kept(nonfinite), *rows, *cases[:core], *steps, *cases[core:]]

    def _read_kept(self, nonfinite: bool) -> list[Case]:
        """Counterexamples of earlier runs that fit this subject and its declared ranges; fair as any other input is."""
        if self.settings.counterexamples is None:
            return []
        cases = []
        for file in keep.read_folder(Path(self.settings.counterexamples)):
            inputs = keep.cast_to_domains(keep.read(file), self.domains)
            if keep.fits(inputs, self.domains):
                floats = [inputs[d.name] for d in self.domains if d.is_float and d.dtype.kind == "f"]
                finite = nonfinite or all(np.isfinite(array).all() for array in floats)
                full = 0 in (self.settings.batch_sizes or ()) or all(array.size for array in inputs.values())
                cases.append(Case(f"kept/{file.stem}", {}, "kept", finite and full, file=str(file), core=True))
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
            return keep.cast_to_domains(keep.read(Path(case.file)), self.domains)
        if case.profile == "rollout":
            assert self.rollouts is not None  # steps are planned only with a state
            return self.rollouts.make(case)
        if case.rows is not None:
            assert self._data is not None  # data cases are planned only with data
            return self._data.read(case.rows)
        return make_inputs(case, self.domains)

    def sizes_of(self, inputs: Arrays) -> dict[str, int]:
        """The sizes of the dynamic dims in some inputs."""
        return read_sizes(self.domains, inputs)
