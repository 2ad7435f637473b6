"""Every extra, and the oldest and the newest releases, each installed into an environment of its own and tried: `make environments`.

    python -m benchmarks.environments [NAME …]

Needs nothing but pip; the oldest and the newest torch come with several gigabytes of CUDA. An environment is a folder that is removed again; what
failed is printed in full. What worked is kept in docs/reliability.json, for the page that `python -m benchmarks.reliability page` writes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
STORE = ROOT / "docs" / "reliability.json"
MODULE = """\
import torch


def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)), (torch.ones(2, 4),)


def other():
    module, inputs = make()
    with torch.no_grad():
        module[0].bias += 0.01
    return module, inputs
"""
SMALL = ("--budget", "5s", "--batch-sizes", "2,3")
PROVE = ("prove", "m.py:make", *SMALL)
# The file that this exported is not what another module computes.
WRONG = ("verify", "m.py:other", "--onnx", "onnxproof-out/model.onnx", *SMALL)
# Oldest releases as pyproject.toml names them, and none at all for the newest.
OLDEST = (
    "torch==2.9.0",
    "onnxruntime==1.20.1",
    "onnx==1.19.0",
    "onnx-ir==0.1.14",
    "onnxscript==0.5.0",
    "numpy==1.26.4",
)


@dataclass(frozen=True)
class Environment:
    """What is installed, what must work with it, and Python that must, too."""

    extras: str = ""
    pins: tuple[str, ...] = ()
    constrained: bool = True
    command: tuple[str, ...] = PROVE
    program: str = "import onnxproof"


DATA = "import numpy as np; np.savez('d.npz', x=np.ones((20, 4), np.float32), y=np.arange(20) % 3)"
TABLE = "import pyarrow as pa, pyarrow.parquet as pq; pq.write_table(pa.table({'x': [[1.0] * 4] * 20, 'y': [0, 1] * 10}), 'd.parquet')"
ENVIRONMENTS = {
    "base": Environment(),
    "data": Environment("data", command=("evaluate", "m.py:make", "--data", "d.parquet"), program=TABLE),
    "demo": Environment("demo", command=("demo",)),
    "evaluate": Environment("evaluate", command=("evaluate", "m.py:make", "--data", "d.npz"), program=DATA),
    "ray": Environment("ray", command=("evaluate", "m.py:make", "--data", "d.npz", "--ray"), program=DATA),
    "report": Environment("report", command=(*PROVE, "--html", "page.html")),
    "oldest": Environment(pins=OLDEST, constrained=False),
    "oldest but torch": Environment(pins=("torch==2.13.0", *OLDEST[1:]), constrained=False),
    "newest": Environment(constrained=False),
}


def try_environment(name: str) -> bool:
    """Install, import, run a command; whether all of it works."""
    asked, began = ENVIRONMENTS[name], time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="onnxproof-environment-") as text:
        folder = Path(text)
        (folder / "m.py").write_text(MODULE)
        python = folder / "env" / "bin" / "python"
        constraints = ["-c", str(ROOT / "constraints.txt")] if asked.constrained else []
        wanted = f"{ROOT}[{asked.extras}]" if asked.extras else str(ROOT)
        for step in (
            [sys.executable, "-m", "venv", folder / "env"],
            [
                python,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                *constraints,
                wanted,
                *asked.pins,
            ],
            [python, "-c", asked.program],
            [python, "-m", "onnxproof", *asked.command, "--quiet"],
        ):
            done = subprocess.run(step, cwd=folder, capture_output=True, text=True, check=False)
            # A model without training is not good at anything: REVIEW is an answer, too.
            if done.returncode and not (step[-1] == "--quiet" and done.returncode == 1 and done.stdout):
                print(f"{name}: {' '.join(map(str, step))}\n{done.stdout}{done.stderr}", flush=True)
                return False
        if asked.command[:2] == PROVE[:2]:
            step = [python, "-m", "onnxproof", *WRONG, "--quiet"]
            wrong = subprocess.run(step, cwd=folder, capture_output=True, text=True, check=False)
            if wrong.returncode != 1 or not wrong.stdout.startswith("BLOCK"):
                print(f"{name}: a wrong file is no BLOCK\n{wrong.stdout}{wrong.stderr}", flush=True)
                return False
        versions = "import torch, onnx, onnxruntime as o; print(f'torch {torch.__version__}, onnx {onnx.__version__}, onnxruntime {o.__version__}')"
        told = subprocess.run([python, "-c", versions], capture_output=True, text=True, check=False).stdout.strip()
        row = {"name": name, "command": asked.command[0], "told": done.stdout.strip()[:80], "versions": told}
        print(f"{row} in {time.perf_counter() - began:.0f} s", flush=True)
        keep(row)
    return True


def keep(row: dict[str, str]) -> None:
    """In the place of what the same environment told before."""
    store = json.loads(STORE.read_text(encoding="utf-8")) if STORE.is_file() else {}
    store["environments"] = [one for one in store.get("environments", []) if one["name"] != row["name"]] + [row]
    STORE.write_text(json.dumps(store, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Those that are named, or all."""
    worked = [try_environment(name) for name in sys.argv[1:] or ENVIRONMENTS]
    sys.exit(0 if all(worked) else 1)


if __name__ == "__main__":
    main()
