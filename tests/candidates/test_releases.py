"""Other releases of onnxruntime: which are meant, and that they run with nothing of this interpreter's libraries."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from packaging.version import Version

from candidates.small_models import sums
from onnxproof.candidates import choose_candidate, expand_runtimes, releases
from onnxproof.candidates.releases import choose_releases, list_releases, reach_release
from onnxproof.errors import UserError
from onnxproof.request.session import SessionSettings

KNOWN = [Version(text) for text in ("1.16.3", "1.17.0", "1.17.3", "1.18.0", "1.20.1")]


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setattr(releases, "list_releases", lambda: KNOWN)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("onnxruntime==1.17.3", ["1.17.3"]),
        ("onnxruntime == 1.17.3", ["1.17.3"]),
        ("onnxruntime==9.9", ["9.9"]),
        ("onnxruntime==1.17.*", ["1.17.0", "1.17.3"]),
        ("onnxruntime>=1.17,<1.20", ["1.17.0", "1.17.3", "1.18.0"]),
        ("onnxruntime!=1.17.0,>1.16.3", ["1.17.3", "1.18.0", "1.20.1"]),
    ],
)
def test_a_range_is_every_stable_release_in_it(known, text, chosen):
    assert choose_releases(text) == [f"onnxruntime=={version}" for version in chosen]


def test_what_is_no_release_is_the_users_error(known):
    for text in ("onnxruntime==", "onnxruntime=1.2", "onnxruntime>=new"):
        with pytest.raises(UserError, match=r"expected a release such as onnxruntime==1.20.1"):
            choose_releases(text)
    with pytest.raises(
        UserError, match=r"no release is in that range; the index has 1.16.3, 1.17.0, .*1.20.1 for this"
    ):
        choose_releases("onnxruntime>2")


def test_runtimes_are_expanded_each_once(known):
    texts = ("onnxruntime", "onnxruntime==1.17.0", "onnxruntime<1.17.3", "python:x")
    assert expand_runtimes(texts) == ("onnxruntime", "onnxruntime==1.17.0", "onnxruntime==1.16.3", "python:x")
    with pytest.raises(UserError, match="--runtime 'tensorflow': expected"):
        expand_runtimes(["tensorflow"])


def test_the_list_has_no_release_before_its_time():
    found = list_releases()
    assert found == sorted(found)
    assert Version("1.17.3") in found
    assert not any(version.is_prerelease for version in found)


def test_an_old_release_runs_with_the_numpy_it_was_built_for():
    there = choose_candidate(SessionSettings(runtime="onnxruntime==1.17.3"))
    versions = there.versions()
    assert versions["onnxruntime"] == "1.17.3"
    assert "NumPy 1." in versions["runtime"]
    answer = there.open(sums(), SessionSettings()).run({"x": np.ones((2, 3), np.float32)})
    np.testing.assert_array_equal(answer["more"], np.full((2, 3), 2, np.float32))
    assert there is choose_candidate(SessionSettings(runtime="onnxruntime==1.17.3", threads=1))


def test_a_release_that_is_not_there_is_the_users_error_with_what_is_there():
    with pytest.raises(UserError, match=r"--runtime onnxruntime==1.17.9: there is no such release; .*1.17.3"):
        reach_release("onnxruntime==1.17.9").versions()


def test_without_an_installer_the_error_says_what_is_needed(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(releases.PathFinder, "find_spec", lambda name: None)
    monkeypatch.setattr(releases.shutil, "which", lambda name: None)
    monkeypatch.setattr(releases, "list_releases", lambda: KNOWN)
    with pytest.raises(UserError, match="expected pip in this environment or uv"):
        releases.install_release(KNOWN[0])


def test_setuptools_can_still_be_imported_in_a_process_that_looked_for_an_installer(tmp_path):
    """Whoever asks the import system for pip turns setuptools' own distutils off; torch's helpers import setuptools."""
    pytest.importorskip("setuptools")
    code = """
from packaging.version import Version
from onnxproof.candidates import releases
releases.keep_folder = lambda name, fill: name
releases.list_releases = lambda: [Version("1.17.3")]
print(releases.install_release(Version("1.17.3")))
import setuptools
"""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "onnxruntime==1.17.3" in ended.stdout
