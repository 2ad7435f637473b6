"""A fork server that has imported everything before a test asks for it.

The command line starts a process that imports torch and its exporter and forks the children. Tests of what comes after that fork such a
process from one that the whole test session shares: it is the same program, a few seconds of imports later.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# Runs the command line with its fork server taken from the process that listens there.
COMMAND = "import sys; sys.path.append({here!r}); import warm; warm.install({place!r}); from onnxproof.cli import main; main()"


def start(place: Path) -> subprocess.Popen[bytes]:
    """The process that every fork server of this session is forked from, listening."""
    code = f"import sys; sys.path.append({str(HERE)!r}); import warm; warm.listen({str(place)!r})"
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment, cwd="/")
    assert process.stdout is not None
    process.stdout.readline()  # it listens
    return process


def listen(place: str) -> None:
    """Fork a server for whoever asks, until nobody may ask any more."""
    from onnxproof.pipeline.executors import PRELOADED, PRELOADED_TO_EXPORT
    from onnxproof.process import fork_server

    sys.path = [one for one in sys.path if one]
    fork_server._import_for_children([PRELOADED, PRELOADED_TO_EXPORT])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(place)
        listening.listen()
        print("listening", flush=True)
        while True:
            asking, _ = listening.accept()
            message, fds, _, _ = socket.recv_fds(asking, 1 << 20, 1)
            if (pid := os.fork()) == 0:
                listening.close()
                asking.close()
                _serve(fds[0], **json.loads(message))
            os.close(fds[0])
            asking.send(b"%d" % pid)
            asking.close()


def _serve(channel: int, arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """In the fork: be what the command line would have started."""
    from onnxproof.process import fork_server

    with contextlib.suppress(BaseException):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        sys.argv = ["-c", str(channel), *arguments]
        fork_server.main()
    os._exit(0)


class Forked:
    """What the command line sees of the process: as much as it asks for."""

    def __init__(self, pid: int) -> None:
        self._process = os.pidfd_open(pid)

    def poll(self) -> int | None:
        return 0 if select.select([self._process], [], [], 0)[0] else None

    def wait(self) -> int:
        select.select([self._process], [], [])
        return 0

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, signal.SIGKILL)


def install(place: str) -> None:
    """From here on the supervisor's fork server comes from there; every other process is started as ever."""
    from onnxproof.process import supervisor

    spawn = supervisor._spawn

    def fork(module, files, log, *arguments):
        if module != "fork_server":
            return spawn(module, files, log, *arguments)
        environment = {"PYTHONHASHSEED": "0", **os.environ}
        environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(supervisor._scratch))
        asked = {"arguments": arguments, "environment": environment, "folder": os.getcwd()}
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
            asking.connect(place)
            socket.send_fds(asking, [json.dumps(asked).encode()], files)
            return Forked(int(asking.recv(32)))

    supervisor._spawn = fork
