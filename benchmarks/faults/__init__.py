"""Faults: wrong exports of known kind, and an input that shows each."""

from benchmarks.faults import architectures, contract, deep, edge, noise, patterns, plain, runtime, shape
from benchmarks.faults.registry import ARCHITECTURES, DYNAMIC, FAULTS, Fault

__all__ = [
    "ARCHITECTURES",
    "DYNAMIC",
    "FAULTS",
    "Fault",
    "architectures",
    "contract",
    "deep",
    "edge",
    "noise",
    "patterns",
    "plain",
    "runtime",
    "shape",
]
