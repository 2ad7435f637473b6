"""A real cluster of two nodes: the same answer as a local run, also when a worker or a node is lost on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest
from benchmarks.reliability.kills import list_members, read_command
from benchmarks.reliability.subjects import write_subjects

import onnxproof
from onnxproof.data.arrays import ArraySource
from onnxproof.errors import UserError
from onnxproof.integrations.ray import _connect, _stream
from onnxproof.proof.codec import to_plain
from onnxproof.system import FORKS
from test_supervision import wait_for

ray = pytest.importorskip("ray")

ROWS = 200_000
MODEL = """
import torch

class Scores(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.fc = torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.fc(x)

def make():
    return Scores().eval(), (torch.randn(2, 6),)
"""


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    (folder / "model.py").write_text(MODEL)
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, 6)).astype(np.float32)
    np.savez(folder / "rows.npz", x=x, labels=generator.integers(0, 3, ROWS))
    proof = onnxproof.export(f"{folder / 'model.py'}:make", out=folder / "out")
    broken = folder / "broken.onnx"
    broken.write_bytes(changed(folder / "out" / "model.onnx"))
    assert proof.artifact is not None
    return folder, broken


def changed(path) -> bytes:
    """The artifact with one weight moved, so that some decisions change."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(path)
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor).copy()
        if array.ndim == 2:
            array[0, 0] += 0.002
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return model.SerializeToString()


def run(files, out, **options):
    folder, broken = files
    return onnxproof.evaluate(
        f"{folder / 'model.py'}:make", data=str(folder / "rows.npz"), onnx=broken, batch_size=200, out=out, **options
    )


def workers() -> list[int]:
    """Processes of Ray that run our tasks."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as stream:
                    if stream.read().startswith(b"ray::_run"):
                        found.append(int(entry))
            except OSError:
                continue
    return found


def counts(proof) -> str:
    quality = proof.quality
    names = ("n", "confusion", "flip_count", "candidate", "baseline", "intervals")
    kept = {name: to_plain(getattr(quality, name)) for name in names}
    flips = [(f.id, f.baseline, f.candidate, f.explained) for f in quality.flips]
    return json.dumps([kept, sorted(flips)], sort_keys=True)


def test_a_cluster_gives_the_local_answer_even_if_it_loses_a_worker(cluster, files, tmp_path):
    local = run(files, tmp_path / "local")
    assert local.quality.flip_count > 10
    killed: list[int] = []
    ended = threading.Event()

    def kill_one() -> None:
        while not ended.is_set():
            busy = workers()
            if busy and list((tmp_path / "cluster" / "evaluate").glob("shard-*.npz")):
                os.kill(busy[0], signal.SIGKILL)
                killed.append(busy[0])
                return
            time.sleep(0.02)

    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        distributed = run(files, tmp_path / "cluster", ray=cluster.address)
    finally:
        ended.set()
        killer.join()
    assert killed, "no worker was busy long enough to be killed"
    assert distributed.quality.where == "ray"
    assert counts(distributed) == counts(local)


def test_rows_that_only_the_driver_can_read_travel_to_the_workers(cluster, files, tmp_path):
    folder, _ = files
    (folder / "stream.py").write_text(
        "import numpy as np\n"
        f"data = np.load({str(folder / 'rows.npz')!r})\n"
        "def batches():\n"
        "    for i in range(0, 30_000, 1000):\n"
        "        yield data['x'][i:i + 1000], data['labels'][i:i + 1000]\n"
    )
    _, broken = files
    options = {"data": f"{folder / 'stream.py'}:batches", "onnx": broken, "batch_size": 64}
    local = onnxproof.evaluate(f"{folder / 'model.py'}:make", out=tmp_path / "a", **options)
    far = onnxproof.evaluate(f"{folder / 'model.py'}:make", out=tmp_path / "b", ray=cluster.address, **options)
    assert far.quality.n == 30_000
    assert counts(far) == counts(local)


def test_an_address_where_nobody_is_is_told(files, tmp_path):
    with pytest.raises(UserError, match="no cluster answers"):
        run(files, tmp_path, ray="127.0.0.1:1")


def test_a_cluster_that_does_not_come_up_is_told(monkeypatch):
    def time_out(**settings):
        raise Exception("The current node timed out during startup.")  # Ray's own words and class

    monkeypatch.setattr(ray, "init", time_out)
    told = pytest.raises(UserError, match="no cluster answers there: The current node timed out")
    with told, _connect("local"):
        pass


@pytest.mark.slow
@pytest.mark.skipif(not FORKS, reason="processes are looked at in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_cluster_whose_run_was_killed_while_it_came_up(number, tmp_path):
    """Its agents would wait a minute for one that is dead."""
    write_subjects(tmp_path)
    words = ["evaluate", "m.py:scaled", "--onnx", "right.onnx", "--data", "d.npz", "--ray"]
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="r") as short:
        environment = {**os.environ, "TMPDIR": short}
        command = [sys.executable, "-m", "onnxproof", *words]
        run = subprocess.Popen(command, cwd=tmp_path, env=environment, start_new_session=True)
        assert wait_for(lambda: any("Agent" in read_command(pid) for pid, _ in list_members(run.pid)))
        os.kill(run.pid, number)
        run.wait()
        assert wait_for(lambda: not list_members(run.pid) and not os.listdir(short), 10)


def test_rows_travel_in_shards_that_know_their_place():
    source = ArraySource({"X": np.arange(10)}, "--data rows", "mark")
    orders = list(_stream(source, 4))
    assert [(piece.index, piece.start, piece.stop) for piece, _ in orders] == [(0, 0, 4), (1, 4, 8), (2, 8, 10)]
    assert np.concatenate([table["X"] for _, table in orders]).tolist() == list(range(10))
