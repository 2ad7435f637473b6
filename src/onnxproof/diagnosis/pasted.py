"""What a message from elsewhere may say about things that onnxproof sees for itself: the module, its inputs, the tools around the exporter."""

from __future__ import annotations

from onnxproof.diagnosis.record import Pattern, pattern

FRAMES: tuple[Pattern, ...] = (
    pattern(
        r"\bopen\([^)\n]{0,80}[\"']wb?[\"']\)[^\n]{0,20}\s+FileNotFoundError",
        "OX135",
        "the folder in which the file should be written does not exist",
    ),
    pattern(
        r"The following call raised this error:[\s\S]{0,400}?\bassert [^\n]{0,200}\.(?:all|any)\(",
        "OX109",
        "an `assert` looks at the values of a tensor, which cannot be captured",
        "Leave the assertion out while the model is exported: `if not torch.compiler.is_exporting():` before it.",
    ),
)
"""What only the frames of a traceback tell; asked before they are left out."""

PATTERNS: tuple[Pattern, ...] = (
    pattern(
        r"Trying to export an? ([\w.-]+) model,? that is a custom or unsupported architecture|Unrecognized configuration class|"
        r"(?:model type|architecture) [`'\"]?([\w.-]+)[`'\"]?,? (?:but Transformers does not recognize|is not (?:yet )?supported|not supported yet)|"
        r"([\w.-]+) is not supported yet (?:for|with|in) (?:the )?(?:task|transformers|onnx|diffusers|timm)|"
        r"Asked to export an? ([\w.-]+) model for the task|Transformers does not recognize this architecture|Unrecognized model in |"
        r"'(\w+Config)' object has no attribute|No (?:ONNX )?config(?:uration)? (?:is )?(?:found|available|registered) for|"
        r"(?:task|model) (?:name )?could not be automatically inferred|doesn't support the task|Unknown task:|"
        r"Could not find (?:the )?(?:ONNX )?config|Unable to generate dummy inputs|KeyError: ['\"]Unknown task",
        "OX133",
        "the tool around the exporter has no recipe for this model ({1})",
    ),
    pattern(
        r"mat1 and mat2 shapes cannot be multiplied|Sizes of tensors must match except in dimension|Tensors must have same number of dimensions|"
        r"The size of tensor a \(\d+\) must match the size of tensor b|The expanded size of the tensor \(\d+\) must match|"
        r"forward\(\) (?:missing \d+ required|takes \d+|takes from|got an unexpected|got multiple)|\w+\(\) takes \d+ positional arguments? but \d+ w|"
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
        r"Outputs? values? do(?:es)?n.t match between reference model and ONNX",
        "OX201",
        "the file answers otherwise than the module, beyond the tolerance that was set",
        "Prove it: `onnxproof prove TARGET --onnx model.onnx` tells rounding from a real fault, and names the node and the line.",
    ),
)

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
