"""What the kind of an error alone says, where its words are not known: asked after everything else."""

from __future__ import annotations

from onnxproof.diagnosis.pattern import Pattern, pattern

PATTERNS: tuple[Pattern, ...] = (
    pattern(
        r"Failed to convert the model to the target version (\d+)|version conversion .{0,40}(?:is not supported|unsuccessful|failed)",
        "OX105",
        "the file could not be converted to the opset that was asked for ({1})",
    ),
    pattern(
        r"No module named '?([\w.]+)'?|\bModuleNotFoundError\b|cannot import name '?(\w+)'?|[Uu]nable to import dependency (\w+)|DLL load failed|undefined symbol: |"
        r"cannot open shared object file|(?:requires|needs) the (\w+) (?:library|package)|(?:requires|needs) [`'](\w+)[`'] to be installed|"
        r"with only (?:TensorFlow|PyTorch) installed|"
        r"__init__\(\) got an unexpected keyword argument|(?:export|from_pretrained|main_export)\(\) got an unexpected keyword argument",
        "OX118",
        "a package is missing, or its version does not fit the others ({1})",
        "Install the package, or versions that belong together, in the environment that runs the script; update the tool and what it "
        "is built on at the same time.",
    ),
    pattern(
        r"\b(?:operator|op|function) [`'\"]?([\w:.]+)[`'\"]? (?:is|are) not (?:yet |currently )?(?:supported|implemented)|"
        r"\b((?:aten|prims?|onnx)::\w+) to ONNX opset|[Uu]nsupported (?:ONNX |ATen )?(?:operator|op)s?\b[: ]+[`'\"]?([\w:.]+)|"
        r"Unsupported FX nodes: .{0,60}?'(aten\.[\w.]+)|"
        r"Couldn't export (?:Python )?operator ([\w:]+)|[Nn]o (?:symbolic|translation|ONNX function|decompos\w+)[^.\n]{0,40} (?:for|found)",
        "OX108",
        "the exporter has no translation for {1}",
    ),
    pattern(
        r"ONNX export failed|While executing %\w+ : .{0,80}target=torch\.ops\.|\(Occurred when translating \w|Failed to export an ONNX|Could not export|torch\.onnx\.errors|"
        r"OnnxExporterError(?!: Failed to export the model to ONNX)|SymbolicValueError|torch[/\\]onnx[/\\]",
        "OX128",
        "the exporter's translation itself fails",
    ),
    pattern(
        r"checker\.ValidationError|model with IR version < \d+ cannot have|Bad node spec|Node \(\w+\) Op \(\w+\) \[Shape|ShapeInferenceError|"
        r"onnx\.shape_inference|shape_inference\.InferenceError",
        "OX306",
        "the file does not follow the ONNX specification",
    ),
    pattern(
        r"NO_SUCHFILE|NO_MODEL\b|INVALID_PROTOBUF|\bNoSuchFile\b", "OX301", "the file is missing or is no ONNX file"
    ),
    pattern(r"\bNOT_IMPLEMENTED\b|ErrorCode:NotImplemented", "OX308", "onnxruntime has no kernel for a node"),
    pattern(
        r"\bEP_FAIL\b|\b(?:CUDNN|CUBLAS|CUDA|HIP|ROCM|MIOPEN|TensorRT|QNN|CoreML|NNAPI|DML) (?:error|failure)|(?:Cuda|Dml|TensorRT|OpenVINO|"
        r"QNN|CoreML|Rocm|MIGraphX|WebGpu)ExecutionProvider.{0,200}\b(?:fail|error\b|exception\b)",
        "OX326",
        "the provider's own library fails",
    ),
    pattern(
        r"Failed to (?:load|create|initiali[sz]e).{0,40}(?:session|model)|Exception during initiali[sz]ation|Can't (?:create|load).{0,20}(?:session|model)",
        "OX303",
        "onnxruntime builds no session from the file",
    ),
    pattern(r"\bINVALID_ARGUMENT\b|ErrorCode:InvalidArgument", "OX224", "the feed does not fit the file's inputs"),
    pattern(r"Non-zero status code returned while running (\w+) node", "OX223", "{1} fails inside onnxruntime"),
    pattern(
        r"torch\W{1,2}_dynamo\b|torch[./\\]export\b|torch\.fx\b|FakeTensor|its data is not allocated yet|symbolic_shapes|TorchExportError",
        "OX126",
        "the forward runs Python that the capture cannot follow",
    ),
    pattern(
        r"load_state_dict\(.{0,400}(?:Attribute|Type|Key|Runtime)Error|tarfile\.(?:Invalid|Empty|Truncated)HeaderError",
        "OX132",
        "the weights do not fit the module, or are no state of one",
    ),
    pattern(
        r"TracerWarning: (Converting a tensor to a Python \w+|Iterating over a tensor|Using len to get tensor shape|torch\.tensor results are registered|"
        r"torch\.from_numpy results are registered)",
        "OX145",
        "tracing keeps what the example gave, and other inputs get the same: {1}",
    ),
    pattern(
        r"you should probably activate truncation and/or padding|\berror: argument [^\n]{0,80}: invalid choice|"
        r"(?:Connection|HTTP|RepositoryNotFound|GatedRepo|EntryNotFound|LocalEntryNotFound|CalledProcess|Timeout|Permission|Unsupported\w*|Recursion)Error\b|"
        r"java\.lang\.\w+Exception|System\.(?:Argument|NullReference|Missing\w+|InvalidOperation|IndexOutOfRange|NotSupported|Invalid\w*)\w*Exception|"
        r"(?:Reference|Range|Overflow)Error: |Can't call numpy\(\) on Tensor|Cannot re-initialize CUDA in forked|variables needed for gradient computation|"
        r"Max retries exceeded|Error encountered while parsing \S+\.json|"
        r"(?:^|\n|[\s>])'\w+' object has no attribute '\w+'|(?:^|\n|[\s>])((?:Name|UnboundLocal|Attribute|Key|Index|Type|Value|"
        r"ZeroDivision|Assertion|FileNotFound|NotImplemented|Recursion|"
        r"ModuleNotFound|Import|OS|Lookup|Unicode\w*|Syntax|Indentation)Error)\b|\\n', \W((?:Key|Attribute|Name|Type)Error): ",
        "OX137",
        "the script around the export raises a {1}; neither the exporter nor onnxruntime complains",
    ),
)
