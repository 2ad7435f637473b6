"""Outputs that are the next step's inputs."""

from __future__ import annotations

import pytest
import torch

from onnxproof.subject.state import find_growth, guess_state, name_after, read_stem


@pytest.mark.parametrize(
    "names",
    [
        "past_key_values.0.key present.0.key past_key_values_key_cache_0 past_0_key past_key_values[0][0] past.0.decoder.key",
        "past_key_values.1.encoder.value present.1.encoder.value past_key_values[1][3]",
        "state stateN new_state state_out prev_state",
        "h hn h_n h_in h_out",
        "past_key key present_key",
    ],
)
def test_names_of_one_state_have_one_stem(names):
    assert len({read_stem(name) for name in names.split()}) == 1


def test_stems_of_different_states_differ():
    names = ("past.0.key", "past.0.value", "past.1.key", "past.0.encoder.key", "h", "c", "h1")
    assert len({read_stem(name) for name in names}) == len(names)


def grow(*shapes: tuple[int, ...], names: str) -> dict[str, torch.Tensor]:
    return {name: torch.zeros(shape) for name, shape in zip(names.split(), shapes, strict=True)}


def test_a_state_is_guessed_by_its_name_and_its_form():
    inputs = grow((2, 3), (1, 2, 4), (1, 2, 4), names="x h0 c0")
    outputs = grow((2, 4), (1, 2, 4), (1, 2, 4), names="y hn cn")
    assert guess_state(inputs, outputs) == {"hn": "h0", "cn": "c0"}
    past, present = (
        grow((2, 1), (2, 4, 5, 8), names="ids past.0.key"),
        grow((2, 9), (2, 4, 6, 8), names="l present.0.key"),
    )
    assert guess_state(past, present) == {"present.0.key": "past.0.key"}


def test_outputs_without_names_are_the_last_ones_in_order():
    inputs = grow((2, 3), (1, 2, 4), (1, 2, 4), names="x state[0] state[1]")
    outputs = grow((2, 5), (1, 2, 4), (1, 2, 4), names="output_0 output_1[0] output_1[1]")
    assert guess_state(inputs, outputs) == {"output_1[0]": "state[0]", "output_1[1]": "state[1]"}


def test_what_is_no_state_is_not_guessed():
    image = grow((1, 3, 4, 4), names="x")
    assert guess_state(image, grow((1, 3, 4, 4), names="x_out")) == {}, "nothing says that it is kept"
    assert guess_state(grow((1, 4), names="state"), grow((1, 4), names="new_state")) == {}, "nothing drives it"
    other = grow((2, 3), (1, 4), names="x state")
    assert guess_state(other, grow((1, 5), names="state_out") | grow((2, 2), names="y")) != {}, "it may grow"
    assert guess_state(other, grow((2, 6), names="state_out")) == {}, "another form"


def test_growth_is_in_one_dimension():
    assert find_growth((2, 5), (2, 5)) == (0, 0)
    assert find_growth((2, 5), (2, 8)) == (1, 3)
    assert find_growth((2, 5), (2, 4)) is None
    assert find_growth((2, 5), (3, 6)) is None


def test_what_was_past_is_present():
    assert name_after("past_key_values.0.key") == "present.0.key"
    assert name_after("state") == "state_out"


def test_what_goes_round_beside_a_state_is_one_too():
    inputs = grow((2, 1, 8), (1, 2, 4), (2, 1, 3), names="x h tail")
    outputs = grow((2, 8), (1, 2, 4), (2, 1, 3), names="prob h_out tail_out")
    assert guess_state(inputs, outputs) == {"h_out": "h", "tail_out": "tail"}
    # Without a state beside it, an output that is called like an input is no state: an image that is made of an image.
    assert guess_state(grow((2, 8), (2, 3), names="image noise"), grow((2, 8), names="image_out")) == {}
    # Something must drive the steps.
    inputs = grow((2, 8), (1, 2, 4), names="x h")
    assert guess_state(inputs, grow((2, 8), (1, 2, 4), names="x_out h_out")) == {"h_out": "h"}
