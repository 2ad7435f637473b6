"""At which sizes it is timed, and on which inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnxproof.artifact.pairing import pair_inputs
from onnxproof.cases.plan import Case, Inputs
from onnxproof.cases.supply import Supply
from onnxproof.errors import InputError, list_names
from onnxproof.proof.artifact import Artifact
from onnxproof.request.benchmark import BATCHES, BenchSettings
from onnxproof.request.request import VerifySettings
from onnxproof.subject.subject import Subject


@dataclass(frozen=True)
class Point:
    """One size that is timed."""

    case: Case
    inputs: Inputs
    batch: int
    sizes: Mapping[str, int]

    @property
    def label(self) -> str:
        """`batch=8,seq=16`."""
        return ",".join(f"{name}={size}" for name, size in self.sizes.items()) or f"batch={self.batch}"


class Points:
    """Plans the sizes of one subject."""

    def __init__(
        self, subject: Subject, artifact: Artifact, verify: VerifySettings, settings: BenchSettings, supply: Supply
    ) -> None:
        self._subject, self._artifact, self._supply = subject, artifact, supply
        self._verify, self._settings = verify, settings

    def all(self) -> list[Point]:
        """The sizes to time, smallest first."""
        subject, sizes = self._subject, self._subject.sizes()
        unknown = set(self._settings.lengths) - set(sizes)
        if unknown:
            raise InputError(
                f"--lengths: no dynamic dimension is called {list_names(sorted(unknown))}; there is {list_names(sizes)}. "
                "Declare it with --dynamic NAME:DIM=size"
            )
        plain = [{**sizes, subject.batch: batch} if subject.batch else dict(sizes) for batch in self._choose_batches()]
        if {
            "past",
            "seq",
        } <= sizes.keys():  # a cache that grows: a prompt as long as the example's text, and one token after it
            plain = [
                {**one, **step}
                for one in plain
                for step in ({"past": 1, "seq": max(one["past"] + one["seq"] - 1, 2)}, {"seq": 1})
            ]
        named = self._settings.lengths.items()
        longer = [{**base, name: length} for name, lengths in named for base in plain for length in lengths]
        return [
            self._make_point(dict(one)) for one in dict.fromkeys(tuple(s.items()) for s in (longer if named else plain))
        ]

    def _choose_batches(self) -> list[int]:
        asked, batch = self._verify.batch_sizes, self._subject.batch
        if asked is not None and not asked:
            raise InputError("there is no size to time: --batch-sizes is empty. Give at least one size, such as 1,8")
        if batch is None:
            have = self._read_first_size()
            if asked and set(asked) != {have}:
                raise InputError(
                    f"--batch-sizes {','.join(map(str, asked))}: no first dimension is dynamic, so the batch is {have}. "
                    "Make it dynamic with --dynamic NAME:0=batch"
                )
            return [have]
        if asked is not None:
            return sorted({size for size in asked if size > 0})
        fixed = self._find_fixed_batch(batch)
        return [fixed] if fixed is not None else list(BATCHES)

    def _find_fixed_batch(self, batch: str) -> int | None:
        """The size that the file itself has where the module's batch is dynamic, if it fixes it."""
        ports = {port.name: port for port in self._artifact.inputs}
        pairs = pair_inputs(dict.fromkeys(self._subject.inputs.tensors, ""), self._artifact.inputs).pairs
        named = ((ports[graph].shape or (), self._subject.dynamic.get(name, {})) for name, graph in pairs.items())
        sizes = (shape[d] for shape, dims in named for d, size in dims.items() if size == batch and d < len(shape))
        return next((size for size in sizes if isinstance(size, int)), None)

    def _read_first_size(self) -> int:
        shapes = [t.shape for t in self._subject.inputs.tensors.values() if t.ndim]
        return int(shapes[0][0]) if shapes else 1

    def _make_point(self, sizes: Mapping[str, int]) -> Point:
        subject, supply = self._subject, self._supply
        batch = sizes[subject.batch] if subject.batch else self._read_first_size()
        label = ",".join(f"{name}={size}" for name, size in sizes.items()) or "static"
        rows = None if self._settings.lengths else supply.rows_case(batch, label, sizes)
        case = rows or Case(f"{label}/timed/seed={self._verify.seed}", dict(sizes), "normal")
        inputs = supply.make_inputs(case)
        return Point(case, inputs, batch, supply.sizes_of(inputs))
