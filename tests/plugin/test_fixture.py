"""The `onnxproof` fixture."""

from __future__ import annotations


def test_it_asserts_and_proves_in_the_tests_own_folder(suite):
    result = suite(
        """
        from net import good, training

        def test_good(onnxproof, tmp_path):
            proof = onnxproof.assert_parity(*good(), batch_sizes=[1, 2])
            assert proof.verdict == "ship"
            assert proof.artifact.path.startswith(str(tmp_path))

        def test_called(onnxproof):
            assert onnxproof(*good(), onnx="good.onnx", batch_sizes=[1]).verdict == "ship"

        def test_any_verdict(onnxproof):
            assert onnxproof.prove(*training(), onnx="good.onnx", batch_sizes=[1]).verdict == "review"

        def test_bad(onnxproof):
            onnxproof.assert_parity(*training(), onnx="good.onnx", batch_sizes=[1])
        """
    )
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*REVIEW  Sequential: *"])
