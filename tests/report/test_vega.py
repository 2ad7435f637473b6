"""The charts' scripts: nothing in them ends the element that holds them, and half a file is not taken for a whole one."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from onnxproof.report import vega


def test_a_script_cannot_end_its_element():
    script = vega.disarm('a = "</script><!--</SCRIPT>";\r\nb = 1;\r')
    assert "</script" not in script.lower()
    assert "<!--" not in script
    assert script.splitlines()[1] == "b = 1;"
    assert "\r" not in script


def test_half_a_kept_file_is_made_again(tmp_path, monkeypatch):
    maker = SimpleNamespace(javascript_bundle=lambda text: f"made: {text}")  # the real one cannot be imported twice
    monkeypatch.setitem(sys.modules, "vl_convert", maker)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    made = vega.make_bundle.__wrapped__()
    (kept,) = (tmp_path / "onnxproof").iterdir()
    assert kept.read_text() == made
    kept.write_text("whole" + vega.END)
    assert vega.make_bundle.__wrapped__() == "whole" + vega.END
    kept.write_text("hal")
    assert vega.make_bundle.__wrapped__() == made
