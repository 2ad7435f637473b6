"""What exporters say when they fail, and what it means. The first pattern that fits speaks, so the order matters."""

from __future__ import annotations

from onnxproof.diagnosis.pattern import Pattern, pattern

SINCE = {
    10: "flip|fmod|isfinite|isinf|nan_to_num",
    11: "argsort|bitwise_left_shift|bitwise_right_shift|chunk|hstack|im2col|linalg_det|logdet|masked_scatter|masked_select|round|upsample_bicubic2d|vstack",
    12: "celu|cross_entropy_loss|einsum|nll_loss|outer|tensordot",
    13: "diagonal|tensor_split|tile|unflatten",
    14: "scaled_dot_product_attention|tril|triu",
    16: "grid_sampler|scatter_reduce",
    17: "stft",
    18: "bitwise_and|col2im",
    20: "affine_grid_generator",
}
"""The opset from which on the TorchScript exporter has an operator; releases before it did not say so."""


def _below(opset: int) -> str:
    return "|".join(str(number) for number in range(7, opset))


SPECIFIC: tuple[Pattern, ...] = (
    pattern(
        r"DynamicOutputShapeException: (aten\.linalg_\w+(?:\.\w+)?)",
        "OX108",
        "{1} cannot be captured: the shape of its results depends on the values",
    ),
    pattern(
        r"using FX to (?:torch\.jit\.trace|symbolically trace|torch\.export) a dynamo-optimized function",
        "OX126",
        "the module was compiled with `torch.compile`, and what that returns cannot be traced",
        "Export the module as it was before: `compiled._orig_mod`, or call `torch.compile` after the export.",
    ),
    pattern(
        r"bad[_ ]alloc\b|bad allocation|OutOfMemoryError|(?:CUDA|HIP|MPS backend) out of memory|DefaultCPUAllocator: (?:can't|not enough)|not enough memory: you tried|"
        r"\bMemoryError\b|(?:Cannot|Unable to|Failed to) allocate (?:memory|\d)|Array buffer allocation failed|Not enough memory resources|Could not allocate bytes object",
        "OX003",
        "memory ran out",
    ),
    pattern(
        r"(?:interrupted by signal|killed by) ?\d*:?\s*(SIG\w+)|exit(?:ed)? (?:with )?code:? ?(?:-1073\d{6}|13[4-9]|-\d+)\b|"
        r"(?:^|\n)\s*Killed\s*(?:$|\n)|Speicherzugriffsfehler|Erreur de segmentation|[Ss]egmentation ?fault|"
        r"core dumped|#\d+ +0x[0-9a-f]{8,} in |#\d+ +pc +(?:0x)?[0-9a-f]{6,} |Fatal Python error|0xC0000(?:005|409|0FD)|"
        r"Unhandled exception at 0x|Access violation (?:reading|writing)|memory access out of bounds|Got an? (?:segv|sig\w+|unknown) while executing native code|"
        r"Aborted\(\w*\)\. Build with|RuntimeError: (?:unreachable\b|table index is out of bounds|null function or function signature)|"
        r"JNI DETECTED ERROR|Fatal signal \d+|EXC_BAD_ACCESS|AccessViolationException|Illegal (?:hardware )?instruction|"
        r"\bSIG(?:SEGV|ABRT|ILL|BUS|KILL|TRAP|FPE|SYS)\b|EXC_(?:BREAKPOINT|CRASH|BAD_INSTRUCTION)|double free or corruption|(?:free|malloc|munmap_chunk)\(\): ",
        "OX001",
        "the process died while exporting or running",
    ),
    pattern(
        r"DLL load failed|[Uu]nable to import (?:required )?(?:dependency|dependencies|module)?:? ?'?(?:onnx|torch)\w*|ImportError:.{0,80}(?:onnxruntime|onnx_cpp2py|onnx\b)|"
        r"cannot import name '\w+' from (?:partially initialized module )?'(?:onnx|torch\.onnx|onnxscript|optimum|google\.protobuf)[\w.]*'|"
        r"Failed to import [\w.]+ because of the following error|module '(?:torch|numpy)(?:\.\w+)*' has no attribute|_ARRAY_API not found|"
        r"numpy\.\w+ size changed, may indicate|compiled using NumPy 1\.x cannot be run in|'torch\._C\.(?:Graph|Node|Value)' object (?:has no attribute|is not)|"
        r"type initializer for 'Microsoft\.ML\.OnnxRuntime|BadImageFormatException.{0,120}onnxruntime|"
        r"ImportError: cannot import name '\w+'|Trying to register schema with name .{0,300}already registered|"
        r"unable to find backend library for backend 'onnxruntime'|libtriton_onnxruntime|unknown platform 'onnxruntime|"
        r"onnxruntime_binding\.node|No implementation found for .{0,40}onnxruntime|\(reading 'InferenceSession'\)|"
        r"InferenceSession is not (?:a constructor|defined)|Cannot find (?:module|package) 'onnxruntime[\w/-]*'|Module not found.{0,80}onnxruntime|"
        r"ort-wasm[\w.-]*/?.{0,120}(?:ERR_|404|502|not found|failed)|(?:fetching of the wasm failed|expected magic word|[Ww]asm streaming compile failed)|"
        r"version .GLIBC\w*_[\d.]+. not found.{0,200}onnx|undefined symbol.{0,60}onnx|module '(?:torch\.onnx|onnx|onnxruntime|onnxscript|ml_dtypes|"
        r"onnx_ir)[\w.]*' has no attribute|"
        r"The given version \[\d+\] is not supported, only version|requested API version \[?\d+\]? is not (?:available|supported)|"
        r"(?:Unable to load (?:shared library|DLL)|UnsatisfiedLinkError|DllNotFoundException|EntryPointNotFoundException).{0,160}onnxruntime|"
        r"libonnxruntime\.(?:so|dylib)[\w.]*: cannot open|Library not loaded:.{0,80}onnxruntime|Descriptors cannot (?:not )?be created directly|"
        r"\bexport\(\) got an unexpected keyword argument '\w+'|InferenceSession\S* got an unexpected keyword argument",
        "OX118",
        "a package of the exporter or runtime is broken, or its version does not fit the others",
        "Install versions that fit each other in a fresh environment: `pip install -U torch onnx onnxscript onnxruntime`; on Windows also the "
        "current Visual C++ runtime.",
    ),
    pattern(
        r"(\w+)==\S+ is used but incompatible|(\w+) version \S+ is (?:incompatible|not compatible) with",
        "OX118",
        "the installed version of {1} does not fit the tool that exports",
        "Install the version that the message asks for in the environment that runs the export.",
    ),
    pattern(
        r"size mismatch for ([\w.]+): copying a param|(?:missing|unexpected) key\(s\) in state_dict|Can't get attribute '(\w+)' on <module|"
        r"import_ir_module|Serialized +File \"code/__torch__|unexpected EOF, expected \d+ more bytes|"
        r"Error\(s\) in loading state_dict|in load_\w*(?:weights|checkpoint)\b.{0,600}(?:is invalid for input of size|must match)|UnpicklingError|"
        r"No module named 'models(?:\.\w+)*'|"
        r"PytorchStreamReader failed|weights[_ ]only load failed|invalid load key, '|"
        r"'(?:collections\.)?(?:OrderedDict|dict)' object has no attribute '(?:training|eval|modules|state_dict|parameters|forward|cuda|to|float|"
        r"fuse)'|'(?:Upsample|GELU|Conv2d|LayerNorm|SiLU|BatchNorm2d|Linear)' object has no attribute",
        "OX132",
        "the checkpoint does not fit the module, or was saved with another version of it ({1})",
    ),
    pattern(
        r"\"(\w+)\" not implemented for '(\w+)'|not implemented for (?:type )?'?(Half|BFloat16)'?|"
        r"operator '([\w:.]+)' is not currently (?:implemented|supported) (?:for|on) the (\w+) (?:device|backend)|"
        r"Could not run '(?!quantized::)([\w:.]+)' with arguments from the '(?!Quantized|Sparse|Meta)(\w+)' backend",
        "OX131",
        "PyTorch itself has no kernel of {1} for this dtype or device",
    ),
    pattern(
        r"No module named '?(onnxscript|onnx_ir|onnx|ml_dtypes)(?:\.[\w.]+)?'?(?!\w)|Module (onnx) is not installed!",
        "OX118",
        "the exporter needs the package {1}, which is not installed",
        "Install it: `pip install onnxscript` (it brings onnx and onnx_ir). `--exporter torchscript` needs onnx only.",
    ),
    pattern(
        r"No module named '?(onnx\w+|optimum)[\w.]*'?",
        "OX118",
        "the package {1} is not installed, or is another version that does not have this module",
        "Install the package that has it in the environment that runs the script: `pip install onnxruntime` for onnxruntime, "
        "`pip install optimum-onnx` for `optimum.exporters.onnx` and `optimum.onnxruntime`; onnxruntime_tools is now `onnxruntime.transformers`.",
    ),
    pattern(
        r"(?:larger than|exceeds?|exceeded) (?:the )?(?:maximum (?:protobuf|proto) size|2 ?Gi?B)|Failed to serialize proto|"
        r"Message onnx\.ModelProto exceeds maximum protobuf size|2GiB limit|ModelProto.{0,40}too large",
        "OX119",
        "the model is larger than the 2 GB that one protobuf file may hold",
    ),
    pattern(
        r"no signature found for <torch\._C\.Script|Exporting a ScriptModule is not supported|"
        r"example_outputs must be provided when exporting a ScriptModule|ScriptModule.{0,40}not supported|Passed in ScriptModule",
        "OX121",
        "torch.export does not take a scripted or traced module",
    ),
    pattern(
        r"UnknownQuantizer|unpack_quantized_weights|backend.{0,20}'?Quantized(?:CPU|CUDA)|from the 'Quantized(?:CPU|CUDA)' backend|Params4bit|"
        r"qscheme\(\)|quantized/QTensor\.cpp|[Qq]uantized [Tt]ensors?\b|Int8Params|MatMul(?:8bitLt|4Bit)\b|bitsandbytes|"
        r"expected the output of `\w+` to be a quantized tensor|__obj_flatten__|LinearPackedParamsBase|Conv2dPackedParamsBase|quantized::(\w+)|quantized_decomposed",
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
        r"might be aliasing the input|aliasing of (?:the )?inputs?|When merging two branches' output in torch\.cond|(?:torch\.cond|cond|while_loop|map|scan)\b.{0,200}"
        r"(?:Aliasing|aliasing|mutat|must (?:return|have) the same|Expected each tensor to have same metadata|"
        r"different (?:output|pytree)|mismatch)|UncapturedHigherOrderOpError",
        "OX124",
        "a branch of torch.cond (or a loop body) returns or changes its own input, or the branches return different things",
    ),
    pattern(
        r"Unable to cast NotImplemented to Tensor|NestedTensor\w*|[Nn]ested tensors?\b.{0,60}not",
        "OX126",
        "the forward makes a tensor of a kind of its own, such as a nested one, which cannot be captured",
        "Use plain tensors: pad what a nested tensor holds, and give a mask or the lengths.",
    ),
    pattern(
        r"DispatchKey\.Sparse\w+|Sparse(?:CPU|CUDA|Meta)\b|torch\.sparse_(?:coo|csr|csc)|[Ss]parse (?:tensors?|layout).{0,40}not",
        "OX108",
        "the model uses sparse tensors, which ONNX does not have",
        "Use a dense matrix: `sparse.to_dense()`.",
    ),
    pattern(
        r"(?:UnsupportedOperatorException|Unsupported: unsupported operator): (?:aten|prims)\.([\w.]+)",
        "OX117",
        "PyTorch's operator {1} has no fake implementation in this release, which the capture needs to know its result's shape",
        "Use a newer torch, or write the line in other operators (dense tensors for sparse ones).",
    ),
    pattern(
        r"UnsupportedOperatorException: ([\w.]+)|no fake impl registered for <CustomOpDef\(([\w:.]+)\)>|(?:no|does not have a|missing) (?:fake|meta) (?:impl|kernel)\w*",
        "OX117",
        "the operator {1} has no fake implementation, which the capture needs to know its result's shape",
        "Register one: `@torch.library.register_fake(name)`, and export with a translation of it, "
        "`torch.onnx.export(…, custom_translation_table=…)`; then prove that file with `--onnx`.",
    ),
    pattern(
        r"Expected all tensors to be on the same device.*?(cuda:?\d*|cpu|mps|xpu).{0,40}?(cuda:?\d*|cpu|mps|xpu)",
        "OX125",
        "tensors are on several devices ({1} and {2})",
    ),
    pattern(
        r"Expected [\w.]+\.is_(?:cuda|xpu|mps)\(\) to be true",
        "OX125",
        "an operator of the model takes tensors of an accelerator only",
        "Export on that device, or write the operation in PyTorch's own operators for the export.",
    ),
    pattern(
        r"Attempting to deserialize object on (?:a )?(?:CUDA|MPS|XPU) device|Torch not compiled with CUDA enabled|No CUDA GPUs are available|"
        r"Found no NVIDIA driver on your system",
        "OX125",
        "the module or its checkpoint asks for a GPU that PyTorch does not find here",
        'Load and export on the CPU: `torch.load(path, map_location="cpu")` and `module.to("cpu")`. The file does not depend on the device.',
    ),
    pattern(
        r"torch\.nn\.DataParallel is not supported by ONNX",
        "OX125",
        "the module is wrapped in DataParallel, which spreads it over devices",
        "Hand over the module inside: `model.module`, on one device.",
    ),
    pattern(
        r"Expected object of (?:backend|device type) \w+ but got (?:backend|device type)|found two (?:different )?devices|Expected all tensors to be on the same device|"
        r"Unhandled FakeTensor Device Propagation|must be on the current device|input type \(torch\.\w+\.FloatTensor\) and weight type",
        "OX125",
        "tensors are on several devices",
    ),
    pattern(
        r"(?:[Cc]omplex(?:Float|Double|64|128)?(?: (?:type|dtype|tensor|number)s?)?.{0,60}not (?:yet )?(?:supported|implemented))|"
        r"(?:not (?:supported|implemented)|[Uu]nsupported|Unknown).{0,60}[Cc]omplex|STFT does not currently support complex|"
        r"registered for the complex-valued input|view_as_complex|aten::view_as_real|ScalarType ComplexFloat|KeyError: torch\.complex",
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
        r"Couldn't export Python operator (Im2Col|Col2Im|CrossMapLRN2d)\b",
        "OX108",
        "the TorchScript exporter has no translation for {1}, which an old release of PyTorch still had in Python",
    ),
    pattern(
        r"Exporting the operator ['`]?(?!aten|prim|onnx)(\w+::\w+|(?:ps_)?roi_(?:align|pool)|deform_conv2d|nms)['`]? to |"
        r"(?:Could not export|ONNX export failed on) [Pp]ython (?:operator|function) ?(\w*)|"
        r"Couldn't export operator (?!aten|prim|onnx)(\w+::\w+)|ONNX export failed on custom operator ([\w:]+)|Found a custom \(non-ATen\) operator|"
        r"unrecognized namespace (\S+)|symbolic\(\) takes|"
        r"symbolic\(\) missing|prim::PythonOp|Couldn't export Python operator (\w+)|No Op registered for (\w+) with domain_version",
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
        r"Exporting the operator ['`]?([\w:]+)['`]? to ONNX opset version (\d+) is not supported.{0,40}(?:Support for this operator was added in version (\d+)|needs opset)",
        "OX127",
        "the TorchScript exporter has {1} from opset {3} on, and was asked for opset {2}",
    ),
    *(
        pattern(
            rf"Exporting the operator ['`]?(?:aten::)?({names})['`]? to ONNX opset version ({_below(since)})\b",
            "OX127",
            f"the TorchScript exporter has {{1}} from opset {since} on, and was asked for opset {{2}}",
        )
        for since, names in SINCE.items()
    ),
    pattern(
        r"Exporting the operator ['`]?([\w:]+)['`]? to (?:ONNX)?(?: *opset version (\d+))?",
        "OX108",
        "the TorchScript exporter has no translation for {1} at opset {2}",
    ),
    pattern(
        r"Cannot find (?:symbolic function|any \S+ match of symbolic function|a?n? ?overload) for ([\w.:]+)|"
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
        r"Couldn't export operator ([\w:]+)|ONNX export failed: (?:Couldn't|Could not) export operator ([\w:]+)",
        "OX108",
        "the TorchScript exporter has no translation for {1}",
    ),
    pattern(
        r"ONNX export failed on (\w+), which is not implemented for opset (\d+)",
        "OX127",
        "the TorchScript exporter has no {1} in opset {2}, and may have it in a newer one",
    ),
    pattern(
        r"ONNX export of ([\w:]+) in opset (\d+)",
        "OX127",
        "the TorchScript exporter has no {1} in opset {2}, and has it in a newer one",
    ),
    pattern(
        r"(?:OnnxExporterError: ONNX does not support|ONNX export of|Unsupported: ONNX export of|ONNX export does NOT support exporting) (?:operator )?([\w:]+)",
        "OX128",
        "the TorchScript exporter cannot translate {1} as it is used here",
    ),
    pattern(
        r"Unsupported (?:ONNX )?opset(?:[ _]version)? ?:? ?(\d+)|[Oo]pset(?:_version)? (\d+) is not supported|Opset version must be >= ?(\d+) for|"
        r"No Adapter (?:From|To) Version|adapter.{0,60}(?:No Adapter|not found|Unsupported)|(?:C\.|in )convert_version\b|"
        r"(?:is )?(?:only )?supported (?:after|from|in) (?:ONNX )?opset (?:version )?(\d+)|is unallowed for Opset Version (\d+)|"
        r"not supported when converting (?:to|from) opset (\d+)|opset_version` < 15",
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
        r"\bdata[- ]dependent\b|Dynamic control flow is not supported|"
        r"generic_jump|pending unbacked symbols|Consider annotating.{0,40}torch\._check|"
        r"torch\.Size\(\[?u\d+|Expected a value of type 'int'.{0,80}SymInt|TracingCheckError|Graphs differed across invocations|"
        r"(?:Eq|Ne|Lt|Le|Gt|Ge|Mod)\([^)\n]{0,80}\bu\d+\b|Could not guard on unbacked|DynamicOutputShapeException|PendingUnbackedSymbolNotFound|"
        r"symbolically traced variables cannot be used as inputs to control flow|trace.{0,40}(?:differs|diverged) (?:from|across)",
        "OX109",
        "the model decides on the values of a tensor (a Python `if`, `.item()`, a size taken from data), which cannot be captured",
    ),
    pattern(
        r"Unsupported input type|received an input of unsupported type: (\w+)|Found <class '?([\w.]+)'?>? in output|Unsupported (?:output|input) type|"
        r"[Oo]nly tuples, lists and Variables (?:are )?supported as JIT inputs|traced region cannot be understood by the tracer|"
        r"Dictionary inputs to traced functions|Auto nesting doesn't know how to process|"
        r"Only tensors?(?:, lists,| or) tuples of tensors.{0,40}can be output|'(?:int|float|bool|str)' object has no attribute 'name'|"
        r"outputs? (?:must|should) be (?:a )?[Tt]ensors?|pytree.{0,60}not registered|register_dataclass|register_pytree_node|"
        r"Encounter(?:ed|ing) a dict at the output|Tracer cannot (?:infer type of|get value trace of)|expected to be (?:a )?Tensors?, but got|"
        r"Type '?[^'\n]{1,80}'? cannot be traced|"
        r"type of `?input`? .{0,40}is not supported by (?:the )?(?:tracer|exporter)|input tree spec|Expecting `args` to be a tuple|"
        r"Expected `?mod`? to be an instance of `?torch\.nn\.Module|has no forward method and is not callable|(?:model|module) (?:must|"
        r"should) be (?:a |an )?(?:instance of )?(?:torch\.)?nn\.Module|"
        r"Dynamo input/output is not consistent with traced input/output|"
        r"It looks like one of the (?:in|out)puts with type `?<class '([\w.]+)'>`? .{0,40}is not supported or pytree",
        "OX115",
        "an input or output is of a type that a graph cannot hold ({1})",
    ),
    pattern(
        r"Detected mismatch between the structure of `?inputs`? and `?dynamic_shapes`?|"
        r"Failed to convert 'dynamic_axes' to 'dynamic_shapes'|dynamic_shapes.{0,120}(?:tree|structure|mismatch|same number)|"
        r"Dynamic shape axis should be no more than|dynamic_axes.{0,80}(?:not found|invalid|not in)|Provided key \S+ for dynamic axes is not a valid|"
        r"missing a required argument: '(\w+)'|number of (?:in|out)put names provided (?:\(\d+\) )?exceeded|Unsupported dynamic_axes format|"
        r"only supports dynamic shapes through parameter dynamic_axes|dynamic_shapes.{0,160}(?:must be|should be|unexpected|invalid)|"
        r"Cannot associate shape .{0,80}specified at `dynamic_shapes|args contained \d+ None's after flattening",
        "OX115",
        "the example inputs and the description of their dynamic dimensions do not have the same structure",
        "onnxproof builds that description itself: `--dynamic name:0=batch` with the parameter's name. For `torch.onnx.export`, "
        "mirror the arguments' nesting, and pass a single dict as `(inputs, {})`.",
    ),
    pattern(
        r"(?:user-specified dim hint|[Cc]onstraints violated|ConstraintViolationError|specialized it to be a constant|"
        r"inferred a static shape|a dynamic shape for the axis .{0,80}found a static shape|marked as dynamic but|"
        r"Specializations unexpectedly required|Static shape constraint of|"
        r"Expected input \S+ to be (?:equal to|of the form)|Received user-specified.{0,60}(?:range|dim)|[Nn]ot all values of \w+ .{0,80}satisfy|was specialized|"
        r"You marked .{0,60} as dynamic)",
        "OX104",
        "a dimension that was wished dynamic is turned into a constant by the model",
    ),
    pattern(
        r"Cannot insert a Tensor that requires grad as a constant|not part of the active trace|"
        r"[Pp]lease convert all Tensors to FakeTensors first|Attempting to use FunctionalTensor on its own|"
        r"references tensors that are neither buffers|support the deepcopy protocol at the moment|state_dict changed after running the tracer|"
        r"Detected that you are (?:using|registering)|Cannot mutate tensors with frozen storage|"
        r"is not registered as a buffer|is mutated in the forward method|(?:was|were) assigned during export|Mutating module attribute|"
        r"requires gradients, and received a mutation|not tracked with proxy|"
        r"Tried to (?:trace|register).{0,80}(?:already|but)",
        "OX129",
        "a tensor that the forward uses is neither an input, a parameter nor a buffer",
    ),
    pattern(
        r"Error when translating node '?(%?\w+)|Error calling operator '(\w+)'|SymbolicValueError|GraphConstructionError|"
        r"since it's not constant|because it is not constant|ONNX symbolic (?:expected|does not)|Expected node type 'onnx::Constant'|"
        r"step!=1 is currently not supported|Unsupported prim::\w+ kind|prim::\w+ .{0,40}not supported|Unexpected node type: onnx::\w+|"
        r"unexpected tensor scalar type|Unknown (?:torch or )?scalar type|Scalar type .{0,20}cannot be converted to ONNX|"
        r"Unsupported (?:attribute|constant|tensor) type|Required parameter '\w+' is not provided|name 'L' is not defined|"
        r"We don't have an op for (aten::\w+)|does not forward tuples|required keyword attribute '\w+' is undefined|tracing state not found|was not in the map\b|"
        r"ArrayRef: invalid index|invalid unordered_map<K, ?T> key|ONNX export only |"
        r"\b[a-z]s?_\(\): incompatible function arguments|\w+ must be constant\b|Unknown type for data|(?:Input|Output) names cannot be duplicated|"
        r"SpecViolationError|No matching (?:overload|signature).{0,60}onnx",
        "OX128",
        "the exporter's translation itself fails ({1})",
    ),
    pattern(
        r"torch\._dynamo\.exc\.(?:Unsupported|InternalTorchDynamoError|UserError|TorchRuntimeError)|Attempted to call function marked as skipped|"
        r"Can't call type\(\)\.__bool__|call_function BuiltinVariable|Graph break|(?:TensorWrapper|functorch).{0,120}(?:storage|not support)|"
        r"Cannot access (?:data pointer|storage) of|\.(?:numpy|tolist|data_ptr)\(\) (?:on|is not|not supported)|"
        r"can't convert.{0,40}to numpy|torch\.jit\.frontend\.|NotSupportedError|Can't get source for|TorchScript requires source access|"
        r"could not get source code|Unsupported: (?:call_\w+|\w+Variable)|Arguments for call are not valid|Unknown builtin op|"
        r"Compiled functions can't take|failed to convert Python type|attribute lookup is not defined on python value|"
        r"Unsupported value kind|Expected integer literal for index|python value of type '[^']+' cannot be used as a value|"
        r"did not have observable data dependence with trace inputs|"
        r"f must be provided when fallback is enabled|torch\._dynamo\.exc\.ArgsMismatchError|autograd state manager op|torch\.fx\.proxy\.TraceError|Dynamo is not supported on|"
        r"tracer\.(?:h|cpp):\d+.{0,80}Assertion|can ?not be traced with torch\.jit\.trace|NotImplementedError: (?:argument of type|the)? ?.{0,20}proxy",
        "OX126",
        "the forward runs Python that the capture cannot follow",
    ),
)

WIDE: tuple[Pattern, ...] = (
    pattern(
        r"Failed to convert the exported program|Failed to decompose the FX graph|\bASSERT FAILED|_Map_base::at|incompatible function arguments.{0,200}torch\._C\.|"
        r"_C\._jit_pass_onnx|Expected node type|torch[/\\]onnx[/\\](?:\w+[/\\])*symbolic|symbolic_helper|graph\._export_onnx|_jit_pass_\w+\(",
        "OX128",
        "the exporter's translation itself fails",
    ),
)
"""What only says at which step it failed: asked last."""

PATTERNS: tuple[Pattern, ...] = (*SPECIFIC, *WIDE)
