"""The catalogue's page about one code: what it says, and what follows from it wherever it is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

Severity = Literal["block", "review", "note"]
Stage = Literal[
    "model",
    "capture",
    "translate",
    "simplify",
    "kernel",
    "optimize",
    "provider",
    "precision",
    "preprocess",
    "data",
    "export",
    "session",
    "run",
]
OFFER = " `--heal` tries the settings that may remove it."


@dataclass(frozen=True)
class Family:
    """Codes about one subject: they begin alike."""

    prefix: str
    name: str
    title: str
    adjustable: bool = False
    """Other settings of the export or the session may change what it finds, so a healed artifact has none of it."""


FAMILIES = (
    Family("OX0", "run", "The run itself", adjustable=True),
    Family("OX1", "export", "The model and its export"),
    Family("OX2", "parity", "Parity", adjustable=True),
    Family("OX3", "graph", "Graph, file and session", adjustable=True),
    Family("OX4", "latency", "Latency"),
    Family("OX5", "quality", "Task quality"),
    Family("OX6", "data", "Data"),
)


def find_family(code: str) -> Family:
    """What a code is about; those of another release may have families of their own."""
    prefix = code[:3]
    return next((family for family in FAMILIES if family.prefix == prefix), Family(prefix, prefix, prefix))


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The catalogue's page about one code: a table of `catalogue/<family>.toml`."""

    code: str
    title: str
    severity: Severity
    what: str
    why: str
    fix: str
    stage: Stage | None = None
    example: str = ""
    """What triggers it: a line of a model, a command, a state of the file."""
    near_miss: str = ""
    """What looks alike and is right."""
    never: str = ""
    """What to do instead where it hits every case, the example's own too."""

    judged: bool = False
    """The policy derives it from recorded numbers: judged again, it is dropped and derived again."""
    unacceptable: str = ""
    """Why no policy may accept it and no baseline know it; empty where they may."""
    consequence: bool = False
    """It follows from something else that is found: it goes without saying beside that."""
    gives_way_to: tuple[str, ...] = ()
    """Codes that say it better where they are found for the same output."""
    measure: str = ""
    """Where the evidence says how large it is, as a path such as `exactness.ratio`; empty where it has no size."""
    excess: str = ""
    """Where the evidence says how far it is beyond what rounding explains, 1 being the border."""
    inside: bool = False
    """Whether it is this, what the graph means in float64 decides."""
    confirmed_by_agreement: bool = False
    """Whether it is a guess that answers which agree prove right."""
    random: bool = False
    """Its output is not the same twice, so nothing else is said about it."""

    locatable: bool = False
    """Its cause can be looked for in the graph: the two sides answer differently, or one does not answer."""
    suspicion: str = ""
    """How help for a difference names it as the likely cause: a format of its message, help, place and evidence."""
    by_lint: Literal["node", "words"] | None = None
    """What a lint of the file adds to a session's refusal: the node, or better words as well (an operator, a dtype)."""
    explained: bool = True
    """It says why; where it does not, a bundle for a bug report is written."""
    vague: bool = False
    """It says no more than that something failed."""
    mentions: bool = False
    """The text of such a failure may name an operator to write differently, also where no rule catches it."""
    differs: Literal["nan", "dtype", "discrete"] | None = None
    """What it is that differs, where some advice is for that alone."""

    healable: bool = False
    """Another setting of the export or the session may remove it, so `--heal` is offered."""
    eager: bool = False
    """PyTorch itself raises it too, outside of any export."""
    of_opset: bool = False
    """It is about the opset that was asked for: without one it is gone."""
    one_path: bool = False
    """Tracing gets past it by recording the path that the example takes."""
    stateful: bool = False
    """A forward changes what it should only read: it is put back after each run."""

    prominent: bool = False
    """A note that a summary shows first, with its help."""
    link: str = ", a part of"
    """How a failure's message goes on to the call that the failing operator belongs to."""
    disturbance: bool = False
    """The machine had other things to do while it was timed."""

    @property
    def family(self) -> Family:
        """What it is about."""
        return find_family(self.code)

    @property
    def acceptable(self) -> bool:
        """Whether a policy may accept it, or a baseline know it."""
        return not self.unacceptable

    @property
    def help(self) -> str:
        """What to do about it, with the offer of `--heal` where that may do it."""
        return self.fix + OFFER if self.healable else self.fix
