"""An option and its one home: the field of a frozen dataclass that holds its value.

Flags, Python keywords, environment variables, configuration keys and the reference page are derived from these
declarations; nothing else writes an option's name, default, help or form down again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from typing import Any

from onnxproof.errors import UserError

# A value as any face gives it (text, or Python's and TOML's own types) → the typed one; raises `Expected`.
Read = Callable[[Any], Any]


class Expected(UserError):
    """What a value (or one part of it) was expected to be. Where it came from is said by the face that took it."""

    def __init__(self, what: str, part: Any = MISSING) -> None:
        super().__init__(what)
        self.part = part


@dataclass(frozen=True)
class Option:
    """How one option is written, read and explained."""

    name: str
    """Of the flag, the keyword and the key: `max_abs` is `--max-abs` and ONNXPROOF_MAX_ABS."""
    help: str
    read: Read
    default: Any
    metavar: str = "TEXT"
    repeated: bool = False
    """Whether the flag may be given several times."""
    alone: bool = False
    """Whether the flag stands alone: it is there or not."""
    off: str | None = None
    """The flag that switches it off, where it is on by default."""
    short: str | None = None
    told: bool = False
    """Whether `--help` shows the default."""
    partner: tuple[str, str] | None = None
    """On the command line: a second flag, given once for each value of this one, and its help."""
    configured: bool = True
    """Whether the configuration and the environment may set it."""

    @property
    def flag(self) -> str:
        """As the command line spells it."""
        return f"--{self.name.replace('_', '-')}"

    def take(self, value: Any, place: str | None = None) -> Any:
        """The typed value; `place` names where it stands, if not on the command line."""
        try:
            return self.read(value)
        except Expected as error:
            part = value if error.part is MISSING else error.part
            if place is None:
                raise UserError(f"{self.flag} {part!r}: expected {error}") from None
            raise UserError(f"{place}: expected {error}, got {part!r}") from None
        except UserError as error:
            if place is None:
                raise
            raise type(error)(f"{place}: {error}") from None


def option(default: Any, help: str, read: Read, *, name: str = "", **how: Any) -> Any:
    """A dataclass field that is an option; its name is the field's unless another is given. A type makes a default for each."""
    made = {"default_factory" if isinstance(default, type) else "default": default}
    return field(**made, metadata={"option": {"name": name, "help": help, "read": read, **how}})


def list_options(group: type) -> dict[str, Option]:
    """Field → its option, for the fields of a dataclass that are one."""
    found = {}
    for one in fields(group):
        declared = one.metadata.get("option")
        if declared is not None:
            default = one.default if one.default_factory is MISSING else one.default_factory()
            found[one.name] = Option(**{**declared, "name": declared["name"] or one.name, "default": default})
    return found


def walk(group: Any) -> Iterator[tuple[tuple[str, ...], Option]]:
    """Every option below a group's value, with the path of fields that leads to it."""
    for name, one in list_options(type(group)).items():
        yield (name,), one
    for part in fields(group):
        inner = getattr(group, part.name)
        if is_dataclass(inner) and "option" not in part.metadata:
            for path, one in walk(inner):
                yield (part.name, *path), one


def filled(group: Any, values: Mapping[tuple[str, ...], Any]) -> Any:
    """The group with some fields, named by their paths, set to other values."""
    changes: dict[str, Any] = {}
    for name in {path[0] for path in values}:
        inner = {path[1:]: value for path, value in values.items() if path[0] == name}
        changes[name] = inner[()] if () in inner else filled(getattr(group, name), inner)
    return replace(group, **changes)
