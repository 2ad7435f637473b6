"""Proof → JUnit XML: a test case for each output at each size, and one for each family of findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from onnxproof.errors import show_text
from onnxproof.findings import FAMILIES, Family, Finding
from onnxproof.policy.merging import group_by
from onnxproof.proof.proof import Proof
from onnxproof.report.points import Judged, list_judged
from onnxproof.report.wording import list_details, list_worst_elements, name_subject, show_mark, show_number

# Failures spelled out in one test case.
SHOWN = 40


def render_junit(proof: Proof) -> str:
    """The XML, with its declaration."""
    root = ElementTree.Element("testsuites", name=show_text(f"onnxproof {name_subject(proof)}"))
    suites = [_build_parity(proof), _build_findings(proof)]
    root.extend(suites)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.set("time", _show_seconds(proof.timing.seconds or 0.0))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _show_seconds(value: float) -> str:
    return f"{value:.3f}"


def _build_suite(name: str, cases: Sequence[ElementTree.Element]) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=show_text(name), tests=str(len(cases)))
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(1 for case in cases if case.find(tag) is not None)))
    suite.set("time", _show_seconds(sum(float(case.get("time", "0")) for case in cases)))
    suite.extend(cases)
    return suite


def _build_parity(proof: Proof) -> ElementTree.Element:
    """One test case for each output at each size; the cases with other values are inside."""
    groups = group_by(
        list_judged(proof), lambda one: (one.case.group, one.comparison.output if one.comparison else "(no output)")
    )
    cases = [_build_group(proof, sizes, output, members) for (sizes, output), members in groups.items()]
    return _build_suite(f"{name_subject(proof)}: parity", cases)


def _build_group(proof: Proof, sizes: str, output: str, members: Sequence[Judged]) -> ElementTree.Element:
    seconds = sum(sum(one.case.seconds.values()) for one in members)
    element = _build_case(f"onnxproof.{name_subject(proof)}.{sizes}", output, seconds)
    if all(one.state == "rejected" for one in members):
        ElementTree.SubElement(
            element, "skipped", message=show_text(f"{proof.subject.baseline} itself rejects these inputs")
        )
        return element
    names = {one.case.name for one in members if one.state in ("review", "block")}
    for finding in _choose_findings(proof.findings, output, names):
        _fail(element, finding, proof.counterpart)
    lines = [_show_judged(one) for one in members[:SHOWN]]
    ElementTree.SubElement(element, "system-out").text = show_text("\n".join(lines))
    return element


def _choose_findings(findings: Iterable[Finding], output: str, cases: set[str]) -> list[Finding]:
    """What gates and speaks of one of these cases, or else the gravest about this output: it may stand for milder ones."""
    gating = [f for f in findings if f.weight and f.where.output in (output, None)] if cases else []
    named = [f for f in gating if cases & _list_cases(f)]
    return named[:SHOWN] or [f for f in gating if f.where.output == output][:1]


def _list_cases(finding: Finding) -> set[str]:
    return {str(name) for name in finding.evidence.get("cases") or ()} | {str(finding.where.case)}


def _show_judged(one: Judged) -> str:
    c = one.comparison
    if c is None:
        return f"{one.case.name}: {one.case.status} {one.case.message}"
    numbers = (
        f"max abs {show_number(c.max_abs)}, max rel {show_number(c.max_rel)}, noise ratio {show_number(c.noise_ratio)}"
    )
    return f"{one.case.name}: {one.state}, {numbers}"


def _build_findings(proof: Proof) -> ElementTree.Element:
    """One test case for each family; what is accepted, known or a note does not fail it."""
    cases = [_build_family(proof, family) for family in FAMILIES]
    return _build_suite(f"{name_subject(proof)}: findings", cases)


def _build_family(proof: Proof, family: Family) -> ElementTree.Element:
    element = _build_case(f"onnxproof.{name_subject(proof)}.findings", family.name, 0.0)
    findings = [finding for finding in proof.findings if finding.entry.family == family]
    if not findings and _is_unasked(proof, family.name):
        ElementTree.SubElement(element, "skipped", message="not asked for")
        return element
    for finding in [f for f in findings if f.weight][:SHOWN]:
        _fail(element, finding, proof.counterpart)
    quiet = [f"{f.code} {f.severity}{show_mark(f)}: {f.message}" for f in findings if not f.weight]
    if quiet:
        ElementTree.SubElement(element, "system-out").text = show_text("\n".join(quiet[:SHOWN]))
    return element


def _is_unasked(proof: Proof, name: str) -> bool:
    absent = {"latency": proof.latency is None, "quality": proof.quality is None, "data": proof.quality is None}
    return absent.get(name, name == "parity" and not proof.cases)


def _build_case(classname: str, name: str, seconds: float) -> ElementTree.Element:
    return ElementTree.Element(
        "testcase", classname=show_text(classname), name=show_text(name), time=_show_seconds(seconds)
    )


def _fail(element: ElementTree.Element, finding: Finding, baseline: str) -> None:
    failure = ElementTree.SubElement(element, "failure", type=f"{finding.code} {finding.severity}")
    failure.set("message", show_text(f"{finding.code}: {finding.message}"))
    lines = list_details(finding, list_worst_elements(finding, baseline))
    failure.text = show_text("\n".join([finding.message, *lines]))
