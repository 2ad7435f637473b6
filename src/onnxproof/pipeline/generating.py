"""The worker's part of a generation: prompts continued by both sides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from onnxproof.artifact.file import read_artifact
from onnxproof.blame.locate import Locator
from onnxproof.candidates import choose_candidate
from onnxproof.cases.plan import make_case
from onnxproof.data.opening import open_source
from onnxproof.errors import InputError
from onnxproof.parity.listener import SILENT
from onnxproof.parity.verifier import Verifier
from onnxproof.pipeline.events import Blamed, Emit, Entered, Measured
from onnxproof.pipeline.workshop import Workshop
from onnxproof.proof.artifact import Artifact
from onnxproof.proof.blame import Blame
from onnxproof.proof.codec import settle
from onnxproof.proof.quality import FarExample, Quality
from onnxproof.proof.traps import Traps
from onnxproof.quality.accumulate import merge
from onnxproof.quality.assemble import assemble
from onnxproof.quality.beam_generation import BeamGeneration
from onnxproof.quality.decoding import Decoder, Part, Speaker
from onnxproof.quality.generation import Generation
from onnxproof.request.request import Request
from onnxproof.subject.subject import Subject


def run_generate(emit: Emit, request: Request, artifact: Artifact, *, stateful: bool, shop: Workshop) -> None:
    """Continue every prompt of the data; where a step is wrong, look for the node."""
    quality = _generate(request, shop.load(request), artifact)
    emit(Measured(settle(quality)))
    shown = [one for one in quality.score_difference.farthest if one.file is not None]
    if not shown or request.steps.fast:
        return
    try:
        alone = replace(request, verify=replace(request.verify, data=None))  # prompts are no inputs of a step
        verifier = shop.verifier(alone, artifact, SILENT, stateful=stateful)
        blame = _blame_step(request, verifier, artifact, shown[0])
        emit(Blamed(f"generate/prompt={shown[0].id}/step={shown[0].step}", blame))
    except MemoryError:
        raise
    except Exception as error:
        # A cause that cannot be found leaves the finding as it is.
        emit(Entered(f"locate: {f'{type(error).__name__}: {error}'[:500]}"))


def _blame_step(request: Request, verifier: Verifier, artifact: Artifact, shown: FarExample) -> Blame:
    """Who is to blame for a step, where the module can be told what the file was."""
    pairs, session = verifier.input_pairs, request.verify.session
    with np.load(str(shown.file)) as kept:
        inputs = {own: kept[graph] for own, graph in pairs.items()}
    verifier.evaluate(make_case({}, "example"), verifier.supply.example(), glance=True)  # which pairs the outputs
    parts = (verifier.subject, artifact, verifier.candidate, session, pairs, verifier.output_pairs)
    return Locator(*parts, double=verifier.double, out=request.culprits).locate(inputs)


def _generate(request: Request, subject: Subject, artifact: Artifact) -> Quality:
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
