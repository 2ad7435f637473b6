"""A verb's options as a function's keywords: all but those that only the command line has."""

from __future__ import annotations

import inspect

import pytest

from onnxproof.request.build import show_options
from onnxproof.request.verbs import VERBS


def shown(verb: str) -> dict[str, inspect.Parameter]:
    @show_options(verb)
    def function(model, *, seed=7, **options):
        return options

    return dict(inspect.signature(function).parameters)


@pytest.mark.parametrize("verb", ["prove", "evaluate", "bench"])
def test_a_function_shows_the_options_of_its_verb_and_their_defaults(verb):
    parameters, options = shown(verb), VERBS[verb].options()
    assert list(parameters)[:2] == ["model", "seed"]
    assert parameters["seed"].default == 7  # its own goes first
    assert parameters["opset"].default == options["opset"].default
    assert {p.kind for p in parameters.values()} == {
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    }


def test_what_is_printed_or_written_is_for_the_command_line():
    written = {"json", "html", "junit", "markdown", "github", "quiet", "verbose", "in_process", "fix", "all", "jobs"}
    assert written <= set(VERBS["prove"].options())
    assert not written & set(shown("prove"))
    assert "baseline" not in shown("prove")
    assert "baseline" in shown("bench")  # an earlier measurement, which it is held against
