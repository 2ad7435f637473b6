"""Proof → one self-contained HTML page: verdict, parity, latency, quality, model, findings, environment, how to reproduce.

Everything that comes from a model is untrusted. Jinja escapes it, data travel in JSON blocks in which no character can end
the block, scripts write texts only as texts, and the page's own policy lets no script run but those made here (by their hash)
and no request go anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from onnxproof.proof.codec import make_finite
from onnxproof.proof.proof import Proof
from onnxproof.report.extras import PAGE, require

if TYPE_CHECKING:
    import jinja2

# Bytes a page may have.
LIMIT = 2_000_000


def render_html(proof: Proof) -> str:
    """The page."""
    require(*PAGE)
    from onnxproof.report import charts, page, vega

    scripts = {"vega": vega.make_bundle(), "page": _read_resource("page.js"), "early": _read_resource("early.js")}
    themes = {"light": charts.make_theme(dark=False), "dark": charts.make_theme(dark=True)}
    template = _make_environment().get_template("report.html.j2")
    fixed = {"style": _read_resource("style.css"), "scripts": scripts, "policy": _build_policy(scripts)}
    room, findings = LIMIT - sum(len(text.encode()) for text in scripts.values()), page.SHOWN_FINDINGS
    while True:
        content = page.make_page(proof, room=room, findings=findings)
        data = to_script_json({"themes": themes, **content.data})
        text = template.render(**content.context, **fixed, data=data).encode("utf-8", "replace").decode()
        excess = len(text.encode()) - LIMIT
        if excess <= 0 or findings <= 5:
            return text
        # Texts of the model can be long: then fewer rows and fewer findings are shown, the worst of them.
        room, findings = room - excess - 20_000, findings // 3


def to_script_json(value: Any) -> str:
    """JSON for a script element: no character in it can end the element or start a comment."""
    text = json.dumps(make_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # Half of a surrogate pair is no character: it cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def _build_policy(scripts: dict[str, str]) -> str:
    """No request, and no script but these: not even one that slips through the escaping."""
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts.values())
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _read_resource(name: str) -> str:
    text = resources.files("onnxproof.report").joinpath("templates").joinpath(name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def _make_environment() -> jinja2.Environment:
    import jinja2

    from onnxproof.report import wording

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read_resource),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    shown = (
        wording.show_cell,
        wording.show_number,
        wording.tell_place,
        wording.shorten,
        wording.name_standing,
        wording.show_value,
    )
    environment.filters |= {filter.__name__: filter for filter in shown}
    environment.globals["CELLS"] = wording.CELLS
    return environment
