"""The application that the commands join."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    name="onnxproof",
    help="May this ONNX model replace its PyTorch original in production?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """May this ONNX model replace its PyTorch original in production?"""
    if show:
        from onnxproof.version import __version__

        print(__version__)
        raise typer.Exit
