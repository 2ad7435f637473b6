"""The machine while it is timed: what it is, who else uses it, whether it slows itself down."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from dataclasses import dataclass, replace
from pathlib import Path

from onnxproof.latency.harness import measure_overhead, measure_resolution
from onnxproof.proof.latency import Machine
from onnxproof.request.session import SessionSettings
from onnxproof.system import count_cores, read_memory, read_own_seconds

PROC, SYS = Path("/proc"), Path("/sys")


@dataclass(frozen=True)
class Look:
    """Counters at one moment; None where the system does not tell."""

    at: float
    load: float | None
    mhz: float | None
    busy: float | None
    """Seconds that all cores together were busy since the start."""
    steal: float | None
    own: float
    """Seconds that this process used."""
    throttled: int | None


def set_threads(session: SessionSettings) -> SessionSettings:
    """The session with its number of threads made explicit: all cores, unless something else is asked for."""
    return replace(session, threads=session.threads or count_cores())


def look() -> Look:
    """Read the counters."""
    busy, steal = _read_cpu_seconds()
    clocks = [float(line.partition(":")[2]) for line in _read_lines(PROC / "cpuinfo") if line.startswith("cpu MHz")]
    mhz = sum(clocks) / len(clocks) if clocks else None
    try:
        load: float | None = os.getloadavg()[0]
    except (OSError, AttributeError):
        load = None
    return Look(time.perf_counter(), load, mhz, busy, steal, read_own_seconds(), _count_throttling())


def describe(before: Look, after: Look) -> Machine:
    """What happened between two looks, and what the machine is."""
    seconds = max(after.at - before.at, 1e-9)
    others = steal = throttled = None
    if before.busy is not None and after.busy is not None:
        # More telling than the load average, which counts this process too.
        others = max(0.0, (after.busy - before.busy) - (after.own - before.own)) / seconds
    if before.steal is not None and after.steal is not None:
        steal = max(0.0, after.steal - before.steal) / seconds / (os.cpu_count() or 1)
    if before.throttled is not None and after.throttled is not None:
        throttled = after.throttled - before.throttled
    return Machine(
        fingerprint=fingerprint_machine(),
        cpu=_name_cpu(),
        cores=count_cores(),
        memory=read_memory(),
        clock_ns=measure_resolution(),
        overhead_ns=measure_overhead(),
        load_before=before.load,
        load_after=after.load,
        others=others,
        steal=steal,
        mhz_before=before.mhz,
        mhz_after=after.mhz,
        throttled=throttled,
    )


def fingerprint_machine() -> str:
    """The same for machines on which times may be compared: processor, cores, memory (in GB), system."""
    memory = round(read_memory() / 1e9)
    parts = (_name_cpu(), str(os.cpu_count()), str(count_cores()), str(memory), platform.machine(), platform.system())
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def _name_cpu() -> str:
    named = (line for line in _read_lines(PROC / "cpuinfo") if line.startswith(("model name", "Model")))
    line = next(named, None)
    return line.partition(":")[2].strip() if line is not None else platform.processor() or platform.machine()


def _read_cpu_seconds() -> tuple[float | None, float | None]:
    """Busy and stolen seconds of all cores since the start."""
    first = next(iter(_read_lines(PROC / "stat")), "").split()
    if len(first) < 9 or first[0] != "cpu":
        return None, None
    user, nice, system, _, _, irq, softirq, steal = (int(field) for field in first[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, steal / tick


def _count_throttling() -> int | None:
    """Heat counters of all cores and the control group's quota counter."""
    counts = [
        int(text)
        for path in SYS.glob("devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count")
        for text in _read_lines(path)[:1]
    ]
    for path in (SYS / "fs/cgroup/cpu.stat", SYS / "fs/cgroup/cpu/cpu.stat"):
        counts += [int(line.split()[1]) for line in _read_lines(path) if line.startswith("nr_throttled")]
    return sum(counts) if counts else None


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
