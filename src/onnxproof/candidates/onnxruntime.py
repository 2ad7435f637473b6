"""onnxruntime in this process, with exactly the session that ships."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnxruntime

from onnxproof.candidates import exchange, serve
from onnxproof.candidates.candidate import Abilities, Call, NodeTime, Outputs, Profiled
from onnxproof.errors import FindingError
from onnxproof.findings import Finding
from onnxproof.request.session import SessionSettings
from onnxproof.tensors.arrays import Arrays

# How events of the profiler about a node's computation end.
SUFFIX = "_kernel_time"


class Onnxruntime:
    """The onnxruntime that is installed beside onnxproof."""

    name = "onnxruntime"
    abilities = Abilities(inner_values=True, rewrites=True, profile=True, binding=True, timed=True)

    def versions(self) -> Mapping[str, str]:
        return {"onnxruntime": onnxruntime.__version__}

    def providers(self) -> Sequence[str]:
        available: list[str] = onnxruntime.get_available_providers()
        return available

    def open(
        self, model: Path | bytes, settings: SessionSettings, renamed: Mapping[str, str] | None = None
    ) -> OnnxruntimeSession:
        return OnnxruntimeSession(self._make_session(model, settings), settings, renamed or {})

    def _make_session(self, model: Path | bytes, settings: SessionSettings, options: Any = None) -> Any:
        exchange.check_providers(settings.providers, self.providers(), f"this onnxruntime {onnxruntime.__version__}")
        try:
            return serve.make_session(
                str(model) if isinstance(model, Path) else model, exchange.encode_settings(settings), options
            )
        except Exception as error:
            refused = exchange.refuse_file(str(error).strip())
            plain = replace(settings, optimization="disable", disabled_optimizers=())
            if options is None and plain != settings and self._builds(model, plain):
                refused = exchange.blame_rewrites(refused, str(error).strip())
            raise FindingError(refused) from error

    def _builds(self, model: Path | bytes, settings: SessionSettings) -> bool:
        """Whether there is a session for a file with these settings."""
        try:
            self._make_session(model, settings)
        except FindingError:
            return False
        return True

    def profile(
        self,
        model: Path,
        settings: SessionSettings,
        renamed: Mapping[str, str],
        inputs: Arrays,
        *,
        runs: tuple[int, int],
        seconds: float,
        results: bool,
    ) -> Profiled:
        with tempfile.TemporaryDirectory(prefix="onnxproof-profile-") as folder:
            options = serve.make_options(exchange.encode_settings(settings))
            options.enable_profiling = True
            options.profile_file_prefix = str(Path(folder) / "profile")
            written = Path(folder) / "session.onnx"
            if results:
                options.optimized_model_filepath = str(written)
            session = self._make_session(model, settings, options)
            call = OnnxruntimeSession(session, settings, renamed).prepare(inputs).run
            began, count = time.perf_counter(), 0
            while count < runs[1] and (count < runs[0] or time.perf_counter() - began < seconds):
                call()
                count += 1
            events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
            return Profiled(count, read_node_times(events), _read_results(written))


def read_node_times(events: Iterable[Any]) -> list[NodeTime]:
    """The profiler's events about nodes."""
    found = []
    for event in events:
        if isinstance(event, dict) and event.get("cat") == "Node" and str(event.get("name", "")).endswith(SUFFIX):
            facts = event.get("args") or {}
            op, provider = str(facts.get("op_name", "")), str(facts.get("provider", ""))
            found.append(NodeTime(event["name"].removesuffix(SUFFIX), op, provider, float(event.get("dur", 0))))
    return found


def _read_results(written: Path) -> dict[str, list[str]]:
    if not written.is_file():
        return {}
    from onnxproof.graph.view import Graph, list_names  # it takes a moment to import, and only a profile asks

    return {node.name or "": list_names(node.outputs) for node in Graph.read(written).nodes}


class OnnxruntimeSession:
    """A session here. Arrays go in with the dtype that the graph declares."""

    def __init__(self, session: Any, settings: SessionSettings, renamed: Mapping[str, str]) -> None:
        self._session = session
        self._settings, self._renamed = settings, dict(renamed)
        self._arrays = serve.ArraySession(session)

    @property
    def outputs(self) -> Sequence[str]:
        return list(self._arrays.outputs)

    def run(self, inputs: Arrays) -> Outputs:
        given = self._feed(inputs)
        try:
            values = self._arrays.prepared(given)()
        except Exception as error:
            raise exchange.refuse_input(str(error).strip(), isinstance(error, MemoryError)) from error
        return self._name_outputs(values)

    def pace(self, inputs: Arrays) -> Sequence[float]:
        return serve.time_runs(self._arrays.prepared(self._feed(inputs)))

    def placement(self) -> Finding | None:
        return exchange.judge_placement(
            self._settings, self._session.get_providers(), serve.read_assignment(self._session)
        )

    def close(self) -> None:
        del self._session, self._arrays

    def prepare(self, inputs: Arrays, *, bound: bool = False) -> Call:
        given = self._feed(inputs)
        return self._bind(given) if bound else Call(self._arrays.prepared(given), self._name_outputs)

    def _bind(self, given: Arrays) -> Call:
        session, binding = self._session, self._session.io_binding()
        for name, array in given.items():
            binding.bind_ortvalue_input(name, self._arrays.wrapped(name, array))
        for name in self._arrays.outputs:
            binding.bind_output(name)

        def run() -> Any:
            session.run_with_iobinding(binding)
            return binding

        return Call(run, lambda done: self._name_outputs([serve.unwrap(value) for value in done.get_outputs()]))

    def _feed(self, inputs: Arrays) -> Outputs:
        return exchange.feed(inputs, self._arrays.inputs, self._renamed)

    def _name_outputs(self, values: Sequence[Any]) -> Outputs:
        return exchange.name_outputs(values, self._arrays.outputs)
