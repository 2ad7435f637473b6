"""A worker: item names on stdin, one line of JSON per verifier and item on the given pipe. It may die; the parent goes on."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path


def main() -> None:
    """Entry of `python -m benchmarks.power.worker FD VERIFIER…`."""
    pipe = os.fdopen(int(sys.argv[1]), "w")
    wanted = sys.argv[2:]

    def tell(**fact: object) -> None:
        pipe.write(json.dumps(fact) + "\n")
        pipe.flush()

    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    import torch

    from benchmarks.power import items
    from benchmarks.power.verifiers import VERIFIERS

    torch.set_num_threads(1)
    verifiers = {name: VERIFIERS[name]() for name in wanted}
    with tempfile.TemporaryDirectory(prefix="power-") as folder:
        for line in sys.stdin:
            name = line.strip()
            tell(item=name, verifier="build", state="begin")
            try:
                item = items.load(name, Path(folder))
            except Exception as error:
                tell(item=name, verifier="build", state="failed", why=f"{type(error).__name__}: {error}"[:300])
                tell(item=name, verifier="", state="done")
                continue
            tell(
                item=name,
                verifier="build",
                state="built",
                kind=item.kind,
                cls=item.cls,
                culprit=item.culprit,
                stage=item.stage,
                module=item.module_path,
                line=item.line,
                problem=item.problem,
            )
            for label, verify in verifiers.items() if item.onnx is not None else ():
                tell(item=name, verifier=label, state="begin")
                began = time.perf_counter()
                try:
                    result = verify(item, Path(folder))
                except Exception as error:
                    tell(item=name, verifier=label, state="raised", why=f"{type(error).__name__}: {error}"[:300])
                    continue
                tell(
                    item=name,
                    verifier=label,
                    state="answered",
                    alarm=result.alarm,
                    why=result.why[:400],
                    located=result.located,
                    codes=result.codes,
                    module=result.module,
                    line=result.line,
                    stage=result.stage,
                    tried=result.tried,
                    seconds=time.perf_counter() - began,
                )
            tell(item=name, verifier="", state="done")


if __name__ == "__main__":
    main()
