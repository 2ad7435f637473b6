"""Which nodes take the time."""

from __future__ import annotations

from onnxproof.candidates.onnxruntime import SUFFIX, read_node_times
from onnxproof.latency import profile as slow
from onnxproof.proof.latency import OperatorShare


def test_times_of_a_node_are_added_up_without_the_first_runs():
    events = [{"cat": "Session", "name": "model_run", "dur": 9}]
    for run in range(10):
        spent = 1000 if run < slow.WARM_RUNS else 4
        events += [
            {"cat": "Node", "name": f"a{SUFFIX}", "dur": spent, "args": {"op_name": "Gemm", "provider": "CPU"}},
            {"cat": "Node", "name": f"b{SUFFIX}", "dur": 1, "args": {"op_name": "Relu", "provider": "CPU"}},
        ]
    profile = slow.summarise(slow.collect(read_node_times(events), 10), 10, None, 1, {})
    assert [(n.node, n.op, n.share, n.ms) for n in profile.nodes] == [
        ("a", "Gemm", 0.8, 0.004),
        ("b", "Relu", 0.2, 0.001),
    ]
    assert profile.ops["Gemm"] == OperatorShare(0.8, 1.0)
