"""The files beside the text: every form of the report has what makes it, and is written only where it was asked for."""

from __future__ import annotations

import pytest

import proofs
from onnxproof.cli import ending
from onnxproof.errors import UserError
from onnxproof.request.build import build_request
from onnxproof.request.option import list_options
from onnxproof.request.request import Delivery, Reports


@pytest.mark.parametrize("name", list_options(Reports))
def test_every_form_is_written_where_it_was_asked_for_and_no_other(name, tmp_path, capsys):
    file = tmp_path / "made" / f"report.{name}"
    ending.write(proofs.make_proof(wrong=1), build_request("report", {name: str(file)}))
    assert "OX201" in file.read_text()
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert capsys.readouterr().err == f"{name}: {file}\n"


@pytest.mark.parametrize("name", list_options(Reports))
def test_a_folder_is_refused_before_the_work(name, tmp_path):
    with pytest.raises(UserError, match=f"--{name} .* is a folder: expected the name of a file"):
        ending.check(Delivery(**{name: str(tmp_path)}))


def test_a_place_that_cannot_be_written_is_the_users_error(tmp_path):
    (tmp_path / "file").touch()
    request = build_request("report", {"markdown": str(tmp_path / "file" / "m.md")})
    (missing,) = ending.write(proofs.make_proof(), request)
    assert missing == f"{tmp_path / 'file' / 'm.md'} cannot be written: File exists"
