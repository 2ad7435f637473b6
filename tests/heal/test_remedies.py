"""Which settings are worth a try, in which order, what they change and how one asks for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fake import FakeCandidate
from onnxproof.candidates.candidate import Abilities
from onnxproof.findings import Where, found
from onnxproof.heal.healing import list_settings
from onnxproof.heal.remedies import LARGEST, Remedy, list_options, list_remedies
from onnxproof.proof.blame import Blame
from onnxproof.proof.healing import Healing
from onnxproof.proof.subject import SubjectFacts, TensorFacts
from onnxproof.request.request import ExportOptions, Request, VerifySettings
from onnxproof.request.session import SessionSettings
from onnxproof.request.specs import ProviderSpec, Range
from proofs import make_case, make_proof

CPU, NPU = "CPUExecutionProvider", "NpuExecutionProvider"
FIXED = make_proof()
DYNAMIC = SubjectFacts("m", inputs={"x": TensorFacts((4, 16), "float32")}, dynamic={"x": {"0": "batch"}})


def candidate(*providers, rewrites=False):
    made = FakeCandidate(lambda inputs, settings: {}, available=providers or (CPU,))
    made.abilities = Abilities(rewrites=rewrites)
    return made


def offered(proof=FIXED, request=None, runtime=None):
    return [remedy.what for remedy in list_remedies(request or Request(), proof, runtime or candidate())]


def with_artifact(**changes):
    return replace(FIXED, artifact=replace(FIXED.artifact, **changes))


def test_the_export_is_tried_with_what_it_was_not_made_with():
    made = with_artifact(exporter="dynamo", opset=20)
    whats = ["the exporter's optimiser off", "opset 23", "opset 25", "opset 21", "opset 18"]
    assert offered(made)[:5] == whats
    assert {"the torchscript exporter", "strict capture"} <= set(offered(made))
    old = offered(with_artifact(exporter="torchscript", opset=18))
    assert "the dynamo exporter" in old
    assert [what for what in old if what.startswith("opset")] == ["opset 20"]


def test_what_is_asked_for_already_is_not_tried():
    asked = Request(export=ExportOptions(optimize=False, strict=True))
    assert not {"the exporter's optimiser off", "strict capture"} & set(offered(request=asked))


def test_a_session_is_tried_with_less_optimisation_and_without_what_is_to_blame():
    given = Request(onnx="m.onnx")
    assert offered(request=given, runtime=candidate(rewrites=True)) == [
        "optimization extended",
        "optimization basic",
        "optimization disable",
    ]
    blamed = replace(FIXED, blame={c: Blame("optimize", rewrite="Pad_Fusion") for c in "ab"})
    assert offered(blamed, given) == ["onnxruntime's rewrite Pad_Fusion off"]
    less = replace(given, verify=VerifySettings(session=SessionSettings(optimization="basic")))
    assert offered(request=less, runtime=candidate(rewrites=True)) == ["optimization disable"]


def test_other_providers_are_tried_the_cpus_first():
    npu = Request(onnx="m.onnx", verify=VerifySettings(session=SessionSettings(providers=(ProviderSpec(NPU),))))
    runtime = candidate("AzureExecutionProvider", "XExecutionProvider", NPU, CPU)
    found = list_remedies(npu, FIXED, runtime)
    assert [remedy.what for remedy in found] == ["the CPU provider", "the X provider"]
    names = [[one.name for one in remedy.apply(npu).verify.session.providers] for remedy in found]
    assert names == [[CPU], ["XExecutionProvider", CPU]]


@pytest.mark.parametrize(
    ("stage", "first"),
    [("simplify", "the exporter's optimiser off"), ("translate", "opset 23"), ("capture", "the torchscript exporter")],
)
def test_what_fits_the_stage_to_blame_comes_first(stage, first):
    made = replace(with_artifact(exporter="dynamo", opset=20), blame={"c": Blame(stage)})
    assert offered(made)[0] == first


def sized(failing, sizes=range(1, 9), bounds=None):
    """A proof of a batch of 4, with one case for each size."""
    cases = tuple(
        replace(make_case(f"batch={n}/normal/seed=0", 0.0, n), inputs={"x": TensorFacts((n, 16), "float32")})
        for n in sizes
    )
    wrong = [found("OX201", "wrong", where=Where(case=case.name)) for case in cases if case.sizes["batch"] in failing]
    artifact = replace(FIXED.artifact, bounds=bounds or {})
    return replace(FIXED, subject=DYNAMIC, cases=cases, findings=tuple(wrong), artifact=artifact)


@pytest.mark.parametrize(
    ("proof", "ends"),
    [
        (sized({7}), (1, 6)),
        (sized({1}), (2, LARGEST)),
        (sized({1, 8}), (2, 7)),
        (sized({20}, (1, 2, 4, 20), {"batch": (1, 15)}), (1, 15)),
        (sized({20}, (1, 2, 4, 20), {"batch": (1, None)}), (1, 4)),
        (sized({20}, (1, 2, 4, 20), {"batch": (1, 30)}), (1, 4)),
        (sized(set()), None),
        (sized({4}), None),
        (sized({3, 6}), None),
    ],
)
def test_sizes_are_limited_to_those_around_the_example_that_passed(proof, ends):
    found = [remedy for remedy in list_remedies(Request(), proof, candidate()) if remedy.limits]
    assert [remedy.limits for remedy in found] == ([{"batch": ends}] if ends else [])
    top = "" if not ends else "and more" if ends[1] == LARGEST else f"to {ends[1]}"
    assert [remedy.what for remedy in found] == ([f"batch limited to {ends[0]} {top}"] if ends else [])


def test_every_dimension_is_fixed_only_where_one_is_dynamic():
    fixed = "every dimension fixed to the example's size"
    assert fixed in offered(sized(set()))
    assert fixed not in offered(replace(FIXED, subject=replace(DYNAMIC, dynamic={})))
    assert fixed not in offered(sized(set()), Request(onnx="m.onnx"))


REMEDIES = [
    (Remedy("a", export={"optimize": False}), "--no-optimize", {"no_optimize": True}),
    (
        Remedy("b", export={"exporter": "torchscript", "opset": None}),
        "--exporter torchscript",
        {"exporter": "torchscript"},
    ),
    (Remedy("c", export={"opset": 18}), "--opset 18", {"opset": 18}),
    (Remedy("d", export={"strict": True}), "--strict", {"strict": True}),
    (Remedy("e", static=True), "--dynamic none", {"dynamic": "none"}),
    (Remedy("f", limits={"batch": (1, 4)}), "--range batch:1,4", {"range": ["batch:1,4"]}),
    (Remedy("g", session={"optimization": "basic"}), "--optimization basic", {"optimization": "basic"}),
    (
        Remedy("h", session={"providers": (ProviderSpec(NPU), ProviderSpec(CPU))}),
        "--provider Npu",
        {"provider": ["Npu"]},
    ),
    (Remedy("i", session={"disabled_optimizers": ("A", "B")}), "--disable A --disable B", {"disable": ["A", "B"]}),
]


@pytest.mark.parametrize(("remedy", "flags", "options"), REMEDIES, ids=lambda one: getattr(one, "what", None))
def test_how_to_ask_for_it(remedy, flags, options):
    assert f"`onnxproof prove … {flags}` gives the same" in remedy.recipe()
    assert list_options(remedy.record(Healing(True))) == options


def test_a_recipe_says_what_the_file_does_not():
    assert "disabled_optimizers=['A']" in Remedy("a", session={"disabled_optimizers": ("A",)}).recipe()
    assert "refuse them before the session" in Remedy("b", limits={"batch": (1, 4)}).recipe()
    assert "session" not in Remedy("c", export={"opset": 18}).recipe()


def test_a_remedy_changes_the_request_and_nothing_else():
    request = Request(ranges={"x": Range(0, 1)}, dynamic={"x": {0: "batch"}})
    assert Remedy("nothing").apply(request) == request
    limited = Remedy("sizes", limits={"batch": (1, 4)}).apply(request)
    assert limited == replace(request, ranges={"x": Range(0, 1), "batch": Range(1, 4)})
    assert Remedy("fixed", static=True).apply(request) == replace(request, dynamic={})


def test_what_is_written_into_the_configuration():
    def settings(request=None, healing=None, **artifact):
        made = {"exporter": "dynamo", "optimized": True, "strict": False, **artifact}
        return list_settings(replace(with_artifact(**made), healing=healing), request or Request())

    assert settings() == {}
    assert settings(exporter="torchscript") == {"exporter": "torchscript"}
    assert settings(optimized=False, strict=True) == {"no_optimize": True, "strict": True}
    asked = Request(export=ExportOptions(exporter="torchscript", optimize=False, strict=True))
    assert settings(asked, exporter="torchscript", optimized=False, strict=True) == {}
    limited = Remedy("sizes", limits={"batch": (1, 4)}).record(Healing(True))
    ranges = Request(ranges={"x": Range(0, 0.5)})
    assert settings(ranges, limited) == {"range": ["x:0,0.5", "batch:1,4"]}
