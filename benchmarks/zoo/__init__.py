"""Models whose default export is correct: every alarm on one of them is a false alarm."""

from benchmarks.zoo import (
    audio,
    caches,
    convnets,
    decoders,
    jury_decisions,
    jury_networks,
    jury_numerics,
    jury_structure,
    jury_transformers,
    numerics,
    recurrent,
    seq2seq,
    structure,
    tabular,
    tempting,
    text,
    trained,
    vision,
)
from benchmarks.zoo.not_exportable import NOT_EXPORTABLE
from benchmarks.zoo.registry import ZOO, Model

__all__ = [
    "NOT_EXPORTABLE",
    "ZOO",
    "Model",
    "audio",
    "caches",
    "convnets",
    "decoders",
    "jury_decisions",
    "jury_networks",
    "jury_numerics",
    "jury_structure",
    "jury_transformers",
    "numerics",
    "recurrent",
    "seq2seq",
    "structure",
    "tabular",
    "tempting",
    "text",
    "trained",
    "vision",
]
