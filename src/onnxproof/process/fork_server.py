"""A process that has imported what every child needs, and forks them.

Importing torch and its exporter takes seconds; a child forked from here has them at once and is as alone as one that
was started anew: no operator ran here, no session was built, no code of the user's was read. Who starts it says what is
imported; onnxruntime must not be, since importing it starts a thread, and threads do not survive a fork.

The standard library's forkserver does the forking too, but not this: it runs the caller's `__main__` again in every
child (a script that calls `prove` at its top level would call it again there), there is one of it in a process,
shared with whatever the user forks, with one list of imports, and it cannot be given a hash seed of its own.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Sequence

from onnxproof.files import tidy_after

# What a request carries: the order, the pipe for events, the log, the pipe for the child's number and end.
FDS = 4
# New objects after which a child looks for garbage: an import makes a hundred thousand, a forward some hundred.
LITTER = 50_000


def main() -> None:
    """Entry of the process that is given FD SCRATCH OUT MODULE…: serve until the parent is gone, and tidy up after it."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    # A terminal sends Ctrl-C to every process: this one has nothing to tidy up and ends at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    scratch, out, *modules = sys.argv[2:]
    _import_for_children(modules)
    ended, tell = os.pipe()
    os.set_blocking(ended, False)
    # set_wakeup_fd refuses a file that may block.
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    # Only signals that Python handles are written to the wakeup file.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    serve(channel, ended, tell)
    tidy_after(scratch, out)


def _import_for_children(modules: Sequence[str]) -> None:
    # What is imported is never garbage: to look through it again and again takes a sixth of a small proof.
    gc.disable()
    for name in modules:
        with contextlib.suppress(Exception):  # what cannot be imported fails again, and with its reason, in the child
            importlib.import_module(name)
    gc.freeze()
    gc.set_threshold(LITTER)
    gc.enable()


def serve(channel: socket.socket, ended: int, tell: int) -> None:
    """Fork a child for each request, and say how each ended."""
    living: dict[int, int] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if ended in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(ended, 4096)
                _bury(living)
            if channel in ready:
                message, fds, _, _ = socket.recv_fds(channel, 1, FDS)
                if not message:  # the parent is gone: nobody waits for its children
                    for pid in living:
                        os.kill(pid, signal.SIGKILL)
                    for pid in living:  # else they might write after everything was tidied up
                        os.waitpid(pid, 0)
                    return
                order, events, log, status = fds
                pid = os.fork()
                if pid == 0:
                    _grow_up(channel, [ended, tell, status, *living.values()], order, events, log)
                for fd in (order, events, log):
                    os.close(fd)
                living[pid] = status
                _say(status, pid)


def _bury(living: dict[int, int]) -> None:
    while living:
        # One byte in the pipe may stand for several deaths.
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        fd = living.pop(pid)
        _say(fd, os.waitstatus_to_exitcode(status))
        os.close(fd)


def _say(fd: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(fd, b"%d\n" % number)


def _grow_up(channel: socket.socket, foreign: Sequence[int], order: int, events: int, log: int) -> None:
    """In the child: become a process of its own, do the order, and never come back."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Here Ctrl-C is raised again, so that the child can tell that it was interrupted.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        channel.close()
        # The parent knows by the end of a status pipe that the server died: a copy here would keep it open.
        for fd in foreign:
            os.close(fd)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        from onnxproof.process.child import attend

        attend(order, events)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)  # attend() has left by itself
