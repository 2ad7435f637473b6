"""Answers that a release of onnxruntime got wrong, and the one before it right: one node each, asked of every release.

`python -m benchmarks.runtimes regressions` asks them, and writes a script for each to docs/regressions and their table to docs/runtimes.md.
They were found by asking several thousand files of 17 releases, with optimisations and without: the forms that onnx's own tests have of its operators, torch's samples
of its operators, and layers, activations, poolings and attention as networks have them, each with ordinary values, large ones, ties, and NaN, infinite and
denormal ones; what was right in one release and wrong in the next was made as small as it gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser

from onnxproof.candidates import choose_candidate
from onnxproof.candidates.releases import list_releases
from onnxproof.candidates.remote import RemoteRuntime
from onnxproof.errors import FindingError, Rejected
from onnxproof.request.session import SessionSettings

FOLDER = Path(__file__).parents[1] / "docs" / "regressions"
GRID = "(float[1,1,2,2] x, float[1,1,1,2] grid) => (float[1,1,1,1] y) { y = GridSample<%s>(x, grid) }"
IMAGE = '"x": np.array([[[[1, 2], [3, 4]]]], "f4")'
SUM = "(int64[2] x) => (int64 y) { y = %s<keepdims=0>(x) }"
EMPTY = "(float[4,n,5] x) => (float[4,n] y) { y = %s<axes=[-1], keepdims=0>(x) }"
HALF = "(float16[3,n,5] x) => (float16[3,n,5] y) { y = %s<axis=1>(x) }"


@dataclass(frozen=True)
class Probe:
    """One node, what it is given, and what it has to answer; Python and ONNX as text, so that a script can be made of them."""

    name: str
    said: str
    """What is wrong, in words."""
    graph: str
    inputs: str
    right: str

    @property
    def model(self) -> str:
        """The file in onnx's own notation, in the oldest opset and IR version that have the node."""
        return f'<ir_version: 8, opset_import: ["": 17]>\n{self.name} {self.graph}'.replace(" { ", "\n{ ")


def bend(name: str, said: str, how: str, place: str, right: str) -> Probe:
    """A GridSample of four pixels at one place."""
    return Probe(name, said, GRID % how, f'{{{IMAGE}, "grid": np.array([[[{place}]]], "f4")}}', f"[[[[{right}]]]]")


PROBES = (
    bend(
        "grid_sample_border",
        "a coordinate far outside is the border's pixel: it is extrapolated",
        'mode="bilinear", padding_mode="border"',
        "[3e9, 0]",
        "3",
    ),
    bend(
        "grid_sample_nearest_border",
        "an infinite coordinate is the border's pixel: it is the one on the other side",
        'mode="nearest", padding_mode="border", align_corners=1',
        "[np.inf, -1]",
        "2",
    ),
    bend(
        "grid_sample_nan",
        "a coordinate that is NaN gives NaN: it gives a number",
        'mode="bilinear", padding_mode="zeros"',
        "[np.nan, 0]",
        "np.nan",
    ),
    bend(
        "grid_sample_bicubic_nan",
        "a coordinate that is NaN gives NaN: it gives a number",
        'mode="bicubic", padding_mode="border"',
        "[np.nan, 0]",
        "np.nan",
    ),
    bend(
        "grid_sample_nearest_far",
        "a coordinate far outside has no pixel, so zero: it has one",
        'mode="nearest", padding_mode="zeros", align_corners=1',
        "[3e38, -1]",
        "0",
    ),
    *(
        Probe(
            op.lower() + "_empty_half",
            "an empty float16 tensor gives an empty one: it raises",
            HALF % op,
            '{"x": np.zeros((3, 0, 5), "f2")}',
            "np.zeros((3, 0, 5))",
        )
        for op in ("Softmax", "LogSoftmax")
    ),
    *(
        Probe(
            op.lower() + "_empty",
            "with another dimension empty the last one is still reduced: it is kept",
            EMPTY % op,
            '{"x": np.zeros((4, 0, 5), "f4")}',
            "np.zeros((4, 0))",
        )
        for op in ("ReduceMax", "ReduceMean", "ReduceL2")
    ),
    Probe(
        "clip_half_max",
        "without a lower end nothing is clipped there: negative numbers become zero",
        "(float16[2] x, float16 high) => (float16[2] y) { y = Clip(x, , high) }",
        '{"x": np.array([-2, 3], "f2"), "high": np.array(1, "f2")}',
        "[-2, 1]",
    ),
    Probe(
        "clip_half_min",
        "without an upper end nothing is clipped there: positive numbers become zero",
        "(float16[2] x, float16 low) => (float16[2] y) { y = Clip(x, low) }",
        '{"x": np.array([-2, 3], "f2"), "low": np.array(-1, "f2")}',
        "[-1, 3]",
    ),
    Probe(
        "reduce_sum_int64",
        "integers are added exactly: they are added as doubles",
        SUM % "ReduceSum",
        '{"x": np.array([2**53, 1])}',
        "2**53 + 1",
    ),
    Probe(
        "reduce_prod_int64",
        "integers are multiplied exactly: they are multiplied as doubles",
        SUM % "ReduceProd",
        '{"x": np.array([3**17, 3**18])}',
        "3**35",
    ),
    Probe(
        "reduce_sum_square_int64",
        "integers are added exactly: they are added as doubles",
        SUM % "ReduceSumSquare",
        '{"x": np.array([3**17, 1])}',
        "3**34 + 1",
    ),
    Probe(
        "reduce_l1_int64",
        "integers are added exactly: they are added as doubles",
        SUM % "ReduceL1",
        '{"x": np.array([2**53, -1])}',
        "2**53 + 1",
    ),
    Probe(
        "reduce_mean_int64",
        "the mean of equal integers is that integer: it is another",
        SUM % "ReduceMean",
        '{"x": np.array([2**53 + 1, 2**53 + 1])}',
        "2**53 + 1",
    ),
    Probe(
        "reduce_log_sum_exp_nan",
        "a NaN stays one: it is lost beside an infinity",
        "(float[3] x) => (float y) { y = ReduceLogSumExp<keepdims=0>(x) }",
        '{"x": np.array([1, np.nan, np.inf], "f4")}',
        "np.nan",
    ),
    Probe(
        "gemm_half_alpha",
        "a product is scaled before it is rounded to float16: it overflows before it is scaled",
        "(float16[1,2] a, float16[2,1] b, float16[1,1] c) => (float16[1,1] y) { y = Gemm<alpha=0.5>(a, b, c) }",
        '{"a": np.array([[-400, -30]], "f2"), "b": np.array([[250], [160]], "f2"), "c": np.zeros((1, 1), "f2")}',
        "[[-52416]]",
    ),
)

SCRIPT = '''"""{name}: {said}.

{versions}
The first release exits with 0, the second with 1; `pip install onnx {numpy}onnxruntime=={bad}` installs the second.
"""

import sys

import numpy as np
import onnx.parser
import onnxruntime

MODEL = """{model}"""
INPUTS = {inputs}
session = onnxruntime.InferenceSession(onnx.parser.parse_model(MODEL).SerializeToString())
[answer] = session.run(None, INPUTS)
right = np.asarray({right})
print(onnxruntime.__version__, "answers", answer.tolist(), answer.shape, "and right is", right.tolist(), right.shape)
sys.exit(not (answer.shape == right.shape and np.array_equal(answer, right, equal_nan=answer.dtype.kind == "f")))
'''


def is_right(probe: Probe, release: str) -> bool | None:
    """Whether a release answers right, with optimisations and without; None where it does not load the file."""
    model = onnx.parser.parse_model(probe.model).SerializeToString()
    inputs, right = eval(probe.inputs), np.asarray(eval(probe.right))  # written above
    answers = []
    for level in ("disable", "all"):
        settings = SessionSettings(runtime=f"onnxruntime=={release}", optimization=level)
        try:
            [answer] = choose_candidate(settings).open(model, settings).run(inputs).values()
        except FindingError:
            return None
        except Rejected:
            return False
        same = answer.shape == right.shape and np.array_equal(answer, right, equal_nan=answer.dtype.kind == "f")
        answers.append(bool(same))
    return all(answers)


def ask_release(release: str) -> dict[str, bool | None]:
    """Every probe on a release, whose process is then ended: there are many of them."""
    answers = {probe.name: is_right(probe, release) for probe in PROBES}
    candidate = choose_candidate(SessionSettings(runtime=f"onnxruntime=={release}"))
    assert isinstance(candidate, RemoteRuntime)
    candidate.stop()
    return answers


def measure() -> list[dict[str, Any]]:
    """Every probe on every release: those with a release that is right and a next one that is not."""
    rows = []
    answers = {release: ask_release(release) for release in map(str, list_releases())}
    for probe in PROBES:
        seen = [(release, one[probe.name]) for release, one in answers.items() if one[probe.name] is not None]
        turns = [(a, b) for (a, good), (b, still) in pairwise(seen) if good and not still]
        mended = [b for (_, good), (b, now) in pairwise(seen) if now and not good]
        op = onnx.parser.parse_model(probe.model).graph.node[0].op_type
        row = {"name": probe.name, "op": op, "said": probe.said, "turns": turns}
        print(row, flush=True)
        rows += [{**row, "mended": mended[-1:] if seen[-1][1] else []}] * bool(turns)
    return rows


def write_scripts(rows: list[dict[str, Any]]) -> None:
    """A script for each."""
    FOLDER.mkdir(exist_ok=True)
    probes = {probe.name: probe for probe in PROBES}
    for row in rows:
        probe, (good, bad) = probes[row["name"]], row["turns"][-1]
        old = tuple(map(int, bad.split(".")[:2])) < (1, 19)
        versions = f"Right in onnxruntime {good}, wrong in {bad}" + "".join(
            f", right again in {v}" for v in row["mended"]
        )
        parts = {"numpy": '"numpy<2" ' if old else "", "versions": f"{versions}.", "bad": bad}
        text = SCRIPT.format(
            name=probe.name, said=probe.said, model=probe.model, inputs=probe.inputs, right=probe.right, **parts
        )
        (FOLDER / f"{probe.name}.py").write_text(text, encoding="utf-8")


def render(rows: list[dict[str, Any]]) -> list[str]:
    """The table."""
    lines = [
        "| node | what is right, and what comes | right | wrong | right again | script |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        good, bad = row["turns"][-1]
        again = row["mended"][0] if row["mended"] else "–"
        lines.append(
            f"| {row['op']} | {row['said']} | {good} | {bad} | {again} | [{row['name']}.py](regressions/{row['name']}.py) |"
        )
    return lines
