"""Real bugs of the exporters and of onnxruntime that reproduce today; nothing is mutated."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.inputs import Witness, given, like
from benchmarks.faults.registry import Fault, add

NAN = np.nan


def tracker(name: str, architecture: str, stage: str, witness: Witness, why: str, **export: str) -> None:
    """Register a bug."""
    add(Fault(name, "runtime", architecture, None, witness, why, "tracker", stage, export=export))


# --- onnxruntime ----------------------------------------------------------------------------------------------------

tracker(
    "pad-fused-into-max-pool",
    "pad_pool",
    "optimize",
    like("pad_pool"),
    "zeros around the picture become minus infinity when Pad is folded into MaxPool",
)


def holed(architecture: str) -> Witness:
    """A random input with a missing value."""

    def make() -> dict[str, np.ndarray]:
        inputs = like(architecture)()
        inputs["x"].reshape(-1)[-1] = NAN
        inputs["x"].reshape(-1)[1] = NAN
        return inputs

    return make


tracker("max-loses-nan", "nan_aware_max", "kernel", holed("nan_aware_max"), "ReduceMax forgets a missing value")
tracker("max-pool-loses-nan", "nan_aware_pool", "kernel", holed("nan_aware_pool"), "MaxPool forgets a missing value")
tracker("topk-loses-nan", "nan_aware_top", "kernel", holed("nan_aware_top"), "TopK sorts a missing value last")


# --- translation ----------------------------------------------------------------------------------------------------

tracker("average-pool-divisor", "divisor_pool", "translate", like("divisor_pool"), "divisor_override is ignored")
tracker(
    "floor-divide-float",
    "width_buckets",
    "translate",
    given("width_buckets", x=[[0.5, 1.0, 1.5, 3.0, 5.0, 6.0]] * 3),
    "floor of the rounded quotient: 1.0 // 0.1 is 10 instead of 9",
)
tracker("half-sum-widened", "half_totals", "translate", like("half_totals"), "a float16 sum comes back as float32")
tracker(
    "logsigmoid-underflow",
    "pair_ranker",
    "translate",
    given("pair_ranker", chosen=[[-200.0, 150, 90, -120, 80]] * 3, rejected=[[200.0, -150, -90, 120, -80]] * 3),
    "log(sigmoid(x)) instead of the stable form: minus infinity far below zero",
)
tracker(
    "logaddexp-overflow",
    "log_mixture",
    "translate",
    given("log_mixture", first=100.0, second=99.0),
    "log(exp(a) + exp(b)) without the maximum taken out",
)
tracker(
    "logcumsumexp-underflow",
    "forward_scores",
    "translate",
    given("forward_scores", x=[[-150.0, -149, -148, -100, -50, -20, -10, 0]] * 3),
    "one maximum for the whole row: early sums become minus infinity",
)
tracker(
    "expm1-cancellation",
    "interest",
    "translate",
    given("interest", rate=[[1e-6, 2e-6, 1e-7, 3e-5]] * 3),
    "exp(x) − 1 loses all digits of a small rate",
)
tracker(
    "atan2-due-west",
    "heading",
    "translate",
    given("heading", east=-1.0, north=0.0),
    "−pi instead of pi on the negative axis",
)
tracker(
    "scatter-mean-ignored",
    "mean_messages",
    "translate",
    given("mean_messages", source=[0, 1, 2, 3, 4, 0], target=[1, 1, 0, 0, 0, 3]),
    "of several messages the last one counts instead of their mean",
)
tracker(
    "attention-fully-masked",
    "masked_attention",
    "translate",
    given("masked_attention", mask=[[0, 0, 0, 0], [1, 1, 1, 1]]),
    "NaN where PyTorch gives zero",
)


tracker(
    "integer-division-in-float",
    "bucket",
    "translate",
    given("bucket", x=[[17179869183, 268435471, 1, -1]] * 3),
    "torch.div(…, rounding_mode='floor') of integers goes through float32: wrong beyond 2**24",
)


# --- the exporter's own optimiser -----------------------------------------------------------------------------------

tracker(
    "norm-epsilon-deleted",
    "unit_vectors",
    "simplify",
    given("unit_vectors", x=0.0),
    "+ 1e-8 is taken for + 0: NaN on a row of zeros",
)
tracker(
    "entropy-epsilon-deleted",
    "entropy",
    "simplify",
    given("entropy", logits=[[300.0, 0, 0, 0, 0, 0]] * 3),
    "+ 1e-10 is taken for + 0: NaN where a class is certain",
)
tracker(
    "variance-epsilon-deleted",
    "standardise",
    "simplify",
    given("standardise", x=2.0),
    "+ 1e-9 is taken for + 0: NaN on a constant row",
)
tracker(
    "relu-lost-after-clamp",
    "penalty",
    "simplify",
    like("penalty"),
    "relu(clamp(x, −3, −1)) is merged into a clip that stays at −1",
)


# --- the TorchScript exporter ---------------------------------------------------------------------------------------


def torchscript(name: str, architecture: str, stage: str, witness: Witness, why: str) -> None:
    """Register a bug that only the TorchScript exporter has."""
    tracker(name, architecture, stage, witness, why, exporter="torchscript")


torchscript(
    "index-put-repeats",
    "histogram",
    "translate",
    given("histogram", index=[2, 2, 2, 4], weight=[1.0, 2.0, 4.0, 8.0]),
    "of several weights for one bucket only one is added",
)
torchscript(
    "integer-division-negative",
    "grid_cell",
    "translate",
    given("grid_cell", x=[[-1, -9], [-11, 25], [-10, 0]]),
    "integer // rounds towards zero",
)
torchscript(
    "branch-on-values",
    "by_value",
    "capture",
    given("by_value", x=-2.0),
    "a Python branch on values is decided by the example",
)
torchscript(
    "python-number-baked",
    "item_scale",
    "capture",
    like("item_scale", scale=50.0),
    "float(tensor) becomes the example's number",
)
torchscript(
    "shift-of-negatives",
    "shifted_bits",
    "translate",
    given("shifted_bits", x=[[-1, -3, -7, 5], [8, -9, 2, 1], [0, 1, -5, 6]]),
    ">> is translated as a division that rounds towards zero",
)
