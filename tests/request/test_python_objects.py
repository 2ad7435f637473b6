"""The object that `file.py:name` names."""

from __future__ import annotations

import pytest

from onnxproof.errors import TargetError
from onnxproof.request.python_objects import load_object


def test_files_and_packages(tmp_path):
    (tmp_path / "some-file.py").write_text("class A:\n    inner = 7\n")
    assert load_object(f"{tmp_path / 'some-file.py'}:A.inner") == (7, "A.inner")
    assert load_object("math:pi")[0] == pytest.approx(3.14159, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{folder}/nowhere.py:a", "there is no file .*nowhere.py"),
        ("{folder}/good.py:b", "good.py has no 'b'; it has 'a'"),
        ("{folder}/bad.py:a", r"bad.py raised while it was imported: ZeroDivisionError: division by zero \(bad.py:2\)"),
        ("{folder}/ends.py:a", "raised while it was imported: SystemExit: 3"),
        ("{folder}/wrong.py:a", "raised while it was imported: SyntaxError"),
        ("no.such.module:a", "module no.such.module raised while it was imported: ModuleNotFoundError"),
        ("{folder}/good.py", "is not understood"),
        ("{folder}/model.pt", "is a file: expected path/file.py:name"),
    ],
)
def test_what_is_not_there_is_told(text, message, tmp_path):
    (tmp_path / "good.py").write_text("a = 1\n")
    (tmp_path / "bad.py").write_text("a = 1\na / 0\n")
    (tmp_path / "ends.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "wrong.py").write_text("a =\n")
    (tmp_path / "model.pt").write_text("")
    with pytest.raises(TargetError, match=message):
        load_object(text.format(folder=tmp_path))


def test_a_file_of_a_package_finds_what_lies_beside_it(tmp_path):
    package = tmp_path / "shop_of_models" / "parts"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "sizes.py").write_text("WIDE = 7\n")
    (package / "by_dots.py").write_text("from .sizes import WIDE\n")
    (package / "by_name.py").write_text("from shop_of_models.parts.sizes import WIDE\n")
    assert [load_object(f"{package / name}.py:WIDE")[0] for name in ("by_dots", "by_name")] == [7, 7]
