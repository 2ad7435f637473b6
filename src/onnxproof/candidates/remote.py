"""A runtime in a supervised process of its own, which answers over a pipe: another build, another release, another language."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from onnxproof.candidates import exchange, serve
from onnxproof.candidates.candidate import Abilities, Outputs
from onnxproof.errors import FindingError, Rejected, UserError, list_names
from onnxproof.findings import Finding, found
from onnxproof.process.dialogue import Answer, Dialogue, Hung, Lost
from onnxproof.request.session import SessionSettings
from onnxproof.tensors.arrays import Arrays

# Seconds until a process must have loaded its onnxruntime.
STARTING = 120.0
# Seconds without an answer after which a runtime hangs.
PATIENCE = 300.0
# Variables that speak of this interpreter's libraries.
NOT_THEIRS = frozenset({"PYTHONPATH", "PYTHONHOME"})
# What an onnxruntime behind serve.py can do.
ABILITIES = Abilities(inner_values=True, rewrites=True, elsewhere=True)


class RemoteRuntime:
    """A runtime behind a pipe. Its process is started when it is first needed, and again after it died."""

    def __init__(
        self,
        name: str,
        command: Callable[[], Sequence[str]],
        *,
        expected: str,
        advice: str,
        abilities: Abilities = ABILITIES,
        patience: float = PATIENCE,
    ) -> None:
        self.name, self.abilities = name, abilities
        self._command, self._expected, self._advice = command, expected, advice
        self._patience = patience
        self._dialogue: Dialogue | None = None
        self._facts: Mapping[str, Any] = {}
        self.lost = 0
        """How many processes are gone, and with each the sessions that were open in it."""
        self._numbers = count()
        self._closed: list[int] = []
        self._lock = threading.RLock()

    def install(self) -> None:
        """Install what has to be installed before it runs: that may take longer than a session is waited for."""
        self._command()

    def versions(self) -> Mapping[str, str]:
        versions = dict(self._read_facts()["versions"])
        release = versions.pop("onnxruntime")
        there = ", ".join(f"{library} {version}" for library, version in versions.items())
        return {"onnxruntime": release, "runtime": f"{self.name} ({there})"}

    def providers(self) -> Sequence[str]:
        available: list[str] = self._read_facts()["providers"]
        return available

    def open(
        self, model: Path | bytes, settings: SessionSettings, renamed: Mapping[str, str] | None = None
    ) -> RemoteSession:
        runtime = f"the onnxruntime {self._read_facts()['versions']['onnxruntime']} of {self.name}"
        exchange.check_providers(settings.providers, self.providers(), runtime)
        return RemoteSession(self, model, settings, renamed or {})

    def ask(self, header: Mapping[str, Any], blobs: Sequence[memoryview] = ()) -> Answer:
        """One question; raises `Lost` where the process dies of it, and starts it again for the next."""
        with self._lock:
            dialogue = self._start()
            try:
                while self._closed:
                    dialogue.ask({"ask": "close", "session": self._closed.pop()}, silence=self._patience)
                return dialogue.ask(header, blobs, silence=self._patience)
            except BaseException:  # after an interrupt, too, the next answer would be that to the last question
                self.stop()
                raise

    def number(self) -> int:
        """A number for a new session."""
        return next(self._numbers)

    def forget(self, number: int) -> None:
        """Close a session before the next question: nothing is asked from within a garbage collection."""
        self._closed.append(number)

    def stop(self) -> None:
        """End the process; it is started again when it is needed."""
        with self._lock:
            if self._dialogue is not None:
                self._dialogue.close()
                self._dialogue = None
                self._closed.clear()
                self.lost += 1

    def _read_facts(self) -> Mapping[str, Any]:
        with self._lock:
            if not self._facts:
                self._start()
            return self._facts

    def _start(self) -> Dialogue:
        if self._dialogue is None:
            environment = {name: value for name, value in os.environ.items() if name not in NOT_THEIRS}
            command = self._command()
            try:
                dialogue = Dialogue(command, environment)
            except OSError as error:
                raise UserError(
                    f"--runtime {self.name}: expected {self._expected}, came {error.strerror} for {command[0]}"
                ) from error
            self._facts = self._greet(dialogue)
            self._dialogue = dialogue
        return self._dialogue

    def _greet(self, dialogue: Dialogue) -> Mapping[str, Any]:
        try:
            facts = dialogue.ask({"ask": "hello"}, silence=STARTING).header
        except Lost as lost:
            raise UserError(
                f"--runtime {self.name}: expected {self._expected}, but it {lost.how}{': ' if lost.log else ''}{lost.log[-500:]}"
            ) from lost
        if "missing" in facts or "error" in facts:
            dialogue.close()
            reason = facts.get("missing") or facts["error"]
            raise UserError(f"--runtime {self.name} cannot load onnxruntime ({reason}): {self._advice}")
        return facts


class RemoteSession:
    """A session there. It is opened again when its process had to be started anew."""

    def __init__(
        self, there: RemoteRuntime, model: Path | bytes, settings: SessionSettings, renamed: Mapping[str, str]
    ) -> None:
        self._there, self._model = there, model
        self._settings, self._renamed = settings, dict(renamed)
        self._number = there.number()
        self._lost = 0
        self._facts: Mapping[str, Any] = {}
        self._open()
        # Also for a session that nobody closes: there it would hold its weights as long as the process lives.
        self._close = weakref.finalize(self, there.forget, self._number)

    def _open(self) -> None:
        header: dict[str, Any] = {
            "ask": "open",
            "session": self._number,
            "settings": exchange.encode_settings(self._settings),
        }
        header |= {"path": str(self._model.resolve())} if isinstance(self._model, Path) else {}
        blobs = [] if isinstance(self._model, Path) else [memoryview(self._model)]
        try:
            facts = self._there.ask(header, blobs).header
        except Lost as lost:
            message = f"the process of {self._there.name} {lost.how} while it opened the file"
            evidence = {"signal": lost.signal_name, "log": lost.log}
            hung = isinstance(lost, Hung)
            finding = found("OX002", message, evidence=evidence) if hung else found("OX001", message, evidence=evidence)
            raise FindingError(finding) from lost
        if "error" in facts:
            raise FindingError(exchange.refuse_file(facts["error"]))
        if not all(facts["inputs"].values()):
            facts = {**facts, **exchange.read_types(self._model)}
        self._facts, self._lost = facts, self._there.lost

    @property
    def outputs(self) -> Sequence[str]:
        return list(self._facts["outputs"])

    def placement(self) -> Finding | None:
        return exchange.judge_placement(self._settings, self._facts["used"], self._facts["assigned"])

    def close(self) -> None:
        self._close()

    def run(self, inputs: Arrays) -> Outputs:
        return self._read(self._compute("run", inputs))

    def pace(self, inputs: Arrays) -> Sequence[float]:
        seconds: Sequence[float] = self._compute("pace", inputs).header["seconds"]
        return seconds

    def _compute(self, what: str, inputs: Arrays) -> Answer:
        told, blobs = serve.pack(exchange.feed(inputs, self._facts["inputs"], self._renamed))
        try:
            # The input before may have killed the process, and all its sessions with it.
            if self._lost != self._there.lost:
                self._open()
            answer = self._there.ask({"ask": what, "session": self._number, "arrays": told}, blobs)
        except FindingError as error:
            raise Rejected(str(error)) from error
        except Lost as lost:
            text = f"the process of {self._there.name} {lost.how}\n{lost.log}".strip()
            # The system's answer to a process that asks for more memory than there is.
            raise (MemoryError(text) if lost.signal_name == "SIGKILL" else Rejected(text)) from lost
        if "error" in answer.header:
            raise exchange.refuse_input(answer.header["error"], answer.header["memory"])
        return answer

    def _read(self, answer: Answer) -> Outputs:
        """The arrays of an answer; raises `Rejected` where they are not what the session promised."""
        declared: Mapping[str, str] = self._facts["outputs"]
        try:
            arrays = serve.unpack(answer.header["arrays"], answer.blobs)
        except (KeyError, TypeError, ValueError) as error:
            raise Rejected(f"{self._there.name} answered with something that is no array: {error}") from error
        if list(arrays) != list(declared):
            raise Rejected(
                f"{self._there.name} answered {list_names(arrays)} where the file has {list_names(declared)}"
            )
        for name, kind in declared.items():
            expected = exchange.choose_carrier(kind)
            if expected is not None and arrays[name].dtype != expected:
                raise Rejected(f"{self._there.name} answered {name} as {arrays[name].dtype} where the file has {kind}")
        return exchange.name_outputs(list(arrays.values()), declared)
