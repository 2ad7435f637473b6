"""Commands are made of the verbs: every option is there, and what is given arrives typed."""

from __future__ import annotations

import pytest
import typer

from onnxproof.cli.commands import app, take
from onnxproof.cli.proving import add_address
from onnxproof.errors import UserError
from onnxproof.request.verbs import VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_has_the_flags_of_its_verb(verb):
    command = typer.main.get_command(app).commands[verb]
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert {option.flag for option in VERBS[verb].options().values()} <= flags
    assert command.help == VERBS[verb].help


def test_two_flags_make_one_option():
    given = {"accept": ["OX204", "OX209"], "reason": ["known", "rare"]}
    assert take(VERBS["prove"], given) == {"accept": {"OX204": "known", "OX209": "rare"}}
    for wrong in ({"accept": ["OX204"]}, {"reason": ["why"]}):
        with pytest.raises(UserError, match="give one reason for each accepted code"):
            take(VERBS["prove"], wrong)


def test_ray_alone_means_this_machine():
    assert add_address(["evaluate", "m.py:f", "--ray"]) == ["evaluate", "m.py:f", "--ray", "local"]
    assert add_address(["evaluate", "--ray", "m.py:f"]) == ["evaluate", "--ray", "local", "m.py:f"]
    assert add_address(["--ray", "host:1", "--quiet"]) == ["--ray", "host:1", "--quiet"]
