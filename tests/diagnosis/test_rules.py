"""Every rule of every file of messages: what it knows, what only looks alike, and that no text keeps it busy."""

from __future__ import annotations

import re
import time
from importlib.resources import files

import msgspec
import pytest

from onnxproof.diagnosis.chain import keep_errors
from onnxproof.diagnosis.failures import ELSEWHERE, EXPORTING, LOADING, RUNNING, diagnose_text
from onnxproof.diagnosis.rules import GROUP, OPTIONAL, Rule, find_rule, load_rules
from onnxproof.findings import CATALOGUE

from .beginnings import beginnings, begins_without_end, parser

FOLDER = files("onnxproof.diagnosis") / "messages"
SPEAKERS = sorted(file.name.removesuffix(".toml") for file in FOLDER.iterdir())
RULES = [(speaker, rule) for speaker in SPEAKERS for rule in load_rules(speaker)]
EVERY_RULE = pytest.mark.parametrize(
    ("speaker", "rule"),
    RULES,
    ids=[f"{speaker}-{load_rules(speaker).index(rule)}-{rule.code}" for speaker, rule in RULES],
)
LONG = 100_000
SECONDS = 4
"""A pass over a long text takes hundredths of a second; one from each place in it to the end takes many seconds."""


def test_every_speaker_is_asked():
    assert set(SPEAKERS) == {*EXPORTING, *LOADING, *RUNNING, *ELSEWHERE, "traceback", "people"}


@EVERY_RULE
def test_a_rule_has_a_code_an_example_and_a_near_miss(speaker, rule):
    assert rule.code in CATALOGUE
    assert rule.examples
    assert rule.near_misses


@EVERY_RULE
def test_its_examples_are_recognised_by_exactly_this_rule(speaker, rule):
    for example in rule.examples:
        for asked in ((speaker,), *(group for group in (EXPORTING, LOADING, RUNNING) if speaker in group)):
            found = find_rule(example, asked)
            assert found is not None
            assert found[0] is rule
        finding = diagnose_text(example)
        assert finding is not None
        match = rule.search(keep_errors(example)) or rule.search(example)
        assert (finding.code, finding.message) == (rule.code, rule.tell(match))
        assert "?" not in finding.message.replace(example, "")


@EVERY_RULE
def test_its_near_misses_are_not(speaker, rule):
    assert [text for text in rule.near_misses if rule.search(text)] == []


@EVERY_RULE
def test_its_message_names_what_every_fragment_catches(speaker, rule):
    needed = set(GROUP.findall(OPTIONAL.sub("", rule.message)))
    told = set(GROUP.findall(rule.message)) | {"operator"}
    for fragment in rule.says:
        assert needed <= fragment.groupindex.keys() <= told
        assert fragment.groups == len(fragment.groupindex)


def seconds(fragment, part, size=LONG):
    """How long a fragment looks for itself in a long text of nothing but its own beginning."""
    text = (part * (size // len(part) + 1))[:size]
    before = time.process_time()
    fragment.search(text)
    return time.process_time() - before


@EVERY_RULE
def test_no_text_keeps_it_busy(speaker, rule):
    for fragment in rule.says:
        begun = beginnings(fragment)
        half = begun[len(begun) // 2]
        for part in {"a", half, half.replace(" ", "") or " ", begun[-1][:-1] or "a"}:
            assert seconds(fragment, part) < SECONDS, (fragment.pattern, part)


@EVERY_RULE
def test_none_of_its_alternatives_begins_with_what_has_no_end(speaker, rule):
    for fragment in rule.says:
        assert not begins_without_end(parser.parse(fragment.pattern, fragment.flags)), fragment.pattern


@pytest.mark.parametrize("careless", [r"\w+ is missing", r"(?:twice|[\d.]+x) as large", r"(?:not )?(?:\s*x)"])
def test_an_alternative_without_end_would_be_noticed(careless):
    assert begins_without_end(parser.parse(careless))
    assert not begins_without_end(parser.parse(re.sub(r"[+*]", "{1,9}", careless)))


def test_a_careless_fragment_would_be_noticed():
    careless = re.compile(r"\w+ is missing")
    assert "a" in beginnings(careless)
    assert seconds(careless, "a", 5_000) > 20 * seconds(re.compile(r"\w is missing"), "a", 5_000)


@pytest.mark.parametrize("speaker", SPEAKERS)
def test_shared_fragments_are_used(speaker):
    text = (FOLDER / f"{speaker}.toml").read_text(encoding="utf-8")
    for name in msgspec.toml.decode(text).get("fragments", {}):
        assert f"(?&{name})" in text


def rule(message, *says):
    return Rule("OX108", message, tuple(re.compile(one) for one in says), ("x",), ("y",))


def test_a_message_is_filled_with_what_was_caught():
    one = rule("{name} fails[ at {place}]", r"(?P<name>\w+) broke(?: in (?P<place>\w+))?", r"no (?P<name>\w+)")
    told = {text: one.tell(one.search(text)) for text in ("glass broke in town", "glass broke", "no glass")}
    assert list(told.values()) == ["glass fails at town", "glass fails", "glass fails"]


def test_the_first_place_in_the_text_speaks_and_not_the_first_fragment():
    one = rule("{name}", r"second (?P<name>\w+)", r"first (?P<name>\w+)")
    assert one.tell(one.search("the first apple, the second pear")) == "apple"


def test_speakers_are_asked_in_order():
    text = "Non-zero status code returned while running Foo node. Status Message: bad allocation"
    codes = [find_rule(text, asked)[0].code for asked in (RUNNING, RUNNING[::-1])]
    assert codes == ["OX003", "OX223"]
    assert find_rule("all is well", (*EXPORTING, *LOADING, *RUNNING)) is None


def test_a_rule_with_an_unknown_key_is_refused():
    with pytest.raises(msgspec.ValidationError, match="near_mis"):
        msgspec.convert(
            {"code": "OX108", "message": "m", "says": [], "examples": [], "near_misses": [], "near_mis": []}, Rule
        )
