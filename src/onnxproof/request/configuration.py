"""Flags before the environment, before [tool.onnxproof], before the defaults."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxproof.errors import UserError, list_names
from onnxproof.files import write_file
from onnxproof.request.option import Option, walk
from onnxproof.request.verbs import EVERYTHING, Verb

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILES = ("onnxproof.toml", "pyproject.toml")


def list_keys() -> dict[str, Option]:
    """What the configuration and the environment may set; the names are those of the flags."""
    return {one.name: one for _, one in walk(EVERYTHING) if one.configured}


@dataclass(frozen=True)
class SubjectSettings:
    """A named subject of the configuration: its TARGET and its options' values."""

    name: str
    target: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """The configuration of a repository."""

    file: Path | None = None
    common: Mapping[str, Any] = field(default_factory=dict)
    subjects: Mapping[str, SubjectSettings] = field(default_factory=dict)

    @staticmethod
    def find(folder: Path) -> Settings:
        """The nearest configuration, in this folder or above it."""
        for parent in (folder, *folder.parents):
            for name in FILES:
                table = _read_table(parent / name)
                if table is not None:
                    return _read(parent / name, table)
        return Settings()

    def for_target(self, target: str | None) -> SubjectSettings:
        """What is set for a TARGET, or for a subject's name."""
        for subject in self.subjects.values():
            if target in (subject.name, subject.target):
                return SubjectSettings(subject.name, subject.target, {**self.common, **subject.options})
        return SubjectSettings("", target or "", self.common)


def _read_table(file: Path) -> Mapping[str, Any] | None:
    if not file.is_file():
        return None
    try:
        data: Mapping[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:  # no TOML, no UTF-8, a number of thousands of digits
        raise UserError(f"{file} is not TOML: {error}") from None
    if file.name == FILES[0]:
        return data
    tools = _pick_section(data, "tool", file)
    return _pick_section(tools, "onnxproof", file) if "onnxproof" in tools else None


def _pick_section(table: Mapping[str, Any], name: str, file: Path) -> Mapping[str, Any]:
    inner = table.get(name, {})
    if not isinstance(inner, Mapping):
        raise UserError(f"{file}: {name} is expected to be a table, got {inner!r}")
    return inner


def _read(file: Path, table: Mapping[str, Any]) -> Settings:
    common = _read_options({k: v for k, v in table.items() if k != "subjects"}, file, "")
    subjects = {}
    for name, given in _pick_section(table, "subjects", file).items():
        if not isinstance(given, Mapping) or not isinstance(given.get("target"), str):
            raise UserError(f'{file}: subjects.{name} needs a target, such as target = "model.py:build"')
        options = _read_options({k: v for k, v in given.items() if k != "target"}, file, f"subjects.{name}.")
        subjects[name] = SubjectSettings(name, given["target"], options)
    return Settings(file, common, subjects)


def _read_options(given: Mapping[str, Any], file: Path, prefix: str) -> dict[str, Any]:
    known, options = list_keys(), {}
    for key, value in given.items():
        name = key.replace("-", "_")
        if name not in known:
            near = difflib.get_close_matches(name, [*known, "subjects"], 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys are {list_names(sorted(known))}"
            raise UserError(f"{file}: there is no key {prefix}{key!r}; {hint}")
        options[name] = known[name].take(value, f"{file}: {prefix}{key}")
    return options


def from_environment(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """ONNXPROOF_EXPORTER and the like."""
    variables = {f"ONNXPROOF_{name.upper()}": one for name, one in list_keys().items() if one.partner is None}
    return {
        one.name: one.take(environment[name], f"{name}={environment[name]!r}")
        for name, one in variables.items()
        if name in environment
    }


def merge(verb: Verb, target: str | None, given: Mapping[str, Any], settings: Settings) -> tuple[str, dict[str, Any]]:
    """The TARGET and the values of a verb's options: what was given, else the environment's, else the configuration's."""
    subject = settings.for_target(target)
    lower = {**subject.options, **from_environment()}
    merged = {**{name: value for name, value in lower.items() if name in verb.takes}, **given}
    if "accept" in merged:
        merged["accept"] = {**lower.get("accept", {}), **given.get("accept", {})}
    return subject.target, merged


def write(folder: Path, name: str, target: str, changes: Mapping[str, Any]) -> Path:
    """Put options of a subject into the configuration, leaving the rest of the file as it is."""
    import tomlkit

    settings = Settings.find(folder)
    file = settings.file or (folder / "pyproject.toml" if (folder / "pyproject.toml").is_file() else folder / FILES[0])
    document = tomlkit.parse(file.read_text(encoding="utf-8")) if file.is_file() else tomlkit.document()
    table: Any = document
    for key in ("subjects",) if file.name == FILES[0] else ("tool", "onnxproof", "subjects"):
        if key not in table:
            table[key] = tomlkit.table(is_super_table=True)
        table = table[key]
    known = next((s.name for s in settings.subjects.values() if s.target == target), name)
    if known not in table:
        table[known] = tomlkit.table()
    table[known]["target"] = target
    for key, value in changes.items():
        table[known][key.replace("_", "-")] = value
    write_file(file, tomlkit.dumps(document))
    return file
