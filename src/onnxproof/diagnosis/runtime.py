"""What onnxruntime says when it cannot load or run a graph, and what it means."""

from __future__ import annotations

import re

from onnxproof.diagnosis.pattern import Pattern, pattern

MEMORY = pattern(
    r"Failed to allocate memory|bad[_ ]alloc\b|bad allocation|\bout of memory\b|OutOfMemory|CUDA_ERROR_OUT_OF_MEMORY|(?:CUDNN|CUBLAS)_STATUS_ALLOC_FAILED|"
    r"BFCArena::AllocateRawInternal|Available memory of \d+ is smaller|Not enough memory resources|8007000E|"
    r"Array buffer allocation failed|(?:Cannot|could not) allocate memory|Failed to find a free memory block",
    "OX003",
    "memory ran out",
)

PROVIDERS = r"(?:TensorRT|Dml|DML|CUDA|OpenVINO|CoreML|NNAPI|Nnapi|ROCM|MIGraphX|QNN|XNNPACK|VitisAI|CANN|WebGPU|WebNN|NvTensorRTRTX)"

STANDARD = (
    r"(?:Abs|Add|And|Arg(?:Max|Min)|(?:Average|Max)Pool|BatchNormalization|Cast|Ceil|Clip|Concat|Constant|Conv|ConvTranspose|CumSum|Div|Dropout|Einsum|"
    r"Equal|Erf|Exp|Expand|Flatten|Floor|GRU|Gather(?:Elements|ND)?|Gemm|Global(?:Average|Max)Pool|Greater(?:OrEqual)?|Identity|If|InstanceNormalization|"
    r"LSTM|LayerNormalization|LeakyRelu|Less(?:OrEqual)?|Log|LogSoftmax|Loop|MatMul|Max|Min|Mod|Mul|Neg|NonMaxSuppression|NonZero|Not|OneHot|Or|PRelu|Pad|"
    r"Pow|RNN|Range|Reciprocal|Reduce\w+|Relu|Reshape|Resize|Round|Scatter(?:Elements|ND)?|Shape|Sigmoid|Sign|Slice|Softmax|Softplus|Split|Sqrt|Squeeze|"
    r"Sub|Sum|Tanh|Tile|TopK|Transpose|Unsqueeze|Upsample|Where)"
)
"""Operators that every onnxruntime has: where one is not registered, its opset is too new."""

LIBRARIES = pattern(
    r"LoadLibrary failed|Failed to load shared library|"
    r"(?:missing|could not|cannot|failed to|unable to|not found).{0,80}\b(?:cudnn|cublas|cudart|cufft|nvinfer|zlibwapi)\w*\.dll|"
    r"\b(?:cudnn|cublas|cudart|cufft|nvinfer|zlibwapi)\w*\.dll.{0,60}(?:missing|could not|cannot|not found)|"
    r"Failed to (?:create|load|"
    r"initialize) (?:library )?.{0,60}(?:CUDA|TensorRT|cudnn|OpenVINO|providers?)|"
    r"lib(?:cu\w+|nvinfer\w*|openvino\w*|amdhip\w*|migraphx\w*)\.so|CUDA driver version is insufficient|CUDA_PATH is set but|"
    r"(?:CUDNN|CUBLAS)_STATUS_(?:NOT_INITIALIZED|ARCH_MISMATCH|VERSION_MISMATCH|SUBLIBRARY\w*)|no CUDA-capable device|"
    r"no kernel image is available|the provided PTX was compiled|Specified provider '(\w+)' is not in available provider\s+names|EP Error|"
    r"does not contain a subset of available providers|Provider not available, can't get interface|could not open shared library|"
    r"Init provider bridge failed|TryGetProviderInfo_\w+|ProviderLibrary::Get|argument --execution-providers?: invalid choice|"
    r"Please install (?:TensorRT|CUDA|the correct version of CUDA|\w+ libraries)|"
    rf"{PROVIDERS}\w*ExecutionProvider['\"]? (?:is )?(?:not (?:available|found|installed|enabled|supported)|unavailable)|"
    r"execution provider is not (?:supported|enabled) in this build|Unknown Provider Type|no available backend found|"
    r"(?:removing|skipping|falling back).{0,40}(?:requested )?(?:execution )?providers?|Cannot find execution provider|"
    r"Execution Provider (?:'?\w+'? )?(?:was |is )?not (?:found|available|registered)|No device with selected configuration|"
    r"Did not find an arena based allocator registered for device|[Cc]urrently supported values are '(?:OPENVINO|SNPE|XNNPACK|QNN|CUDA|DML)'",
    "OX304",
    "the provider is not in this build, or its libraries are missing or do not fit, so onnxruntime cannot use it",
)

UNNAMED = pattern(
    r"This ORT build has \[.{0,300}\] enabled|required to explicitly set the providers? parameter",
    "OX304",
    "onnxruntime was not told which provider to use, and this build has several",
    'Name them when the session is made: `onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])`.',
)

OPTION = pattern(
    r"Unknown provider option|[Ii]nvalid provider option|is not a (?:valid|supported) provider option|Provider option keys/values size mismatch|Failed to map enum value to name",
    "OX304",
    "the provider does not take an option that it was given",
    "Give it the options that its page in onnxruntime's documentation lists for your version, as strings.",
)

PROVIDER = pattern(
    r"(CUDA) error cuda(?!ErrorNoKernelImage)\w+|"
    r"(CUDA|CUDNN(?:_FE)?|CUBLAS|CURAND|CUFFT|ROCM|HIP|MIOPEN|ROCBLAS|HIPBLAS)(?: FE)? (?:(?:failure|error) -?\d+|error executing)|(?:CUDNN|CUBLAS)_STATUS_(?!SUCCESS)\w+|"
    r"Exception\(\d+\) tid\(|DirectML\.dll|(Dml)Fused|DmlOperator|FusedGraphKernel|887A00\d\d|GPU device instance has been suspended|"
    r"(TensorRT) EP (?:failed|could not|execution|build)|(TRT)Kernel_graph|TensorrtLogger.{0,80}(?:ERROR|INTERNAL)|(OpenVINO)-EP|"
    r"(openvino|tensorrt|coreml|nnapi|qnn|migraphx|vitisai|webnn|webgpu|dml)[\\/](?:\w+[\\/])*\w+\.(?:cc|cpp|h|mm)\b|"
    r"(tensorrt|cuda|dml|rocm|coreml|openvino|migraphx|qnn)_execution_provider\.cc|(QNN)\.?(?:backendCreate|graphFinalize|graphAddNode)|Failed to finalize QNN|"
    r"Error (?:compiling|in building|computing).{0,40}(Core ?ML|MLModel|plan)|com\.apple\.CoreML|(ANeuralNetworks)\w+|ANEURALNETWORKS_\w+|"
    r"Name: ?'(\w+?)ExecutionProvider_|running\s+\S*(?:CoreML|NNAPI|OpenVINO-EP|TRTKernel|QNN)_?\S* node|[Cc](?:uda|UDA) graph annotation|D3D12\w*|DXGI_ERROR|"
    r"TensorRT input: \S+ has no shape specified|Execution provider mismatch|"
    r"illegal memory access|device-side assert|unspecified launch failure|\bEP_FAIL\b|Error Code \d+: (?:Internal Error|Cuda Runtime|Cudnn)|"
    r"getPluginCreator could not find plugin|\[WebGPU\] (?!Kernel)|GPUValidationError|Device (?:was )?lost|(WebGPU) validation error|while parsing WGSL|Invalid ShaderModule|"
    r"WebGPU compute pipeline|"
    r"Exception during initialization.{0,300}(tensorrt|dml|cuda|openvino|coreml|rocm|migraphx|qnn|xnnpack)\w*(?:ExecutionProvider|_execution_provider|Provider)",
    "OX326",
    "the provider was loaded and fails itself ({1})",
)

LOADING: tuple[Pattern, ...] = (
    MEMORY,
    pattern(
        r"NOT_IMPLEMENTED.*?Could not find an implementation for ([\w.]+(?:\(\d+\))?) node with name '([^']*)'",
        "OX308",
        "onnxruntime has no kernel for {1} with the dtype of node {2}",
    ),
    pattern(
        r"Could not find an implementation for (?:the node )?([\w.:]+(?:\(\d+\))?)|Failed to find kernel for ([\w.]+(?:\(\d+\))?)|"
        r"cannot resolve operator '(\w+)' with opsets|data type is not supported with (\w+) opset|unrecognized operator '(\w+)'",
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
        r"Unsupported model IR version: (\d+), max supported IR version: (\d+)|Your model ir_version (\d+) is higher than the checker's|"
        r"Unknown model file format version|ValidateOpsetForDomain",
        "OX310",
        "the IR version {1} of the file is newer than this onnx or onnxruntime reads",
    ),
    pattern(
        r"[Oo]pset (\d+) is under development|ONNX Runtime only \*?guarantees\*? support for models stamped with.{0,80}opset version (\d+)|"
        r"(?<!to ONNX )[Oo]pset version (\d+) .{0,30}not supported",
        "OX310",
        "the opset of the file is newer than this onnxruntime knows",
    ),
    pattern(
        rf"(?:\b|invalid)({STANDARD}) with domain_version of ([1-9]\d*)",
        "OX310",
        "this onnxruntime does not know {1} of opset {2}, which is newer than it",
    ),
    pattern(
        r"Fatal error: ([\w.]*):?(\w+)\(-?\d*\) is not a registered function/op|No opset import for domain '([^']*)'|"
        r"is not a registered (?:function/)?op|No Op registered for (\w+)|No [Ss]chema registered for|Could not find OpSchema",
        "OX311",
        "the graph uses an operator that this onnxruntime does not know",
    ),
    pattern(
        r"exceed(?:s|ed) maximum protobuf size|[Pp]rotobuf serialization failed",
        "OX119",
        "the model is larger than the 2 GB that one protobuf file may hold",
    ),
    pattern(
        r"ORT (?:format )?model verification failed|[Pp]rotobuf parsing failed|INVALID_PROTOBUF|Error parsing message|ModelProto does not have a graph|InvalidProtobuf|"
        r"reading 'irVersion'|loadFromOrtFormat|Wrong wire type|Unable to parse (?:proto|model|ModelProto)|message\.DecodeError|"
        r"Invalid input model: (?:data|path)|invalid wire type|InferenceSession::InferenceSession\(.{0,600}status\.IsOK\(\) was false",
        "OX301",
        "the file is not an ONNX model, or it is cut off",
    ),
    pattern(
        r"(?<!provider is )(?<!versions are )not (?:supported|enabled) in this build|minimal build|This is an ORT format model|kernel type .{0,40}not (?:enabled|included)",
        "OX324",
        "this build of onnxruntime leaves out what the file needs",
    ),
    pattern(
        r"Data of TensorProto.{0,200}(?:doesn't exist|not accessible)|External data path|"
        r"[Ee]xternal (?:data|initializer).{0,160}(?:not (?:exist|found)|escap|absolute|out of bounds|does not|outside|No such file)|"
        r"(?:[Ff]ailed to|[Cc]ould not|[Cc]annot) (?:retrieve|download|fetch|find|open|read).{0,80}\.onnx[._]data\b|"
        r"Deserialize tensor \S+ failed|Module\.MountedFiles is not available|Failed to load external data|"
        r"FileNotFoundError:.{0,300}(?:\.onnx[._]data|\.weight)|cannot get file size|GetFileLength.{0,80}failed|model_path must not be empty|file_size: No such file",
        "OX302",
        "the file with the weights is missing, cut off, or outside the model's folder",
    ),
    pattern(
        r"No content provider:|NO_?SUCH_?FILE|Could not find any ONNX (?:model )?files?|No onnx (?:model )?files? (?:was |were )?found|Error opening \S+genai_config\.json|"
        r"File doesn't exist|failed: ?system error number (?:2|3|13)\b|open file .{0,200} fail|"
        r"FileNotFoundError:.{0,300}\.(?:onnx|ort)\b(?!_data)|No such file or directory:? .{0,200}\.(?:onnx|ort)\b(?!_data)",
        "OX301",
        "there is no such file, or it cannot be read",
    ),
    LIBRARIES,
    UNNAMED,
    OPTION,
    PROVIDER,
    pattern(
        r"InferenceError\].{0,300}?(?:has inconsistent type|has unsupported type:?) (tensor\(\w+\))",
        "OX307",
        "a node is given {1}, which it does not take there",
    ),
    pattern(
        r"Node ?\((\w*(?:Fusion|Fused|fused)\w*)\) Op \(",
        "OX325",
        "the node {1}, which a rewrite of onnxruntime made, does not fit its neighbours",
    ),
    pattern(
        r"(?:Shape|Type)InferenceError\] ?(.{0,160})",
        "OX306",
        "onnxruntime's shape inference finds a contradiction: {1}",
    ),
    pattern(
        r"Bad node spec|INVALID_GRAPH|This is an invalid model|Model::Model\(|not in range \[min=|Node .{0,60}has input size|"
        r"checker\.ValidationError|must specify opset_import|Nodes in a graph must be topologically sorted|Field '\w+' of '?\w+'? is required but missing|"
        r"(?:Inferred|existing) shape.{0,60}differ in|Unrecognized attribute: |did not pass (?:\w+ )?schema check|"
        r"Graph must be in single static assignment|does not have type information|"
        r"in initializer but not in graph input|Required attribute '?\w+'? is missing|InferenceError: |Mismatched attribute type|"
        r"failed validating the check|Duplicate (?:definition|initializer|function)|Invalid model\. Node input|the graph is not acyclic|"
        r"Can't merge shape info|Mismatch between (?:number|the sum) of .{0,60}(?:inputs|dimensions)",
        "OX306",
        "the graph is not valid by the rules of ONNX",
    ),
    pattern(
        r"Exception during initialization|OpKernel was null",
        "OX325",
        "onnxruntime fails while it prepares the session, in a rewrite of the graph or in a kernel's set-up",
    ),
    pattern(r"Load model from .{0,200} failed", "OX303", "onnxruntime cannot load the file"),
)

RUNNING: tuple[Pattern, ...] = (
    pattern(
        r"Attempt to use DefaultLogger but none has been registered",
        "OX325",
        "onnxruntime's environment was destroyed before its session ran",
        "Keep the environment (`Ort::Env`) alive as long as the session: a global or a member, not a local of the function that loads the model.",
    ),
    pattern(
        r"Got invalid dimensions for input: (\S+).*?index: (\d+) Got: (\d+) Expected: (\d+)",
        "OX222",
        "the artifact fixes dimension {2} of {1} to {4} and was given {3}",
    ),
    pattern(
        r"\bindex: (\d+) Got: (\d+) Expected: ?(\d*)|Got invalid dimensions for input",
        "OX222",
        "the artifact fixes dimension {1} of an input to {3} and was given {2}",
    ),
    pattern(
        r"Invalid rank for input: (\S+) Got: (\d+) Expected: (\d+)|Invalid rank for input",
        "OX224",
        "the input {1} has {2} dimensions and the graph takes {3}",
    ),
    pattern(
        r"[Nn]umpy_type \S+ can't be converted to MLDataType|Unable to handle object of type|"
        r"Unexpected input data type\. Actual: \((tensor\(\w+\))\)\s*,\s*expected: \((tensor\(\w+\))\)|Unexpected input data type|"
        r"Actual: ?\([^)\s]+\) ?, ?expected: ?\(",
        "OX224",
        "an input is fed as {1} and the graph takes {2}",
    ),
    pattern(
        r"Missing Input: (\S+\.(?:weight|bias|gamma|beta))\b",
        "OX325",
        "a node misses the stored tensor {1}, which a rewrite of onnxruntime lost",
    ),
    pattern(
        r"Invalid (?:Feed )?Input Name:? ?(\S+)|Required inputs \((\[.*?\])\) are missing|Invalid input name: (\S+)|Missing Input: (\S+)|"
        r"Model requires (\d+) inputs|[Ii]nput \S+ not found in the graph|input '?([^'\s]+)'? is missing in 'feeds'|Invalid [Oo]utput [Nn]ame:? ?(\S+)|"
        r"Input name: '?([^'\s]+)'? is not in the metadata|Tensor element data type discovered|Input must be a list of dictionaries or a single numpy array|"
        r"tried creating tensor with negative value in shape|shape\.Size\(\) must >= ?0|not enough space: expected|Length of memory \(\d+\) must match product of dimensions|"
        r"Tensor's size\(\d+\) does not match data length|failed to call OrtRun\(\)\. (?:error code = |ERROR_CODE: )2\b|"
        r"Unable to convert .{0,60}to (?:an )?OrtValue|Cannot convert (?:class )?\S+ to an? OnnxTensor|tensor's data must be type of|"
        r"Unsupported (?:tensor|value) type for (?:input|feed)|Unexpected (?:input|feed) type|Unknown input name|Error mapping feeds|"
        r"IsTensor\(\) was false|Trying to get a Tensor, but got|Unexpected number of (?:in|out)puts|\brun\(\) missing \d+ required positional|\w+ not set in GeneratorParams",
        "OX224",
        "the names or the number of the fed inputs are not those of the graph ({1})",
    ),
    MEMORY,
    pattern(
        r"indices element out of data bounds|idx=(-?\d+) must be within|[Ii]ndex(?:es|ices)? out of (?:bounds|range)|invalid ind(?:ice|ex) found|"
        r"Out of range value in index",
        "OX225",
        "an index lies outside the table that it selects from",
    ),
    LIBRARIES,
    PROVIDER,
    pattern(
        r"Non-zero status code.{0,500}(?:type (?:is )?not supported for|[Oo]nly [\w ,-]{1,40} (?:is|are) supported|"
        r"[Uu]nsupported '?(?:element|data|input|tensor|d) ?type)",
        "OX308",
        "onnxruntime has the operator and not for this dtype or rank",
    ),
    pattern(
        r"Non-zero status code returned while running (\S+) node\b(?!\.?\s*\Z)(?:\.? ?Name:\s*['\"]([^'\"]*)['\"])?|"
        r"Non-zero status code returned while running Node: (\S+) Status Message|Name:\s*'([^']*)' Status Message: \S",
        "OX223",
        "{1} node ({2}) fails on sizes that PyTorch accepts",
    ),
    pattern(r'Kernel "\[(\w+)\] ([^"]*)" failed', "OX223", "{1} node {2} fails on sizes that PyTorch accepts"),
    pattern(
        r"cannot be reshaped to the requested shape|Status Message: .{0,900}\bwas false\b|Attempting to broadcast an axis by a dimension other than 1|"
        r"Non concat axis dimensions must match|[Dd]imension (?:mismatch|of input \d+ must be 1)|mismatch.{0,30}dims?\b",
        "OX223",
        "a node fails on sizes that PyTorch accepts",
    ),
)

WIDE: tuple[Pattern, ...] = (
    pattern(
        r"unknown exception in (?:Load|Initialize)|Unable to load from type '|Can't create (?:a )?session|Can't load a model|[Ff]ailed to (?:load|"
        r"create) (?:the )?(?:model|session)|GENERAL ERROR",
        "OX303",
        "onnxruntime cannot load the file, and does not say why",
    ),
    pattern(
        r"\[ONNXRuntimeError\] : 9 : |ErrorCode:NotImplemented|ORT_NOT_IMPLEMENTED|NOT_IMPLEMENTED",
        "OX308",
        "onnxruntime has not implemented what a node asks for",
    ),
    pattern(r"pybind11_state\.InvalidGraph", "OX306", "the graph is not valid by the rules of ONNX"),
    pattern(
        r"\bonnxruntime::\w[\w:<>~]*.{0,600}\bwas false\b",
        "OX325",
        "a check inside onnxruntime fails, outside of a node's run",
    ),
)
"""What says no more than the kind of status or where it was raised: asked last."""

NODE = re.compile(
    r"(?:running \w+ node\. Name:|node with name |in node \(|Node \(|node_index:? ?|Node:)\s*'?([^'()\s]+)'?", re.S
)


def named_node(text: str) -> str | None:
    """The node that a message names."""
    match = NODE.search(text)
    return match.group(1) if match else None
