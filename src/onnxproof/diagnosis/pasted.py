"""What a message from elsewhere may say about things that onnxproof sees for itself: the module, its inputs, the tools around the exporter."""

from __future__ import annotations

from onnxproof.diagnosis.pattern import Pattern, pattern

FRAMES: tuple[Pattern, ...] = (
    pattern(
        r"\bopen\([^)\n]{0,80}[\"']wb?[\"']\)[^\n]{0,20}\s+FileNotFoundError|_open_file_like\(f, ['\"]wb['\"]\)[\s\S]{0,800}\b(?:OSError|PermissionError|IsADirectoryError)",
        "OX135",
        "the folder in which the file should be written does not exist",
    ),
    pattern(
        r"TasksManager\.\w+[\s\S]{0,400}\bKeyError\b",
        "OX133",
        "the tool around the exporter has no recipe for this model",
    ),
    pattern(
        r"\bin guard_(?:bool|int|size_oblivious)\b|\bin evaluate_expr\b",
        "OX109",
        "the model decides on a size or value that depends on the data, which cannot be captured",
    ),
    pattern(
        r"The following call raised this error:[\s\S]{0,400}?\bassert [^\n]{0,200}\.(?:all|any)\(",
        "OX109",
        "an `assert` looks at the values of a tensor, which cannot be captured",
        "Leave the assertion out while the model is exported: `if not torch.compiler.is_exporting():` before it.",
    ),
)
"""What only the frames of a traceback tell; asked before they are left out."""

RAISED_IN: tuple[Pattern, ...] = (
    pattern(
        r"File \"[^\"\n]*torch[/\\]onnx[/\\][^\n]*\n(?:[ \t]+[^\n]*\n)?\s*\w+Error\b",
        "OX128",
        "the exporter's translation itself fails",
    ),
)
"""What the frame right before the error tells."""

PATTERNS: tuple[Pattern, ...] = (
    pattern(
        r"Trying to export an? ([\w.-]+) model,? that is a custom or unsupported architecture|Unrecognized configuration class|"
        r"(?:model type|architecture) [`'\"]?([\w.-]+)[`'\"]?,? (?:but Transformers does not recognize|is not (?:yet )?supported|not supported yet)|"
        r"([\w.-]+) is not supported yet (?:for|with|in) (?:the )?(?:task|transformers|onnx|diffusers|timm)|"
        r"Asked to export an? ([\w.-]+) model for the task|Transformers does not recognize this architecture|Unrecognized model in |"
        r"'(\w+Config)' object has no attribute|No (?:ONNX )?config(?:uration)? (?:is )?(?:found|available|registered) for|"
        r"model_type '?([\w.-]+)'? is not supported|[Uu]nsupported model[_ ]type:? '?([\w.-]+)|"
        r"(?:task|model) (?:name )?could not be automatically inferred|doesn't support the task|Unknown task:|"
        r"Could not find (?:the )?(?:ONNX )?config|Could not find the proper task name|Unable to generate dummy inputs|KeyError: ['\"]Unknown task",
        "OX133",
        "the tool around the exporter has no recipe for this model ({1})",
    ),
    pattern(
        r"mat1 and mat2 shapes cannot be multiplied|Sizes of tensors must match except in dimension|Tensors must have same number of dimensions|"
        r"The size of tensor a \(\d+\) must match the size of tensor b|The expanded size of the tensor \(\d+\) must match|"
        r"forward(?:\(\))? (?:missing \d+ required|takes \d+|takes from|got an unexpected|got multiple)|\w+\(\) takes \d+ positional arguments? but \d+ w|"
        r"Given (?:groups|transposed)=\d+, weight of size|Given input size per channel|Calculated padded input size per channel|"
        r"[Ee]xpected \d(?:D|-D|-dimensional).{0,60}(?:input|tensor).{0,60}(?:got|but)|Expected \d+D \(unbatched\)|expected input\[[\d, ]+\] to have|"
        r"shape '\[[-\d, ]+\]' is invalid for input of size|expected scalar type \w+ but found \w+|[Ee]xpected .{0,20}[Tt]ensor for argument #\d+|"
        r"must have the same dtype,? but got|"
        r"expected m1 and m2 to have the same dtype|Input type \([\w:. ]+\) and (?:weight|bias) type \([\w:. ]+\) should be the same|"
        r"expected .{0,20}dtype \w+ (?:for|but)|to have one of the following scalar types|index out of range in self|"
        r"(?:too many|not enough) values to unpack \(expected|running_mean should contain|Kernel size can't be greater than actual input|"
        r"input\.size\(-1\) must be equal to|Expected hidden(?:\[\d\])? size|einsum\(\): (?:operands|subscript)|"
        r"output with shape \[[\d, ]*\] doesn't match the broadcast shape|The shape of the mask \[|size mismatch, (?:m1|got)|"
        r"Expected size for first two dimensions of batch2|inconsistent tensor size|Dimension out of range \(expected to be in range|"
        r"number of sizes provided \(\d+\) must be greater|select\(\): index -?\d+ out of range|invalid argument \d+: (?:index|size)|"
        r"cannot be broadcast to indexing result|shape of the \dD attn_mask|There were no tensor arguments to this function|Unable to infer (?:the )?channel dimension|"
        r"input has inconsistent input_size|negative dimension -?\d+|cannot reshape tensor of 0 elements|selected index k out of range|"
        r"index -?\d+ is out of bounds for dimension|split_sizes to sum exactly|Boolean value of Tensor with more than one value is ambiguous|"
        r"'(?:dict|list|tuple|str|NoneType)' object has no attribute '(?:shape|size|dim|device|dtype|ndim)'|input and weight\.T shapes cannot be multiplied|"
        r"Expected object of (?:scalar )?type|new\(\): invalid data type|too many indices for tensor|"
        r"only integers, slices .{0,60}are valid indices|received an invalid combination of arguments|You have to specify (?:either )?\w*(?:input_ids|"
        r"inputs_embeds|pixel_values)|"
        r"`past_key_values` should be (?:either )?a|Wrong shape for input_ids|stack expects each tensor to be equal size|"
        r"\bforward\w*\(\) missing \d+ required positional|Padding size should be less than|Expected more than 1 value per channel when training|"
        r"neither `?input_sample`? nor `?\S*example_input_array`? attribute is set|argument '\w+' \(position \d+\) must be [\w ]+,? not \w+|must be Tensor, not \w+",
        "OX134",
        "the module itself refuses the example inputs, before anything is exported",
    ),
    pattern(
        r"Could not open file or directory|is_open\(\) was false|No space left on device|Read-only file system|iostream error|Disk quota exceeded|"
        r"PermissionError:.{0,200}\.(?:onnx|pb|data|weight|ort)\b|Permission denied:.{0,200}\.(?:onnx|pb|data|weight|ort)\b|"
        r"Failed to (?:open|create|save).{0,40}for writing",
        "OX135",
        "the file cannot be written where it was asked for",
    ),
    pattern(
        r"the only valid use of a module is looking up an attribute|prim::SetAttr",
        "OX113",
        "the scripted module writes to its own state, as batch normalisation does in train mode",
        "Call `model.eval()` before scripting and exporting, and return other state as outputs.",
    ),
    pattern(
        r"\bPassError: |(?:Pre|Post)condition(?:Error)?.{0,40}pass '|onnxscript[/\\.](?:optimizer|rewriter)|An error occurred when running the '([^']+)' pass",
        "OX112",
        "the exporter's own graph optimiser fails ({1})",
        "Export without it: `torch.onnx.export(…, dynamo=True, optimize=False)`, or `--no-optimize` for onnxproof.",
    ),
    pattern(
        r"(?:nan|inf) location mismatch|max(?:imum)? absolute difference (?:of|between).{0,200}: ?(?:nan|inf)\b",
        "OX205",
        "one side gives NaN or an infinity where the other does not",
    ),
    pattern(
        r"maximum absolute difference between the output of the reference model and the ONNX exported model is not within|AtolError|"
        r"Tensor-likes are not close|values not close enough|Not equal to tolerance rtol|Arrays are not almost equal|"
        r"outputs? (?:are|is) (?:not the same|different) between|Mismatched elements: \d|Max absolute difference: |"
        r"Outputs? values? do(?:es)?n.t match between reference model and ONNX",
        "OX201",
        "the file answers otherwise than the module, beyond the tolerance that was set",
        "Prove it: `onnxproof prove TARGET --onnx model.onnx` tells rounding from a real fault, and names the node and the line.",
    ),
)

ELSEWHERE: tuple[Pattern, ...] = (
    pattern(
        r"export mode is set to TrainingMode\.EVAL, but operator '?(\w+)'? is set to train",
        "OX102",
        "a part of the module is in train mode ({1})",
    ),
    pattern(
        r"(?:cannot|can't) pickle\b|\bPicklingError\b",
        "OX136",
        "the module or what it holds cannot be copied or pickled",
        "Make the part that cannot be copied (a lock, a file, a generator, a local function) when it is needed, or leave it out of the module for the export.",
    ),
    pattern(
        r"view of a leaf Variable that requires grad is being used in an in-place|leaf Variable that requires grad has been used in an in-place",
        "OX113",
        "the forward changes a parameter in place",
    ),
    pattern(
        r"Unknown opset version|[Ii]nvalid opset(?: version)?",
        "OX127",
        "the exporter cannot write the opset that was asked for",
    ),
    pattern(
        r"protocol message was rejected because it was too big|CHECK failed: \(value\.size\(\)\)|\bkint32max\b",
        "OX119",
        "the model is larger than the 2 GB that one protobuf file may hold",
    ),
    pattern(
        r"[Mm]odel (?:file )?(?:was |is )?not found (?:at|in|on)|(?:is|was) not an? (?:valid )?ONNX (?:model|file)|\.onnx should exist\b",
        "OX301",
        "there is no such file, or it is no ONNX model",
    ),
    pattern(
        r"[Uu]nsupported pipeline: (\S+)", "OX133", "the tool around the exporter has no recipe for this model ({1})"
    ),
    pattern(
        r"\b((?!std)[a-z]\w*::[a-z_]\w*) (?:is|are) not (?:yet |currently )?supported\b",
        "OX108",
        "the exporter has no translation for {1}",
    ),
    pattern(
        r"FlashAttention (?:only|forward only)|flash[_-]attn.{0,80}(?:only supports?|not supported)",
        "OX131",
        "the attention kernel does not run on this device",
        'Load the model with another attention for the export: `attn_implementation="eager"`.',
    ),
    pattern(
        r"(?:nodes? (?:were|was)) not assigned to the preferred execution providers",
        "OX305",
        "the provider leaves some nodes to another",
    ),
    pattern(
        r"Expected shape from model of \{.{0,80}\} does not match actual shape of",
        "OX215",
        "an output has another shape than the file declares",
    ),
    pattern(
        r"Missing required scale|does not contain an opset import|unrecognized input '.{0,40}' for node",
        "OX306",
        "the graph is not valid by the rules of ONNX",
    ),
    pattern(
        r"Unsupported data type\b|\bu?int(?:8|16|32|64) is not supported|unknown or unsupported element type|"
        r"(?:float16|bfloat16|fp16|bf16|double|float64) is not (?:yet )?supported",
        "OX308",
        "the runtime has no kernel for this dtype",
    ),
    pattern(
        r"No opset (?:registered|import) for domain '?([\w.]*)|Unknown type (\w+) encountered while parsing layer",
        "OX311",
        "the file uses an operator or a domain that is not known ({1})",
    ),
    pattern(
        r"was not selected by that EP|previous buffer is not registered|_execution_provider\.(?:h|cc):\d+",
        "OX326",
        "the provider was loaded and fails itself",
    ),
    pattern(
        r"attempting to load the ONNX Runtime binary|LoadLibraryExW failed|SharedArrayBuffer is not defined|"
        r"crossOriginIsolated|(?:NoClassDefFoundError|ClassNotFoundException|NoSuchMethodError).{0,80}onnx|"
        r"undefined reference to ['`]?Ort|unresolved external symbol .{0,80}Ort|(?:symbols?|symbol\(s\)) not found for architecture|"
        r"No matching distribution found for|Could not find a version that satisfies the requirement|Could not find a package configuration file|"
        r"(?:onnx\w*|torch) (?:python )?package is not installed|Failed to load dynamic library '[^']*onnxruntime|Cannot read propert(?:y|ies)[^\n]{0,40}'?install'?|"
        r"Failed to build (?:onnx\w*)|Failed building wheel for (?:onnx\w*)",
        "OX118",
        "a package of the exporter or runtime is not there for this platform, or its version does not fit the others",
        "Install versions that fit each other, the Python and the platform, in a fresh environment.",
    ),
    pattern(
        r"(?:TypeError|Error): (?:Failed to fetch|Load failed)\b|"
        r"(?:Failed to fetch|NetworkError|net::ERR_\w+|status(?: code)?:? 404|\b404\b).{0,200}\.(?:onnx|ort)\b|\.(?:onnx|ort)\b.{0,200}(?:Failed to fetch|\b404\b|net::ERR_)",
        "OX301",
        "the model file was not found where it was asked for",
    ),
    pattern(
        r"\brun\(\): incompatible function arguments|Unable to cast Python instance of type .{0,40}ndarray",
        "OX224",
        "the feed is not of the types that the session takes",
    ),
    pattern(
        r"\bcv2\.error|cv::dnn|ONNXImporter|onnx2(?:tf|torch|trt|keras)\b|onnx[-_]tf\b|tensorrt\.tensorrt|trt\.OnnxParser|ModelImporter\.cpp|coremltools|onnx_coreml|\bncnn\b|\bMNN\b",
        "OX137",
        "another tool than onnxruntime reads the file and fails on it",
        "Whether the file itself is right is what `onnxproof prove` tells; then report the operator to the tool that does not read it.",
    ),
    pattern(
        r"onnxruntime[/\\.](?:quantization|transformers|tools)\b|onnxconverter_common|convert_float_to_float16|neural_compressor|Quantization parameters are not|"
        r"[Ii]ncomplete symbolic shape inference|SymbolicShapeInference|symbolic_shape_infer|quantize_(?:static|dynamic)\b",
        "OX137",
        "a tool that rewrites the file after the export fails, and neither the exporter nor onnxruntime",
        "Verify the file as it was exported first, then the rewritten one against it: `onnxproof diff before.onnx after.onnx`.",
    ),
)
"""What other tools and other languages around a file say: asked after the exporter and the runtime."""

WIDE: tuple[Pattern, ...] = (
    pattern(
        r"Failed to export the model with torch\.export|torch\W{1,2}_dynamo\b|torch[/\\]export[/\\]_trace|TorchDynamo\w*Error",
        "OX126",
        "the forward runs Python that the capture cannot follow",
    ),
    pattern(
        r"(?:in forward\b|def forward\(|_slow_forward|forward_call\().{0,4000}?\n[ >]*((?:Type|Attribute|Index|Key|Value|Runtime|Assertion|NotImplemented)Error)\b",
        "OX134",
        "the forward itself raises a {1} on the example inputs",
    ),
)
"""What only says where it was raised: asked last."""
