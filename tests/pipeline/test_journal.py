"""The journal: what was written is read back, whatever became of its end, and only for the same question."""

from __future__ import annotations

import pytest

from onnxproof import files
from onnxproof.errors import UserError
from onnxproof.files import JOURNAL
from onnxproof.findings import found
from onnxproof.pipeline.events import Based, Entered, Observed
from onnxproof.pipeline.journal import HEARD, Journal


def note(text):
    return Observed(found("OX005", text))


def opened(folder, request="asked", *, resume=True):
    journal = Journal()
    journal.open(folder, request, resume=resume)
    return journal


def write(folder):
    """Two stages, the second of which did not end."""
    journal = opened(folder, resume=False)
    journal.base("mark")
    journal.begin("verify", goes_on=True)
    journal.hear(note("a"))
    journal.hear(Entered("somewhere"))
    journal.end(1.5)
    journal.begin("locate", goes_on=False)
    journal.hear(note("b"))
    journal.close()


def recalled(journal, stage):
    heard = journal.recall(stage)
    return [event.finding.message for event in heard.events], heard.whole


def test_what_was_heard_is_heard_again(tmp_path):
    write(tmp_path)
    journal = opened(tmp_path)
    journal.base("mark")
    assert recalled(journal, "verify") == (["a"], True)
    assert journal.recall("verify").seconds == 1.5
    assert recalled(journal, "locate") == (["b"], False)
    assert recalled(journal, "bench") == ([], False)


def test_every_cut_leaves_what_came_before_it(tmp_path):
    write(tmp_path)
    whole = (tmp_path / JOURNAL).read_bytes()
    seen = set()
    for end in range(len(whole)):
        (tmp_path / JOURNAL).write_bytes(whole[:end])
        journal = opened(tmp_path)
        seen.add((*map(tuple, recalled(journal, "verify")[:1]), journal.recall("verify").whole))
        journal.close()
    assert seen == {((), False), (("a",), False), (("a",), True)}


def test_a_flipped_bit_is_no_record(tmp_path):
    write(tmp_path)
    data = bytearray((tmp_path / JOURNAL).read_bytes())
    data[data.index(b"OX005") + 2] ^= 1
    (tmp_path / JOURNAL).write_bytes(data)
    assert recalled(opened(tmp_path), "verify") == ([], False)


@pytest.mark.parametrize("other", [{"request": "something else"}, {"resume": False}])
def test_another_question_begins_anew(other, tmp_path):
    write(tmp_path)
    assert recalled(opened(tmp_path, **other), "verify") == ([], False)


def test_other_code_or_weights_begin_anew(tmp_path):
    write(tmp_path)
    journal = opened(tmp_path)
    journal.base("another mark")
    assert recalled(journal, "verify") == ([], False)
    journal.close()
    assert recalled(opened(tmp_path), "verify") == ([], False)


def test_a_stage_that_goes_on_keeps_what_it_had_and_later_ones_are_forgotten(tmp_path):
    write(tmp_path)
    journal = opened(tmp_path)
    journal.base("mark")
    journal.begin("verify", goes_on=True)
    journal.hear(note("c"))
    journal.close()
    journal = opened(tmp_path)
    assert recalled(journal, "verify") == (["a", "c"], False)
    assert recalled(journal, "locate") == ([], False)


def test_a_stage_in_which_somebody_died_is_not_whole_and_goes_on_from_there(tmp_path):
    journal = opened(tmp_path, resume=False)
    journal.begin("verify", goes_on=True)
    journal.hear(note("before"))
    journal.note_death()
    journal.hear(note("after"))
    journal.end(1.0)
    journal.close()
    assert recalled(opened(tmp_path), "verify") == (["before"], False)


def test_a_folder_is_one_runs_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TIDYING", 0.1)
    first = opened(tmp_path)
    with pytest.raises(
        UserError, match=r"--out .* is in use by process \d+ since \d{4}-\d\d-\d\d .*: wait for it, or give"
    ):
        opened(tmp_path)
    first.close()
    opened(tmp_path).close()


def test_where_nothing_can_be_written_the_run_goes_on(tmp_path):
    (tmp_path / JOURNAL).mkdir()
    journal = opened(tmp_path)
    assert "cannot be written: Is a directory" in str(journal.trouble)
    journal.base("mark")
    journal.hear(Based("mark"))
    journal.end(1.0)


def test_something_else_under_its_name_is_no_journal(tmp_path):
    (tmp_path / JOURNAL).write_bytes(b"\xff" * 1000)
    assert recalled(opened(tmp_path), "verify") == ([], False)


def test_an_event_of_another_release_is_nothing_to_go_on_from(tmp_path):
    journal = opened(tmp_path, resume=False)
    journal.base("mark")
    journal.begin("verify", goes_on=True)
    journal._write(HEARD, {"type": "of another release"})
    journal.close()
    again = opened(tmp_path)
    again.base("mark")
    assert recalled(again, "verify") == ([], False)
