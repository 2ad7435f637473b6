"""OX3xx: the file, the graph, the session."""

from onnxproof.findings.record import Entry

ENTRIES = (
    Entry(
        "OX301",
        "not a valid ONNX file",
        "block",
        "The file cannot be read as an ONNX model.",
        "No runtime will load it.",
        "Check that the file is complete (size, checksum) and was written by an ONNX exporter; export again.",
        "export",
    ),
    Entry(
        "OX302",
        "external data is missing",
        "block",
        "The graph refers to a file with weights that is not beside it, or that is too short.",
        "No runtime will load it.",
        "Copy the `.data` file together with the `.onnx` file, under the same name.",
        "export",
    ),
    Entry(
        "OX303",
        "no session",
        "block",
        "onnxruntime cannot build a session from the file.",
        "The artifact cannot be served with these settings.",
        "Read the node in the message: an operator or dtype without a kernel needs another formulation, dtype, opset or provider.",
        "session",
    ),
    Entry(
        "OX304",
        "the provider fell back",
        "block",
        "onnxruntime did not use the provider that was asked for.",
        "What would be measured and verified is not what was asked for.",
        "Install the onnxruntime build for that provider and its libraries, or ask for another provider.",
        "provider",
    ),
    Entry(
        "OX305",
        "some nodes run elsewhere",
        "note",
        "Some nodes were assigned to another provider than the first one asked for.",
        "Copies between providers cost time, and those nodes are computed by other kernels.",
        "Look at the listed operators; another opset or formulation may be supported.",
        "provider",
    ),
    Entry(
        "OX306",
        "the checker complains",
        "note",
        "The ONNX checker rejects the file, though onnxruntime may load it.",
        "Other tools and runtimes may refuse it.",
        "Read the message; export again or mend the named field.",
        "export",
    ),
)
