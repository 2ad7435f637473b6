"""Sessions of any onnxruntime from 1.15 on, and a server for them.

This file is run as a script by other interpreters (Python 3.9 or later), which have numpy and onnxruntime and nothing of onnxproof:
it imports nothing else. The session in this process is built by the same functions, so that the two are the same.
Its frames are those of `process/dialogue.py`.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module, util
from typing import Any

if __name__ == "__main__":
    # A script's own folder comes first: there, `onnxruntime` is another file.
    sys.path[:] = [p for p in sys.path if os.path.realpath(p or ".") != os.path.dirname(os.path.realpath(__file__))]
    sys.path[:0] = sys.argv[1:]  # folders with the libraries to serve, where they are not the interpreter's own

EXTENSIONS = "ai.onnx.contrib"  # the domain of onnxruntime-extensions: tokenizers and the like
MAGIC = b"oxp1"
PREFIX = struct.Struct(">4sIQ")
# Optimisation levels and their names in onnxruntime.
LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
# Types that numpy does not have: the integers that carry their bytes, and ONNX's number for them.
NARROW = {
    "tensor(bfloat16)": ("uint16", 16),
    "tensor(float8e4m3fn)": ("uint8", 17),
    "tensor(float8e4m3fnuz)": ("uint8", 18),
    "tensor(float8e5m2)": ("uint8", 19),
    "tensor(float8e5m2fnuz)": ("uint8", 20),
}
# A session's settings as plain data: providers, optimization, threads, disabled_optimizers, execution, spinning, weights.
Settings = Mapping[str, Any]


def make_options(settings: Settings) -> Any:
    """onnxruntime's own options."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, LEVELS[settings["optimization"]])
    # Only what is fatal is printed: what fails is raised in the same words.
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if settings["weights"] is not None:
        # Of a model in bytes, onnxruntime cannot know the folder.
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", settings["weights"])
    if not settings["spinning"]:
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    if settings["threads"] is not None:
        options.intra_op_num_threads = settings["threads"]
        options.inter_op_num_threads = 1
    if settings["execution"] == "parallel":
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
        options.inter_op_num_threads = settings["threads"] or 0
    return options


def make_session(model: str | bytes, settings: Settings, options: Any = None) -> Any:
    """The session, with the operators of onnxruntime-extensions where it needs and finds them; raises what onnxruntime raises."""
    import onnxruntime

    options = make_options(settings) if options is None else options
    providers = [(name, dict(chosen)) for name, chosen in settings["providers"]]
    disabled = list(settings["disabled_optimizers"]) or None
    build = partial(onnxruntime.InferenceSession, model, options, providers=providers, disabled_optimizers=disabled)
    try:
        return build()
    except Exception as error:
        if EXTENSIONS not in str(error) or util.find_spec("onnxruntime_extensions") is None:
            raise
    options.register_custom_ops_library(import_module("onnxruntime_extensions").get_library_path())
    return build()


def read_assignment(session: Any) -> dict[str, list[str]]:
    """Provider → operators of the nodes it runs; nothing where this onnxruntime does not tell."""
    nodes: dict[str, list[str]] = {}
    ask = getattr(session, "get_provider_graph_assignment_info", None)
    for part in ask() if ask is not None else ():
        nodes.setdefault(part.ep_name, []).extend(node.op_type for node in part.get_nodes())
    return nodes


def read_types(ports: Sequence[Any]) -> dict[str, str]:
    """Inputs or outputs → their types, in onnxruntime's words."""
    return {port.name: port.type for port in ports}


class ArraySession:
    """A session that takes and gives arrays, of types that numpy does not have too: these travel in integers of their size."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.inputs, self.outputs = read_types(session.get_inputs()), read_types(session.get_outputs())
        self._plain = not any(kind in NARROW for kind in (*self.inputs.values(), *self.outputs.values()))

    def prepared(self, feed: Mapping[str, Any]) -> Callable[[], list[Any]]:
        """A run on these arrays, as direct a call as there is."""
        if self._plain:
            run = self._session.run
            return lambda: run(None, feed)
        given = {name: self.wrapped(name, array) for name, array in feed.items()}
        return lambda: [unwrap(value) for value in self._session.run_with_ort_values(None, given)]

    def wrapped(self, name: str, array: Any) -> Any:
        """An input in onnxruntime's own form."""
        import onnxruntime

        kind = self.inputs[name]
        if kind not in NARROW:
            return onnxruntime.OrtValue.ortvalue_from_numpy(array)
        make = getattr(onnxruntime.OrtValue, "ortvalue_from_numpy_with_onnx_type", None)
        if make is None:
            raise TypeError(f"onnxruntime {onnxruntime.__version__} takes no {kind} from Python; a later release does")
        return make(array, NARROW[kind][1])


def time_runs(run: Callable[[], Any]) -> list[float]:
    """Seconds of a few runs: at least three after two that do not count, and no more than fit into a moment."""
    seconds: list[float] = []
    for count in range(32):
        began = time.perf_counter()
        run()
        seconds += [time.perf_counter() - began] * (count > 1)
        if count > 3 and sum(seconds) > 0.1:
            break
    return seconds


def unwrap(value: Any) -> Any:
    """A copy of an output in onnxruntime's own form."""
    import numpy

    kind = value.data_type()
    if kind not in NARROW:
        return numpy.array(value.numpy())
    carrier = numpy.dtype(NARROW[kind][0])
    count = int(numpy.prod(value.shape(), dtype=numpy.int64))
    # onnxruntime hands out no array of this type, but says where its bytes are.
    data = ctypes.string_at(value.data_ptr(), count * carrier.itemsize) if count else b""
    return numpy.frombuffer(data, carrier).reshape(value.shape()).copy()


def pack(arrays: Mapping[str, Any]) -> tuple[list[list[Any]], list[Any]]:
    """Arrays as [name, dtype, shape] and bytes; texts as JSON."""
    told, blobs = [], []
    for name, array in arrays.items():
        text = array.dtype.kind in "OUS"
        told.append([name, "text" if text else array.dtype.str, list(array.shape)])
        blobs.append(_encode_texts(array) if text else array.reshape(-1).view("uint8").data)
    return told, blobs


def _encode_texts(array: Any) -> memoryview:
    items = [item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in array.reshape(-1)]
    if not all(isinstance(item, str) for item in items):
        raise TypeError(f"a value that is no tensor ({type(items[0]).__name__}) cannot be sent")
    return memoryview(json.dumps(items).encode())


def unpack(told: Sequence[Sequence[Any]], blobs: Sequence[Any]) -> dict[str, Any]:
    """The same backwards."""
    import numpy

    arrays = {}
    for place, (name, dtype, shape) in enumerate(told):
        if dtype == "text":
            items = numpy.empty(tuple(shape), dtype=object)
            items.reshape(-1)[:] = json.loads(bytes(blobs[place]))
            arrays[name] = items
        else:
            arrays[name] = numpy.frombuffer(blobs[place], numpy.dtype(dtype)).reshape(shape)
    return arrays


def _read(pipe: int, count: int) -> memoryview:
    """So many bytes. Who asks is gone when the pipe ends: nobody waits for this process any more."""
    data = memoryview(bytearray(count))
    left = data
    while left:
        part = os.read(pipe, min(len(left), 1 << 20))
        if not part:
            # Not sys.exit, which would end this thread alone.
            os._exit(0)
        left[: len(part)] = part
        left = left[len(part) :]
    return data


def _listen(pipe: int, requests: queue.SimpleQueue[Any]) -> None:
    """Take in questions; in a thread, so that the end of the pipe is noticed while a session computes."""
    while True:
        _, size, _ = PREFIX.unpack(_read(pipe, PREFIX.size))
        header = json.loads(bytes(_read(pipe, size)))
        requests.put((header, [_read(pipe, length) for length in header["blobs"]]))


def _say(pipe: int, header: Mapping[str, Any], blobs: Sequence[Any] = ()) -> None:
    sizes = [blob.nbytes for blob in blobs]
    text = json.dumps({**header, "blobs": sizes}).encode()
    for part in (PREFIX.pack(MAGIC, len(text), sum(sizes)) + text, *blobs):
        left = memoryview(part)
        while left:
            left = left[os.write(pipe, left) :]


class Server:
    """Sessions by number."""

    def __init__(self) -> None:
        self._sessions: dict[int, ArraySession] = {}

    def hello(self, header: Mapping[str, Any], blobs: Sequence[Any]) -> tuple[dict[str, Any], list[Any]]:
        """Who is there."""
        try:
            import numpy
            import onnxruntime
        except Exception as error:
            return {"missing": f"{type(error).__name__}: {error}"}, []
        python = ".".join(map(str, sys.version_info[:3]))
        versions = {"onnxruntime": onnxruntime.__version__, "Python": python, "NumPy": numpy.__version__}
        return {"versions": versions, "providers": onnxruntime.get_available_providers(), "levels": list(LEVELS)}, []

    def open(self, header: Mapping[str, Any], blobs: Sequence[Any]) -> tuple[dict[str, Any], list[Any]]:
        """Build a session from a path, or from the bytes that came along."""
        session = make_session(bytes(blobs[0]) if blobs else header["path"], header["settings"])
        self._sessions[header["session"]] = run = ArraySession(session)
        facts = {"used": session.get_providers(), "assigned": read_assignment(session)}
        return {**facts, "inputs": run.inputs, "outputs": run.outputs}, []

    def run(self, header: Mapping[str, Any], blobs: Sequence[Any]) -> tuple[dict[str, Any], list[Any]]:
        """Compute."""
        import numpy

        session = self._sessions[header["session"]]
        values = [numpy.asarray(value, order="C") for value in session.prepared(unpack(header["arrays"], blobs))()]
        told, answer = pack({name: values[place] for place, name in enumerate(session.outputs)})
        return {"arrays": told}, answer

    def pace(self, header: Mapping[str, Any], blobs: Sequence[Any]) -> tuple[dict[str, Any], list[Any]]:
        """Seconds of a few runs."""
        run = self._sessions[header["session"]].prepared(unpack(header["arrays"], blobs))
        return {"seconds": time_runs(run)}, []

    def close(self, header: Mapping[str, Any], blobs: Sequence[Any]) -> tuple[dict[str, Any], list[Any]]:
        """Forget a session."""
        self._sessions.pop(header["session"], None)
        return {}, []


def main() -> None:
    """Answer until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to everybody: who asks decides
    pipes = os.dup(0), os.dup(1)
    # Nobody else may read from the pipe of questions.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a runtime prints goes to the log
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipes[0], requests), daemon=True).start()
    server = Server()
    while True:
        header, blobs = requests.get()
        try:
            answer, parts = getattr(server, header["ask"])(header, blobs)
        except Exception as error:
            answer, parts = {"error": str(error).strip(), "memory": isinstance(error, MemoryError)}, []
        _say(pipes[1], answer, parts)


if __name__ == "__main__":
    main()
