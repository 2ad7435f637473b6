"""The application, and verbs as its commands: arguments and options come from `request/`, what is given goes back there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from onnxproof.errors import UserError
from onnxproof.request.option import Option
from onnxproof.request.verbs import Verb
from onnxproof.version import __version__

# What a command does: its verb, its arguments, and the typed values of the options that were given.
Run = Callable[[Verb, Mapping[str, str | None], Mapping[str, Any]], None]
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
        print(__version__)
        raise typer.Exit


def add_command(verb: Verb, run: Run, *, optional: tuple[str, ...] = ()) -> None:
    """Let a verb join the application; arguments are required but for the optional ones."""

    def command(context: typer.Context, **parameters: Any) -> None:
        source = context.get_parameter_source
        given = {
            name: value for name, value in parameters.items() if str(getattr(source(name), "name", "")) == "COMMANDLINE"
        }
        arguments = {name: parameters[name] for name in verb.arguments}
        run(verb, arguments, take(verb, given))

    shown = [inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    shown += [_make_argument(name, help, name in optional) for name, help in verb.arguments.items()]
    for option in verb.options().values():
        shown += _make_parameters(option, option.name in verb.required)
    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # typer reads options from it
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    app.command(verb.name, help=verb.help)(command)


def take(verb: Verb, given: Mapping[str, Any]) -> dict[str, Any]:
    """Flags as typed values."""
    return {
        name: option.take(given[name] if option.partner is None else _pair_flags(option, given))
        for name, option in verb.options().items()
        if name in given or (option.partner is not None and option.partner[0] in given)
    }


def _pair_flags(option: Option, given: Mapping[str, Any]) -> dict[str, str]:
    """Two flags, one of each for every value."""
    assert option.partner is not None  # asked only then
    partner = option.partner[0]
    first, second = given.get(option.name) or [], given.get(partner) or []
    if len(first) != len(second):
        raise UserError(
            f"{len(first)} {option.flag} and {len(second)} --{partner}: give one {partner} for each accepted code"
        )
    return dict(zip(first, second, strict=True))


def _make_argument(name: str, help: str, optional: bool) -> inspect.Parameter:
    spelled = typer.Argument(help=help, show_default=False, metavar=name.upper())
    if optional:
        return _make_keyword(name, Annotated[str | None, spelled], None)
    return _make_keyword(name, Annotated[str, spelled], inspect.Parameter.empty)


def _make_parameters(option: Option, required: bool) -> list[inspect.Parameter]:
    flags = [f"{option.flag}/{option.off}" if option.off else option.flag, *([option.short] if option.short else [])]
    made = [_make_parameter(option.name, flags, option, required)]
    if option.partner is not None:
        name, help = option.partner
        spelled = typer.Option(f"--{name}", help=help, show_default=False, metavar="TEXT")
        made.append(_make_keyword(name, Annotated[list[str] | None, spelled], None))
    return made


def _make_parameter(name: str, flags: list[str], option: Option, required: bool) -> inspect.Parameter:
    if option.alone:
        # A flag that says what is left out is not there by default, whatever it stands for.
        default = bool(option.default) if option.off else False
        return _make_keyword(name, Annotated[bool, typer.Option(*flags, help=option.help)], default)
    spelled = typer.Option(*flags, help=option.help, show_default=option.told, metavar=option.metavar)
    if option.repeated:
        return _make_keyword(name, Annotated[list[str] | None, spelled], None)
    if required:
        return _make_keyword(name, Annotated[str, spelled], inspect.Parameter.empty)
    return _make_keyword(name, Annotated[str | None, spelled], str(option.default) if option.told else None)


def _make_keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
