"""Who takes part in a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from onnxproof.artifact.file import read_artifact
from onnxproof.artifact.pairing import pair_inputs, pair_outputs
from onnxproof.candidates.candidate import Candidate
from onnxproof.errors import FindingError, UserError
from onnxproof.latency.contenders import CompiledContender, Contender, EagerContender, SessionContender, Unavailable
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.latency import BASELINE, SHIPPED
from onnxproof.request.benchmark import BenchSettings, Variant
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.subject.subject import Subject


class Field:
    """The contenders by name, as ways to build them: some cannot be built on every machine."""

    def __init__(
        self,
        subject: Subject,
        artifact: Artifact,
        candidate: Candidate,
        session: SessionSettings,
        settings: BenchSettings,
        inputs: Mapping[str, str],
        load_ms: float | None = None,
    ) -> None:
        self._subject, self._artifact, self._session, self._settings = subject, artifact, session, settings
        self._candidate, self._path = candidate, Path(artifact.path)
        self.renamed = {graph: name for name, graph in inputs.items()}
        """Graph's input → module's input."""
        self.others: dict[str, Mapping[str, str]] = {}
        """A further file → how the artifact's outputs are called there."""
        self.makers: dict[str, Callable[[], Contender]] = {
            BASELINE: lambda: EagerContender(subject, session.threads, load_ms)
        }
        if settings.compile:
            self.makers[CompiledContender.name] = lambda: CompiledContender(subject, session.threads)
        self.makers[SHIPPED] = lambda: SessionContender(SHIPPED, candidate, self._path, session, self.renamed)
        self.makers |= {variant.name: partial(self.session, variant) for variant in self._list_variants()}
        if settings.against is not None:
            self.makers[_name_file(settings.against)] = partial(self._open_other, Path(settings.against))

    def _list_variants(self) -> list[Variant]:
        """The further sessions asked for; away from the CPU, binding saves copies and is tried unasked."""
        variants = list(self._settings.also)
        if self._session.providers[0].name != CPU.name and self._candidate.abilities.binding:
            variants.append(Variant(binding=True))
        return list(dict.fromkeys(variants))

    def session(self, variant: Variant) -> SessionContender:
        """A further session on the same file."""
        if variant.binding and not self._candidate.abilities.binding:
            raise Unavailable(f"{self._candidate.name} cannot bind inputs to memory")
        settings = variant.applied(self._session)
        contender = SessionContender(
            variant.name, self._candidate, self._path, settings, self.renamed, bound=variant.binding
        )
        placed = contender.session.placement()
        if placed is not None and placed.severity == "block":
            raise Unavailable(placed.message)
        return contender

    def _open_other(self, path: Path) -> SessionContender:
        """A session on another file, paired with the module by its own names."""
        try:
            other = read_artifact(path)
        except FindingError as error:
            raise UserError(f"--against {path}: {error}") from error
        expected = {
            name: str(tensor.dtype).removeprefix("torch.") for name, tensor in self._subject.inputs.tensors.items()
        }
        inputs = pair_inputs(expected, other.inputs, self._subject.shapes())
        if inputs.blocking is not None:
            raise UserError(f"--against {path}: {inputs.blocking.message}")
        outputs = [port.name for port in self._artifact.outputs]
        self.others[_name_file(str(path))] = pair_outputs(
            outputs, other.outputs, other.promised_outputs, named=False
        ).pairs
        return SessionContender(_name_file(str(path)), self._candidate, path, self._session, inputs.reverse)


def _name_file(path: str) -> str:
    """What a further file is called in the record."""
    return f"onnxruntime:{Path(path).name}"
