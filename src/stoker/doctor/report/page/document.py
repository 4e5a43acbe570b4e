"""The page of a run: one self-contained file, in which no text of the user can run as code.

Source lines, file names and arguments come from the user. They are in the file only as JSON in a block that no browser
executes, with every character that could end that block escaped; the page's script inserts them as text. A content
security policy allows only the scripts and styles shipped with Stoker, by their hashes, and no network.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib import resources
from pathlib import Path
from typing import Any

from stoker.doctor.report.page.data import make_portable, run_data
from stoker.errors import UsageError
from stoker.records import Record

_STYLES = ("uPlot.min.css", "page.css")
# The blocks of scripts, in this order: first the library's, then ours.
_LIBRARY = ("uPlot.iife.min.js",)
_OURS = ("dom.js", "charts.js", "findings.js", "memory.js", "sections.js", "compare.js", "main.js")
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def page(record: Record) -> str:
    """Return the page of a run."""
    return draw(run_data(record))


def draw(data: dict[str, Any]) -> str:
    """Return a page made from its data."""
    values = make_portable(data)
    text = json.dumps(values, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return _assemble(values, text)


def check(path: str) -> None:
    """Check that a page can be written to this path, so that a long run does not fail at its end.

    Raises:
        UsageError: the path is a directory, or its directory does not exist.
    """
    target = Path(path)
    if target.is_dir():
        raise UsageError(
            f"cannot write {path}: it is a directory; name a file in it, such as {path}/run.html"
        )
    if not target.absolute().parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no directory {target.parent}; make it first")


def _assemble(values: dict[str, Any], text: str) -> str:
    scripts = ["\n".join(_asset(name) for name in names) for names in (_LIBRARY, _OURS)]
    styles = ["\n".join(_asset(name) for name in _STYLES)]
    policy = (
        f"default-src 'none'; script-src {list_hashes(scripts)}; style-src {list_hashes(styles)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    title = html.escape(f"Stoker: {values['title']}")
    sentence = html.escape("".join(str(part["text"]) for part in values["sentence"]))
    return "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n',
            f"<title>{title}</title>\n",
            # The library's licence must be included wherever the library is.
            f"<!-- The charts are drawn by uPlot.\n{_asset('uPlot.LICENSE')}-->\n",
            *(f"<style>{style}</style>\n" for style in styles),
            "</head>\n<body>\n",
            f"<noscript><p>{sentence}</p><p>The figures below it need JavaScript.</p></noscript>\n",
            f'<script type="application/json" id="data">{escape_script(text)}</script>\n',
            *(f"<script>{script}</script>\n" for script in scripts),
            "</body>\n</html>\n",
        )
    )


def escape_script(text: str) -> str:
    """Escape JSON so that it cannot end the HTML block around it. A JSON parser still reads the same values."""
    return "".join(_ESCAPES.get(character, character) for character in text)


def _asset(name: str) -> str:
    return (
        resources.files("stoker.doctor.report.page")
        .joinpath("assets")
        .joinpath(name)
        .read_text(encoding="utf-8")
    )


def list_hashes(blocks: list[str]) -> str:
    """Return the hashes of scripts or styles, in the form of a Content-Security-Policy."""
    digests = (hashlib.sha256(block.encode("utf-8")).digest() for block in blocks)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)
