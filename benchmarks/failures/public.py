"""Public failure reports: how many get a code of their own, and the right one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
GENERIC = (None, "OX101", "OX221", "OX303")
"""What says no more than that it failed."""
SCRIPT = "OX137"
"""Says that something else than the exporter raises, which is true of many reports that a human would name more closely."""

FIRST_SIGHT = {
    1: (23, 40),
    2: (15, 20),
    3: (22, 40),
    4: (30, 40),
    5: (18, 40),
    6: (27, 40),
    7: (23, 40),
    8: (24, 40),
    9: (29, 40),
    10: (24, 40),
    11: (27, 40),
    12: (21, 40),
    13: (35, 40),
    14: (11, 20),
    15: (9, 15),
    16: (12, 15),
    17: (32, 40),
    18: (26, 40),
    19: (31, 40),
    20: (29, 40),
    21: (43, 60),
    22: (42, 60),
    23: (26, 40),
    24: (31, 40),
    25: (41, 70),
    26: (46, 70),
    27: (31, 40),
    28: (28, 40),
    29: (32, 40),
    30: (29, 40),
    31: (35, 40),
}
"""(told, of) for each sample, measured when it was taken and before the patterns were extended; these numbers never change.
Samples 1 to 4 count a code of its own, from 5 on it must also be the one that was written beside the report before the count.
Samples 5 to 12 were searched by models, tools and languages, and 5 to 9 left out what said the same; sample 13 was searched by kinds of failure,
which finds what the libraries themselves print, and is the easier one. Samples 14 to 16 took the first results of plain questions and left out
what was in an earlier sample; after sample 14 the general patterns and OX137 were added, and reports of scripts that fail by themselves, which
had been OX101, were given that code. Samples 17 to 20 were collected and judged by someone who saw the catalogue and not the
patterns (in 19 and 20 with a second code where two are as good); after
sample 18 the opset since when the exporter has an operator is known, and two earlier reports of stft were given OX127 instead of OX108; one whose operator only the
title names was given OX128, which is what its message says. In sample 20 one whose native library does not load may also be OX118. Half of samples 21 to 28
tell the failure in their author's own words and quote nothing that was printed; since sample 23 such words are read too, and the title where the
text alone says nothing. Samples 29 to 31 hold only reports that quote what was printed, as `onnxproof explain --error` is given it. From sample 23
on reports were taken as the search gave them, with the same message several times."""
FIRST_CODE = {
    **{1: 23, 2: 15, 3: 22, 4: 30, 17: 35, 18: 35, 19: 33, 20: 32},
    **{21: 49, 22: 47, 23: 31, 24: 34, 25: 53, 26: 51, 27: 35, 28: 30, 29: 38, 30: 34, 31: 37},
}
"""How many got a code of their own at first sight, right or not, where that was counted."""


def told(row: dict[str, Any]) -> str | None:
    """The code that a report gets: for what was printed, else for its title and the text together."""
    from onnxproof.diagnosis.failures import diagnose_text

    for text in (row["error"], f"{row['title']}\n{row['error']}"):
        finding = diagnose_text(text)
        if finding is not None and finding.code not in GENERIC:
            return finding.code
    return finding.code if finding is not None else None


def reports() -> dict[str, Any]:
    """How many public failure reports get a code of their own, and the right one where a human gave it."""
    rows = json.loads((HERE / "reports.json").read_text(encoding="utf-8"))
    samples: dict[str, dict[str, int]] = {}
    for row in rows:
        code = told(row)
        counts = samples.setdefault(
            str(row["sample"]), {"known": 0, "total": 0, "judged": 0, "right": 0, "wrong": 0, "unspecific": 0}
        )
        counts["total"] += 1
        counts["known"] += code not in GENERIC
        if "code" in row:
            counts["judged"] += 1
            accepted = (row["code"], row.get("or"))
            counts["right"] += code in accepted and code not in GENERIC
            counts["wrong"] += code not in (*accepted, *GENERIC, SCRIPT)
            counts["unspecific"] += row["code"] in GENERIC
    return {
        "samples": samples,
        "first_sight": {str(sample): list(seen) for sample, seen in FIRST_SIGHT.items()},
        "first_code": {str(sample): count for sample, count in FIRST_CODE.items()},
    }


def table(counted: dict[str, Any]) -> list[str]:
    """The public reports by sample."""
    lines = [
        "| sample | reports | a code of their own, at first sight | the right one, at first sight | a code of their own, now | right, now | wrong, now "
        "| says too little |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for sample, counts in counted["samples"].items():
        seen = counted["first_sight"][sample]
        judged = [str(counts[key]) if counts["judged"] else "–" for key in ("right", "wrong", "unspecific")]
        right = f"{seen[0]} of {seen[1]}" if counts["judged"] else "–"
        told = f"{counted['first_code'][sample]} of {counts['total']}" if sample in counted["first_code"] else "–"
        lines.append(f"| {sample} | {counts['total']} | {told} | {right} | {counts['known']} | {' | '.join(judged)} |")
    return [*lines, "", *_summary(counted)]


def _summary(counted: dict[str, Any]) -> list[str]:
    def first(samples: range) -> str:
        seen = sum(counted["first_code"][str(s)] for s in samples)
        total = sum(counted["samples"][str(s)]["total"] for s in samples)
        return f"{seen} of {total} ({seen / total:.0%})"

    return [
        f"Half of the reports in samples 21 to 28 are told in their author's own words and quote nothing that was printed: {first(range(23, 29))} got a code "
        f"at first sight since such words are read (sample 23). Samples 29 to 31 hold only reports that quote what was printed: {first(range(29, 32))}."
    ]
