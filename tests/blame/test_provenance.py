"""What is blamed gets the module, the file and the line it comes from."""

from __future__ import annotations

import numpy as np
import onnx
import torch

from onnxproof.blame.nodes import Introduced
from onnxproof.blame.provenance import Provenance
from onnxproof.graph.sourcemap import Origin
from onnxproof.graph.view import Graph
from onnxproof.subject.assembly import make_subject

TEXT = """<ir_version: 10, opset_import: ["" : 20]> g (float[N] x) => (float[N] y, float[N] z)
{ a = Neg(x) y = LeakyRelu <alpha = 0.5>(a) z = Log(x) }"""


def provenance(**sources: Origin) -> Provenance:
    subject = make_subject(torch.nn.ReLU(), (torch.ones(2),))
    return Provenance(subject, Graph(onnx.parser.parse_model(TEXT)), None, sources)


def test_suspects_are_ranked_once_each_and_know_where_they_come_from():
    found = [
        Introduced("a", "Neg", "a", 1e-9),
        Introduced("y", "LeakyRelu", "y", 1e-3, 1.0, 2.0),
        Introduced("y", "LeakyRelu", "y", 2e-3),
        Introduced("z", "Log", "z", np.inf),
    ]
    log, relu = provenance(y=Origin(module="act", file="m.py", line=7)).suspects(found)
    assert (log.node, log.introduced, log.module) == ("z", 1e300, None)
    assert (relu.introduced, relu.module, relu.file, relu.line) == (2e-3, "act", "m.py", 7)
    assert relu.attributes == {"alpha": 0.5}
    assert not relu.border


def test_outputs_that_depend_on_a_node():
    assert provenance().dependents({"first": "y", "second": "z"}) == {
        "a": ("first",),
        "y": ("first",),
        "z": ("second",),
    }


def test_a_birth_in_the_graph_has_its_line():
    known = provenance(z=Origin(file="m.py", line=3))
    (birth,) = known.births({}, known.graph.nodes[2])
    assert (birth.node, birth.op, birth.file, birth.line) == ("z", "Log", "m.py", 3)
    assert known.births({}, None) == ()
    assert known.modules() == {"z": None}
