"""Shared fixtures: exports are made once per test session."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
if WORKER and hasattr(os, "sched_setaffinity"):
    # One core for each worker and its children: threads of torch and onnxruntime that wait by spinning would take it from the others.
    # Two test runs on one machine begin with different cores.
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[(int(WORKER.removeprefix("gw")) + os.getppid()) % len(cores)]})

import onnx  # noqa: E402  # after the above: libraries count the cores when they are loaded
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

import models  # noqa: E402
import onnxproof  # noqa: E402
import warm  # noqa: E402
from inner import apart, artifact, suite  # noqa: E402, F401  # fixtures of the tests of the pytest plugin

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent
# How long an example takes says how busy the machine is; CI asks the same questions every time, a desk asks new ones.
settings.register_profile("any machine", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("any machine")


def pytest_collection_finish() -> None:
    """What was imported is never garbage: to look through it again and again takes a part of every test."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The artifact of a model of `models.py`, exported by onnxproof."""
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            out = tmp_path_factory.mktemp(name)
            proof = onnxproof.export(*getattr(models, name)(), out=out)
            assert proof.artifact is not None, proof.findings
            made[name] = out / "model.onnx"
        return made[name]

    return get


@pytest.fixture
def mutated(
    exported: Callable[[str], Path], tmp_path: Path
) -> Callable[[str, Callable[[onnx.ModelProto], object]], Path]:
    """An artifact with a change made to it."""

    def change(name: str, edit: Callable[[onnx.ModelProto], object]) -> Path:
        model = onnx.load(exported(name))
        edit(model)
        path = tmp_path / f"{name}.onnx"
        onnx.save(model, path)
        return path

    return change


@pytest.fixture
def verify(tmp_path: Path) -> Callable[..., onnxproof.Proof]:
    """Verify a file against a model of `models.py`, in this process."""

    def run(name: str, path: Path, **options: object) -> onnxproof.Proof:
        return onnxproof.verify(*getattr(models, name)(), onnx=path, out=tmp_path, **options)

    return run


@pytest.fixture(scope="session")
def warmed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where fork servers are to be had that have imported everything."""
    place = tmp_path_factory.mktemp("warm") / "socket"
    process = warm.start(place)
    yield place
    process.kill()
    process.wait()


@pytest.fixture
def cli(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in an empty folder; its imports are shared unless a test is about them (`cold`) or about the environment."""
    cold = request.node.get_closest_marker("cold") is not None or not hasattr(os, "pidfd_open")

    def run(*arguments: str | Path, timeout: float = 240, **environment: str) -> subprocess.CompletedProcess[str]:
        start = "from onnxproof.cli import main; main()"
        if not cold and not environment:
            start = warm.COMMAND.format(here=str(HERE), place=str(request.getfixturevalue("warmed")))
        return subprocess.run(
            [sys.executable, "-c", start, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=timeout,
            env={**os.environ, **environment},
            check=False,
        )

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run the command line in this process, in an empty folder: torch is loaded already."""
    from typer.testing import CliRunner

    from onnxproof.cli import app

    monkeypatch.setattr("onnxproof.cli.proving.watch", lambda request: None)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> Any:
        words = [*map(str, arguments), *(["--in-process"] if arguments[0] in ("prove", "verify") else [])]
        monkeypatch.setattr(sys, "argv", ["onnxproof", *words])
        return CliRunner().invoke(app, words)

    return run


@pytest.fixture
def inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Like `cli`, but in this process: for what a command says, where it does not matter that children do the work."""
    from onnxproof.cli import main

    monkeypatch.setattr("onnxproof.cli.proving.watch", lambda request: None)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        alone = ["--in-process"] if arguments[0] in ("prove", "verify", "export", "locate") else []
        words = [*map(str, arguments), *alone]
        monkeypatch.setattr(sys, "argv", ["onnxproof", *words])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, code, said.out, said.err)

    return run


def target(name: str) -> str:
    """The TARGET of a model of `models.py`."""
    return f"{HERE / 'models.py'}:{name}"


def codes(proof: onnxproof.Proof, *severities: str) -> set[str]:
    """Codes of the findings of a proof, of some severities or of all."""
    return {f.code for f in proof.findings if not severities or f.severity in severities}
