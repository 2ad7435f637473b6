"""`@pytest.mark.onnxproof(...)`: tolerances and policy for the proofs of a test."""

from __future__ import annotations

import _onnxproof_pytest


def test_markers_give_options_and_the_nearest_wins(suite):
    result = suite(
        """
        import pytest
        from net import bad, good
        from onnxproof import Policy, Tolerance
        from onnxproof.testing import assert_parity

        pytestmark = pytest.mark.onnxproof(onnx="good.onnx", batch_sizes=[3], atol=1.0)

        def test_the_module_speaks(onnxproof):
            policy = onnxproof.assert_parity(*good()).policy
            assert policy.tolerance.atol == 1.0 and policy.tolerance.promised

        @pytest.mark.onnxproof(atol=0.5, rtol=0.25)
        def test_the_test_speaks():
            policy = assert_parity(*good()).policy
            assert (policy.tolerance.atol, policy.tolerance.rtol) == (0.5, 0.25)

        @pytest.mark.onnxproof(atol=0.5)
        def test_the_call_speaks(onnxproof):
            assert onnxproof.assert_parity(*good(), atol=2.0).policy.tolerance.atol == 2.0

        @pytest.mark.onnxproof(accept={"OX205": "zeros do not occur", "OX201": "nor do tiny values"})
        def test_accepted(onnxproof):
            proof = onnxproof.assert_parity(*bad(), onnx=None)
            assert any(finding.accepted for finding in proof.findings)

        @pytest.mark.onnxproof(policy=Policy(tolerance=Tolerance(rtol=0.125), noise=7.0), atol=None)
        def test_policy():
            policy = assert_parity(*good()).policy
            assert (policy.tolerance.rtol, policy.noise) == (0.125, 7.0)

        @pytest.mark.onnxproof(0.5)
        def test_positional(onnxproof):
            onnxproof.assert_parity(*good())
        """
    )
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*takes named options only, got (0.5,)*"])


def test_it_knows_the_test_that_runs_and_leaves_no_trace(suite):
    before = list(_onnxproof_pytest.CURRENT)
    result = suite(
        """
        import _onnxproof_pytest

        def test_it(request):
            assert _onnxproof_pytest.CURRENT[-1] is request.node
        """
    )
    result.assert_outcomes(passed=1)
    assert before == _onnxproof_pytest.CURRENT
