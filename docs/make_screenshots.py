"""Make the three reports and their pictures in docs/images: real proofs, rendered and photographed in Chromium.

Run `make screenshots`, or this file with the `report` and `dev` extras installed. The reports themselves are left in the folder
that is named at the end.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

import onnxproof
from onnxproof.cli.digits import digits

IMAGES = Path(__file__).parent / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Block(nn.Module):
    """A feed-forward block with a GELU."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.widen = nn.Linear(32, 64)
        self.gelu = nn.GELU(approximate=approximate)
        self.narrow = nn.Linear(64, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.narrow(self.gelu(self.widen(self.norm(x))))


class Encoder(nn.Sequential):
    """Blocks, one after the other."""


class Ranker(nn.Module):
    """Embeds rows and compares their directions: the epsilon guards rows of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(16, 32, bias=False), nn.ReLU(), nn.Linear(32, 32, bias=False))
        self.head = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        rows = self.embed(features)
        rows = rows / (rows.norm(dim=-1, keepdim=True) + 1e-8)
        return self.head(rows)


def ship() -> onnxproof.Proof:
    """The demo's network, exported and found right."""
    return onnxproof.prove(*digits(), out="ship")


def review() -> onnxproof.Proof:
    """A file in which someone replaced the GELU by its tanh approximation: inside the tolerance, and not rounding."""
    torch.manual_seed(0)
    exact = Encoder(Block(), Block()).eval()
    other = Encoder(Block("tanh"), Block("tanh")).eval()
    other.load_state_dict(exact.state_dict())
    inputs = (torch.randn(4, 32),)
    onnxproof.export(other, inputs, out="theirs")
    return onnxproof.verify(exact, inputs, onnx="theirs/model.onnx", out="review", atol=1e-3)


def block() -> onnxproof.Proof:
    """A model whose epsilon the exporter's optimiser deletes: NaN where a row is zero."""
    torch.manual_seed(0)
    return onnxproof.prove(Ranker().eval(), (torch.randn(4, 16),), out="block")


def without_folder(proof: onnxproof.Proof, folder: Path) -> onnxproof.Proof:
    """The same proof with file names relative to the folders it was made in."""
    text = proof.dumps()
    for prefix in (f"{folder}/", f"{Path(__file__).parent.parent}/"):
        text = text.replace(prefix, "")
    return onnxproof.Proof.loads(text)


def photograph(page: Any, file: Path, url: str, height: int) -> None:
    """Open, wait until the charts that are seen are drawn, and keep the top of the page."""
    page.goto(url)
    page.set_viewport_size({"width": page.viewport_size["width"], "height": height})
    page.wait_for_function("() => document.querySelectorAll('.chart:not([data-drawn])').length === 0", timeout=60_000)
    page.evaluate("window.scrollTo(0, 0)")
    page.screenshot(path=file)
    print(f"{file.name}: {file.stat().st_size / 1000:.0f} KB")


def main() -> None:
    from playwright.sync_api import sync_playwright

    browser_path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser_path is None:
        sys.exit("this needs Chromium (Debian: apt-get install chromium)")
    folder = Path(tempfile.mkdtemp(prefix="onnxproof-reports-"))
    os.chdir(folder)
    IMAGES.mkdir(exist_ok=True)
    for make in (ship, review, block):
        proof = without_folder(make(), folder)
        assert proof.verdict == make.__name__, (make.__name__, proof.findings)
        (folder / f"{proof.verdict}.html").write_text(proof.to_html(), encoding="utf-8")
    pictures = (
        *((name, name, {}, 1500) for name in ("ship", "review", "block")),
        ("block", "block-dark", {"color_scheme": "dark"}, 1500),
        ("block", "block-phone", {"viewport": {"width": 360, "height": 800}}, 1500),
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for report, name, options, height in pictures:
            context = browser.new_context(**{"viewport": {"width": 1100, "height": 900}, **options})
            photograph(context.new_page(), IMAGES / f"{name}.png", (folder / f"{report}.html").as_uri(), height)
        browser.close()
    print(f"the reports are in {folder}")


if __name__ == "__main__":
    main()
