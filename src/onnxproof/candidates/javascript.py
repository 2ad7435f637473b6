"""onnxruntime for JavaScript: onnxruntime-node, and onnxruntime-web (wasm or WebGPU) in a headless Chromium.

They are named `node`, `browser`, `browser:webgpu`, `browser:nosimd`, each with `==RELEASE` where not the newest is meant.
"""

from __future__ import annotations

import atexit
import shutil
import sys
from functools import cache
from pathlib import Path

from onnxproof.candidates.candidate import Abilities
from onnxproof.candidates.kept import keep_folder, keep_list, run_installer
from onnxproof.candidates.remote import RemoteRuntime
from onnxproof.errors import UserError

# How `--runtime` names them, and their packages.
PACKAGES = {
    "node": "onnxruntime-node",
    "browser": "onnxruntime-web",
    "browser:webgpu": "onnxruntime-web",
    "browser:nosimd": "onnxruntime-web",
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SERVER = Path(__file__).with_name("serve.mjs")


@cache
def reach_javascript(text: str) -> RemoteRuntime:
    """One process for all sessions of a runtime."""
    kind = text.partition("==")[0]
    there = RemoteRuntime(
        text,
        lambda: make_command(text),
        expected=f"Node 18 or later that loads {PACKAGES[kind]}",
        advice=f"update Node, or name another release, such as {kind}=={'1.18.0' if kind.endswith('nosimd') else '1.22.0'}",
        abilities=Abilities(inner_values=True, elsewhere=True),
    )
    atexit.register(there.stop)
    return there


def make_command(text: str) -> list[str]:
    """What serves it. Its pipe is number 3: what a library prints on standard output goes to the log."""
    parts = [_find(("node",), text, "Node", "nodejs"), str(SERVER), str(install_package(text))]
    if text.startswith("browser"):
        way = text.partition("==")[0].partition(":")[2]
        parts += [_find(BROWSERS, text, "Chromium", "chromium"), way]
    return ["/bin/sh", "-c", 'exec "$@" 3>&1 1>&2', "sh", *parts]


def install_package(text: str) -> Path:
    """The folder with the package that is meant: the newest where no release is named."""
    kind, _, release = text.partition("==")
    _find(("npm",), text, "npm", "npm")
    package = PACKAGES[kind]
    if not release:
        ask = ["npm", "view", package, "version"]
        [release] = keep_list(f"{package}-newest", lambda: [run_installer(ask, f"--runtime {text}").strip()])
    # Without scripts: onnxruntime-node's fetches what a GPU needs, and the rest is in the package.
    command = [
        "npm",
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel",
        "error",
        f"{package}@{release}",
    ]

    def fill(folder: Path) -> None:
        run_installer([*command, "--prefix", str(folder)], f"--runtime {text} cannot be installed")
        for binaries in folder.glob("node_modules/onnxruntime-node/bin/*/*"):
            if binaries.name != sys.platform:  # most of the package is for other systems
                shutil.rmtree(binaries)

    return keep_folder(f"{package}-{release}", fill)


def _find(names: tuple[str, ...], text: str, what: str, package: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        raise UserError(f"--runtime {text}: expected {what} on the path, and there is none: install {package}")
    return found
