"""Children are told what to do, heard, and missed when they die."""

from __future__ import annotations

import os
import signal
import time

import msgspec
import pytest

from onnxproof.errors import InputError
from onnxproof.process import supervisor
from onnxproof.process.lanes import Lane, run_lanes
from onnxproof.process.orders import SAID, Frames, Order, make_frame
from onnxproof.process.supervisor import Child, InternalError, prepare, supervise

HERE = "tests.process.test_supervisor"
forks = pytest.mark.skipif(not supervisor.FORKS, reason="children are forked on Linux only")


def order(name: str, **arguments) -> Order:
    return Order(f"{HERE}:{name}", arguments)


def ask(one: Order, limit: float = 60.0):
    heard = []
    end = supervise(one, lambda body: heard.append(msgspec.msgpack.decode(body)), lambda: limit)
    return heard, end


def speak(say, words):
    for word in words:
        say(word)


def die(say, how):
    say("still here")
    os.kill(os.getpid(), how) if isinstance(how, signal.Signals) else os._exit(how)


def hang(say):
    time.sleep(600)


def refuse(say):
    raise InputError("no such input")


def starve(say):
    raise MemoryError("all gone")


def stumble(say):
    raise ZeroDivisionError("ours")


def process_id(say):
    say(os.getppid())


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    from pathlib import Path

    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    )


def test_what_a_child_says_arrives_in_order_whatever_it_is():
    words = ["a", 1, [2.5, None], {"x": float("inf")}, "ä" * 200_000]
    heard, end = ask(order("speak", words=words))
    assert heard == words
    assert end is None


def test_a_nan_stays_one():
    (heard,), _ = ask(order("speak", words=[float("nan")]))
    assert heard != heard


@pytest.mark.parametrize(
    ("how", "name", "code"),
    [(signal.SIGSEGV, "SIGSEGV", -11), (0, None, 0), (3, None, 3)],
    ids=["signal", "exit0", "exit3"],
)
def test_a_death_is_told_with_what_was_said_before(how, name, code):
    heard, end = ask(order("die", how=how))
    assert heard == ["still here"]
    assert end is not None
    assert (end.signal_name, end.returncode, end.hung) == (name, code, False)


def test_a_silent_child_is_stopped():
    _, end = ask(order("hang"), limit=1.0)
    assert end is not None
    assert end.hung


def test_what_a_child_raises_is_raised_here():
    with pytest.raises(InputError, match="no such input"):
        ask(order("refuse"))
    with pytest.raises(InternalError, match="ZeroDivisionError: ours"):
        ask(order("stumble"))


def test_a_lack_of_memory_is_a_death():
    _, end = ask(order("starve"))
    assert end is not None
    assert end.starved


@forks
def test_children_are_forked_from_the_prepared_process_but_for_fresh_ones():
    with prepare(["json"], ""):
        assert supervisor._server is not None
        server = supervisor._server._process.pid
        (forked,), _ = ask(order("process_id"))
        (fresh,), _ = ask(Order(f"{HERE}:process_id", {}, fresh=True))
        with prepare(["no.such.module"], ""):
            (inner,), _ = ask(order("process_id"))
    assert forked == inner == server
    assert fresh == os.getpid()


@forks
def test_a_killed_server_costs_its_child_and_the_next_is_started_anew():
    with prepare([], ""):
        assert supervisor._server is not None
        os.kill(supervisor._server._process.pid, signal.SIGKILL)
        supervisor._server._process.wait()
        heard, end = ask(order("speak", words=["anew"]))
    assert heard == ["anew"]
    assert end is None


def test_frames_come_out_whole_however_they_are_cut():
    data = make_frame(SAID, ["x"]) + make_frame(SAID, "y" * 1000)
    frames = Frames()
    found = [one for i in range(0, len(data), 7) for one in frames.feed(data[i : i + 7])]
    assert [msgspec.msgpack.decode(body) for _, body in found] == [["x"], "y" * 1000]


def work_through(say, pieces, deadly):
    for piece in pieces:
        say(["at", piece])
        if piece in deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        say(["done", piece])


def lane(pieces, deadly=()):
    def receive(body, one):
        word, piece = msgspec.msgpack.decode(body)
        if word == "at":
            one.at = piece
        else:
            one.done.append(piece)

    return Lane(
        lambda left: order("work_through", pieces=list(left), deadly=list(deadly)), receive, 60.0, 2, list(pieces)
    )


def test_a_deadly_piece_is_given_up_and_costs_no_other():
    lanes = [lane([1, 2, 3], deadly=[2]), lane([4, 5])]
    run_lanes(lanes)
    assert [one.done for one in lanes] == [[1, 3], [4, 5]]
    assert [one.lost for one in lanes] == [[2], []]


class Shelf(list):
    """What an order leaves for the next."""


def leave(say, thing, shop):
    shop.append(thing)
    say([os.getpid(), *shop])


def leaving(thing: str) -> Order:
    return Order(f"{HERE}:leave", {"thing": thing}, keeps=f"{HERE}:Shelf")


def test_a_standing_child_carries_out_the_next_order_with_what_the_last_one_left():
    heard, child = [], Child()
    for thing in ("a", "b"):
        end = supervise(leaving(thing), lambda body: heard.append(msgspec.msgpack.decode(body)), lambda: 60.0, child)
        assert end is None
    assert heard[0][1:] == ["a"]
    assert heard[1] == [heard[0][0], "a", "b"]
    assert child.alive
    assert child.end().returncode == 0
    assert not child.alive


def test_other_children_share_nothing():
    (first,), _ = ask(leaving("a"))
    (second,), _ = ask(leaving("b"))
    assert (first[1:], second[1:]) == (["a"], ["b"])
    assert first[0] != second[0]


@pytest.mark.parametrize("work", [order("die", how=3), order("die", how=signal.SIGKILL)])
def test_a_standing_child_that_dies_is_missed(work):
    child = Child()
    assert supervise(leaving("a"), lambda body: None, lambda: 60.0, child) is None
    end = supervise(work, lambda body: None, lambda: 60.0, child)
    assert end is not None
    assert not child.alive


def test_a_standing_child_whose_order_fails_is_let_go():
    child = Child()
    with pytest.raises(InputError, match="no such input"):
        supervise(order("refuse"), lambda body: None, lambda: 60.0, child)
    assert not child.alive


def come_back_twice(say):
    os.fork()
    for word in "abc":
        say(word)


@forks
def test_what_the_work_forks_does_not_speak_for_it():
    heard, end = ask(order("come_back_twice"))
    assert (heard, end) == (["a", "b", "c"], None)
