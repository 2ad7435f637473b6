"""The pytest plugin's door: options, the marker and the fixture. onnxproof itself is imported when a test uses it.

This module is outside the package on purpose: pytest imports it in every run, and it must cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from onnxproof.testing import Prover

# The test that runs now, innermost last; `onnxproof.testing` looks here for markers and options.
CURRENT: list[pytest.Item] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("onnxproof", "proofs of exported models")
    group.addoption(
        "--onnxproof-html", metavar="DIR", default=None, help="Write the HTML report of every proof into this folder."
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "onnxproof(**options): options for every proof in this test: atol, rtol, max_abs, noise, accept, policy, "
        "batch_sizes, range, … as onnxproof.prove takes them. The nearest marker wins.",
    )


@pytest.hookimpl(hookwrapper=True)  # the older style, since this is loaded in every run, by any pytest
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    CURRENT.append(item)
    try:
        yield
    finally:
        CURRENT.pop()


@pytest.fixture
def onnxproof(request: pytest.FixtureRequest, tmp_path: Any) -> Prover:
    """Prove models in this test: `onnxproof.assert_parity(model, inputs)`, `onnxproof.prove(...)`."""
    from onnxproof.testing import Prover

    return Prover(tmp_path)
