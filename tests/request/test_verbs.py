"""Verbs out of their file."""

from __future__ import annotations

import msgspec
import pytest

from onnxproof.errors import UserError
from onnxproof.request.option import walk
from onnxproof.request.verbs import EVERYTHING, VERBS, read_verbs

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


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "9" * 30, "1e300", "nan", "inf", "-inf", "", "9" * 5000])
def test_no_option_takes_a_number_that_nothing_can_hold(text):
    """What is refused is said in a sentence, and what is taken fits the clocks, counters and proofs of others."""
    for path, option in walk(EVERYTHING):
        value, refused = None, ""
        try:
            value = option.take(text)
        except UserError as error:
            refused = str(error)
        assert not refused or (refused.startswith(f"{option.flag} ") and "expected" in refused)
        # Any whole number is a seed; the opset is held against what there is, and says so.
        if isinstance(value, int) and path[-1] not in ("seed", "opset"):
            assert 0 <= value < 2**63, option.flag
        assert value == value, option.flag


def test_threads_are_as_many_as_a_machine_may_have():
    with pytest.raises(UserError, match=r"--threads '999999999999': expected a number from 1 to 1,024"):
        VERBS["verify"].options()["threads"].take("999999999999")
