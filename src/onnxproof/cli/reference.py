"""The reference of the command line as a page: `python -m onnxproof.cli.reference > docs/reference.md`."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from onnxproof import api
from onnxproof.cli import app
from onnxproof.request.configuration import list_keys

VERBS = "prove verify locate export lint diff runtimes bench evaluate quantize report explain init demo".split()
FUNCTIONS = "prove verify locate export lint runtimes bench evaluate quantize".split()


def render_reference() -> str:
    """Every command with its options, and the functions of the Python interface."""
    group: Any = typer.main.get_command(app)
    paragraphs = [
        *("# Reference", "Generated from the code.", "## Command line"),
        *(part for verb in VERBS for part in _describe_command(verb, group.commands[verb])),
        "Exit codes: 0 SHIP; 1 REVIEW or BLOCK, a failed export included; 2 wrong usage, nothing to verify, or a bug of ours.",
        *("## Python", "Options are keyword-only and named as the flags."),
        *(part for name in FUNCTIONS for part in _describe_function(name)),
        "## Configuration and environment",
        "Keys of `[tool.onnxproof]` in pyproject.toml (or of onnxproof.toml) and of its `subjects`; each is also a variable such as "
        "`ONNXPROOF_MAX_ABS`. Flags go before variables, variables before the configuration.",
        ", ".join(f"`{name.replace('_', '-')}`" for name in list_keys()),
    ]
    return "\n\n".join(paragraphs) + "\n"


def _describe_command(verb: str, command: Any) -> list[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([f"onnxproof {verb}", *(p.name.upper() for p in arguments)])
    table = ["| option | meaning |", "|---|---|"]
    for parameter in command.params:
        flags = ", ".join(f"`{name}`" for name in parameter.opts)
        names = parameter.name.upper() if parameter in arguments else flags
        table.append(f"| {names} | {(parameter.help or '').replace('|', '&#124;')} |")
    return [f"### {verb}", (command.help or "").strip().splitlines()[0], f"`{usage}`", "\n".join(table)]


def _describe_function(name: str) -> list[str]:
    function = getattr(api, name)
    call = f"`onnxproof.{name}({', '.join(inspect.signature(function).parameters)})`"
    return [f"### onnxproof.{name}", call, (inspect.getdoc(function) or "").splitlines()[0]]


if __name__ == "__main__":
    print(render_reference(), end="")
