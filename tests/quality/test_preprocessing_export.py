"""Preprocessing and model as one module."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from onnxproof.errors import InputError
from onnxproof.quality.preprocessing_export import Combined, combine
from onnxproof.request.evaluation import EvaluateSettings


class Pair(nn.Module):
    def forward(self, x, y):
        return x - y


@pytest.mark.parametrize("made", [lambda raw: (raw * 2, raw), lambda raw: {"y": raw, "x": raw * 2}])
def test_what_preprocessing_makes_is_fed_by_place_or_by_name(made):
    preprocess = nn.Module()
    preprocess.forward = made
    assert Combined(preprocess, Pair())(torch.ones(2)).tolist() == [1, 1]


def test_the_example_is_raw_rows_and_only_a_module_is_exported(tmp_path):
    (tmp_path / "p.py").write_text("from torch import nn\nscale = nn.Identity()\ndef function(batch): return batch\n")
    np.savez(tmp_path / "d.npz", X=np.arange(12.0).reshape(6, 2), labels=np.arange(6) % 2)
    settings = EvaluateSettings(str(tmp_path / "d.npz"), preprocess=f"{tmp_path / 'p.py'}:scale")
    module, (example,) = combine(nn.Linear(2, 2), settings)
    assert not module.training
    assert (example.shape, example.dtype) == ((4, 2), torch.float32)
    with pytest.raises(InputError, match=r"only a torch\.nn\.Module can be exported"):
        combine(nn.Linear(2, 2), EvaluateSettings("unread", preprocess=f"{tmp_path / 'p.py'}:function"))
    with pytest.raises(InputError, match=r"give it, as file\.py:name"):
        combine(nn.Linear(2, 2), EvaluateSettings("unread"))
