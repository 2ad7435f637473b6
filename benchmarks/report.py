"""The HTML report: its size and how fast it opens, small and large, in Chromium. Writes docs/report.json and the table in docs/report.md.

The proofs are real ones of a model that an exporter breaks; the large one repeats its cases and the nodes of its error's path.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

import onnxproof

DOCS = Path(__file__).parents[1] / "docs"
SIZES = ((36, 4), (1_000, 300), (10_000, 3_000))
REPEATS = 5
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Epsilon(nn.Module):
    """The exporter's optimiser deletes the epsilon."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x / (x.norm(dim=-1, keepdim=True) + 1e-8) * 2)


def grown(proof: onnxproof.Proof, cases: int, nodes: int) -> onnxproof.Proof:
    """The same proof with so many cases and nodes."""
    more = tuple(
        replace(case, name=f"{case.name.rsplit('/', 1)[0]}/seed={i}")
        for i in range(1 + cases // len(proof.cases))
        for case in proof.cases
    )
    blames = {}
    for name, blame in proof.blame.items():
        path = tuple(replace(step, node=f"{step.node}_{i}") for i in range(nodes) for step in blame.path)
        blames[name] = replace(blame, path=path[:nodes])
    return replace(proof, cases=more[:cases], blame=blames)


def opened(browser: Any, file: Path) -> dict[str, float]:
    """Milliseconds until the page is loaded, and until every chart of it is drawn."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.goto(file.as_uri())
    loaded = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    waiting = "() => Array.from(document.querySelectorAll('.chart')).every(c => c.dataset.drawn || !c.getClientRects().length)"
    page.wait_for_function(waiting, timeout=60_000)
    drawn = page.evaluate("performance.now()")
    page.close()
    return {"loaded_ms": loaded, "drawn_ms": drawn}


def measure(browser: Any, proof: onnxproof.Proof, folder: Path) -> dict[str, Any]:
    """One row of the table."""
    began = time.perf_counter()
    html = proof.to_html()
    seconds = time.perf_counter() - began
    file = folder / "report.html"
    file.write_text(html, encoding="utf-8")
    runs = [opened(browser, file) for _ in range(REPEATS)]
    return {
        "cases": len(proof.cases),
        "nodes": max((len(blame.path) for blame in proof.blame.values()), default=0),
        "bytes": len(html.encode()),
        "render_s": seconds,
        **{key: statistics.median(run[key] for run in runs) for key in runs[0]},
    }


def table(rows: list[dict[str, Any]]) -> str:
    head = "| cases | nodes on the path | page, MB | made in, s | loaded in, ms | all charts drawn after, ms |\n|---|---|---|---|---|---|"
    lines = [
        f"| {r['cases']:,} | {r['nodes']:,} | {r['bytes'] / 1e6:.2f} | {r['render_s']:.1f} | {r['loaded_ms']:.0f} | {r['drawn_ms']:.0f} |"
        for r in rows
    ]
    return "\n".join([head, *lines])


def main() -> None:
    from playwright.sync_api import sync_playwright

    browser_path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser_path is None:
        sys.exit("this needs Chromium (Debian: apt-get install chromium)")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        proof = onnxproof.prove(Epsilon().eval(), (torch.randn(4, 16),), out=folder / "out")
        proof.to_html()  # the libraries are loaded once
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        rows = [measure(browser, grown(proof, *size), folder) for size in SIZES]
        browser.close()
    (DOCS / "report.json").write_text(json.dumps(rows, indent=1) + "\n")
    page = DOCS / "report.md"
    before, rest = page.read_text(encoding="utf-8").split("<!-- measured -->\n", 1)
    after = rest.split("<!-- end -->\n", 1)[1]
    page.write_text(f"{before}<!-- measured -->\n{table(rows)}\n<!-- end -->\n{after}", encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
