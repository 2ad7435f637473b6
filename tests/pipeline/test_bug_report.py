"""What the catalogue does not explain leaves something to attach to a report."""

from __future__ import annotations

from onnxproof.errors import FindingError
from onnxproof.findings import found
from onnxproof.pipeline.bug_report import add_bundle, write_bundle
from onnxproof.proof.environment import Environment


def test_a_bundle_says_what_it_holds(tmp_path):
    folder = write_bundle(tmp_path, message="it broke", trace="Traceback…", environment={"torch": "2"}, program="x + 1")
    assert (folder / "error.txt").read_text() == "Traceback…"
    assert (folder / "program.txt").read_text() == "x + 1"
    assert "it broke" in (folder / "README.md").read_text()
    assert "program.txt" in (folder / "README.md").read_text()


def test_a_message_stays_text_in_a_bundle(tmp_path):
    folder = write_bundle(tmp_path, message="a\n# [b](c)\x1b", trace="one\ntwo\x1b", environment={})
    assert "\n    a\\n# [b](c)\\x1b\n" in (folder / "README.md").read_text()
    assert (folder / "error.txt").read_text() == "one\ntwo\\x1b"


def test_only_unexplained_findings_get_one(tmp_path):
    explained = found("OX104", "a dimension is fixed")
    assert add_bundle(FindingError(explained), tmp_path, None, Environment()) is explained
    unexplained = add_bundle(FindingError(found("OX101", "nobody knows")), tmp_path, None, Environment(torch="2"))
    assert str(tmp_path) in unexplained.help
    assert (tmp_path / "bug-report" / "environment.json").is_file()
