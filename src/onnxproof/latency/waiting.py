"""Whether the cores were ours: how long the threads of this process waited for them."""

from __future__ import annotations

from pathlib import Path

TASKS = Path("/proc/self/task")


def read_waiting() -> int | None:
    """Nanoseconds that the threads of this process have waited for a core; None where the system does not tell."""
    waited = []
    for path in TASKS.glob("*/schedstat"):
        try:
            waited.append(int(path.read_text().split()[1]))
        except (OSError, ValueError, IndexError):
            continue  # a thread that has ended meanwhile
    return sum(waited) if waited else None
