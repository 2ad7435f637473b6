"""Verbs out of their file."""

from __future__ import annotations

import msgspec
import pytest

from onnxproof.request.verbs import VERBS, read_verbs

FILE = """
[groups]
FILES = "json html"
[verbs.one]
help = "The first."
takes = "$FILES quiet"
arguments.target = "What it is about."
[verbs.two]
like = "one"
help = "The second."
"""


def test_groups_stand_for_their_options_and_a_verb_may_be_like_another():
    one, two = read_verbs(FILE).values()
    assert one.takes == two.takes == ("json", "html", "quiet")
    assert (two.name, two.help, two.arguments) == ("two", "The second.", {"target": "What it is about."})
    assert (one.cases, one.configured, one.required) == (True, True, ())


@pytest.mark.parametrize(
    ("wrong", "error"), [("requires = ['json']", msgspec.ValidationError), ("cases = 'no'", msgspec.ValidationError)]
)
def test_what_no_field_has_is_an_error(wrong, error):
    with pytest.raises(error):
        read_verbs(f"{FILE}{wrong}\n")


def test_a_group_that_is_not_there_is_an_error():
    with pytest.raises(KeyError, match="OTHERS"):
        read_verbs(FILE.replace("$FILES", "$OTHERS"))


def test_a_verb_says_what_an_option_means_there_and_whose_it_is():
    assert VERBS["bench"].options()["threads"].help.startswith("Threads of PyTorch")
    assert VERBS["bench"].homes()["budget"][0] == ("bench", "budget")
    assert VERBS["prove"].homes()["budget"][0] == ("verify", "budget")
