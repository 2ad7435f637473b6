"""OX3xx: for each code an ONNX file that triggers it and one that looks alike and is right. No session is built."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxproof


def model(nodes, inputs, outputs, stored=(), opset=18, ir=9, **more):
    graph = helper.make_graph(
        nodes, "g", inputs, outputs, initializer=[numpy_helper.from_array(a, n) for n, a in stored]
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *more.get("domains", ())])
    made.ir_version = ir
    return made


def value(name, shape=("batch", 4), kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def node(op, inputs, output="y", **attributes):
    return helper.make_node(op, inputs, [output], name=f"node_{output}", **attributes)


def unary(op="Relu", kind=TensorProto.FLOAT, **more):
    return model([node(op, ["x"])], [value("x", kind=kind)], [value("y", kind=kind)], **more)


def weighted(array, name="w", op="Add", shape=None):
    return model([node(op, ["x", name])], [value("x", (None,))], [value("y", shape or (None,))], [(name, array)])


def reshaped(target):
    return model(
        [node("Reshape", ["x", "s"])],
        [value("x", ("batch", 4, 4))],
        [value("y", (None, None))],
        [("s", np.array(target))],
    )


def twice(same):
    first, second = np.arange(2048, dtype=np.float32), np.arange(2048, dtype=np.float32) + (0 if same else 1)
    nodes = [node("Add", ["x", "a"], "z"), node("Add", ["z", "b"])]
    return model(nodes, [value("x", ("n",))], [value("y", (None,))], [("a", first), ("b", second)])


def dropout(training):
    nodes = [node("Dropout", ["x", "ratio", "training"])]
    return model(nodes, [value("x")], [value("y")], [("ratio", np.float32(0.5)), ("training", np.array(training))])


def dangling(read):
    stored = [("w", np.ones(4, np.float32)), ("lost", np.ones(4, np.float32))]
    nodes = [node("Add", ["x", "w"], "z"), node("Add", ["z", "lost" if read else "w"])]
    return model(nodes, [value("x")], [value("y")], stored)


def documented(text):
    made = unary()
    made.graph.node[0].doc_string = text
    return made


def summed(shape):
    nodes = [node("Add", ["x", "w"])]
    return model(nodes, [value("x", (2, 3))], [value("y", (None, None))], [("w", np.ones(shape, np.float32))])


NAN = np.r_[np.random.default_rng(0).normal(size=2047), np.nan].astype(np.float32)
MASK = np.triu(np.full((64, 64), -np.inf, np.float32), 1).reshape(-1)
TINY = np.full(2048, 1e-40, np.float32)
LARGE = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32).reshape(-1)
FAR, END = np.array([0, 2**40]), np.array([0, 2**63 - 1])


def gathered(indices):
    nodes = [node("Gather", ["x", "i"])]
    return model(nodes, [value("x", ("n",))], [value("y", (None,))], [("i", indices)])


LINTED = [
    ("OX308", lambda: unary("Erf", TensorProto.DOUBLE), lambda: unary("Erf"), {}),
    ("OX310", lambda: unary(opset=23), lambda: unary(opset=21), {"runtime": "1.20"}),
    ("OX310", lambda: unary(ir=11), lambda: unary(ir=10), {"runtime": "1.20"}),
    ("OX312", lambda: model([node("Relu", ["x"])], [value("x", (1, 4))], [value("y", (1, 4))]), unary, {}),
    ("OX313", lambda: reshaped([4, 16]), lambda: reshaped([-1, 16]), {}),
    ("OX314", lambda: twice(True), lambda: twice(False), {}),
    ("OX315", lambda: weighted(np.zeros(300_000, np.float32)), lambda: weighted(LARGE), {}),
    ("OX316", lambda: model([node("Cast", ["w"], to=1)], [value("x")], [value("y")], [("w", np.ones(4))]), unary, {}),
    ("OX317", lambda: dangling(False), lambda: dangling(True), {}),
    ("OX318", lambda: dropout(True), lambda: dropout(False), {}),
    ("OX318", lambda: unary("RandomNormalLike"), unary, {}),
    ("OX319", lambda: gathered(FAR), lambda: gathered(END), {}),
    ("OX320", lambda: weighted(NAN), lambda: weighted(MASK), {}),
    ("OX320", lambda: weighted(TINY), lambda: weighted(LARGE), {}),
    ("OX306", lambda: summed((4, 5)), lambda: summed((2, 3)), {}),
    ("OX322", lambda: documented('File "/home/me/net.py", line 3'), lambda: documented("a home for rent"), {}),
]


def lint(made, path, **options):
    onnx.save(made, path)
    return {finding.code for finding in onnxproof.lint(path, **options).findings}


@pytest.mark.parametrize(("code", "trigger", "near_miss", "options"), LINTED, ids=[row[0] for row in LINTED])
def test_a_file_is_linted(code, trigger, near_miss, options, tmp_path):
    assert code in lint(trigger(), tmp_path / "trigger.onnx", **options)
    assert code not in lint(near_miss(), tmp_path / "near.onnx", **options)


def test_ox306_the_checker(tmp_path):
    clash = model([node("Relu", ["x"]), node("Neg", ["x"])], [value("x")], [value("y")])
    assert "OX306" in lint(clash, tmp_path / "clash.onnx")
    assert "OX306" not in lint(unary(), tmp_path / "fine.onnx")


@pytest.mark.parametrize("location", ["/data/weights.bin", "../weights.bin", "C:\\weights.bin"])
def test_ox323_weights_outside_the_folder(location, tmp_path):
    onnx.save(weighted(LARGE), tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    assert not {"OX302", "OX323"} & {f.code for f in onnxproof.lint(tmp_path / "m.onnx").findings}
    moved = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    next(e for e in moved.graph.initializer[0].external_data if e.key == "location").value = location
    (tmp_path / "moved.onnx").write_bytes(moved.SerializeToString())
    assert {f.code for f in onnxproof.lint(tmp_path / "moved.onnx").findings} == {"OX323"}


def test_ox302_weights_that_are_not_there(tmp_path):
    onnx.save(weighted(LARGE), tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "m.data").unlink()
    assert {f.code for f in onnxproof.lint(tmp_path / "m.onnx").findings} == {"OX302"}


def test_a_kernel_is_missing_exactly_where_a_session_says_so(tmp_path):
    import onnxruntime

    operators = [
        "Abs",
        "Acos",
        "Ceil",
        "Cos",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "HardSigmoid",
        "Log",
        "Neg",
        "Relu",
        "Round",
        "Selu",
    ]
    operators += [
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
        "Not",
        "Identity",
    ]
    kinds = [
        TensorProto.FLOAT,
        TensorProto.DOUBLE,
        TensorProto.FLOAT16,
        TensorProto.INT32,
        TensorProto.UINT8,
        TensorProto.BOOL,
    ]
    disagreements, missing = [], 0
    for operator in operators:
        for kind in kinds:
            path = tmp_path / "m.onnx"
            codes = lint(unary(operator, kind), path)
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            try:
                onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
                refused = False
            except Exception as error:
                refused = "NOT_IMPLEMENTED" in str(error)
                if not refused:
                    continue  # not a valid graph: the checker's to tell
            missing += refused
            if refused != ("OX308" in codes):
                disagreements.append((operator, kind, refused))
    assert not disagreements
    assert missing > 3


def test_ox309_nodes_that_the_first_provider_leaves_to_the_cpu(tmp_path, monkeypatch):
    from onnxproof.lints import kernels

    known = kernels.load_registry()
    cpu = {key: value for key, value in known.items() if key[0] == "CPUExecutionProvider"}
    partial = {("PartialExecutionProvider", "", "Relu"): cpu["CPUExecutionProvider", "", "Relu"]}
    # No second provider with a kernel registry is in this build, so the registry is given one that has Relu only.
    monkeypatch.setattr(kernels, "load_registry", lambda: {**cpu, **partial})
    onnx.save(unary("Relu"), tmp_path / "relu.onnx")
    onnx.save(unary("Sigmoid"), tmp_path / "sigmoid.onnx")
    graphs = [kernels.Graph.read(tmp_path / f"{name}.onnx") for name in ("relu", "sigmoid")]
    found = [[f.code for f in kernels.find_missing_kernels(graph, ["PartialExecutionProvider"])] for graph in graphs]
    assert found == [[], ["OX309"]]


def test_the_command_line_lints_a_file_without_a_session(cli, tmp_path):
    onnx.save(unary("Erf", TensorProto.DOUBLE), tmp_path / "bad.onnx")
    onnx.save(unary("Erf"), tmp_path / "good.onnx")
    bad, good, none = cli("lint", "bad.onnx"), cli("lint", "good.onnx"), cli("lint", "none.onnx")
    assert (bad.returncode, good.returncode, none.returncode) == (1, 0, 2)
    assert "OX308" in bad.stdout
    assert good.stdout.startswith("CLEAN")
    assert "there is no file" in none.stderr
    old = cli("lint", "good.onnx", "--runtime", "0.9")
    assert old.returncode == 2
    assert "1.15 or later" in old.stderr
