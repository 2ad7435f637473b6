"""What exporters say when they fail, and what it means. The first pattern that fits speaks, so the order matters."""

from __future__ import annotations

from onnxproof.diagnosis.record import Pattern, pattern

PATTERNS: tuple[Pattern, ...] = (
    pattern(
        r"(?:interrupted by signal|killed by) ?\d*:?\s*(SIG\w+)|exit(?:ed)? (?:with )?code:? ?(?:-1073\d{6}|13[4-9]|-\d+)\b|"
        r"Segmentation fault|core dumped|#\d+ +0x[0-9a-f]{8,} in |Fatal Python error|0xC0000(?:005|409|0FD)",
        "OX001",
        "the process died while exporting or running",
    ),
    pattern(
        r"DLL load failed|ImportError:.{0,80}(?:onnxruntime|onnx_cpp2py|onnx\b)|cannot import name '\w+' from '(?:onnx|torch\.onnx|onnxscript)[\w.]*'|"
        r"undefined symbol.{0,60}onnx|module '(?:torch\.onnx|onnx|onnxruntime|onnxscript)[\w.]*' has no attribute",
        "OX118",
        "a package of the exporter or runtime is broken, or its version does not fit the others",
        "Install versions that fit each other in a fresh environment: `pip install -U torch onnx onnxscript onnxruntime`; on Windows also the "
        "current Visual C++ runtime.",
    ),
    pattern(
        r"size mismatch for ([\w.]+): copying a param|(?:missing|unexpected) key\(s\) in state_dict|Can't get attribute '(\w+)' on <module|"
        r"PytorchStreamReader failed|weights[_ ]only load failed|'(?:Upsample|GELU|Conv2d|LayerNorm|SiLU|BatchNorm2d|Linear)' object has no attribute",
        "OX132",
        "the checkpoint does not fit the module, or was saved with another version of it ({1})",
    ),
    pattern(
        r"\"(\w+)\" not implemented for '(\w+)'|not implemented for (?:type )?'?(Half|BFloat16)'?",
        "OX131",
        "PyTorch itself has no kernel of {1} for {2} on this device",
    ),
    pattern(
        r"No module named '(onnxscript|onnx_ir|onnx|ml_dtypes)[\w.]*'",
        "OX118",
        "the exporter needs the package {1}, which is not installed",
        "Install it: `pip install onnxscript` (it brings onnx and onnx_ir). `--exporter torchscript` needs onnx only.",
    ),
    pattern(
        r"(?:larger than|exceeds?|exceeded) (?:the )?(?:maximum (?:protobuf|proto) size|2 ?Gi?B)|Failed to serialize proto|"
        r"Message onnx\.ModelProto exceeds maximum protobuf size|2GiB limit|ModelProto.*too large",
        "OX119",
        "the model is larger than the 2 GB that one protobuf file may hold",
    ),
    pattern(
        r"no signature found for <torch\._C\.Script|script_init\.cpp|Exporting a ScriptModule is not supported|ScriptModule.{0,40}not supported|Passed in ScriptModule",
        "OX121",
        "torch.export does not take a scripted or traced module",
    ),
    pattern(
        r"UnknownQuantizer|unpack_quantized_weights|__obj_flatten__|LinearPackedParamsBase|Conv2dPackedParamsBase|quantized::(\w+)|quantized_decomposed",
        "OX122",
        "the module is quantised by PyTorch: its packed weights have no counterpart in ONNX",
    ),
    pattern(
        r"Cannot copy out of meta tensor|on the meta device|\.numpy\(\) is not supported for tensor subclasses|"
        r"Tensor on device meta is not on the expected device",
        "OX120",
        "the module's weights are on the meta device: they have shapes and no values",
    ),
    pattern(
        r"FakeTensor.{0,200}zeros\(\)|zeros\(\): argument 'size' failed to unpack|_pack_padded_sequence|pack_padded_sequence",
        "OX123",
        "the model packs a padded sequence, whose sizes are data and cannot be captured",
    ),
    pattern(
        r"might be aliasing the input|aliasing of (?:the )?inputs?|(?:torch\.cond|cond|while_loop|map|scan)\b.{0,200}"
        r"(?:Aliasing|aliasing|mutat|must (?:return|have) the same|Expected each tensor to have same metadata|"
        r"different (?:output|pytree)|mismatch)|UncapturedHigherOrderOpError",
        "OX124",
        "a branch of torch.cond (or a loop body) returns or changes its own input, or the branches return different things",
    ),
    pattern(
        r"DispatchKey\.Sparse\w+|Sparse(?:CPU|CUDA|Meta)\b|torch\.sparse_(?:coo|csr|csc)|[Ss]parse (?:tensors?|layout).{0,40}not",
        "OX108",
        "the model uses sparse tensors, which ONNX does not have",
        "Use a dense matrix: `sparse.to_dense()`.",
    ),
    pattern(
        r"UnsupportedOperatorException: ([\w.]+)|(?:no|does not have a|missing) (?:fake|meta) (?:impl|kernel)\w*",
        "OX117",
        "the operator {1} has no fake implementation, which the capture needs to know its result's shape",
        "Register one: `@torch.library.register_fake(name)`, and a translation through `custom_translation_table`.",
    ),
    pattern(
        r"Expected all tensors to be on the same device.*?(cuda:?\d*|cpu|mps|xpu).{0,40}?(cuda:?\d*|cpu|mps|xpu)",
        "OX125",
        "tensors are on several devices ({1} and {2})",
    ),
    pattern(
        r"found two (?:different )?devices|Expected all tensors to be on the same device|"
        r"Unhandled FakeTensor Device Propagation|input type \(torch\.\w+\.FloatTensor\) and weight type",
        "OX125",
        "tensors are on several devices",
    ),
    pattern(
        r"(?:[Cc]omplex(?:Float|Double|64|128)?(?: (?:type|dtype|tensor|number)s?)?.{0,60}not (?:yet )?(?:supported|implemented))|"
        r"(?:not (?:supported|implemented)|[Uu]nsupported|Unknown).{0,60}[Cc]omplex|STFT does not currently support complex|"
        r"view_as_complex|aten::view_as_real|ScalarType ComplexFloat|KeyError: torch\.complex",
        "OX116",
        "the model works with complex numbers where the exporter has none",
    ),
    pattern(
        r"No ONNX function found for <?OpOverload\(op='(?!aten\.|prims\.)([\w.:]+)'|"
        r"No ONNX function found for (?:<OpOverload\(op=')?(?!aten|prims)(\w+\.\w+)",
        "OX117",
        "the custom operator {1} has no ONNX translation",
    ),
    pattern(
        r"Exporting the operator '?(?!aten|prim|onnx)(\w+::\w+)'? to ONNX|(?:Could not export|ONNX export failed on) [Pp]ython (?:operator|function) ?(\w*)|"
        r"unrecognized namespace (\S+)|symbolic\(\) takes|symbolic\(\) missing|prim::PythonOp|Couldn't export Python operator (\w+)|No Op registered for (\w+) with domain_version",
        "OX117",
        "the custom operator {1} has no ONNX translation",
    ),
    pattern(
        r"No ONNX function found for <?OpOverload\(op='([\w.:]+)'",
        "OX108",
        "the exporter has no ONNX translation for {1}",
    ),
    pattern(
        r"No ONNX function found for (?:<function )?(\S+)", "OX108", "the exporter has no ONNX translation for {1}"
    ),
    pattern(
        r"Exporting the operator '?([\w:]+)'? to ONNX opset version (\d+) is not supported.{0,40}(?:Support for this operator was added in version (\d+)|needs opset)",
        "OX127",
        "the TorchScript exporter has {1} from opset {3} on, and was asked for opset {2}",
    ),
    pattern(
        r"Exporting the operator '?([\w:]+)'? to ONNX(?: opset version (\d+))?",
        "OX108",
        "the TorchScript exporter has no translation for {1} at opset {2}",
    ),
    pattern(
        r"Unsupported FX nodes: \{'call_\w+': \['([\w.]+)'|Unknown call_\w+ target: (?:<\w+ )?([\w.]+)",
        "OX108",
        "the exporter has no ONNX translation for {1}",
    ),
    pattern(
        r"ONNX export failed on (?:ATen operator )?(\w+) because torch\.onnx\.symbolic\S* does not exist|"
        r"torch\.onnx\.symbolic_opset\d+\.(\w+) does not exist",
        "OX108",
        "the TorchScript exporter has no translation for {1}",
    ),
    pattern(
        r"(?:OnnxExporterError: ONNX does not support|ONNX export of|Unsupported: ONNX export of|ONNX export does NOT support exporting) (?:operator )?([\w:]+)",
        "OX108",
        "the TorchScript exporter cannot translate {1} as it is used here",
    ),
    pattern(
        r"Unsupported ONNX opset version:? ?(\d+)|[Oo]pset(?:_version)? (\d+) is not supported|"
        r"adapter.{0,60}(?:No Adapter|not found|Unsupported)|No Adapter (?:From|To) Version",
        "OX127",
        "the exporter cannot write the opset that was asked for",
    ),
    pattern(
        r"DataDependentOutputException[:\s]+(\S+)",
        "OX109",
        "{1} gives Python a value that depends on the data, which cannot be captured",
    ),
    pattern(
        r"GuardOnDataDependentSymNode|Could not guard on data-dependent|Could not extract specialized integer|"
        r"data-dependent (?:expression|control flow|branching|jump)|Dynamic control flow is not supported|"
        r"generic_jump|pending unbacked symbols|Consider annotating.{0,40}torch\._check|"
        r"torch\.Size\(\[?u\d+|Expected a value of type 'int'.{0,80}SymInt",
        "OX109",
        "the model decides on the values of a tensor (a Python `if`, `.item()`, a size taken from data), which cannot be captured",
    ),
    pattern(
        r"Unsupported input type|received an input of unsupported type: (\w+)|Found <class '?([\w.]+)'?>? in output|Unsupported (?:output|input) type|"
        r"[Oo]nly tuples, lists and Variables (?:are )?supported as JIT inputs/outputs|"
        r"Only tensors?, lists, tuples of tensors.{0,40}can be output|'(?:int|float|bool|str)' object has no attribute 'name'|"
        r"outputs? (?:must|should) be (?:a )?[Tt]ensors?|pytree.{0,60}not registered|register_dataclass|register_pytree_node|"
        r"Encountered a dict at the output|Tracer cannot infer type of|expected to be (?:a )?Tensors?, but got",
        "OX115",
        "an input or output is of a type that a graph cannot hold ({1})",
    ),
    pattern(
        r"Detected mismatch between the structure of `?inputs`? and `?dynamic_shapes`?|"
        r"Failed to convert 'dynamic_axes' to 'dynamic_shapes'|dynamic_shapes.{0,120}(?:tree|structure|mismatch|same number)|"
        r"Dynamic shape axis should be no more than|dynamic_axes.{0,80}(?:not found|invalid|not in)|Provided key \S+ for dynamic axes is not a valid|"
        r"missing a required argument: '(\w+)'",
        "OX115",
        "the example inputs and the description of their dynamic dimensions do not have the same structure",
        "onnxproof builds that description itself: `--dynamic name:0=batch` with the parameter's name. For `torch.onnx.export`, "
        "mirror the arguments' nesting, and pass a single dict as `(inputs, {})`.",
    ),
    pattern(
        r"(?:user-specified dim hint|[Cc]onstraints violated|ConstraintViolationError|specialized it to be a constant|"
        r"inferred a static shape|marked as dynamic but|[Nn]ot all values of \w+ .{0,80}satisfy|was specialized|"
        r"You marked .{0,60} as dynamic)",
        "OX104",
        "a dimension that was wished dynamic is turned into a constant by the model",
    ),
    pattern(
        r"Cannot insert a Tensor that requires grad as a constant|not part of the active trace|"
        r"[Pp]lease convert all Tensors to FakeTensors first|Attempting to use FunctionalTensor on its own|"
        r"is not registered as a buffer|is mutated in the forward method|were? assigned during export|not tracked with proxy|"
        r"Tried to (?:trace|register).{0,80}(?:already|but)",
        "OX129",
        "a tensor that the forward uses is neither an input, a parameter nor a buffer",
    ),
    pattern(
        r"torch\._dynamo\.exc\.(?:Unsupported|InternalTorchDynamoError|UserError|TorchRuntimeError)|Attempted to call function marked as skipped|"
        r"Can't call type\(\)\.__bool__|call_function BuiltinVariable|Graph break|(?:TensorWrapper|functorch).{0,120}(?:storage|not support)|"
        r"Cannot access (?:data pointer|storage) of|\.(?:numpy|tolist|data_ptr)\(\) (?:on|is not|not supported)|"
        r"can't convert.{0,40}to numpy|Converting a tensor to a Python|torch\.jit\.frontend\.|NotSupportedError|"
        r"could not get source code|Unsupported: (?:call_\w+|\w+Variable)|dynamo",
        "OX126",
        "the forward runs Python that the capture cannot follow",
    ),
    pattern(
        r"Error when translating node (%?\w+)|Failed to convert the exported program|GraphConstructionError|"
        r"INTERNAL ASSERT FAILED|_Map_base::at|name 'L' is not defined|incompatible function arguments.{0,200}torch\._C\.|_C\._jit_pass_onnx|"
        r"SymbolicValueError|Expected node type|step!=1 is currently not supported|"
        r"torch/onnx/symbolic|Required parameter '\w+' is not provided|symbolic_helper",
        "OX128",
        "the exporter's translation itself fails",
    ),
)
