"""What every child needs, imported where children are forked from. Not onnxruntime: importing it starts a thread."""

import numpy  # noqa: F401
import onnx.reference  # noqa: F401
import onnx_ir  # noqa: F401
import torch  # noqa: F401
