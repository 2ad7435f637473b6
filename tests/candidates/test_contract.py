"""The contract of the seam, on every candidate there is."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from browser import require_javascript
from candidates.small_models import showing_inner, sums
from fake import FakeCandidate
from onnxproof.candidates import choose_candidate
from onnxproof.candidates.candidate import Abilities, Candidate, Profiling, TimedSession, open_timed, require_timed
from onnxproof.candidates.onnxruntime import Onnxruntime
from onnxproof.errors import FindingError, ProviderError, Rejected, UserError
from onnxproof.findings import found
from onnxproof.request.session import CPU, SessionSettings
from onnxproof.request.specs import ProviderSpec

HERE = SessionSettings()
THERE = f"python:{sys.executable}"
REFUSED = found("OX303", "onnxruntime cannot build a session: no")


def by_hand(inputs, settings):
    """What the file says, as a function."""
    x = inputs["x"].astype(np.float32)
    if x.ndim != 2 or x.shape[1] != 3:
        raise Rejected(f"Got invalid dimensions for input: {list(x.shape)}")
    return {"more": x + np.float32(1), "largest": (2 * (x + np.float32(1))).max(axis=1)}


def fake() -> FakeCandidate:
    return FakeCandidate(by_hand, ("more", "largest"), Abilities(timed=True))


CANDIDATES = {
    "onnxruntime": lambda: choose_candidate(HERE),
    "another interpreter": lambda: choose_candidate(SessionSettings(runtime=THERE)),
    "another release": lambda: choose_candidate(SessionSettings(runtime="onnxruntime==1.17.3")),
    "node": lambda: choose_candidate(SessionSettings(runtime="node")),
    "browser": lambda: choose_candidate(SessionSettings(runtime="browser")),
    "fake": fake,
}


@pytest.fixture(params=CANDIDATES)
def candidate(request) -> Candidate:
    if request.param in ("node", "browser"):
        require_javascript(request.param)
    return CANDIDATES[request.param]()


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "sums.onnx"
    path.write_bytes(sums())
    return path


X = np.array([[1, 2, 3], [6, 5, 4]], np.float32)


def test_it_answers_under_the_graphs_names_and_leaves_its_inputs_alone(candidate, file):
    session = candidate.open(file, HERE)
    given = X.copy()
    for _ in range(2):
        answer = session.run({"x": given})
        assert list(answer) == list(session.outputs) == ["more", "largest"]
        np.testing.assert_array_equal(answer["more"], X + 1)
        np.testing.assert_array_equal(answer["largest"], [8, 14])
        assert {array.dtype.name for array in answer.values()} == {"float32"}
    np.testing.assert_array_equal(given, X)


def test_what_it_answered_is_not_touched_by_the_next_run(candidate, file):
    session = candidate.open(file, HERE)
    first = session.run({"x": X})["more"]
    session.run({"x": X + 100})
    np.testing.assert_array_equal(first, X + 1)


def test_bytes_are_a_file_too_and_sessions_do_not_mix(candidate, file):
    one, other = candidate.open(file, HERE), candidate.open(sums(), HERE, {"x": "features"})
    np.testing.assert_array_equal(other.run({"features": X, "unused": X})["more"], X + 1)
    other.close()
    np.testing.assert_array_equal(one.run({"x": X})["more"], X + 1)


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_sizes(candidate, rows):
    answer = candidate.open(sums(), HERE).run({"x": np.ones((rows, 3), np.float32)})
    assert answer["more"].shape == (rows, 3)
    assert answer["largest"].shape == (rows,)


def test_arrays_go_in_as_the_graph_declares_them(candidate):
    session = candidate.open(sums(), HERE)
    for array in (X.astype(np.float64), X[:, ::-1], np.asfortranarray(X), X.astype(np.int64)):
        np.testing.assert_array_equal(session.run({"x": array})["more"], array.astype(np.float32) + 1)


def test_a_refused_input_is_an_answer_and_the_next_one_is_answered(candidate):
    session = candidate.open(sums(), HERE)
    with pytest.raises(Rejected, match="invalid dimensions"):
        session.run({"x": np.ones((2, 4), np.float32)})
    np.testing.assert_array_equal(session.run({"x": X})["more"], X + 1)


def test_a_refused_file_is_a_finding(candidate):
    if isinstance(candidate, FakeCandidate):
        candidate.refused = REFUSED
    with pytest.raises(FindingError) as refused:
        candidate.open(b"no model", HERE)
    assert refused.value.finding.severity == "block"
    assert refused.value.finding.code.startswith("OX3")


def test_an_unknown_provider_is_the_users_error(candidate):
    with pytest.raises(ProviderError, match=r"'NoExecutionProvider'.*available: .*CPUExecutionProvider"):
        candidate.open(sums(), SessionSettings(providers=(ProviderSpec("NoExecutionProvider"),)))


def test_it_says_what_it_is(candidate):
    assert candidate.name
    assert "onnxruntime" in candidate.versions()
    assert CPU.name in candidate.providers()
    assert candidate.open(sums(), HERE).placement() is None


# --- abilities --------------------------------------------------------------------------------------------------------


def test_times_are_taken_where_that_ability_is_declared_and_nowhere_else(candidate):
    if not candidate.abilities.timed:
        assert not isinstance(candidate.open(sums(), HERE), TimedSession)
        with pytest.raises(UserError, match="cannot be timed from here"):
            open_timed(candidate, sums(), HERE, {})
        return
    require_timed(candidate)
    call = open_timed(candidate, sums(), HERE, {"x": "features"}).prepare({"features": X})
    np.testing.assert_array_equal(call.read(call.run())["largest"], [8, 14])


def test_binding_gives_the_same_answer(candidate):
    if not candidate.abilities.binding:
        pytest.skip("it has no such ability")
    call = open_timed(candidate, sums(), HERE, {}).prepare({"x": X}, bound=True)
    first = call.read(call.run())
    np.testing.assert_array_equal(first["largest"], [8, 14])
    call.run()
    np.testing.assert_array_equal(first["more"], X + 1)


def test_inner_values_are_shown(candidate):
    if not candidate.abilities.inner_values:
        pytest.skip("it has no such ability")
    session = candidate.open(showing_inner(), HERE)
    np.testing.assert_array_equal(session.run({"x": X})["inner"], 2 * (X + 1))


def test_rewrites_can_be_switched_off(candidate):
    if not candidate.abilities.rewrites:
        pytest.skip("it has no such ability")
    for settings in (
        SessionSettings(optimization="disable"),
        SessionSettings(disabled_optimizers=("ConstantFolding", "NoSuchRewrite")),
        SessionSettings(execution="parallel", threads=2),
    ):
        np.testing.assert_array_equal(candidate.open(sums(), settings).run({"x": X})["more"], X + 1)


def test_only_a_profiling_candidate_declares_a_profile(candidate):
    assert isinstance(candidate, Profiling) == candidate.abilities.profile


def test_a_profile_has_the_times_of_every_node(file):
    limits = {"runs": (2, 5), "seconds": 0.0, "results": True}
    seen = Onnxruntime().profile(file, SessionSettings(optimization="disable"), {"x": "a"}, {"a": X}, **limits)
    assert seen.runs == 2
    assert [time.op for time in seen.times] == ["Add", "Add", "ReduceMax"] * 2
    assert all(time.provider == CPU.name and time.microseconds >= 0 for time in seen.times)
    assert ["largest"] in [list(values) for values in seen.results.values()]


# --- the choice -------------------------------------------------------------------------------------------------------


def test_the_settings_choose_the_candidate():
    assert isinstance(choose_candidate(HERE), Onnxruntime)
    there = choose_candidate(SessionSettings(runtime=THERE))
    assert there.name == THERE
    assert there is choose_candidate(SessionSettings(runtime=THERE, threads=1))
    for text in ("python:", "nod", ""):
        with pytest.raises(UserError, match="expected a release or a range"):
            choose_candidate(SessionSettings(runtime=text))
