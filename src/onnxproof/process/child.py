"""The child process: reads its order, works, and streams events to a pipe."""

from __future__ import annotations

import atexit
import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from onnxproof.errors import UserError

Emit = Callable[[Mapping[str, Any]], None]


def main() -> None:
    """Entry of `python -m onnxproof.process.child ORDER EVENTS`, two numbers of open files."""
    attend(int(sys.argv[1]), int(sys.argv[2]))


def attend(order: int, events: int) -> None:
    """Do an order, tell about it, and end the process."""
    pipe = os.fdopen(events, "w", encoding="utf-8")

    def emit(event: Mapping[str, Any]) -> None:
        pipe.write(json.dumps(event) + "\n")
        pipe.flush()

    try:
        with os.fdopen(order, "rb") as page:
            _work(pickle.load(page), emit)
        emit({"event": "done"})
    except UserError as error:
        emit({"event": "error", "kind": "user", "type": type(error).__name__, "message": str(error)})
    except KeyboardInterrupt:
        emit({"event": "error", "kind": "interrupted"})
    except MemoryError as error:
        emit({"event": "error", "kind": "memory", "message": str(error)})
    except BaseException as error:
        emit(
            {
                "event": "error",
                "kind": "bug",
                "message": f"{type(error).__name__}: {error}",
                "traceback": traceback.format_exc(),
            }
        )
    _leave()


def _leave() -> None:
    """End without the second that Python takes to free the exporter's objects one by one."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _work(order: Mapping[str, Any], emit: Emit) -> None:
    from onnxproof.pipeline import stages

    stages.seed_everything()
    ORDERS[order["stage"]](order, emit)


def _export(order: Mapping[str, Any], emit: Emit) -> None:
    from onnxproof.pipeline.stages import run_export

    run_export(order["job"], emit)


def _verify(order: Mapping[str, Any], emit: Emit) -> None:
    from onnxproof.pipeline.stages import run_verify

    run_verify(
        order["job"], order["artifact"], order["done"], emit, stateful=order["stateful"], weights=order["weights"]
    )


def _search(order: Mapping[str, Any], emit: Emit) -> None:
    from onnxproof.pipeline.stages import run_search

    run_search(order["job"], order["artifact"], order["look"], emit, stateful=order["stateful"])


def _locate(order: Mapping[str, Any], emit: Emit) -> None:
    from onnxproof.pipeline.stages import run_locate

    run_locate(order["job"], order["artifact"], order["look"], emit, stateful=order["stateful"])


def _lint(order: Mapping[str, Any], emit: Emit) -> None:
    from onnxproof.pipeline.stages import run_lint

    run_lint(order["job"], emit)


def _bench(order: Mapping[str, Any], emit: Emit) -> None:
    from onnxproof.pipeline.benching import order_bench

    order_bench(order, emit)


def _weigh(order: Mapping[str, Any], emit: Emit) -> None:
    from onnxproof.pipeline.benching import order_weigh

    order_weigh(order, emit)


def _evaluate(order: Mapping[str, Any], emit: Emit) -> None:
    from onnxproof.pipeline.evaluating import run_evaluate

    run_evaluate(order["job"], order["artifact"], emit, stateful=order["stateful"])


def _evaluate_shards(order: Mapping[str, Any], emit: Emit) -> None:
    from onnxproof.pipeline.evaluating import run_shards

    run_shards(order["work"], order["pieces"], emit)


ORDERS: dict[str, Callable[[Mapping[str, Any], Emit], None]] = {
    "export": _export,
    "verify": _verify,
    "search": _search,
    "locate": _locate,
    "lint": _lint,
    "bench": _bench,
    "weigh": _weigh,
    "evaluate": _evaluate,
    "evaluate-shards": _evaluate_shards,
}
"""What a child can be told to do."""


if __name__ == "__main__":
    main()
