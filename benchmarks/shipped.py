"""Files as others ship them, proved by the command line as they are: `python -m benchmarks.shipped`, a part of docs/state.md.

Exports of `optimum-cli export onnx`, made in an environment of its own (`make sequences` makes it); the voice detector of the package
silero-vad, whose TorchScript file and ONNX files lie beside each other; two towers of a published sentence encoder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import shipped_models
from onnxproof.files import replacing

# Where optimum and the package with the voice detector are installed.
ENVIRONMENT = Path(os.environ.get("ONNXPROOF_OPTIMUM", Path(__file__).parents[1] / ".venv-optimum"))
MODELS = f"{Path(shipped_models.__file__)}"
PAGE = Path(__file__).parents[1] / "docs" / "state.md"
HEADING = "## Files as others ship them"
TASKS = {
    "gpt2": "text-generation-with-past",
    "llama": "text-generation-with-past",
    "t5": "text2text-generation-with-past",
    "whisper": "automatic-speech-recognition-with-past",
    "bert": "text-classification",
    "wav2vec2": "automatic-speech-recognition",
}


@dataclass(frozen=True)
class Shipped:
    """One pair."""

    name: str
    file: str
    """Below the folder of exports, or in the package; empty where onnxproof exports it."""
    target: str
    more: tuple[str, ...] = ()


def detect(file: str, part: str, samples: int, rate: int | None) -> Shipped:
    """A part of the voice detector, with what it hears and remembers, and the file."""
    more = ("--input", f"x:1x{samples}", "--input", "state:2x1x128", *(("--input", f"sr={rate}") if rate else ()))
    heard = f"{file}, {16 if part == '_model' else 8} kHz"
    return Shipped(f"silero-vad, {heard}", f"silero_vad/data/{file}", f"silero_vad.jit:{part}", more)


PAIRS = [
    Shipped("gpt2 with its cache", "gpt2/model.onnx", "gpt2"),
    Shipped("gpt2 with its cache, positions not given", "gpt2/model.onnx", "gpt2_without_positions"),
    Shipped("llama with its cache", "llama/model.onnx", "llama"),
    Shipped("t5, encoder", "t5/encoder_model.onnx", "t5_encoder"),
    Shipped("t5, first step", "t5/decoder_model.onnx", "t5_first"),
    Shipped("t5, later steps", "t5/decoder_with_past_model.onnx", "t5"),
    Shipped("t5, merged decoder", "t5/decoder_model_merged.onnx", "t5"),
    Shipped("whisper, encoder", "whisper/encoder_model.onnx", "whisper_encoder"),
    Shipped("whisper, later steps", "whisper/decoder_with_past_model.onnx", "whisper"),
    Shipped("whisper, merged decoder", "whisper/decoder_model_merged.onnx", "whisper"),
    Shipped("bert", "bert/model.onnx", "bert"),
    Shipped("wav2vec2 with CTC", "wav2vec2/model.onnx", "wav2vec2"),
    detect("silero_vad.onnx", "_model", 576, 16000),
    detect("silero_vad.onnx", "_model_8k", 288, 8000),
    detect("silero_vad_16k_op15.onnx", "_model", 576, 16000),
    detect("silero_vad_op18_ifless.onnx", "_model", 576, 16000),
    Shipped("two towers of MiniLM, published weights", "", "two_towers"),
]


def export(family: str, folder: Path) -> None:
    """By optimum's own command, without a network."""
    saved = folder / "saved" / family
    made = folder / family
    if not any(made.glob("*.onnx")):
        shipped_models.save(family, saved)
        command = [
            ENVIRONMENT / "bin" / "optimum-cli",
            "export",
            "onnx",
            "--model",
            saved,
            "--task",
            TASKS[family],
            made,
        ]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})


def prove(pair: Shipped, folder: Path) -> dict[str, object]:
    """As a user would."""
    family = pair.file.partition("/")[0]
    if family in TASKS:
        export(family, folder)
    package = next(ENVIRONMENT.glob("lib/*/site-packages"), ENVIRONMENT)
    inside = family not in TASKS and bool(pair.file)
    target = package / "silero_vad" / "data" / pair.target if inside else f"{MODELS}:{pair.target}"
    file = ["--onnx", (package if inside else folder) / pair.file] if pair.file else []
    out = folder / "proofs" / pair.name.replace(" ", "-")
    command = [sys.executable, "-m", "onnxproof", "prove", target, *file, *pair.more, "--out", out]
    env = {**os.environ, "ONNXPROOF_SAVED": str(folder / "saved"), "HF_HUB_OFFLINE": "1"}
    subprocess.run(command, capture_output=True, env=env, cwd=folder)
    proof = json.loads((out / "proof.json").read_text())
    free = proof["rollout"]
    return {
        "verdict": proof["verdict"],
        "codes": sorted({f["code"] for f in proof["findings"] if f["severity"] != "note"}),
        "cases": sum(case["status"] == "compared" for case in proof["cases"]),
        "steps": len(free["steps"]) if free is not None else 0,
    }


def run(folder: Path, chosen: list[str]) -> Iterator[str]:
    """Every pair; what is noted already is not done again."""
    (folder / "shipped").mkdir(parents=True, exist_ok=True)
    for number, pair in enumerate(PAIRS):
        note = folder / "shipped" / f"{number:02}.json"
        if note.is_file() or (chosen and not any(word in pair.name for word in chosen)):
            continue
        made = {"name": pair.name, **prove(pair, folder)}
        with replacing(note) as half:
            half.write_text(json.dumps(made))
        yield f"{pair.name}: {made}"


def write_rows(folder: Path) -> list[str]:
    """The part of the page."""
    notes = [json.loads(note.read_text()) for note in sorted((folder / "shipped").glob("*.json"))]
    if not notes:
        return []
    shipped = sum(note["verdict"] == "ship" for note in notes)
    return [
        f"\n{HEADING}\n",
        "Proved by `onnxproof prove` as they are: exports of `optimum-cli export onnx` (small configurations with random weights), the files of the package "
        "silero-vad against its TorchScript file (`prove silero_vad.jit:_model --onnx silero_vad.onnx --input x:1x576 --input state:2x1x128 --input sr=16000`), "
        f"and two towers with published weights, exported by onnxproof. {shipped} of {len(notes)} ship.\n",
        "| pair | verdict | cases | steps in free run |\n|---|---|---|---|",
        *(
            f"| {n['name']} | {n['verdict'].upper()}{' ' + ', '.join(n['codes']) if n['codes'] else ''} | {n['cases']} | {n['steps']} |"
            for n in notes
        ),
        "",
    ]


if __name__ == "__main__":
    work = Path(tempfile.gettempdir()) / "onnxproof-sequences"
    for line in run(work, sys.argv[1:]):
        print(line, flush=True)
    before = PAGE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip()
    PAGE.write_text("\n".join([before, *write_rows(work)]), encoding="utf-8")
