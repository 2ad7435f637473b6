"""Other releases of onnxruntime, from the user's index: each in a folder of its own, run by this interpreter without its libraries."""

from __future__ import annotations

import atexit
import shutil
import sys
import sysconfig
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from onnxproof.candidates import serve
from onnxproof.candidates.kept import keep_folder, keep_list, run_installer
from onnxproof.candidates.remote import RemoteRuntime
from onnxproof.errors import UserError

PACKAGE = "onnxruntime"
# The first release that was built for NumPy 2.
FIRST_WITH_NUMPY_2 = Version("1.19.0")


def list_releases() -> list[Version]:
    """Every stable release that the index has for this interpreter, oldest first."""
    found = keep_list(f"{_name_platform()}-releases", _ask_index)
    return sorted(version for version in map(Version, found) if not version.is_prerelease)


def choose_releases(text: str) -> list[str]:
    """`onnxruntime>=1.18,<1.31` → `onnxruntime==1.18.0`, …; one that is named exactly need not be in any list."""
    try:
        wanted = SpecifierSet(text.removeprefix(PACKAGE))
        exact = [Version(one.version) for one in wanted if one.operator == "==" and "*" not in one.version]
    except (InvalidSpecifier, InvalidVersion):
        raise UserError(
            f"--runtime {text!r}: expected a release such as onnxruntime==1.20.1, or a range such as 'onnxruntime>=1.18,<1.31'"
        ) from None
    if exact:
        return [f"{PACKAGE}=={exact[0]}"]
    known = list_releases()
    chosen = [f"{PACKAGE}=={version}" for version in known if version in wanted]
    if not chosen:
        raise UserError(f"--runtime {text!r}: no release is in that range; {_tell(known)}")
    return chosen


@cache
def reach_release(text: str) -> RemoteRuntime:
    """One process for all sessions of a release."""
    [exact] = choose_releases(text)
    there = RemoteRuntime(
        exact,
        lambda: _build_command(Version(exact.partition("==")[2])),
        expected="a release of onnxruntime that this interpreter runs",
        advice="another release may",
    )
    atexit.register(there.stop)
    return there


def spell_install(version: str) -> str:
    """The command that installs a release with the NumPy that it was built for."""
    try:
        return f'pip install "{_choose_numpy(Version(version))}" {PACKAGE}=={version}'
    except InvalidVersion:  # a build of somebody's own
        return f"pip install numpy {PACKAGE}"


def _choose_numpy(version: Version) -> str:
    return "numpy<2" if version < FIRST_WITH_NUMPY_2 else "numpy>=2"


def install_release(version: Version) -> list[Path]:
    """The folders of a release and of the NumPy that it was built for."""
    numpy = _choose_numpy(version)
    try:
        release = _install(f"{PACKAGE}=={version}")
    except UserError:
        known = list_releases()
        if version in known:
            raise
        raise UserError(f"--runtime {PACKAGE}=={version}: there is no such release; {_tell(known)}") from None
    return [release, _install(numpy)]


def _build_command(version: Version) -> list[str]:
    folders = map(str, install_release(version))
    # Isolated and without `site`: it sees the standard library and these folders.
    return [sys.executable, "-I", "-S", str(Path(serve.__file__).resolve()), *folders]


def _install(requirement: str) -> Path:
    """The folder with one package; what it depends on besides NumPy is not needed to run a session."""
    flags = ["--quiet", "--no-deps", "--only-binary", ":all:"]
    # Asked of the path alone: setuptools listens to whoever asks for pip, and cannot be imported in that process any more.
    if PathFinder.find_spec("pip") is not None:
        # pip first: the index that is configured for it is the user's.
        command = [sys.executable, "-m", "pip", "install", *flags, "--no-compile", "--disable-pip-version-check"]
    elif shutil.which("uv"):
        command = ["uv", "pip", "install", *flags, "--python", sys.executable]
    else:
        raise UserError(
            f"--runtime {requirement}: expected pip in this environment or uv on the path to install it with"
        )
    return keep_folder(
        f"{_name_platform()}-{requirement}",
        lambda folder: _fill([*command, "--target", str(folder), requirement], requirement),
    )


def _fill(command: list[str], requirement: str) -> None:
    run_installer(command, f"{requirement} cannot be installed")


def _ask_index() -> list[str]:
    command = [sys.executable, "-m", "pip", "index", "versions", PACKAGE, "--disable-pip-version-check"]
    printed = run_installer(command, "the releases of onnxruntime cannot be listed")
    listed = [line.partition(":")[2] for line in printed.splitlines() if line.startswith("Available versions:")]
    return [version.strip() for line in listed for version in line.split(",")]


def _tell(known: list[Version]) -> str:
    return f"the index has {', '.join(map(str, known))} for this Python"


def _name_platform() -> str:
    return f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
