"""What every child needs, imported where children are forked from. Not onnxruntime: importing it starts a thread."""

import numpy  # noqa: F401
import onnx.reference  # noqa: F401
import onnx_ir  # noqa: F401
import torch  # noqa: F401

# The work of every stage that most runs have: each child would import it anew.
import onnxproof.pipeline.exporting
import onnxproof.pipeline.locating
import onnxproof.pipeline.screening
import onnxproof.pipeline.trying
import onnxproof.pipeline.verifying  # noqa: F401
