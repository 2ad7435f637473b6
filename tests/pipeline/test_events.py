"""Events survive the way from a child: types, NaN and infinities included."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from onnxproof.findings import Where, found
from onnxproof.parity.comparison import compare
from onnxproof.pipeline import events
from onnxproof.process.orders import SAID, Frames, make_frame
from onnxproof.proof.blame import Blame, Step
from onnxproof.proof.case_result import CaseResult
from onnxproof.proof.environment import Environment
from onnxproof.proof.search import Search
from onnxproof.proof.subject import SubjectFacts, TensorFacts


def there(event: events.Event) -> events.Event:
    ((_, body),) = Frames().feed(make_frame(SAID, event))
    return events.decode(body)


def test_a_finding_and_a_case_arrive_as_they_were():
    finding = found(
        "OX201", "far", where=Where(output="y", case="a"), evidence={"max_abs": np.float32(2.0), "at": (1, 2)}
    )
    told = there(events.Observed(finding)).finding
    assert (told.code, told.where) == (finding.code, finding.where)
    assert told.evidence == {"max_abs": 2.0, "at": [1, 2]}
    comparison = compare("y", np.array([1.0, np.inf], np.float32), np.array([2.0, np.nan], np.float32))
    result = CaseResult("a", "normal", True, "compared", {"x": TensorFacts((2,), "float32")}, (comparison,))
    assert there(events.Compared(result)).result == result


def test_numbers_that_json_does_not_know_arrive():
    told = there(events.Searched(Search(math.nan, worst=math.inf)))
    assert told.search.worst == math.inf
    assert math.isnan(told.search.budget)
    blame = there(events.Blamed("a", Blame("kernel", path=(Step("n", "Add", math.nan, 0.5),)))).blame
    assert math.isnan(blame.path[0].introduced)


def test_a_word_of_python_arrives():
    told = there(events.SubjectRead(SubjectFacts(class_="model.Net"), Environment(torch="2")))
    assert (told.subject.class_, told.environment.torch) == ("model.Net", "2")


def test_every_event_can_be_told_from_the_others():
    kinds = [kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)]
    tags = {msgspec.inspect.type_info(kind).tag for kind in kinds if kind is not events.Event}
    assert len(tags) == len(kinds) - 1
