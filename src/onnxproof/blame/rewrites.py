"""Which onnxruntime optimisation: the one whose absence heals the output."""

from __future__ import annotations

from collections.abc import Callable

# onnxruntime ignores names that it does not know: those of several releases may stand here.
REWRITES = (
    "Pad_Fusion ConvAddFusion ConvMulFusion ConvBNFusion ConvActivationFusion ConvAddActivationFusion MatMulAddFusion "
    "MatMulScaleFusion MatmulTransposeFusion MatMulActivationFusion MatMul_BatchNormalization_Fusion GemmActivationFusion "
    "GemmSumFusion GemmTransposeFusion GeluFusionL1 GeluFusionL2 FastGeluFusion QuickGeluFusion BiasGeluFusion LayerNormFusionL1 "
    "LayerNormFusionL2 SimplifiedLayerNormFusion SkipLayerNormFusion EmbedLayerNormFusion AttentionFusion BiasSoftmaxFusion "
    "BiasDropoutFusion ReshapeFusion DivMulFusion NotWhereFusion ClipQuantRewrite ReluQuantRewrite ConstantFolding "
    "CommonSubexpressionElimination EliminateIdentity EliminateSlice EliminateDropout UnsqueezeElimination ExpandElimination "
    "CastElimination CastChainElimination NoopElimination PreShapeNodeElimination GatherSliceToSplitFusion GatherToSliceFusion "
    "TransposeOptimizer NchwcTransformer NhwcTransformer ConstantSharing DoubleQDQPairsRemover WhereDummyDq "
    "SliceConcatToSpaceToDepthFusion LabelEncoderFusion FuseReluClip InsertCastTransformer RemoveDuplicateCastTransformer"
).split()


def find_healing_rewrite(healed: Callable[[tuple[str, ...]], bool]) -> str | None:
    """Bisect: halves of the rewrites switched off, down to the one that heals. None where several are needed, or none helps."""
    if not healed(tuple(REWRITES)):
        return None
    suspects = list(REWRITES)
    while len(suspects) > 1:
        half = suspects[: len(suspects) // 2]
        rest = suspects[len(suspects) // 2 :]
        if healed(tuple(half)):
            suspects = half
        elif healed(tuple(rest)):
            suspects = rest
        else:
            return None
    return suspects[0]
