"""Proof → text for a terminal: verdict first, at most about thirty lines, readable without colour."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onnxproof.errors import show_line
from onnxproof.findings import Finding
from onnxproof.proof.blame import Blame
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.proof import Proof
from onnxproof.report import latency, quality, quantization, runtimes, wording
from onnxproof.report.groups import Group, group_cases

SHOWN_FINDINGS = 3
SHOWN_NOTES = 3
SHOWN_GROUPS = 9
SHOWN_LINTS = 12


def render(proof: Proof) -> str:
    """The summary."""
    timed, baseline, head = proof.latency, proof.subject.baseline, wording.tell_headline(proof)
    told = latency.tell_headline(timed, proof.policy.latency, baseline) if timed is not None else ""
    if timed is not None and not proof.planned and proof.quality is None:  # only times were asked for
        if not wording.choose_grave(proof):
            head = f"{wording.WORDS[proof.verdict]}  {wording.name_subject(proof)}: {told}"
        tables = (*latency.make_table(timed), *latency.tell_tokens(timed, baseline), *latency.list_nodes(timed))
        body = [*latency.tell_setup(timed, baseline), *tables]
    else:
        compared = [] if proof.quantization is not None else _tell_groups(group_cases(proof), baseline)
        body = [*quantization.tell_lines(proof.quantization), *compared, *_tell_search(proof)]
        if proof.quality is not None and proof.quantization is None:
            body += quality.tell_lines(proof.quality, baseline, short=bool(proof.cases))
        body += [f"  latency: {told}"] * bool(told)
        body += runtimes.tell_lines(proof.runtimes)
    return _join([head, *_tell_artifact(proof), *body, *_tell_findings(proof), *_tell_next(proof)])


def _join(lines: Iterable[str]) -> str:
    return "\n".join(map(show_line, lines))


def _tell_artifact(proof: Proof) -> list[str]:
    made, env = proof.artifact, proof.environment
    if made is None:
        return []
    providers = ", ".join(name.removesuffix("ExecutionProvider") for name in env.providers)
    return [
        f"  {made.path}  opset {made.opset}, {made.nodes} nodes, {wording.show_size(made.bytes)}, {made.exporter}",
        *([f"  {made.precision.text}"] if made.precision is not None else []),
        f"  torch {env.torch}, onnxruntime {env.onnxruntime}, {providers}, optimization {env.optimization}"
        + (f", held against {env.original}" if env.original is not None else ""),
    ]


def _tell_groups(found: list[Group], baseline: str) -> list[str]:
    """One line per size (with the values tried there), worst numbers of all outputs."""
    if not found:
        return []
    shown = found if len(found) <= SHOWN_GROUPS else found[: SHOWN_GROUPS - 1]
    width = max(len("sizes"), *(len(group.sizes) for group in shown))
    lines = ["", f"  {'sizes':<{width}}   cases   max abs   max rel   noise ratio  graph in float64"]
    lines += [f"  {group.sizes:<{width}}  {group.cases:>6}  {_show_row(group, baseline)}" for group in shown]
    if len(found) > len(shown):
        lines.append(f"  … and {len(found) - len(shown)} more sizes")
    return lines


def _show_row(group: Group, baseline: str) -> str:
    remarks = [f"{group.refused} refused by onnxruntime"] * bool(group.refused)
    remarks += [f"{group.rejected} rejected by {baseline}"] * bool(group.rejected)
    wide = ((group.max_abs, 0), (group.max_rel, 0), (group.noise_ratio, 8), (group.exactness, 10))
    return "   ".join(_format_number(value).rjust(width) for value, width in wide) + (
        f"   ({', '.join(remarks)})" if remarks else ""
    )


def _format_number(value: float | None) -> str:
    return (
        "      –" if value is None else f"{value:7.1e}" if value and not 0.01 <= abs(value) < 1000 else f"{value:7.3g}"
    )


def _tell_search(proof: Proof) -> list[str]:
    """What a search did, and how much of the user's data the generated cases cover."""
    lines = [
        f"  data: {cover.share:.0%} of {name} lies where generated cases have been too"
        for name, cover in list(proof.coverage.items())[:3]
    ]
    if proof.trials is not None and proof.trials.pieces:
        lines.append(f"  operators: {wording.tell_trials(proof.trials)}")
    if proof.rollout is not None:
        lines.append(wording.tell_state(proof.rollout))
    if proof.search is not None:
        s = proof.search
        lines.append(
            f"  search: {s.inputs} inputs in {s.seconds:.0f} s, {s.reached} of {s.regimes} regimes reached, "
            + (f"found {s.found}" if s.found else f"worst {s.worst:.2g} of what rounding explains")
        )
    return lines


def _tell_findings(proof: Proof) -> list[str]:
    gating = wording.choose_grave(proof)
    quiet = sorted((f for f in proof.findings if not f.weight), key=lambda f: not f.entry.prominent)
    lines: list[str] = []
    for finding in gating[:SHOWN_FINDINGS]:
        lines += ["", *describe_finding(finding, proof.counterpart)]
    if len(gating) > SHOWN_FINDINGS:
        codes = ", ".join(dict.fromkeys(f.code for f in gating[SHOWN_FINDINGS:]))
        lines.append(f"  … and {len(gating) - SHOWN_FINDINGS} more ({codes}): they are in the proof")
    if quiet:
        lines += ["", *(line for f in quiet[:SHOWN_NOTES] for line in _tell_note(f))]
    if len(quiet) > SHOWN_NOTES:
        lines.append(f"  … and {len(quiet) - SHOWN_NOTES} more notes in the proof")
    return lines


def describe_finding(finding: Finding, baseline: str) -> list[str]:
    """A finding in full: message, place, worst elements, smallest input, help."""
    lines = [*wording.list_worst_elements(finding, baseline), *_tell_smallest(finding.evidence.get("counterexample"))]
    head = f"  {finding.code} {finding.severity}  {wording.shorten(finding.message, 400)}"
    return [show_line(line) for line in (head, *(f"    {line}" for line in wording.list_details(finding, lines)))]


def _tell_smallest(one: dict[str, Any] | None) -> list[str]:
    if one is None:
        return []
    shapes = ", ".join(f"{name} of shape {shape}" for name, shape in one["shapes"].items())
    return [f"smallest input: {one['text'] or shapes}", f"kept: {one['script'] or one['file']}"]


def _tell_note(finding: Finding) -> list[str]:
    line = f"  {finding.code} {wording.name_standing(finding)}  {wording.shorten(finding.message, 160)}{wording.show_mark(finding)}"
    return [line, f"    help: {finding.help}"] if finding.entry.prominent else [line]


def _tell_next(proof: Proof) -> list[str]:
    gating = wording.choose_grave(proof)
    if not gating:
        return []
    healing = ", or --heal" if proof.healing is None and gating[0].entry.healable else ""
    return ["", f"  next: onnxproof explain {gating[0].code}{healing}"]


def list_culprits(proof: Proof) -> str:
    """The worst nodes of every located case: at most twenty lines."""
    if not proof.blame:
        return "\n  nothing to locate"
    lines = []
    for case, blame in proof.blame.items():
        lines += ["", f"  {case}: {_tell_step(blame)}"]
        for culprit in blame.culprits[:8]:
            error = "nan/inf" if culprit.introduced >= wording.BORN else f"{culprit.introduced:.2g}"
            source = f"{culprit.file}:{culprit.line}  {culprit.text or ''}" if culprit.file else ""
            module = culprit.module if culprit.module else "(top)" if culprit.module == "" else "–"
            lines.append(f"    {error:>8}  {culprit.op:<14} {culprit.node:<24} {module:<20} {source}".rstrip())
            expected, got = wording.show_value(culprit.expected), wording.show_value(culprit.got)
            says = f"should be {expected}, is {got}" if culprit.got is not None else ""
            rule = f"made by the exporter's rule {culprit.rule}" if culprit.rule and blame.stage == "simplify" else ""
            more = [says, rule, "inside its subgraph" if culprit.border else "", culprit.reproduction or ""]
            if any(more) and culprit in blame.culprits[:3]:
                lines.append(f"              {'; '.join(filter(None, more))}")
    return _join(lines[:20])


def _tell_step(blame: Blame) -> str:
    """The step, and what is known about it besides the nodes."""
    parts = [
        f"stage {blame.stage or 'unknown'}",
        f"rewrite {blame.rewrite}" * bool(blame.rewrite),
        "it vanishes when inner values are watched: only the fused graph shows it" * blame.vanishes,
        "the runtime shows no inner values, so no node was looked for in it" * blame.unseen,
        f"the exporter's optimiser removed {', '.join(blame.removed)}" * bool(blame.removed),
        *(f"first NaN or infinity in {b.side}: {b.op} {b.node}" for b in blame.births),
        *(f"{a.op} {a.node} magnifies the error {a.introduced:.0f} times" for a in blame.amplifiers[:2]),
    ]
    return "; ".join(filter(None, parts))


def describe_case(case: CaseResult) -> str:
    """One line per output of a case: for `--verbose`."""
    if not case.outputs:
        return show_line(f"  {case.name}: {case.status} {wording.shorten(case.message, 120)}")
    return _join(
        f"  {case.name}  {c.output}: max abs {_format_number(c.max_abs)}  max rel {_format_number(c.max_rel)}  noise ratio {_format_number(c.noise_ratio)}"
        for c in case.outputs
    )


def render_lint(proof: Proof) -> str:
    """The gravest first; a lint compares nothing, so it never says SHIP."""
    name = proof.artifact.path if proof.artifact is not None else proof.subject.target or proof.subject.name
    gating = sum(1 for finding in proof.findings if finding.weight)
    counted = f"{gating} to mend, {len(proof.findings) - gating} notes" if proof.findings else "nothing found"
    word = "CLEAN" if proof.verdict == "ship" else wording.WORDS[proof.verdict]
    lines = [f"{word}  {name}: {counted} (nothing was run)"]
    for finding in proof.findings[:SHOWN_LINTS]:
        lines += _tell_linted(finding)
    if len(proof.findings) > SHOWN_LINTS:
        lines.append(f"  … and {len(proof.findings) - SHOWN_LINTS} more: --json - has them all")
    return _join(lines)


def _tell_linted(finding: Finding) -> list[str]:
    where = finding.where
    place = f"  (module {where.module})" if where.module else ""
    if where.file and where.line:
        place = f"  at {where.file}:{where.line}"
    mark = " (accepted)" if finding.accepted is not None else ""
    line = f"  {finding.code} {finding.severity}{mark}: {finding.message}{place}"
    return ["", line, f"    {finding.help}"] if finding.weight else [line]
