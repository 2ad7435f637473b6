"""The child process: reads its orders, works, and says what comes of each."""

from __future__ import annotations

import atexit
import os
import pickle
import select
import sys
import threading
import traceback
from contextlib import suppress
from typing import Any, NoReturn

from onnxproof.errors import UserError
from onnxproof.process.orders import DONE, FAILED, SAID, Failure, Order, make_frame, write_all
from onnxproof.system import end_twin


def main() -> None:
    """Entry of the process that is given ORDERS and EVENTS, two numbers of open files."""
    orders = int(sys.argv[1])
    threading.Thread(target=_leave_with_the_parent, args=(orders,), daemon=True).start()
    attend(orders, int(sys.argv[2]))


# Whether an order is being carried out.
_busy = threading.Event()


def _leave_with_the_parent(orders: int) -> None:
    """End in the midst of an order where nobody is left to hear of it; a fork server does this for its children."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(orders, 0)  # asks for nothing but the end, which is always told
        poll.poll()
        if _busy.is_set():
            os._exit(1)


def attend(orders: int, events: int) -> None:
    """Do what is ordered, tell about it, and end the process when nothing more comes or something went wrong."""
    kept: dict[str, Any] = {}
    own = os.getpid()

    def send(kind: bytes, value: Any = None) -> None:
        end_twin(own)
        write_all(events, make_frame(kind, value))

    try:
        with os.fdopen(orders, "rb") as file:
            while file.peek(1):
                order: Order = pickle.load(file)
                _busy.set()
                order.carry_out(lambda value: send(SAID, value), kept)
                _busy.clear()
                send(DONE)
    except (SystemExit, GeneratorExit) as error:  # by the user's code: to the parent a death like any other
        code = getattr(error, "code", 1)
        os._exit(code if isinstance(code, int) else 1)
    except BaseException as error:
        # KeyboardInterrupt and SystemExit, too: a child without a last word counts as one that crashed.
        send(FAILED, _describe_failure(error))
    leave()


def _describe_failure(error: BaseException) -> Failure:
    kinds = ((UserError, "user"), (KeyboardInterrupt, "interrupted"), (MemoryError, "memory"))
    kind = next((kind for cls, kind in kinds if isinstance(error, cls)), "bug")
    message = str(error) if kind != "bug" else f"{type(error).__name__}: {error}"
    return Failure(kind, type(error).__name__, message, traceback.format_exc() if kind == "bug" else "")


def leave(code: int = 0) -> NoReturn:
    """End without the second that Python takes to free the exporter's objects one by one, and without threads of the user's."""
    # os._exit skips them, and some end processes that were started here.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError, OSError, AttributeError):  # closed, full, or none
            stream.flush()
    os._exit(code)
