"""The worker's part of a generation: prompts continued by both sides."""

from __future__ import annotations

from pathlib import Path

from onnxproof.artifact.file import read_artifact
from onnxproof.candidates import choose_candidate
from onnxproof.data.opening import open_source
from onnxproof.errors import InputError
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.quality import Quality
from onnxproof.proof.traps import Traps
from onnxproof.quality.accumulate import merge
from onnxproof.quality.assemble import assemble
from onnxproof.quality.beam_generation import BeamGeneration
from onnxproof.quality.decoding import Decoder, Part, Speaker
from onnxproof.quality.generation import Generation
from onnxproof.request.request import Request
from onnxproof.subject.subject import Subject


def generate(request: Request, subject: Subject, artifact: Artifact) -> Quality:
    """Continue every prompt of the data."""
    settings = request.evaluate
    assert settings is not None  # the stage is wanted only then
    speaker, source = Speaker(subject), open_source(settings.data)
    candidate = choose_candidate(request.verify.session)
    files = [artifact, *(read_artifact(Path(file)) for file in settings.beside)]
    main, *beside = [Part(one, candidate.open(Path(one.path), request.verify.session, {})) for one in files]
    decoder = Decoder(main, speaker, beside)
    how = (speaker, decoder, settings.tokens, Path(request.out) / "generate")
    generation = Generation(*how) if settings.beams == 1 else BeamGeneration(*how, settings.beams)
    made = list(generation.run(source))
    if not made:
        raise InputError(f"--data {settings.data} has no rows")
    scores = merge([shard for shard, _ in made], made[0][1])
    named = {"baseline": subject.baseline, "rows": source.rows, "workers": 1, "where": "local"}
    return assemble(scores, settings, traps=Traps(), preprocessing=None, **named)  # type: ignore[arg-type]  # by their names
