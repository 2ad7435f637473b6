"""What each failing model must be told, and the remedy that must work."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Failure:
    """A model of `models.py` that fails, and how it is mended."""

    name: str
    code: str
    """The code that must be among the findings; empty where onnxproof itself removes the cause and it passes."""
    fragment: str
    """What torch or onnxruntime says."""
    remedy: str
    options: tuple[str, ...] = ()
    remedied_with: tuple[str, ...] | None = None
    """Flags with which the same model passes; None where the model is rewritten (`NAME_remedied`)."""
    environment: dict[str, str] = field(default_factory=dict)


FAILURES: tuple[Failure, ...] = (
    Failure("if_on_a_value", "OX109", "GuardOnDataDependentSymNode … Eq(u0, 1)", "torch.where"),
    Failure("while_on_a_value", "OX109", "GuardOnDataDependentSymNode", "a formula instead of the loop"),
    Failure("item_as_size", "OX109", "GuardOnDataDependentSymNode", "a fixed size"),
    Failure("compares_tensors", "OX109", "DataDependentOutputException aten.equal", "compare with == and torch.where"),
    Failure(
        "loop_over_a_dim",
        "OX104",
        "user-specified dim hint … inferred a static shape of 3",
        "leave the length fixed",
        options=("--dynamic", "x:0=batch,1=length"),
        remedied_with=("--dynamic", "x:0=batch"),
    ),
    Failure("hard_coded_batch", "OX104", "nothing at all: the dimension becomes static", "view(-1, …)"),
    Failure("packed_sequence", "OX123", "zeros(): argument 'size' failed to unpack", "the last valid step by gather"),
    Failure("cond_returns_its_input", "OX124", "UncapturedHigherOrderOpError … aliasing", "x.clone()"),
    Failure("median", "OX108", "No ONNX function found for aten.median", "sort and index"),
    Failure("mode", "OX108", "No ONNX function found for aten.mode", "count equal elements"),
    Failure("kthvalue", "OX108", "No ONNX function found for aten.kthvalue", "topk(largest=False)"),
    Failure("cummax", "OX108", "No ONNX function found for aten.cummax", "a triangular mask and amax"),
    Failure("cumprod", "OX108", "No ONNX function found for prims.prod", "exp of cumsum of log"),
    Failure("stable_sort", "OX108", "No ONNX function found for aten.sort.stable", "sort without stable"),
    Failure("searchsorted", "OX108", "No ONNX function found for aten.searchsorted", "compare and sum"),
    Failure("masked_select", "OX107", "No ONNX function found for aten.masked_select", "x[mask]"),
    Failure("index_reduce", "OX108", "No ONNX function found for aten.index_reduce", "scatter_reduce"),
    Failure("cdist", "OX107", "No ONNX function found for aten._cdist_forward", "difference, square, sum, sqrt"),
    Failure("copysign", "OX108", "No ONNX function found for prims.signbit", "torch.where"),
    Failure("rrelu", "OX107", "No ONNX function found for aten.rrelu_with_noise_functional", "leaky_relu"),
    Failure("custom_operator", "OX117", "No ONNX function found for <custom op>", "PyTorch's operators"),
    Failure("sparse", "OX108", "could not find kernel … SparseMeta", "a dense matrix"),
    Failure(
        "chunk_of_a_dynamic_dim",
        "OX112",
        "PassError … constant folding",
        "done by onnxproof: optimize=False",
        remedied_with=(),
    ),
    Failure("through_numpy", "OX138", ".numpy() is not supported for tensor subclasses", "PyTorch's operators"),
    Failure("meta_weights", "OX120", "Cannot copy out of meta tensor", "weights with values"),
    Failure("opaque_output", "OX115", "Found <class …> in output", "tensors"),
    Failure("dataclass_input", "", "Unsupported input type", "done by onnxproof: flat inputs", remedied_with=()),
    Failure(
        "number_among_outputs",
        "OX110",
        "'int' object has no attribute 'name'",
        "done by onnxproof: left out",
        remedied_with=(),
    ),
    Failure("single_dict", "", "missing a required argument: 'd'", "done by onnxproof: flat inputs", remedied_with=()),
    Failure(
        "scripted", "", "Exporting a ScriptModule is not supported", "done by onnxproof: TorchScript", remedied_with=()
    ),
    Failure(
        "scripted",
        "OX121",
        "Exporting a ScriptModule is not supported",
        "--exporter auto",
        options=("--exporter", "dynamo"),
        remedied_with=("--exporter", "auto"),
    ),
    Failure("quantized", "OX122", "… '__obj_flatten__'", "export in float, quantise the ONNX file"),
    Failure("complex_output", "OX116", "complex64 output", "torch.view_as_real"),
    Failure("data_in_place", "OX113", "Constant … is mutated in the forward method, or a crash", "out of place"),
    Failure("adds_booleans", "OX307", "INVALID_GRAPH … tensor(bool) … (Add)", "a | b"),
    Failure("negates_bytes", "OX307", "INVALID_GRAPH … tensor(uint8) … (Neg)", "a wider integer"),
    Failure("sorts_booleans", "OX307", "INVALID_GRAPH … tensor(bool) … (TopK)", "cast to int32"),
    Failure("erf_in_float64", "OX308", "NOT_IMPLEMENTED … Erf(13)", "float32"),
    Failure("squeezes_the_batch", "OX223", "Squeeze …", "no squeeze of the batch"),
    Failure(
        "median",
        "OX108",
        "Exporting the operator 'aten::median' to ONNX opset version 17 is not supported",
        "sort and index",
        options=("--exporter", "torchscript"),
    ),
    Failure(
        "adaptive_average_pool",
        "OX108",
        "No ONNX function found for aten._adaptive_avg_pool3d",
        "rewrites.adaptive_avg_pool3d",
    ),
    Failure(
        "adaptive_max_pool",
        "OX108",
        "No ONNX function found for aten.adaptive_max_pool2d",
        "rewrites.adaptive_max_pool2d",
    ),
    Failure(
        "adaptive_max_pool_of_a_line",
        "OX108",
        "No ONNX function found for aten.adaptive_max_pool2d",
        "rewrites.adaptive_max_pool2d",
    ),
    Failure("allclose", "OX109", "DataDependentOutputException: aten.allclose.default", "isclose and torch.where"),
    Failure("amax", "OX107", "ValueError: Required parameter 'dim' is not provided. Signature:", "x.max()"),
    Failure("amin", "OX107", "ValueError: Required parameter 'dim' is not provided. Signature:", "x.min()"),
    Failure(
        "aminmax", "OX107", "ValueError: Required parameter 'dim' is not provided. Signature:", "x.min() and x.max()"
    ),
    Failure(
        "attention_without_heads",
        "OX107",
        "AssertionError: only 4D query, key, and value are supported",
        "one head: unsqueeze(1)",
    ),
    Failure("bessel_i0", "OX108", "No ONNX function found for prims.bessel_i0", "rewrites.i0"),
    Failure("bessel_i0e", "OX108", "No ONNX function found for prims.bessel_i0e", "rewrites.i0e"),
    Failure("bessel_i1", "OX108", "No ONNX function found for prims.bessel_i1", "rewrites.i1"),
    Failure("bessel_i1e", "OX108", "No ONNX function found for prims.bessel_i1e", "rewrites.i1e"),
    Failure("cholesky", "OX108", "No ONNX function found for aten.linalg_cholesky_ex", "rewrites.cholesky"),
    Failure("cholesky_inverse", "OX108", "No ONNX function found for aten.cholesky_inverse", "rewrites.inv(l @ l.T)"),
    Failure(
        "cholesky_solve", "OX108", "No ONNX function found for aten.cholesky_solve", "rewrites.solve_triangular twice"
    ),
    Failure("correlation", "OX109", "DataDependentOutputException: aten.equal.default", "centre, normalise, multiply"),
    Failure("covariance", "OX109", "DataDependentOutputException: aten.equal.default", "centre and multiply"),
    Failure("cummin", "OX108", "No ONNX function found for aten.cummin", "a triangular mask and amin"),
    Failure(
        "diagonal_scatter",
        "OX128",
        "AssertionError: aot_autograd expected to have an entirely functional",
        "torch.where(eye, …)",
    ),
    Failure("digamma", "OX108", "No ONNX function found for prims.digamma", "rewrites.digamma"),
    Failure(
        "eigenvalues", "OX108", "No ONNX function found for aten.linalg_eig", "rewrites.eigh for symmetric matrices"
    ),
    Failure("erfinv", "OX108", "No ONNX function found for prims.erf_inv", "rewrites.erfinv"),
    Failure("fmax", "OX108", "No ONNX function found for prims.fmax", "maximum and isnan"),
    Failure("fmin", "OX108", "No ONNX function found for prims.fmin", "minimum and isnan"),
    Failure("frequencies", "OX107", "No ONNX function found for aten.fft_fftfreq", "a buffer"),
    Failure(
        "histc",
        "OX128",
        "NotImplementedError: aten_histc with min == max (0.0) is not",
        "compare with the bins and sum",
    ),
    Failure(
        "histogram",
        "OX117",
        "NotImplementedError: aten::histogram.bin_ct: attempted to run this",
        "compare with the bins and sum",
    ),
    Failure("hypot", "OX108", "No ONNX function found for prims.hypot", "square, add, sqrt"),
    Failure("igamma", "OX108", "No ONNX function found for prims.igamma", "a finite sum for a whole a"),
    Failure("igammac", "OX108", "No ONNX function found for prims.igammac", "a finite sum for a whole a"),
    Failure("inverse", "OX108", "No ONNX function found for aten.linalg_inv_ex", "rewrites.inv"),
    Failure(
        "least_squares",
        "OX108",
        "DynamicOutputShapeException: aten.linalg_lstsq.default",
        "rewrites.solve of the normal equations",
    ),
    Failure("lgamma", "OX108", "No ONNX function found for prims.lgamma", "rewrites.lgamma"),
    Failure("log_determinant", "OX108", "No ONNX function found for aten._linalg_slogdet", "det, sign and log"),
    Failure("lu", "OX108", "No ONNX function found for aten.linalg_lu", "rewrites.solve"),
    Failure("lu_factor", "OX108", "No ONNX function found for aten.linalg_lu_factor_ex", "rewrites.solve"),
    Failure("matrix_exponential", "OX108", "No ONNX function found for aten.linalg_matrix_exp", "rewrites.matrix_exp"),
    Failure("nanmedian", "OX108", "No ONNX function found for aten.nanmedian", "sort and gather"),
    Failure("ndtri", "OX108", "No ONNX function found for prims.ndtri", "rewrites.ndtri"),
    Failure("nearest_rotation", "OX108", "No ONNX function found for aten._linalg_svd", "rewrites.svd"),
    Failure("pdist", "OX108", "No ONNX function found for aten._pdist_forward", "pairs of rows"),
    Failure("polygamma", "OX108", "No ONNX function found for aten.polygamma", "rewrites.polygamma"),
    Failure("pseudo_inverse", "OX108", "No ONNX function found for aten.linalg_pinv", "rewrites.pinv"),
    Failure("put", "OX108", "No ONNX function found for aten.put", "scatter"),
    Failure("qr", "OX108", "No ONNX function found for aten.linalg_qr", "rewrites.qr"),
    Failure("segment_reduce", "OX108", "No ONNX function found for aten.segment_reduce", "index_add"),
    Failure("solve", "OX108", "No ONNX function found for aten._linalg_solve_ex", "rewrites.solve"),
    Failure(
        "solve_triangular",
        "OX108",
        "No ONNX function found for aten.linalg_solve_triangular",
        "rewrites.solve_triangular",
    ),
    Failure(
        "sparse_weight",
        "OX108",
        "NotImplementedError: could not find kernel for aten.addmm.default at",
        "a dense matrix",
    ),
    Failure("svd", "OX108", "No ONNX function found for aten._linalg_svd", "rewrites.svd"),
    Failure("svd_of_a_weight", "OX108", "No ONNX function found for aten._linalg_svd", "decompose in __init__"),
    Failure("symmetric_eigenvalues", "OX108", "No ONNX function found for aten._linalg_eigh", "rewrites.eigh"),
    Failure(
        "triangular_solve", "OX108", "No ONNX function found for aten.triangular_solve", "rewrites.solve_triangular"
    ),
    Failure(
        "unique", "OX128", "AssertionError: unique_consecutive not implemented for other type", "a mask of the changes"
    ),
    Failure("root_of_a_size", "OX107", "No ONNX function found for _sym_sqrt", "x.shape[0] ** 0.5"),
    Failure("vander", "OX108", "No ONNX function found for prims.prod", "powers"),
    Failure("whitening", "OX108", "No ONNX function found for aten._linalg_eigh", "rewrites.eigh"),
    Failure(
        "matrix_transpose",
        "OX108",
        "Exporting the operator 'aten::mT' to ONNX opset version 20 is not supported",
        "transpose(-2, -1)",
        options=("--exporter", "torchscript"),
    ),
)
