"""Results → docs/reliability.md."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
HEAD = """# When everything else fails

Made by `make faults` from docs/reliability.json, which collects the slices of a long measurement. What was injected, how often, and what happened.
"""


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [" | ".join(map(str, head)), " | ".join("---" for _ in head), *(" | ".join(map(str, row)) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def render(store: Mapping[str, Rows]) -> str:
    """The page."""
    parts = [HEAD]
    for name, section in SECTIONS.items():
        if store.get(name):
            parts.append(section(store[name]))
            remarks = [row["text"] for row in store.get("remarks", ()) if row["about"] == name]
            parts += ["\n".join(f"- {text}" for text in remarks) + "\n"] if remarks else []
    return "\n".join(parts)


def _kills(rows: Rows) -> str:
    hit = [row for row in rows if row["hit"]]
    states: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in hit:
        states[row.get("commit", "")].append(row)
    where = _tell_counts(Counter(row["stage"] for row in hit))
    # The newest first; slices of which nobody wrote down the commit are the oldest.
    parts = "\n".join(_tell_state(commit, some) for commit, some in reversed(states.items()))
    return f"""## Kills

{len(hit)} runs were ended at a random moment of a random stage ({where}). Afterwards nobody of the run may be alive, no temporary file and no half of
a file may be there, and the same command with `--resume` must give the proof of an undisturbed run: every number, finding and name; times, and how far
a search came before the clock ended it, are left out. A killed child is a finding of its run; the resumed one tries again.

{parts}"""


def _tell_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {times}" for name, times in counts.most_common())


def _tell_state(commit: str, rows: Rows) -> str:
    """What happened to the runs of one state of the code."""

    def count(some: Rows, key: str) -> int:
        return sum(1 for row in some if row[key])

    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[row["scenario"]].append(row)
    told = [
        (scenario, len(some), len(some) - count(some, "resumed"), count(some, "left"), count(some, "broken"),
         count(some, "wrong_ship"), count(some, "called_a_bug"))
        for scenario, some in sorted(grouped.items())
    ]  # fmt: skip
    head = ("run", "times", "resumed proof differs", "left behind", "half a file", "wrong SHIP", "“a bug”")
    state = f"With the code of {commit}" if commit else "With earlier states of the code"
    return (
        f"{state}, {len(rows)} times ({_tell_counts(Counter(row['fault'] for row in rows))}):\n\n{_table(head, told)}\n"
    )


def _full(rows: Rows) -> str:
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[row["command"], row["where"]].append(row)
    told = [
        (command, where, len(some), ", ".join(sorted({str(row["code"]) for row in some})),
         sum(row["verdict"] for row in some), sum(row["told"] for row in some), sum(bool(row["broken"]) for row in some),
         sum(row["called_a_bug"] for row in some))
        for (command, where), some in grouped.items()
    ]  # fmt: skip
    head = ("run", "full from", "times", "exit", "verdict said", "reason said", "half a file", "“a bug”")
    return _table(head, told) + "\n"


def _one_write(rows: Rows) -> str:
    return f"""## A full disk

The disk is full from one write on, for every write of a run in turn: the verdict is said all the same, a sentence says what could not be
written, and the exit code is 2, since a verdict without its proof is not what was asked for (a page that nobody asked for costs nothing).

{_full(rows)}"""


def _small_disk(rows: Rows) -> str:
    return f"""## A small disk

The run's folder is a file system of so many kilobytes.

{_full(rows)}"""


def _deeds(rows: Rows) -> str:
    latest = {(row["name"], row["file"], row["in_process"]): row for row in rows}
    columns = [(file, alone) for file in ("wrong", "right") for alone in (False, True)]
    told = [
        (name, *(_tell_end(latest.get((name, *column))) for column in columns))
        for name in dict.fromkeys(row["name"] for row in rows)
    ]
    wrong = sum(row["file"] == "wrong" and (row["code"] == 0 or row["verdict"] == "ship") for row in latest.values())
    head = ("deed", "wrong file", "wrong file, `--in-process`", "right file", "right file, `--in-process`")
    return f"""## Forwards that attack

A module whose forward does this before it doubles its input (`tests/test_never_a_wrong_ship.py` has the code), beside a file that multiplies by 2.5 and
beside one that doubles. {wrong} of {sum(row["file"] == "wrong" for row in latest.values())} wrong files were shipped, {sum(row["called_a_bug"] for row in latest.values())} runs
called it a bug. A verdict is given with the findings that count; without one the exit code is 2 and a sentence says why. What a
module does that is out to deceive has no end: the proof speaks of code that you trust (SECURITY.md).

{_table(head, told)}
"""


def _tell_end(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    return (
        f"{row['verdict'].upper()} {' '.join(row['codes'])}".strip()
        if row["verdict"]
        else f"no verdict, exit {row['code']}"
    )


def _counted(rows: Rows, *keys: str) -> list[tuple[object, ...]]:
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        counts[tuple(row[key] for key in keys)] += row["times"]
    return [(*key, f"{times:,}") for key, times in sorted(counts.items())]


def _mutants(rows: Rows) -> str:
    total = sum(row["times"] for row in rows)
    faults = sum(row["times"] for row in rows if row["fault"])
    return f"""## Changed ONNX files

{total:,} files with one change of an attribute, a wire, an operator, a weight, a dtype, a shape, a name or the opset, judged, and compared by brute force
with the module on 60 inputs through onnxruntime itself. {faults} verdicts are not what that comparison says (wrong and shipped, or right and blocked).

{_table(("by brute force", "verdict", "files"), _counted(rows, "oracle", "verdict"))}
"""


def _readers(rows: Rows) -> str:
    total = sum(row["times"] for row in rows)
    bugs = sum(row["times"] for row in rows if row["end"] in ("bug", "crash", "hang"))
    return f"""## Broken files

{total:,} mutated files of every kind that is read, in forked processes; {bugs} of them raised what would be called a bug of onnxproof, ended the process or
took more than two minutes.

{_table(("kind", "end", "files"), _counted(rows, "kind", "end"))}
"""


def _load(rows: Rows) -> str:
    latest = {row["name"]: row for row in rows}
    told = [(row["name"], f"{row['seconds']:.0f}", row["megabytes"], row["told"]) for row in latest.values()]
    return f"""## Load

Each in a process of its own, on a shared machine with two cores that was busy with other work.

{_table(("what", "seconds", "peak MB", ""), told)}
"""


def _same(rows: Rows) -> str:
    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[row["command"]].append(row)
    told = [
        (name, len(some), sum(row["loaded"] for row in some), sum(bool(row["different"]) for row in some),
         sum(row["code"] == 2 for row in some), _tell_span(some, False), _tell_span(some, True))
        for name, some in grouped.items()
    ]  # fmt: skip
    names = sorted({key for row in rows for key in row["settings"] if key.isupper()})
    head = (
        "run",
        "times",
        "of them with every core busy",
        "what was written differs",
        "ended with exit 2",
        "seconds",
        "seconds, loaded",
    )
    return f"""## The same again

The same command, each time with another mixture of {", ".join(f"`{name}`" for name in names)}, of a terminal or a pipe, of the folder it is in and the one it
is called from, and of the number of processes for `evaluate`. Everything that a run wrote is compared with the first one's, byte for byte: the proof but
for times, the command and the folder's name; the model, its source map, counterexamples and their scripts as they are.

{_table(head, told)}
"""


def _tell_span(rows: Rows, loaded: bool) -> str:
    seconds = [row["seconds"] for row in rows if row["loaded"] is loaded]
    return f"{min(seconds):.0f} to {max(seconds):.0f}" if seconds else ""


def _environments(rows: Rows) -> str:
    table = _table(
        ("environment", "command", "answer", "with"),
        ((row["name"], row["command"], row["told"], row["versions"]) for row in rows),
    )
    return f"""## Environments

Made by `make environments`: each extra, and the oldest and the newest releases that are supported, installed into an environment of its own. Where `prove` is
the command, a file that another module made must be BLOCK there too.

{table}
"""


SECTIONS = {
    "kills": _kills,
    "full at one write": _one_write,
    "a small disk": _small_disk,
    "deeds": _deeds,
    "mutants": _mutants,
    "readers": _readers,
    "load": _load,
    "same": _same,
    "environments": _environments,
}
