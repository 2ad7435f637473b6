"""Importing onnxproof and asking for help load neither torch nor onnxruntime."""

from __future__ import annotations

import subprocess
import sys

import onnxproof

HEAVY = ("torch", "onnxruntime", "onnx", "onnx_ir", "onnxscript", "numpy", "scipy")


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(m for m in {HEAVY!r} if m in sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(result.stdout.splitlines()[-1].split()) if result.stdout.strip() else set()


def test_importing_the_package_is_light():
    assert loaded_after("import onnxproof") == set()


def test_help_is_light():
    code = "from onnxproof.cli import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass"
    assert loaded_after(code) == set()


def test_the_supervising_parent_is_light():
    assert not loaded_after("import onnxproof.pipeline.conduct, onnxproof.report.text") & {
        "torch",
        "onnxruntime",
        "onnx",
        "scipy",
    }


def test_public_names_exist():
    for name in onnxproof.__all__:
        assert getattr(onnxproof, name) is not None
    assert set(onnxproof.__all__) == set(dir(onnxproof))


def test_every_stage_is_imported_with_the_required_packages_alone():
    """What an extra brings is asked for where it is used: `prove --data` of a plain install was called a bug of onnxproof."""
    absent = ("sklearn", "pyarrow", "safetensors", "pandas", "altair", "jinja2", "vl_convert", "ray", "transformers")
    code = f"""
import pkgutil, sys
from importlib import import_module
import torch._dynamo, torch.onnx
import onnxproof.pipeline
sys.modules.update(dict.fromkeys({absent!r}))
for module in pkgutil.iter_modules(onnxproof.pipeline.__path__, "onnxproof.pipeline."):
    import_module(module.name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
