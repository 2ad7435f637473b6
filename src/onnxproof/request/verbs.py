"""The verbs and what each of them takes, as `verbs.toml` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from string import Template

import msgspec

from onnxproof.request.benchmark import BenchSettings
from onnxproof.request.evaluation import EvaluateSettings
from onnxproof.request.lowering import QuantizeSettings
from onnxproof.request.option import Option, list_options, walk
from onnxproof.request.request import Reports, Request

# A request with every group there, so that every option can be found in it.
EVERYTHING = Request(bench=BenchSettings(), evaluate=EvaluateSettings(), quantize=QuantizeSettings())


class Verb(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A verb: its arguments, its options in the order of `--help`, and the words that are its own."""

    name: str
    help: str
    takes: tuple[str, ...]
    arguments: Mapping[str, str] = {}
    """Argument → help."""
    required: tuple[str, ...] = ()
    """Options that must be given."""
    group: str = ""
    """The group that an option belongs to first, where two have one of its name."""
    help_of: Mapping[str, str] = {}
    """Options that mean something a little different here."""
    configured: bool = True
    """Whether the configuration and the environment speak to it."""
    cases: bool = True
    """Whether it runs planned cases."""

    def homes(self) -> dict[str, tuple[tuple[str, ...], Option]]:
        """Name of any option → where its value stands in a request, and its declaration."""
        found: dict[str, tuple[tuple[str, ...], Option]] = {}
        for path, one in walk(EVERYTHING):
            if one.name not in found or path[0] == self.group:
                found[one.name] = path, replace(one, help=self.help_of.get(one.name, one.help))
        return found

    def options(self) -> dict[str, Option]:
        """The options that it takes, in the order of `--help`."""
        homes = self.homes()
        return {name: homes[name][1] for name in self.takes}


def read_verbs(text: str | bytes) -> dict[str, Verb]:
    """Name → verb; what no field has is an error."""
    data = msgspec.toml.decode(text)
    groups = {**data["groups"], "REPORTS": " ".join(list_options(Reports))}
    verbs: dict[str, Verb] = {}
    for name, table in data["verbs"].items():
        table = {**data["verbs"].get(table.pop("like", None), {}), **table, "name": name}
        takes = Template(table["takes"]).substitute(groups).split()
        verbs[name] = msgspec.convert({**table, "takes": takes}, Verb)
    return verbs


# Every verb that makes or judges a proof.
VERBS = read_verbs((files(__package__) / "verbs.toml").read_bytes())
