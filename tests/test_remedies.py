"""Every remedy that the catalogue's forms offer was applied: it computes the same, the rewritten model exports and passes."""

from __future__ import annotations

import pytest
import torch
from benchmarks.failures import models
from benchmarks.failures.corpus import FAILURES
from torch.utils import _pytree

import onnxproof
from onnxproof.diagnosis.forms import load_forms

REWRITTEN = sorted({failure.name for failure in FAILURES if failure.remedied_with is None})
OTHERWISE = {
    "meta_weights": "has no values to compute with",
    "quantized": "rounds its weights to int8: the float module is the exact one",
    "opaque_output": "returns an object of its own; the tensor in it is the same",
    "complex_output": "returns complex numbers; the remedied model returns their parts",
}
"""Models whose answers cannot be compared as they are, and why."""
CLOSE = 1e-12
"""Both sides in float64, relative to 1 + |value|: no approximation is visible at this distance."""

TOLD: dict[str, tuple[str, str]] = {
    "median": ("median", "dynamo"),
    "nanmedian": ("nanmedian", "dynamo"),
    "mode": ("mode", "dynamo"),
    "kthvalue": ("kthvalue", "dynamo"),
    "amax": ("amax", "dynamo"),
    "amin": ("amin", "dynamo"),
    "aminmax": ("aminmax", "dynamo"),
    "cummax": ("cummax", "dynamo"),
    "cummin": ("cummin", "dynamo"),
    "cumprod": ("cumprod", "dynamo"),
    "prod": ("cumprod", "dynamo"),
    "vander": ("vander", "torchscript"),
    "sort.stable": ("stable_sort", "dynamo"),
    "sort": ("stable_sort", "dynamo"),
    "Sort": ("stable_sort", "torchscript"),
    "searchsorted": ("searchsorted", "dynamo"),
    "masked_select": ("masked_select", "dynamo"),
    "index_reduce": ("index_reduce", "dynamo"),
    "put": ("put", "dynamo"),
    "segment_reduce": ("segment_reduce", "dynamo"),
    "_cdist_forward": ("cdist", "dynamo"),
    "_pdist_forward": ("pdist", "dynamo"),
    "pdist": ("pdist", "torchscript"),
    "signbit": ("copysign", "dynamo"),
    "copysign": ("copysign", "dynamo"),
    "hypot": ("hypot", "dynamo"),
    "fmax": ("fmax", "dynamo"),
    "fmin": ("fmin", "dynamo"),
    "mT": ("matrix_transpose", "torchscript"),
    "diagonal_scatter": ("diagonal_scatter", "torchscript"),
    "rrelu_with_noise_functional": ("rrelu", "dynamo"),
    "adaptive_max_pool2d": ("adaptive_max_pool", "dynamo"),
    "_adaptive_avg_pool3d": ("adaptive_average_pool", "dynamo"),
    "adaptive_avg_pool3d": ("adaptive_average_pool", "torchscript"),
    "adaptive_max_pool1d": ("adaptive_max_pool_of_a_line", "torchscript"),
    "to_sparse": ("sparse", "torchscript"),
    "_sparse_mm": ("sparse_weight", "torchscript"),
    "linalg_inv_ex": ("inverse", "dynamo"),
    "linalg_inv": ("inverse", "torchscript"),
    "_linalg_solve_ex": ("solve", "dynamo"),
    "linalg_solve": ("solve", "torchscript"),
    "linalg_lu": ("lu", "dynamo"),
    "linalg_lu_factor_ex": ("lu_factor", "dynamo"),
    "linalg_lu_factor": ("lu_factor", "torchscript"),
    "linalg_lstsq": ("least_squares", "dynamo"),
    "linalg_pinv": ("pseudo_inverse", "dynamo"),
    "linalg_cholesky_ex": ("cholesky", "dynamo"),
    "linalg_cholesky": ("cholesky", "torchscript"),
    "cholesky_solve": ("cholesky_solve", "dynamo"),
    "cholesky_inverse": ("cholesky_inverse", "dynamo"),
    "linalg_solve_triangular": ("solve_triangular", "dynamo"),
    "triangular_solve": ("triangular_solve", "dynamo"),
    "linalg_qr": ("qr", "dynamo"),
    "_linalg_svd": ("nearest_rotation", "dynamo"),
    "linalg_svd": ("nearest_rotation", "torchscript"),
    "linalg_svdvals": ("svd", "torchscript"),
    "_linalg_eigh": ("whitening", "dynamo"),
    "linalg_eigh": ("whitening", "torchscript"),
    "linalg_eigvalsh": ("symmetric_eigenvalues", "torchscript"),
    "linalg_eig": ("eigenvalues", "dynamo"),
    "linalg_eigvals": ("eigenvalues", "torchscript"),
    "_linalg_slogdet": ("log_determinant", "dynamo"),
    "linalg_slogdet": ("log_determinant", "torchscript"),
    "linalg_matrix_exp": ("matrix_exponential", "dynamo"),
    "erf_inv": ("erfinv", "dynamo"),
    "erfinv": ("erfinv", "dynamo"),
    "ndtri": ("ndtri", "dynamo"),
    "special_ndtri": ("ndtri", "dynamo"),
    "lgamma": ("lgamma", "dynamo"),
    "digamma": ("digamma", "dynamo"),
    "polygamma": ("polygamma", "dynamo"),
    "igamma": ("igamma", "dynamo"),
    "igammac": ("igammac", "dynamo"),
    "i0": ("bessel_i0", "dynamo"),
    "bessel_i0": ("bessel_i0", "dynamo"),
    "bessel_i0e": ("bessel_i0e", "dynamo"),
    "bessel_i1": ("bessel_i1", "dynamo"),
    "bessel_i1e": ("bessel_i1e", "dynamo"),
    "special_i0e": ("bessel_i0e", "dynamo"),
    "special_i1": ("bessel_i1", "dynamo"),
    "special_i1e": ("bessel_i1e", "dynamo"),
    "unique_consecutive": ("unique", "dynamo"),
    "histc": ("histc", "dynamo"),
    "histogram": ("histogram", "torchscript"),
    "equal": ("compares_tensors", "dynamo"),
    "cov": ("covariance", "torchscript"),
    "corrcoef": ("correlation", "torchscript"),
    "scaled_dot_product_attention": ("attention_without_heads", "dynamo"),
    "fft_fftfreq": ("frequencies", "dynamo"),
    "allclose": ("allclose", "dynamo"),
    "_sym_sqrt": ("root_of_a_size", "dynamo"),
}
"""For each operator a model that fails because of it, and the exporter that names it."""


def answers(name):
    module, inputs = getattr(models, name)()
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    with torch.no_grad():
        return _pytree.tree_leaves(module.double()(*wide))


@pytest.mark.parametrize("name", [name for name in REWRITTEN if name not in OTHERWISE])
def test_the_rewritten_model_computes_the_same(name):
    before, after = answers(name), answers(f"{name}_remedied")
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        torch.testing.assert_close(other.double(), one.double(), rtol=CLOSE, atol=CLOSE, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", REWRITTEN)
def test_the_rewritten_model_passes(name, tmp_path):
    proof = onnxproof.prove(*getattr(models, f"{name}_remedied")(), budget=1.0, out=tmp_path)
    assert proof.verdict == "ship", [(f.code, f.message) for f in proof.findings if f.weight]


def test_every_form_was_tested():
    tested = {load_forms()[name] for name in TOLD}
    untested = {name for name, form in load_forms().items() if form not in tested}
    assert not untested, "names that other releases print may share a form, no form stands untested"
    assert {name for name, _ in TOLD.values()} <= set(REWRITTEN)


@pytest.mark.slow
@pytest.mark.parametrize("operator", TOLD)
def test_the_failing_model_is_told_its_form(operator, tmp_path):
    name, exporter = TOLD[operator]
    findings = onnxproof.export(*getattr(models, name)(), exporter=exporter, out=tmp_path).findings
    assert load_forms()[operator] in findings[0].help
