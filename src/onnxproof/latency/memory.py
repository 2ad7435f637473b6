"""Peak memory of one contender, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from onnxproof import system
from onnxproof.cases.plan import Inputs
from onnxproof.errors import Rejected
from onnxproof.latency.contenders import Contender
from onnxproof.subject.subject import Subject

CLEAR, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
# What Linux takes for this in clear_refs, see proc(5).
RESET_PEAK = "5"


def weigh_parameters(subject: Subject) -> int:
    """Bytes of a module's parameters and buffers, shared ones once."""
    tensors = {t.data_ptr(): t for t in (*subject.module.parameters(), *subject.module.buffers())}
    return sum(t.numel() * t.element_size() for t in tensors.values())


def reset_peak() -> None:
    """Let the peak start again from what is used now, where the system can do that."""
    with suppress(OSError):
        CLEAR.write_text(RESET_PEAK, encoding="ascii")


def read_memory() -> int:
    """Bytes used now."""
    return _read_status("VmRSS") or read_peak()


def read_peak() -> int:
    """The most that was used since the last reset."""
    return _read_status("VmHWM") or system.read_peak()


def _read_status(key: str) -> int | None:
    try:
        lines = STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":")), None)


def weigh(make: Callable[[], Contender], inputs: Sequence[Inputs], subject: Subject | None) -> list[int | None]:
    """Build a contender and run it on each input in turn (small ones first): how far the peak has grown until then.

    PyTorch's weights are there before it starts and are added; a session reads its own.
    """
    reset_peak()
    before = read_memory()
    contender = make()
    there = weigh_parameters(subject) if subject is not None else 0
    grown: list[int | None] = []
    for one in inputs:
        try:
            call = contender.prepare(one)
            with contender.around():
                call()
        except Rejected:
            grown.append(None)
        else:
            grown.append(max(0, read_peak() - before) + there)
    return grown
