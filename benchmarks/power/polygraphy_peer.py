"""Runs inside Polygraphy's own environment: answers orders (JSON lines) with its data loader and its comparison."""

import contextlib
import json
import os
import sys
from collections import OrderedDict


def handle(order):
    import numpy as np
    from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
    from polygraphy.comparator import Comparator, CompareFunc, DataLoader, IterationResult, RunResults

    with OnnxrtRunner(SessionFromOnnx(order["model"])) as runner:
        if order["do"] == "inputs":
            loader = DataLoader(iterations=1)
            loader.input_metadata = runner.get_input_metadata()
            feed = dict(next(iter(loader)))
            np.savez(order["out"], **{k: np.asarray(v) for k, v in feed.items()})
            return {"outputs": [o.name for o in runner.sess.get_outputs()]}
        with np.load(order["inputs"]) as archive:
            feed = OrderedDict((name, archive[name]) for name in archive.files)
        got = runner.infer(feed)
    with np.load(order["torch"]) as archive:
        expected = OrderedDict((name, archive[name]) for name in archive.files)
    results = RunResults()
    results.append(("onnxrt", [IterationResult(outputs=got, runner_name="onnxrt")]))
    results.append(("torch", [IterationResult(outputs=expected, runner_name="torch")]))
    verdict = Comparator.compare_accuracy(results, compare_func=CompareFunc.simple())
    return {"alarm": not bool(verdict)}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        order = json.loads(line)
        with contextlib.redirect_stdout(sys.stderr):
            try:
                answer = handle(order)
            except BaseException as error:
                text = f"{type(error).__name__}: {error}"[:200]
                answer = {"alarm": True, "why": text, "error": text}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
