"""A child on its own: it reads its order from an open file, says what comes of it in frames, and is gone."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from onnxproof.errors import InputError
from onnxproof.process.child import _describe_failure
from onnxproof.process.orders import DONE, FAILED, SAID, Failure, Frames, Order
from onnxproof.process.supervisor import START

TESTS = str(Path(__file__).parents[1])


def speak(say, words):
    print("not in the frames")
    for word in words:
        say(word)


def leave_a_trace(say, path):
    import atexit

    atexit.register(Path(path).touch)


def refuse(say):
    raise InputError("no such input")


def attended(order: Order | bytes) -> tuple[list[tuple[bytes, object]], subprocess.CompletedProcess[str]]:
    """The frames of a child that was given this order, and how it ended."""
    read, write = os.pipe()
    with tempfile.TemporaryFile() as page:
        page.write(order if isinstance(order, bytes) else pickle.dumps(order))
        page.seek(0)
        ended = subprocess.run(
            [sys.executable, "-c", START.format("child"), str(page.fileno()), str(write)],
            pass_fds=(page.fileno(), write),
            env={**os.environ, "PYTHONPATH": os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")])},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        frames = list(Frames().feed(pipe.read()))
    return [(kind, msgspec.msgpack.decode(body) if body else None) for kind, body in frames], ended


def order(name: str, **arguments) -> Order:
    return Order(f"process.test_child:{name}", arguments)


def test_it_says_what_it_is_told_to_and_that_it_is_done():
    frames, ended = attended(order("speak", words=["a", [1, None]]))
    assert frames == [(SAID, "a"), (SAID, [1, None]), (DONE, None)]
    assert (ended.returncode, ended.stdout) == (0, "not in the frames\n")


def test_what_was_to_be_done_at_the_end_is_done(tmp_path):
    frames, _ = attended(order("leave_a_trace", path=str(tmp_path / "trace")))
    assert frames == [(DONE, None)]
    assert (tmp_path / "trace").is_file()


@pytest.mark.parametrize(
    ("given", "kind", "type"),
    [(order("refuse"), "user", "InputError"), (order("no_such"), "bug", "AttributeError"), (b"no", "bug", None)],
    ids=["refusal", "unknown", "no order"],
)
def test_a_failure_is_the_last_word(given, kind, type):
    frames, ended = attended(given)
    ((frame, failure),) = frames
    assert (frame, failure["kind"], ended.returncode) == (FAILED, kind, 0)
    assert type is None or failure["type"] == type


def raised(error: BaseException) -> Failure:
    try:
        raise error
    except BaseException as caught:
        return _describe_failure(caught)


def test_what_is_the_users_fault_has_no_traceback_and_a_bug_has():
    assert raised(InputError("x is 3")) == Failure("user", "InputError", "x is 3")
    assert raised(KeyboardInterrupt()).kind == "interrupted"
    assert raised(MemoryError("64 GB")) == Failure("memory", "MemoryError", "64 GB")
    bug = raised(KeyError("y"))
    assert (bug.kind, bug.message) == ("bug", "KeyError: 'y'")
    assert "raise error" in bug.traceback
