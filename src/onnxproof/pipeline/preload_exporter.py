"""What an export imports besides; the exporter's own modules come with its registry."""

import contextlib

import torch._dynamo
import torch.export._trace
import torch.fx.experimental.validator
import torch.onnx  # noqa: F401

with contextlib.suppress(Exception):  # private names: without them the children are slower, not wrong
    from torch.onnx._internal.exporter import _core  # noqa: F401  # loaded for the children

    from onnxproof.artifact.registry import make_registry

    make_registry()
