"""Runs that are ended at random moments, and what is left of them.

A run here is the command line in a process of its own that is forked from one which has imported torch, as is its fork server: the rest
(children, pipes, files) is as always, and a trial takes a second instead of ten. `plain` scenarios start everything anew.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.reliability.subjects import write_subjects
from onnxproof.files import JOURNAL, PARTIAL
from onnxproof.pipeline.journal import BEGUN, ENDED, read_records

SMALL = ("--batch-sizes", "2,3", "--budget", "5s")
GIVEN = ("--onnx", "right.onnx")
SCENARIOS: dict[str, tuple[str, ...]] = {
    "export": ("verify", "m.py:right", *SMALL),
    "right file": ("verify", "m.py:scaled", *GIVEN, *SMALL),
    "wrong file": ("verify", "m.py:scaled", "--onnx", "wrong.onnx", *SMALL),
    "search": ("verify", "m.py:scaled", *GIVEN, "--search", "0.2s", *SMALL),
    "evaluate": ("evaluate", "m.py:scaled", *GIVEN, "--data", "d.npz"),
    "evaluate in processes": ("evaluate", "m.py:scaled", *GIVEN, "--data", "d.npz", "--workers", "2"),
    "bench": ("bench", "m.py:scaled", *GIVEN, "--batch-sizes", "2", "--min-time", "0.05s", "--budget", "1s"),
    "evaluate on Ray": ("evaluate", "m.py:scaled", *GIVEN, "--data", "d.npz", "--ray"),
}
PLAIN = ("evaluate on Ray",)
# Whom a fault ends, and how.
FAULTS = {
    "parent, SIGKILL": ("parent", signal.SIGKILL),
    "parent, SIGTERM": ("parent", signal.SIGTERM),
    "parent, SIGINT": ("parent", signal.SIGINT),
    "child, SIGKILL": ("child", signal.SIGKILL),
    "child, SIGSEGV": ("child", signal.SIGSEGV),
    "fork server, SIGKILL": ("server", signal.SIGKILL),
}
# What tells how long something took, how the command was called, or how far a search came before the clock ended it.
TIMES = frozenset({"seconds", "timing", "command", "rows_per_second", "latency", "search"})
LONGEST = 240.0


class _Process:
    """A forked process, as `subprocess.Popen` would tell of it."""

    def __init__(self, pid: int) -> None:
        self.pid, self._code = pid, None

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        return self._wait(0)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _wait(self, how: int) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, how)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


def _fork_the_server() -> None:
    """Fork servers are forked, too: they have torch then."""
    from onnxproof.process import supervisor

    spawn = supervisor._spawn

    def fork(module: str, files: Any, log: int, *arguments: str) -> Any:
        if module != "fork_server":
            return spawn(module, files, log, *arguments)
        pid = os.fork()
        if pid:
            return _Process(pid)
        try:
            for fd in range(3, 256):
                if fd not in files:
                    with suppress(OSError):
                        os.close(fd)
            tempfile.tempdir = arguments[0]
            os.environ["TMPDIR"] = arguments[0]
            supervisor._scratch = supervisor._server = None
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            sys.argv = ["-", str(files[0]), *arguments]
            from onnxproof.process.fork_server import main

            main()
        finally:
            os._exit(0)

    supervisor._spawn = fork  # type: ignore[assignment]


def start(folder: Path, arguments: tuple[str, ...], *, plain: bool) -> int:
    """Begin a run in a folder; its process."""
    out = os.open(folder / "stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    err = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    temporary = find_temporary(folder)
    temporary.mkdir(exist_ok=True)
    if plain:
        command = [sys.executable, "-m", "onnxproof", *arguments]
        environment = {**os.environ, "TMPDIR": str(temporary)}
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=err, start_new_session=True
        ).pid
    pid = os.fork()
    if pid:
        os.close(out)
        os.close(err)
        return pid
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(out, 1)
        os.dup2(err, 2)
        tempfile.tempdir = None
        os.environ["TMPDIR"] = str(temporary)
        _fork_the_server()
        sys.argv = ["onnxproof", *arguments]
        from onnxproof.cli import main

        code: Any = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 2)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(99)


def find_temporary(folder: Path) -> Path:
    """Where a run has its temporary files: in a trial beside its own folder, since only in a short path Ray puts its files there, too."""
    return folder / "tmp" if (folder / "tmp").is_dir() else folder.parent / "t"


def wait(pid: int, limit: float) -> int | None:
    """The exit code; None where it takes too long."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None


def list_members(session: int) -> list[tuple[int, int]]:
    """(Process, its parent) of everybody in a session who is not a zombie."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent, _, owner = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(owner) == session and state != "Z":
                found.append((int(entry.name), int(parent)))
    return found


def choose(session: int, whom: str, generator: random.Random) -> int | None:
    """A process of the run; None where there is no such one now."""
    members = [(pid, parent) for pid, parent in list_members(session) if pid != session]
    servers = [pid for pid, parent in members if parent == session]
    children = [pid for pid, parent in members if parent != session]
    if whom == "parent":
        return session
    some = servers if whom == "server" else children
    return generator.choice(some) if some else None


def list_leavings(folder: Path, session: int, limit: float = 20.0) -> list[str]:
    """Processes and temporary files that are still there after a while."""
    end = time.monotonic() + limit
    while True:
        left = [f"process {pid}: {read_command(pid)}" for pid, _ in list_members(session)]
        left += [f"{file.parent.name}/{file.name}" for file in find_temporary(folder).iterdir()]
        # Not `rglob`: what is tidied up meanwhile is an error there.
        left += [
            f"{parent}/{name}"
            for parent, folders, files in os.walk(folder)
            for name in (*folders, *files)
            if name.startswith(".") and name.endswith(PARTIAL)
        ]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)


def read_command(pid: int) -> str:
    """How a process was called, or at least its name."""
    with suppress(OSError):
        words = (
            (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        )
        return words[:200] or (Path("/proc") / str(pid) / "comm").read_text().strip()
    return "has ended meanwhile"


def list_broken(folder: Path) -> list[str]:
    """Files that are not whole."""
    import numpy as np
    import onnx

    broken = []
    for file in (folder / "onnxproof-out").rglob("*"):
        try:
            if file.suffix == ".json":
                json.loads(file.read_text())
            elif file.suffix == ".onnx":
                onnx.load(file)
            elif file.suffix == ".npz" and not file.name.startswith("."):
                with np.load(file) as archive:
                    [archive[name] for name in archive.files]
            elif file.suffix == ".html" and "</html>" not in file.read_text()[-100:]:
                raise ValueError("cut off")
        except Exception as error:
            broken.append(f"{file.name}: {type(error).__name__}")
    return broken


def find_stage(folder: Path) -> str:
    """Where a run was when it ended."""
    try:
        data = (folder / "onnxproof-out" / JOURNAL).read_bytes()
    except OSError:
        return "start"
    at = "export"
    import msgspec

    for kind, body, _ in read_records(data):
        if kind == BEGUN:
            at = msgspec.msgpack.decode(body)[0]
        elif kind == ENDED:
            at = f"after {at}"
    return at


def normalise(value: Any) -> Any:
    """A proof without times; of what is judged by them (how busy the machine is decides that, too), nothing."""
    if isinstance(value, dict):
        if "verdict" in value and any(map(_is_about_times, value.get("findings", ()))):
            value = {**value, "verdict": _judge(one for one in value["findings"] if not _is_about_times(one))}
        return {key: normalise(one) for key, one in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [normalise(one) for one in value if not _is_about_times(one)]
    return value


def _is_about_times(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("code", "")).startswith("OX4")


def _judge(findings: Iterable[Any]) -> str:
    """The verdict of some findings."""
    severities = {one["severity"] for one in findings}
    return next((verdict for verdict in ("block", "review") if verdict in severities), "ship")


def read_proof(folder: Path) -> Any:
    try:
        return json.loads((folder / "onnxproof-out" / "proof.json").read_text())
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class Trial:
    """What was done to a run, and what came of it."""

    scenario: str
    fault: str
    stage: str
    code: int | None
    """The exit code of the run that was disturbed."""
    hit: bool
    """Whether there was somebody to be hit."""
    left: tuple[str, ...]
    broken: tuple[str, ...]
    wrong_ship: bool
    called_a_bug: bool
    resumed: bool
    """Whether the resumed run's proof is the undisturbed one's."""
    said: str = ""


@dataclass(frozen=True)
class Undisturbed:
    """A run to compare with."""

    proof: Any
    seconds: float
    stages: tuple[tuple[str, float], ...]
    """Its stages, and how long each took."""


def run_undisturbed(scenario: str, folder: Path) -> Undisturbed:
    """As if nothing happened."""
    write_subjects(folder)
    began = time.monotonic()
    pid = start(folder, SCENARIOS[scenario], plain=scenario in PLAIN)
    code = wait(pid, LONGEST)
    proof = read_proof(folder)
    if code not in (0, 1) or proof is None:
        raise RuntimeError(f"{scenario}: exit {code}: {(folder / 'stderr').read_text()[-2000:]}")
    seconds = time.monotonic() - began
    stages = list_stages(folder)
    return Undisturbed(normalise(proof), seconds, (("start", (seconds - sum(s for _, s in stages)) / 2), *stages))


def list_stages(folder: Path) -> list[tuple[str, float]]:
    """The stages that a journal tells of, and how long each took."""
    import msgspec

    stages, name = [], ""
    for kind, body, _ in read_records((folder / "onnxproof-out" / JOURNAL).read_bytes()):
        if kind == BEGUN:
            name = msgspec.msgpack.decode(body)[0]
        elif kind == ENDED:
            stages.append((name, msgspec.msgpack.decode(body)))
    return stages


def wait_for_stage(pid: int, folder: Path, stage: str) -> None:
    """Until a run is in a stage, or has ended."""
    while stage != "start" and not _is_over(pid) and stage not in _begun(folder):
        time.sleep(0.01)


def _is_over(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _begun(folder: Path) -> list[str]:
    import msgspec

    try:
        data = (folder / "onnxproof-out" / JOURNAL).read_bytes()
    except OSError:
        return []
    return [msgspec.msgpack.decode(body)[0] for kind, body, _ in read_records(data) if kind == BEGUN]


def disturb(scenario: str, fault: str, undisturbed: Undisturbed, folder: Path, generator: random.Random) -> Trial:
    """One run, ended or hurt at a random moment, then resumed."""
    write_subjects(folder)
    plain, (whom, number) = scenario in PLAIN, FAULTS[fault]
    wanted, lasts = generator.choice(undisturbed.stages)
    pid = start(folder, SCENARIOS[scenario], plain=plain)
    wait_for_stage(pid, folder, wanted)
    time.sleep(generator.uniform(0, 1) * lasts)
    victim, patience = choose(pid, whom, generator), time.monotonic() + undisturbed.seconds
    while victim is None and time.monotonic() < patience and not _is_over(pid):
        time.sleep(0.02)
        victim = choose(pid, whom, generator)
    stage = find_stage(folder)
    hit = False
    if victim is not None:
        with suppress(ProcessLookupError):
            os.kill(victim, number)
            hit = True
    code = wait(pid, LONGEST)
    if code is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    left, broken = list_leavings(folder, pid), list_broken(folder)
    said, told = (folder / "stdout").read_text(), (folder / "stderr").read_text()
    wrong = undisturbed.proof["verdict"] != "ship" and (code == 0 or said.startswith("SHIP"))
    again = start(folder, (*SCENARIOS[scenario], "--resume"), plain=plain)
    final = wait(again, LONGEST)
    left += list_leavings(folder, again)
    proof = read_proof(folder)
    same = proof is not None and final == (proof["verdict"] != "ship") and normalise(proof) == undisturbed.proof
    words = told + (folder / "stderr").read_text()
    note = "" if same else f"exit {final}; {words[-600:]}"
    return Trial(
        scenario, fault, stage, code, hit, tuple(left), tuple(broken), wrong, "bug in onnxproof" in words, same, note
    )


def run_trials(count: int, seed: int, scenarios: list[str], keep: Path | None = None) -> Iterator[Trial]:
    """So many trials, over the scenarios and faults in turn."""
    from onnxproof.pipeline import preload, preload_exporter  # noqa: F401  # what forked servers have

    base = Path(tempfile.mkdtemp(prefix="k"))
    try:
        calm = {}
        for name in dict.fromkeys(scenarios):
            (base / name).mkdir()
            calm[name] = run_undisturbed(name, base / name)
            print(f"{name}: {calm[name].seconds:.1f} s undisturbed", flush=True)
        for number in range(count):
            generator = random.Random(f"{seed} {number}")
            scenario = scenarios[number % len(scenarios)]
            fault = generator.choice(list(FAULTS))
            # The same place as the undisturbed one: paths are part of a proof.
            folder = base / scenario
            shutil.rmtree(folder)
            folder.mkdir()
            trial = disturb(scenario, fault, calm[scenario], folder, generator)
            bad = trial.left or trial.broken or trial.wrong_ship or trial.called_a_bug or not trial.resumed
            print(
                f"{number} {scenario} / {fault} / {trial.stage} → {trial.code}{'  BAD ' + repr(trial) if bad else ''}",
                flush=True,
            )
            if bad and keep is not None:
                shutil.copytree(folder, keep / f"{seed}-{number}", dirs_exist_ok=True)
                (keep / f"{seed}-{number}" / "undisturbed.json").write_text(json.dumps(calm[scenario].proof, indent=1))
            yield trial
    finally:
        shutil.rmtree(base, ignore_errors=True)
