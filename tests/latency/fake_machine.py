"""A machine for tests: time passes when something is called."""

from __future__ import annotations

import gc

from onnxproof.latency.harness import Harness, Timed


class FakeMachine:
    """A clock that moves when something is called, and not otherwise."""

    def __init__(self) -> None:
        self.now = 0
        self.calls: list[str] = []
        self.collecting: list[bool] = []

    def clock(self) -> int:
        return self.now

    def contender(self, name, nanoseconds):
        def call():
            self.calls.append(name)
            self.collecting.append(gc.isenabled())
            count = self.calls.count(name)
            self.now += nanoseconds(count) if callable(nanoseconds) else nanoseconds
            return f"{name} {count}"

        return Timed(name, call)

    def harness(self, times, need, **options):
        timed = [self.contender(name, spent) for name, spent in times.items()]
        options = {"waited": lambda: 0, **options}
        return Harness(timed, need, clock=self.clock, sleep=lambda seconds: None, **options)
