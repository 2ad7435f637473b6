"""What is shipped: every file of the package, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHIPPED = ("src", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "pyproject.toml")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the sdist, built from a copy with the build backend that pyproject.toml names."""
    folder = tmp_path_factory.mktemp("built")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder / "tools"), "hatchling"]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip("the build backend cannot be had here")
    for name in (*SHIPPED, "tests", "docs", "Makefile"):
        here = ROOT / name
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(here, folder / name, ignore=skipped) if here.is_dir() else shutil.copy(here, folder / name)
    environment = {**os.environ, "PYTHONPATH": str(folder / "tools")}
    build = [sys.executable, "-m", "hatchling", "build", "-d", "dist"]
    subprocess.run(build, cwd=folder, env=environment, check=True, capture_output=True)
    return folder


def list_package():
    kept = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    return {name for name in kept if "__pycache__" not in name}


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(built):
    (wheel,) = (built / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (scripts,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        told = archive.read(scripts).decode()
    assert names == list_package()
    assert "onnxproof = onnxproof.cli:main" in told
    assert "onnxproof = _onnxproof_pytest" in told


@pytest.mark.slow
def test_the_sdist_holds_what_builds_the_wheel(built):
    (sdist,) = (built / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tops = {name.partition("/")[0] for name in names if name}
    assert tops == {*SHIPPED, "PKG-INFO"} | ({".gitignore"} & tops)
    assert {f"src/{name}" for name in list_package()} <= names
