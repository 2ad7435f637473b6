"""How a runtime adds products of bytes, on the CPU that it runs on: it is asked, since builds, emulators and languages differ."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxproof.candidates.candidate import Candidate
from onnxproof.errors import FindingError, Rejected, UserError
from onnxproof.request.session import CPU, SessionSettings

# Two products of an unsigned and a signed byte: their sum is more than 16 bits hold.
LEFT, RIGHT = np.full((1, 2), 255, np.uint8), np.full((2, 1), 127, np.int8)


def adds_in_16_bits(candidate: Candidate) -> bool:
    """Whether sums of two products of bytes saturate; False where it cannot be asked."""
    try:
        session = candidate.open(_make_probe().SerializeToString(), SessionSettings(providers=(CPU,)))
        [answer] = session.run({"x": LEFT}).values()
        session.close()
    except (FindingError, Rejected, UserError, MemoryError):
        return False
    return int(answer[0, 0]) < int(LEFT[0].astype(int) @ RIGHT[:, 0])


def _make_probe() -> onnx.ModelProto:
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    ends = [
        helper.make_tensor_value_info(name, dtype, shape)
        for name, dtype, shape in (("x", TensorProto.UINT8, [1, 2]), ("y", TensorProto.INT32, [1, 1]))
    ]
    graph = helper.make_graph([node], "bytes", ends[:1], ends[1:], [numpy_helper.from_array(RIGHT, "w")])
    # What the oldest releases read.
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=5)
