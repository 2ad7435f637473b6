"""What people write where no message was printed: the failure in their own words. Asked when no message is known."""

from __future__ import annotations

from onnxproof.diagnosis.pattern import Pattern, pattern


def _any(*phrases: str) -> str:
    return "|".join(phrases)


ANSWERS = (
    r"\b(?:outputs?|results?|predictions?|answers?|scores?|logits|probabilit\w+|values?|accurac\w+|detections?|boxes|masks?|"
    r"embeddings?|inference)\b"
)
APART = (
    r"(?:\b(?:differ(?:s|ed|ent|ently|ence|ences)?|do(?:es)?(?: not|n'?t) (?:match|agree)|mismatch\w*|inconsisten\w+|discrepan\w+|deviat\w+|wrong|"
    r"incorrect\w*|inaccurate|garbage|(?:is|are) not (?:equal|identical|consistent|correct)|not (?:the )?same|all (?:zeros?|the same)|"
    r"worse|degrad\w+|drop(?:s|ped)?)\b|(?:\bnot|n't) (?:seem |look )?(?:right|correct)\b)"
)
NAN = r"\b(?:NaNs?|infs?|infinit\w+)\b"
SIZE = r"(?:batch|shapes?|axes|axis|dims?|dimensions?|sizes?|lengths?|resolutions?|seq\w*)"
FIXED = r"(?:static|fixed|constant|hard-?coded|baked in|specializ\w+)"
FAILS = r"(?:fail\w*|errors?|exception|broken|(?:not|n't) work\w*)"
PROVIDER = r"\b(TensorRT|CUDA|OpenVINO|DirectML|DML|CoreML|QNN|NNAPI|XNNPACK|ROCm|MIGraphX|WebGPU|WebNN|VitisAI|CANN)\b"
PROGRAM = r"\b(?:process|program|app|application|kernel|python|terminal|script|server|browser|tab|service)\b"

PATTERNS: tuple[Pattern, ...] = (
    pattern(
        _any(
            r"\bh[au]ngs?\b",
            r"\bgets? stuck|\bstuck (?:at|on|in|for|when|while|forever)",
            r"\bfr[eo]ez(?:es?|ing)\b|\bfrozen? (?:at|when|while|during)",
            r"dead-?lock|infinite (?:loop|recursion)",
            r"(?:been|after|for|waited) (?:over |more than |about )?\d+ (?:minutes|mins|hours)\b",
            r"\bis never reached|nothing happens|no response\b|卡住|卡死|一直卡|无响应",
            r"never (?:returns?|finish\w*|ends?|completes?)",
            r"(?:takes?|runs?|running|waits?) (?:for ?ever|indefinitely)",
        ),
        "OX002",
        "a stage does not end",
    ),
    pattern(
        _any(
            r"内存(?:泄[漏露]|不足|溢出)|显存(?:不足|溢出|泄[漏露])",
            r"memory is (?:used up|full|exhausted)|(?:higher|more|much|lots? of) (?:v?ram|memory)\b|\d+ ?GB of v?ram",
            r"\bOOM\b|memory[- ]leak\w*|leak(?:s|ing|ed)? (?:gpu |cpu )?memory",
            r"memory (?:usage|consumption|footprint)?.{0,30}(?:grow\w*|increas\w+|explod\w+|too (?:high|large|much))",
            r"(?:runs?|ran|running) out of (?:\w+ )?memory|too much (?:\w+ )?memory",
            r"(?:takes?|us\w+|needs?|consum\w+|allocat\w+) (?:\w+ )?\d+ ?[GM]i?B (?:of )?(?:\w+ )?(?:memory|v?ram)",
            r"(?:consum|us)\w+ (?:all|more and more) (?:of )?(?:the |my )?(?:\w+ )?memory",
        ),
        "OX003",
        "memory runs out",
    ),
    pattern(
        _any(
            r"\bseg-?fault(?:s|ed|ing)?\b|\bcore dump|\bhard fault",
            rf"{PROGRAM}.{{0,40}}\b(?:exits?|quits?|dies|died|terminates?|(?:is|was) killed)\b",
            r"\bcr[au]sh(?:es|ed|ing)?\b|\bprogram breaks?\b|\bturns? off\b|崩溃|闪退|段错误|程序(?:结束|退出|终止|中断)",
            r"(?:fail\w*|suddenly) without (?:any )?(?:error|message)",
            r"(?:no|any|without) errors?\b.{0,80}(?:no|not|n't).{0,20}(?:output|file)",
            r"(?:exit|quit|stop|clos|break|end|terminat)\w*.{0,80}(?:without|with no|no) (?:any |an )?(?:error|exception|message|warning)s?\b",
        ),
        "OX001",
        "the process died",
    ),
    pattern(
        _any(
            rf"{NAN}.{{0,40}}{ANSWERS}",
            rf"(?:{ANSWERS}|\b(?:returns?|gives?|gets?|got|produces?|becomes?|predicts?|all)\b).{{0,60}}{NAN}",
        ),
        "OX205",
        "one side gives NaN or an infinity",
    ),
    pattern(
        _any(
            rf"(?:dynamic|variable|arbitrary|different|other|multiple|any) (?:\w+[ /-]){{0,2}}{SIZE}\b.{{0,80}}(?:{FAILS}|(?:not|n't) (?:support|possible|respect|"
            rf"dynamic|allow)\w*|ignored|{FIXED}|only (?:accept|work|support))",
            r"when the (?:\w+ )?inputs? (?:is|are|has|have) (?:not the same|a different|different|another|other)",
            r"(?:无法|不能).{0,20}(?:batch|动态|尺寸|维度)",
            r"(?:动态|不同)(?:的)?(?:batch|尺寸|输入|维度|形状).{0,30}(?:失败|不支持|报错|错误)",
            r"(?:not|n't) (?:support|accept|allow|handle) (?:\w+ ){0,2}(?:dynamic|variable|arbitrary|other)",
            rf"\b{SIZE}\b.{{0,60}}(?:hard-?coded|baked in|(?:is|are|becomes?|stays?|remains?) {FIXED}|specializ\w+)",
            rf"(?:wrong|incorrect) {SIZE}\b|\b{SIZE} (?:is|are) .{{0,20}}(?:incorrect|wrong)\w*",
            rf"\bfixed (?:input |sequence )?{SIZE}\b|\b{SIZE} (?:that )?(?:differs?|is different|other than)\b|batch_size other than 1",
            rf"(?:works?|fine|ok) (?:only )?(?:with|for|when) (?:a )?{SIZE}\b.{{0,30}}\d.{{0,40}}(?:fail|but|not)",
            rf"(?:only|just) (?:accepts?|works?|supports?|runs?) .{{0,40}}\b{SIZE}\b|(?:accepts?|works?|supports?|runs?) only (?:with|for|on) .{{0,20}}\b{SIZE}\b",
        ),
        "OX104",
        "a dimension that should be dynamic is fixed in the file",
    ),
    pattern(
        _any(
            r"(?:weights?|initiali[sz]ers?|parameters?|constants?).{0,30}(?:duplicat\w+|(?:stored|saved) twice)",
            r"(?:twice|double|[\d.]+x|much|far|way) (?:as )?(?:large|big|larger|bigger) (?:as|than)",
            r"(?:huge|large|bigger|larger) (?:onnx )?(?:file|model) ?(?:size)? (?:than|because|after)",
            r"file size (?:is |has )?(?:doubl\w+|increas\w+|grow\w*)",
        ),
        "OX314",
        "the file is larger than the weights explain",
    ),
    pattern(
        _any(
            r"dropout.{0,40}(?:still|active|applied|enabled|in the (?:exported|onnx))",
            r"(?:random|non-?determinis\w+|stochastic) (?:outputs?|results?|ops?|nodes?)",
        ),
        "OX318",
        "the file holds random or training operators",
    ),
    pattern(
        _any(
            r"(?:slower|takes (?:longer|more time)) than (?:in |on |with )?(?:the )?(?:py)?torch",
            r"\b(?:onnx\w*|ort)\b.{0,80}\bslower\b",
        ),
        "OX404",
        "onnxruntime is slower than PyTorch",
    ),
    pattern(
        r"shapes? (?:difference|differs?|(?:is|are) different|mismatch\w*)|(?:different|strange|wrong|unexpected|incorrect) (?:output |embedding )?shapes?\b",
        "OX215",
        "an output has another shape",
    ),
    pattern(
        r"(?:performance|accuracy|precision|recall|\bm?AP\b|\bF1\b|\bWER\b).{0,80}\d(?:\.\d+)? ?%",
        "OX507",
        "the quality on data drops",
    ),
    pattern(
        _any(
            r"速度(?:很|太|变|较)?慢|推理(?:很|太|变)?慢",
            r"(?:very|too|so|extremely|really|super) slow\b|slow (?:inference|start\w*|load\w*|session)",
            r"takes? (?:about |around |more than |over )?(?:\d+|several|many) ?(?:s|sec\w*|min\w*|hours?)\b",
            r"(?:high|increased|huge) latency|performance (?:regression|degradation|drop)",
        ),
        "OX403",
        "it is slow",
    ),
    pattern(
        _any(
            r"(?:uses?|using|occup\w+) (?:all|every|too many|100 ?%)(?: of)?(?: the| my)? (?:cpu|cores?|threads?)",
            r"cpu (?:usage|load|utili[sz]ation).{0,20}(?:100|high|too)",
            r"pthread_setaffinity_np|SetThreadAffinity",
        ),
        "OX414",
        "onnxruntime's threads do not fit the processors that it may use",
        "Say how many it may use: `SessionOptions.intra_op_num_threads`, or `--threads` for onnxproof.",
    ),
    pattern(
        _any(
            r"(?:not|n't|never|instead of|rather than) us(?:e|es|ed|ing) (?:the |my |a )?(?:gpu|cuda|npu|tensorrt|directml|coreml)",
            r"(?:falls?|falling|fell) back to (?:the )?cpu|(?:only|still|always) (?:runs?|running|uses?|using) (?:on |the )*cpu\b",
            r"(?:running|runs|run|executed|executes) on (?:the )?cpu\b",
            r"\b(?:wasm|webgpu|webgl)\b.{0,40}not (?:found|available|used)",
            r"(?:gpu|cuda|npu) (?:is )?not (?:used|utili[sz]ed|detected|found|available)",
        ),
        "OX304",
        "the provider that was asked for is not used",
    ),
    pattern(
        _any(
            r"onnx[-_]?sim(?:plif\w+)?\b|onnx[-_]?optimizer\b|onnx[-_]?slim\b",
            r"failed to simplif\w+|simplif\w+ (?:fail\w*|error)",
        ),
        "OX137",
        "a tool that rewrites the file after the export fails, and neither the exporter nor onnxruntime",
        "Leave the tool out: onnxruntime simplifies the graph when it loads it, and a file that is not rewritten is the one that was verified.",
    ),
    pattern(
        _any(
            rf"{ANSWERS}.{{0,80}}{APART}|{APART}.{{0,40}}{ANSWERS}",
            r"max(?:imum)?\.? (?:abs\w*\.? )?diff\w*\W{1,4}\d",
            r"(?:not|n't) (?:get|getting|give|giving|produce|return|have|give me) the same",
            r"(?:loss|lack) of accuracy|(?:zero|0 ?%) accuracy|cosine (?:distance|similarity)|errors? between (?:the )?(?:onnx|pytorch|torch|original)",
            r"(?:results?|predictions?|detections?|scores?|outputs?|vocals?|audio|images?).{0,60}(?:mistakes?|strange|weird|chaotic|nois[ey]\w*|garbled|nonsense|"
            r"useless|unusable|so low|too low|random|blurry)|(?:pure|garbled|random) noise",
            r"results? (?:that )?i (?:do not|don't) get|cannot (?:recogni[sz]e|detect|identify)|\bdifferents\b",
            r"\b(?:pt|pth|pytorch|torch|original|checkpoint)\b.{0,60}\b(?:correct\w*|fine|good|normal|right|well)\b.{0,200}\bonnx\b",
            r"\bonnx\b.{0,200}\b(?:pt|pth|pytorch|torch|original|checkpoint)\b.{0,60}\b(?:correct\w*|fine|good|normal|right|well)\b",
            r"black (?:output |result )?images?|always (?:the )?same|regardless of (?:the )?input",
            r"(?:export|convert)(?:s|ed)? (?:wrong|incorrect)\w*",
            r"(?:结果|输出|精度|数值).{0,12}(?:不一致|不一样|不对|不同|错误|不可用|差异|下降|损失|异常|有误|偏差)",
            r"toleran\w+.{0,60}too (?:small|strict|tight|low)",
            r"(?:accuracy|precision|quality) (?:loss|drop|degradation|issue|problem)",
        ),
        "OX201",
        "the file answers otherwise than the module",
        "Prove it: `onnxproof prove TARGET --onnx model.onnx` tells rounding from a real fault, and names the node and the line.",
    ),
    pattern(
        _any(
            r"(?:inputs?|outputs?) .{0,40}(?:is|are|was|were) (?:missing|removed|dropped|pruned|optimi[sz]ed (?:away|out)|not (?:in|part of|used))",
            r"(?:missing|lost|lose|loses|drops?) (?:(?:an?|some|one|the|names|of) ){0,4}(?:\S+ )?inputs?\b|only (?:one|\d+) inputs?\b",
        ),
        "OX218",
        "the inputs of the file are not those of the module",
    ),
    pattern(
        r"(?:fail\w*|error|cannot|can't|unable|problem|due to|because of).{0,60}custom (?:\w+ ){0,2}(?:kernels?|ops?|operators?|layers?|functions?|cuda)\b|"
        r"custom (?:\w+ ){0,2}(?:kernels?|ops?|operators?|cuda)\b.{0,60}(?:fail\w*|error|not|n't)",
        "OX117",
        "a custom operator has no ONNX translation",
    ),
    pattern(
        r"(?:ScriptModule|torch\.jit\.script|scripted (?:model|module)|torchscript (?:model|module))"
        r".{0,120}(?:fail\w*|error|cannot|unknown type|not)|__torch__\.[\w.]+.{0,40}unknown type",
        "OX121",
        "the module is scripted, and the exporter does not take it",
    ),
    pattern(
        r"\bop?t?set(?:[ _]version)?[ =]*(\d+)\b.{0,60}\b(?:fail\w*|error|not|n't|unsupported)|"
        r"(?:cannot|can't|not|only|fail\w*|unable|error).{0,60}\bop?t?set(?:[ _]version)?[ =]*(\d+)",
        "OX127",
        "it is not in the opset that was asked for ({1})",
    ),
    pattern(
        r"(?:fail\w*|error|cannot|can't|not|problem|unable).{0,100}external[ _]data\b|external[ _]data\b.{0,100}(?:fail\w*|error|cannot|can't|not|problem|missing)",
        "OX302",
        "the file with the weights is not found beside the model",
    ),
    pattern(
        r"(?:not|n't|cannot|fail\w*|error|unsupported).{0,60}\bcomplex(?: ?(?:64|128|inputs?|tensors?|numbers?|values?|types?|dtypes?|outputs?|ops?))?\b|"
        r"\bcomplex (?:inputs?|tensors?|numbers?|values?|types?|dtypes?|outputs?|ops?)\b.{0,60}(?:not|n't|cannot|fail\w*|error|unsupported)",
        "OX116",
        "the model works with complex numbers where the exporter has none",
    ),
    pattern(
        r"(?:not|n't) support .{0,60}(?:type )?(?:as )?(?:an )?inputs?\b",
        "OX115",
        "an input or output is of a type that a graph cannot hold",
    ),
    pattern(
        _any(
            r"\b((?:aten|prim|torchvision|quantized|prims)::\w+)",
            r"不支持.{0,10}(?:算子|操作|层)|(?:算子|操作).{0,20}不支持",
            r"['`\"]([\w:.]+)['`\"]? (?:is |are |op |operator |layer )*(?:not|un) ?supported",
            r"(?:not|n't|can'?t be|cannot be|never) supp?ort(?:ed)? (?:in|by|for) onnx|onnx (?:export\w* )?(?:does not|doesn't|do not|don't|cannot|can't) support",
            r"(?:error|problem|issue|fail\w*|trouble) (?:on|in|with|at|for) (?:the )?([\w.:]+) (?:operation|operator|op|layer|function|module)\b",
            r"(?:operation|operator|op|layer|function)s? (?:[\w.:'`]+ )?(?:is |are )?(?:not|un) ?supported|unsupported (?:operation|operator|op|layer|function)s?\b",
        ),
        "OX108",
        "the exporter has no translation for an operator ({1})",
    ),
    pattern(
        r"invalid combination of arguments|(?:missing|needs?|requires?) (?:\w+ ){0,4}(?:arguments?|parameters?)\b",
        "OX134",
        "the module itself refuses the example inputs",
    ),
    pattern(rf"{PROVIDER}.{{0,80}}\b{FAILS}", "OX326", "the provider fails itself ({1})"),
    pattern(
        _any(
            r"\bassert [\w.]+ (?:is|==|!=|in|not|>|<)|\bpanicked at\b|Permission denied|object has no attribute",
            r"Session (?:already|has been|is) (?:disposed|started|released|closed)|Expected \S+ to be an initializer",
        ),
        "OX137",
        "the script around the export fails; neither the exporter nor onnxruntime complains",
    ),
)
