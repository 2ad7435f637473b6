"""Broken files of every kind: whoever reads them refuses them in words of its own. `make fuzz` runs more of the same."""

from __future__ import annotations

import pytest
from benchmarks.fuzz import make_kinds, run_mutants

MUTANTS = 60


@pytest.mark.filterwarnings("ignore")
def test_no_mutant_is_called_a_bug_of_ours(tmp_path):
    outcomes = list(run_mutants(tmp_path, MUTANTS, seed=1))
    assert [outcome.bug for outcome in outcomes if outcome.bug] == []
    assert len(outcomes) == MUTANTS * len(make_kinds(tmp_path))
    refused = {outcome.kind for outcome in outcomes if outcome.refused}
    assert refused == {*make_kinds(tmp_path)} - {
        "export note",
        "kept input",
        "journal",
        "shard",
    }  # where these are broken, others are made


def test_what_is_mutated_is_read_before(tmp_path):
    for kind in make_kinds(tmp_path).values():
        for name, content in kind.samples:
            (tmp_path / name).write_bytes(content)
            kind.read(tmp_path / name)
            (tmp_path / name).unlink()
