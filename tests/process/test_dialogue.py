"""Questions to a process: answers come back whole, and deaths, silence and rubbish are told apart."""

from __future__ import annotations

import signal
import sys
import textwrap
import time

import pytest

from onnxproof.process.dialogue import Dialogue, Died, Garbled, Hung, name_signal

ANSWERING = """
import json, os, signal, struct, sys, time
PREFIX = struct.Struct(">4sIQ")

def read(count):
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            sys.exit(0)
        data += part
    return data

def question():
    _, size, body = PREFIX.unpack(read(PREFIX.size))
    return json.loads(read(size)), read(body)

def answer(header, body=b"", blobs=None):
    text = json.dumps({**header, "blobs": [len(body)] if blobs is None else blobs}).encode()
    os.write(1, PREFIX.pack(b"oxp1", len(text), len(body)) + text)
    sent = 0
    while sent < len(body):
        sent += os.write(1, body[sent:sent + 65536])
"""


def talking(body: str) -> Dialogue:
    return Dialogue([sys.executable, "-c", ANSWERING + textwrap.dedent(body)])


ECHO = """
    while True:
        header, body = question()
        answer({"heard": header["say"]}, body)
"""


def test_a_question_and_its_bytes_come_back_whole():
    dialogue = talking(ECHO)
    large = bytes(range(256)) * 40_000  # far more than a pipe holds
    for say, blob in (("a", b""), ("ü", b"\0\n\xff"), ("large", large)):
        answer = dialogue.ask({"say": say}, [memoryview(blob)], silence=20)
        assert answer.header["heard"] == say
        assert bytes(answer.blobs[0]) == blob
    dialogue.close()


def test_what_is_printed_goes_to_the_log_and_not_into_the_answer():
    dialogue = talking("question(); print('noise', file=sys.stderr); sys.stderr.flush(); os._exit(3)")
    with pytest.raises(Died, match="exit code 3") as lost:
        dialogue.ask({}, silence=20)
    assert lost.value.log == "noise"
    assert lost.value.signal_name is None


def test_a_death_names_its_signal():
    dialogue = talking("question(); os.kill(os.getpid(), signal.SIGABRT)")
    with pytest.raises(Died, match="killed by SIGABRT") as lost:
        dialogue.ask({}, silence=20)
    assert lost.value.signal_name == "SIGABRT"


def test_a_death_in_the_middle_of_an_answer_is_one():
    dialogue = talking("question(); os.write(1, PREFIX.pack(b'oxp1', 50, 0) + b'{'); sys.exit(0)")
    with pytest.raises(Died, match="exit code 0"):
        dialogue.ask({}, silence=20)


def test_a_process_that_is_gone_before_the_question_died():
    dialogue = Dialogue([sys.executable, "-c", "raise SystemExit(4)"])
    dialogue._process.wait()
    with pytest.raises(Died, match="exit code 4"):
        dialogue.ask({}, [memoryview(bytes(1 << 20))], silence=20)


def test_silence_is_a_hang_and_the_process_is_stopped():
    dialogue = talking("question(); time.sleep(600)")
    began = time.monotonic()
    with pytest.raises(Hung, match=r"no answer within 0\.5 s"):
        dialogue.ask({}, silence=0.5)
    assert time.monotonic() - began < 20
    assert dialogue._process.poll() == -signal.SIGKILL


def test_a_process_that_does_not_read_hangs_too():
    dialogue = Dialogue([sys.executable, "-c", "import time; time.sleep(600)"])
    with pytest.raises(Hung, match="took no question"):
        dialogue.ask({}, [memoryview(bytes(1 << 22))], silence=0.5)


def test_slow_but_steady_is_no_hang():
    dialogue = talking(
        """
        question()
        text = b'{"blobs": [3]}'
        for part in (PREFIX.pack(b"oxp1", len(text), 3), text, b"a", b"b", b"c"):
            time.sleep(0.6)
            os.write(1, part)
        time.sleep(600)
        """
    )
    assert bytes(dialogue.ask({}, silence=2.0).blobs[0]) == b"abc"
    dialogue.close()


@pytest.mark.parametrize(
    "rubbish",
    [
        "os.write(1, b'Welcome to this interpreter, have a nice day')",
        "os.write(1, PREFIX.pack(b'oxp2', 2, 0) + b'{}')",
        "os.write(1, PREFIX.pack(b'oxp1', 3, 0) + b'{}x')",
        "os.write(1, PREFIX.pack(b'oxp1', 2, 0) + b'{}')",
        "os.write(1, PREFIX.pack(b'oxp1', 2, 0) + b'[]')",
        "answer({}, b'abc', [4])",
        "answer({}, b'abc', [4, -1])",
        "os.write(1, PREFIX.pack(b'oxp1', 4_000_000_000, 0))",
    ],
)
def test_what_is_no_answer_is_told_and_ends_the_process(rubbish):
    dialogue = talking(f"question(); {rubbish}; time.sleep(600)")
    with pytest.raises(Garbled):
        dialogue.ask({}, silence=20)
    assert dialogue._process.poll() is not None


def test_a_command_that_is_not_there_is_an_oserror():
    with pytest.raises(FileNotFoundError):
        Dialogue(["/nowhere/at/all"])


def test_close_lets_the_process_leave_and_may_be_repeated():
    dialogue = talking("sys.stdin.buffer.read(); sys.exit(7)")
    dialogue.close()
    dialogue.close()
    assert dialogue._process.poll() == 7


def test_close_ends_a_process_that_does_not_leave(monkeypatch):
    monkeypatch.setattr("onnxproof.process.dialogue.LEAVING", 0.2)
    dialogue = talking("time.sleep(600)")
    dialogue.close()
    assert dialogue._process.poll() == -signal.SIGKILL


def test_signals_have_names():
    assert name_signal(0) is None
    assert name_signal(-signal.SIGSEGV) == "SIGSEGV"
    assert name_signal(-250) == "signal 250"
