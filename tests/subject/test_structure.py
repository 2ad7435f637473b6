"""Nested values ↔ flat named tensors."""

from __future__ import annotations

import pytest
import torch

import models
from onnxproof.errors import InputError
from onnxproof.subject.structure import flatten


def test_paths_and_the_way_back():
    value = {"logits": torch.ones(1), "past": [models.Pair(torch.ones(2), torch.ones(3))], "flag": True, "none": None}
    flat = flatten(value)
    assert list(flat.tensors) == ["logits", "past[0].key", "past[0].value"]
    assert flat.constants == {"flag": True}
    again = flat.rebuild([t + 1 for t in flat.tensors.values()])
    assert isinstance(again["past"][0], models.Pair)
    assert again["past"][0].value.tolist() == [2, 2, 2]
    assert again["flag"] is True
    assert again["none"] is None


def test_unnamed_outputs():
    assert list(flatten(torch.ones(1)).tensors) == ["output"]
    assert list(flatten((torch.ones(1), [torch.ones(1)])).tensors) == ["output_0", "output_1[0]"]


def test_dataclasses():
    flat = flatten(models.Result(torch.ones(1), [torch.ones(2)]))
    assert list(flat.tensors) == ["logits", "hidden[0]"]
    assert isinstance(flat.rebuild(list(flat.tensors.values())), models.Result)


def test_something_else_is_refused_with_its_path():
    with pytest.raises(InputError, match=r"a\[0\] is a builtins.object"):
        flatten({"a": [object()]})


class Layer:
    """A layer as transformers keeps it."""

    is_compileable = False

    def __init__(self, *shape: int) -> None:
        self.keys, self.values = torch.zeros(shape), torch.ones(shape)


class Sliding(Layer):
    """One that counts what it has seen beside what it holds."""

    cumulative_length = 3


class Cache:
    """Known by its form."""

    def __init__(self, *layers: Layer) -> None:
        self.layers = list(layers)

    def update(self) -> None:
        for layer in self.layers:
            layer.keys = torch.cat([layer.keys, layer.keys], dim=-2)


class Both:
    """What an encoder-decoder keeps."""

    def __init__(self) -> None:
        self.self_attention_cache, self.cross_attention_cache = Cache(Layer(1, 1, 2, 4)), Cache(Layer(1, 1, 7, 4))
        self.is_updated = {0: True}


def test_a_cache_is_named_as_exporters_name_it_and_built_anew_for_every_call():
    cache = Cache(Layer(1, 2, 3, 4), Layer(1, 2, 3, 4))
    flat = flatten({"past": cache})
    assert list(flat.tensors) == ["past.0.key", "past.0.value", "past.1.key", "past.1.value"]
    assert flat.constants == {}
    first, second = (flat.rebuild(list(flat.tensors.values()))["past"] for _ in range(2))
    first.update()
    assert [c.layers[0].keys.shape[-2] for c in (first, second, cache)] == [6, 3, 3]


def test_the_cache_of_an_encoder_decoder_has_two_halves():
    flat = flatten(Both(), "past")
    assert list(flat.tensors) == [
        f"past.0.{half}.{kind}" for half in ("decoder", "encoder") for kind in ("key", "value")
    ]
    again = flat.rebuild([tensor + 1 for tensor in flat.tensors.values()])
    assert again.cross_attention_cache.layers[0].values.max() == 2
    again.is_updated[0] = False
    assert flat.rebuild(list(flat.tensors.values())).is_updated == {0: True}


def test_a_sliding_window_that_dropped_nothing_keeps_no_count():
    """Another past must not have the count of the example's."""
    flat = flatten(Cache(Sliding(1, 1, 3, 4)))
    assert type(flat.rebuild(list(flat.tensors.values())).layers[0]) is Layer
    dropped = flatten(Cache(Sliding(1, 1, 2, 4)))
    assert type(dropped.rebuild(list(dropped.tensors.values())).layers[0]) is Sliding


def test_a_cache_of_fixed_size_does_not_write_into_what_it_was_given():
    layer = Layer(1, 1, 4, 2)
    layer.is_compileable = True
    flat = flatten(Cache(layer))
    flat.rebuild(list(flat.tensors.values())).layers[0].keys.fill_(5)
    assert layer.keys.max() == 0


def test_an_empty_cache_is_built_anew_too():
    cache = Cache()
    flat = flatten({"past": cache, "x": torch.ones(1)})
    flat.rebuild([torch.ones(1)])["past"].layers.append(Layer(1, 1, 1, 1))
    assert list(flat.tensors) == ["x"]
    assert cache.layers == []


def test_an_object_of_no_known_kind_by_its_tensors():
    class Memory:
        def __init__(self) -> None:
            self.slots, self.label = [torch.zeros(2), torch.zeros(3)], "a"

    flat = flatten({"m": Memory()})
    assert list(flat.tensors) == ["m.slots[0]", "m.slots[1]"]
    assert flat.rebuild([torch.ones(2), torch.ones(3)])["m"].label == "a"
    assert flat.constants == {}


def test_the_caches_of_transformers():
    from transformers import DynamicCache, EncoderDecoderCache

    cache = DynamicCache()
    cache.update(torch.zeros(1, 2, 3, 4), torch.ones(1, 2, 3, 4), 0)
    assert list(flatten(cache, "past_key_values").tensors) == ["past_key_values.0.key", "past_key_values.0.value"]
    both = EncoderDecoderCache(cache, DynamicCache())
    again = flatten({"p": both}).rebuild([torch.zeros(1, 2, 5, 4), torch.ones(1, 2, 5, 4)])["p"]
    assert again.get_seq_length() == 5
