"""The JavaScript of the charts (vega, vega-lite, vega-embed) as one text to put into a page."""

from __future__ import annotations

import contextlib
from functools import cache
from importlib.metadata import version

from onnxproof.errors import NotWritten
from onnxproof.files import write_file


@cache
def make_bundle() -> str:
    """The libraries, made once per release and kept in the user's cache: making them takes seconds."""
    import vl_convert
    from platformdirs import user_cache_path

    kept = user_cache_path("onnxproof") / f"vega-{version('vl-convert-python')}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = kept.read_text(encoding="utf-8")
        if text.endswith(END):
            return text
    text = disarm(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")) + END
    with contextlib.suppress(NotWritten):  # a cache that cannot be written is none
        write_file(kept, text)
    return text


# Shows that a kept file is whole.
END = "\n// end\n"


def disarm(script: str) -> str:
    """The same script without the texts that end or reopen a script element; in JavaScript's strings `\\/` and `\\!` are / and !."""
    unix = script.replace("\r\n", "\n").replace("\r", "\n")
    return unix.replace("</script", "<\\/script").replace("</SCRIPT", "<\\/SCRIPT").replace("<!--", "<\\!--")
