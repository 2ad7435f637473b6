"""What is shown and written, and where."""

from __future__ import annotations

from dataclasses import dataclass

from onnxproof.request.option import option
from onnxproof.request.reading import switch, text


@dataclass(frozen=True)
class Delivery:
    """What is shown and written. A configuration speaks of proofs, not of one run's files: it sets none of these."""

    json: str | None = option(None, "Write the proof; - for stdout.", text, configured=False)
    html: str | None = option(None, "Write the report as one HTML page. prove does by default.", text, configured=False)
    junit: str | None = option(None, "Write JUnit XML.", text, configured=False)
    markdown: str | None = option(None, "Write Markdown for a pull-request comment.", text, configured=False)
    github: bool = option(False, "GitHub annotations, and the job's summary.", switch, alone=True, configured=False)
    baseline: str | None = option(
        None, "An earlier proof.json: fail only on what got worse since.", text, configured=False
    )
    quiet: bool = option(
        False, "Print nothing but the verdict's line.", switch, alone=True, short="-q", configured=False
    )
    verbose: bool = option(
        False, "One line for every output of every case.", switch, alone=True, short="-v", configured=False
    )
