"""Runtimes that were installed on demand: a folder for each in the user's cache, whole or not there."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from platformdirs import user_cache_path

from onnxproof.errors import UserError
from onnxproof.files import write_file

# Seconds for which a list of what there is to install is believed.
FRESH = 24 * 3600.0


def keep_folder(name: str, fill: Callable[[Path], None]) -> Path:
    """The folder of that name; one that is not there is filled under another name first, so that nobody sees half of it."""
    kept = _open_cache() / name
    if kept.is_dir():
        return kept
    making = Path(tempfile.mkdtemp(dir=kept.parent, prefix=".making-"))
    try:
        fill(making)
        making.chmod(0o755)
        making.rename(kept)
    except OSError:
        if not kept.is_dir():  # else another process was faster, and its folder is as good
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return kept


def keep_list(name: str, ask: Callable[[], Sequence[str]]) -> list[str]:
    """What `ask` answered within the last day, or answers now."""
    kept = _open_cache() / f"{name}.json"
    if kept.is_file() and time.time() - kept.stat().st_mtime < FRESH:
        return list(json.loads(kept.read_text(encoding="utf-8")))
    answer = list(ask())
    write_file(kept, json.dumps(answer))
    return answer


def run_installer(command: Sequence[str], purpose: str) -> str:
    """What an installer prints; raises a `UserError` with its last words where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise UserError(f"{purpose}: expected {command[0]} on the path, came {error.strerror}") from error
    if done.returncode:
        words = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise UserError(f"{purpose}: `{' '.join(command[:4])} …` failed: {' '.join(words[-2:])[:600]}")
    return done.stdout


def _open_cache() -> Path:
    folder = user_cache_path("onnxproof") / "runtimes"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: expected a folder that runtimes can be kept in, came {error.strerror}; XDG_CACHE_HOME names another"
        ) from error
    return folder
