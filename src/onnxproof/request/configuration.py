"""Settings: flags before the environment, before [tool.onnxproof], before the defaults."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxproof.errors import UserError, listed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LISTS = frozenset(
    "input range role dynamic provider disable atol rtol max_abs min max max_drop max_latency goal metric".split()
)
FLAGS = frozenset("keep_metadata no_optimize strict nonfinite heal in_process bench evaluate".split())
NUMBERS = frozenset("opset threads noise seed min_speedup delta threshold".split())
TEXTS = frozenset(
    "onnx batch_sizes data labels ids train_data task output positive exporter optimization budget search memory "
    "max_memory case_timeout out".split()
)
KEYS = LISTS | FLAGS | NUMBERS | TEXTS | {"accept"}
"""What may be set; the names are those of the flags."""
FILES = ("onnxproof.toml", "pyproject.toml")


@dataclass(frozen=True)
class SubjectSettings:
    """A named subject of the configuration: its TARGET and its options."""

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
                table = _table(parent / name)
                if table is not None:
                    return _read(parent / name, table)
        return Settings()

    def for_target(self, target: str) -> SubjectSettings:
        """What is set for a TARGET, or for a subject's name."""
        for subject in self.subjects.values():
            if target in (subject.name, subject.target):
                return SubjectSettings(subject.name, subject.target, {**self.common, **subject.options})
        return SubjectSettings("", target, self.common)


def _table(file: Path) -> Mapping[str, Any] | None:
    if not file.is_file():
        return None
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file} is not TOML: {error}") from None
    table: Mapping[str, Any] | None = data if file.name == FILES[0] else data.get("tool", {}).get("onnxproof")
    return table


def _read(file: Path, table: Mapping[str, Any]) -> Settings:
    common = _options({k: v for k, v in table.items() if k != "subjects"}, file, "")
    subjects = {}
    for name, given in table.get("subjects", {}).items():
        if not isinstance(given, Mapping) or not isinstance(given.get("target"), str):
            raise UserError(f'{file}: subjects.{name} needs a target, such as target = "model.py:build"')
        options = _options({k: v for k, v in given.items() if k != "target"}, file, f"subjects.{name}.")
        subjects[name] = SubjectSettings(name, given["target"], options)
    return Settings(file, common, subjects)


def _options(given: Mapping[str, Any], file: Path, prefix: str) -> dict[str, Any]:
    options = {}
    for key, value in given.items():
        name = key.replace("-", "_")
        if name not in KEYS:
            near = difflib.get_close_matches(name, [*KEYS, "subjects"], 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys are {listed(sorted(KEYS))}"
            raise UserError(f"{file}: there is no key {prefix}{key!r}; {hint}")
        options[name] = _value(name, value, f"{file}: {prefix}{key}")
    return options


def _value(name: str, value: Any, place: str) -> Any:
    """The value as the flag would give it."""
    if name == "accept":
        if not isinstance(value, Mapping) or not all(isinstance(reason, str) for reason in value.values()):
            raise UserError(f'{place}: expected codes and reasons, such as {{ OX202 = "known approximation" }}')
        return dict(value)
    if name in LISTS:
        return [str(item) for item in (value if isinstance(value, list) else [value])]
    if name in FLAGS:
        if not isinstance(value, bool):
            raise UserError(f"{place}: expected true or false, got {value!r}")
        return value
    if name in NUMBERS:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UserError(f"{place}: expected a number, got {value!r}")
        return value
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def from_environment(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """ONNXPROOF_EXPORTER and the like."""
    found: dict[str, Any] = {}
    for name in KEYS - {"accept"}:
        text = environment.get(f"ONNXPROOF_{name.upper()}")
        if text is None:
            continue
        place = f"ONNXPROOF_{name.upper()}"
        if name in FLAGS:
            found[name] = text.lower() in ("1", "true", "yes", "on")
        elif name in NUMBERS:
            try:
                found[name] = int(text) if name in ("opset", "threads", "seed") else float(text)
            except ValueError:
                raise UserError(f"{place}={text!r}: expected a number") from None
        else:
            found[name] = _value(name, text, place)
    return found


def merged(options: Mapping[str, Any], given: set[str], settings: Settings) -> dict[str, Any]:
    """Options of a command: what was given as a flag stays, the rest comes from the environment, then the configuration."""
    subject = settings.for_target(str(options["target"]))
    lower = {**subject.options, **from_environment()}
    accept: Mapping[str, str] = lower.pop("accept", {})
    taken = {name: value for name, value in lower.items() if name in options and name not in given}
    result = {**options, **taken, "target": subject.target}
    if accept and "accept" in options:
        result["accept"] = [*accept, *(options["accept"] or [])]
        result["reason"] = [*accept.values(), *(options["reason"] or [])]
    return result


# --- writing ------------------------------------------------------------------------------------------------------------


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
    file.write_text(tomlkit.dumps(document), encoding="utf-8")
    return file
