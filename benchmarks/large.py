"""What size costs: models of 110, 350 and 800 million parameters, right and with a planted fault; writes benchmarks/large.json.

    python -m benchmarks.large [110 350 800]

Encoders of transformers' own configuration with random weights, exported by the command line, weights in a file of their own where
they are large. Time is told over one bare forward of PyTorch for each of the same cases, memory over the size of the file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "large.json"
SHAPES = {"110": (768, 12, 12), "350": (1024, 24, 16), "800": (1536, 26, 16)}
DYNAMIC = ("--dynamic", "ids:0=batch", "--dynamic", "ids:1=tokens")
BARE = """
import json, sys, time, torch
from benchmarks.large import encoder
module, _ = encoder({size!r})
cases = [torch.randint(0, 30522, shape) for shape in json.load(open({cases!r}))]
with torch.no_grad():
    module(cases[0])
    began = time.perf_counter()
    for ids in cases:
        module(ids)
print(time.perf_counter() - began)
"""


class Encoder(torch.nn.Module):
    """BERT as transformers has it, and its last hidden state."""

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        from transformers import BertConfig, BertModel

        config = BertConfig(
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=4 * width,
            attn_implementation="eager",
        )
        self.bert = BertModel(config, add_pooling_layer=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Token ids in, hidden states out."""
        return self.bert(input_ids=ids).last_hidden_state  # type: ignore[no-any-return]  # modules return Any


def encoder(size: str) -> tuple[torch.nn.Module, Any]:
    """So many million parameters."""
    torch.manual_seed(0)
    return Encoder(*SHAPES[size]).eval(), (torch.randint(0, 30522, (2, 16)),)


def encoder_110() -> tuple[torch.nn.Module, Any]:
    return encoder("110")


def encoder_350() -> tuple[torch.nn.Module, Any]:
    return encoder("350")


def encoder_800() -> tuple[torch.nn.Module, Any]:
    return encoder("800")


def prove(size: str, out: Path, *options: str) -> dict[str, Any]:
    """The command line in a process of its own, so that its memory is its own: seconds, peak and proof."""
    command = [sys.executable, "-m", "onnxproof", "prove", f"benchmarks.large:encoder_{size}", *DYNAMIC]
    script = "import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
    script += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    began = time.perf_counter()
    done = run([sys.executable, "-c", script, *command, "--out", str(out), *options])
    proof = json.loads((out / "proof.json").read_text())
    return {"seconds": time.perf_counter() - began, "peak": int(done) * 1024, "proof": proof}


def run(command: list[str]) -> str:
    """What a command prints last."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env, cwd=ROOT)
    return done.stdout.splitlines()[-1]


def spoil(file: Path, wrong: Path) -> str:
    """The same file with the largest number of one weight in the middle doubled; the node that uses it."""
    model = ir.load(file)
    users = [
        node
        for node in model.graph
        if node.op_type in ("MatMul", "Gemm") and any(v is not None and v.is_initializer() for v in node.inputs[1:2])
    ]
    node = users[len(users) // 2]
    value = node.inputs[1]
    assert value is not None  # chosen so
    assert value.const_value is not None
    array = np.array(value.const_value.numpy())
    array.flat[np.abs(array).argmax()] *= 2
    value.const_value = ir.tensor(array, name=value.name)
    wrong.parent.mkdir(parents=True, exist_ok=True)
    ir.save(model, wrong, external_data=f"{wrong.name}.data")
    return str(node.name)


def measure(size: str, folder: Path) -> dict[str, Any]:
    """One size: the right file, then the wrong one."""
    right = prove(size, folder / "right")
    file = folder / "right" / "model.onnx"
    bytes_ = sum(one.stat().st_size for one in file.parent.glob("model.onnx*"))
    cases = [case for case in right["proof"]["cases"] if case["status"] == "compared"]
    (folder / "cases.json").write_text(json.dumps([case["inputs"]["ids"]["shape"] for case in cases]))
    forwards = float(run([sys.executable, "-c", BARE.format(size=size, cases=str(folder / "cases.json"))]))
    culprit = spoil(file, folder / "wrong" / "model.onnx")
    wrong = prove(size, folder / "out", "--onnx", str(folder / "wrong" / "model.onnx"))
    named = [one["node"] for blame in wrong["proof"]["blame"].values() for one in blame["culprits"]]
    exact = [c["exactness"] for case in cases for c in case["outputs"] if c.get("exactness") is not None]
    return {
        "file_bytes": bytes_,
        "cases": len(cases),
        "planned": len(right["proof"]["planned"]),
        "forwards_s": forwards,
        "right": {
            "verdict": right["proof"]["verdict"],
            "exactness": f"{len(exact)} cases, error {max((one['error'] for one in exact), default=float('nan')):.1e}",
            "stages": right["proof"]["timing"]["stages"],
            "time_over_forwards": right["seconds"] / forwards,
            "peak_over_file": right["peak"] / bytes_,
        },
        "wrong": {
            "verdict": wrong["proof"]["verdict"],
            "culprit": culprit,
            "named": named[:3],
            "stages": wrong["proof"]["timing"]["stages"],
            "time_over_forwards": wrong["seconds"] / forwards,
            "peak_over_file": wrong["peak"] / bytes_,
        },
    }


def main() -> None:
    """Measure the sizes that are asked for, and keep them beside the others."""
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    for size in sys.argv[1:] or SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            results[size] = measure(size, Path(folder))
        print(size, json.dumps(results[size], indent=1), flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
