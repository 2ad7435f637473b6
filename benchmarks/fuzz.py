"""Broken files: valid ones of every kind are mutated, and whatever reads them must say so in a sentence of its own.

    python -m benchmarks.fuzz [mutants of each kind] [seed]

Anything but an `OnnxproofError` is a bug, and so is a mutant that ends its process or takes minutes. Prints how many mutants were read,
how many refused, and each bug once.
"""

from __future__ import annotations

import copy
import faulthandler
import io
import json
import random
import re
import shutil
import sys
import tempfile
import traceback
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from benchmarks.forked import ask
from onnxproof.artifact.earlier import _read as read_note
from onnxproof.artifact.file import SIGNATURE
from onnxproof.cases import counterexample_files
from onnxproof.data.opening import open_source
from onnxproof.errors import OnnxproofError
from onnxproof.files import JOURNAL
from onnxproof.findings import found
from onnxproof.graph import sourcemap
from onnxproof.graph.file import find_complaint
from onnxproof.pipeline.collected import Collected
from onnxproof.pipeline.events import Observed, Planned
from onnxproof.pipeline.journal import Journal, read_records
from onnxproof.policy.judgement import judge_against, judge_proof
from onnxproof.process.orders import HEADER
from onnxproof.proof.proof import Proof
from onnxproof.quality.accumulate import Shard
from onnxproof.report.github import render_annotations
from onnxproof.report.html import render_html
from onnxproof.report.junit import render_junit
from onnxproof.report.markdown import render_markdown
from onnxproof.report.notebook import render_notebook
from onnxproof.report.text import describe_case, list_culprits, render, render_lint
from onnxproof.request.configuration import Settings
from onnxproof.subject.target import load_target

ROOT = Path(__file__).parents[1]
PROOFS = sorted((ROOT / "tests" / "proof" / "released").glob("*.json"))
# What is put in the place of a value.
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        2**31,
        2**63,
        10**400,
        1e308,
        -0.5,
        "",
        "x",
        "\x1b[2J\n",
        "9" * 5000,
        [],
        {},
        [[]],
        {"": None},
    ),
    *([None], ["x", 1], {"x": "y"}, "../../etc/passwd", "/etc/passwd", "NaN", [1] * 50),
)


@dataclass(frozen=True)
class Kind:
    """One kind of file: valid ones, how they are changed, and who reads them."""

    samples: tuple[tuple[str, bytes], ...]
    """(Name, content)."""
    change: Callable[[bytes, random.Random], bytes]
    read: Callable[[Path], None]


def change_bytes(data: bytes, generator: random.Random) -> bytes:
    """Some bytes flipped, taken out, put in, doubled or cut off."""
    changed = bytearray(data)
    for _ in range(generator.choice((1, 1, 2, 8))):
        at, length = generator.randrange(len(changed) + 1), generator.choice((1, 1, 4, 30))
        match generator.randrange(6):
            case 0:
                changed[at : at + length] = generator.randbytes(length)
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = generator.randbytes(length)
            case 3:
                changed[at:at] = changed[at : at + 40]
            case 4:
                changed[at : at + 1] = generator.choice((b"\x00", b"\xff", b"-", b"9" * 400, b'"', b"[" * 2000))
            case _:
                del changed[generator.randrange(len(changed) + 1) :]
    return bytes(changed)


def change_json(data: bytes, generator: random.Random) -> bytes:
    """Another value, of another type, at some place; or one that is missing."""
    if not generator.randrange(8):
        return change_bytes(data, generator)
    tree = json.loads(data)
    for _ in range(generator.choice((1, 1, 3))):
        if not tree:
            break
        holder, key = _choose_place(tree, generator)
        if generator.randrange(6):
            holder[key] = copy.deepcopy(generator.choice((*ODD, _choose_place(tree, generator)[0])))
        else:
            del holder[key]
    deep = generator.randrange(30) == 0
    text = json.dumps(tree)
    return (text[:-1] + ', "deep": ' + "[" * 100_000 + "]" * 100_000 + "}").encode() if deep else text.encode()


def _choose_place(tree: Any, generator: random.Random) -> tuple[Any, Any]:
    """A holder and a key in it: every branch is as likely as another, however much hangs on it."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    key = generator.choice(keys)
    inner = tree[key]
    deeper = isinstance(inner, (dict, list)) and inner and generator.randrange(5)
    return _choose_place(inner, generator) if deeper else (tree, key)


def change_text(data: bytes, generator: random.Random) -> bytes:
    """One word in the place of another."""
    words = re.split(r"([\s,=]+)", data.decode())
    for _ in range(generator.choice((1, 2))):
        words[generator.randrange(len(words))] = generator.choice(
            (*words, *map(str, ODD), "inf", "[", "[[a]]", "{x = 1}", '"', "1e999", "0x" + "f" * 40, "1979-05-27")
        )
    return "".join(words).encode() if generator.randrange(4) else change_bytes(data, generator)


def change_archive(data: bytes, generator: random.Random) -> bytes:
    """A member of a zip changed, with sums that fit; or the zip itself."""
    if not generator.randrange(4):
        return change_bytes(data, generator)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = generator.choice(list(members))
    members[chosen] = change_bytes(members[chosen][:200], generator) + members[chosen][200:]
    if not generator.randrange(3):
        members[generator.choice(("x.npy", "../x.npy", "y.npy", "x", "a/"))] = members.pop(chosen)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", generator.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def change_onnx(data: bytes, generator: random.Random) -> bytes:
    """Another value in some field of the protobuf, at any depth; or other bytes."""
    if not generator.randrange(4):
        return change_bytes(data, generator)
    model = onnx.load_from_string(data)
    for _ in range(generator.choice((1, 1, 3))):
        message, field = generator.choice(list(_list_fields(model)))
        _set_field(message, field, generator)
    return bytes(model.SerializeToString())


def _list_fields(message: Any) -> Iterator[tuple[Any, Any]]:
    for field in message.DESCRIPTOR.fields:
        yield message, field
        value = getattr(message, field.name)
        if field.type == field.TYPE_MESSAGE:
            repeated = hasattr(value, "add")
            for inner in value if repeated else [value] if message.HasField(field.name) else ():
                yield from _list_fields(inner)


def _set_field(message: Any, field: Any, generator: random.Random) -> None:
    held = getattr(message, field.name)
    many = hasattr(held, "extend")
    if field.type == field.TYPE_MESSAGE or not generator.randrange(4):
        if many and len(held) and generator.randrange(2):
            held.append(generator.choice(list(held)))
        else:
            message.ClearField(field.name)
        return
    choices: tuple[Any, ...]
    if field.type == field.TYPE_STRING:
        choices = (
            "",
            "x",
            "y",
            "w",
            "\x1b[2J\n",
            "../out",
            "/etc/passwd",
            "9" * 5000,
            "-1",
            "offset",
            "length",
            "location",
        )
    elif field.type == field.TYPE_BYTES:
        choices = (b"", b"\xff", bytes(12), bytes(1000), b"{}")
    elif field.type == field.TYPE_FLOAT:
        choices = (0.0, float("nan"), float("inf"), -1.0)
    elif field.type == field.TYPE_ENUM:
        choices = tuple(value.number for value in field.enum_type.values)
    else:
        choices = (0, 1, -1, 2, 7, 10, 16, 22, 99, 2**31 - 1, -(2**31))
        choices += (2**40, 2**62, -(2**63)) if field.cpp_type == field.CPPTYPE_INT64 else ()
    unsigned = field.type in (field.TYPE_UINT32, field.TYPE_UINT64)
    value = generator.choice([choice for choice in choices if not unsigned or choice >= 0])
    if many:
        held[:] = [value] * generator.choice((1, 1, 3))
    else:
        setattr(message, field.name, value)


def read_onnx(path: Path) -> None:
    """As a side of a comparison, and as a file that is looked at."""
    import onnxproof

    render_lint(onnxproof.lint(path))
    find_complaint(path)
    load_target(str(path))


def read_data(path: Path) -> None:
    """Every field, every row."""
    source = open_source(str(path))
    for name in source.fields:
        source.column(name)
    source.count()


def read_proof(path: Path) -> None:
    """Judged again, against itself too, and shown in every form but the page, which is slow: now and then that too."""
    proof = Proof.load(path)
    judged = judge_against(judge_proof(proof, proof.policy), proof)
    forms = (render, list_culprits, render_lint, render_junit, render_markdown, render_annotations, render_notebook)
    for form in (*forms, *[render_html] * (len(path.read_bytes()) % 20 == 0)):
        form(judged)
    for case in judged.cases:
        describe_case(case)


def read_kept(path: Path) -> None:
    counterexample_files.read(path)


def read_sourcemap(path: Path) -> None:
    sourcemap.place_in(sourcemap.read(path), "n")


def read_configuration(path: Path) -> None:
    Settings.find(path.parent)


def make_model() -> bytes:
    """A small model with everything that a reader looks at: a subgraph, a function, a promise, weights outside."""
    branches = [
        helper.make_graph([helper.make_node(op, ["a"], ["b"])], op, [], [helper.make_tensor_value_info("b", 1, None)])
        for op in ("Abs", "Neg")
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="n"),
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True), "t")),
        helper.make_node("If", ["c"], ["d"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Twice", ["d"], ["e"], domain="own"),
        helper.make_node("Reshape", ["e", "s"], ["y"]),
    ]
    outside = TensorProto(name="o", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "weights.bin", "offset": "0", "length": "8"}.items():
        outside.external_data.add(key=key, value=value)
    stored = [numpy_helper.from_array(np.ones((3, 2), np.float32), "w"), outside]
    stored.append(numpy_helper.from_array(np.array([-1, 2]), "s"))
    ports = [helper.make_tensor_value_info("x", 1, ["batch", 3]), helper.make_tensor_value_info("y", 1, ["batch", 2])]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], stored)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    twice = helper.make_function("own", "Twice", ["p"], ["q"], [helper.make_node("Add", ["p", "p"], ["q"])], opsets[:1])
    model = helper.make_model(graph, opset_imports=opsets, functions=[twice], ir_version=9)
    promise = {"inputs": ["x"], "outputs": ["y"], "bounds": {"batch": [1, 8]}}
    helper.set_model_props(model, {SIGNATURE: json.dumps(promise)})
    return bytes(model.SerializeToString())


def make_kinds(folder: Path) -> dict[str, Kind]:
    """Every kind, with samples that are made here."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from safetensors.numpy import save

    x, y = np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6)

    def saved(write: Callable[[Any], object]) -> bytes:
        stream = io.BytesIO()
        write(stream)
        return stream.getvalue()

    table = pa.table({"a": x[:, 0], "v": [[1.0, 2.0]] * 6, "t": ["x"] * 6, "y": y})
    (folder / "weights.bin").write_bytes(bytes(8))
    origins = {"n": sourcemap.Origin("fc", "Linear", "m.py", 3, "return x", "aten.linear")}
    sourcemap.write(folder / "m.sourcemap.json", origins)
    mapped = (folder / "m.sourcemap.json").read_bytes()
    artifact = json.loads(PROOFS[0].read_text())["artifact"]
    note = json.dumps({"made_of": "x", "artifact": artifact, "findings": []}).encode()
    toml = b'atol = 1e-4\nbudget = "120s"\nprovider = ["CPU"]\naccept = { OX204 = "why" }\nbatch-sizes = [1, 2]\n'
    toml += b'[subjects.net]\ntarget = "m.py:f"\nrange = ["ids:0,9"]\nmin = ["recall=0.8"]\n'
    project = b'[project]\nname = "x"\n[tool.onnxproof]\n' + toml.replace(b"[subjects", b"[tool.onnxproof.subjects")
    npz = saved(lambda stream: np.savez(stream, x=x, y=y, one=np.float32(3)))
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).eval()
    script, program = torch.jit.script(net), torch.export.export(net, (torch.ones(3, 2),))
    proofs = tuple((f"proof-{file.stem}.json", file.read_bytes()) for file in PROOFS)
    return {
        "onnx": Kind((("m.onnx", make_model()),), change_onnx, read_onnx),
        "npz": Kind((("d.npz", npz),), change_archive, read_data),
        "npy": Kind((("d.npy", saved(lambda s: np.save(s, x))),), change_bytes, read_data),
        "pt": Kind((("d.pt", saved(lambda s: torch.save({"x": torch.tensor(x)}, s))),), change_archive, read_data),
        "safetensors": Kind((("d.safetensors", save({"x": x, "y": y})),), change_bytes, read_data),
        "csv": Kind((("d.csv", b"a,b,y\n1,0.5,x\n2,,y\n" * 4),), change_text, read_data),
        "parquet": Kind((("d.parquet", saved(lambda s: pq.write_table(table, s))),), change_bytes, read_data),
        "proof": Kind(proofs, change_json, read_proof),
        "sourcemap": Kind((("m2.sourcemap.json", mapped),), change_json, read_sourcemap),
        "export note": Kind((("m.export.json", note),), change_json, read_note_file),
        "kept input": Kind((("kept.npz", npz),), change_archive, read_kept),
        "journal": Kind((("run.journal", make_journal(folder)),), change_journal, read_journal),
        "shard": Kind((("shard.npz", make_shard(folder)),), change_archive, read_shard),
        "script": Kind((("s.pt", saved(lambda s: torch.jit.save(script, s))),), change_archive, read_target),
        "program": Kind((("p.pt2", saved(lambda s: torch.export.save(program, s))),), change_archive, read_target),
        "configuration": Kind((("onnxproof.toml", toml), ("pyproject.toml", project)), change_text, read_configuration),
    }


def read_journal(path: Path) -> None:
    """As a run does that goes on."""
    journal = Journal()
    shutil.copy(path, path.with_name(JOURNAL))
    journal.open(path.parent, "asked", resume=True)
    for stage in ("export", "verify"):
        collected = Collected()
        for event in journal.recall(stage).events:
            collected.take_in(event)
    journal.close()


def change_journal(data: bytes, generator: random.Random) -> bytes:
    """Records whose sums fit, with other bytes in them; or the bytes of the file."""
    if not generator.randrange(3):
        return change_bytes(data, generator)
    records, changed = [(kind, body) for kind, body, _ in read_records(data)], generator.randrange(5)
    made = b""
    for i, (kind, body) in enumerate(records):
        frame = HEADER.pack(kind, len(body)) + body
        if i == changed:
            body = change_bytes(body, generator)
            frame = HEADER.pack(generator.choice((kind, b"o", b"m", b"b", b"s", b"x", b"e", b"?")), len(body)) + body
        made += zlib.crc32(frame).to_bytes(4, "little") + frame
    return made


def make_journal(folder: Path) -> bytes:
    """One of a run that was ended in its second stage."""
    journal = Journal()
    journal.open(folder, "asked", resume=False)
    journal.base("mark")
    journal.begin("export", goes_on=False)
    journal.hear(Observed(found("OX103", "it is random")))
    journal.end(1.0)
    journal.begin("verify", goes_on=True)
    journal.hear(Planned(["example"], [], {}))
    journal.close()
    return (folder / JOURNAL).read_bytes()


def read_shard(path: Path) -> None:
    Shard.load(path, "mark")


def read_target(path: Path) -> None:
    load_target(str(path))


def make_shard(folder: Path) -> bytes:
    columns = {"baseline": np.ones((4, 2), np.float32), "labels": np.arange(4)}
    Shard(0, 4, columns, facts={"x": 1.0}).save(folder / "shard.npz", "mark")
    return (folder / "shard.npz").read_bytes()


def read_note_file(path: Path) -> None:
    read_note(path)


@dataclass(frozen=True)
class Outcome:
    """What became of one mutant: nothing, a sentence, or a bug with its traceback (or that it ended the process, or hung)."""

    kind: str
    refused: bool = False
    bug: str | None = None


# Mutants that one process reads.
TOGETHER = 500


def run_in_processes(count: int, seed: int, kinds: Sequence[str] = ()) -> Iterator[Outcome]:
    """So many mutants of each kind, or of some, in processes of their own."""
    with tempfile.TemporaryDirectory(prefix="onnxproof-fuzz-") as name:
        folder = Path(name)
        for kind, one in make_kinds(folder).items():
            if kinds and kind not in kinds:
                continue

            def work(number: int, kind: str = kind, one: Kind = one) -> Outcome:
                return _read_mutant(folder, kind, one, random.Random(f"{seed} {kind} {number}"))

            for answer in ask(work, count, TOGETHER):
                yield Outcome(kind, bug=answer) if isinstance(answer, str) else Outcome(**answer)


def _read_mutant(folder: Path, name: str, kind: Kind, generator: random.Random) -> Outcome:
    """One mutant, written under its sample's name."""
    sample, content = generator.choice(kind.samples)
    file = folder / sample
    file.write_bytes(kind.change(content, generator))
    try:
        return _read(name, kind, file)
    finally:
        file.unlink(missing_ok=True)


def run_mutants(folder: Path, count: int, seed: int = 0) -> Iterator[Outcome]:
    """So many mutants of each kind."""
    for name, kind in make_kinds(folder).items():
        for number in range(count):
            yield _read_mutant(folder, name, kind, random.Random(f"{seed} {name} {number}"))


def _read(name: str, kind: Kind, file: Path) -> Outcome:
    try:
        kind.read(file)
    except OnnxproofError:
        return Outcome(name, refused=True)
    except Exception:
        return Outcome(name, bug=traceback.format_exc())
    return Outcome(name)


def name_bug(outcome: Outcome) -> str:
    """Where it happened, so that one bug is shown once."""
    lines = str(outcome.bug).splitlines()
    if len(lines) < 2:
        return f"{outcome.kind}: {outcome.bug}"
    ours = [line.strip() for line in lines if "src/onnxproof" in line]
    return f"{outcome.kind}: {lines[-1].partition(':')[0]} {ours[-1] if ours else lines[-2]}"


def main() -> None:
    """Run, count, and exit with 1 where there is a bug."""
    faulthandler.enable()
    count, seed = (int(text) for text in (*sys.argv[1:], *("1000", "0")[len(sys.argv) - 1 :]))
    totals: Counter[tuple[str, str]] = Counter()
    bugs: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for outcome in run_in_processes(count, seed):
        totals[outcome.kind, "bugs" if outcome.bug else "refused" if outcome.refused else "read"] += 1
        if outcome.bug:
            examples.setdefault(name_bug(outcome), outcome.bug)
            bugs[name_bug(outcome)] += 1
    for bug, times in bugs.most_common():
        print(f"{times} × {bug}\n{examples[bug]}")
    for kind in dict.fromkeys(kind for kind, _ in totals):
        print(f"{kind:14}", *(f"{totals[kind, word]:7,} {word}" for word in ("read", "refused", "bugs")))
    sys.exit(1 if bugs else 0)


if __name__ == "__main__":
    main()
