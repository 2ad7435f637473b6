"""Why something failed: messages of torch, onnxruntime and their neighbours, and people's own words, told as findings."""

from __future__ import annotations

from onnxproof.diagnosis.failures import (
    diagnose_export,
    diagnose_loading,
    diagnose_running,
    diagnose_text,
    named_node,
    refused_size,
)

__all__ = ["diagnose_export", "diagnose_loading", "diagnose_running", "diagnose_text", "named_node", "refused_size"]
