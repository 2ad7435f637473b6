"""Whose bug it is that a random model does not ship, told by the forms and messages that were looked into by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Cause:
    """A bug that was looked into."""

    whose: str
    """`exporter`, `runtime` or `ours`."""
    what: str
    form: str
    """Of the seed or the model of one operation, then the lines, then the nodes that findings point at; a regular expression."""
    code: str = ""
    """Of a finding that gates, or how the process died; a regular expression."""
    script: str = ""
    """Below `benchmarks/jury/upstream`."""


CAUSES = (
    # Before the bugs that it shows: they are none of an input that the output is not asked about.
    Cause(
        "ours",
        "NaN that becomes a number or a place, in an output that deals with none",
        r"^(166|817|1002|1228|1464|1562|1652)\b",
        "OX20[157]",
    ),
    Cause("exporter", "no translation for this operation, or it fails", "", "OX108|OX128|OX126"),
    Cause(
        "exporter",
        "`torch.div(…, rounding_mode='trunc')` of integers goes through float32",
        "rounding_mode",
        "OX207",
        "truncated_division",
    ),
    Cause(
        "exporter",
        "`logsigmoid` is log(sigmoid(x)), infinite below −88; with onnxruntime's sigmoid below −18",
        "logsigmoid",
        "OX205",
        "sigmoid_of_negative",
    ),
    Cause("exporter", "`logaddexp` is log(exp(x) + exp(y)), infinite above 88", "logaddexp", "OX205"),
    Cause(
        "exporter",
        "`logcumsumexp` is the logarithm of a running sum of exponentials, which underflow",
        "logcumsumexp",
        "OX20[15]",
    ),
    Cause(
        "exporter",
        "`atan2` is an arctangent of a quotient with patches, wrong at zeros and NaN",
        r"torch\.atan#\(",
        "OX20[15]",
    ),
    # In the first the step that shows it is a floor far behind it.
    Cause("exporter", "`xlog1py` is x·log(1 + y), which loses small values", r"xlog1py|^158\b", "OX20[1237]"),
    Cause(
        "exporter",
        "`log1p` is log(1 + x), which loses small values",
        r"log1p\(|^(356|799|1442)\b",
        "OX20[1237]",
        "log1p_of_small",
    ),
    Cause(
        "exporter",
        "`erfc` is 1 − erf(x), which loses small results",
        r"erfc|^(243|1609)\b",
        "OX20[123]",
        "erfc_of_large",
    ),
    Cause("exporter", "`Sign` hands NaN on, of which PyTorch makes 0", r"torch\.sign\(", "OX205", "sign_of_nan"),
    Cause("exporter", "`heaviside` of NaN is 1, in PyTorch 0", r"torch\.heaviside\(", "OX201", "heaviside_of_nan"),
    Cause("exporter", "`logit` with an epsilon makes a number of NaN", r"torch\.logit\(", "OX20[15]", "logit_of_nan"),
    Cause(
        "exporter",
        "a lower limit (of a norm that something is divided by) is a Clip, whose upper one is float32's largest number: infinity is none any more",
        r"^(123|1532)\b",
        "OX20[157]",
        "clip_of_infinity",
    ),
    Cause(
        "exporter",
        "`interpolate` with antialias weighs by the ratio of the sizes and not by the scale that was given",
        r"scale_factor=.*antialias=True",
        "OX201",
        "antialias_scale",
    ),
    Cause(
        "exporter",
        "attention over NaN: PyTorch's own kernel gives 0 where the softmax of the file gives NaN",
        r"^201\b",
        "OX20[57]",
    ),
    Cause("exporter", "`expm1` is exp(x) − 1, which loses small values", "expm", "OX203"),
    Cause(
        "exporter",
        "the older exporter's `cdist` of a dynamic number of points is √(|x|² + |y|² − 2·x·y), which has no digits of a small distance",
        r"cdist.* /\S*Sqrt\b",
        "OX201",
        "distance_by_products",
    ),
    # The line that is named stands behind it in some.
    Cause(
        "exporter",
        "the older exporter, which alone translates `cdist`, takes its root with an exponent of 0.49999975",
        r"cdist|^(402|448)\b",
        "OX201",
        "distance_exponent",
    ),
    Cause("runtime", "TopK puts NaN anywhere, which the model asks for", r"^(1153|1703)\b", "OX201", "top_k_of_nan"),
    Cause(
        "exporter",
        "the older exporter, which alone translates `cdist`, takes its root with an exponent of 0.49999975",
        r"^1909\b",
        "OX201",
        "distance_exponent",
    ),
    Cause(
        "runtime",
        "a reduction of something empty along a negative axis keeps its shape",
        r"^1935\b",
        "OX215",
        "reduction_of_nothing",
    ),
    Cause(
        "exporter",
        "`remainder` of floats is x − floor(x / y)·y, which loses the digits of a large x",
        r"^1984\b",
        "OX202",
        "remainder_of_large",
    ),
    Cause("runtime", "ReduceMin passes over NaN, which the model asks for", r"^1777\b", "OX201", "minimum_of_nan"),
    Cause("runtime", "MaxPool loses NaN, which the model asks for", r"^1797\b", "OX201", "max_pool_of_nan"),
    Cause(
        "runtime",
        "Sigmoid of a large negative number is 0, of which a norm makes all the difference",
        r"^1745\b",
        "OX201",
        "sigmoid_of_negative",
    ),
    Cause("exporter", "`erfc` is 1 − erf(x), which loses small results", r"^1828\b", "OX202", "erfc_of_large"),
    Cause(
        "exporter",
        "`floor_divide` of floats is the floor of a rounded quotient: one too many at multiples",
        r"torch\.floor_divide\(",
        "OX202",
        "floor_division_of_multiple",
    ),
    Cause("runtime", "Einsum of something empty kills the process", r"^1355\b", "signal 8", "einsum_of_nothing"),
    Cause("runtime", "LSTM makes numbers of NaN, which the model asks for", r"^(1159|1485)\b", "OX201", "lstm_of_nan"),
    Cause("exporter", "a size that was to be dynamic is baked in by the capture", "", "OX104"),
    Cause(
        "exporter",
        "`roll` takes its shift modulo the size, which is zero for something empty",
        r"\.roll\(",
        "OX223",
        "roll_of_nothing",
    ),
    Cause(
        "runtime",
        "shape inference before opset 22 counts a window of `ceil_mode` too many: no session can be built, or it refuses every input",
        r"^(980|1106|1262|1564)\b",
        "OX223|OX325",
        "ceil_mode_shape",
    ),
    Cause(
        "runtime",
        "a reduction of something empty along a negative axis keeps its shape",
        r"^(88|125|830|929|965|1241|1581|1587)\b",
        "OX215|OX223",
        "reduction_of_nothing",
    ),
    Cause("runtime", "Pad that wraps around refuses something empty", r"^976\b", "OX223"),
    Cause(
        "exporter",
        "the older exporter's `index_add` along an axis counted from the end: the file refuses every input",
        r"\.index_add\(-",
        "OX223",
    ),
    Cause("exporter", "a size is baked into a node inside: the file refuses other ones", "", "OX223"),
    Cause(
        "exporter",
        "`bucketize` is written with shapes that contradict each other: no session can be built",
        "bucketize",
        "OX306",
    ),
    Cause("exporter", "the older exporter's `unfold` leaves the window's axis where it stood", r"\.unfold\(", "OX215"),
    Cause("exporter", "the older exporter's `cosine_similarity` limits the product of the norms", "cosine", "OX250"),
    Cause("exporter", "the older exporter divides negative integers otherwise", "floor_divide", "OX207"),
    Cause(
        "exporter", "the older exporter's `floor_divide` of floats cuts off", r"^184\b", "OX201", "older_floor_division"
    ),
    Cause(
        "exporter",
        "`floor_divide` of floats is the floor of a rounded quotient: one too many at multiples",
        r"torch\.floor_divide\(\w+, -?\d+\.\d",
        "OX2(01|50)",
        "floor_division_of_multiple",
    ),
    Cause(
        "exporter",
        "`remainder` of floats is x − floor(x / y)·y, which loses the digits of a large x",
        r" % \d+\.\d|torch\.remainder\(",
        "OX20[17]",
        "remainder_of_large",
    ),
    # The places that show it are of no node alone.
    Cause(
        "exporter",
        "a quotient by infinity that is rounded down: −1 in PyTorch, 0 in the file",
        r'rounding_mode="floor"|^66\b',
        "OX201",
        "floor_division_by_infinity",
    ),
    Cause("runtime", "MaxPool loses NaN, which the model asks for", "max_pool", "OX20[57]", "max_pool_of_nan"),
    Cause(
        "runtime",
        "a rewrite (MatMulScaleFusion) takes away a scaling that another product needs: no session can be built",
        r"^713\b",
        "OX306|OX325",
        "scale_fusion_of_shared",
    ),
    Cause(
        "runtime",
        "a rewrite (Pad_Fusion) makes padding of MaxPool of zeros: no session can be built, or −∞ instead of 0",
        r"^802\b",
        "OX325",
        "pad_fusion_of_max_pool",
    ),
    Cause(
        "runtime",
        "ArgMin and ArgMax pass over NaN, which the model asks for",
        r"\.arg(min|max)\(|^735\b",
        "OX20[17]",
        "argmin_of_nan",
    ),
    Cause(
        "ours",
        "a threshold met exactly: the float64 copy compares with a number that float32 does not have",
        "> -0.52",
        "OX201",
    ),
    Cause("ours", "a trial at a step that float64's own rounding decides", r"\* 3\)\.long\(\)", "OX250"),
    Cause("ours", "a step behind a pad that is written in place, paired with the pad", r"^1103\b", "OX250"),
    Cause("ours", "a tie of numbers that a kernel flushes: one sample makes it, in one order", r"^1505\b", "OX201"),
    Cause(
        "ours",
        "a step inside an operator that looks like one before or behind it, paired with it",
        r"^(1616|1689)\b",
        "OX250",
    ),
    Cause("ours", "the order among NaN that arise from numbers", r"^1682\b", "OX207"),
    Cause("ours", "nothing but rounding, of which a kernel makes nothing in some rows", r"^1134\b", "OX201"),
    Cause("runtime", "Sign of int64 calls 2³¹ … 2³² − 1 negative", r"torch\.sign\(", "OX207", "sign_of_int64"),
    Cause("runtime", "Clip of int64 gives back 2³² − 1 for a limit of 3", r"\.clamp\(", "OX20[17]"),
    Cause("runtime", "ReduceProd of int64 multiplies in float64", r"\.prod\(", "OX207", "product_of_int64"),
    Cause("runtime", "ReduceSum of int64 adds in float64", r"\.sum\(", "OX207", "sum_of_int64"),
    Cause("runtime", "Mod with fmod of int64 is computed in float64", r"torch\.fmod\(", "OX207", "fmod_of_int64"),
)
FOUND_IN_PASSING = (
    "antialias_of_width_one",
    "argmin_of_nan",
    "floor_division_by_infinity",
    "fmod_of_int64",
    "older_index_add",
    "remainder_of_large",
    "shift_of_negative",
    "sigmoid_of_negative",
)
"""Scripts of bugs that no count contains: found while others were looked into."""
MENDED = (
    "ELU, SELU and CELU of tiny negative numbers were OX202: a kernel may take 1 from an exponential",
    "`heaviside`, divisions that truncate, a running sum of zeros were OX250: a step inside an operator agreed by chance with its result and was taken for it",
    "`x == 0.39` was OX250: a trial fed a number that float32 does not have",
    "`argsort`, `sort` and `topk` of many equal values were OX207: no order is promised among them",
    "GLU of nearly closed gates was OX202 and an instance norm of equal values OX203: their rounding was not known",
    "steps that look alike on the recorded inputs (a quotient and its magnitude, zeros, parts of a sequence that repeats itself) were OX250: all ways to pair them are tried now",
    "`special.entr`, `xlogy` and attention with a mask blocked on NaN inputs: exporters ask for NaN there, the module does not",
    "equality with a number that a norm ends at was OX207, the sign of nothing OX201 and OX203: too few legal roundings were looked at",
    "MaxPool with places was OX203: the reference evaluator gives wrong ones",
    "sums of int64 were BLOCK for numbers that float64 does not hold; REVIEW now, as denormal floats are",
    "nodes behind a wrong shape or dtype, places among equal values, and sums that cancel were named as culprits",
    "`RMSNorm` without an epsilon was OX250: its float64 copy took float64's epsilon",
    "interpolation to a size that is no multiple was OX203, and `lerp` with a weight near one: numbers that float32 rounds before they cancel",
    "a deviation of numbers near 1e-30 was OX202: its squares vanish in float32",
    "what follows from a value that is zero everywhere was OX250: such values were paired with each other; so were values that are one number everywhere",
    "a value of the graph that looks like a step inside the module's product was OX250: each of the module's values that look like it may be the one",
    "SELU of tiny numbers was OX250: trials had another notion of what a kernel may lose than verification",
    "the variance of equal values and the mean beside a variance were OX202: what adding in order loses there was not known",
    "the order of what is nothing but rounding (a group norm of single numbers) was OX207 and OX250, and denormal numbers amplified OX202: "
    "no legal rounding made ties of it",
    "an order among equals that later steps use was OX203, and one choice among thousands OX207: too few roundings were asked for",
    "NaN that an output hands on was OX205 where another output deals with NaN",
    "a file that a rewrite of onnxruntime spoils was called invalid",
    "places, choices and tables beside an output that deals with NaN were OX201, OX205 and OX207: NaN was asked of the whole module",
    "the order among NaN, and among numbers that kernels flush, was OX207 and OX201: no legal rounding had another one",
    "a step behind a pad that goes round, and steps that look like one before or behind them, were OX250: they were taken for each other",
    "a size that only the example makes special (all but the first of a batch of two) was OX104: it is captured on a larger example now",
    "BatchNormalization of opsets 9 to 13, GlobalMaxPool of sequences, LpNormalization with p = 1, LRN, cubic Resize, HardSwish, far Gelu: "
    "the evaluator itself erred ([measured](evaluator.md))",
)
"""What random models and the evaluator's digits showed about this project, mended since."""


def find_cause(record: Record) -> Cause | None:
    """The first cause whose form and code fit; None where nobody has looked."""
    gates = [f for f in record.get("findings", ()) if f["severity"] != "note"]
    codes = " ".join(f["code"] for f in gates) or str(record.get("died", ""))
    named = (f.get(key, "") for key in ("text", "node") for f in gates)
    text = " ".join([str(record["seed"]), *named])
    for cause in CAUSES:
        if re.search(cause.form, text) and re.search(cause.code, codes) and codes:
            return cause
    return None
