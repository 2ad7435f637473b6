"""`--onnxproof-html DIR`: the report of every proof."""

from __future__ import annotations

import pytest

pytest.importorskip("altair", reason="the report's extra is not installed")


def test_every_proof_leaves_its_page(suite, pytester):
    result = suite(
        """
        import pytest
        from net import good, training
        from onnxproof.testing import assert_parity

        @pytest.mark.parametrize("name", ["a/b", "<c>"])
        def test_good(name):
            assert_parity(*good(), onnx="good.onnx", batch_sizes=[1])

        def test_two(onnxproof):
            onnxproof.prove(*training(), onnx="good.onnx", batch_sizes=[1])
            onnxproof.assert_parity(*training(), onnx="good.onnx", batch_sizes=[1])
        """,
        "--onnxproof-html",
        "pages",
    )
    result.assert_outcomes(passed=2, failed=1)
    pages = sorted(path.name for path in (pytester.path / "pages").iterdir())
    assert pages == [
        "test_it.py-test_good-a-b.html",
        "test_it.py-test_good-c.html",
        "test_it.py-test_two-2.html",
        "test_it.py-test_two.html",
    ]
    result.stdout.fnmatch_lines(["*report: pages*test_it.py-test_two-2.html"])
    assert "REVIEW Sequential" in (pytester.path / "pages" / pages[-1]).read_text()
