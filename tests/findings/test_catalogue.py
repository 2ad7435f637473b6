"""The catalogue: complete, without contradictions, read strictly, and the only place that knows what follows from a code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onnxproof.findings import CATALOGUE, FAMILIES, look_up
from onnxproof.findings.catalogue import load_entries, read_entry

TESTS = Path(__file__).parents[1]
SOURCES = TESTS.parent / "src" / "onnxproof"
OTHERS = [path for path in SOURCES.rglob("*.py") if path.parent.name != "findings"]
RULES = list((SOURCES / "diagnosis" / "messages").glob("*.toml"))
"""Rules about messages name their codes and have their own examples, which `tests/diagnosis/test_rules.py` tries."""
SNIFFED = re.compile(r"\.message\.(?:startswith|endswith|removesuffix|removeprefix|find)\(|\bin finding\.message")


def test_every_entry_is_complete():
    for code, entry in CATALOGUE.items():
        assert re.fullmatch(r"OX\d{3}", code)
        assert all((entry.title, entry.what, entry.why, entry.fix, entry.example, entry.near_miss)), code
        assert entry.severity in ("block", "review", "note")
        assert entry.family in FAMILIES


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_has_the_codes_that_begin_like_it(family):
    codes = [entry.code for entry in load_entries(family).values()]
    assert codes == [code for code in CATALOGUE if code.startswith(family.prefix)]
    assert codes


def test_the_catalogue_is_all_families():
    assert len(CATALOGUE) == len(set(CATALOGUE)) == sum(len(load_entries(family)) for family in FAMILIES)
    assert "OX201" in CATALOGUE
    assert not {"OX299", "OX999", "", "nonsense"} & set(CATALOGUE)
    with pytest.raises(KeyError, match="OX999"):
        CATALOGUE["OX999"]


def test_a_family_is_read_when_one_of_its_codes_is_asked_for():
    script = """
import sys
from onnxproof.findings import FAMILIES, found
from onnxproof.findings.catalogue import load_entries
assert load_entries.cache_info().currsize == 0
assert found("OX201", "m").entry.code == "OX201"
assert found("OX202", "m").entry.code == "OX202"
assert load_entries.cache_info().currsize == 1
"""
    subprocess.run([sys.executable, "-c", script], check=True)


TABLE = {"title": "t", "severity": "note", "what": "w", "why": "y", "fix": "f"}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"titel": "t"}, "unknown field `titel`"),
        ({"severity": "grave"}, "'grave' - at `$.severity`"),
        ({"stage": "somewhere"}, "'somewhere' - at `$.stage`"),
        ({"judged": "true"}, "Expected `bool`, got `str`"),
        ({"gives_way_to": "OX201"}, "Expected `array`, got `str`"),
        ({"what": 1}, "Expected `str`, got `int`"),
    ],
)
def test_what_no_field_says_is_an_error(wrong, told):
    assert read_entry("OX299", TABLE).title == "t"
    with pytest.raises(ValueError, match="the catalogue's entry OX299") as error:
        read_entry("OX299", {**TABLE, **wrong})
    assert told in str(error.value)


def test_what_every_entry_has_to_say_cannot_be_left_out():
    for name in TABLE:
        with pytest.raises(ValueError, match=f"missing required field `{name}`"):
            read_entry("OX299", {key: value for key, value in TABLE.items() if key != name})


def test_every_code_in_the_catalogue_is_used_and_every_used_code_is_in_it():
    used = {code for path in (*OTHERS, *RULES) for code in re.findall(r'"(OX\d{3})"', path.read_text())}
    assert used == set(CATALOGUE)


def test_every_code_is_triggered_by_a_test():
    tests = [path for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    texts = "".join(path.read_text() for path in (*tests, *RULES))
    assert [code for code in CATALOGUE if code not in texts] == []


def test_what_gives_way_gives_way_to_something_that_stays():
    for entry in CATALOGUE.values():
        for better in map(look_up, entry.gives_way_to):
            assert better.code in CATALOGUE
            assert entry.code not in better.gives_way_to


def test_what_is_located_healed_or_measured_comes_from_numbers_or_a_session():
    for entry in CATALOGUE.values():
        assert entry.judged or not (entry.locatable or entry.measure or entry.excess), entry.code
        assert entry.family.adjustable or not entry.healable, entry.code


def test_a_code_of_another_release_has_an_entry_that_decides_nothing():
    entry = look_up("OX999")
    assert [entry.judged, entry.locatable, entry.healable, entry.family.adjustable] == [False] * 4
    assert entry.acceptable


def test_no_other_module_keeps_a_table_of_codes_or_reads_messages():
    """A code is given to what reports it; compared, listed or mapped it would be a property that the catalogue lacks."""
    assert [path for path in OTHERS if SNIFFED.search(path.read_text())] == []
    assert [place for path in OTHERS for place in _known_by_name(path)] == []


def _known_by_name(path: Path) -> list[str]:
    """Where a module has a code otherwise than as what is reported."""
    tree = ast.parse(path.read_text())
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    places = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and re.fullmatch(r"OX\d{1,3}", str(node.value)):
            parent = parents[node]
            while isinstance(parent, ast.IfExp):
                parent = parents[parent]
            if not isinstance(parent, ast.Call) or "startswith" in ast.dump(parent.func):
                places.append(f"{path.relative_to(SOURCES)}:{node.lineno} {node.value}")
    return places
