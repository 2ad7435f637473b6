"""Work in the command's own process is watched by another one: a module that ends its process must not give the exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from onnxproof.cli.ending import stop
from onnxproof.process.child import leave
from onnxproof.process.dialogue import name_signal
from onnxproof.request.request import Request
from onnxproof.system import SUPERVISES

# Names the file in which a command that is watched says with which code it ends.
WATCHED = "ONNXPROOF_WATCHED"
# As children are started: what lies in the current folder is not imported before TARGET is.
START = "import sys; sys.path = [p for p in sys.path if p]; from onnxproof.cli import main; main()"


def watch(request: Request) -> None:
    """Have work that no child does done by a process that has the same terminal, and end as it says; go on where this is that
    process, or where a debugger is, which would not follow."""
    supervised = SUPERVISES and not request.in_process
    if supervised or WATCHED in os.environ or sys.gettrace() is not None:
        return
    with tempfile.TemporaryDirectory() as folder:
        word = Path(folder) / "end"
        command = [sys.executable, "-c", START, *sys.argv[1:]]
        process = subprocess.Popen(command, env={**os.environ, WATCHED: str(word)})
        # Ctrl-C is sent to both by the terminal; what it means is said by the one that works.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        code = process.wait()
        told = word.read_text() if word.is_file() else ""
    if told == str(code):
        sys.exit(code)
    how = name_signal(code) or f"exit code {code}"
    stop(
        f"error: expected a verdict, but the process ended in the midst of the work ({how}); without --in-process that is a finding with its case"
    )


def tell_end(code: object) -> None:
    """Say to whoever watches that this process ends by itself, and end it: threads of the module's may live on."""
    if WATCHED in os.environ:
        number = code if isinstance(code, int) else int(code is not None)
        Path(os.environ[WATCHED]).write_text(str(number))
        leave(number)


def leave_with_the_watcher() -> None:
    """End where whoever watches was killed: nobody would hear of the end."""

    def look(parent: int) -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if WATCHED in os.environ:
        threading.Thread(target=look, args=(os.getppid(),), daemon=True).start()
