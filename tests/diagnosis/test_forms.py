"""What to write instead: operators as exporters print them, and lines that come out wrong."""

from __future__ import annotations

import pytest

from onnxproof import rewrites
from onnxproof.diagnosis.forms import _read_toml, load_forms, suggest_form, suggest_line
from onnxproof.findings import CATALOGUE


@pytest.mark.parametrize(
    "printed", ["aten.median.dim", "aten::median", "prims.median", "median", "%median_1", "median_2"]
)
def test_an_operator_is_found_however_it_is_printed(printed):
    assert suggest_form(printed) == load_forms()["median"]


def test_an_operator_without_a_form_has_none():
    assert suggest_form("aten.relu") is None
    assert suggest_form("median.aten") is None


def test_a_function_of_ours_is_told_with_its_limits():
    assert suggest_form("aten.linalg_svd").startswith(
        "`onnxproof.rewrites.svd(a)`, which is written in operators that export for a fixed, small size"
    )
    assert "register_buffer`; `svdvals(a)` is" in suggest_form("aten.linalg_svd")
    assert suggest_form("aten.lgamma").endswith("export (import it or copy it)")


def test_every_function_that_is_told_of_is_there():
    for function in _read_toml()["rewrites"].values():
        assert callable(getattr(rewrites, function["call"].partition("(")[0]))


def test_advice_about_a_line_is_for_what_differs():
    line = "return x.amax(1)"
    assert "loses NaN" in suggest_line(line, "OX205")
    assert suggest_line(line, "OX201") is None
    assert "floor_divide" in suggest_line("return a // b", "OX201")
    assert suggest_line("return a + b", "OX205") is None
    assert {advice["differs"] for advice in _read_toml()["line"] if "differs" in advice} <= {
        e.differs for e in CATALOGUE.values()
    }
