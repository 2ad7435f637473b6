"""Faults that a sequence shows, planted in right files: `python -m benchmarks.sequences` writes docs/state.md.

Every model of the zoo that carries state is exported and proved: none may be alarmed. Then a fault is planted in its file, one at a
time, and the file is proved against the right module: is it caught, is the first wrong step of the free run the one that it is, and is
the node named?
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

import onnxproof
from benchmarks.answers import SIDE, Detector, Segmenter
from benchmarks.faults.helpers import after, become, before, constant, find, producer, put, swap_inputs
from benchmarks.shipped import write_rows
from benchmarks.zoo import ZOO, Model
from onnxproof.artifact.file import read_artifact
from onnxproof.cases.plan import make_case
from onnxproof.cases.rollout import carry
from onnxproof.files import replacing
from onnxproof.parity.listener import SILENT
from onnxproof.parity.rollout import name_answers
from onnxproof.parity.verifier import Verifier
from onnxproof.request.request import VerifySettings
from onnxproof.subject.assembly import make_subject

PAGE = Path(__file__).parents[1] / "docs" / "state.md"
HEAD = """# Models that remember

Made by `make sequences`; what an earlier run has noted is not run again, so rows may come from several runs. Right models with their
caches and states are proved as they are: every alarm is a false one. Then a fault is
planted in the file, and the file is proved against the module that it was made of. The first wrong step is the one at which the right file and the
wrong one part in free run, run one after the other; what the finding says is beside it. The node counts as named if a finding that gates names the node that
was changed, one that was planted with it or one beside it, or (OX220) says which two outputs were exchanged, without a node.
"""
# Farther than this, relative to the largest value, two files part: both are run by the same kernels.
APART = 1e-5
Mutate = Callable[[onnx.ModelProto], str]


@dataclass(frozen=True)
class Planted:
    """A fault of one model."""

    name: str
    model: str
    mutate: Mutate
    """Changes the file and returns the culprit's name."""


def shift_positions(m: onnx.ModelProto) -> str:
    """Positions one too low, which only a past makes visible."""
    node = find(m, "Range")
    for slot in (0, 1):
        node.input[slot] = before(m, node, "Sub", [node.input[slot], constant(m, 1, np.int64)])
    return node.name


def cap_positions(m: onnx.ModelProto) -> str:
    """Positions that stop at six."""
    return after(m, find(m, "Range").output[0], "Min", constant(m, 6, np.int64))


def shorten_mask(m: onnx.ModelProto) -> str:
    """The oldest place of the past is never seen."""
    seen = find(m, "LessOrEqual")
    node = find(m, "And")
    old = before(m, node, "Greater", [seen.input[0], constant(m, 0, np.int64)])
    node.input[0] = old
    return node.name


def hide_last(m: onnx.ModelProto) -> str:
    """A token does not see itself."""
    return become(find(m, "LessOrEqual"), "Less", list(find(m, "LessOrEqual").input))


def ignore_padding(m: onnx.ModelProto) -> str:
    """Padding on the left is attended to."""
    node = find(m, "And", -1)
    padding = node.input[1]
    node.input[1] = before(m, node, "Or", [padding, before(m, node, "Not", [padding])])  # all of it, in the same shape
    return node.name


def exchange(one: str, other: str) -> Mutate:
    """Two outputs under each other's names."""

    def mutate(m: onnx.ModelProto) -> str:
        after(m, one, "Identity")
        name = after(m, other, "Identity")
        first, second = producer(m, one), producer(m, other)
        first.input[0], second.input[0] = second.input[0], first.input[0]
        nodes = [node for node in m.graph.node if node.name not in (first.name, second.name)]
        both = [onnx.NodeProto.FromString(node.SerializeToString()) for node in (first, second)]
        rewired = {one: both[1].input[0], other: both[0].input[0]}
        for node in nodes:  # inside the graph everything stays right
            node.input[:] = [rewired.get(value, value) for value in node.input]
        del m.graph.node[:]
        m.graph.node.extend([*nodes, *both])
        return name

    return mutate


def reverse_join(output: str) -> Mutate:
    """New places are put before the past."""
    return lambda m: swap_inputs(producer(m, output))


def relay(output: str) -> Mutate:
    """The places of a cache in another layout: reshaped where a transposition was meant."""

    def mutate(m: onnx.ModelProto) -> str:
        node = producer(m, output)
        inner = f"{output}_laid"
        node.output[0] = inner
        shape, turned = f"{output}_shape", f"{output}_turned"
        make = onnx.helper.make_node
        m.graph.node.extend(
            [
                make("Shape", [inner], [shape], name="fault_shape"),
                make("Transpose", [inner], [turned], name="fault_turn", perm=[0, 2, 1, 3]),
                make("Reshape", [turned, shape], [output], name="fault_lay"),
            ]
        )
        for other in m.graph.node:
            if not other.name.startswith("fault_"):
                other.input[:] = [inner if value == output else value for value in other.input]
        return "fault_lay"

    return mutate


def scale(output: str, factor: float) -> Mutate:
    """What is kept is not what is used: stored after it was scaled."""

    def mutate(m: onnx.ModelProto) -> str:
        node = producer(m, output)
        inner = f"{output}_used"
        node.output[0] = inner
        for other in m.graph.node:
            other.input[:] = [inner if value == output else value for value in other.input]
        by = constant(m, factor, np.float32)
        m.graph.node.append(onnx.helper.make_node("Mul", [inner, by], [output], name="fault_scale"))
        return "fault_scale"

    return mutate


def forget(value: str, op: str | None = None) -> Mutate:
    """A state that goes in is taken for zero."""

    def mutate(m: onnx.ModelProto) -> str:
        node = next(n for n in m.graph.node if value in n.input and op in (None, n.op_type))
        zero = before(m, node, "Mul", [value, constant(m, 0.0, np.float32)])
        node.input[:] = [zero if name == value else name for name in node.input]
        return node.name

    return mutate


def forget_later(value: str, past: str, length: int) -> Mutate:
    """A state that is stale once the past is long: right in the first steps."""

    def mutate(m: onnx.ModelProto) -> str:
        node = next(n for n in m.graph.node if value in n.input and n.op_type not in ("Identity", "Shape"))
        shape = before(m, node, "Shape", [past], start=2, end=3)
        late = before(m, node, "Greater", [shape, constant(m, [length], np.int64)])
        stale = before(m, node, "Mul", [value, constant(m, 0.9, np.float32)])
        chosen = before(m, node, "Where", [late, stale, value])
        node.input[:] = [chosen if name == value else name for name in node.input]
        return producer(m, chosen).name

    return mutate


def exchange_states(m: onnx.ModelProto) -> str:
    """The states of two layers come out in the other order."""
    return swap_inputs(producer(m, "hn"))


def keep_wrong_end(output: str) -> Mutate:
    """The beginning of what was heard is kept instead of its end."""

    def mutate(m: onnx.ModelProto) -> str:
        node = producer(m, output)
        width = -int(onnx.numpy_helper.to_array(next(i for i in m.graph.initializer if i.name == node.input[1]))[0])
        node.input[1], node.input[2] = constant(m, [0], np.int64), constant(m, [width], np.int64)
        return node.name

    return mutate


def start_over(m: onnx.ModelProto) -> str:
    """The second layer begins with the first one's state."""
    first, second = find(m, "GRU"), find(m, "GRU", 1)
    second.input[5] = first.input[5]
    return second.name


def never_reset(m: onnx.ModelProto) -> str:
    """The flag that begins anew is not looked at."""
    node = next(n for n in m.graph.node if n.op_type == "Where" and "h" in n.input)
    return become(node, "Identity", ["h"])


def narrow_window(m: onnx.ModelProto) -> str:
    """A sliding window that is one place shorter, which only a past as long as it shows."""
    node = find(m, "Greater")
    node.input[1] = before(m, node, "Add", [node.input[1], constant(m, 1, np.int64)])
    return node.name


def suppress_far(m: onnx.ModelProto) -> str:
    """Boxes that overlap less than the threshold are the ones that go."""
    return become(find(m, "Greater", -1), "Less")


def write_sizes(m: onnx.ModelProto) -> str:
    """Left, top, width and height in place of the corners."""
    turn = np.eye(4, dtype=np.float32)
    turn[0, 2] = turn[1, 3] = -1
    return after(m, "boxes", "MatMul", constant(m, turn))


def shift_half(m: onnx.ModelProto) -> str:
    """A map is resized as if its pixels were points at their corners."""
    return put(find(m, "Resize"), coordinate_transformation_mode="asymmetric")


FAULTS = [
    *(
        Planted("positions one too low behind a past", model, shift_positions)
        for model in ("gpt2_cached", "llama_cached")
    ),
    Planted("positions stop at six", "gpt2_cached", cap_positions),
    Planted("positions stop at six", "qwen2_cached", cap_positions),
    *(Planted("the oldest place is never seen", model, shorten_mask) for model in ("gpt2_cached", "llama_cached")),
    Planted("a token does not see itself", "mistral_cached", hide_last),
    *(Planted("padding on the left is seen", model, ignore_padding) for model in ("gpt2_cached", "llama_cached")),
    Planted("the keys of two layers exchanged", "gpt2_cached", exchange("present.0.key", "present.1.key")),
    Planted("keys and values exchanged", "llama_cached", exchange("present.0.key", "present.0.value")),
    Planted("new places before the past", "llama_cached", reverse_join("present.1.value")),
    Planted("heads and places exchanged in the cache", "gpt2_cached", relay("present.0.key")),
    Planted("keys stored after they were scaled", "qwen2_cached", scale("present.1.key", 0.9)),
    Planted("the past of one layer taken for zero", "llama_cached", forget("past_key_values.1.value", "Concat")),
    Planted(
        "what crosses is stale in later steps",
        "t5_cached",
        forget_later("past_key_values.0.encoder.value", "past_key_values.0.decoder.key", 3),
    ),
    Planted(
        "what crosses is stale in later steps",
        "whisper_cached",
        forget_later("past_key_values.1.encoder.key", "past_key_values.0.decoder.key", 3),
    ),
    Planted("keys of the wrong layer", "t5_cached", exchange("present.0.decoder.key", "present.1.decoder.key")),
    Planted("the states of two layers exchanged", "gru_stream", exchange_states),
    Planted("the state of the other layer read", "gru_stream", start_over),
    Planted("the state is taken for zero", "gru_stream", forget("h")),
    Planted("h and c exchanged", "lstm_stream", exchange("hn", "cn")),
    Planted("the cell is taken for zero", "lstm_stream", forget("c0")),
    Planted("the wrong end is kept", "conv_stream", keep_wrong_end("cache_a_out")),
    Planted("the wrong end of the second is kept", "conv_stream", keep_wrong_end("cache_b_out")),
    Planted("the state is never reset", "reset_stream", never_reset),
    Planted("the window is one place short", "mistral_cached", narrow_window),
    Planted("NMS threshold on the wrong side", "detector", suppress_far),
    Planted("boxes in xywh for xyxy", "detector", write_sizes),
    Planted("resized masks off by half a pixel", "segmenter", shift_half),
]


def image() -> tuple[torch.Tensor]:
    torch.manual_seed(0)
    return (torch.randn(1, 3, SIDE, SIDE),)


# Those of the zoo that remember, and answers that are sets and maps.
MODELS = {
    **{name: one for name, one in ZOO.items() if one.family == "caches"},
    "detector": Model(
        "detector", "sets", lambda: (Detector().eval(), image()), "boxes of which the best are kept", {"dynamic": {}}
    ),
    "segmenter": Model("segmenter", "sets", lambda: (Segmenter().eval(), image()), "a map that is resized"),
}


def find_first_step(make: Any, options: dict[str, Any], right: Path, wrong: Path) -> int | None:
    """The step at which two files part in free run, along the walk that a proof takes."""
    subject = make_subject(*make, dynamic=options.get("dynamic"))
    verifier = Verifier(subject, read_artifact(right), VerifySettings(), SILENT)
    verifier.calibrate()
    verifier.plan()
    verifier.evaluate(make_case({}, "example"), verifier.supply.example(), glance=True)  # which pairs the outputs
    rollouts = verifier.supply.rollouts
    if rollouts is None:
        return None
    walk = rollouts.walks[0]
    sides = []
    for path in (right, wrong):
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        takes, gives = ([value.name for value in values] for values in (session.get_inputs(), session.get_outputs()))

        def run(inputs: Any, session: Any = session, takes: Any = takes, gives: Any = gives) -> Any:
            return dict(zip(gives, session.run(None, {name: inputs[name] for name in takes}), strict=True))

        free = carry(
            name_answers(run, verifier.output_pairs), rollouts.drive(walk), rollouts.begin(walk), rollouts.state
        )
        sides.append(made for _, made in free)
    for step, (a, b) in enumerate(zip(*sides, strict=True)):
        if any(np.abs(a[n] - b[n]).max(initial=0) > APART * np.abs(a[n]).max(initial=1e-6) for n in a):
            return step
    return None


def is_near(model: onnx.ModelProto, culprit: str, named: str | None) -> bool:
    """Whether a node is the culprit, or was planted with it, or is next to it."""
    if named is not None and named.startswith("fault_"):
        return True
    nodes = {node.name: node for node in model.graph.node}
    if named == culprit or named not in nodes or culprit not in nodes:
        return named == culprit
    one, other = nodes[culprit], nodes[named]
    return bool({*one.output} & {*other.input} or {*other.output} & {*one.input})


def judge(planted: Planted, right: Path, folder: Path) -> dict[str, Any]:
    """Plant the fault and prove the file."""
    zoo = MODELS[planted.model]
    model = onnx.load(right)
    culprit = planted.mutate(model)
    wrong = folder / "wrong.onnx"
    onnx.save(model, wrong)
    truth = find_first_step(zoo.make(), zoo.options, right, wrong)
    proof = onnxproof.verify(*zoo.make(), onnx=wrong, out=folder / "out", **zoo.options)
    gating = [finding for finding in proof.findings if finding.weight]
    freely = next((f for f in gating if f.code == "OX231"), None)
    nodes = [f.where.node for f in gating if f.where.node]
    return {
        "verdict": proof.verdict,
        "codes": list(dict.fromkeys(f.code for f in gating)),
        "truth": truth,
        "step": freely.evidence["step"] if freely is not None else None,
        "culprit": culprit,
        "node": nodes[0] if nodes else None,
        "located": any(is_near(model, culprit, node) for node in nodes) or any(f.code == "OX220" for f in gating),
    }


def run(chosen: list[str], work: Path) -> Iterator[str]:
    """Every model and every fault; what is noted already is not done again."""
    for name, zoo in MODELS.items():
        if chosen and name not in chosen:
            continue
        right = work / name / "model.onnx"
        if read_note(work, name) is None or not right.is_file():
            proof = onnxproof.prove(*zoo.make(), out=work / name, **zoo.options)
            steps = len(proof.rollout.steps) if proof.rollout is not None else 0
            codes = [f.code for f in proof.findings if f.weight]
            yield write_note(work, name, {"verdict": proof.verdict, "codes": codes, "steps": steps})
        for planted in FAULTS:
            key = f"{name}: {planted.name}"
            if planted.model == name and read_note(work, key) is None:
                with tempfile.TemporaryDirectory() as folder:
                    judged = judge(planted, right, Path(folder))
                yield write_note(work, key, judged)


def read_note(work: Path, key: str) -> Any:
    """What an earlier run, or another one that goes on beside this one, has noted; a file for each."""
    note = work / "notes" / f"{key.replace(': ', '__')}.json"
    return json.loads(note.read_text()) if note.is_file() else None


def write_note(work: Path, key: str, made: dict[str, Any]) -> str:
    """Note it, and tell it."""
    with replacing(work / "notes" / f"{key.replace(': ', '__')}.json") as half:
        half.write_text(json.dumps(made))
    return f"{key}: {made}"


def read_notes(work: Path) -> dict[str, Any]:
    """All notes, in the order of the models and faults."""
    keys = [*MODELS, *(f"{planted.model}: {planted.name}" for planted in FAULTS)]
    return {key: note for key in keys if (note := read_note(work, key)) is not None}


def write_page(known: dict[str, Any], shipped: list[str]) -> str:
    """The page."""
    right = {name: one for name, one in known.items() if ":" not in name}
    wrong = {name: one for name, one in known.items() if ":" in name}
    alarms = [name for name, one in right.items() if one["verdict"] != "ship"]
    caught = [name for name, one in wrong.items() if one["verdict"] != "ship"]
    parting = [one for one in wrong.values() if one["truth"] is not None]
    stepped = [one for one in parting if one["step"] == one["truth"]]
    silent = [one for one in wrong.values() if one["truth"] is None and one["step"] is not None]
    located = [name for name, one in wrong.items() if one["located"]]
    lines = [
        HEAD,
        f"{len(right)} right models, {len(alarms)} alarms. {len(wrong)} of {len(FAULTS)} planted faults were run: {len(caught)} caught. "
        f"{len(parting)} of them part in free run, the first wrong step is right in {len(stepped)} (and is claimed in {len(silent)} that do not "
        f"part there); the node counts as named in {len(located)}.\n",
        "| right model | what is special | verdict | steps in free run |\n|---|---|---|---|",
        *(
            f"| {name} | {MODELS[name].why} | {one['verdict'].upper()} | {one['steps']} |"
            for name, one in right.items()
        ),
        "\n| model | fault | verdict | parts at step | says step | node named |\n|---|---|---|---|---|---|",
        *(
            f"| {name.replace(': ', ' | ', 1)} | {one['verdict'].upper()} | {_show(one['truth'])} | {_show(one['step'])} | "
            f"{'yes' if one['located'] else 'no'} |"
            for name, one in wrong.items()
        ),
        *shipped,
        "",
    ]
    return "\n".join(lines)


def _show(step: int | None) -> str:
    return "–" if step is None else str(step)


def main() -> None:
    work = Path(tempfile.gettempdir()) / "onnxproof-sequences"
    (work / "notes").mkdir(parents=True, exist_ok=True)
    for line in run(sys.argv[1:], work):
        print(line, flush=True)
    PAGE.write_text(write_page(read_notes(work), write_rows(work)), encoding="utf-8")


if __name__ == "__main__":
    main()
