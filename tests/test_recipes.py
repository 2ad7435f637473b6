"""Recipes of CONTRIBUTING.md, followed by the letter in a copy of the repository: the files they name, three at most,
the test among them, which runs there and shows that what was added arrives."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Change:
    """Lines that go into a file: behind the first place that the pattern finds, or at its end."""

    file: str
    named: str
    """How the recipe calls it."""
    text: str
    behind: str = r"\Z"

    def make(self, root: Path) -> None:
        path = root / self.file
        before = path.read_text() if path.is_file() else ""
        place = re.search(self.behind, before)
        assert place is not None, f"{self.file} has no {self.behind}"
        path.write_text(before[: place.end()] + self.text + before[place.end() :])


PROFILE = (
    Change(
        "src/onnxproof/cases/values.py",
        "`cases/values.py`",
        '    "stairs": lambda g, s: np.floor(g.standard_normal(s) * 3),\n',
        r"\nFLOATS: .*\n",
    ),
    Change(
        "tests/cases/test_values.py",
        "`tests/cases/test_values.py`",
        """

def test_stairs_are_whole_numbers_for_every_role_and_are_compared(tmp_path):
    import onnxproof

    g = np.random.default_rng(0)
    assert np.ptp(values := fill(domain(np.zeros((2, 3), np.float32)), "stairs", (9, 4), g)) > 0
    assert (values == np.round(values)).all()
    assert fill(domain(np.zeros((2, 3), np.int64), Range(3, 9)), "stairs", (9, 4), g).min() >= 3
    assert set(np.unique(fill(domain(np.ones((2, 6), np.int64), name="mask"), "stairs", (9, 6), g))) == {0, 1}
    proof = onnxproof.prove(*models.tutorial(), out=tmp_path, batch_sizes=[1])
    (case,) = [case for case in proof.cases if case.profile == "stairs"]
    assert (case.status, case.fair, case.outputs[0].output) == ("compared", True, "output")
""",
    ),
)
METRIC = (
    Change(
        "src/onnxproof/quality/metrics/numbers.py",
        "`quality/metrics/`",
        """    measured.means(
        {side: {"log_error": _log_errors(labels, answers.scores)} for side, answers in scores.sides.items()}, bootstrap
    )
""",
        r"\n    counts = Resampled.*\n",
    ),
    Change(
        "src/onnxproof/quality/metrics/numbers.py",
        "`quality/metrics/`",
        """

def _log_errors(labels: Array, scores: Array | None) -> Array:
    assert scores is not None  # always kept for this task
    given = scores.astype(np.float64).reshape(labels.shape)
    return np.asarray(np.abs(np.log1p(np.abs(given)) - np.log1p(np.abs(labels))).mean(axis=1))
""",
    ),
    Change(
        "src/onnxproof/policy/quality.py", "`policy/quality.py`", '"log_error", ', r"\nLOWER_IS_BETTER = frozenset\(\{"
    ),
    Change(
        "tests/quality/metrics/test_numbers.py",
        "`tests/quality/metrics/`",
        """

def test_log_errors_are_in_an_evaluation_with_their_interval_and_may_not_rise():
    from onnxproof.report.quality import tell_lines
    from quality.scored import codes_of, quality_of

    labels = np.linspace(1, 50, 400)
    given = labels * np.random.default_rng(0).uniform(0.8, 1.2, 400)
    quality = quality_of(labels, given.astype(np.float32), (given * 1.5).astype(np.float32), task="regression")
    expected = np.abs(np.log1p(given * 1.5) - np.log1p(labels)).mean()
    assert quality.candidate["log_error"] == pytest.approx(expected, rel=1e-5)
    low, high = quality.intervals["log_error"].candidate
    assert low < expected < high
    assert "OX507" in codes_of(quality, max_drop={"log_error": 0.1})
    assert any("log error" in line for line in tell_lines(quality, "PyTorch"))
""",
    ),
)
FORMAT = (
    Change(
        "src/onnxproof/report/csv.py",
        "`report/<name>.py`",
        '''"""A line for each finding."""

from __future__ import annotations

from onnxproof.proof.proof import Proof


def render_csv(proof: Proof) -> str:
    return "".join(f"{finding.code},{finding.severity}\\n" for finding in proof.findings)
''',
    ),
    Change(
        "src/onnxproof/request/request.py",
        "`request/request.py`",
        '    csv: str | None = option(None, "Write findings as CSV.", text, configured=False)\n',
        r"\n    markdown: .*\n",
    ),
    Change(
        "tests/report/test_csv.py",
        "`tests/report/test_<name>.py`",
        """
import pytest

import onnxproof
import proofs
from conftest import target


def test_findings_as_csv(inside, tmp_path):
    proofs.make_proof(wrong=2).save(tmp_path / "proof.json")
    told = inside("report", "proof.json", "--csv", "made/findings.csv")
    assert told.returncode == 1
    assert "OX201,block" in (tmp_path / "made" / "findings.csv").read_text().splitlines()
    assert "csv: made/findings.csv" in told.stderr


@pytest.mark.parametrize("verb", ["prove", "verify", "diff", "bench", "evaluate"])
def test_every_verb_that_writes_reports_takes_it(verb, inside):
    assert "--csv" in inside(verb, "--help").stdout


def test_a_folder_is_no_file(inside):
    told = inside("prove", target("tutorial"), "--csv", ".")
    assert told.returncode == 2
    assert "--csv . is a folder" in told.stderr
""",
    ),
)
FINDING = (
    Change(
        "src/onnxproof/findings/catalogue/parity.toml",
        "`findings/catalogue/<family>.toml`",
        """
[OX298]
title = "every value differs"
severity = "review"
stage = "translate"
what = "No single value of a discrete output is the same on both sides."
why = "That is no rounding: two different things are compared."
fix = "Compare the outputs' names."
example = "logits beside class numbers"
near_miss = "all values but one"
judged = true
""",
    ),
    Change(
        "src/onnxproof/policy/parity.py",
        "`policy/`",
        """    if c.mismatched == c.size:
        return _remark("OX298", f"{c.output}: not one of {c.size} values is the same", c, 1.0)
""",
        r"\ndef _judge_discrete.*\n.*\n +return None\n",
    ),
    Change(
        "tests/policy/test_parity.py",
        "`test_oxNNN_…` beside other tests",
        """

def test_the_new_code_is_for_outputs_without_a_single_value_in_common():
    assert told(replace(WHOLE, mismatched=8))[0] == [("OX298", "review")]
    assert told(replace(WHOLE, mismatched=7))[0] == [("OX207", "block")]
""",
    ),
)
OPTION = (
    Change(
        "src/onnxproof/request/request.py",
        "`request/`",
        '    remark: str | None = option(None, "A remark of yours.", text)\n',
        r"\n    bench: .*\n",
    ),
    Change(
        "src/onnxproof/request/verbs.toml", "`request/verbs.toml`", "remark ", r'\[verbs.prove\]\n(.*\n)*?takes = """\n'
    ),
    Change(
        "tests/request/test_steps.py",
        "`tests/request/`",
        """
import inspect

import onnxproof
from onnxproof.cli.reference import render_reference
from onnxproof.request.build import build_request
from onnxproof.request.configuration import Settings, from_environment


def test_a_remark_is_a_flag_a_keyword_a_variable_a_key_and_in_the_reference(inside, tmp_path):
    assert build_request("prove", {"remark": "mine"}).steps.remark == "mine"
    assert "--remark" in inside("prove", "--help").stdout
    assert "remark" in inspect.signature(onnxproof.prove).parameters
    assert "| `--remark` | A remark of yours. |" in render_reference()
    (tmp_path / "onnxproof.toml").write_text('remark = "from the file"')
    assert Settings.find(tmp_path).common == {"remark": "from the file"}
    assert from_environment({"ONNXPROOF_REMARK": "from outside"}) == {"remark": "from outside"}
""",
    ),
)
MESSAGE = (
    Change(
        "src/onnxproof/diagnosis/messages/system.toml",
        "`diagnosis/messages/<speaker>.toml`",
        """
[[rule]]
code = "OX135"
message = "the printer {what}"
says = ['lp0 (?P<what>on fire)']
examples = ["kernel: lp0 on fire"]
near_misses = ["lp1 is cold"]
""",
        r"\n",
    ),
)
CANDIDATE = (
    Change(
        "src/onnxproof/candidates/evaluator.py",
        "`candidates/`",
        '''"""onnx's own evaluator in the place of a runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx

from onnxproof.candidates.candidate import Abilities, Outputs, Session
from onnxproof.candidates.exchange import check_providers, refuse_file
from onnxproof.errors import FindingError, Rejected
from onnxproof.findings import Finding
from onnxproof.graph.evaluator import Evaluator
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.tensors.arrays import Arrays


class OnnxEvaluator:
    name = "evaluator:onnx"
    abilities = Abilities(inner_values=True, elsewhere=True)

    def versions(self) -> Mapping[str, str]:
        return {"onnxruntime": f"onnx {onnx.__version__}"}

    def providers(self) -> Sequence[str]:
        return [CPU.name]

    def open(self, model: Path | bytes, settings: SessionSettings, renamed: Mapping[str, str] | None = None) -> Session:
        check_providers(settings.providers, self.providers(), self.name)
        try:
            proto = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
        except Exception as error:
            raise FindingError(refuse_file(str(error))) from None
        return EvaluatorSession(proto, renamed or {})


class EvaluatorSession:
    def __init__(self, proto: onnx.ModelProto, renamed: Mapping[str, str]) -> None:
        self._evaluator, self._renamed = Evaluator(proto), renamed
        self._declared = {port.name: port.type.tensor_type for port in proto.graph.input}
        self.outputs = [port.name for port in proto.graph.output]

    def run(self, inputs: Arrays) -> Outputs:
        feed = {}
        for name, declared in self._declared.items():
            dtype = onnx.helper.tensor_dtype_to_np_dtype(declared.elem_type)
            feed[name] = inputs[self._renamed.get(name, name)].astype(dtype)
            sizes = zip(feed[name].shape, declared.shape.dim, strict=True)
            if any(dim.HasField("dim_value") and dim.dim_value != size for size, dim in sizes):
                raise Rejected(f"invalid dimensions of {name}: {feed[name].shape}")
        return self._evaluator.run(feed)

    def placement(self) -> Finding | None:
        return None

    def close(self) -> None:
        pass
''',
    ),
    Change(
        "src/onnxproof/candidates/__init__.py",
        "`candidates/__init__.py`",
        """    if kind == "evaluator":
        from onnxproof.candidates.evaluator import OnnxEvaluator

        return OnnxEvaluator()
""",
        r"\n    kind, .*\n",
    ),
    Change(
        "tests/candidates/test_contract.py",
        "`tests/candidates/test_contract.py`",
        '    "evaluator": lambda: choose_candidate(SessionSettings(runtime="evaluator:onnx")),\n',
        r"\nCANDIDATES = \{\n",
    ),
    Change(
        "tests/candidates/test_contract.py",
        "`tests/candidates/test_contract.py`",
        """

def test_a_proof_with_the_evaluator(tmp_path):
    import models
    import onnxproof

    proof = onnxproof.prove(*models.tutorial(), runtime="evaluator:onnx", batch_sizes=[1, 2], out=tmp_path)
    assert proof.verdict == "ship"
    assert proof.environment.onnxruntime.startswith("onnx ")
""",
    ),
)


@dataclass(frozen=True)
class Recipe:
    changes: tuple[Change, ...]
    held_to: tuple[str, ...] = ()
    """Tests that were there before, or a choice of those that run."""

    @property
    def tests(self) -> list[str]:
        return [*{change.file: None for change in self.changes if change.file.startswith("tests")}, *self.held_to]


RECIPES = {
    "An option": Recipe(OPTION, ("tests/request/test_build.py", "tests/cli/test_commands.py")),
    "A finding with its rule": Recipe(FINDING, ("tests/findings/test_catalogue.py",)),
    "A value profile": Recipe(PROFILE, ("-k", "stairs")),
    "A candidate": Recipe(CANDIDATE, ("-k", "evaluator")),
    "A metric": Recipe(METRIC),
    "An output format": Recipe(FORMAT, ("tests/cli/test_commands.py",)),
    "A failure's message": Recipe(MESSAGE, ("tests/diagnosis/test_rules.py", "-k", "system")),
}


def recipe(name: str) -> str:
    return next(
        line for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith(f"- **{name}**")
    )


@pytest.mark.parametrize("name", RECIPES)
def test_it_names_what_is_changed_and_that_is_little(name):
    changes = RECIPES[name].changes
    assert len({change.file for change in changes}) <= 3
    assert [change.named for change in changes if change.named not in recipe(name)] == []


# Each runs tests in a copy: CI follows the one that touches most.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "A finding with its rule" else pytest.mark.slow) for name in RECIPES],
)
def test_followed_it_holds(name, tmp_path):
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for change in RECIPES[name].changes:
        change.make(tmp_path)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *RECIPES[name].tests],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
