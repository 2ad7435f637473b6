"""A run that does not use the plugin pays nothing for it."""

from __future__ import annotations


def test_nothing_heavy_is_imported(apart):
    result = apart(
        """
        import sys

        def test_it():
            assert "_onnxproof_pytest" in sys.modules
            heavy = ("torch", "onnxruntime", "onnx", "numpy", "altair", "onnxproof", "typer")
            assert [name for name in heavy if name in sys.modules] == []
        """
    )
    result.assert_outcomes(passed=1)


def test_option_and_marker_are_explained(apart):
    result = apart("", "--help")
    result.stdout.fnmatch_lines(["*--onnxproof-html=DIR*"])
    apart("", "--markers").stdout.fnmatch_lines(["@pytest.mark.onnxproof(**options)*"])
