"""What onnxruntime says when it cannot load or run a graph, and what it means."""

from __future__ import annotations

import re

from onnxproof.diagnosis.record import Pattern, pattern

LOADING: tuple[Pattern, ...] = (
    pattern(
        r"NOT_IMPLEMENTED.*?Could not find an implementation for ([\w.]+(?:\(\d+\))?) node with name '([^']*)'",
        "OX308",
        "onnxruntime has no kernel for {1} with the dtype of node {2}",
    ),
    pattern(
        r"Could not find an implementation for (?:the node )?([\w.:]+(?:\(\d+\))?)",
        "OX308",
        "onnxruntime has no kernel for {1} with this dtype",
    ),
    pattern(
        r"Type '(tensor\(\w+\))' of input parameter \((\S+?)\) of operator \((\w+)\) in node \(([^)]*)\) is invalid",
        "OX307",
        "node {4}: {3} does not take {1}",
    ),
    pattern(
        r"Type parameter \((\w+)\) of Optype \((\w+)\) bound to different types \((tensor\(\w+\)) and (tensor\(\w+\)?)\)?(?: in node \(([^)]*)\))?",
        "OX307",
        "node {5}: {2} is given {3} and {4}, which must be of one type",
    ),
    pattern(
        r"Type Error: .{0,200}|Inferred elem type differs from existing elem type|Type \(tensor\(\w+\)\) of output arg .{0,400}does not match",
        "OX307",
        "onnxruntime finds a node whose types do not fit together",
    ),
    pattern(
        r"Unsupported model IR version: (\d+), max supported IR version: (\d+)",
        "OX310",
        "the file has IR version {1}, and this onnxruntime reads up to {2}",
    ),
    pattern(
        r"[Oo]pset (\d+) is under development|ONNX Runtime only \*?guarantees\*? support for models stamped with.{0,80}opset version (\d+)|"
        r"[Oo]pset version (\d+) .{0,30}not supported",
        "OX310",
        "the opset of the file is newer than this onnxruntime knows",
    ),
    pattern(
        r"Fatal error: ([\w.]*):?(\w+)\(-?\d*\) is not a registered function/op|No opset import for domain '([^']*)'|"
        r"is not a registered (?:function/)?op|No Op registered for (\w+)",
        "OX311",
        "the graph uses an operator that this onnxruntime does not know",
    ),
    pattern(
        r"ORT (?:format )?model verification failed|[Pp]rotobuf parsing failed|INVALID_PROTOBUF|Error parsing message|ModelProto does not have a graph|InvalidProtobuf",
        "OX301",
        "the file is not an ONNX model, or it is cut off",
    ),
    pattern(
        r"Data of TensorProto.{0,200}(?:doesn't exist|not accessible)|External data path|"
        r"[Ee]xternal (?:data|initializer).{0,160}(?:not (?:exist|found)|escap|absolute|out of bounds|does not|outside|No such file)|"
        r"cannot get file size|GetFileLength.{0,80}failed|model_path must not be empty|file_size: No such file",
        "OX302",
        "the file with the weights is missing, cut off, or outside the model's folder",
    ),
    pattern(
        r"not supported in this build|loadFromOrtFormat|minimal build|This is an ORT format model|kernel type .{0,40}not (?:enabled|included)",
        "OX324",
        "this build of onnxruntime leaves out what the file needs",
    ),
    pattern(
        r"Exception during initialization.{0,300}(tensorrt|dml|cuda|openvino|coreml|rocm|migraphx|qnn|xnnpack)\w*(?:ExecutionProvider|_execution_provider|Provider)",
        "OX304",
        "the provider {1} fails while the session is built",
    ),
    pattern(r"NO_SUCHFILE|File doesn't exist|failed: ?system error number 2\b", "OX301", "there is no such file"),
    pattern(
        r"LoadLibrary failed|Failed to (?:create|load|initialize) (?:library )?.{0,60}(?:CUDA|TensorRT|cuda|cudnn|OpenVINO|providers?)|"
        r"libcu(?:dart|blas|dnn)\w*\.so|CUDA (?:driver|path|execution provider).{0,80}|CUDNN_STATUS_\w+|no CUDA-capable device|"
        r"Specified provider '(\w+)' is not in available provider names|cublas|CUDAExecutionProvider.{0,60}(?:not|fail)|EP Error",
        "OX304",
        "the provider's libraries are missing or do not fit, so onnxruntime cannot use it",
    ),
    pattern(
        r"(?:Shape|Type)InferenceError\] ?(.{0,160})",
        "OX306",
        "onnxruntime's shape inference finds a contradiction: {1}",
    ),
    pattern(
        r"Bad node spec|INVALID_GRAPH|This is an invalid model|ModelProto|not in range \[min=|Node .{0,60}has input size",
        "OX306",
        "onnxruntime says that the graph is not valid",
    ),
    pattern(
        r"Exception during initialization",
        "OX325",
        "onnxruntime fails while it prepares the session, in a rewrite of the graph or in a kernel's set-up",
    ),
    pattern(r"Load model from .{0,200} failed", "OX303", "onnxruntime cannot load the file"),
)

RUNNING: tuple[Pattern, ...] = (
    pattern(
        r"Got invalid dimensions for input: (\S+).*?index: (\d+) Got: (\d+) Expected: (\d+)",
        "OX222",
        "the artifact fixes dimension {2} of {1} to {4} and was given {3}",
    ),
    pattern(
        r"Invalid rank for input: (\S+) Got: (\d+) Expected: (\d+)|Invalid rank for input",
        "OX224",
        "the input {1} has {2} dimensions and the graph takes {3}",
    ),
    pattern(
        r"Unexpected input data type\. Actual: \((tensor\(\w+\))\)\s*,\s*expected: \((tensor\(\w+\))\)|Unexpected input data type",
        "OX224",
        "an input is fed as {1} and the graph takes {2}",
    ),
    pattern(
        r"Invalid (?:Feed )?Input Name:? ?(\S+)|Required inputs \((\[.*?\])\) are missing|Invalid input name: (\S+)|Missing Input: (\S+)|"
        r"Model requires (\d+) inputs|[Ii]nput \S+ not found in the graph",
        "OX224",
        "the names or the number of the fed inputs are not those of the graph ({1})",
    ),
    pattern(
        r"Failed to allocate memory|bad[_ ]alloc|out of memory|OutOfMemory|CUDA_ERROR_OUT_OF_MEMORY|CUDNN_STATUS_ALLOC_FAILED|"
        r"BFCArena::AllocateRawInternal|Available memory of \d+ is smaller",
        "OX003",
        "onnxruntime ran out of memory",
    ),
    pattern(
        r"indices element out of data bounds|idx=(-?\d+) must be within|[Ii]ndex(?:es|ices)? out of (?:bounds|range)|invalid indice found",
        "OX225",
        "an index lies outside the table that it selects from",
    ),
    pattern(
        r"Non-zero status code returned while running (\w+) node\. Name:'([^']*)'",
        "OX223",
        "{1} node {2} fails on sizes that PyTorch accepts",
    ),
    pattern(r'Kernel "\[(\w+)\] ([^"]*)" failed', "OX223", "{1} node {2} fails on sizes that PyTorch accepts"),
    pattern(
        r"cannot be reshaped to the requested shape|Attempting to broadcast an axis by a dimension other than 1|"
        r"Non concat axis dimensions must match|[Dd]imension (?:mismatch|of input \d+ must be 1)|mismatch.{0,30}dims?\b",
        "OX223",
        "a node fails on sizes that PyTorch accepts",
    ),
)

NODE = re.compile(
    r"(?:running \w+ node\. Name:|node with name |in node \(|Node \(|node_index:? ?|Node:)\s*'?([^'()\s]+)'?", re.S
)


def named_node(text: str) -> str | None:
    """The node that a message names."""
    match = NODE.search(text)
    return match.group(1) if match else None
