"""The one door to what systems do differently: locks, memory, cores, times of this process. What a system does not tell is 0 or None."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

fcntl: Any
msvcrt: Any
resource: Any
try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None
try:
    import msvcrt
except ImportError:
    msvcrt = None

# Elsewhere system libraries may not survive a fork: every child is started anew.
FORKS = sys.platform == "linux"
# Whether children can be given open files and be waited for by them; where they cannot, all work is done in one process.
SUPERVISES = os.name == "posix"
PROC = Path("/proc")
# Where Windows locks a file: behind all that is ever written, since what is locked cannot be read.
BEHIND = 1 << 40
# What glibc calls the sizes from which on memory comes from the system and goes back to it; and what a process may keep.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT = 1 << 29


def lock(descriptor: int) -> bool | None:
    """Have a file to oneself until it is closed or this process ends, however that may be; False where another has it, None where
    nobody can tell."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt is not None:
            os.lseek(descriptor, BEHIND, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return None  # a file system without locks
    return True


def end_twin(own: int) -> None:
    """Where the user's code forked and its child came back into ours: it ends, or there were twice as many after every forward."""
    if os.getpid() != own:
        os._exit(0)


def end_own_group() -> None:
    """End all processes of this one's group, and this one: it goes on as a copy that is outside of it."""
    group = os.getpgrp()
    if os.fork():
        signal.pause()
    os.setpgid(0, 0)
    os.killpg(group, signal.SIGKILL)


def read_peak() -> int:
    """The most bytes that this process has had."""
    if resource is None:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


def read_own_seconds() -> float:
    """Seconds of all cores that this process has used."""
    return time.process_time()


def read_memory() -> int:
    """Bytes of the machine."""
    return _count_bytes("SC_PHYS_PAGES")


def read_available() -> int:
    """Bytes that can be had: what the system keeps of files it gives up again, so that it does not decide what is run."""
    with suppress(OSError, StopIteration), (PROC / "meminfo").open() as facts:
        return 1024 * next(int(line.split()[1]) for line in facts if line.startswith("MemAvailable:"))
    return _count_bytes("SC_AVPHYS_PAGES") or read_memory()


def _count_bytes(name: str) -> int:
    try:
        return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0


def keep_memory() -> None:
    """Let this process keep what it frees, up to half a gigabyte: values that are made anew for every operation would each time be made of
    empty pages, which takes longer than to compute them. Only glibc can be told."""
    with suppress(AttributeError, OSError, TypeError):
        adjust = ctypes.CDLL(None).mallopt
        adjust(M_MMAP_THRESHOLD, KEPT // 2)
        adjust(M_TRIM_THRESHOLD, KEPT)


def has_vnni() -> bool:
    """Whether this CPU adds products of bytes in 32 bits; without, two of them are added in 16, which may saturate."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    with suppress(OSError):
        return "vnni" in (PROC / "cpuinfo").read_text(encoding="utf-8")
    return False  # what is right without is right everywhere


def count_cores() -> int:
    """Cores that this process may use; a container may have fewer than the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def alarm(seconds: float, ring: Callable[[], None]) -> Iterator[None]:
    """Call `ring` in the midst of the work after some time, where the system and this thread can be interrupted."""
    # Python takes signal handlers in the main thread only.
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda *_: ring())
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
